# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The load of each node, and the comparison of nodes by it.

A moving service counts on both of its nodes.  Nodes are compared by the number of services, by the
share of CPU and memory in use, or by the score of Ganeti's allocator, which also knows what does
not fit (``placement/services.py``).  Use is what services declare, out of what nodes report or
declare.  Whatever nodes are compared by, declared capacities are limits, and a node that stays
within its safety capacities comes first (``reservations.py``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import TYPE_CHECKING

from ...placement.resources import CPUS, MEMORY
from ..model.observed import Figures, ObservedState
from ..model.policy import COUNT, MOST_CPUS_PER_CORE, SCORE
from ..model.state import ServiceStatus
from ..model.states import ACTIVE, MOVING, ServiceState
from .reservations import Reservations

if TYPE_CHECKING:
    from ...placement.services import Needs, Places, Ranking

NOTHING = (0.0, 0.0)


@dataclass
class Load:
    """The number of services on each node, and the CPU and memory they use.

    With *scored*, the nodes of each service are kept for the allocator's model.
    """

    figures: Figures | None = None
    scored: bool = False
    counts: dict[str, int] = field(default_factory=dict)
    used: dict[str, tuple[float, float]] = field(default_factory=dict)
    where: dict[str, tuple[str, ...]] = field(default_factory=dict)
    reservations: Reservations | None = None
    _places: Places | None = None
    _most: tuple[float, float] | None = None
    _last: tuple[tuple[str, frozenset[str]], frozenset[str], Ranking] | None = None

    @classmethod
    def of(cls, services: Mapping[str, ServiceStatus], observed: ObservedState) -> Load:
        """Return the load of all *services*."""
        figures = None
        policy = observed.desired.policy
        if policy.placement != COUNT:
            figures = declared_figures(observed)
        load = cls(figures, policy.placement == SCORE and figures is not None)
        for service_id, status in services.items():
            load.change(service_id, None, status)
        load.reservations = Reservations.of(services, observed)
        return load

    def change(
        self, service_id: str, before: ServiceStatus | None, after: ServiceStatus | None
    ) -> None:
        """Update the load for a changed service."""
        self._last = None
        if self.reservations is not None:
            self.reservations.change(service_id, after)
        for status, sign in ((before, -1), (after, 1)):
            for node in places(status):
                self.counts[node] = self.counts.get(node, 0) + sign
                if self.figures is not None:
                    cpu, memory = self.figures.services.get(service_id, NOTHING)
                    used = self.used.get(node, NOTHING)
                    self.used[node] = (used[0] + sign * cpu, used[1] + sign * memory)
                if self._places is not None:
                    put = self._places.add if sign > 0 else self._places.remove
                    put(service_id, node, self._needs(service_id))
        if self.scored and places(after):
            self.where[service_id] = places(after)
        else:
            self.where.pop(service_id, None)

    def ranked(
        self, candidates: Iterable[str], service_id: str, status: ServiceStatus | None
    ) -> list[str]:
        """Return *candidates* best first, without counting the service itself.

        By count, the best node has the fewest services.  By load, it has room and leaves the loads
        most even.  By score, nodes that refuse the service come last.  Ties are resolved by name.
        Before all that, the best node exceeds its safety capacities least.
        """
        ranked = self._compared(candidates, service_id, status)
        taken = self.reservations
        if taken is None:
            return ranked
        return sorted(ranked, key=lambda node: taken.excess([service_id], node))

    def _compared(
        self, candidates: Iterable[str], service_id: str, status: ServiceStatus | None
    ) -> list[str]:
        """Return *candidates* in the order of the policy."""
        here = set(places(status))
        count = {node: self.counts.get(node, 0) - (node in here) for node in candidates}
        if self.figures is None:
            return sorted(count, key=lambda node: (count[node], node))
        if self.scored:
            ranking = self._rank(count, service_id, here)
            best = [node for node in ranking.nodes if node in count]
            return [*best, *sorted(count.keys() - set(best))]
        own = self.figures.services.get(service_id, NOTHING)
        without = {node: self._shares(node, own, -1.0 if node in here else 0.0) for node in count}
        filled = {node: self._shares(node, own, 0.0 if node in here else 1.0) for node in count}
        loads = {node: sum(shares) / 2 for node, shares in without.items()}
        total, squares = sum(loads.values()), sum(load * load for load in loads.values())

        def cost(node: str) -> tuple[float, float, int, str]:
            load, then = loads[node], sum(filled[node]) / 2
            too_full = max(0.0, max(filled[node]) - 1.0)
            whole = total - load + then
            uneven = (squares - load * load + then * then) / (whole * whole) if whole else 0.0
            return (round(too_full, 9), round(uneven, 12), count[node], node)

        return sorted(count, key=cost)

    def refusals(
        self, candidates: Iterable[str], service_id: str, status: ServiceStatus | None
    ) -> Mapping[str, str]:
        """Return which of *candidates* have no room for a service, and what they lack.

        Declared capacities are limits with any policy, what nodes report only by score.
        """
        names = list(candidates)
        short = self._short(names, service_id)
        if not self.scored:
            return short
        refused = self._rank(names, service_id, places(status)).refused
        known = self.figures.nodes if self.figures is not None else {}
        return {
            **{name: "it does not say what it has" for name in names if name not in known},
            **{name: refused[name] for name in names if name in refused},
            **short,
        }

    def _short(self, names: Iterable[str], service_id: str) -> dict[str, str]:
        if self.reservations is None:
            return {}
        found = {name: self.reservations.shortage([service_id], name) for name in names}
        return {name: reason for name, reason in found.items() if reason}

    def weight(self, service_id: str) -> float:
        """Return the size of a service as a share of all nodes together.

        By count only declared capacities have a size.
        """
        declared = self.reservations.weight(service_id) if self.reservations is not None else 0.0
        return declared + self._measured_weight(service_id)

    def _measured_weight(self, service_id: str) -> float:
        """Return the share of a service in the CPUs and memory that are compared."""
        if self.figures is None:
            return 0.0
        if self._most is None:
            rooms = self.figures.nodes.values()
            self._most = (sum(room[0] for room in rooms), sum(room[1] for room in rooms))
        use = self.figures.services.get(service_id, NOTHING)
        return sum(one / whole for one, whole in zip(use, self._most) if whole > 0)

    def count(self, node: str, status: ServiceStatus | None) -> int:
        """Return the number of services on the node besides the one with *status*."""
        return self.counts.get(node, 0) - (node in places(status))

    def _rank(self, names: Iterable[str], service_id: str, here: Iterable[str]) -> Ranking:
        """Return the ranking of at least *names*.

        The last ranking is kept, because refusals and the best node are asked one after the other.
        """
        nodes, who = frozenset(names), (service_id, frozenset(here))
        if self._last is not None and self._last[0] == who and nodes <= self._last[1]:
            return self._last[2]
        ranking = self._model().rank(nodes, service_id, self._needs(service_id), here)
        self._last = (who, nodes, ranking)
        return ranking

    def _model(self) -> Places:
        """Return the allocator's model, made at the first use."""
        from ...placement.services import Places, Room

        if self._places is None:
            known = self.figures.nodes if self.figures is not None else {}
            rooms = {name: Room(int(row[1]), int(row[0])) for name, row in known.items()}
            placed = (
                (service_id, node, self._needs(service_id))
                for service_id, nodes in self.where.items()
                for node in nodes
            )
            self._places = Places(rooms, placed, MOST_CPUS_PER_CORE)
        return self._places

    def _needs(self, service_id: str) -> Needs:
        from ...placement.services import Needs

        cpus, memory = NOTHING
        if self.figures is not None:
            cpus, memory = self.figures.services.get(service_id, NOTHING)
        return Needs(ceil(memory), ceil(cpus))

    def _shares(self, node: str, own: tuple[float, float], times: float) -> tuple[float, float]:
        """Return the node's shares of CPU and memory in use, with *times* a service added."""
        figures = self.figures
        room = figures.nodes.get(node) if figures is not None else None
        if room is None:
            return (1.0, 1.0)
        used = self.used.get(node, NOTHING)
        cpu, memory = (
            (there + times * more) / most if most > 0 else 1.0
            for there, more, most in zip(used, own, room)
        )
        return (cpu, memory)


def largest_first(services: Iterable[str], load: Load) -> list[str]:
    """Return services in the order in which they are placed: the largest first, then by id.

    Small ones fit into what remains.
    """
    return sorted(sorted(services), key=load.weight, reverse=True)


def declared_figures(observed: ObservedState) -> Figures | None:
    """Return what nodes have and services declare; None if no node's CPUs and memory are known."""
    rooms = {}
    for name in observed.nodes:
        room = room_of(name, observed)
        if room is not None:
            rooms[name] = room
    return Figures(rooms, observed.desired.needs) if rooms else None


def room_of(name: str, observed: ObservedState) -> tuple[float, float] | None:
    """Return a node's CPUs and MiB of memory: as declared, else as it reports; None if unknown."""
    report, properties = observed.nodes[name].report, observed.desired.properties.get(name)
    room = report.room if report is not None else None
    if properties is None:
        return room
    cpus, memory = (properties.capacity.get(key) for key in (CPUS, MEMORY))
    if room is None:
        return (float(cpus), float(memory)) if cpus is not None and memory is not None else None
    return (
        room[0] if cpus is None else float(cpus),
        room[1] if memory is None else float(memory),
    )


def places(status: ServiceStatus | None) -> tuple[str, ...]:
    """Return the nodes that carry a service: where it is and where it goes.

    A service to be started elsewhere for balance does not run on its last node.
    """
    if status is None or status.state not in ACTIVE or not status.node:
        return ()
    if status.state is ServiceState.RECOVERY:
        return ()
    if status.state is ServiceState.REQUEST_START_BALANCE and status.target:
        return (status.target,)
    if status.state in MOVING and status.target and status.target != status.node:
        return (status.node, status.target)
    return (status.node,)
