# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the manager knows and decides, as it stands in its record on storage.

Times in here are seconds since 1970 by the manager's clock.  They are for
people and for the record only: every decision about waiting is made on the
reader's own monotonic clock, in ``observed.py``.

What a candidate for the manager lease writes down before it fences who holds it.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from .maintenance import Maintenance
from .membership import Membership
from .states import ACTIVE, HELD, ServiceState

EVENTS_KEPT = 200
FAILOVERS_KEPT = 20

FOREIGN_KEPT = 20
"""The number of host ids outside of the membership that a record names."""

REMOVED_KEPT = 100
"""So many services are remembered that were left to their operator and are not declared any more,
those that were left last."""

FAILOVER_SERVICES_KEPT = 2000
"""How many services the finished failovers may name together, the newest aside."""


class NodeState(str, enum.Enum):
    """What the manager holds of a node.

    unknown: not heard of since it was configured; online: its heartbeat is
    fresh; offline: silent with nothing to recover; suspect: silent, and why
    nothing is done yet is its reason; fence: to be fenced; off: proved dead;
    gone: taken out of the configuration a while ago, and soon forgotten.
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

    verified_off: a fence device confirmed that it is off; watchdog_assumed: no device did, but the
    operator's word for the node's watchdog counts; lease_expired: its host lease ran out behind its
    watchdog, so that it was reset, or had stopped its services and disarmed the watchdog;
    clean_shutdown: it stopped its services and gave its host lease back; restarted: another boot of
    it reports, so that what ran before is gone.
    """

    VERIFIED_OFF = "verified_off"
    WATCHDOG_ASSUMED = "watchdog_assumed"
    LEASE_EXPIRED = "lease_expired"
    CLEAN_SHUTDOWN = "clean_shutdown"
    RESTARTED = "restarted"


@dataclass(frozen=True)
class Proof:
    """The proof that a node is dead, accepted *at* seconds since 1970.

    *by* is the sentence of the fence device, or what was seen of the host lease.
    """

    kind: ProofKind
    at: float
    by: str

    @property
    def is_of_power(self) -> bool:
        """Whether it holds for all that may have run on the node.

        A host lease that ran out, or was given back, tells only of what its LRM knew of.
        """
        return self.kind not in (ProofKind.LEASE_EXPIRED, ProofKind.CLEAN_SHUTDOWN)


class Power(str, enum.Enum):
    """What the manager does about the power of a node that is off.

    none: nothing yet; sent: it is being powered on; on: it was; given_up: it could not be;
    left_off: it waits for its operator, who shut it down, or as it was fenced too often.
    """

    NONE = ""
    SENT = "sent"
    ON = "on"
    GIVEN_UP = "given up"
    LEFT_OFF = "left off"


@dataclass(frozen=True)
class ServiceStatus:
    """A service: its state, the node it is on, and the command that is under way.

    *uid* names the command given to *node*; *digest* is what was started there;
    *failed_nodes* are the nodes on which its start failed since it last ran well, one
    entry for each time; *no_failback* those to which, for that reason, it does not move
    back by itself.  *last_node* is where it was last, and starts again if it may;
    *maintenance_node* the one that it left for a maintenance, to return afterwards.
    *before* is the state under ``fence`` or ``freeze``.  *stop_timeout* is that of a
    stop asked for with one; *request* the last request of the operator that was heard;
    *from_node* the node from which it is migrating in, or that is still at work on it while
    it is looked for.  *crashes* counts failures while it
    ran that followed each other closely, and it is not started before *not_before*
    (seconds since 1970).  *no_live*: its last live migration failed, so that the
    next move stops it.  *expected*: the target of its live migration has said that it may
    come, and only then its source lets it go.  *leave* is why it may not be where it is, or
    was, though no other node can take it.
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
        """Why it is in its state; *reason* is that of its last start while a proof is awaited.

        Only of one that could not be stopped it tells why its node is to be fenced.
        """
        if self.state is not ServiceState.FENCE:
            return self.reason
        waits = f"waits until {self.node} is proved dead"
        return f"{waits}: {self.reason}" if self.underlying is ServiceState.ERROR else waits

    def probe(self, service_id: str) -> str:
        """Return under what a node answers whether the service runs there.

        One that is looked for again has a number, so that no earlier answer is taken for it.
        """
        return self.uid or service_id

    def stopped(self, reason: str, last_node: str = "") -> ServiceStatus:
        """Return this service as one that runs nowhere; *last_node* is where it was, if it was."""
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
"""Seconds after which a fence that was sent does nothing any more.

Whoever carries it out asks no device for anything later than that: not after waiting for its turn
at a busy device, and not on a later level.
"""


class FenceSender(str, enum.Enum):
    """Who sent a fence that may still arrive.

    MANAGER: the present manager; the end of the fence is unknown.  EARLIER_MANAGER: a manager
    before it; the fence may arrive after one of this manager was proved.  CANDIDATE: other
    candidates; theirs may arrive after the last fence that is known to have ended.
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
        """When it can arrive no more, in seconds since 1970."""
        return self.sent_at + FENCE_ARRIVES


@dataclass(frozen=True)
class NodeStatus:
    """A node: its state, why, and for a dead one the proof.

    *boot* is the last boot that its LRM reported: a dead node is back only with
    another one.  *fenced* are the times of the last fences, for the brake on
    fence loops; *pending_fences* may still switch the node off, one for each sender at
    most, in the order of ``FenceSender``; *attempt* counts the tries of the present fence or
    switching on, and *power* follows the latter.  *mode* is what its LRM last said that it does,
    empty for its usual work; it stays while the node is silent.  *demanded*
    says that a service asked for the fence, so that a heartbeat does not call it off.
    *up_again*
    says that since it was proved dead it answered on the network, or an earlier manager was
    about to switch it on.
    *kept* is the maintenance
    of which the history told last, in words.
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

    def to_be_fenced(self, reason: str) -> NodeStatus:
        """Return this node as one to be fenced, with no attempt made yet."""
        fence = NodeState.FENCE
        return replace(self, state=fence, reason=reason, attempt=0, retry_after=0.0)

    def fence_sent_by(self, sender: FenceSender) -> float:
        """Return when a sender's pending fence was sent, 0 if it has none."""
        return next((one.sent_at for one in self.pending_fences if one.sender is sender), 0.0)

    def with_pending_fence(self, sender: FenceSender, sent_at: float) -> NodeStatus:
        """Return this status with another pending fence of a sender, none for a time of 0."""
        times = {one.sender: one.sent_at for one in self.pending_fences}
        times[sender] = sent_at
        fences = tuple(PendingFence(one, times[one]) for one in FenceSender if times.get(one))
        return replace(self, pending_fences=fences)

    @property
    def expired(self) -> bool:
        """Whether the proof is a host lease that ran out."""
        return self.proof is not None and self.proof.kind is ProofKind.LEASE_EXPIRED

    @property
    def shut_down(self) -> bool:
        """Whether the proof is that it was shut down in order."""
        return self.proof is not None and self.proof.kind is ProofKind.CLEAN_SHUTDOWN

    @property
    def proved_dead(self) -> bool:
        """Whether it was proved dead and is not back: off, or to be fenced to be sure."""
        fenced_anew = self.state is NodeState.FENCE and self.proof is not None
        return self.state is NodeState.OFF or fenced_anew

    @property
    def proved_by(self) -> str:
        """The proof in words, empty without one."""
        return self.proof.by if self.proof is not None else ""


@dataclass(frozen=True)
class Failover:
    """The timeline of one node's death, in seconds since 1970; 0 is "not yet".

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
    """One line of the history: when, about which node or service, and the reason.

    It stands in the record before what it speaks of is done.  For a choice *node* is what
    was chosen, *rejected* the other nodes with their reasons, the first few of them.
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

    *generation* is one more with each repair of the records; *epoch* is the manager lease's
    version, and *base* the number of commands that were known when this epoch began, None in
    a record of a version that did not say so; *manager* is the node that wrote this;
    *config_version* and *config_slot* say which wanted configuration it worked
    from, so that a node reads exactly that one; *probes* are the services that
    every node is asked to look for, and *ignored* the unmanaged ones in the order in which they
    became so, also after they were taken out of the configuration.

    *hold* is the global maintenance in force and *hold_from_board* whether it is by word
    of the whiteboard alone; *board* is what its global block said when it last agreed
    with that, and *board_pending* that it is being written and was not seen to agree yet.
    *ended* names the maintenances that were ended before the configuration says so: by
    node, "" for the cluster, with their beginning and expiry.

    *disarm* is empty, ``disarming`` or ``disarmed``; *disarm_mode* what happens to the
    services meanwhile, *disarm_number* the command as which it counts and *disarm_waits* a
    node that keeps it from being disarmed, with the reason, see ``crm/freeze.py``.  *uneven* is
    since when the load is uneven, 0 if it is not, see ``rebalance.py``.

    *membership* is the membership that the manager manages with, None in a record of a version
    without one; *foreign_hosts* are the host ids outside of it that have a fresh heartbeat, as
    texts, each with its node name.
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
        """Return this state with one more event; the oldest beyond the limit is dropped."""
        return replace(self, events=(*self.events, event)[-EVENTS_KEPT:])

    def with_failover(self, failover: Failover) -> ClusterState:
        """Return this state with a failover begun or brought up to date.

        Of those that are finished the oldest are dropped: beyond the limit, and while
        they name too many services, which would fill the record.
        """
        others = [one for one in self.failovers if one.finished or one.node != failover.node]
        kept = (*others, failover)[-FAILOVERS_KEPT:]
        named = sum(len(one.services) for one in kept if one.finished)
        while named > FAILOVER_SERVICES_KEPT and kept[0].finished and len(kept) > 1:
            named -= len(kept[0].services)
            kept = kept[1:]
        return replace(self, failovers=kept)

    def open_failover(self, node: str) -> Failover | None:
        """Return the failover of *node* that is still under way."""
        for failover in self.failovers:
            if failover.node == node and not failover.finished:
                return failover
        return None

    def services_named(self, node: str) -> list[str]:
        """Return the ids of the services that name *node* as theirs, in any state."""
        return [key for key, status in self.services.items() if status.node == node]

    def services_on(self, node: str) -> list[str]:
        """Return the ids of the services that are, or may be, active on *node*."""
        return list(self._active_by_node.get(node, ()))

    @cached_property
    def _active_by_node(self) -> Mapping[str, list[str]]:
        """For each node the ids of ``services_on``: who asks for one node often asks for all."""
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

    *epoch* is that of the manager lease which the node held; 0 where it is not known.
    """

    node: str
    reason: str
    last_heartbeat: float
    recorded: float
    epoch: int = 0
