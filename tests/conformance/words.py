# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What our managers decided, in the words of Proxmox VE's HA manager.

Nothing is decided here.  Two pairs of words differ: our ``request_start`` (its node was
told) and ``started`` (it runs) are both its ``started``; and our ``probe`` is its first
``request_start`` or ``request_stop``, in which it finds out what is there.  A node that is
silent, or confirmed dead, is ``unknown`` there.
"""

from __future__ import annotations

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.memory import Crm
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.round import (
    Change,
    NodeChange,
    ServiceChange,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.lrm.cycle import Lrm
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired import (
    IGNORE,
    DesiredState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    Mode,
    Phase,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.service import (
    STARTED,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    Event,
    NodeState,
    NodeStatus,
    ServiceStatus,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.states import (
    MOVING,
    ServiceState,
)
from ansible_collections.holdfast.ha.tests.conformance.world import World

PLACED = ("started", "migrate", "relocate", "request_start", "request_start_balance")


class Words:
    """Turns the changes of a manager's steps into lines of the trace."""

    def __init__(self, world: World) -> None:
        """Begin with nothing known."""
        self.world = world
        self.nodes: dict[str, str] = {}
        self.services: dict[str, str] = {}
        self.places: dict[str, str] = {}
        self.untracked: set[str] = set()
        self.asked: dict[str, str] = {}

    def tell(
        self, change: Change, desired: DesiredState, disarm_mode: str, removed: set[str]
    ) -> None:
        """Write the lines for one change."""
        if isinstance(change, NodeChange):
            self._node(change.node, change.before, change.after)
        elif isinstance(change, ServiceChange):
            self._service(change, desired, disarm_mode, removed)
        else:
            self._event(change)

    def _node(self, name: str, before: NodeStatus, after: NodeStatus) -> None:
        old = self.nodes.get(name, "unknown")
        if before.state is NodeState.FENCE or after.state is NodeState.FENCE:
            old = self._to_be_fenced(name, old)
        new = node_word(after, old)
        self.nodes[name] = new
        if before.state is NodeState.FENCE and after.state is NodeState.OFF:
            self.world.say("fence", name, "ack")
        if new != old:
            self.world.say("node", name, f"{old}>{new}")

    def _to_be_fenced(self, name: str, old: str) -> str:
        """Write the lines for a node that is to be fenced; the peer calls it unknown before.

        That a candidate fenced the manager's node is no change: it is so from the beginning.
        """
        if old == "online":
            self.world.say("node", name, "online>unknown")
            old = "unknown"
        if old != "fence":
            self.world.say("node", name, f"{old}>fence")
            self.world.say("fence", name, "request")
        return "fence"

    def _event(self, event: Event) -> None:
        if event.kind in ("armed", "disarmed"):
            self.world.say("ha", "cluster", event.kind)
        elif event.kind == "balance":
            self.world.say("balance", event.service, f">{event.node}")
        elif event.kind == "refused" and "apart" in event.text:
            how = self.asked.pop(event.service, "migrate")
            self.world.say("reject", event.service, f"{how}>{event.node} negative-affinity")
        elif event.kind == "refused" and "asked to stop" in event.text and "stopped" in event.text:
            self.world.say("reject", "-", "service")

    def _service(
        self, change: ServiceChange, desired: DesiredState, disarm_mode: str, removed: set[str]
    ) -> None:
        service_id, after = change.service, change.after
        if after is None:
            del self.services[service_id]
            self.untracked.discard(service_id)
            gone = service_id in removed or service_id not in desired.services
            self.world.say("del", service_id, "unconfigured" if gone else "ignored")
            return
        if change.before is None:
            service = desired.services[service_id]
            started = service.state == STARTED
            self.services[service_id] = "request_start" if started else "request_stop"
            self.places[service_id] = service.node
            self.world.say("add", service_id, f"@{service.node}")
            return
        if after.state is ServiceState.FREEZE and disarm_mode == IGNORE:
            if service_id not in self.untracked:
                self.untracked.add(service_id)
                self.world.say("untrack", service_id, "")
            return
        if service_id in self.untracked:
            self._tracked_again(service_id, after)
            return
        self._changed(service_id, change.before, after, desired)

    def _tracked_again(self, service_id: str, after: ServiceStatus) -> None:
        """After the cluster was armed again only a service's place is news."""
        if after.state is ServiceState.PROBE:
            return
        self.untracked.discard(service_id)
        if after.node and after.node != self.places[service_id]:
            self._moved(service_id, after.node)

    def _changed(
        self, service_id: str, before: ServiceStatus, after: ServiceStatus, desired: DesiredState
    ) -> None:
        old = self.services[service_id]
        service = desired.services.get(service_id)
        start = service is not None and service.state == STARTED
        can_migrate = service_id.startswith("vm:")
        new = self._word(service_id, old, after, start, can_migrate)
        begins = after.state in (ServiceState.REQUEST_START, ServiceState.STARTED)
        old = self.services[service_id]
        if old == "recovery" and begins:
            self._moved(service_id, after.node)
        if old == "stopped" and new == "started":
            self._line(service_id, old, "request_start", f"node={self.places[service_id]}")
            old = "request_start"
        if new == "stopped" and old in ("migrate", "relocate"):
            self.places[service_id] = after.last_node
            self._line(service_id, old, "request_stop", f"node={after.last_node}")
            old = "request_stop"
        if new == old and new not in ("started",):
            return
        if new == old and (not after.node or after.node == self.places[service_id]):
            return
        if new == old and before.state is not ServiceState.RECOVERY:
            self._moved(service_id, after.node)
            return
        self._line(service_id, old, new, self._detail(service_id, old, new, after))

    def _word(
        self, service_id: str, old: str, status: ServiceStatus, start: bool, can_migrate: bool
    ) -> str:
        state = status.state
        if state is ServiceState.REQUEST_START:
            return "started"
        if state is ServiceState.PROBE:
            return old
        if state is ServiceState.STOPPED and start:
            return old if old == "stopped" else "request_start"
        if state is ServiceState.RECOVERY and old not in ("fence", "recovery"):
            self._line(service_id, old, "fence", "")
            self.services[service_id] = "fence"
        if state is ServiceState.REQUEST_START_BALANCE:
            if old == "stopped":
                self._line(service_id, old, "request_start", f"node={self.places[service_id]}")
                self.services[service_id] = "request_start"
            return state.value
        if state in MOVING:
            return self.asked.get(service_id, "migrate" if can_migrate else "relocate")
        return state.value

    def _detail(self, service_id: str, old: str, new: str, status: ServiceStatus) -> str:
        if old in ("fence", "freeze") and new not in ("migrate", "relocate"):
            return ""
        parts = []
        moved = old in ("migrate", "relocate", "request_start_balance")
        if (new in PLACED or moved) and status.node:
            parts.append(f"node={status.node}")
            self.places[service_id] = status.node
        if new in ("migrate", "relocate", "request_start_balance"):
            parts.append(f"target={status.target}")
        if new == "request_stop" and status.stop_timeout is not None:
            parts.append(f"timeout={status.stop_timeout:.0f}")
        return " ".join(parts)

    def _line(self, service_id: str, old: str, new: str, detail: str) -> None:
        self.world.say("svc", service_id, f"{old}>{new} {detail}".rstrip())
        self.services[service_id] = new
        if new in ("started", "stopped", "error", "fence", "request_stop"):
            self.asked.pop(service_id, None)

    def _moved(self, service_id: str, node: str) -> None:
        self.world.say("move", service_id, f"{self.places[service_id]}>{node}")
        self.places[service_id] = node


def crm_word(crm: Crm, *, has_lock: bool) -> str:
    """Return what the peer calls the state of a CRM."""
    if has_lock:
        return "master"
    return "slave" if crm.adopted else "wait_for_quorum"


def lrm_word(lrm: Lrm) -> str:
    """Return what the peer calls the state of an LRM; it is lost as soon as its lock is."""
    lease = lrm.host_lease
    bound = lrm.report.phase is not Phase.WAIT
    return (Phase.LOST if bound and (lease.trouble or lease.doubt) else lrm.report.phase).value


def node_word(status: NodeStatus, last: str) -> str:
    """Return what the peer calls a node's state, and called it *last*.

    Of one that was emptied first the peer does not tell that it goes down.
    """
    if status.state is NodeState.FENCE:
        return "fence"
    known = status.state in (NodeState.ONLINE, NodeState.SUSPECT, NodeState.OFFLINE)
    emptied = status.mode == Mode.SHUTDOWN.value and last == "maintenance"
    if known and (status.mode == Mode.MAINTENANCE.value or emptied):
        return "maintenance"
    return "online" if status.state is NodeState.ONLINE else "unknown"
