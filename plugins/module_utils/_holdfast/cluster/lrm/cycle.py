# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The LRM's cycle: observe, decide, write the report, and only then begin jobs.

The LRM of a node runs one turn every half second.  Its end changes nothing for the services: the
next LRM continues with them.  At SIGTERM it first reports why it ends, so that its services are
frozen, moved or stopped as the policy says.  At a second SIGTERM it ends at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ...errors import FormatError, HoldfastError, LeaseError, StorageError
from ..model.desired import DesiredState
from ..model.effects import Clocks, Cycle, Log, ReadClocks, perform, shallow_copy
from ..model.jobs import Job, JobEnd, JobKind, Sight
from ..model.membership import differences
from ..model.observed import Timing
from ..model.report import WRITTEN_AGAIN, LocalState, Report
from ..model.state import ClusterState
from ..model.versions import newer_report
from . import step
from .effects import (
    BeginJob,
    ContinueAfter,
    CountTerms,
    JobStatus,
    KeepReport,
    OwnReportStands,
    ReadDesiredFrom,
    ReadKeptReport,
    ReadManagerRecord,
    ReadOwnMembership,
    ReadOwnReport,
    ReadSecretProblems,
    ReadShutdown,
    ResizeWorkers,
    Supervise,
    TakeJobs,
    WakeManager,
    WriteHeartbeat,
    WriteReport,
)
from .host_lease import HostLease
from .round import (
    IDLE_AFTER,
    MANAGERS_RECORD,
    OLDER_RECORD,
    OWN_RECORD,
    Hindrance,
    LocalObservation,
    Memory,
)

ROUND = 1.0
"""Seconds between two turns without news: the manager's hints, and jobs that end, are news."""

REPORT_FIRST = 5.0
"""Seconds for which an LRM after a boot writes no heartbeat before its first report.

They count from when it may write both, which a join delays.  A heartbeat beside the report of the
boot before looks as if a dead node went on writing."""

OWN_LOOK = 5.0
"""Seconds between two checks of this node's own report on storage."""

_NOT_RUNNING = frozenset({LocalState.STARTING, LocalState.STOPPED, LocalState.FAILED})


@dataclass(frozen=True)
class LrmSettings:
    """The configuration of an LRM.

    *boot* identifies this boot of the node.  *joins* says that the LRM joins the lockspace itself.
    *virtual* is the kind of virtual machine, empty on a physical one, None if unknown.  *room* is
    the node's CPUs and memory, *allowed_agents* the patterns of the agents that it may run.  After
    *idle_after* seconds without a service the LRM disarms the watchdog.  *heartbeat* is the time
    between two heartbeats on the whiteboard in seconds.
    """

    node: str
    boot: str
    watchdog_timeout: int
    fail_seconds: float
    joins: bool
    virtual: str | None = ""
    room: tuple[float, float] | None = None
    allowed_agents: tuple[str, ...] = ("*",)
    idle_after: float = IDLE_AFTER
    heartbeat: float = Timing().heartbeat


@dataclass
class Lrm:
    """The LRM of one node.

    *clocks* were read in the last turn that read the host lease and the manager's record.  Jobs
    begin only if the clocks have not jumped since.  *awaits_first_report* says that this
    boot of the node has not written a report yet.
    """

    settings: LrmSettings
    host_lease: HostLease
    report: Report
    memory: Memory
    clocks: Clocks
    awaits_first_report: bool
    state: ClusterState | None = None
    desired: DesiredState | None = None
    written: Report | None = None
    write_again: float = 0.0
    next_turn: float = 0.0
    next_heartbeat: float = 0.0
    next_own_look: float = 0.0
    hindrance: Hindrance = field(default_factory=Hindrance)
    trouble: str = ""
    pending: tuple[JobEnd, ...] = ()
    busy: frozenset[str] = frozenset()
    shutdown: str = ""
    shutdown_since: float = 0.0
    shutdown_tries: int = 0
    ends: bool = False

    def copy(self) -> Lrm:
        """Return a copy that can change independently."""
        after = shallow_copy(self)
        after.host_lease = shallow_copy(self.host_lease)
        return after


def start(settings: LrmSettings) -> Cycle[Lrm]:
    """Return the LRM of a starting process; it continues from the last report."""
    clocks = yield from perform(ReadClocks())
    last = yield from _last_report(settings)
    report, memory = step.resume(
        last,
        settings.node,
        settings.boot,
        settings.watchdog_timeout,
        settings.virtual,
        settings.allowed_agents,
    )
    host_lease = HostLease(
        settings.node,
        settings.joins,
        clocks.mono,
        settings.fail_seconds,
        clocks,
        renewed_at=clocks.mono,
        next_look=clocks.mono,
        next_join=clocks.mono,
    )
    awaits_first_report = last is None or last.boot != settings.boot
    return Lrm(settings, host_lease, report, memory, clocks, awaits_first_report)


def turn(lrm: Lrm) -> Cycle[None]:
    """Run one turn: observe, decide, write, act."""
    yield from _note_terms(lrm)
    if lrm.ends:
        return
    clocks = yield from perform(ReadClocks())
    lrm.next_turn = clocks.mono + ROUND
    owned_slot = lrm.host_lease.owns_slot
    trouble = yield from lrm.host_lease.look(clocks)
    now = (yield from perform(ReadClocks())).mono
    if lrm.awaits_first_report and lrm.host_lease.owns_slot and not owned_slot:
        lrm.next_heartbeat = now + REPORT_FIRST
    yield from _beat_if_due(lrm, now)
    if trouble is not None:
        lrm.trouble = trouble
        yield from _decide(lrm, trouble, clocks, now)
    yield from perform(Supervise(_runs_services(lrm)))


def beat(lrm: Lrm) -> Cycle[None]:
    """Write a heartbeat that is due between two turns."""
    yield from _beat_if_due(lrm, (yield from perform(ReadClocks())).mono)


def wait_seconds(lrm: Lrm, mono: float) -> float:
    """Return how long to wait for news: not after the next turn, nor the next heartbeat."""
    until = lrm.next_turn
    if lrm.host_lease.owns_slot:
        until = min(until, lrm.next_heartbeat)
    return min(max(until - mono, 0.0), ROUND)


def start_obstacle(lrm: Lrm, clocks: Clocks) -> str:
    """Return why nothing may be started now; called just before an agent is called."""
    silent = clocks.mono - lrm.host_lease.renewed_at
    if lrm.trouble:
        return f"this node's host lease {lrm.trouble}"
    if silent >= lrm.host_lease.fail_seconds:
        return f"this node's host lease was not observed to be renewed for {silent:.0f} s"
    jump = clocks.jump_since(lrm.clocks)
    if jump:
        return f"{jump}: its host lease and the manager's record are read again first"
    return step.proved_dead(lrm.report, lrm.state)


def ran_here(lrm: Lrm, service_id: str) -> bool:
    """Return whether a service ran here and was not seen to end.

    A service that ran here when it became unmanaged counts: only a probe can end that.
    """
    if service_id in lrm.report.left:
        return True
    local = lrm.report.services.get(service_id)
    return local is not None and local.state not in _NOT_RUNNING


def _last_report(settings: LrmSettings) -> Cycle[Report | None]:
    """Return the last report of this node, from storage or from the local disk."""
    kept = yield from perform(ReadKeptReport())
    try:
        stored = yield from perform(ReadOwnReport())
    except FormatError as error:
        if kept.report is None:
            raise
        yield from perform(Log(f"goes on from the copy on the local disk: {error}"))
        stored = replace(kept, number=0, report=None)
    if stored.report is not None and stored.report.node not in ("", settings.node):
        # The host id belonged to another node.
        return stored.report
    newer = newer_report(stored.number, stored.report, kept.number, kept.report)
    if newer is kept.report and kept.report is not None and kept.number > stored.number:
        text = (
            f"its record on storage is older (number {stored.number}) than the copy on the"
            f" local disk (number {kept.number}): goes on from the latter"
        )
        yield from perform(Log(text))
    yield from perform(ContinueAfter(kept.number))
    return newer


def _note_terms(lrm: Lrm) -> Cycle[None]:
    """After a SIGTERM find out why; after a second one end at once."""
    terms = yield from perform(CountTerms())
    if terms and not lrm.shutdown:
        lrm.shutdown_tries += 1
        lrm.shutdown = yield from perform(ReadShutdown(lrm.shutdown_tries))
        lrm.shutdown_since = (yield from perform(ReadClocks())).mono
        text = f"told to end: {lrm.shutdown or 'systemd does not report the reason yet'}"
        yield from perform(Log(text))
    lrm.ends = lrm.ends or terms > 1


def _decide(lrm: Lrm, trouble: str, clocks: Clocks, now: float) -> Cycle[None]:
    """Decide, write the report, and begin the jobs it allows."""
    has_read = yield from _read(lrm)
    current = yield from perform(ReadClocks())
    yield from _beat_within(lrm, current.mono)
    if has_read and not trouble:
        yield from _note_jump(lrm, clocks, current)
    jobs = yield from _take_jobs(lrm)
    observed = LocalObservation(
        now=now,
        wall=current.wall,
        state=lrm.state,
        desired=lrm.desired,
        lease_trouble=trouble,
        renewal_trouble=lrm.host_lease.doubt,
        ended=lrm.pending,
        busy=jobs.busy,
        shutdown=lrm.shutdown,
        shutdown_for=now - lrm.shutdown_since,
        room=lrm.settings.room,
        idle_after=lrm.settings.idle_after,
    )
    report = yield from _with_secret_problems(lrm, (yield from _with_membership(lrm)))
    decided = step.step(report, lrm.memory, observed)
    yield from _note_refusal(lrm, decided.refused, now)
    if not (yield from _write(lrm, decided.report, current.mono)) and not trouble:
        # Nothing may happen that is not recorded on storage.  The next turn tries again.
        return
    lrm.report, lrm.memory = decided.report, decided.memory
    lrm.pending = ()
    yield from _begin(lrm, decided.jobs)
    lrm.ends = lrm.ends or (decided.ends and not decided.jobs)
    if trouble and not lrm.report.binds_watchdog(lrm.written) and not lrm.busy:
        yield from lrm.host_lease.come_back()


def _begin(lrm: Lrm, jobs: tuple[Job, ...]) -> Cycle[None]:
    """Begin *jobs*, after the watchdog was armed."""
    if jobs:
        yield from perform(Supervise(_runs_services(lrm)))
    for job in jobs:
        if job.kind is not JobKind.MONITOR:
            yield from perform(_line(lrm, job, job.reason))
        lrm.busy = lrm.busy | {job.service.id}
        yield from perform(BeginJob(job))


def _with_membership(lrm: Lrm) -> Cycle[Report]:
    """Return the report with this node's membership and its difference to the recorded one."""
    own = yield from perform(ReadOwnMembership())
    recorded = lrm.state.membership if lrm.state is not None else None
    differs = differences(own, recorded) if recorded is not None else ""
    if differs:
        yield from perform(Log(f"not the cluster's membership: {differs}", repeated=True))
    return lrm.report.with_membership(own.digest, differs)


def _with_secret_problems(lrm: Lrm, report: Report) -> Cycle[Report]:
    """Return the *report* with what is wrong with this node's secret files."""
    if lrm.desired is None:
        return report
    problems = yield from perform(ReadSecretProblems(lrm.desired))
    return report if problems == report.secrets else replace(report, secrets=problems)


def _note_refusal(lrm: Lrm, refused: str, now: float) -> Cycle[None]:
    """Report that a manager's record is not followed, and check this node's own record."""
    if refused:
        lrm.hindrance = lrm.hindrance.with_problem(OLDER_RECORD, refused, now)
        text = f"the manager's record is not followed: {refused}"
        yield from perform(Log(text, repeated=True))
    else:
        lrm.hindrance = lrm.hindrance.without_problem(OLDER_RECORD)
    if now < lrm.next_own_look:
        return
    lrm.next_own_look = now + OWN_LOOK
    try:
        stands = yield from perform(OwnReportStands())
    except StorageError:
        return
    yield from _beat_within(lrm, (yield from perform(ReadClocks())).mono)
    if not stands:
        text = "its record on storage is damaged, or older than what was written: written again"
        yield from perform(Log(text))
        lrm.written = None


def _take_jobs(lrm: Lrm) -> Cycle[JobStatus]:
    """Take the jobs that ended, and log all but successful monitors."""
    jobs = yield from perform(TakeJobs())
    for end in jobs.ended:
        well = end.job.kind is JobKind.MONITOR and end.sight is Sight.RUNNING
        if end.job.uid and not well:
            yield from perform(_line(lrm, end.job, f"{end.outcome.value}, {end.text}", ":"))
    lrm.pending = (*lrm.pending, *jobs.ended)
    lrm.busy = jobs.busy
    return jobs


def _line(lrm: Lrm, job: Job, text: str, mark: str = "") -> Log:
    """Return a journal line about *job*."""
    return Log(
        f"{job.kind.value} {job.service.id} {job.uid}{mark} {text}".rstrip(),
        service=job.service.id,
        uid=job.uid,
        epoch=lrm.report.epoch,
        reason=text,
    )


def _runs_services(lrm: Lrm) -> bool:
    """Return whether services that need the watchdog run here or are coming."""
    return bool(lrm.report.running() or lrm.report.coming or lrm.busy)


def _beat_if_due(lrm: Lrm, now: float) -> Cycle[None]:
    """Write a heartbeat if it is due and this node may write its slots."""
    if now >= lrm.next_heartbeat and lrm.host_lease.owns_slot:
        yield from _write_heartbeat(lrm, now)


def _beat_within(lrm: Lrm, now: float) -> Cycle[None]:
    """Write a heartbeat that is due between two steps of a turn, but not before the first report.

    On storage that takes a third of a second for each operation a turn takes ten and more.  The
    supervisor is told, too: it would take an LRM with such a turn for one that hangs.
    """
    if lrm.written is not None and now >= lrm.next_heartbeat:
        yield from _beat_if_due(lrm, now)
        yield from perform(Supervise(_runs_services(lrm)))


def _write_heartbeat(lrm: Lrm, now: float) -> Cycle[None]:
    """Write this node's block on the whiteboard."""
    lrm.next_heartbeat = now + lrm.settings.heartbeat
    report = lrm.written or lrm.report
    trouble = lrm.hindrance.text(now)
    stopped = report.has_shut_down()
    effect = WriteHeartbeat(len(report.running()), _is_drained(lrm), stopped, trouble)
    try:
        yield from perform(effect)
    except StorageError as error:
        yield from perform(Log(f"heartbeat not written: {error}", repeated=True))


def _is_drained(lrm: Lrm) -> bool:
    """Return whether this node is in a maintenance that the manager has not ended."""
    if lrm.desired is None:
        return False
    ended = lrm.state.ended if lrm.state is not None else {}
    return lrm.settings.node in lrm.desired.in_force(ended).maintenance


def _note_jump(lrm: Lrm, clocks: Clocks, current: Clocks) -> Cycle[None]:
    """Allow agents again after a clock jump, once lease and record were read again.

    *clocks* were read before lease and record, *current* after them.
    """
    jump = current.jump_since(lrm.clocks)
    if jump:
        text = f"{jump}; its host lease and the manager's record were read again"
        yield from perform(Log(text))
    lrm.clocks = clocks


def _read(lrm: Lrm) -> Cycle[bool]:
    """Read the manager's record and its configuration; return whether both were readable."""
    try:
        state = lrm.state = yield from perform(ReadManagerRecord())
        if state is not None and state.config_slot and not _has_configuration_of(lrm, state):
            desired = yield from perform(ReadDesiredFrom(state.config_slot))
            if desired is not None and desired.at_least(state.generation, state.config_version):
                lrm.desired = desired
                yield from perform(ResizeWorkers(desired.policy.max_workers))
        lrm.hindrance = lrm.hindrance.without_problem(MANAGERS_RECORD)
    except HoldfastError as error:
        lrm.state = None
        now = (yield from perform(ReadClocks())).mono
        lrm.hindrance = lrm.hindrance.with_problem(MANAGERS_RECORD, str(error), now)
        yield from perform(Log(f"the manager's record cannot be read: {error}", repeated=True))
        return False
    return True


def _has_configuration_of(lrm: Lrm, state: ClusterState) -> bool:
    """Return whether the configuration of *state*, or a newer one, was already read."""
    desired = lrm.desired
    return desired is not None and desired.at_least(state.generation, state.config_version)


def _write(lrm: Lrm, report: Report, now: float) -> Cycle[bool]:
    """Write the report if it changed or is old; return False if that failed."""
    changed = report != lrm.written
    if not changed and now < lrm.write_again:
        return True
    if not lrm.host_lease.owns_slot:
        return False
    try:
        # The local disk comes first.  A full disk does not stop a node's work.
        yield from perform(KeepReport(report))
    except StorageError as error:
        text = f"the report is not kept on the local disk: {error}"
        yield from perform(Log(text, repeated=True))
    try:
        yield from perform(WriteReport(report))
    except (StorageError, LeaseError) as error:
        yield from perform(Log(f"report not written: {error}", repeated=True))
        lrm.hindrance = lrm.hindrance.with_problem(OWN_RECORD, str(error), now)
        return False
    lrm.hindrance = lrm.hindrance.without_problem(OWN_RECORD)
    lrm.written, lrm.write_again = report, now + WRITTEN_AGAIN
    lrm.awaits_first_report = False
    # The heartbeat names the report's number, so the manager then reads it.
    yield from _write_heartbeat(lrm, (yield from perform(ReadClocks())).mono)
    if changed and lrm.state is not None:
        yield from perform(WakeManager(lrm.state.manager))
    return True
