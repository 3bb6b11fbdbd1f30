# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The effects of the CRM's cycle.

An effect that reads or writes the shared storage throws ``StorageError`` into the cycle when the
storage fails, and ``LeaseError`` when a lease is lost.  A write that failed may have been done.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Optional

from ..model.desired import Wanted
from ..model.effects import Effect
from ..model.lease_freeing import Freeing
from ..model.membership import Membership
from ..model.observed import FenceReport, NodeSeen, PowerReport
from ..model.report import Report
from ..model.state import ClusterState, Intent
from ..model.versions import LeaseVersion
from .adoption import HostView


@dataclass(frozen=True)
class FenceEnd:
    """A fence that ended, with the monotonic seconds at which it was sent and ended."""

    report: FenceReport
    sent: float
    ended: float


@dataclass(frozen=True)
class Observation:
    """One look at the storage and the network: every node, and what is wrong on this node.

    *took* is how long the look took, in seconds.  *changed* maps each node to the monotonic
    seconds at which its heartbeat was last seen to change, *answered* to those of its last answer
    on the network.  *held* says why the whiteboard pauses the cluster, empty if it does not;
    *board_readable* is False while the whiteboard's global block is damaged.  *trouble* says why
    this node must not judge any node.  *foreign* are the host ids with a block and no member.
    *elsewhere* says which nodes write to another storage; it is part of *trouble*, too.
    """

    nodes: Mapping[str, NodeSeen]
    held: str
    trouble: str
    took: float
    changed: Mapping[str, float]
    answered: Mapping[str, float]
    board_readable: bool = True
    foreign: Mapping[int, HostView] = field(default_factory=dict)
    elsewhere: str = ""


@dataclass(frozen=True)
class Ended:
    """What ended since the last round, and the nodes whose fence is still under way."""

    fences: tuple[FenceEnd, ...] = ()
    powers: tuple[PowerReport, ...] = ()
    fencing: frozenset[str] = frozenset()


@dataclass(frozen=True)
class LeaseHolder:
    """Who has the manager lease, or had it last; *node* is empty if that is no member."""

    node: str
    version: int


@dataclass(frozen=True)
class HostLease:
    """The host lease of one node; *timestamp* is of its holder's clock and only shows changes."""

    host_id: int
    generation: int
    timestamp: int
    free: bool


@dataclass(frozen=True)
class StoredRecords:
    """The newest records that can be read.

    *damaged* says which records have no whole copy, *configuration_damaged* that one of them is
    the configuration.  *kept* is the report on this node's local disk.
    """

    state: ClusterState | None
    wanted: Wanted
    slot: int
    damaged: tuple[str, ...]
    configuration_damaged: bool
    kept: Report | None
    leases: tuple[LeaseVersion, int]


class AwaitPredecessor(Effect[None]):
    """Wait for what a killed CRM of this node still writes."""


class AdoptHostLease(Effect[int]):
    """Work under this node's host lease; return its generation.

    Throws ``LeaseError`` when nobody holds it, ``NoAnswerError`` while that cannot be told.
    """


class ConfirmHostLease(Effect[None]):
    """Make sure that this node's host lease is still held; throws as ``AdoptHostLease`` does."""


class LeaveHostLease(Effect[None]):
    """Give up all leases that this process has under the host lease."""


class Look(Effect[Observation]):
    """Read the whiteboard, the host leases and reports that matter; ask nodes that are silent."""


class TakeEnded(Effect[Ended]):
    """Return the fences and power-ons that ended."""


class HoldsManagerLease(Effect[bool]):
    """Return whether this process has the manager lease, as far as it can be sure now."""


class AcquireManagerLease(Effect[Optional[int]]):
    """Try for the manager lease; return its version, the epoch, or None if another has it."""


class ReleaseManagerLease(Effect[None]):
    """Give the manager lease up, or the try for it that still goes on."""


class ReadManagerLease(Effect[LeaseHolder]):
    """Read from the storage who has the manager lease."""


class ReadManagerRecord(Effect[Optional[ClusterState]]):
    """Read the newest record of a manager; throws ``FormatError`` if it is damaged."""


class ReadReadableState(Effect[Optional[ClusterState]]):
    """Read the newest record of a manager that is not damaged."""


class ReadRecords(Effect[StoredRecords]):
    """Read everything that a new manager compares before it takes over."""


class ReadDesired(Effect[tuple[Wanted, int]]):
    """Read the newest configuration, and the host id in whose slot it is.

    Throws ``FormatError`` if it is damaged.
    """


class ReadIntent(Effect[Optional[Intent]]):
    """Read the newest fence that a candidate has announced."""


class ReadOwnFreeing(Effect[Freeing]):
    """Return what this node's slot records as about to be freed."""


class OwnRecordStands(Effect[bool]):
    """Return whether this manager's record on the storage is as it was written."""


@dataclass(frozen=True)
class WriteState(Effect[None]):
    """Write the manager's record, and beside it which host leases are about to be freed."""

    state: ClusterState
    freeing: Freeing


@dataclass(frozen=True)
class WriteIntent(Effect[None]):
    """Announce a candidate's fence, and beside it which host leases are about to be freed."""

    intent: Intent
    freeing: Freeing


@dataclass(frozen=True)
class WriteFreeing(Effect[None]):
    """Record which host leases are about to be freed; the rest of this node's slot stays."""

    freeing: Freeing


@dataclass(frozen=True)
class ReadHostLease(Effect[HostLease]):
    """Read the host lease of the node with *host_id*; throws ``FormatError`` if it is damaged."""

    host_id: int


@dataclass(frozen=True)
class FreeHostLease(Effect[None]):
    """Set a host lease free if it still has this generation and timestamp.

    This node's own host lease is confirmed first.  Throws ``LeaseError`` if it changed.
    """

    lease: HostLease


@dataclass(frozen=True)
class LookAtForeignHost(Effect[HostView]):
    """Return the view of a host id that is no member here, with its host lease."""

    host_id: int
    view: HostView | None


class ReadOwnMembership(Effect[Membership]):
    """Return the membership that this node is configured with."""


@dataclass(frozen=True)
class Fence(Effect[None]):
    """Begin to power a node off and to prove it."""

    node: str


@dataclass(frozen=True)
class PowerOn(Effect[None]):
    """Begin to power a node on."""

    node: str


@dataclass(frozen=True)
class SetBoardMaintenance(Effect[None]):
    """Let the whiteboard's global block say whether the cluster is in global maintenance."""

    maintenance: bool


class WakeNodes(Effect[None]):
    """Tell all LRMs on the network that there is a new record."""


class IsEnding(Effect[bool]):
    """Return whether this process was told to end."""


@dataclass(frozen=True)
class ShowTrouble(Effect[None]):
    """Show *text* to the operator of this node as what keeps its CRM from judging nodes."""

    text: str
