# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The effects of the LRM's cycle.

An effect on shared storage throws ``StorageError`` when the storage fails.  An effect on the keeper
of the host lease (sanlock, or the machine of an embedded cluster) throws ``NoAnswerError`` when it
does not answer and ``LeaseError`` for other failures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Optional

from ..model.desired import DesiredState
from ..model.effects import Effect
from ..model.jobs import Job, JobEnd
from ..model.membership import Membership
from ..model.observed import HostState
from ..model.report import Report
from ..model.state import ClusterState


@dataclass(frozen=True)
class OwnHostLease:
    """This node's host lease on storage.

    *name* is the node that has it; it was not renewed for *unchanged_for* seconds by this node's
    monotonic clock.
    """

    name: str
    generation: int
    state: HostState
    unchanged_for: float


@dataclass(frozen=True)
class Adopted:
    """The adopted host lease; it fails *fail_seconds* after a renewal."""

    generation: int
    fail_seconds: float


@dataclass(frozen=True)
class NumberedReport:
    """A report with the sequence number of its record; None and 0 if there is none."""

    number: int = 0
    report: Report | None = None


@dataclass(frozen=True)
class JobStatus:
    """The jobs that ended since the last turn, and the services with a job under way."""

    ended: tuple[JobEnd, ...] = ()
    busy: frozenset[str] = frozenset()


@dataclass(frozen=True)
class JoinEnd:
    """Whether a join has ended, and the *error* if it failed."""

    ended: bool
    error: str = ""


class AdoptHostLease(Effect[Adopted]):
    """Work under this node's host lease with the watchdog armed; if one fails, do neither."""


class ReadOwnHostLease(Effect[OwnHostLease]):
    """Read this node's host lease."""


class ConfirmHostLease(Effect[None]):
    """Ask the keeper of the host lease whether this node still has it."""


class DisarmWatchdog(Effect[None]):
    """Disarm the watchdog although the host lease is lost."""


class LeaveHostLease(Effect[None]):
    """Stop working under the host lease."""


class BeginJoin(Effect[str]):
    """Begin to join the lockspace; return a text for the journal."""


class FollowJoin(Effect[JoinEnd]):
    """Return whether the join has ended; throws ``LeaseError`` if it never will."""


class ReadLateFree(Effect[str]):
    """Return why another node may still overwrite this node's new host lease; empty if not."""


class IsFreeingHostLease(Effect[bool]):
    """Return whether this node's CRM may be freeing another node's host lease."""


class ReadManagerRecord(Effect[Optional[ClusterState]]):
    """Read the newest record of a manager; throws ``FormatError`` if it is damaged."""


@dataclass(frozen=True)
class ReadDesiredFrom(Effect[Optional[DesiredState]]):
    """Read the configuration in the slot of the node with *host_id*."""

    host_id: int


class ReadKeptReport(Effect[NumberedReport]):
    """Read the report on the local disk."""


class ReadOwnReport(Effect[NumberedReport]):
    """Read this node's report on the storage; throws ``FormatError`` if it is damaged."""


@dataclass(frozen=True)
class ContinueAfter(Effect[None]):
    """Number the next report above *number*."""

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
    """Return whether this node's report on storage is as it was written."""


@dataclass(frozen=True)
class WriteHeartbeat(Effect[None]):
    """Write this node's block on the whiteboard.

    *running* is the number of running services, *drained* says that the node is in maintenance,
    *stopped* that it shuts down in order and runs nothing any more, *trouble* is why its LRM does
    nothing.
    """

    running: int
    drained: bool
    stopped: bool
    trouble: str


@dataclass(frozen=True)
class WakeManager(Effect[None]):
    """Notify the CRM of *node* on the network of a new report."""

    node: str


class TakeJobs(Effect[JobStatus]):
    """Return the jobs that ended and those under way."""


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
    """Report progress to the watchdog supervision; *bound* if the watchdog must be armed."""

    bound: bool


class CountTerms(Effect[int]):
    """Return how many times this process received SIGTERM."""


@dataclass(frozen=True)
class ReadShutdown(Effect[str]):
    """Return why this process is told to end; empty while that is unknown.

    After some *tries* the answer is a restart of the LRM.
    """

    tries: int


class ReadOwnMembership(Effect[Membership]):
    """Return the membership in this node's configuration."""


@dataclass(frozen=True)
class ReadSecretProblems(Effect[Mapping[str, str]]):
    """Return what is wrong with this node's secret files for the *desired* services."""

    desired: DesiredState
