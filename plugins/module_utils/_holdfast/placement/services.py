# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Our own services and nodes as a cluster of the model, for placement by `score`.

A service is an instance on shared storage.  Sizes may be unknown: a resource that some node does
not report is not counted, and a service without sizes counts as one service.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Union

from .model.admission import primary_failure, with_primary, without_primary
from .model.assembly import Assembly
from .model.cluster import NO_NODE, STATE_UP, Group, Instance, Node, Policy, default_policy
from .model.limits import primary_limits
from .model.score import Score

PLENTY = 1 << 40
"""MiB, or cores, of nodes whose size is not counted."""

TEMPLATE = "sharedfile"

Shape = tuple[float, ...]


@dataclass(frozen=True)
class Room:
    """The resources of a node: MiB of memory and cores; None if unknown."""

    memory: int | None = None
    cpus: int | None = None


@dataclass(frozen=True)
class Needs:
    """The resources of a service: MiB of memory and cores; None if unknown."""

    memory: int | None = None
    cpus: int | None = None


@dataclass(frozen=True)
class Ranking:
    """The nodes that can take a service, the best first, and why others are *refused*.

    *scores* are of the cluster with the service there; less is better.
    """

    nodes: tuple[str, ...]
    scores: Mapping[str, float]
    refused: Mapping[str, str]


class Places:
    """The services on each node; the cost of a change grows with the number of nodes."""

    def __init__(
        self,
        nodes: Mapping[str, Room],
        placed: Iterable[tuple[str, str, Needs]] = (),
        most_cpus_per_core: float = default_policy().vcpu_ratio,
    ) -> None:
        """Begin with all *nodes* in service and the services *placed*, each with node and needs.

        Services on other nodes are ignored.
        """
        rows = [row for row in placed if row[1] in nodes]
        memory_known = all(room.memory is not None for room in nodes.values())
        cpus_known = all(room.cpus is not None for room in nodes.values())
        usual = default_policy()
        policy = Policy([], usual.standard, [TEMPLATE], most_cpus_per_core, usual.spindle_ratio)
        assembly = Assembly([Group(0, "nodes", "nodes", "preferred", [], policy, [])])
        used = dict.fromkeys(nodes, 0)
        for _service, node, needs in rows:
            used[node] += needs.memory or 0
        for name in sorted(nodes):
            memory = (nodes[name].memory or 0) if memory_known else PLENTY
            cpus = (nodes[name].cpus or 0) if cpus_known else PLENTY
            sizes = (float(memory), 0, memory - used[name], 1.0, 1, float(cpus), 0, 1, 0)
            assembly.add_node(Node(name, 0, [], False, False, *sizes))
        self._instances: dict[str, Instance] = {}
        cluster = assembly.cluster
        for service, node, needs in rows:
            # Sums that are not complete are much cheaper.
            instance = self._instance(service, needs)
            number = cluster.numbers[node]
            assembly.add(instance.at(number, NO_NODE))
            # One that moves is on two nodes, under the same number.
            its = cluster.nodes[number]
            its.primaries[-1] = its.others[-1] = instance.index
        assembly.finish()
        self._nodes: dict[str, Node] = {
            name: cluster.nodes[number] for name, number in cluster.numbers.items()
        }
        self._score: Score | None = None

    def add(self, service: str, node: str, needs: Needs) -> None:
        """Put a service on a node; a service that moves is on both nodes for a while."""
        if node in self._nodes:
            instance = self._instance(service, needs)
            self._change(node, with_primary(self._nodes[node], instance))

    def remove(self, service: str, node: str, needs: Needs) -> None:
        """Take a service off a node."""
        if node in self._nodes:
            instance = self._instance(service, needs)
            self._change(node, without_primary(self._nodes[node], instance))

    def rank(
        self, candidates: Iterable[str], service: str, needs: Needs, here: Iterable[str] = ()
    ) -> Ranking:
        """Return *candidates* for the *service* by the score that the cluster would have.

        The service leaves the nodes *here*, where it is now.  Equal nodes are in order of their
        names.
        """
        instance = self._instance(service, needs)
        left = {name for name in here if name in self._nodes}
        leaving = {
            name: (self._nodes[name], without_primary(self._nodes[name], instance))
            for name in sorted(left)
        }
        if self._score is None:
            self._score = Score(self._nodes.values())
        score = self._score
        scores: dict[str, float] = {}
        refused: dict[str, str] = {}
        alike: dict[Shape, Union[float, str]] = {}
        for name in sorted(set(candidates) & self._nodes.keys()):
            node = self._nodes[name]
            if name in left:
                changes = [change for other, change in leaving.items() if other != name]
                scores[name] = score.value_with(changes)
                continue
            shape = _shape(node)
            if shape not in alike:
                if primary_failure(node, instance, False) is not None:
                    alike[shape] = _shortage(primary_limits(node, instance, False))
                else:
                    comes = (node, with_primary(node, instance))
                    alike[shape] = score.value_with([*leaving.values(), comes])
            worth = alike[shape]
            if isinstance(worth, str):
                refused[name] = worth
            else:
                scores[name] = worth
        best = sorted(scores, key=lambda name: (round(scores[name], 9), name))
        return Ranking(tuple(best), scores, refused)

    def _instance(self, service: str, needs: Needs) -> Instance:
        instance = self._instances.get(service)
        if instance is None:
            memory, cpus = needs.memory or 0, needs.cpus or 0
            instance = Instance(
                service, memory, 0, [], None, cpus, STATE_UP, [], TEMPLATE, 0, [], False
            )
            instance.index = len(self._instances)
            self._instances[service] = instance
        return instance

    def _change(self, name: str, after: Node) -> None:
        before, self._nodes[name] = self._nodes[name], after
        if self._score is not None:
            self._score = self._score.moved(before, after, 0)


def _shape(node: Node) -> Shape:
    """Return all that distinguishes two nodes of ``Places`` except their names."""
    return (
        node.total_memory,
        node.unallocated,
        node.free_memory_forth,
        node.total_cpus,
        node.used_cpus,
        node.used_cpus_forth,
        len(node.primaries),
        node.short,
    )


def _shortage(limits: list[dict[str, Any]]) -> str:
    """Return the first limit that is broken, in words."""
    for limit in limits:
        if "short_by" in limit:
            return (
                f"{limit['limit']}: it needs {limit['needed']:g}, there is {limit['available']:g}"
            )
    return "it has no room"
