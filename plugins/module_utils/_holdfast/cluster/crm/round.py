# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""One turn of the manager while it is decided.

The decisions work on a ``Round``: the state so far, the observation, and the orders that are sent
once the state is written.  The round copies the dictionary of services once, so that a change costs
the same with any number of services.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Optional, Union

from ..model.desired import Request
from ..model.observed import ObservedState, Timing
from ..model.report import NOT_RUNNING, POWEROFF, REBOOT, LocalService, LocalState, Mode, Report
from ..model.state import ClusterState, Event, NodeState, NodeStatus, ServiceStatus
from ..model.states import ServiceState
from .load import Load

REJECTED_KEPT = 8
"""The number of rejected nodes that an event names."""


@dataclass(frozen=True)
class FenceOrder:
    """A fence of *node*.  Its *reason* is in the record before it is sent."""

    node: str
    reason: str


@dataclass(frozen=True)
class ServiceChange:
    """A change of a service's status; None where the service is not in the record."""

    service: str
    before: Optional[ServiceStatus]
    after: Optional[ServiceStatus]


@dataclass(frozen=True)
class NodeChange:
    """A change of a node's status."""

    node: str
    before: NodeStatus
    after: NodeStatus


Change = Union[ServiceChange, NodeChange, Event]


@dataclass
class Round:
    """The state as this turn changes it, and the orders of this turn.

    *board* is what to write into the whiteboard's global block, None for nothing.  *changes* are
    the steps of this turn in order.  *fresh* are the uids of this turn: no node has read them, so
    they can be replaced.  *placed* says that a service was given back to its last node in this
    pass.
    """

    state: ClusterState
    observed: ObservedState
    timing: Timing
    fences: list[FenceOrder] = field(default_factory=list)
    powers: list[str] = field(default_factory=list)
    board: bool | None = None
    changes: list[Change] = field(default_factory=list)
    fresh: set[str] = field(default_factory=set)
    placed: bool = False
    _services: dict[str, ServiceStatus] | None = None
    _load: Load | None = None

    @property
    def load(self) -> Load:
        """The load of each node as the state is now."""
        if self._load is None:
            self._load = Load.of(self.state.services, self.observed)
        return self._load

    def online(self, node: str) -> bool:
        """Return whether *node* is in the configuration and online."""
        return node in self.observed.nodes and self.node(node).state is NodeState.ONLINE

    def node(self, name: str) -> NodeStatus:
        """Return the status of a node; a new node is unknown."""
        return self.state.nodes.get(name) or NodeStatus(since=self.observed.wall)

    def report(self, name: str) -> Report | None:
        """Return the report of a node's LRM, None if there is none or it cannot be trusted."""
        observed = self.observed.nodes.get(name)
        return observed.report if observed is not None else None

    def is_switched_off(self, name: str) -> bool:
        """Return whether a silent node was powered off by its operator."""
        return self._goes_down(name) == POWEROFF

    def restarts(self, name: str) -> bool:
        """Return whether a silent node, or its LRM, was restarted by its operator."""
        return self._goes_down(name) == REBOOT or self.node(name).mode == Mode.RESTART.value

    def set_node(self, name: str, status: NodeStatus) -> None:
        """Set a node's status, with a new ``since`` if its state changed."""
        before = self.node(name)
        if status.state is not before.state:
            status = replace(status, since=self.observed.wall)
        self.changes.append(NodeChange(name, before, status))
        self.state = self.state.with_node(name, status)

    def set_service(self, service_id: str, status: ServiceStatus) -> None:
        """Set a service's status, with a new ``since`` if its state changed.

        The end of a command counts as a command: a node then forgets it, and must not follow an
        older record in which the command is still open.
        """
        before = self.state.services.get(service_id)
        if before is None or status.state is not before.state:
            status = replace(status, since=self.observed.wall)
        if before is not None and before.uid and not status.uid:
            self.state = replace(self.state, commands=self.state.commands + 1)
        self._own_services()[service_id] = status
        self._note(service_id, before, status)

    def explain(
        self, service_id: str, status: ServiceStatus, reason: str, kind: str, node: str = ""
    ) -> None:
        """Set why a service waits, with an event if that is another reason than before."""
        if reason != status.reason:
            self.set_service(service_id, replace(status, reason=reason))
            self.say(kind, reason, service=service_id, node=node)

    def refuse(self, service_id: str, request: Request, why: str) -> None:
        """Write an event that an operator's request is refused, and why."""
        text = f"asked to {request.kind} {request.node}".rstrip()
        self.say("refused", f"{text}: {why}", service=service_id, node=request.node)

    def finish_stop(self, service_id: str, status: ServiceStatus) -> None:
        """Record that a service was stopped and runs nowhere."""
        text = f"stopped on {status.node}"
        stopped = replace(status.stopped(text, status.node), stop_timeout=None)
        self.set_service(service_id, stopped)
        self.say("stopped", text, service=service_id, node=status.node)

    def forget_service(self, service_id: str, why: str) -> None:
        """Remove a service from the record.  This counts as a command, too."""
        self.state = replace(self.state, commands=self.state.commands + 1)
        before = self._own_services().pop(service_id)
        self._note(service_id, before, None)
        self.say("forgotten", why, service=service_id)

    def local(self, service_id: str, node: str) -> LocalService | None:
        """Return a service as its node's report has it, None if the report does not."""
        report = self.report(node)
        return report.services.get(service_id) if report is not None else None

    def reported_elsewhere(self, service_id: str, node: str) -> str:
        """Return a node other than *node* whose report has the service; empty if none.

        The record does not matter.  Two reports do not count: that of a node confirmed off, which
        is of before, and a service that the node has not seen since its boot.
        """
        for name, observed in sorted(self.observed.nodes.items()):
            if name == node or observed.report is None:
                continue
            local = observed.report.services.get(service_id)
            if local is None or local.state in NOT_RUNNING or local.state is LocalState.UNKNOWN:
                continue
            known = self.node(name)
            dead = known.state is NodeState.OFF or known.proof is not None
            if not (dead and known.boot in ("", observed.report.boot)):
                return name
        return ""

    def command(self, service_id: str, status: ServiceStatus, state: ServiceState) -> None:
        """Give the service's node a new command: the state to bring about.

        A start waits while another node reports the service.  A live-migrated service is only taken
        in, not started.
        """
        if state is ServiceState.REQUEST_START and not status.from_node:
            elsewhere = self.reported_elsewhere(service_id, status.node)
            if elsewhere:
                reason = f"not started: {elsewhere} reports that it still has it"
                self.set_service(service_id, status.stopped(reason, status.node))
                return
        uid = f"{self.state.epoch}.{self.count_command()}"
        self.fresh.add(uid)
        given = replace(status, state=state, uid=uid, leave="", expected=False)
        self.set_service(service_id, given)

    def count_command(self) -> int:
        """Return the number of a new command.

        By their number an older record is recognised.  So whatever a node, or an operator, acts on
        is counted: also the permission to begin a live migration, and that the cluster is disarmed.
        """
        number = self.state.commands + 1
        self.state = replace(self.state, commands=number)
        return number

    def say(
        self,
        kind: str,
        text: str,
        *,
        node: str = "",
        service: str = "",
        rejected: Mapping[str, str] | None = None,
    ) -> None:
        """Write an event."""
        others = tuple(sorted((rejected or {}).items())[:REJECTED_KEPT])
        event = Event(self.observed.wall, kind, node, service, text, others)
        self.changes.append(event)
        self.state = self.state.with_event(event)

    def _goes_down(self, name: str) -> str:
        report = self.report(name)
        return report.goes_down if report is not None else ""

    def _own_services(self) -> dict[str, ServiceStatus]:
        if self._services is None or self.state.services is not self._services:
            self._services = dict(self.state.services)
            self.state = replace(self.state, services=self._services)
        return self._services

    def _note(
        self, service_id: str, before: ServiceStatus | None, after: ServiceStatus | None
    ) -> None:
        self.changes.append(ServiceChange(service_id, before, after))
        if self._load is not None:
            self._load.change(service_id, before, after)
