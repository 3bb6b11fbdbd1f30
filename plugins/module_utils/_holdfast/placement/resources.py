# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Named resources of nodes, and how much of them services take.

A node declares a capacity for each resource that it has, and perhaps a smaller safety capacity, up
to which it should be loaded.  A capacity is a limit for what is placed; a safety capacity makes
other nodes better.  CPUs and memory without a declared capacity are no limit here, because nodes
report them by themselves and other parts of placement compare them.  Any other resource that a node
does not declare is missing there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

CPUS = "cpus"
MEMORY = "memory"
REPORTED = (CPUS, MEMORY)
"""Resources that nodes report by themselves: a number of CPUs, and MiB."""

TOLERANCE = 1e-6
"""Services may take fractions of CPUs, so sums are rounded."""

Amounts = Mapping[str, float]
"""An amount of each resource by its name."""


@dataclass(frozen=True)
class Limits:
    """The capacities and safety capacities of nodes, and what each service takes."""

    capacity: Mapping[str, Amounts] = field(default_factory=dict)
    safety: Mapping[str, Amounts] = field(default_factory=dict)
    needs: Mapping[str, Amounts] = field(default_factory=dict)


@dataclass(frozen=True)
class Amount:
    """How much of one resource a node has and services take there; *safety* is None for none."""

    capacity: float
    used: float
    safety: float | None = None


class Occupancy:
    """What services take on each node; a change costs as much as the service has resources.

    A service that moves takes its resources on both nodes until the move has ended.
    """

    def __init__(self, limits: Limits) -> None:
        """Begin with empty nodes."""
        self._limits = limits
        self._used: dict[str, dict[str, float]] = {}
        self._where: dict[str, tuple[str, ...]] = {}
        self._totals: dict[str, float] = {}
        for amounts in limits.capacity.values():
            for name, amount in amounts.items():
                self._totals[name] = self._totals.get(name, 0.0) + amount

    def place(self, service: str, nodes: tuple[str, ...]) -> None:
        """Let a service take its resources on *nodes*, and on no others."""
        needs = self._limits.needs.get(service)
        if not needs:
            return
        for node in self._where.pop(service, ()):
            self._add(node, needs, -1)
        for node in nodes:
            self._add(node, needs, 1)
        if nodes:
            self._where[service] = nodes

    def shortage(self, services: Iterable[str], node: str) -> str:
        """Return what *node* lacks for *services* that come to it, in words; empty if nothing.

        A service that is there already takes nothing more.
        """
        for name, needed in sorted(self._coming(services, node).items()):
            capacity = self._capacity(node, name)
            if capacity is None or needed <= TOLERANCE:
                continue
            used = self._used.get(node, {}).get(name, 0.0)
            if used + needed > capacity + TOLERANCE:
                return _words(node, name, needed, used, capacity)
        return ""

    def excess(self, services: Iterable[str], node: str) -> float:
        """Return by how much *node* exceeds its safety capacities once *services* are there.

        It is the sum of what exceeds each safety capacity, as a share of that capacity, for the
        resources that they take.
        """
        safety = self._limits.safety.get(node)
        if not safety:
            return 0.0
        named = tuple(services)
        takes = {name for one in named for name in self._limits.needs.get(one, {})}
        coming, used = self._coming(named, node), self._used.get(node, {})
        found = 0.0
        for name, limit in safety.items():
            over = used.get(name, 0.0) + coming.get(name, 0.0) - limit
            if name in takes and over > TOLERANCE:
                found += over / max(limit, 1.0)
        return round(found, 9)

    def weight(self, service: str) -> float:
        """Return what a service takes as a share of all nodes together."""
        needs = self._limits.needs.get(service, {})
        return sum(
            needed / self._totals[name]
            for name, needed in needs.items()
            if self._totals.get(name, 0.0) > 0
        )

    def amounts(self, node: str) -> dict[str, Amount]:
        """Return each resource that the node declares, with what is taken."""
        used, safety = self._used.get(node, {}), self._limits.safety.get(node, {})
        return {
            name: Amount(capacity, round(used.get(name, 0.0), 6), safety.get(name))
            for name, capacity in sorted(self._limits.capacity.get(node, {}).items())
        }

    def _coming(self, services: Iterable[str], node: str) -> dict[str, float]:
        """Return what those of *services* take that are not on *node* yet."""
        coming: dict[str, float] = {}
        for service in services:
            if node not in self._where.get(service, ()):
                for name, needed in self._limits.needs.get(service, {}).items():
                    coming[name] = coming.get(name, 0.0) + needed
        return coming

    def _capacity(self, node: str, name: str) -> float | None:
        """Return a node's capacity; None if the resource is no limit there."""
        capacity = self._limits.capacity.get(node, {}).get(name)
        return 0.0 if capacity is None and name not in REPORTED else capacity

    def _add(self, node: str, needs: Amounts, sign: int) -> None:
        used = self._used.setdefault(node, {})
        for name, needed in needs.items():
            used[name] = used.get(name, 0.0) + sign * needed


def _words(node: str, name: str, needed: float, used: float, capacity: float) -> str:
    unit = " MiB" if name == MEMORY else ""
    if not capacity:
        return f"needs {needed:.12g}{unit} {name}; node {node} has none"
    free = max(capacity - used, 0.0)
    has = f"{free:.12g} free of {capacity:.12g}{unit}"
    return f"needs {needed:.12g}{unit} {name}; node {node} has {has}"
