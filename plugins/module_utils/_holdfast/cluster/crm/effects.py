# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The effects of the CRM's cycle.

An effect on shared storage throws ``StorageError`` when the storage fails and ``LeaseError`` when a
lease is lost.  A failed write may still have reached the storage.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Optional

from ..model.desired import DesiredState
from ..model.effects import Effect
from ..model.lease_freeing import Freeing
from ..model.membership import Membership
from ..model.news import News
from ..model.observed import FenceReport, HostView, ObservedNode, PowerReport
from ..model.state import ClusterState, Intent
from .repair_plan import StoredRecords


@dataclass(frozen=True)
class FenceEnd:
    """A fence that ended, and when it was sent and ended in monotonic seconds."""

    report: FenceReport
    sent: float
    ended: float


@dataclass(frozen=True)
class Observation:
    """One observation of storage and network.

    *took* is its duration in seconds.  *changed* and *answered* are, for each node, the monotonic
    seconds of its last heartbeat change and last answer.  *held* is why the whiteboard pauses the
    cluster, empty if it does not; *board_readable* is False while its global block is damaged, and
    *board_binds* where that block only shows what holds, because anyone can write it.
    *trouble* is why this node must not judge any node.  *foreign* are the host ids with a block and
    no member.  *elsewhere* says which nodes write to another storage; it is part of *trouble*, too.
    """

    nodes: Mapping[str, ObservedNode]
    held: str
    trouble: str
    took: float
    changed: Mapping[str, float]
    answered: Mapping[str, float]
    board_readable: bool = True
    foreign: Mapping[int, HostView] = field(default_factory=dict)
    elsewhere: str = ""
    board_binds: bool = True


@dataclass(frozen=True)
class Ended:
    """What ended since the last turn, and the nodes whose fence is still under way."""

    fences: tuple[FenceEnd, ...] = ()
    powers: tuple[PowerReport, ...] = ()
    fencing: frozenset[str] = frozenset()


@dataclass(frozen=True)
class LeaseHolder:
    """The last holder of the manager lease; *node* is empty if it is no member.

    *active* is whether it still holds the lease, None if that is not known.
    """

    node: str
    version: int
    active: bool | None = None


@dataclass(frozen=True)
class HostLease:
    """The host lease of one node.  *timestamp* is of its holder's clock and only shows changes."""

    host_id: int
    generation: int
    timestamp: int
    free: bool


class AwaitPredecessor(Effect[None]):
    """Wait for writes of a killed CRM of this node to end."""


class AdoptHostLease(Effect[int]):
    """Work under this node's host lease; return its generation.

    Throws ``LeaseError`` if no one holds it, ``NoAnswerError`` while that is unknown.
    """


class ConfirmHostLease(Effect[None]):
    """Check that this node still has its host lease; throws like ``AdoptHostLease``."""


class LeaveHostLease(Effect[None]):
    """Release all leases of this process under the host lease."""


class Look(Effect[Observation]):
    """Read the whiteboard and the relevant host leases and reports; ask silent nodes."""


class TakeEnded(Effect[Ended]):
    """Return the fences and power-ons that ended."""


class HoldsManagerLease(Effect[bool]):
    """Return whether this process surely holds the manager lease now."""


class AcquireManagerLease(Effect[Optional[int]]):
    """Try to acquire the manager lease; return its epoch, None if another node has it."""


class ReleaseManagerLease(Effect[None]):
    """Release the manager lease or cancel the attempt to acquire it."""


class ReadManagerLease(Effect[LeaseHolder]):
    """Read the holder of the manager lease from storage."""


class ReadManagerRecord(Effect[Optional[ClusterState]]):
    """Read the newest manager's record; throws ``FormatError`` if it is damaged."""


class ReadReadableState(Effect[Optional[ClusterState]]):
    """Read the newest undamaged manager's record."""


class ReadRecords(Effect[StoredRecords]):
    """Read all that a new manager compares before it takes over."""


class ReadDesired(Effect[tuple[DesiredState, int]]):
    """Read the newest configuration and the host id of its slot.

    Throws ``FormatError`` if it is damaged.
    """


class ReadIntent(Effect[Optional[Intent]]):
    """Read the newest fence announced by a candidate."""


class ReadOwnFreeing(Effect[Optional[Freeing]]):
    """Return which host leases this node's slot records as about to be freed.

    None if the record has to be written again.
    """


class OwnRecordStands(Effect[bool]):
    """Return whether this manager's record on storage is as it was written."""


@dataclass(frozen=True)
class ReadHeartbeat(Effect[Optional[tuple[int, float]]]):
    """Read the block of *node*: the number of its report and its timestamp.

    None if the block is blank, damaged or not authentic.  Pairs of one node only rise.
    """

    node: str


@dataclass(frozen=True)
class HasNewHeartbeat(Effect[bool]):
    """Return whether the heartbeat of *node* on storage has changed since the last look."""

    node: str


@dataclass(frozen=True)
class WriteState(Effect[None]):
    """Write the manager's record, whom it concerns, and which host leases are about to be freed."""

    state: ClusterState
    freeing: Freeing
    news: News


@dataclass(frozen=True)
class WriteIntent(Effect[None]):
    """Announce a candidate's fence, and which host leases are about to be freed."""

    intent: Intent
    freeing: Freeing


@dataclass(frozen=True)
class WriteFreeing(Effect[None]):
    """Record which host leases are about to be freed; keep the rest of this node's slot."""

    freeing: Freeing


@dataclass(frozen=True)
class ReadHostLease(Effect[HostLease]):
    """Read the host lease of the node with *host_id*; throws ``FormatError`` if it is damaged."""

    host_id: int


@dataclass(frozen=True)
class FreeHostLease(Effect[None]):
    """Free a host lease if it still has this generation and timestamp.

    This node's own host lease is confirmed first.  Throws ``LeaseError`` if the lease changed.
    """

    lease: HostLease


@dataclass(frozen=True)
class LookAtForeignHost(Effect[HostView]):
    """Return the view of a host id that is no member's, with its host lease."""

    host_id: int
    view: HostView | None


class ReadOwnMembership(Effect[Membership]):
    """Return the membership in this node's configuration."""


@dataclass(frozen=True)
class Fence(Effect[None]):
    """Begin to power a node off and confirm it."""

    node: str


@dataclass(frozen=True)
class PowerOn(Effect[None]):
    """Begin to power a node on."""

    node: str


@dataclass(frozen=True)
class SetBoardMaintenance(Effect[None]):
    """Set global maintenance in the whiteboard's global block."""

    maintenance: bool


@dataclass(frozen=True)
class WakeNodes(Effect[None]):
    """Notify the LRMs of *nodes*, None for all, on the network of a new record."""

    nodes: Optional[frozenset[str]]


class IsEnding(Effect[bool]):
    """Return whether this process was told to end."""


@dataclass(frozen=True)
class ShowTrouble(Effect[None]):
    """Show this node's operator why its CRM does not judge nodes."""

    text: str
