# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an LRM says of its node, when it is bound to the watchdog, and when it may end."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.lrm import step
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.lrm.round import (
    IDLE_AFTER,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.jobs import (
    Job,
    JobEnd,
    JobKind,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.maintenance import (  # noqa: E501
    Maintenance,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.policy import (
    Policy,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    CommandResult,
    LocalService,
    LocalState,
    Mode,
    Outcome,
    Phase,
    Report,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    NodeState,
    NodeStatus,
    ServiceStatus,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.states import (
    ServiceState,
)
from ansible_collections.holdfast.ha.tests.unit.cluster.samples import (
    desired,
    service,
    started,
    state,
)

WEB = service(live_migration=True)
RUNS = LocalService(WEB, LocalState.RUNNING, "7.1")


def look(state_, desired_=None, **changes):
    return step.LocalObservation(100.0, 1000.0, state_, desired_ or desired(WEB), **changes)


def lrm(phase=Phase.ACTIVE, **changes):
    return Report("n1", "n1-boot1", phase=phase, services={"web": RUNS}, **changes)


def turn(report, observed, memory=None):
    return step.step(report, memory or step.Memory(), observed)


@pytest.mark.parametrize(
    ("policy", "shutdown", "mode"),
    [
        ("conditional", "reboot", Mode.RESTART),
        ("conditional", "poweroff", Mode.SHUTDOWN),
        ("freeze", "poweroff", Mode.RESTART),
        ("failover", "reboot", Mode.SHUTDOWN),
        ("migrate", "reboot", Mode.MAINTENANCE),
        ("migrate", "restart", Mode.RESTART),
        ("failover", "restart", Mode.RESTART),
        ("failover", "", Mode.ACTIVE),
    ],
)
def test_what_a_shutdown_means_is_the_policy(policy, shutdown, mode) -> None:
    asked = desired(WEB, policy=Policy(shutdown=policy))
    taken = turn(lrm(), look(state({"web": started("n1")}), asked, shutdown=shutdown))
    assert taken.report.mode is mode


def test_a_declared_maintenance_goes_before_the_policy() -> None:
    asked = desired(WEB, maintenance={"n1": Maintenance()})
    taken = turn(lrm(), look(state({"web": started("n1")}), asked, shutdown="poweroff"))
    assert taken.report.mode is Mode.MAINTENANCE


@pytest.mark.parametrize(
    ("shutdown", "expected"),
    [("poweroff", "poweroff"), ("reboot", "reboot"), ("restart", ""), ("", "")],
)
@pytest.mark.parametrize("policy", ["conditional", "freeze", "failover", "migrate"])
def test_an_lrm_says_that_its_node_goes_down_until_the_next_start(
    policy, shutdown, expected
) -> None:
    told = desired(WEB, policy=Policy(shutdown=policy))
    taken = turn(lrm(), look(state({"web": started("n1")}), told, shutdown=shutdown))
    assert taken.report.goes_down == expected
    again, _memory = step.resume(taken.report, "n1", "n1-boot2")
    assert not again.goes_down


def test_the_mode_is_published_before_the_services_are_stopped() -> None:
    observed = look(state({"web": started("n1")}), shutdown="poweroff")
    first = turn(lrm(), observed)
    assert not [job for job in first.jobs if job.kind is JobKind.STOP]
    second = turn(first.report, observed, first.memory)
    assert [job.kind for job in second.jobs] == [JobKind.STOP]


def test_a_restart_of_the_lrm_alone_leaves_the_services_running() -> None:
    observed = look(state({"web": started("n1")}), shutdown="restart")
    first = turn(lrm(), observed)
    second = turn(first.report, observed, first.memory)
    assert not [job for job in (*first.jobs, *second.jobs) if job.kind is JobKind.STOP]
    assert not second.ends
    frozen = started("n1", state=ServiceState.FREEZE, before="started")
    idle = replace(observed, state=state({"web": frozen}))
    assert turn(second.report, idle, second.memory).ends


def test_an_lrm_whose_service_cannot_be_stopped_does_not_end() -> None:
    observed = look(state({"web": started("n1")}), shutdown="poweroff")
    blocked = replace(RUNS, state=LocalState.BLOCKED)
    report = lrm(mode=Mode.SHUTDOWN)
    assert not turn(replace(report, services={"web": blocked}), observed).ends
    stopped = replace(RUNS, state=LocalState.STOPPED)
    assert turn(replace(report, services={"web": stopped}), observed).ends


@pytest.mark.parametrize("waited", [1.0, 60.0])
def test_what_is_frozen_already_is_stopped_before_a_reboot_goes_on(waited) -> None:
    frozen = state({"web": started("n1", state=ServiceState.FREEZE, before="started")})
    observed = look(frozen, shutdown="reboot", shutdown_for=waited)
    first = turn(lrm(), observed)
    assert not first.ends
    second = turn(first.report, observed, first.memory)
    assert [job.kind for job in second.jobs] == [JobKind.STOP]
    stopped = {"web": replace(RUNS, state=LocalState.STOPPED)}
    assert turn(replace(second.report, services=stopped), observed).ends


@pytest.mark.parametrize(
    ("shutdown", "coming", "waited", "ends"),
    [
        ("poweroff", {"state": ServiceState.MIGRATE}, 9.0, False),
        ("poweroff", {"state": ServiceState.MIGRATE}, 60.0, True),
        ("reboot", {"state": ServiceState.MIGRATE}, 59.0, False),
        ("reboot", {"state": ServiceState.FENCE, "before": "migrate"}, 9.0, False),
        ("reboot", {"state": ServiceState.RECOVERY}, 9.0, False),
        ("reboot", {"state": ServiceState.RELOCATE}, 11.0, True),
        ("restart", {"state": ServiceState.MIGRATE}, 11.0, True),
    ],
)
def test_a_node_waits_for_what_comes_while_it_runs_before_it_goes_down(
    shutdown, coming, waited, ends
) -> None:
    asked = desired(WEB, policy=Policy(shutdown_timeout=60.0))
    moving = state({"web": started("n2", target="n1", **coming)})
    mode = Mode.SHUTDOWN if shutdown == "poweroff" else Mode.RESTART
    empty = Report("n1", "n1-boot1", phase=Phase.ACTIVE, mode=mode)
    observed = look(moving, asked, shutdown=shutdown, shutdown_for=waited)
    assert turn(empty, observed).ends is ends


@pytest.mark.parametrize("waited", [1.0, 60.0])
def test_a_reboot_goes_on_once_what_cannot_be_stopped_is_in_error(waited) -> None:
    in_error = state({"web": started("n1", state=ServiceState.ERROR)})
    report = replace(
        lrm(mode=Mode.RESTART),
        services={"web": replace(RUNS, state=LocalState.BLOCKED)},
        accepted={"7.1": "web"},
    )
    observed = look(in_error, shutdown="reboot", shutdown_for=waited)
    assert turn(report, observed, step.Memory()).ends


def test_a_node_that_does_not_become_empty_in_time_stops_what_is_left() -> None:
    asked = desired(WEB, policy=Policy(shutdown="migrate", shutdown_timeout=60.0))
    for waited, mode in ((59.0, Mode.MAINTENANCE), (60.0, Mode.SHUTDOWN)):
        observed = look(
            state({"web": started("n1")}), asked, shutdown="reboot", shutdown_for=waited
        )
        assert turn(lrm(), observed).report.mode is mode
    drained = desired(WEB, maintenance={"n1": Maintenance()}, policy=Policy(shutdown_timeout=60.0))
    for shutdown, mode in (("poweroff", Mode.SHUTDOWN), ("", Mode.MAINTENANCE)):
        observed = look(
            state({"web": started("n1")}), drained, shutdown=shutdown, shutdown_for=99.0
        )
        assert turn(lrm(), observed).report.mode is mode


def test_an_emptied_node_says_that_it_goes_away_before_it_does() -> None:
    asked = desired(WEB, maintenance={"n1": Maintenance()})
    empty = replace(lrm(Phase.MAINTENANCE, mode=Mode.SHUTDOWN), services={})
    taken = turn(empty, look(state({"web": started("n2")}), asked, shutdown="poweroff"))
    assert taken.ends
    assert (taken.report.mode, taken.report.phase) == (Mode.SHUTDOWN, Phase.MAINTENANCE)


def test_what_nobody_moves_as_the_cluster_is_disarmed_is_stopped_before_its_node_goes_down() -> (
    None
):
    frozen = state({"web": started("n1", state=ServiceState.FREEZE)}, disarm="disarmed")
    asked = desired(WEB, disarm="freeze", policy=Policy(shutdown="migrate"))
    observed = look(frozen, asked, shutdown="reboot")
    first = turn(lrm(), observed)
    assert not first.ends
    second = turn(first.report, observed, first.memory)
    assert [job.kind for job in second.jobs] == [JobKind.STOP]


def test_an_lrm_of_a_drained_node_that_is_started_anew_waits_for_nothing() -> None:
    drained = desired(WEB, maintenance={"n1": Maintenance()}, policy=Policy(shutdown_timeout=60.0))
    observed = look(state({"web": started("n1")}), drained, shutdown="restart", shutdown_for=99.0)
    assert turn(lrm(), observed).report.mode is Mode.RESTART


def test_an_emptied_node_goes_down_with_what_cannot_be_stopped_in_error() -> None:
    asked = desired(WEB, policy=Policy(shutdown="migrate"))
    stuck = {"web": replace(RUNS, state=LocalState.BLOCKED)}
    blocked = replace(lrm(), services=stuck, accepted={"7.1": "web"})
    in_error = state({"web": started("n1", state=ServiceState.ERROR)})
    taken = turn(blocked, look(in_error, asked, shutdown="reboot"))
    assert taken.ends


@pytest.mark.parametrize(
    ("shutdown", "running", "ends"),
    [("restart", True, True), ("reboot", True, False), ("reboot", False, True)],
)
def test_without_a_manager_that_freezes_an_lrm_ends_when_it_safely_can(
    shutdown, running, ends
) -> None:
    local_ = RUNS if running else replace(RUNS, state=LocalState.STOPPED)
    report = replace(lrm(mode=Mode.RESTART), services={"web": local_})
    observed = look(state({"web": started("n1")}), shutdown=shutdown, shutdown_for=9.0)
    assert not turn(report, observed, step.Memory()).ends
    later = replace(observed, shutdown_for=10.0)
    assert turn(report, later, step.Memory()).ends == ends


@pytest.mark.parametrize(
    ("status", "bound"),
    [
        (started("n1"), True),
        (started("n2", state=ServiceState.MIGRATE, target="n1"), True),
        (started("n1", state=ServiceState.REQUEST_STOP), True),
        (started("n2"), False),
        (started("n1", state=ServiceState.FREEZE, before="started"), False),
        (started("n1", state=ServiceState.ERROR), False),
        (started("n1", state=ServiceState.ERROR, digest=""), True),
        (ServiceStatus(ServiceState.STOPPED, last_node="n1"), False),
    ],
)
def test_an_lrm_is_bound_by_what_is_active_or_comes(status, bound) -> None:
    taken = turn(Report("n1", "n1-boot1"), look(state({"web": status})))
    assert (taken.report.phase is Phase.ACTIVE) == bound


def test_a_stop_that_failed_again_or_while_the_cluster_is_disarmed_does_not_bind() -> None:
    again = started("n1", state=ServiceState.ERROR, digest="")
    failed = {"7.1": CommandResult("web", Outcome.BLOCKED)}
    disarmed = {"disarm": "disarming"}
    for report, changes in (
        (Report("n1", "n1-boot1", results=failed), {}),
        (Report("n1", "n1-boot1"), disarmed),
    ):
        taken = turn(report, look(state({"web": again}, **changes)))
        assert taken.report.phase is Phase.WAIT


def test_an_lrm_lets_go_when_it_had_nothing_for_long() -> None:
    nothing = look(state({}))
    first = turn(Report("n1", "n1-boot1", phase=Phase.ACTIVE), nothing)
    assert first.report.phase is Phase.ACTIVE
    later = replace(nothing, now=100.0 + IDLE_AFTER)
    assert turn(first.report, later, first.memory).report.phase is Phase.WAIT


@pytest.mark.parametrize("trouble", ["renewal_trouble", "lease_trouble"])
def test_without_a_renewed_lease_nothing_is_started(trouble) -> None:
    asked = started("n1", state=ServiceState.REQUEST_START)
    report = Report("n1", "n1-boot1", phase=Phase.ACTIVE)
    taken = turn(report, look(state({"web": asked}), **{trouble: "was not renewed"}))
    assert taken.report.phase is Phase.LOST
    assert not [job for job in taken.jobs if job.kind is JobKind.START]


def test_a_late_renewal_alone_stops_nothing() -> None:
    observed = look(state({"web": started("n1")}))
    late = turn(lrm(), replace(observed, renewal_trouble="was not renewed"))
    assert not [job for job in late.jobs if job.kind is JobKind.STOP]
    lost = turn(lrm(), replace(observed, lease_trouble="was not renewed"))
    assert [job.kind for job in lost.jobs] == [JobKind.STOP]


def test_a_node_that_is_to_be_fenced_starts_nothing() -> None:
    asked = started("n1", state=ServiceState.REQUEST_START)
    fenced = state({"web": asked}, {"n1": NodeStatus(NodeState.FENCE, boot="n1-boot1")})
    taken = turn(Report("n1", "n1-boot1", phase=Phase.ACTIVE), look(fenced))
    assert taken.report.phase is Phase.LOST
    assert not taken.jobs


@pytest.mark.parametrize(
    ("shutdown", "trouble", "state_of_web", "ends"),
    [
        ("reboot", "lease_trouble", LocalState.STOPPED, True),
        ("poweroff", "lease_trouble", LocalState.STOPPED, True),
        ("poweroff", "lease_trouble", LocalState.BLOCKED, False),
        ("poweroff", "renewal_trouble", LocalState.STOPPED, False),
        ("restart", "lease_trouble", LocalState.STOPPED, False),
        ("", "lease_trouble", LocalState.STOPPED, False),
    ],
)
def test_a_node_without_its_storage_goes_down_as_soon_as_nothing_runs_there(
    shutdown, trouble, state_of_web, ends
) -> None:
    web = replace(RUNS, state=state_of_web)
    report = replace(lrm(mode=Mode.SHUTDOWN, phase=Phase.LOST), services={"web": web})
    observed = look(None, shutdown=shutdown, shutdown_for=60.0, **{trouble: "was not renewed"})
    assert turn(report, observed).ends is ends


def test_a_disarmed_lrm_lets_go_of_the_watchdog_and_watches_nothing() -> None:
    frozen = started("n1", state=ServiceState.FREEZE, before="started")
    disarming = state({"web": frozen}, disarm="disarming", disarm_mode="freeze")
    first = turn(lrm(), look(disarming))
    assert first.report.mode is Mode.DISARM
    second = turn(first.report, look(disarming), first.memory)
    assert second.report.phase is Phase.WAIT
    assert not second.jobs


def test_what_may_be_moved_by_hand_is_forgotten_while_disarmed() -> None:
    frozen = started("n1", state=ServiceState.FREEZE, before="started")
    ignoring = state({"web": frozen}, disarm="disarmed", disarm_mode="ignore")
    assert not turn(lrm(), look(ignoring)).report.services


def test_an_ignored_service_is_watched_no_longer() -> None:
    observed = look(state({}), desired(replace(WEB, ignored=True)))
    assert not turn(lrm(), observed).report.services


COMING = started("n2", state=ServiceState.MIGRATE, target="n1")


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (COMING, ("web",)),
        (replace(COMING, state=ServiceState.RECOVERY), ("web",)),
        (started("n1", state=ServiceState.REQUEST_START, from_node="n2", digest="other"), ("web",)),
        (started("n1", state=ServiceState.REQUEST_STOP, uid="7.9"), ("web",)),
        (replace(COMING, state=ServiceState.RELOCATE), ()),
        (started("n2"), ()),
    ],
)
def test_what_may_come_while_it_runs_binds_its_target_to_the_watchdog(status, expected) -> None:
    idle = replace(lrm(), services={})
    taken = turn(idle, look(state({"web": status}))).report
    assert taken.coming == expected
    assert taken.binds_watchdog(taken) is bool(expected)


def test_what_comes_is_expected_for_as_long_as_nothing_else_can_be_read() -> None:
    waits = replace(lrm(), services={}, coming=("web",))
    for observed in (look(None), look(None, lease_trouble="was not renewed")):
        assert turn(waits, observed).report.binds_watchdog(waits)
    elsewhere = look(state({"web": started("n2")}), lease_trouble="was not renewed")
    assert not turn(waits, elsewhere).report.binds_watchdog(waits)


def migration(outcome):
    asked = started("n1", state=ServiceState.MIGRATE, target="n2", uid="7.2")
    assert not turn(lrm(), look(state({"web": asked}))).jobs
    observed = look(state({"web": replace(asked, expected=True)}))
    begun = turn(lrm(), observed)
    job = begun.jobs[0]
    assert (job.kind, job.other) == (JobKind.MIGRATE, "n2")
    assert "7.2" in begun.report.accepted
    end = JobEnd(job, outcome, text="text")
    return turn(begun.report, replace(observed, ended=(end,)), begun.memory).report


def test_a_migration_is_answered_by_what_became_of_it() -> None:
    gone = migration(Outcome.OK)
    assert gone.results["7.2"].outcome is Outcome.OK
    assert gone.services["web"].state is LocalState.STOPPED
    stays = migration(Outcome.FAILED)
    assert stays.results["7.2"].outcome is Outcome.FAILED
    assert stays.services["web"].state is LocalState.RUNNING
    assert migration(Outcome.BLOCKED).services["web"].state is LocalState.BLOCKED


def test_a_service_that_comes_is_started_with_where_it_comes_from() -> None:
    comes = started("n1", state=ServiceState.REQUEST_START, from_node="n2", uid="7.2")
    taken = turn(Report("n1", "n1-boot1"), look(state({"web": comes})))
    assert taken.jobs == (Job(JobKind.START, WEB, "7.2", other="n2"),)
