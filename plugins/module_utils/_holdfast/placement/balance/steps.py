# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan: the moves that were found, in order, and what they come to."""

from __future__ import annotations

from .moves import (
    ANYWHERE,
    FAILOVER,
    FAILOVER_REPLACE,
    PRIMARY,
    SECONDARY,
    STEPS,
    TAKE_OVER,
    copied,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ..model.cluster import Cluster, Instance
    from .moves import Choice


class Made:
    """A move of a run: the instance before and after it, the score then, and its steps."""

    __slots__ = ("after", "before", "kind", "score", "target")

    def __init__(
        self, before: Instance, after: Instance, kind: int, target: int, score: float
    ) -> None:
        self.before = before
        self.after = after
        self.kind = kind
        self.target = target
        self.score = score

    def steps(self, names: Callable[[int], str]) -> str:
        """Return the steps as hbal prints them."""
        return STEPS[self.kind].format(names(self.target) if self.target >= 0 else "")


class Worth:
    """What a plan comes to: its score, its moves and the MiB that it copies."""

    __slots__ = ("copied", "moves", "score")

    def __init__(self, score: float, moves: int, mebibytes: int) -> None:
        self.score = score
        self.moves = moves
        self.copied = mebibytes


class Plan:
    """Moves in order; the scores before and after; the cluster after.

    ``loses_node`` is set if after some move a node cannot be lost any more that could be,
    ``given_up`` is what hbal's rule comes to if the plan is not as good, for that reason.
    """

    __slots__ = (
        "cluster",
        "given_up",
        "loses_node",
        "pairs",
        "score_after",
        "score_before",
        "steps",
    )

    def __init__(self, steps: list[Made], before: float, after: float, cluster: Cluster) -> None:
        self.steps = steps
        self.pairs: frozenset[int] = frozenset()
        self.loses_node = False
        self.given_up: Worth | None = None
        self.score_before = before
        self.score_after = after
        self.cluster = cluster

    @property
    def copied(self) -> int:
        """How many MiB of disks the plan copies."""
        return sum(copied(step.before, step.kind) for step in self.steps)

    @property
    def worth(self) -> Worth:
        """What the plan comes to."""
        return Worth(self.score_after, len(self.steps), self.copied)


def made_of(before: Instance, choice: Choice, score: float) -> Made:
    """Return *choice* as a move that was made, of the instance *before* it, to *score*."""
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
    """Return the shortest ways from *before* to *after*: each some moves' kinds and targets."""
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
    """Return the target of the move of *kind* after which the instance is as *after*."""
    if kind == FAILOVER:
        return -1
    return after.secondary if kind in (SECONDARY, FAILOVER_REPLACE) else after.primary
