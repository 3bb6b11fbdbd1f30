# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster that is changed move by move, with its score."""

from __future__ import annotations

from ..model.score import Score
from .moves import Choice, move

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..model.cluster import Cluster, Instance, Node
    from ..model.moves import Moved
    from .moves import MoveLimits

NARROW = 1e-6
"""A variance below this is not exact: rounding is magnified by the square root."""


class State:
    """The nodes *scope* of *cluster*, which are scored, and the instances *chosen* to move.

    ``value`` is the score, ``slack`` how far rounding may put an estimate beside it.
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
        self._rescore()

    def _rescore(self) -> None:
        self.score = Score([self.nodes[index] for index in self.scope])
        self.value = self.score.value()
        narrow = self.score.variances and min(self.score.variances) < NARROW
        self.slack = 1e-7 if narrow else 1e-10 * max(1.0, abs(self.value))

    def cluster(self) -> Cluster:
        """Return the cluster as it is now."""
        return self.cluster_with(self.nodes, {})

    def cluster_with(self, nodes: Sequence[Node], placed: dict[int, Instance]) -> Cluster:
        """Return the cluster with *nodes*, and the instances *placed* where they say."""
        twin = self._cluster.copy()
        twin.nodes = list(nodes)
        twin.changed.update(self._moved)
        twin.changed.update(placed)
        return twin

    def made(self, index: int, kind: int, target: int) -> Choice | None:
        """Return a move of the instance *index* carried out and scored, None if it cannot be."""
        moved = move(self.nodes, self.instances[index], kind, target, self.limits.force)
        if isinstance(moved, str):
            return None
        changes = [(self.nodes[i], node) for i, node in moved.nodes.items()]
        return Choice(index, kind, target, moved, self.score.value_with(changes))

    def put(self, moved: Moved) -> None:
        """Let the nodes and the instance of *moved* be as they are in it."""
        for index, node in moved.nodes.items():
            self.nodes[index] = node
        self._moved[moved.instance.index] = moved.instance
        if moved.instance.index in self.instances:
            self.instances[moved.instance.index] = moved.instance
        self._rescore()

    def undo_of(self, moved: Moved) -> Moved:
        """Return what takes *moved* back, before it is made."""
        before = {index: self.nodes[index] for index in moved.nodes}
        return type(moved)(before, self.instances[moved.instance.index])
