# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The result of a search for a place in htools' words, Ganeti's jobs for it, and its options."""

from __future__ import annotations

from ...hints import Any, Union, dataclass
from ..model.admission import FAILURES
from ..model.cluster import UNALLOCABLE, Cluster, Group, Instance, Node
from ..model.show import fixed

Metric = Union[float, tuple[list[int], int]]


SAME = 1e-7
"""Scores that differ by less are computed again in full, as in htools: near zero the deviation
after a change is not more exact than that."""


class Unplaceable(Exception):
    """The request fails with this text."""


class Solution:
    """The best place, the number of other possible places, and the failures by kind.

    ``metric`` is what was compared: the score, or the loss on exclusive storage.  ``nodes`` are
    the chosen nodes with the instance on them, the primary first.
    """

    __slots__ = ("failures", "instance", "metric", "nodes", "successes")

    def __init__(self) -> None:
        self.failures: dict[str, int] = {}
        self.successes = 0
        self.metric: Metric | None = None
        self.nodes: list[Node] = []
        self.instance: Instance | None = None

    def fail(self, reason: str, times: int = 1) -> None:
        """Count *times* places that failed for *reason*."""
        if times:
            self.failures[reason] = self.failures.get(reason, 0) + times

    def choose(self, metric: Metric, nodes: list[Node], instance: Instance) -> None:
        """Take *nodes* for *instance* as the best place so far."""
        self.metric = metric
        self.nodes = nodes
        self.instance = instance

    def applied_to(self, cluster: Cluster) -> Cluster:
        """Return *cluster* with the instance in its place."""
        return cluster.with_nodes({node.index: node for node in self.nodes}, self.instance)

    def description(self) -> str:
        """Return the solution in the words of htools."""
        reasons = ", ".join(
            [f"{name}: {self.failures[name]}" for name in FAILURES if self.failures.get(name)]
        )
        if self.metric is None:
            return "No valid allocation solutions, failure reasons: " + (
                reasons or "unknown reasons"
            )
        names = "/".join([node.name for node in self.nodes])
        return (
            f"score: {show_metric(self.metric)}, successes {self.successes}, "
            f"failures {sum(self.failures.values())} ({reasons}) for node(s) {names}"
        )


def show_metric(metric: Metric) -> str:
    """Return a score, or the loss on exclusive storage, as htools prints it."""
    if isinstance(metric, tuple):
        lost, free = metric
        return f"([{','.join([str(each) for each in lost])}],{free})"
    return fixed(metric, 8)


def group_line(group: Group, found: Solution | str) -> str:
    """Return the result of the search in *group*, a solution or an error text, as a line."""
    if isinstance(found, str):
        return f"Group {group.name}: error {found}"
    return f"Group {group.name} ({group.placing}): {found.description()}"


def best_group(found: list[tuple[Group, Solution | str]]) -> tuple[Group, Solution] | None:
    """Return the best group, preferred ones first, of equals the last, with its solution."""
    best: tuple[Group, Solution] | None = None
    for group, solution in found:
        if isinstance(solution, str) or solution.metric is None or group.placing == UNALLOCABLE:
            continue
        if best is None or _not_worse(group, solution, *best):
            best = (group, solution)
    return best


def _not_worse(group: Group, solution: Solution, other: Group, chosen: Solution) -> bool:
    if group.placing != other.placing:
        return group.placing == "preferred"
    if solution.metric != solution.metric or chosen.metric != chosen.metric:
        return False
    return not chosen.metric < solution.metric  # type: ignore[operator]


SHUTDOWN_TIMEOUT = 120
"""Seconds that an instance gets to shut down, Ganeti's default."""


def replace_disks(instance: Instance, node: str) -> dict[str, Any]:
    """Return the job that makes *node* the secondary of *instance*."""
    return {
        "OP_ID": "OP_INSTANCE_REPLACE_DISKS",
        "instance_name": instance.name,
        "early_release": False,
        "ignore_ipolicy": False,
        "mode": "replace_new_secondary",
        "disks": [],
        "remote_node": node,
    }


def migrate(instance: Instance, node: str | None) -> dict[str, Any]:
    """Return the job that lets *instance* run on its secondary, or on *node* if given."""
    target = {} if node is None else {"target_node": node}
    if instance.forthcoming:
        return {
            "OP_ID": "OP_INSTANCE_FAILOVER",
            "instance_name": instance.name,
            "shutdown_timeout": SHUTDOWN_TIMEOUT,
            "ignore_consistency": False,
            **target,
            "ignore_ipolicy": False,
            "cleanup": False,
        }
    return {
        "OP_ID": "OP_INSTANCE_MIGRATE",
        "instance_name": instance.name,
        **target,
        "allow_runtime_changes": False,
        "ignore_ipolicy": False,
        "cleanup": False,
        "allow_failover": True,
        "ignore_hvversions": True,
    }


@dataclass
class Options:
    """htools' options of the same names; with ``better`` htools' errors are not repeated."""

    ignore_soft_errors: bool = False
    capacity_checks: bool = True
    restrict: list[str] | None = None
    better: bool = False

    def restricted(self, names: list[str] | None) -> Options:
        """Return the options with *names* as the only nodes, unless others are given."""
        restrict = self.restrict if self.restrict is not None else names
        return Options(self.ignore_soft_errors, self.capacity_checks, restrict, self.better)

    @property
    def force_secondary(self) -> bool:
        """Whether a new secondary may break soft limits; in htools it never may."""
        return self.better and self.ignore_soft_errors
