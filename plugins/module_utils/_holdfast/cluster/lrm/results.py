# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the end of a job means for a service on its node, and for the command behind it."""

from __future__ import annotations

from dataclasses import replace

from ..model.jobs import Job, JobEnd, JobKind, Purpose, Sight
from ..model.report import CommandResult, LocalService, LocalState, Mode, Outcome
from .round import LocalRound


def note_end(round_: LocalRound, end: JobEnd) -> None:
    """Bring the report up to date with a job that ended."""
    service_id = end.job.service.id
    round_.busy.discard(service_id)
    local = round_.report.services.get(service_id)
    if end.job.kind is JobKind.PROBE and service_id not in round_.memory.doubtful:
        _probed(round_, local, end)
    elif local is None:
        return
    elif end.job.kind is JobKind.PROBE:
        round_.no_longer_doubtful(service_id)
        _doubt_resolved(round_, local, end)
    elif end.job.kind is JobKind.MONITOR:
        _monitored(round_, local, end)
    elif end.job.kind is JobKind.STOP:
        _stopped(round_, local, end)
    elif end.job.kind is JobKind.MIGRATE:
        _migrated(round_, local, end)
    else:
        _started(round_, local, end)


def _probed(round_: LocalRound, local: LocalService | None, end: JobEnd) -> None:
    """Answer the manager.

    What is found is not kept running before the manager says so, but it is known to be here,
    and stopped if this node loses its host lease.
    """
    service_id, here = end.job.service.id, end.sight is not Sight.STOPPED
    round_.set(found={**round_.report.found, end.job.uid or service_id: here})
    if here and local is None:
        round_.put(LocalService(end.job.service, LocalState.UNKNOWN, end.job.uid))
    elif not here and local is not None:
        round_.drop(service_id)


def _doubt_resolved(round_: LocalRound, local: LocalService, end: JobEnd) -> None:
    """A predecessor died with this service in the given state; now it was looked at."""
    if local.state is LocalState.BLOCKED:
        if end.sight is Sight.STOPPED:
            _gone(round_, local, LocalState.STOPPED, end.text)
    elif local.state is LocalState.MIGRATING:
        _migration_doubtful(round_, local, end)
    elif end.sight is Sight.STOPPED:
        # Which command it was is not known here: a stop may also clean up after a start.
        doing = "stopping" if local.state is LocalState.STOPPING else "starting"
        _resolve(round_, local, Outcome.INTERRUPTED, f"the daemon died while {doing} it", end)
        _gone(round_, local, LocalState.STOPPED, "found stopped by a new daemon")
    elif local.state is LocalState.STOPPING:
        _runs(round_, local)
        _resolve(round_, local, Outcome.INTERRUPTED, "the daemon died while stopping it", end)
    elif end.sight is Sight.RUNNING:
        _runs(round_, local)
        if local.state is LocalState.STARTING:
            _resolve(round_, local, Outcome.OK, "found running by a new daemon", end)
    elif local.state is LocalState.STARTING:
        round_.stop(local, Purpose.INTERRUPTED, "only partly started when the daemon died")
    elif local.uid in round_.ordered:
        _failed_while_running(round_, local, f"only partly running: {end.text}")
    else:
        # The manager may have it elsewhere by now: it is only seen to that nothing of it is here.
        round_.stop(local, Purpose.CLEAN_UP, f"only partly running: {end.text}")


def _migration_doubtful(round_: LocalRound, local: LocalService, end: JobEnd) -> None:
    """The daemon died in a live migration: it went over, or runs here, or something is left."""
    if end.sight is Sight.STOPPED:
        _gone(round_, local, LocalState.STOPPED, "not here any more after the migration")
        _resolve(round_, local, Outcome.OK, "found gone by a new daemon", end)
    elif end.sight is Sight.RUNNING:
        _runs(round_, local)
        _resolve(round_, local, Outcome.FAILED, "the daemon died while it migrated", end)
    else:
        round_.put(replace(local, state=LocalState.BLOCKED, reason=end.text))
        _resolve(round_, local, Outcome.BLOCKED, end.text, end)


def _monitored(round_: LocalRound, local: LocalService, end: JobEnd) -> None:
    if end.sight is Sight.RUNNING:
        round_.runs_now(local.definition)
    else:
        _failed_while_running(round_, local, end.text)


def _failed_while_running(round_: LocalRound, local: LocalService, text: str) -> None:
    """Restart it here as often as allowed, then clean up and leave it to the manager.

    Without a fresh host lease nothing is started, not even for the second time.  While the
    cluster is disarmed nothing is done; it is looked at again once the cluster is armed.
    """
    if round_.report.mode is Mode.DISARM:
        _runs(round_, local)
        return
    round_.runs_no_more(local.definition.id)
    if round_.may_start and local.restarts < local.definition.max_restart:
        failed = replace(
            local,
            state=LocalState.STARTING,
            restarts=local.restarts + 1,
            settled=False,
            reason=f"restarted here: {text}",
        )
        round_.put(failed)
        round_.begin(Job(JobKind.RESTART, local.definition, local.uid, reason=text))
    else:
        round_.stop(local, Purpose.CLEAN_UP, text)


def _stopped(round_: LocalRound, local: LocalService, end: JobEnd) -> None:
    round_.runs_no_more(local.definition.id)
    if end.outcome is not Outcome.OK:
        round_.put(replace(local, state=LocalState.BLOCKED, reason=end.text))
        _resolve(round_, local, Outcome.BLOCKED, end.text, end)
    elif end.job.purpose is Purpose.CLEAN_UP:
        _gone(round_, local, LocalState.FAILED, end.job.reason)
    elif end.job.purpose is Purpose.INTERRUPTED:
        _gone(round_, local, LocalState.STOPPED, end.job.reason)
        _resolve(round_, local, Outcome.INTERRUPTED, end.job.reason, end)
    else:
        _gone(round_, local, LocalState.STOPPED, end.job.reason or end.text)
        if end.job.purpose is Purpose.COMMAND:
            _resolve(round_, local, Outcome.OK, end.text, end)


def _migrated(round_: LocalRound, local: LocalService, end: JobEnd) -> None:
    """It went over to another node, or it runs here as before."""
    if end.outcome is Outcome.OK:
        _gone(round_, local, LocalState.STOPPED, end.text)
    elif end.outcome is Outcome.FAILED:
        _runs(round_, local)
    else:
        round_.put(replace(local, state=LocalState.BLOCKED, reason=end.text))
    _resolve(round_, local, end.outcome, end.text, end)


def _started(round_: LocalRound, local: LocalService, end: JobEnd) -> None:
    """A start or restart ended; a restart has no command that waits for its result."""
    if end.outcome is Outcome.OK:
        _runs(round_, local)
    elif end.outcome is Outcome.FAILED:
        _gone(round_, local, LocalState.FAILED, end.text)
    elif end.outcome is Outcome.INTERRUPTED:
        _gone(round_, local, LocalState.STOPPED, end.text)
    else:
        round_.put(replace(local, state=LocalState.BLOCKED, reason=end.text))
    if end.job.kind is JobKind.START:
        _resolve(round_, local, end.outcome, end.text, end)


def _runs(round_: LocalRound, local: LocalService) -> None:
    round_.put(replace(local, state=LocalState.RUNNING))
    round_.runs_no_more(local.definition.id)
    round_.runs_now(local.definition)


def _gone(round_: LocalRound, local: LocalService, state: LocalState, reason: str) -> None:
    round_.runs_no_more(local.definition.id)
    round_.put(replace(local, state=state, reason=reason))


def _resolve(
    round_: LocalRound, local: LocalService, outcome: Outcome, text: str, end: JobEnd
) -> None:
    """Publish the result of the command under way, if it was accepted and has none yet."""
    uid = local.uid
    if uid in round_.report.accepted and uid not in round_.report.results:
        result = CommandResult(local.definition.id, outcome, text, end.at, end.took)
        round_.resolve(uid, result)
