# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the end of a job means for a service on its node and for its command."""

from __future__ import annotations

from dataclasses import replace

from ..model.jobs import Job, JobEnd, JobKind, Purpose, Sight
from ..model.report import CommandResult, LocalService, LocalState, Mode, Outcome
from .round import LocalRound


def note_end(round_: LocalRound, end: JobEnd) -> None:
    """Update the report with a job that ended."""
    service_id = end.job.service.id
    round_.busy.discard(service_id)
    local = round_.report.services.get(service_id)
    if end.job.kind is JobKind.PROBE and service_id not in round_.memory.unprobed:
        _end_probe(round_, local, end)
    elif local is None:
        return
    elif end.job.kind is JobKind.PROBE:
        round_.mark_probed(service_id)
        _end_first_probe(round_, local, end)
    elif end.job.kind is JobKind.MONITOR:
        _end_monitor(round_, local, end)
    elif end.job.kind is JobKind.STOP:
        _end_stop(round_, local, end)
    elif end.job.kind is JobKind.MIGRATE:
        _end_migration(round_, local, end)
    else:
        _end_start(round_, local, end)


def _end_probe(round_: LocalRound, local: LocalService | None, end: JobEnd) -> None:
    """Answer the manager's probe.

    A service that is found runs on without being monitored.  It is in the report, and is stopped if
    this node loses its host lease.
    """
    service_id, here = end.job.service.id, end.sight is not Sight.STOPPED
    round_.set(found={**round_.report.found, end.job.uid or service_id: here})
    if here and local is None:
        round_.put(LocalService(end.job.service, LocalState.UNKNOWN, end.job.uid))
    elif not here and local is not None:
        round_.drop(service_id)


def _end_first_probe(round_: LocalRound, local: LocalService, end: JobEnd) -> None:
    """Resolve the state of a service that the previous LRM left."""
    if local.state is LocalState.BLOCKED:
        if end.sight is Sight.STOPPED:
            _set_stopped(round_, local, LocalState.STOPPED, end.text)
    elif local.state is LocalState.MIGRATING:
        _end_migration_probe(round_, local, end)
    elif end.sight is Sight.STOPPED:
        # The command is not known here: a stop may also clean up after a start.
        doing = "stopping" if local.state is LocalState.STOPPING else "starting"
        _resolve(round_, local, Outcome.INTERRUPTED, f"the daemon died while {doing} it", end)
        _set_stopped(round_, local, LocalState.STOPPED, "found stopped by a new daemon")
    elif local.state is LocalState.STOPPING:
        _set_running(round_, local)
        _resolve(round_, local, Outcome.INTERRUPTED, "the daemon died while stopping it", end)
    elif end.sight is Sight.RUNNING:
        _set_running(round_, local)
        if local.state is LocalState.STARTING:
            _resolve(round_, local, Outcome.OK, "found running by a new daemon", end)
    elif local.state is LocalState.STARTING:
        round_.stop(local, Purpose.INTERRUPTED, "only partly started when the daemon died")
    elif round_.orders(local.uid):
        _handle_failure(round_, local, f"only partly running: {end.text}")
    else:
        # The manager may have moved it, so it is only cleaned up here.
        round_.stop(local, Purpose.CLEAN_UP, f"only partly running: {end.text}")


def _end_migration_probe(round_: LocalRound, local: LocalService, end: JobEnd) -> None:
    """Resolve a live migration during which the previous LRM died."""
    if end.sight is Sight.STOPPED:
        _set_stopped(round_, local, LocalState.STOPPED, "not here any more after the migration")
        _resolve(round_, local, Outcome.OK, "found gone by a new daemon", end)
    elif end.sight is Sight.RUNNING:
        _set_running(round_, local)
        _resolve(round_, local, Outcome.FAILED, "the daemon died while it migrated", end)
    else:
        round_.put(replace(local, state=LocalState.BLOCKED, reason=end.text))
        _resolve(round_, local, Outcome.BLOCKED, end.text, end)


def _end_monitor(round_: LocalRound, local: LocalService, end: JobEnd) -> None:
    if end.sight is Sight.RUNNING:
        round_.note_running(local.definition)
    else:
        _handle_failure(round_, local, end.text)


def _handle_failure(round_: LocalRound, local: LocalService, text: str) -> None:
    """Restart a failed service here as often as allowed, then clean up for the manager.

    Without a fresh host lease nothing is restarted.  While the cluster is disarmed nothing is done;
    the service is monitored again after arming.
    """
    if round_.report.mode is Mode.DISARM:
        _set_running(round_, local)
        return
    round_.note_stopped(local.definition.id)
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


def _end_stop(round_: LocalRound, local: LocalService, end: JobEnd) -> None:
    round_.note_stopped(local.definition.id)
    if end.outcome is not Outcome.OK:
        round_.put(replace(local, state=LocalState.BLOCKED, reason=end.text))
        _resolve(round_, local, Outcome.BLOCKED, end.text, end)
    elif end.job.purpose is Purpose.CLEAN_UP:
        _set_stopped(round_, local, LocalState.FAILED, end.job.reason)
    elif end.job.purpose is Purpose.INTERRUPTED:
        _set_stopped(round_, local, LocalState.STOPPED, end.job.reason)
        _resolve(round_, local, Outcome.INTERRUPTED, end.job.reason, end)
    else:
        _set_stopped(round_, local, LocalState.STOPPED, end.job.reason or end.text)
        if end.job.purpose is Purpose.COMMAND:
            _resolve(round_, local, Outcome.OK, end.text, end)


def _end_migration(round_: LocalRound, local: LocalService, end: JobEnd) -> None:
    """Handle the end of a live migration."""
    if end.outcome is Outcome.OK:
        _set_stopped(round_, local, LocalState.STOPPED, end.text)
    elif end.outcome is Outcome.FAILED:
        _set_running(round_, local)
    else:
        round_.put(replace(local, state=LocalState.BLOCKED, reason=end.text))
    _resolve(round_, local, end.outcome, end.text, end)


def _end_start(round_: LocalRound, local: LocalService, end: JobEnd) -> None:
    """Handle the end of a start or restart.  A restart has no command."""
    if end.outcome is Outcome.OK:
        _set_running(round_, local)
    elif end.outcome is Outcome.FAILED:
        _set_stopped(round_, local, LocalState.FAILED, end.text)
    elif end.outcome is Outcome.INTERRUPTED:
        _set_stopped(round_, local, LocalState.STOPPED, end.text)
    else:
        round_.put(replace(local, state=LocalState.BLOCKED, reason=end.text))
    if end.job.kind is JobKind.START:
        _resolve(round_, local, end.outcome, end.text, end)


def _set_running(round_: LocalRound, local: LocalService) -> None:
    round_.put(replace(local, state=LocalState.RUNNING))
    round_.note_stopped(local.definition.id)
    round_.note_running(local.definition)


def _set_stopped(round_: LocalRound, local: LocalService, state: LocalState, reason: str) -> None:
    round_.note_stopped(local.definition.id)
    round_.put(replace(local, state=state, reason=reason))


def _resolve(
    round_: LocalRound, local: LocalService, outcome: Outcome, text: str, end: JobEnd
) -> None:
    """Publish the result of the service's command if it was accepted and has no result yet."""
    uid = local.uid
    if uid in round_.report.accepted and uid not in round_.report.results:
        result = CommandResult(local.definition.id, outcome, text, end.at, end.took)
        round_.resolve(uid, result)
