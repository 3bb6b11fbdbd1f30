# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Change one or both nodes of an instance to the best target or pair of targets.

One node is the secondary of a ``drbd`` instance, or the node of an instance on shared storage.
The rules are those of htools (Cluster/Evacuate, version 3.0.2): the score is of the target's
group, and of equal targets the last wins.

The score with a new secondary is estimated for all targets first; only those within rounding
of the best are scored with the steps of htools.  The best pair is searched as for a new
instance (`best_pair`).
"""

from __future__ import annotations

from math import inf, isnan, sqrt

from ...hints import Sequence, dataclass
from ..model.admission import (
    migration_failure,
    primary_failure,
    secondary_failure,
    without_primary,
    without_secondary,
)
from ..model.cluster import NO_NODE, Cluster, Instance, Node
from ..model.moves import Found, Moved, failover, failover_to, replace_secondary
from ..model.score import AT_BOTH, RESERVED, WEIGHT, WEIGHTS, Score
from .best_pair import FIRST, BestPair, scored
from .pairs import as_secondary, short_way
from .single import Search
from .solution import SAME, Options, Unplaceable, migrate, replace_disks

AT_SECONDARY = sorted((*AT_BOTH, RESERVED))
"""The deviations that a secondary changes."""
TO_PRIMARY, FAIL_OVER = "Changing secondary to new primary", "Failing over to new primary"
"""The first steps of a move to two new nodes, in htools' words."""


def move_to_best(
    cluster: Cluster, instance: Instance, group: int, targets: list[int], force: bool
) -> Found:
    """Move *instance* to the best of *targets*, which are nodes of *group*.

    With *force* soft limits do not count.  Raises `Unplaceable`, with what each node
    refuses, if there is none.
    """
    search = _OneNode(cluster.nodes, instance, group, force)
    likely = search.promising(targets) if search.mirrored else targets
    found, failures = search.score_all(likely)
    if not found and likely is not targets:
        found, failures = search.score_all(targets)
    if not found:
        raise Unplaceable("Can't find any good node: " + "".join(failures))
    _value, target, moved = search.best(found)
    after = cluster.with_nodes(moved.nodes, moved.instance)
    name = cluster.nodes[target].name
    opcode = replace_disks(instance, name) if search.mirrored else migrate(instance, name)
    return Found(after, moved.instance, [opcode])


@dataclass
class _OneNode:
    """The search for one new node of *instance*, among nodes of *group*."""

    nodes: Sequence[Node]
    instance: Instance
    group: int
    force: bool

    def __post_init__(self) -> None:
        self.mirrored = self.instance.template == "drbd"
        self._score = Score([node for node in self.nodes if node.group == self.group])

    def promising(self, targets: list[int]) -> list[int]:
        """Return those of *targets* that may be the best new secondary."""
        nodes, instance = self.nodes, self.instance
        primary, leaving = nodes[instance.primary], nodes[instance.secondary]
        if instance.forthcoming or primary.location or primary.group != self.group:
            return targets
        total = self._score.value()
        if total - total != 0:
            # Not a number, so there is nothing to estimate.
            return targets
        force = self.force or leaving.offline
        left = self._score.moved(leaving, without_secondary(leaving, instance), self.group)
        estimates: list[tuple[float, int]] = []
        for target in targets:
            node = nodes[target]
            if node.exclusive or node.total_memory <= 0 or node.high_spindles <= 0:
                return targets
            if secondary_failure(node, instance, instance.primary, force) is None:
                estimates.append((_estimate(left, node, instance), target))
        if not estimates:
            return targets
        best = min(estimates)[0]
        # More than rounding, which a root magnifies where a deviation is nearly zero.
        limit = best + 1e-5 * max(1.0, abs(best))
        return [target for value, target in estimates if not value > limit]

    def score_all(self, targets: list[int]) -> tuple[list[tuple[float, int, Moved]], list[str]]:
        """Return the score of each of *targets* that is possible, and why others are not."""
        nodes, group = self.nodes, self.group
        change = replace_secondary if self.mirrored else failover_to
        found: list[tuple[float, int, Moved]] = []
        failures = []
        # NaN stays NaN: no move repairs the node that causes it.
        base = self._score.value()
        for target in targets:
            moved = change(nodes, self.instance, target, self.force)
            if isinstance(moved, str):
                failures.append(f" Node {nodes[target].name} failed: {moved};")
                continue
            inside = [(nodes[i], node) for i, node in moved.nodes.items() if node.group == group]
            value = base if isnan(base) else self._score.value_with(inside)
            found.append((value, target, moved))
        return found, failures

    def best(self, found: list[tuple[float, int, Moved]]) -> tuple[float, int, Moved]:
        """Return the best place; of places within rounding the first by htools' full sums."""
        best = found[0]
        for place in found[1:]:
            if not best[0] < place[0]:
                best = place
        limit = best[0] + SAME * max(1.0, abs(best[0]))
        equal = [place for place in found if place[0] <= limit]
        if not 1 < len(equal) <= 16:
            return best
        chosen = None
        for _value, target, moved in equal:
            after = moved.applied_to(self.nodes)
            value = Score([node for node in after if node.group == self.group]).value()
            if chosen is None or not chosen[0] < value:
                chosen = (value, target, moved)
        return chosen or best


def _estimate(score: Score, node: Node, instance: Instance) -> float:
    """Return the terms of the score that change if *node* becomes the secondary, as a sum."""
    kept = node.peers.get(instance.primary, 0) + instance.reserved_memory
    reserved = max(node.reserved, kept)
    total, disk, use = node.total_disk, instance.disk, instance.spindle_use
    after = (
        (node.free_disk - disk) / total if total else 1.0,
        reserved / node.total_memory,
        node.disk_load + instance.disk_load,
        (node.used_spindles + use) / node.high_spindles,
        (node.free_disk_forth - disk) / total if total else 1.0,
        (node.used_spindles_forth + use) / node.high_spindles,
    )
    before = score.rows[node.index]
    count = score.count
    value = WEIGHT["reserved_mem_rtotal"] * (after[1] - before[RESERVED])
    for place, new in zip(AT_SECONDARY, after):
        old = before[place]
        step = new - old
        moved = (count * (new + old) - 2 * score.sums[place] - step) * step / (count * count)
        variance = score.variances[place] + moved
        if variance > 0:
            value += WEIGHTS[place] * sqrt(variance)
    if node.short or node.unallocated <= reserved:
        held = len(node.primaries) + len(node.secondaries)
        value += (held + 1 if node.unallocated <= reserved else 0) - (held if node.short else 0)
    return value


def move_to_best_pair(
    cluster: Cluster, instance: Instance, group: int, targets: list[int], force: bool
) -> Found:
    """Change both nodes of a ``drbd`` *instance* to the best pair of *targets*, nodes of *group*.

    The steps: fail over first if the primary is offline, make the new primary the secondary,
    fail over to it, change the secondary.  With *force* soft limits do not count.  Raises
    `Unplaceable` if no pair is possible.
    """
    if len(targets) < 2:
        raise Unplaceable("Can't find any good nodes for relocation: no nodes available")
    start: Moved = Moved({}, instance)
    opcodes = []
    if cluster.nodes[instance.primary].offline:
        first = failover(cluster.nodes, instance, force)
        if isinstance(first, str):
            raise Unplaceable(_failed("Failing over to the secondary", first))
        start = first
        opcodes.append(migrate(instance, None))
    nodes = start.applied_to(cluster.nodes)
    primaries = _NewPrimaries(nodes, start, force)
    best = _best_halves(cluster, start, primaries, targets, group, force)
    if best is None:
        raise Unplaceable(_last_problem(nodes, start, primaries, targets, force))
    primary, secondary = best
    half = _new_primary(nodes, start, primary, force)
    if isinstance(half, str):
        raise Unplaceable(half)
    moved = replace_secondary(half.applied_to(nodes), half.instance, secondary, force)
    if isinstance(moved, str):
        raise Unplaceable(_failed("Changing secondary to final secondary", moved))
    names = [cluster.nodes[index].name for index in (primary, secondary)]
    opcodes += [
        replace_disks(instance, names[0]),
        migrate(instance, None),
        replace_disks(instance, names[1]),
    ]
    changed = {**start.nodes, **half.nodes, **moved.nodes}
    after = cluster.with_nodes(changed, moved.instance)
    return Found(after, moved.instance, opcodes)


def _best_halves(
    cluster: Cluster,
    start: Moved,
    primaries: _NewPrimaries,
    targets: list[int],
    group: int,
    force: bool,
) -> tuple[int, int] | None:
    """Return the best new primary and secondary, of *targets*; *primaries* says which can be one.

    Whatever the steps, the instance is on its new nodes only in the end: so this is the search
    for a place in the cluster without it.
    """
    instance = start.instance
    primary, secondary = instance.primary, instance.secondary
    nodes = start.applied_to(cluster.nodes)
    bare = cluster.with_nodes(
        {
            primary: without_primary(nodes[primary], instance),
            secondary: without_secondary(nodes[secondary], instance),
        }
    )
    scope = [node.index for node in bare.nodes if node.group == group]
    # What its old nodes have in common does not count for the new ones.
    placed = instance.at(NO_NODE, NO_NODE, 0)
    search = Search(bare, scope, placed, Options(capacity_checks=False))
    firsts = [bare.nodes[index] for index in targets]
    seconds = []
    barred = {}
    force = force or nodes[primary].offline
    among = set(targets)
    for index in targets:
        failure, refused = as_secondary(bare.nodes[index], instance, among, force)
        if failure is None:
            seconds.append(bare.nodes[index])
            barred[index] = refused
    if seconds and short_way(search, firsts):
        best = BestPair(search, firsts, seconds, barred, primaries.accepts).best()
    else:
        best = FIRST
        # Scored in full: what is no number stays none, and of equals the last is taken.
        undefined = isnan(search.score.value())
        for first in filter(primaries.accepts, firsts):
            for second in seconds:
                if first is not second and first.index not in barred[second.index]:
                    place = (inf, -first.index, -second.index)
                    best = min(best, place if undefined else scored(search, first, second))
    return None if best is FIRST else (-best[1], -best[2])


def _last_problem(
    nodes: Sequence[Node], start: Moved, primaries: _NewPrimaries, targets: list[int], force: bool
) -> str:
    """Return why the last pair that was tried is not possible, as htools says for all."""
    for primary in reversed(targets):
        half = primaries.failure(nodes[primary]) or _new_primary(nodes, start, primary, force)
        if isinstance(half, str):
            return half
        between = half.applied_to(nodes)
        for secondary in reversed(targets):
            if secondary != primary:
                moved = replace_secondary(between, half.instance, secondary, force)
                if isinstance(moved, str):
                    return _failed("Changing secondary to final secondary", moved)
    return ""


class _NewPrimaries:
    """Which targets can become the new primary: those that `_new_primary` accepts.

    The checks are those of its two moves, in their order, without making the moves: a target
    that takes the instance as its secondary and gives it up again is as it was.
    """

    def __init__(self, nodes: Sequence[Node], start: Moved, force: bool) -> None:
        instance = start.instance
        self._nodes, self._start, self._force = nodes, start, force
        self._primary, leaving = nodes[instance.primary], nodes[instance.secondary]
        self._bare = without_primary(self._primary, instance)
        self._stays = primary_failure(self._bare, instance, True)
        self._forced = force or leaving.offline
        self._without_home = force or self._primary.offline
        self._usual = not instance.forthcoming and instance.reserved_memory >= 0

    def accepts(self, target: Node) -> bool:
        """Return whether the instance can be moved to *target*."""
        return self.failure(target) is None

    def failure(self, target: Node) -> str | None:
        """Return why the instance cannot be moved to *target*, None if it can."""
        instance = self._start.instance
        target = self._nodes[target.index]
        # The memory that a node keeps is not the most for one peer only in odd clusters.
        kept = max(target.peers.values()) if target.peers else 0
        odd = target.exclusive or target.reserved != kept or target.index in instance.nodes
        if odd or not self._usual:
            half = _new_primary(self._nodes, self._start, target.index, self._force)
            return half if isinstance(half, str) else None
        failure = secondary_failure(target, instance, instance.primary, self._forced)
        failure = failure or self._stays
        if failure is not None:
            return _failed(TO_PRIMARY, failure)
        if target.short != (target.unallocated <= kept):
            target = target.copy()
            target.short = not target.short
        failure = (
            migration_failure(self._primary, target)
            or primary_failure(target, instance, self._without_home)
            or secondary_failure(
                self._bare, instance, target.index, self._without_home, self._primary.offline
            )
        )
        return None if failure is None else _failed(FAIL_OVER, failure)


def _new_primary(nodes: Sequence[Node], start: Moved, primary: int, force: bool) -> Moved | str:
    """Take the node *primary* as secondary and fail over to it."""
    taken = replace_secondary(nodes, start.instance, primary, force)
    if isinstance(taken, str):
        return _failed(TO_PRIMARY, taken)
    over = failover(taken.applied_to(nodes), taken.instance, force)
    if isinstance(over, str):
        return _failed(FAIL_OVER, over)
    return Moved({**taken.nodes, **over.nodes}, over.instance)


def _failed(step: str, failure: str) -> str:
    return f"Can't find any good nodes for relocation: Allocation failed: {step}: {failure}"
