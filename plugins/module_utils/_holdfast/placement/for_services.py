# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Our own services on our own nodes as a cluster of the model, so that one score serves all.

A service is an instance whose disks every node can reach.  Sizes may be absent: a
resource that some node does not tell counts nowhere, and a service without a size
counts as one service.  Then the score is what it was without sizes, an even count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .admission import primary_failure, with_primary
from .assembly import Assembly, new_node
from .limits import primary_limits
from .model import STATE_UP, Cluster, Group, Instance, Policy, default_policy
from .score import Score

PLENTY = 1 << 40
"""MiB, or cores, of a node whose size counts nowhere."""

TEMPLATE = "sharedfile"


@dataclass(frozen=True)
class Room:
    """What a node has for services: MiB of memory and cores; None where it is not known."""

    memory: int | None = None
    cpus: int | None = None


@dataclass(frozen=True)
class Needs:
    """What a service takes: MiB of memory and cores; None where it is not known."""

    memory: int | None = None
    cpus: int | None = None


@dataclass(frozen=True)
class Ranking:
    """The nodes that can take a service, the best first, and why others cannot.

    *scores* are those of the cluster with the service there; less is better.
    """

    nodes: tuple[str, ...]
    scores: Mapping[str, float]
    refused: Mapping[str, str]


def rank_nodes(
    nodes: Mapping[str, Room],
    placed: Mapping[str, tuple[str, Needs]],
    service: str,
    needs: Needs,
    candidates: Iterable[str],
    most_cpus_per_core: float = 4.0,
) -> Ranking:
    """Return on which of *candidates* the *service* would leave the cluster in best shape.

    *nodes* are all nodes in service with their room.  *placed* has for each service that
    runs, or is on its way, its node and its needs; *service* itself is left out of it, and
    so is what stands on other nodes.  Of equal nodes the first by name comes first.
    """
    others = {name: place for name, place in placed.items() if name != service}
    cluster = cluster_of(nodes, others, most_cpus_per_core)
    wanted = _instance(service, needs)
    score = Score(cluster.nodes)
    scores: dict[str, float] = {}
    refused: dict[str, str] = {}
    for name in sorted(set(candidates) & set(nodes)):
        node = cluster.nodes[cluster.numbers[name]]
        if primary_failure(node, wanted, False) is None:
            scores[name] = score.value_with([(node, with_primary(node, wanted))])
        else:
            refused[name] = _shortage(primary_limits(node, wanted, False))
    best = sorted(scores, key=lambda name: (round(scores[name], 9), name))
    return Ranking(tuple(best), scores, refused)


def cluster_of(
    nodes: Mapping[str, Room],
    placed: Mapping[str, tuple[str, Needs]],
    most_cpus_per_core: float = 4.0,
) -> Cluster:
    """Return *nodes* with the services *placed* on them as a cluster of the model."""
    memory_known = all(room.memory is not None for room in nodes.values())
    cpus_known = all(room.cpus is not None for room in nodes.values())
    usual = default_policy()
    policy = Policy([], usual.standard, [TEMPLATE], most_cpus_per_core, usual.spindle_ratio)
    assembly = Assembly([Group(0, "nodes", "nodes", "preferred", [], policy, [])])
    there = {name: place for name, place in sorted(placed.items()) if place[0] in nodes}
    used = dict.fromkeys(nodes, 0)
    for node, needs in there.values():
        used[node] += needs.memory or 0
    for name in sorted(nodes):
        memory = (nodes[name].memory or 0) if memory_known else PLENTY
        cpus = (nodes[name].cpus or 0) if cpus_known else PLENTY
        assembly.add_node(_node(name, memory, memory - used[name], cpus))
    instances = [_instance(name, needs) for name, (_node_name, needs) in there.items()]
    for instance, (node, _needs) in zip(instances, there.values()):
        instance.primary = assembly.cluster.numbers[node]
        assembly.add_instance(
            instance.primary,
            -1,
            instance.memory,
            0,
            instance.vcpus,
            STATE_UP,
            TEMPLATE,
            0,
            [],
            False,
        )
    cluster = assembly.cluster
    cluster.names = list(there)

    def read(index: int) -> Instance:
        return assembly.complete(instances[index], index, instances[index].primary, -1)

    cluster.read_instance = read
    assembly.finish()
    return cluster


def _node(name: str, memory: int, free: int, cpus: int) -> Any:
    return new_node(name, 0, [], False, False, float(memory), 0, free, 1.0, 1, float(cpus), 0, 1, 0)


def _instance(name: str, needs: Needs) -> Instance:
    memory, cpus = needs.memory or 0, needs.cpus or 0
    return Instance(name, memory, 0, [], None, cpus, STATE_UP, [], TEMPLATE, 0, [], False)


def _shortage(limits: list[dict[str, Any]]) -> str:
    """Return the first limit that is broken, in words."""
    for limit in limits:
        if "short_by" in limit:
            return (
                f"{limit['limit']}: it needs {limit['needed']:g}, there is {limit['available']:g}"
            )
    return "it has no room"
