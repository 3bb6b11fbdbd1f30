# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The moves of hbal, the cluster while they are made, and the plan that they make up.

The moves, their order and their checks are those of htools (Cluster and Cluster/Moves, version
3.0.2): five for an instance with two nodes, one for an instance on shared storage.  A move is
one job: its steps are carried out together.
"""

from __future__ import annotations

from ...hints import Callable, Sequence, dataclass
from ..model.admission import (
    migration_failure,
    primary_failure,
    secondary_failure,
    with_primary,
    with_secondary,
    without_primary,
    without_secondary,
)
from ..model.cluster import EXTERNAL_TEMPLATES, Cluster, Instance, Node
from ..model.moves import Moved, common_locations, failover, failover_to, replace_secondary
from ..model.score import Score

FAILOVER, SECONDARY, TAKE_OVER, PRIMARY, FAILOVER_REPLACE, ANYWHERE = range(6)
"""Swap roles; new secondary; new primary with the old one as secondary; new primary; swap roles
and new secondary; any node (shared storage).

The numbers are the order in which htools tries them on one target.
"""

ON_PRIMARY = (TAKE_OVER, PRIMARY, ANYWHERE)
"""The kinds of move whose target becomes the primary; of the others it is the secondary."""

MOVED_TEMPLATES = (EXTERNAL_TEMPLATES - {"diskless"}) | {"drbd"}
"""The disk templates that hbal moves."""

STEPS = {
    FAILOVER: "f",
    SECONDARY: "r:{0}",
    TAKE_OVER: "r:{0} f",
    PRIMARY: "f r:{0} f",
    FAILOVER_REPLACE: "f r:{0}",
    ANYWHERE: "fa:{0}",
}
"""The steps of each move as hbal prints them, with the target's name."""


@dataclass
class Choice:
    """A possible move: instance, kind and target by number, its result and the score after it.

    ``rescored`` is that score added up again, if it was.
    """

    instance: int
    kind: int
    target: int
    moved: Moved
    score: float
    rescored: Score | None = None


@dataclass
class MoveLimits:
    """Which instances may move and how, by hbal's options of the same names."""

    evacuate: bool = False
    disk_moves: bool = True
    instance_moves: bool = True
    restricted: bool = False
    force: bool = False

    def kinds(self, instance: Instance, nodes: Sequence[Node]) -> tuple[int, ...]:
        """Return the kinds of move that *instance* may make, in the order of htools."""
        if instance.template != "drbd":
            return (ANYWHERE,) if self.instance_moves else ()
        live = not nodes[instance.secondary].offline
        first = (FAILOVER,) if live and self.instance_moves else ()
        if not self.disk_moves:
            return first
        if not self.instance_moves:
            return (SECONDARY,)
        drained = nodes[instance.primary].offline
        if self.restricted:
            both = (TAKE_OVER, FAILOVER_REPLACE) if live else (TAKE_OVER,)
            return (*first, SECONDARY, *(both if drained else ()))
        if not live:
            return (SECONDARY, TAKE_OVER)
        return (*first, SECONDARY, TAKE_OVER, PRIMARY, FAILOVER_REPLACE)


def move(
    nodes: Sequence[Node], instance: Instance, kind: int, target: int, force: bool
) -> Moved | str:
    """Return the result of the move *kind* of *instance* to the node *target*, or its failure.

    Soft limits do not count with *force*, and never where a source is offline.
    """
    if kind == FAILOVER:
        return failover(nodes, instance, force)
    if kind == SECONDARY:
        return replace_secondary(nodes, instance, target, force)
    if kind == TAKE_OVER:
        return _take_over(nodes, instance, target, force)
    if kind == PRIMARY:
        return _replace_primary(nodes, instance, target, force)
    if kind == FAILOVER_REPLACE:
        return _failover_and_replace(nodes, instance, target, force)
    return failover_to(nodes, instance, target, force)


def cannot_leave(nodes: Sequence[Node], instance: Instance, kind: int) -> bool:
    """Return whether tags for migration forbid a move of *kind*, whatever its target."""
    if kind not in (FAILOVER, PRIMARY, FAILOVER_REPLACE):
        return False
    return migration_failure(nodes[instance.primary], nodes[instance.secondary]) is not None


def tags_forbid(
    nodes: Sequence[Node], instance: Instance, kind: int, target: int, force: bool
) -> bool:
    """Return whether tags of the node *target* forbid the move; exclusion tags not with *force*."""
    if kind not in ON_PRIMARY:
        return False
    node, primary = nodes[target], nodes[instance.primary]
    # While a new primary takes the disks, the instance runs on its secondary.
    source = nodes[instance.secondary] if kind == PRIMARY else primary
    if migration_failure(source, node) is not None:
        return True
    if not instance.exclusion or instance.forthcoming or force or primary.offline:
        return False
    return any(tag in node.exclusion for tag in instance.exclusion)


def _take_over(nodes: Sequence[Node], instance: Instance, target: int, force: bool) -> Moved | str:
    """Make *target* the secondary, then the primary; the old primary stays as secondary."""
    old_primary, old_secondary = nodes[instance.primary], nodes[instance.secondary]
    common = common_locations(old_primary, nodes[target])
    moved = instance.at(target, instance.primary, common)
    failure = migration_failure(old_primary, nodes[target])
    failure = failure or primary_failure(nodes[target], moved, force)
    if failure is not None:
        return failure
    bare = without_primary(old_primary, instance)
    failure = secondary_failure(bare, moved, target, force or old_secondary.offline)
    if failure is not None:
        return failure
    return Moved(
        {
            instance.secondary: without_secondary(old_secondary, instance),
            instance.primary: with_secondary(bare, moved, target),
            target: with_primary(nodes[target], moved),
        },
        moved,
    )


def _replace_primary(
    nodes: Sequence[Node], instance: Instance, target: int, force: bool
) -> Moved | str:
    """Run on the secondary while *target* takes the disks, then there."""
    old_primary, secondary = nodes[instance.primary], nodes[instance.secondary]
    force = force or old_primary.offline
    failure = migration_failure(old_primary, secondary)
    failure = failure or migration_failure(secondary, nodes[target])
    if failure is not None:
        return failure
    bare = without_secondary(secondary, instance)
    moved = instance.at(target, instance.secondary, common_locations(nodes[target], secondary))
    failure = primary_failure(bare, instance, force)
    failure = failure or primary_failure(nodes[target], moved, force)
    failure = failure or secondary_failure(bare, moved, target, force)
    if failure is not None:
        return failure
    return Moved(
        {
            instance.primary: without_primary(old_primary, instance),
            instance.secondary: with_secondary(bare, moved, target),
            target: with_primary(nodes[target], moved),
        },
        moved,
    )


def _failover_and_replace(
    nodes: Sequence[Node], instance: Instance, target: int, force: bool
) -> Moved | str:
    """Run on the secondary, with *target* as the new secondary."""
    old_primary, secondary = nodes[instance.primary], nodes[instance.secondary]
    failure = migration_failure(old_primary, secondary)
    if failure is not None:
        return failure
    common = common_locations(secondary, nodes[target])
    moved = instance.at(instance.secondary, target, common)
    force = force or old_primary.offline
    bare = without_secondary(secondary, instance)
    failure = primary_failure(bare, moved, force)
    failure = failure or secondary_failure(nodes[target], moved, instance.secondary, force)
    if failure is not None:
        return failure
    return Moved(
        {
            instance.primary: without_primary(old_primary, instance),
            instance.secondary: with_primary(bare, moved),
            target: with_secondary(nodes[target], moved, instance.secondary),
        },
        moved,
    )


def copied(instance: Instance, kind: int) -> int:
    """Return the MiB of disks that a move of *kind* copies between nodes."""
    return instance.disk if kind not in (FAILOVER, ANYWHERE) else 0


NARROW = 1e-6
"""A variance below this is not exact: rounding is magnified by the square root."""


class State:
    """The cluster while moves are made: the nodes *scope* are scored, *chosen* instances move.

    ``value`` is the score, ``slack`` the most by which rounding puts an estimate off it.
    """

    def __init__(
        self, cluster: Cluster, scope: Sequence[int], chosen: Sequence[int], limits: MoveLimits
    ) -> None:
        self._cluster = cluster
        self.scope = list(scope)
        self.limits = limits
        self.nodes: list[Node] = list(cluster.nodes)
        self.instances: dict[int, Instance] = {i: cluster.instance(i) for i in chosen}
        self._moved: dict[int, Instance] = {}
        self.tried = 0
        """How many moves were carried out on copies of nodes, to see whether they are possible."""
        self._rescore()

    def _rescore(self, score: Score | None = None) -> None:
        self.score = score or Score([self.nodes[index] for index in self.scope])
        self.value = self.score.value()
        narrow = self.score.variances and min(self.score.variances) < NARROW
        self.slack = 1e-7 if narrow else 1e-10 * max(1.0, abs(self.value))

    def cluster(self) -> Cluster:
        """Return the cluster as it is now."""
        return self.cluster_with(self.nodes, {})

    def instance(self, index: int) -> Instance:
        """Return the instance *index*, whether or not it may move, where it is now."""
        return self._moved.get(index) or self._cluster.instance(index)

    def cluster_with(self, nodes: Sequence[Node], placed: dict[int, Instance]) -> Cluster:
        """Return the cluster with *nodes*, and the instances *placed* where they say."""
        twin = self._cluster.copy()
        twin.nodes = list(nodes)
        twin.changed.update(self._moved)
        twin.changed.update(placed)
        return twin

    def made(self, index: int, kind: int, target: int) -> Choice | None:
        """Return the move of the instance *index* with its score, None if it is not possible."""
        self.tried += 1
        moved = move(self.nodes, self.instances[index], kind, target, self.limits.force)
        if isinstance(moved, str):
            return None
        changes = [(self.nodes[i], node) for i, node in moved.nodes.items()]
        return Choice(index, kind, target, moved, self.score.value_with(changes))

    def put(self, moved: Moved, score: Score | None = None) -> None:
        """Make the move *moved*; *score* is the score after it, if it is known."""
        for index, node in moved.nodes.items():
            self.nodes[index] = node
        self._moved[moved.instance.index] = moved.instance
        if moved.instance.index in self.instances:
            self.instances[moved.instance.index] = moved.instance
        self._rescore(score)

    def undo_of(self, moved: Moved) -> Moved:
        """Return the move that takes back *moved*, which is not made yet."""
        before = {index: self.nodes[index] for index in moved.nodes}
        return Moved(before, self.instances[moved.instance.index])


@dataclass
class Made:
    """A move that was made: the instance before and after it, and the score after it."""

    before: Instance
    after: Instance
    kind: int
    target: int
    score: float

    def steps(self, names: Callable[[int], str]) -> str:
        """Return the steps as hbal prints them; *names* returns the name of a node."""
        return STEPS[self.kind].format(names(self.target) if self.target >= 0 else "")


@dataclass
class Worth:
    """The result of a plan: its score, how many moves it has, and the MiB that it copies."""

    score: float
    moves: int
    copied: int


@dataclass
class Plan:
    """Moves in order; the scores before and after; the cluster after.

    ``pairs`` are the places of moves that gain only together with the next.  ``loses_node`` is
    set if a node could be lost before and cannot after some move; ``given_up`` is the result of
    hbal's rule, if the plan is worse for that reason.  If swaps were asked for,
    ``without_swaps`` is the result of the plan without them, and ``uses_swaps`` is whether this
    plan is another one.  If a search was asked for, ``before_search`` is the result before it, and
    ``by_time`` is whether the clock ended it: another run may end elsewhere.
    """

    steps: list[Made]
    score_before: float
    score_after: float
    cluster: Cluster
    pairs: frozenset[int] = frozenset()
    loses_node: bool = False
    given_up: Worth | None = None
    without_swaps: Worth | None = None
    uses_swaps: bool = False
    before_search: Worth | None = None
    by_time: bool = False

    @property
    def worth(self) -> Worth:
        """The result of the plan."""
        return Worth(self.score_after, len(self.steps), self.copied)

    @property
    def copied(self) -> int:
        """The MiB of disks that the plan copies."""
        return sum(copied(step.before, step.kind) for step in self.steps)


def made_of(before: Instance, choice: Choice, score: float) -> Made:
    """Return *choice* as made, with the instance *before* it and the *score* after it."""
    return Made(before, choice.moved.instance, choice.kind, choice.target, score)


def kinds_between(before: Instance, after: Instance) -> tuple[int, ...]:
    """Return the kinds of the moves from *before* to *after*: none, one, or two in a row."""
    old = (before.primary, before.secondary)
    new = (after.primary, after.secondary)
    if new == old:
        return ()
    if before.template != "drbd":
        return (ANYWHERE,)
    if new == (old[1], old[0]):
        return (FAILOVER,)
    if new[0] == old[0]:
        return (SECONDARY,)
    if new[1] == old[0]:
        return (TAKE_OVER,)
    if new[1] == old[1]:
        return (PRIMARY,)
    return (FAILOVER_REPLACE,) if new[0] == old[1] else (PRIMARY, SECONDARY)


def routes(before: Instance, after: Instance) -> tuple[tuple[tuple[int, int], ...], ...]:
    """Return the shortest ways from *before* to *after*, each the kinds and targets of moves."""
    kinds = kinds_between(before, after)
    if len(kinds) < 2:
        return (tuple([(kind, target_of(kind, after)) for kind in kinds]),)
    primary, secondary = after.primary, after.secondary
    return (
        ((PRIMARY, primary), (SECONDARY, secondary)),
        ((SECONDARY, secondary), (PRIMARY, primary)),
        ((TAKE_OVER, primary), (SECONDARY, secondary)),
        ((FAILOVER_REPLACE, secondary), (PRIMARY, primary)),
    )


def target_of(kind: int, after: Instance) -> int:
    """Return the target of the move of *kind* that leads to *after*."""
    if kind == FAILOVER:
        return -1
    return after.secondary if kind in (SECONDARY, FAILOVER_REPLACE) else after.primary
