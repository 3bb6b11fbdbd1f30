# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The effects of the LRM's cycle.

An effect that reads or writes the shared storage throws ``StorageError`` into the cycle when the
storage fails.  What asks the keeper of the host lease (sanlock, or the machine of an embedded
cluster) throws ``NoAnswerError`` when it does not answer, and ``LeaseError`` for any other refusal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from ..model.desired import Wanted
from ..model.effects import Effect
from ..model.jobs import Job, JobEnd
from ..model.membership import Membership
from ..model.observed import HostState
from ..model.report import Report
from ..model.state import ClusterState


@dataclass(frozen=True)
class OwnHostLease:
    """This node's host lease as it is on the storage.

    *name* is the node that has it, *unchanged_for* the seconds for which it was not renewed, by
    this node's own monotonic clock.
    """

    name: str
    generation: int
    state: HostState
    unchanged_for: float


@dataclass(frozen=True)
class Adopted:
    """The host lease that this node works under; it fails *fail_seconds* after a renewal."""

    generation: int
    fail_seconds: float


@dataclass(frozen=True)
class NumberedReport:
    """A report with the sequence number of its record; None and 0 if there is none."""

    number: int = 0
    report: Report | None = None


@dataclass(frozen=True)
class JobStatus:
    """The jobs that ended since the last turn, and the services that have one under way."""

    ended: tuple[JobEnd, ...] = ()
    busy: frozenset[str] = frozenset()


@dataclass(frozen=True)
class JoinEnd:
    """Whether a join has ended, and the *error* if it failed."""

    ended: bool
    error: str = ""


class AdoptHostLease(Effect[Adopted]):
    """Work under this node's host lease with the watchdog armed; do neither if one fails."""


class ReadOwnHostLease(Effect[OwnHostLease]):
    """Read this node's host lease."""


class ConfirmHostLease(Effect[None]):
    """Ask the keeper of the host lease whether this node still has it."""


class DisarmWatchdog(Effect[None]):
    """Let this machine live although its host lease is lost."""


class LeaveHostLease(Effect[None]):
    """Work under the host lease no longer."""


class BeginJoin(Effect[str]):
    """Begin to join the lockspace; return what is done, for the journal."""


class FollowJoin(Effect[JoinEnd]):
    """Return whether the join has ended; throws ``LeaseError`` if it never comes to its end."""


class ReadLateFree(Effect[str]):
    """Return why another node may still overwrite a new host lease of this one, empty if none."""


class IsFreeingHostLease(Effect[bool]):
    """Return whether this node's CRM may be freeing another node's host lease."""


class ReadManagerRecord(Effect[Optional[ClusterState]]):
    """Read the newest record of a manager; throws ``FormatError`` if it is damaged."""


@dataclass(frozen=True)
class ReadDesiredFrom(Effect[Optional[Wanted]]):
    """Read the configuration in the slot of the node with *host_id*."""

    host_id: int


class ReadKeptReport(Effect[NumberedReport]):
    """Read the report on the local disk."""


class ReadOwnReport(Effect[NumberedReport]):
    """Read this node's report on the storage; throws ``FormatError`` if it is damaged."""


@dataclass(frozen=True)
class ContinueAfter(Effect[None]):
    """Give the next report a sequence number above *number*."""

    number: int


@dataclass(frozen=True)
class KeepReport(Effect[None]):
    """Write the report to the local disk; throws ``StorageError`` if that fails."""

    report: Report


@dataclass(frozen=True)
class WriteReport(Effect[None]):
    """Write this node's report to the storage."""

    report: Report


class OwnReportStands(Effect[bool]):
    """Return whether this node's report on the storage is as it was written."""


@dataclass(frozen=True)
class WriteHeartbeat(Effect[None]):
    """Write this node's block on the whiteboard.

    *running* services run, *drained* says that the node is in maintenance, and *trouble* why its
    LRM does nothing.
    """

    running: int
    drained: bool
    trouble: str


@dataclass(frozen=True)
class WakeManager(Effect[None]):
    """Tell the CRM of *node* on the network that there is a new report."""

    node: str


class TakeJobs(Effect[JobStatus]):
    """Return the jobs that ended, and what is under way."""


@dataclass(frozen=True)
class BeginJob(Effect[None]):
    """Let a worker do *job*."""

    job: Job


@dataclass(frozen=True)
class ResizeWorkers(Effect[None]):
    """Let *number* workers run at once."""

    number: int


@dataclass(frozen=True)
class Supervise(Effect[None]):
    """Say that this LRM is alive; *bound* while the watchdog is to reset the node if it ends."""

    bound: bool


class CountTerms(Effect[int]):
    """Return how many times this process was told to end."""


@dataclass(frozen=True)
class ReadShutdown(Effect[str]):
    """Return why this process is told to end; empty if that cannot be told yet.

    *tries* counts the questions: after some of them the answer is a restart of the LRM.
    """

    tries: int


class ReadOwnMembership(Effect[Membership]):
    """Return the membership that this node is configured with."""
