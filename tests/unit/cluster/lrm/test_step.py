# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node's own steps: accept before acting, never twice, and nothing without a fresh lease."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.lrm.round import (
    Memory,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.lrm.step import (
    LocalObservation,
    resume,
    step,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.jobs import (
    Job,
    JobEnd,
    JobKind,
    Purpose,
    Sight,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.maintenance import (  # noqa: E501
    Maintenance,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    LocalService,
    LocalState,
    Mode,
    Outcome,
    Report,
    report_document,
    report_from_document,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.service import (
    service_document,
    service_from_options,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    NodeState,
    NodeStatus,
    Power,
    ServiceStatus,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.states import (
    ServiceState,
)
from ansible_collections.holdfast.ha.tests.unit.cluster.samples import (
    clean_shutdown,
    desired,
    service,
    started,
    state,
    verified_off,
)

WEB = service()
FRAIL = service(max_restart=0)
CHANGED = replace(WEB, resources=(replace(WEB.resources[0], parameters={"x": "2"}),))
NOTHING = Memory()


def look(status=None, desired_=None, *, ends=(), busy=(), **changes):
    """Return what the LRM of n1 sees; *status* is what the manager has of web."""
    record = state({"web": status} if status else {}, **changes.pop("record", {}))
    return LocalObservation(
        now=changes.pop("now", 50.0),
        wall=1000.0,
        state=record,
        desired=desired_ or desired(WEB),
        ended=tuple(ends),
        busy=frozenset(busy),
        **changes,
    )


def has(local_state, *, one=WEB, uid="7.1", accepted=True, resolved=False, **changes):
    """Return the report of n1 that has web in a local state."""
    report = Report(
        "n1", "n1-boot1", services={"web": LocalService(one, local_state, uid, **changes)}
    )
    if accepted:
        report = replace(report, accepted={uid: "web"})
    if resolved:
        report = replace(report, results={uid: RESULT})
    return report


def command(service_state, one=WEB, node="n1", uid="7.1"):
    return started(node, one, state=service_state, uid=uid)


def end(kind, *, outcome=Outcome.OK, sight=Sight.STOPPED, one=WEB, purpose=Purpose.COMMAND):
    return JobEnd(Job(kind, one, "7.1", purpose, "why"), outcome, sight, "text", 999.0, 1.0)


START = command(ServiceState.REQUEST_START)
STOP = command(ServiceState.REQUEST_STOP)
STARTED_END = step(has(LocalState.STARTING), NOTHING, look(START, ends=[end(JobKind.START)]))
RESULT = STARTED_END.report.results["7.1"]


def jobs(taken):
    return [(job.kind, job.service.id) for job in taken.jobs]


def local(taken):
    return taken.report.services["web"]


@pytest.mark.parametrize(
    ("status", "report", "kind", "local_state"),
    [
        (START, Report("n1", "n1-boot1"), JobKind.START, LocalState.STARTING),
        (STOP, has(LocalState.RUNNING, uid="7.0"), JobKind.STOP, LocalState.STOPPING),
        (STOP, Report("n1", "n1-boot1"), JobKind.STOP, LocalState.STOPPING),
        (
            command(ServiceState.RELOCATE),
            has(LocalState.RUNNING, uid="7.0"),
            JobKind.STOP,
            LocalState.STOPPING,
        ),
    ],
)
def test_a_command_stands_in_the_report_as_accepted_with_the_job_it_begins(
    status, report, kind, local_state
) -> None:
    taken = step(report, NOTHING, look(status))
    assert jobs(taken) == [(kind, "web")]
    assert taken.report.accepted == {"7.1": "web"}
    assert (local(taken).state, local(taken).uid) == (local_state, "7.1")
    assert not step(taken.report, taken.memory, look(status, busy=["web"])).jobs


@pytest.mark.parametrize("resolved", [True, False])
@pytest.mark.parametrize("status", [START, STOP, command(ServiceState.RELOCATE)])
def test_a_uid_is_never_begun_twice(status, resolved) -> None:
    report = has(LocalState.STOPPED, resolved=resolved)
    assert not step(report, NOTHING, look(status)).jobs


@pytest.mark.parametrize(
    ("kind", "before", "outcome", "after"),
    [
        (JobKind.START, LocalState.STARTING, Outcome.OK, LocalState.RUNNING),
        (JobKind.START, LocalState.STARTING, Outcome.FAILED, LocalState.FAILED),
        (JobKind.START, LocalState.STARTING, Outcome.BLOCKED, LocalState.BLOCKED),
        (JobKind.STOP, LocalState.STOPPING, Outcome.OK, LocalState.STOPPED),
        (JobKind.STOP, LocalState.STOPPING, Outcome.BLOCKED, LocalState.BLOCKED),
    ],
)
def test_the_end_of_a_job_is_published_as_the_commands_result(kind, before, outcome, after) -> None:
    status = START if kind is JobKind.START else STOP
    taken = step(has(before), NOTHING, look(status, ends=[end(kind, outcome=outcome)]))
    assert taken.report.results["7.1"].outcome is outcome
    assert local(taken).state is after
    assert not taken.jobs


def test_a_stop_uses_the_definition_that_was_started() -> None:
    taken = step(has(LocalState.RUNNING, uid="7.0"), NOTHING, look(STOP, desired(CHANGED)))
    assert taken.jobs[0].service == WEB


def test_a_stop_of_what_nobody_knows_is_not_called_done() -> None:
    unknown = replace(desired(), version=1)
    taken = step(Report("n1", "n1-boot1"), NOTHING, look(STOP, unknown))
    assert taken.report.results["7.1"].outcome is Outcome.BLOCKED


@pytest.mark.parametrize("desired_", [desired(CHANGED), desired()])
def test_a_start_of_an_outdated_definition_is_given_back_and_never_begun(desired_) -> None:
    taken = step(Report("n1", "n1-boot1"), NOTHING, look(START, desired_))
    assert taken.report.results["7.1"].outcome is Outcome.REFUSED
    assert not step(taken.report, taken.memory, look(START)).jobs


def test_what_an_earlier_start_of_the_node_was_told_is_nothing_to_this_one() -> None:
    record = {"nodes": {"n1": NodeStatus(NodeState.ONLINE, boot="n1-boot0")}}
    taken = step(Report("n1", "n1-boot1"), NOTHING, look(START, record=record))
    assert not taken.jobs
    assert not taken.report.accepted


def test_an_outdated_start_of_what_runs_here_already_stops_it_first() -> None:
    running = Report(
        "n1", "n1-boot1", services={"web": LocalService(WEB, LocalState.RUNNING, "6.9")}
    )
    taken = step(running, NOTHING, look(START, desired(CHANGED)))
    assert "7.1" not in taken.report.results
    (job,) = taken.jobs
    assert (job.kind, job.purpose) == (JobKind.STOP, Purpose.INTERRUPTED)
    ended = replace(look(START, desired(CHANGED)), ended=(JobEnd(job, Outcome.OK),))
    after = step(taken.report, taken.memory, ended)
    assert after.report.results["7.1"].outcome is Outcome.INTERRUPTED


def test_a_start_waits_for_the_configuration_it_was_made_from() -> None:
    older = replace(desired(CHANGED), version=0)
    for not_yet in (look(START, older), replace(look(START), desired=None)):
        taken = step(Report("n1", "n1-boot1"), NOTHING, not_yet)
        assert not taken.jobs
        assert not taken.report.results


@pytest.mark.parametrize(
    ("epoch", "commands"), [(6, 99), (7, 8)], ids=["older epoch", "older commands"]
)
def test_a_stale_record_of_a_manager_is_refused(epoch, commands) -> None:
    report = Report("n1", "n1-boot1", epoch=7, commands=9)
    stale = replace(look(START), state=replace(look(START).state, epoch=epoch, commands=commands))
    assert not step(report, NOTHING, stale).jobs
    assert step(report, NOTHING, look(START)).jobs


RESUMED = [
    # what it was doing, a command without result, what is found; then state, result, job
    (LocalState.STARTING, False, Sight.STOPPED, LocalState.STOPPED, Outcome.INTERRUPTED, None),
    (LocalState.STARTING, False, Sight.RUNNING, LocalState.RUNNING, Outcome.OK, None),
    (LocalState.STARTING, False, Sight.PARTLY, LocalState.STOPPING, None, JobKind.STOP),
    (LocalState.STARTING, True, Sight.STOPPED, LocalState.STOPPED, Outcome.OK, None),
    (LocalState.STOPPING, False, Sight.STOPPED, LocalState.STOPPED, Outcome.INTERRUPTED, None),
    (LocalState.STOPPING, False, Sight.RUNNING, LocalState.RUNNING, Outcome.INTERRUPTED, None),
    (LocalState.STOPPING, False, Sight.PARTLY, LocalState.RUNNING, Outcome.INTERRUPTED, None),
    (LocalState.MIGRATING, False, Sight.STOPPED, LocalState.STOPPED, Outcome.OK, None),
    (LocalState.MIGRATING, False, Sight.RUNNING, LocalState.RUNNING, Outcome.FAILED, None),
    (LocalState.MIGRATING, False, Sight.PARTLY, LocalState.BLOCKED, Outcome.BLOCKED, None),
    (LocalState.RUNNING, True, Sight.RUNNING, LocalState.RUNNING, Outcome.OK, None),
    (LocalState.RUNNING, True, Sight.STOPPED, LocalState.STOPPED, Outcome.OK, None),
    (LocalState.RUNNING, True, Sight.PARTLY, LocalState.STARTING, Outcome.OK, JobKind.RESTART),
    (LocalState.UNKNOWN, True, Sight.RUNNING, LocalState.RUNNING, Outcome.OK, None),
    (LocalState.BLOCKED, True, Sight.STOPPED, LocalState.STOPPED, Outcome.OK, None),
    (LocalState.BLOCKED, True, Sight.RUNNING, LocalState.BLOCKED, Outcome.OK, None),
]


@pytest.mark.parametrize(("before", "resolved", "sight", "after", "outcome", "job"), RESUMED)
def test_a_new_daemon_looks_before_it_concludes(
    before, resolved, sight, after, outcome, job
) -> None:
    report, memory = resume(has(before, resolved=resolved), "n1", "n1-boot1")
    status = START if before is not LocalState.STOPPING else STOP
    probing = step(report, memory, look(status))
    assert jobs(probing) == [(JobKind.PROBE, "web")]
    ended = look(status, ends=[end(JobKind.PROBE, sight=sight)])
    taken = step(probing.report, probing.memory, ended)
    assert local(taken).state is after
    result = taken.report.results.get("7.1")
    assert (result and result.outcome) == outcome
    assert [one.kind for one in taken.jobs] == ([job] if job else [])


@pytest.mark.parametrize("elsewhere", [True, False], ids=["elsewhere", "unknown"])
def test_what_runs_in_part_after_a_reset_is_not_restarted_but_cleaned_up(elsewhere) -> None:
    report, memory = resume(has(LocalState.RUNNING, resolved=True), "n1", "n1-boot2")
    record = started("n2", uid="7.2") if elsewhere else None
    probing = step(report, memory, replace(look(), state=None))
    ended = look(record, ends=[end(JobKind.PROBE, sight=Sight.PARTLY)])
    if not elsewhere:
        ended = replace(ended, state=None)
    taken = step(probing.report, probing.memory, ended)
    assert [(one.kind, one.purpose) for one in taken.jobs] == [(JobKind.STOP, Purpose.CLEAN_UP)]


def test_a_stop_of_what_the_newest_configuration_may_declare_waits_for_that() -> None:
    newer = replace(look(STOP, desired()).state, config_version=2)
    waits = step(Report("n1", "n1-boot1"), NOTHING, replace(look(STOP, desired()), state=newer))
    assert not waits.report.results and not waits.jobs
    told = step(Report("n1", "n1-boot1"), NOTHING, look(STOP, desired()))
    assert told.report.results["7.1"].outcome is Outcome.BLOCKED


@pytest.mark.parametrize(
    ("service_state", "local_state", "probes"),
    [
        (ServiceState.ERROR, LocalState.BLOCKED, ()),
        (ServiceState.PROBE, LocalState.UNKNOWN, ("web",)),
    ],
)
def test_nothing_binds_a_node_while_all_is_left_to_the_operator(
    service_state, local_state, probes
) -> None:
    record = {"disarm": "disarming", "disarm_mode": "ignore", "probes": probes}
    taken = step(has(local_state), NOTHING, look(command(service_state), record=record))
    assert taken.report.mode is Mode.DISARM
    assert taken.report.running() == []


@pytest.mark.parametrize("ignored", [True, False])
def test_what_is_left_to_its_operator_is_not_watched_before_the_manager_let_go_of_it(
    ignored,
) -> None:
    due = Memory(running_since={"web": 1.0}, monitor_due={"web": 2.0})
    asked = desired(replace(WEB, ignored=ignored))
    taken = step(has(LocalState.RUNNING), due, look(command(ServiceState.STARTED), asked))
    assert jobs(taken) == ([] if ignored else [(JobKind.MONITOR, "web")])


def test_a_drained_node_lets_go_of_all_that_is_left_to_the_operator() -> None:
    record = {"disarm": "disarming", "disarm_mode": "ignore"}
    drained = desired(WEB, maintenance={"n1": Maintenance("memory")})
    taken = step(Report("n1", "n1-boot1"), NOTHING, look(None, drained, record=record))
    assert taken.report.mode is Mode.DISARM


@pytest.mark.parametrize("local_state", [LocalState.STOPPED, LocalState.FAILED])
def test_a_new_daemon_does_not_doubt_what_is_gone(local_state) -> None:
    report, memory = resume(has(local_state), "n1", "boot2")
    assert not memory.unprobed
    assert report.boot == "boot2"


@pytest.mark.parametrize(
    ("boot", "expected"),
    [("n1-boot1", LocalState.RUNNING), ("n1-boot2", LocalState.UNKNOWN)],
)
def test_what_ran_in_an_earlier_start_of_the_node_is_not_reported_to_run(boot, expected) -> None:
    report, memory = resume(has(LocalState.RUNNING), "n1", boot)
    assert report.services["web"].state is expected
    assert memory.unprobed == {"web"}


def test_the_first_daemon_of_all_begins_with_nothing() -> None:
    assert resume(None, "n1", "boot1") == (Report("n1", "boot1"), NOTHING)


@pytest.mark.parametrize(
    "local_state", [LocalState.RUNNING, LocalState.STARTING, LocalState.UNKNOWN]
)
def test_without_a_fresh_lease_everything_is_stopped(local_state) -> None:
    taken = step(has(local_state), NOTHING, look(START, lease_trouble="was not renewed"))
    assert taken.report.lease_lost
    assert [(job.kind, job.purpose) for job in taken.jobs] == [(JobKind.STOP, Purpose.AWAY)]


@pytest.mark.parametrize(("since", "again"), [(971.0, False), (970.0, True)])
def test_without_a_fresh_lease_what_could_not_be_stopped_is_tried_again_in_half_a_minute(
    since, again
) -> None:
    """Its stop failed while the storage was away, and the node comes back once nothing runs."""
    lost = look(started("n1"), lease_trouble="was not renewed")
    taken = step(has(LocalState.BLOCKED, since=since), NOTHING, lost)
    assert jobs(taken) == ([(JobKind.STOP, "web")] if again else [])


def test_without_a_fresh_lease_nothing_is_started() -> None:
    taken = step(Report("n1", "n1-boot1"), NOTHING, look(START, lease_trouble="was not renewed"))
    assert not taken.jobs
    assert not taken.report.accepted


@pytest.mark.parametrize("kind", [JobKind.MONITOR, JobKind.PROBE])
def test_without_a_fresh_lease_a_failed_service_is_not_restarted(kind) -> None:
    memory = Memory(unprobed=frozenset({"web"})) if kind is JobKind.PROBE else NOTHING
    ended = look(
        started("n1"), ends=[end(kind, sight=Sight.PARTLY)], lease_trouble="was not renewed"
    )
    taken = step(has(LocalState.RUNNING), memory, ended)
    assert [job.kind for job in taken.jobs] == [JobKind.STOP]


def test_what_was_stopped_for_the_lease_is_not_started_again_by_itself() -> None:
    report = has(LocalState.STOPPING, resolved=True)
    ended = look(started("n1"), ends=[end(JobKind.STOP, purpose=Purpose.AWAY)])
    taken = step(report, NOTHING, ended)
    assert local(taken).state is LocalState.STOPPED
    assert taken.report.results["7.1"] == RESULT
    assert not taken.jobs
    assert not taken.report.lease_lost


def test_a_service_that_fails_is_restarted_here_and_then_cleaned_up_for_the_manager() -> None:
    failed = look(started("n1"), ends=[end(JobKind.MONITOR, sight=Sight.PARTLY)])
    first = step(has(LocalState.RUNNING, resolved=True), NOTHING, failed)
    assert (jobs(first), local(first).restarts) == ([(JobKind.RESTART, "web")], 1)
    again = look(started("n1"), ends=[end(JobKind.RESTART)])
    up = step(first.report, first.memory, again)
    assert local(up).state is LocalState.RUNNING
    second = step(up.report, up.memory, failed)
    assert [(job.kind, job.purpose) for job in second.jobs] == [(JobKind.STOP, Purpose.CLEAN_UP)]
    ended = look(started("n1"), ends=[end(JobKind.STOP, purpose=Purpose.CLEAN_UP)])
    assert local(step(second.report, second.memory, ended)).state is LocalState.FAILED


def test_a_service_that_ran_well_for_a_minute_has_its_restarts_back() -> None:
    running = has(LocalState.RUNNING, resolved=True, restarts=1)
    first = step(running, NOTHING, look(started("n1"), now=50.0))
    assert not local(first).settled
    busy = look(started("n1"), now=109.9, busy=["web"])
    assert not local(step(first.report, first.memory, busy)).settled
    later = step(first.report, first.memory, look(started("n1"), now=110.0))
    assert (local(later).settled, local(later).restarts) == (True, 0)


def test_a_running_service_is_monitored_at_its_interval() -> None:
    running = has(LocalState.RUNNING, resolved=True)
    first = step(running, NOTHING, look(started("n1"), now=50.0))
    assert not first.jobs
    assert not step(first.report, first.memory, look(started("n1"), now=59.9)).jobs
    due = step(first.report, first.memory, look(started("n1"), now=60.0))
    assert jobs(due) == [(JobKind.MONITOR, "web")]


@pytest.mark.parametrize(
    "status",
    [
        started("n2", uid="7.2"),
        ServiceStatus(ServiceState.STOPPED),
        started("n1", state=ServiceState.RECOVERY, uid=""),
    ],
)
def test_what_the_manager_has_elsewhere_is_stopped_here(status) -> None:
    taken = step(has(LocalState.RUNNING), NOTHING, look(status))
    assert [(job.kind, job.purpose) for job in taken.jobs] == [(JobKind.STOP, Purpose.AWAY)]
    gone = step(has(LocalState.STOPPED), NOTHING, look(status))
    assert not gone.jobs
    assert not gone.report.services


def test_what_the_manager_takes_to_run_here_is_looked_at() -> None:
    adopt = started("n1", uid="7.5")
    first = step(Report("n1", "n1-boot1"), NOTHING, look(adopt))
    assert jobs(first) == [(JobKind.PROBE, "web")]
    job = end(JobKind.PROBE, sight=Sight.STOPPED)
    taken = step(first.report, first.memory, look(adopt, ends=[job]))
    assert (local(taken).state, local(taken).uid) == (LocalState.STOPPED, "7.5")


@pytest.mark.parametrize(("sight", "found"), [(Sight.STOPPED, False), (Sight.PARTLY, True)])
@pytest.mark.parametrize(("uid", "probe"), [("", "web"), ("7.3", "7.3")])
def test_a_probe_is_answered_and_what_runs_is_looked_at_again_later(
    sight, found, uid, probe
) -> None:
    asked = ServiceStatus(ServiceState.PROBE, uid=uid)
    record = {"record": {"probes": ("web",)}}
    first = step(Report("n1", "n1-boot1"), NOTHING, look(asked, **record))
    assert jobs(first) == [(JobKind.PROBE, "web")]
    ends = [JobEnd(first.jobs[0], sight=sight)]
    ended = look(asked, ends=ends, record={"probes": ("web",)})
    taken = step(first.report, first.memory, ended)
    assert taken.report.found == {probe: found}
    assert not taken.jobs
    later = look(asked, now=60.0, record={"probes": ("web",)})
    assert bool(step(taken.report, taken.memory, later).jobs) == found


def test_uids_that_the_manager_no_longer_names_are_forgotten() -> None:
    taken = step(has(LocalState.RUNNING, resolved=True), NOTHING, look(started("n1", uid="7.9")))
    assert not taken.report.accepted
    assert not taken.report.results


def test_nothing_is_forgotten_while_the_managers_record_cannot_be_read() -> None:
    report = has(LocalState.RUNNING, resolved=True)
    blind = replace(look(), state=None)
    assert step(report, NOTHING, blind).report == report


def test_when_nothing_changes_the_report_stays_the_same_object() -> None:
    first = step(has(LocalState.RUNNING, resolved=True), NOTHING, look(started("n1")))
    again = step(first.report, first.memory, look(started("n1"), now=51.0))
    assert again.report is first.report


@pytest.mark.parametrize("local_state", list(LocalState))
def test_a_report_comes_back_from_its_record_whatever_a_newer_version_adds(local_state) -> None:
    report = has(local_state, resolved=True, restarts=2, settled=True)
    document = {**report_document(report), "from the future": 1}
    assert report_from_document(document) == report


def test_what_was_taken_out_of_the_configuration_unheard_is_stopped() -> None:
    nothing = desired()
    taken = step(has(LocalState.RUNNING), NOTHING, look(desired_=nothing))
    assert jobs(taken) == [(JobKind.STOP, "web")]
    # A configuration older than the manager's says nothing of that.
    old = look(desired_=replace(nothing, version=0))
    assert not [kind for kind, _one in jobs(step(has(LocalState.RUNNING), NOTHING, old))]


def test_what_is_looked_for_again_is_not_kept_running_by_a_node_that_heard_of_nothing() -> None:
    record = {"record": {"probes": ("web",)}}
    again = look(ServiceStatus(ServiceState.PROBE, uid="7.3"), **record)
    taken = step(has(LocalState.RUNNING), NOTHING, again)
    assert jobs(taken) == [(JobKind.PROBE, "web")]
    assert not taken.report.services and not taken.report.found


def probed(sight: Sight, report: Report | None = None):
    """Return the step after the probe 7.3 for web ended."""
    asked = ServiceStatus(ServiceState.PROBE, uid="7.3")
    job = JobEnd(Job(JobKind.PROBE, WEB, "7.3"), sight=sight)
    observed = look(asked, ends=[job], record={"probes": ("web",)})
    return step(report or Report("n1", "n1-boot1"), NOTHING, observed)


def test_what_a_probe_finds_is_stopped_if_the_host_lease_is_lost_before_it_is_taken_up() -> None:
    found = probed(Sight.RUNNING)
    assert found.report.running() == ["web"]
    lost = step(found.report, found.memory, look(lease_trouble="was not renewed"))
    assert jobs(lost) == [(JobKind.STOP, "web")]


def test_what_a_probe_finds_is_not_restarted_before_it_is_taken_up() -> None:
    found = probed(Sight.PARTLY)
    asked = ServiceStatus(ServiceState.PROBE, uid="7.3")
    later = step(found.report, found.memory, look(asked, record={"probes": ("web",)}))
    assert local(later).state is LocalState.UNKNOWN
    assert not later.jobs


def test_what_a_later_probe_does_not_find_any_more_is_forgotten() -> None:
    found = probed(Sight.RUNNING)
    assert not probed(Sight.STOPPED, found.report).report.services


def test_what_was_begun_is_known_to_be_here_until_it_ends_though_it_is_looked_for() -> None:
    asked = ServiceStatus(ServiceState.PROBE, uid="7.3")
    observed = look(asked, busy={"web"}, record={"probes": ("web",)})
    taken = step(has(LocalState.STARTING), NOTHING, observed)
    assert local(taken).state is LocalState.STARTING


@pytest.mark.parametrize("status", [None, started("n2")], ids=["undeclared", "elsewhere"])
@pytest.mark.parametrize(("since", "again"), [(971.0, False), (970.0, True), (1001.0, True)])
def test_what_could_not_be_stopped_and_nobody_asks_for_is_tried_again_in_half_a_minute(
    status, since, again
) -> None:
    declared = desired() if status is None else desired(WEB)
    taken = step(has(LocalState.BLOCKED, since=since), NOTHING, look(status, declared))
    assert jobs(taken) == ([(JobKind.STOP, "web")] if again else [])


def test_a_service_is_not_restarted_by_a_look_that_ends_while_the_cluster_is_disarmed() -> None:
    frozen = started("n1", state=ServiceState.FREEZE, before="started")
    disarmed = {"record": {"disarm": "disarmed", "disarm_mode": "freeze"}}
    running = replace(has(LocalState.RUNNING, resolved=True), mode=Mode.DISARM)
    failed = end(JobKind.MONITOR, sight=Sight.PARTLY)
    taken = step(running, NOTHING, look(frozen, ends=[failed], **disarmed))
    assert not taken.jobs
    assert local(taken).state is LocalState.RUNNING


IGNORED = desired(replace(WEB, ignored=True))


def test_what_was_left_to_its_operator_keeps_the_node_bound_to_its_watchdog() -> None:
    left = step(has(LocalState.RUNNING), NOTHING, look(desired_=IGNORED))
    assert not left.report.services
    assert left.report.left == ("web",)
    assert left.report.binds_watchdog(left.report)
    lost = step(left.report, left.memory, look(desired_=IGNORED, lease_trouble="was not renewed"))
    assert not lost.jobs, "it is not stopped either"


@pytest.mark.parametrize("sight", [Sight.RUNNING, Sight.STOPPED])
def test_what_was_left_is_looked_for_and_stopped_once_it_is_managed_again_without_a_lease(
    sight,
) -> None:
    before = Report("n1", "n1-boot1", left=("web",))
    asked = ServiceStatus(ServiceState.PROBE, uid="7.3")
    lost = look(asked, record={"probes": ("web",)}, lease_trouble=LOST)
    begun = step(before, NOTHING, lost)
    assert jobs(begun) == [(JobKind.PROBE, "web")]
    ended = JobEnd(begun.jobs[0], sight=sight)
    found = step(begun.report, begun.memory, replace(lost, ended=(ended,)))
    assert jobs(found) == ([(JobKind.STOP, "web")] if sight is Sight.RUNNING else [])
    assert not found.report.left


def test_what_did_not_run_here_when_it_was_left_to_its_operator_binds_nothing() -> None:
    left = step(has(LocalState.FAILED), NOTHING, look(desired_=IGNORED))
    assert not left.report.binds_watchdog(left.report)


def test_a_disarm_frees_a_node_from_its_watchdog_only_once_the_storage_says_so() -> None:
    left = step(has(LocalState.RUNNING), NOTHING, look(desired_=IGNORED)).report
    disarmed = replace(left, mode=Mode.DISARM)
    assert disarmed.binds_watchdog(None)
    assert disarmed.binds_watchdog(left)
    assert not disarmed.binds_watchdog(disarmed)
    assert left.binds_watchdog(disarmed), "it is armed again"


@pytest.mark.parametrize(
    ("status", "found", "stays"),
    [
        (None, {}, True),
        (ServiceStatus(ServiceState.PROBE, uid="7.3"), {}, True),
        (ServiceStatus(ServiceState.PROBE, uid="7.3"), {"7.3": False}, False),
        (started("n2"), {}, False),
    ],
    ids=["ignored", "searched", "answered for", "taken up"],
)
def test_what_was_left_is_remembered_until_it_is_answered_for(status, found, stays) -> None:
    before = Report("n1", "n1-boot1", left=("web",), found=found)
    record = {"record": {"probes": ("web",)}}
    taken = step(before, NOTHING, look(status, IGNORED, busy={"web"}, **record))
    assert bool(taken.report.left) == stays


def test_a_node_that_was_started_anew_has_nothing_left_of_that() -> None:
    before = Report("n1", "n1-boot1", left=("web",))
    assert resume(before, "n1", "n1-boot1")[0].left == ("web",)
    assert resume(before, "n1", "n1-boot2")[0].left == ()


def migrating(one=WEB):
    return started("n3", one, state=ServiceState.MIGRATE, target="n1")


MIGRATES = replace(WEB, live_migration=True)
CAME = replace(START, from_node="n3")


@pytest.mark.parametrize("declared", [(CHANGED,), ()], ids=["redefined", "removed"])
def test_what_came_while_it_ran_is_taken_in_by_the_definition_it_runs_by(declared) -> None:
    before = step(Report("n1", "n1-boot1"), NOTHING, look(migrating(), desired(MIGRATES)))
    during = step(before.report, before.memory, look(migrating(), desired(*declared)))
    taken = step(during.report, during.memory, look(CAME, desired(*declared)))
    assert [(job.kind, job.service) for job in taken.jobs] == [(JobKind.START, MIGRATES)]


def test_what_came_while_it_ran_is_stopped_by_the_definition_it_runs_by() -> None:
    before = step(Report("n1", "n1-boot1"), NOTHING, look(migrating(), desired(MIGRATES)))
    taken = step(before.report, before.memory, look(STOP, desired()))
    assert [(job.kind, job.service) for job in taken.jobs] == [(JobKind.STOP, MIGRATES)]


LOST = "was not renewed"


@pytest.mark.parametrize("declared", [(MIGRATES,), ()], ids=["declared", "removed"])
def test_what_came_to_a_node_that_lost_its_host_lease_is_stopped_and_then_binds_it_no_more(
    declared,
) -> None:
    before = step(Report("n1", "n1-boot1"), NOTHING, look(migrating(), desired(MIGRATES)))
    came = replace(command(ServiceState.REQUEST_START, MIGRATES), from_node="n3")
    lost = look(came, desired(*declared), lease_trouble=LOST)
    taken = step(before.report, before.memory, lost)
    assert [(job.kind, job.service) for job in taken.jobs] == [(JobKind.STOP, MIGRATES)]
    stopped = end(JobKind.STOP, one=MIGRATES, purpose=taken.jobs[0].purpose)
    gone = step(taken.report, taken.memory, replace(lost, ended=(stopped,)))
    assert gone.report.results["7.1"].outcome is Outcome.INTERRUPTED
    assert not gone.jobs
    after = step(gone.report, gone.memory, lost)
    assert not after.jobs
    assert not after.report.binds_watchdog(after.report)


def test_a_stop_of_what_came_to_a_node_that_lost_its_host_lease_is_carried_out() -> None:
    before = step(Report("n1", "n1-boot1"), NOTHING, look(migrating(), desired(MIGRATES)))
    stop = replace(STOP, from_node="n3")
    taken = step(before.report, before.memory, look(stop, desired(), lease_trouble=LOST))
    assert jobs(taken) == [(JobKind.STOP, "web")]
    assert taken.jobs[0].purpose is Purpose.COMMAND


@pytest.mark.parametrize(
    "status",
    [migrating(), replace(CAME, digest="of another definition")],
    ids=["still on its way", "not known by which definition"],
)
def test_what_may_be_here_and_cannot_be_stopped_keeps_the_watchdog_armed(status) -> None:
    before = step(Report("n1", "n1-boot1"), NOTHING, look(migrating(), desired(MIGRATES)))
    taken = step(before.report, before.memory, look(status, desired(), lease_trouble=LOST))
    assert not taken.jobs
    assert taken.report.binds_watchdog(taken.report)


def test_no_service_is_started_by_a_definition_with_which_it_once_came() -> None:
    before = step(Report("n1", "n1-boot1"), NOTHING, look(migrating(), desired(MIGRATES)))
    elsewhere = step(before.report, before.memory, look(started("n3"), desired(CHANGED)))
    assert not elsewhere.memory.coming
    taken = step(before.report, before.memory, look(START, desired(CHANGED)))
    assert not taken.jobs


def test_what_runs_here_is_restarted_as_often_as_it_is_declared_by_now() -> None:
    running = has(LocalState.RUNNING, resolved=True, restarts=1)
    status = command(ServiceState.STARTED)
    more = service(max_restart=2)
    heard = step(running, NOTHING, look(status, desired(more)))
    failed = look(status, desired(more), ends=[end(JobKind.MONITOR)])
    assert jobs(step(heard.report, heard.memory, failed)) == [(JobKind.RESTART, "web")]
    unheard = look(status, ends=[end(JobKind.MONITOR)])
    assert jobs(step(running, NOTHING, unheard)) == [(JobKind.STOP, "web")]


def test_what_runs_here_takes_up_secrets_and_the_level_of_its_monitors_and_runs_on() -> None:
    parameters = {"x": "1", "y_file": "z"}
    plain = replace(WEB.resources[0], parameters=parameters)
    first = replace(plain, secrets=("x",), sources={"y_file": "12"}, check_level=20)
    named = replace(WEB, resources=(first,))
    assert service_from_options(service_document(named)) == named
    running = has(LocalState.RUNNING, resolved=True)
    before = replace(WEB, resources=(plain,))
    running = running.with_service("web", replace(running.services["web"], definition=before))
    taken = step(running, NOTHING, look(command(ServiceState.STARTED), desired(named)))
    assert local(taken).definition == named
    assert not jobs(taken)


def test_what_runs_here_keeps_its_definition_until_it_is_stopped() -> None:
    changed = replace(CHANGED, max_restart=2)
    running = has(LocalState.RUNNING, resolved=True)
    taken = step(running, NOTHING, look(command(ServiceState.STARTED), desired(changed)))
    assert local(taken).definition == WEB


DEAD = NodeStatus(NodeState.OFF, boot="n1-boot1", proof=verified_off("fenced"))


def test_what_fails_on_a_node_that_was_proved_dead_is_not_restarted_there() -> None:
    failed = [end(JobKind.MONITOR, sight=Sight.PARTLY)]
    observed = look(started("n2"), ends=failed, record={"nodes": {"n1": DEAD}})
    taken = step(has(LocalState.RUNNING), NOTHING, observed)
    assert [job.kind for job in taken.jobs] == [JobKind.STOP]
    alive = step(has(LocalState.RUNNING), NOTHING, look(started("n1"), ends=failed))
    assert [job.kind for job in alive.jobs] == [JobKind.RESTART]


def test_a_node_that_was_proved_dead_says_why_it_stops_its_services() -> None:
    observed = look(None, record={"nodes": {"n1": DEAD}})
    (job,) = step(has(LocalState.RUNNING), NOTHING, observed).jobs
    assert (job.kind, job.purpose) == (JobKind.STOP, Purpose.AWAY)
    assert job.reason.endswith("declares this start of the node dead: fenced")


def test_a_node_that_was_shut_down_in_order_may_come_back_without_a_new_start() -> None:
    left = replace(DEAD, power=Power.LEFT_OFF, proof=clean_shutdown())
    observed = look(None, record={"nodes": {"n1": left}})
    assert not step(has(LocalState.RUNNING), NOTHING, observed).jobs
