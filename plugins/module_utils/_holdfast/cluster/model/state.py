# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The manager's record: what it knows and decides.

Times are seconds since 1970 by the manager's clock, for people and for the record.  Waits are
decided by the reader's own monotonic clock, see ``observed.py``.  The intent of a candidate is
here, too.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from .maintenance import Maintenance, maintenance_text
from .membership import Membership
from .past_fences import FenceCause, past_fences
from .states import ACTIVE, HELD, ServiceState

EVENTS_KEPT = 200
FAILOVERS_KEPT = 20

FOREIGN_KEPT = 20
"""The number of host ids outside of the membership that a record names."""

REMOVED_KEPT = 100
"""The number of removed services that are remembered as unmanaged, the latest ones."""

FAILOVER_SERVICES_KEPT = 2000
"""The number of services that all finished failovers but the newest may name together."""


class NodeState(str, enum.Enum):
    """The state of a node as the manager knows it.

    unknown: not heard of since it was configured; online: its heartbeat is fresh; offline: silent
    with nothing to recover; suspect: silent, with the reason to wait; fence: to be fenced; off:
    confirmed dead; gone: removed from the configuration and soon forgotten.
    """

    UNKNOWN = "unknown"
    ONLINE = "online"
    OFFLINE = "offline"
    SUSPECT = "suspect"
    FENCE = "fence"
    OFF = "off"
    GONE = "gone"


class ProofKind(str, enum.Enum):
    """What proves that a node is dead.

    verified_off: a fence device confirmed it off; watchdog_assumed: the operator's statement about
    its watchdog counts; lease_expired: its host lease expired behind its watchdog, so it was reset
    or had stopped its services; clean_shutdown: it stopped its services and gave its host lease
    back; restarted: it reports another boot, so what ran before is gone.
    """

    VERIFIED_OFF = "verified_off"
    WATCHDOG_ASSUMED = "watchdog_assumed"
    LEASE_EXPIRED = "lease_expired"
    CLEAN_SHUTDOWN = "clean_shutdown"
    RESTARTED = "restarted"


@dataclass(frozen=True)
class Proof:
    """The proof that a node is dead, accepted *at* seconds since 1970.

    *by* is the text of the fence device, or what the host lease showed.
    """

    kind: ProofKind
    at: float
    by: str

    @property
    def is_of_power(self) -> bool:
        """Whether it covers everything that may have run on the node.

        An expired or returned host lease covers only what the LRM managed.
        """
        return self.kind not in (ProofKind.LEASE_EXPIRED, ProofKind.CLEAN_SHUTDOWN)


class Power(str, enum.Enum):
    """What the manager does about the power of a node that is off.

    none: nothing yet; sent: it is being powered on; on: it was powered on; given_up: that failed;
    left_off: its operator shut it down, or it was fenced too often.
    """

    NONE = ""
    SENT = "sent"
    ON = "on"
    GIVEN_UP = "given up"
    LEFT_OFF = "left off"


@dataclass(frozen=True)
class ServiceStatus:
    """A service: its state, its node, and its command.

    *uid* is the command given to *node*; *digest* is what was started there.  *failed_nodes* are
    the nodes on which its start failed since it last ran well, one entry for each time;
    *no_failback* are those it does not move back to for that reason.  *last_node* is where it was
    last; *maintenance_node* is the one it left for a maintenance and returns to.  *before* is the
    state under an overlay.  *stop_timeout* is that of a requested stop; *request* is the last
    request handled.  *from_node* is the source of a live migration, or the node that still works on
    it while it is probed.  *crashes* counts failures in a row; it does not start before
    *not_before* (seconds since 1970).  *no_live*: its last live migration failed, so the next move
    stops it.  *expected*: the target of its live migration expects it, so the source may begin.
    *leave* is why it should leave its node although no other can take it.
    """

    state: ServiceState
    node: str = ""
    target: str = ""
    uid: str = ""
    since: float = 0.0
    reason: str = ""
    digest: str = ""
    failed_nodes: tuple[str, ...] = ()
    no_failback: tuple[str, ...] = ()
    last_node: str = ""
    maintenance_node: str = ""
    before: str = ""
    stop_timeout: float | None = None
    request: float = 0.0
    from_node: str = ""
    crashes: int = 0
    not_before: float = 0.0
    no_live: bool = False
    leave: str = ""
    expected: bool = False

    @property
    def why(self) -> str:
        """Why it is in its state.  In ``fence``, *reason* is that of its last start.

        For a service that cannot be stopped, *reason* is why its node is fenced.
        """
        if self.state is not ServiceState.FENCE:
            return self.reason
        waits = f"waits until the fencing of {self.node} is confirmed"
        return f"{waits}: {self.reason}" if self.underlying is ServiceState.ERROR else waits

    def probe(self, service_id: str) -> str:
        """Return the key under which nodes answer a probe of this service.

        A repeated probe has a number, so that no earlier answer is taken for it.
        """
        return self.uid or service_id

    def command_number(self, epoch: int) -> int:
        """Return the number of its command if a manager gave that in *epoch*, else 0."""
        given, _dot, number = self.uid.partition(".")
        return int(number) if given == str(epoch) and number.isdecimal() else 0

    def stopped(self, reason: str, last_node: str = "") -> ServiceStatus:
        """Return this service as one that runs nowhere, last on *last_node* if given."""
        return replace(
            self,
            state=ServiceState.STOPPED,
            node="",
            target="",
            uid="",
            from_node="",
            expected=False,
            last_node=last_node or self.last_node,
            reason=reason,
        )

    @property
    def underlying(self) -> ServiceState:
        """The state itself, or the one that ``fence`` or ``freeze`` lies over."""
        if self.state in HELD and self.before:
            return ServiceState(self.before)
        return self.state


FENCE_ARRIVES = 600.0
"""Seconds after which a fence that was sent no longer has any effect.

Its sender calls no device later than that: neither after waiting for a busy device nor on a later
level.
"""


class FenceSender(str, enum.Enum):
    """The sender of a fence that may still arrive.

    MANAGER: the present manager; the end of the fence is unknown.  EARLIER_MANAGER: a manager
    before it; the fence may arrive after one of this manager was confirmed.  CANDIDATE: other
    candidates; theirs may arrive after the last fence that has ended.
    """

    MANAGER = "manager"
    EARLIER_MANAGER = "earlier manager"
    CANDIDATE = "candidate"


@dataclass(frozen=True)
class PendingFence:
    """A fence that may still switch its node off, sent at *sent_at* seconds since 1970."""

    sender: FenceSender
    sent_at: float

    @property
    def until(self) -> float:
        """When it can no longer arrive, in seconds since 1970."""
        return self.sent_at + FENCE_ARRIVES


@dataclass(frozen=True)
class NodeStatus:
    """A node: its state, the reason, and the proof if it is dead.

    *boot* is the last boot that its LRM reported: a dead node is back only with another one.
    *fenced* are the times of its last fences, to detect fence loops, and *fence_causes* why, in
    the same order (``past_fences.py``).  *pending_fences* may still power the node off, at most
    one of each sender, in the order of ``FenceSender``.  *attempt* counts the tries of the present
    fence or power-on, *power* follows the latter.  *mode* is its LRM's last mode, empty for
    ``active``; it stays while the node is silent.  *demanded* says that a service asked for the
    fence, so a heartbeat does not cancel it.  *up_again* says that since its proof it answered on
    the network, or an earlier manager was about to power it on.  *kept* is the maintenance of the
    last event, in words.
    """

    state: NodeState = NodeState.UNKNOWN
    since: float = 0.0
    reason: str = ""
    boot: str = ""
    proof: Proof | None = None
    fenced: tuple[float, ...] = ()
    pending_fences: tuple[PendingFence, ...] = ()
    attempt: int = 0
    retry_after: float = 0.0
    power: Power = Power.NONE
    mode: str = ""
    demanded: bool = False
    up_again: bool = False
    kept: str = ""
    fence_causes: tuple[FenceCause, ...] = ()

    def to_be_fenced(self, reason: str) -> NodeStatus:
        """Return this node as one to be fenced, with no attempt made yet."""
        fence = NodeState.FENCE
        return replace(self, state=fence, reason=reason, attempt=0, retry_after=0.0)

    @property
    def past_fences(self) -> dict[float, FenceCause]:
        """The cause of each fence that has ended, by the time at which it was sent."""
        return past_fences(self.fenced, self.fence_causes)

    def with_past_fences(self, fences: Mapping[float, FenceCause]) -> NodeStatus:
        """Return this status with other fences that have ended."""
        times = tuple(sorted(fences))
        causes = tuple(fences[at] for at in times)
        if set(causes) <= {FenceCause.SILENT}:
            # Silence needs no room in the record.
            causes = ()
        return replace(self, fenced=times, fence_causes=causes)

    def fence_sent_by(self, sender: FenceSender) -> float:
        """Return when a sender's pending fence was sent, 0 if there is none."""
        return next((one.sent_at for one in self.pending_fences if one.sender is sender), 0.0)

    def with_pending_fence(self, sender: FenceSender, sent_at: float) -> NodeStatus:
        """Return this status with a sender's pending fence replaced, removed by a time of 0."""
        times = {one.sender: one.sent_at for one in self.pending_fences}
        times[sender] = sent_at
        fences = tuple(PendingFence(one, times[one]) for one in FenceSender if times.get(one))
        return replace(self, pending_fences=fences)

    @property
    def expired(self) -> bool:
        """Whether the proof is an expired host lease."""
        return self.proof is not None and self.proof.kind is ProofKind.LEASE_EXPIRED

    @property
    def shut_down(self) -> bool:
        """Whether the proof is a clean shutdown."""
        return self.proof is not None and self.proof.kind is ProofKind.CLEAN_SHUTDOWN

    @property
    def restarted(self) -> bool:
        """Whether the proof is that it reported another boot."""
        return self.proof is not None and self.proof.kind is ProofKind.RESTARTED

    @property
    def proved_dead(self) -> bool:
        """Whether it was confirmed dead and is not back: off, or being fenced again."""
        fenced_again = self.state is NodeState.FENCE and self.proof is not None
        return self.state is NodeState.OFF or fenced_again

    @property
    def proved_by(self) -> str:
        """The proof in words, empty without one."""
        return self.proof.by if self.proof is not None else ""


@dataclass(frozen=True)
class Failover:
    """The timeline of one node's death, in seconds since 1970; 0 means not yet.

    *started* maps each service to the node and the time at which it ran again.
    """

    node: str
    reason: str = ""
    last_heartbeat: float = 0.0
    suspected: float = 0.0
    recorded: float = 0.0
    fence_sent: float = 0.0
    confirmed: float = 0.0
    proof: str = ""
    services: tuple[str, ...] = ()
    started: Mapping[str, tuple[str, float]] = field(default_factory=dict)
    finished: float = 0.0


@dataclass(frozen=True)
class Event:
    """One event of the history, recorded before what it announces is done.

    For a choice, *node* was chosen and *rejected* are the first few other nodes with reasons.
    """

    at: float
    kind: str
    node: str = ""
    service: str = ""
    text: str = ""
    rejected: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class ClusterState:
    """The manager's whole record.

    *generation* grows with each repair of the records.  *epoch* is the version of the manager
    lease, and *base* the number of commands when it began, None from an older version.  *manager*
    wrote this record from the configuration *config_version* in the slot *config_slot*, so that
    nodes read exactly that one.  *probes* are the services that every node is asked for.  *ignored*
    are the unmanaged ones, also removed ones, in the order in which they became so.

    *hold* is the global maintenance in force, and *hold_from_board* whether only the whiteboard has
    it.  *board* is what its global block said when both last agreed; *board_pending* says that it
    is being written.  *ended* are the maintenances that ended before the configuration shows it: by
    node, "" for the cluster, with beginning and expiry.

    *disarm* is empty, ``disarming`` or ``disarmed``; *disarm_mode* is what happens to the services,
    *disarm_number* its command number, and *disarm_waits* the node that it waits for and why, see
    ``crm/pausing.py``.  *uneven* is since when the load is uneven, 0 if it is not, see
    ``rebalance.py``.

    *membership* is the membership of the manager, None from an older version.  *foreign_hosts* are
    the host ids outside of it with a fresh heartbeat, as text, with their node names.
    """

    epoch: int = 0
    manager: str = ""
    config_version: int = 0
    config_slot: int = 0
    commands: int = 0
    services: Mapping[str, ServiceStatus] = field(default_factory=dict)
    nodes: Mapping[str, NodeStatus] = field(default_factory=dict)
    probes: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    failovers: tuple[Failover, ...] = ()
    events: tuple[Event, ...] = ()
    hold: Maintenance | None = None
    hold_from_board: bool = False
    board: bool | None = None
    board_pending: bool = False
    ended: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    disarm: str = ""
    disarm_mode: str = ""
    disarm_number: int = 0
    disarm_waits: str = ""
    uneven: float = 0.0
    generation: int = 0
    base: int | None = None
    membership: Membership | None = None
    foreign_hosts: Mapping[str, str] = field(default_factory=dict)

    def with_service(self, service_id: str, status: ServiceStatus) -> ClusterState:
        """Return this state with one service changed."""
        return replace(self, services={**self.services, service_id: status})

    def with_node(self, node: str, status: NodeStatus) -> ClusterState:
        """Return this state with one node changed."""
        return replace(self, nodes={**self.nodes, node: status})

    def with_event(self, event: Event) -> ClusterState:
        """Return this state with one more event; the oldest is dropped at the limit."""
        return replace(self, events=(*self.events, event)[-EVENTS_KEPT:])

    def with_failover(self, failover: Failover) -> ClusterState:
        """Return this state with a failover begun or updated.

        The oldest finished ones are dropped at the limit, or if they name too many services for the
        record.
        """
        others = [one for one in self.failovers if one.finished or one.node != failover.node]
        kept = (*others, failover)[-FAILOVERS_KEPT:]
        named = sum(len(one.services) for one in kept if one.finished)
        while named > FAILOVER_SERVICES_KEPT and kept[0].finished and len(kept) > 1:
            named -= len(kept[0].services)
            kept = kept[1:]
        return replace(self, failovers=kept)

    def open_failover(self, node: str) -> Failover | None:
        """Return the failover of *node* that has not finished, or None."""
        for failover in self.failovers:
            if failover.node == node and not failover.finished:
                return failover
        return None

    def why_paused(self) -> str:
        """Return why nothing moves in the whole cluster and requests wait; empty if they do not."""
        if self.hold is not None:
            return f"the cluster is in global maintenance ({maintenance_text(self.hold)})"
        return f"the cluster is {self.disarm} ({self.disarm_mode})" if self.disarm else ""

    def services_named(self, node: str) -> list[str]:
        """Return the ids of the services whose node is *node*, in any state."""
        return [key for key, status in self.services.items() if status.node == node]

    def services_naming(self, node: str) -> list[str]:
        """Return the ids of the services that have *node* as place, target or source."""
        return sorted(
            key
            for key, one in self.services.items()
            if node in (one.node, one.target, one.from_node)
        )

    def services_on(self, node: str) -> list[str]:
        """Return the ids of the services that are, or may be, active on *node*."""
        return list(self._active_by_node.get(node, ()))

    @cached_property
    def _active_by_node(self) -> Mapping[str, list[str]]:
        """The ids of ``services_on`` for each node; most callers ask for many nodes."""
        found: dict[str, list[str]] = {}
        for service_id, status in sorted(self.services.items()):
            for node in dict.fromkeys((status.node, status.target)):
                if node and _may_be_active(status, node):
                    found.setdefault(node, []).append(service_id)
        return found


def _may_be_active(status: ServiceStatus, node: str) -> bool:
    """Return whether a service may be active on its node, or on the target it migrates to."""
    state = status.underlying
    if node == status.target and node != status.node:
        return state in (ServiceState.MIGRATE, ServiceState.RECOVERY)
    return status.state in ACTIVE and state is not ServiceState.RECOVERY and bool(status.node)


@dataclass(frozen=True)
class Intent:
    """What a candidate recorded before it fenced the manager's node; times since 1970.

    *epoch* is that of the node's manager lease; 0 if unknown.
    """

    node: str
    reason: str
    last_heartbeat: float
    recorded: float
    epoch: int = 0
