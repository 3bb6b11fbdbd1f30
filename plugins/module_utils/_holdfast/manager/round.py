# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""One round of the manager while it is being thought through.

The steps of ``nodes.py`` and ``services.py`` work on a ``Round``: the state so far,
what was seen, and the orders that go out once the state is written.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from .seen import Seen, Timing
from .state import ClusterState, Event, NodeStatus, ServiceState, ServiceStatus


@dataclass(frozen=True)
class FenceOrder:
    """Switch this node off and prove it; *reason* stands in the record by then."""

    node: str
    reason: str


@dataclass
class Round:
    """The state as this round changes it, and the orders that it gives.

    *board* is what the global block of the whiteboard shall say; None leaves it alone.
    """

    state: ClusterState
    seen: Seen
    timing: Timing
    fences: list[FenceOrder] = field(default_factory=list)
    powers: list[str] = field(default_factory=list)
    board: bool | None = None

    def node(self, name: str) -> NodeStatus:
        """Return the status of a node; one that is new is unknown."""
        return self.state.nodes.get(name, NodeStatus(since=self.seen.wall))

    def set_node(self, name: str, status: NodeStatus) -> None:
        """Write a node's status, with a new ``since`` if its state changed."""
        if status.state is not self.node(name).state:
            status = replace(status, since=self.seen.wall)
        self.state = self.state.with_node(name, status)

    def set_service(self, service_id: str, status: ServiceStatus) -> None:
        """Write a service's status, with a new ``since`` if its state changed."""
        before = self.state.services.get(service_id)
        if before is None or status.state is not before.state:
            status = replace(status, since=self.seen.wall)
        self.state = self.state.with_service(service_id, status)

    def command(self, service_id: str, status: ServiceStatus, state: ServiceState) -> None:
        """Give the service's node a new command: the state that it is to bring about."""
        number = self.state.commands + 1
        self.state = replace(self.state, commands=number)
        uid = f"{self.state.epoch}.{number}"
        self.set_service(service_id, replace(status, state=state, uid=uid))

    def say(self, kind: str, text: str, *, node: str = "", service: str = "") -> None:
        """Add a line to the history."""
        self.state = self.state.with_event(Event(self.seen.wall, kind, node, service, text))
