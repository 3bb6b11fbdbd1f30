# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What would happen to a cluster as it is now: the question, played to its end.

The managers decide as the real ones would.  The durations of agents, fence devices and machines
are assumed, or measured ones of the cluster.  Nothing is changed anywhere: the answer is a pure
function of its input.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..cluster.model.desired import DesiredState
from ..cluster.model.maintenance import Maintenance
from ..cluster.model.report import LocalState, Report
from ..cluster.model.service import STARTED
from ..cluster.model.state import (
    ClusterState,
    Event,
    NodeState,
)
from ..cluster.model.states import CHANGING
from ..errors import InputError
from .fleet import Fleet
from .machine import EPOCH, Machine
from .settings import Settings

BEGINS = 5.0
"""Seconds that the copy of the cluster runs before the questions apply."""

CALM = 20.0
"""Seconds without any event after which the simulation ends, if nothing is under way."""

LOOKED_AT = 0.25


@dataclass(frozen=True)
class Now:
    """A cluster as it is: what is on its storage, and its settings.

    *wall* is the current time in seconds since 1970; *starts* has the seconds that each
    service took to start last.  *lease_proof* is each node's setting, None for automatic.
    """

    nodes: tuple[str, ...]
    state: ClusterState
    desired: DesiredState
    reports: Mapping[str, Report | None]
    wall: float
    settings: Settings = field(default_factory=Settings)
    starts: Mapping[str, float] = field(default_factory=dict)
    lease_proof: Mapping[str, bool | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Question:
    """What happens to a *node*, so many seconds from now: one of ``QUESTIONS``."""

    kind: str
    node: str
    after: float = 0.0


@dataclass(frozen=True)
class Step:
    """One thing that would happen, *after* so many seconds, and why."""

    after: float
    kind: str
    node: str
    service: str
    text: str


@dataclass(frozen=True)
class ServiceFate:
    """Where a service was and would be, and for how many seconds it would not run."""

    before: str
    after: str
    state: str
    reason: str
    down: float


@dataclass(frozen=True)
class Answer:
    """What would happen: *ended* says that nothing more would, *seconds* until when."""

    steps: tuple[Step, ...]
    services: Mapping[str, ServiceFate]
    nodes: Mapping[str, str]
    manager: str
    ended: bool
    seconds: float


def what_if(
    now: Now,
    questions: Sequence[Question],
    *,
    within: float = 600.0,
    desired: DesiredState | None = None,
) -> Answer:
    """Return what would happen to a cluster if all that *questions* name happened to it.

    With *desired* its configuration is changed to that at the same time.  Raises ``InputError``
    for a node that is not in the cluster, or while the cluster has no manager's record yet.
    """
    if not now.state.epoch:
        raise InputError("cluster", "", "one in which a manager has decided something already")
    for question in questions:
        if question.node not in now.nodes:
            raise InputError("node", question.node, f"one of {', '.join(now.nodes)}")
    fleet = _copy(now)
    timeline = fleet.world.timeline
    timeline.run_until(BEGINS)
    fleet.history.clear()
    before = {key: _where(fleet, key) for key in now.desired.services}
    down = dict.fromkeys([*now.desired.services], 0.0)
    if desired is not None and desired != now.desired:
        fleet.want(desired)
    for question in questions:
        machine = fleet.world.machines[question.node]
        timeline.at(BEGINS + question.after, QUESTIONS[question.kind], fleet, machine)
    last = max((question.after for question in questions), default=0.0)
    ended = _run(fleet, BEGINS + last, BEGINS + within, down)
    return _answer(fleet, before, down, ended)


def _copy(now: Now) -> Fleet:
    """Return a copy of the cluster in which all nodes are healthy that are not known to be dead."""
    fleet = Fleet(now.nodes, now.settings, 1, running=True)
    world, storage = fleet.world, fleet.world.storage
    world.lease_proof.update(now.lease_proof)
    names = set(now.nodes)
    state = replace(
        now.state, nodes={key: one for key, one in now.state.nodes.items() if key in names}
    )
    storage.desired, storage.epoch = now.desired, now.state.epoch
    manager = state.manager if state.manager in names else now.nodes[0]
    storage.states[manager].put(state, world.now)
    storage.held = "global maintenance" if state.board else ""
    fleet.agents.usual.update(now.starts)
    for name, machine in world.machines.items():
        status = state.nodes.get(name)
        machine.clock.offset = now.wall - EPOCH
        machine.on = status is None or status.state in (NodeState.ONLINE, NodeState.UNKNOWN)
        # A machine that is off stays off during the simulation.
        machine.cut = machine.device.with_node = not machine.on
        report = now.reports.get(name)
        if report is not None:
            storage.reports[name].put(report, world.now)
            machine.boot_name = report.boot
            machine.virtual = report.virtual or ""
            if machine.on:
                gone = (LocalState.STOPPED, LocalState.FAILED)
                for key, one in report.services.items():
                    if one.state not in gone:
                        machine.active[key] = "running"
        machine.refresh(0.0)
    storage.holder = storage.last_holder = manager
    storage.holder_generation = world.machines[manager].generation
    for machine in world.machines.values():
        if machine.on:
            fleet.start("lrm", machine)
            fleet.start("crm", machine)
    return fleet


def _dies(fleet: Fleet, machine: Machine) -> None:
    machine.cut = True
    fleet.world.power_off(machine, "its power is cut")


def _loses_storage(fleet: Fleet, machine: Machine) -> None:
    fleet.world.set_storage(machine, False)


def _loses_network(fleet: Fleet, machine: Machine) -> None:
    fleet.world.set_network(machine, False)


def _is_drained(fleet: Fleet, machine: Machine) -> None:
    request = Maintenance("requested", "operator", EPOCH + fleet.world.now)
    fleet.want(fleet.world.storage.desired.with_maintenance(machine.name, request))


QUESTIONS: Mapping[str, Callable[[Fleet, Machine], None]] = {
    "dies": _dies,
    "loses_storage": _loses_storage,
    "loses_network": _loses_network,
    "drained": _is_drained,
}
"""What can be asked about a node, with the function that does it to the simulated node."""


def _run(fleet: Fleet, begun: float, until: float, down: dict[str, float]) -> bool:
    """Run until nothing more happens; add up in *down* how long each service is down."""
    world = fleet.world
    happened = begun
    observed = 0
    while world.now < until:
        world.timeline.run_until(world.now + LOOKED_AT)
        for key in down:
            service = world.storage.desired.services.get(key)
            if service is not None and service.state == STARTED and not _where(fleet, key):
                down[key] += LOOKED_AT
        if len(fleet.history) != observed:
            observed, happened = len(fleet.history), world.now
        if world.now - max(happened, begun) >= CALM and not _under_way(fleet):
            return True
    return False


def _under_way(fleet: Fleet) -> bool:
    """Return whether an operator would still wait for something."""
    record = fleet.world.storage.manager_record()
    if record is None or fleet.manager() is None:
        return True
    waits = any(one.state in CHANGING and record.hold is None for one in record.services.values())
    nodes = any(
        one.state in (NodeState.FENCE, NodeState.SUSPECT) and record.hold is None
        for one in record.nodes.values()
    )
    booting = any(not one.on and not one.cut for one in fleet.world.machines.values())
    return waits or nodes or booting


def _answer(
    fleet: Fleet, before: Mapping[str, str], down: Mapping[str, float], ended: bool
) -> Answer:
    world = fleet.world
    record = world.storage.manager_record() or ClusterState()
    services = {}
    for key in sorted({*before, *world.storage.desired.services}):
        status = record.services.get(key)
        services[key] = ServiceFate(
            before.get(key, ""),
            _where(fleet, key),
            status.state.value if status is not None else "none",
            status.why if status is not None else "",
            round(down.get(key, 0.0), 1),
        )
    steps = tuple(_step(at, event) for at, event in fleet.history)
    nodes = {name: status.state.value for name, status in sorted(record.nodes.items())}
    seconds = max((step.after for step in steps), default=0.0)
    return Answer(steps, services, nodes, world.storage.holder, ended, seconds)


def _step(at: float, event: Event) -> Step:
    return Step(round(max(at - BEGINS, 0.0), 1), event.kind, event.node, event.service, event.text)


def _where(fleet: Fleet, service_id: str) -> str:
    """Return the node that runs all resources of a service, empty for none."""
    found = (
        one.name for one in fleet.world.where(service_id) if one.active.get(service_id) == "running"
    )
    return next(found, "")


def usual_seconds(measured: Sequence[float], default: float) -> float:
    """Return the median of what was *measured*, or *default* if nothing was."""
    values = sorted(one for one in measured if one > 0 and math.isfinite(one))
    return values[len(values) // 2] if values else default
