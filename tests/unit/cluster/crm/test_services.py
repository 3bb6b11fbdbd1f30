# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each state of a service: what it waits for, and where it goes from there."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired import (
    CLEAR,
    Maintenance,
    Request,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (
    Answer,
    FenceReport,
    LeaseSight,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    WORKED_ON,
    LocalService,
    LocalState,
    Outcome,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.rules import (
    NodeRule,
    ServiceRule,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    Failover,
    NodeState,
    NodeStatus,
    ServiceStatus,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.states import (
    ServiceState,
)
from ansible_collections.holdfast.ha.tests.unit.cluster.samples import (
    desired,
    kinds,
    observed,
    observed_node,
    report,
    says,
    service,
    started,
    state,
    step,
    verified_off,
    web,
)

WEB = service()
STOPPED_WEB = service(state="stopped")
NEW_WEB = replace(WEB, resources=(replace(WEB.resources[0], parameters={"x": "2"}),))
STARTING = started("n1", state=ServiceState.REQUEST_START)
STOPPING = started("n1", state=ServiceState.REQUEST_STOP)
MOVING = started("n1", state=ServiceState.RELOCATE, target="n2")


def run(status, look=None, desired_=None, nodes=None, statuses=None, **changes):
    """Return the step with web in a status and n1 as seen."""
    services = {"web": status} if status is not None else {}
    look = {"n1": look, **(nodes or {})} if look is not None else nodes
    return step(state(services, statuses), observed(desired_ or desired(WEB), look, **changes))


def found(**answers):
    return {
        node: observed_node(node, report=report(node, found={"web": answer}))
        for node, answer in answers.items()
    }


def test_a_new_service_is_asked_for_on_all_nodes_before_it_is_started() -> None:
    taken = run(None)
    assert web(taken).state is ServiceState.PROBE
    assert taken.state.probes == ("web",)
    for node in ("n1", "n2", "n3"):
        assert node in web(taken).reason


@pytest.mark.parametrize(
    ("answers", "expected", "node"),
    [
        ({"n1": False, "n2": False, "n3": False}, ServiceState.REQUEST_START, "n1"),
        ({"n1": False, "n2": True, "n3": False}, ServiceState.STARTED, "n2"),
        ({"n1": False, "n2": False}, ServiceState.PROBE, ""),
        ({"n1": True, "n2": True, "n3": False}, ServiceState.PROBE, ""),
    ],
)
def test_a_probe_adopts_starts_or_waits(answers, expected, node) -> None:
    taken = run(ServiceStatus(ServiceState.PROBE), nodes=found(**answers))
    assert (web(taken).state, web(taken).node) == (expected, node)


def test_a_service_that_runs_twice_is_started_nowhere_until_one_is_stopped_by_hand() -> None:
    twice = run(ServiceStatus(ServiceState.PROBE), nodes=found(n1=True, n2=True, n3=False))
    assert "n1 and n2" in web(twice).reason
    once = step(twice.state, observed(desired(WEB), found(n1=False, n2=True, n3=False)))
    assert (web(once).state, web(once).node) == (ServiceState.STARTED, "n2")


@pytest.mark.parametrize("state_", sorted(WORKED_ON))
def test_answers_from_before_a_node_ended_its_work_on_a_service_do_not_count(state_) -> None:
    nodes = found(n1=False, n2=False, n3=False)
    busy = {"web": LocalService(WEB, state_, "6.1")}
    at_work = observed_node("n1", report=report("n1", services=busy))
    waiting = run(ServiceStatus(ServiceState.PROBE), nodes={**nodes, "n1": at_work})
    assert "n1 is still at work on it" in web(waiting).reason
    ended = step(waiting.state, observed(desired(WEB), nodes))
    assert (web(ended).state, web(ended).from_node) == (ServiceState.PROBE, "")
    assert web(ended).probe("web") == web(ended).uid


def test_a_service_is_looked_for_without_what_a_dead_node_was_at_work_on() -> None:
    busy = {"web": LocalService(WEB, LocalState.MIGRATING, "6.1")}
    dead = observed_node("n3", heartbeat_age=40.0, report=report("n3", services=busy))
    nodes = {**found(n1=False, n2=False), "n3": dead}
    before = state(
        {"web": ServiceStatus(ServiceState.PROBE)},
        {"n3": NodeStatus(NodeState.OFF, proof=verified_off())},
    )
    taken = step(replace(before, manager="n1"), observed(desired(WEB), nodes))
    assert web(taken).state is ServiceState.REQUEST_START


@pytest.mark.parametrize(
    ("status", "look", "waits"),
    [
        (NodeState.OFF, {"heartbeat_age": 9.0}, False),
        (NodeState.UNKNOWN, {"heartbeat_age": 1.0, "beats": False}, True),
        (NodeState.OFFLINE, {"heartbeat_age": 9.0}, True),
        (NodeState.OFFLINE, {"heartbeat_age": 9.0, "lease": LeaseSight.FREE}, False),
        (NodeState.UNKNOWN, {"heartbeat_age": 33.0}, False),
    ],
)
def test_a_probe_waits_for_a_node_that_may_yet_answer(status, look, waits) -> None:
    nodes = {**found(n1=False, n2=False), "n3": observed_node("n3", report=None, **look)}
    before = state({"web": ServiceStatus(ServiceState.PROBE)}, {"n3": NodeStatus(status)})
    before = replace(before, manager="n1")
    taken = step(before, observed(desired(WEB), nodes))
    assert (web(taken).state is ServiceState.PROBE) == waits


@pytest.mark.parametrize(
    ("status", "look", "expected"),
    [
        (STARTING, says("n1"), ServiceState.REQUEST_START),
        (STARTING, says("n1", Outcome.OK, LocalState.RUNNING), ServiceState.STARTED),
        (STARTING, says("n1", Outcome.OK, uid="7.0"), ServiceState.REQUEST_START),
        (STARTING, says("n1", Outcome.BLOCKED), ServiceState.ERROR),
        (STARTING, says("n1", Outcome.INTERRUPTED), ServiceState.REQUEST_START),
        (STOPPING, says("n1", Outcome.BLOCKED), ServiceState.ERROR),
        (STOPPING, says("n1", Outcome.INTERRUPTED), ServiceState.REQUEST_STOP),
        (MOVING, says("n1"), ServiceState.RELOCATE),
        (MOVING, says("n1", Outcome.INTERRUPTED), ServiceState.RELOCATE),
        (MOVING, says("n1", Outcome.BLOCKED), ServiceState.ERROR),
        (started("n1"), says("n1", local=LocalState.RUNNING), ServiceState.STARTED),
        (started("n1"), says("n1", local=LocalState.STARTING), ServiceState.STARTED),
        (started("n1"), says("n1", local=LocalState.BLOCKED), ServiceState.ERROR),
        (started("n1"), says("n1", local=LocalState.STOPPED, uid="7.0"), ServiceState.STARTED),
    ],
)
def test_a_result_moves_a_service_on_its_own_node(status, look, expected) -> None:
    taken = run(status, look)
    assert (web(taken).state, web(taken).node) == (expected, "n1")


@pytest.mark.parametrize(
    ("status", "look"),
    [
        (STARTING, says("n1", Outcome.FAILED)),
        (started("n1"), says("n1", local=LocalState.FAILED)),
    ],
)
def test_a_failed_service_is_tried_elsewhere_and_then_is_in_error(status, look) -> None:
    second = run(status, look)
    assert (web(second).state, web(second).node) == (ServiceState.REQUEST_START, "n2")
    assert web(second).failed_nodes == ("n1",)
    third = step(
        second.state,
        observed(desired(WEB), {"n2": says("n2", Outcome.FAILED, uid=web(second).uid)}),
    )
    assert (web(third).state, web(third).node, web(third).uid) == (ServiceState.ERROR, "", "")
    assert "n1, n2" in web(third).reason


def test_a_service_that_is_no_longer_there_is_started_again() -> None:
    taken = run(started("n1"), says("n1", local=LocalState.STOPPED))
    assert web(taken).state is ServiceState.REQUEST_START
    assert "lost" in kinds(taken.state)


def test_a_command_that_was_interrupted_gets_a_new_uid() -> None:
    for status in (STARTING, STOPPING, MOVING):
        taken = run(status, says("n1", Outcome.INTERRUPTED))
        assert web(taken).uid != status.uid


@pytest.mark.parametrize(
    ("desired_", "expected"),
    [
        (desired(NEW_WEB), ServiceState.REQUEST_START),
        (desired(STOPPED_WEB), ServiceState.REQUEST_STOP),
        (desired(), ServiceState.REQUEST_STOP),
        (desired(WEB, maintenance={"n1": Maintenance()}), ServiceState.REQUEST_STOP),
    ],
)
def test_an_interrupted_start_follows_what_is_wanted_by_now(desired_, expected) -> None:
    taken = run(STARTING, says("n1", Outcome.INTERRUPTED), desired_)
    assert (web(taken).state, web(taken).node) == (expected, "n1")
    if expected is ServiceState.REQUEST_START:
        assert web(taken).digest == NEW_WEB.digest()


@pytest.mark.parametrize(
    ("desired_", "expected"),
    [
        (desired(NEW_WEB), ServiceState.REQUEST_START),
        (desired(STOPPED_WEB), ServiceState.STOPPED),
        (desired(), None),
    ],
)
def test_a_start_that_was_out_of_date_never_began_and_needs_no_stop(desired_, expected) -> None:
    taken = run(STARTING, says("n1", Outcome.REFUSED), desired_)
    status = taken.state.services.get("web")
    assert (status and status.state) == expected


@pytest.mark.parametrize("desired_", [desired(NEW_WEB), desired(STOPPED_WEB), desired()])
def test_a_running_service_that_is_wanted_otherwise_is_stopped_first(desired_) -> None:
    taken = run(started("n1"), says("n1", local=LocalState.RUNNING), desired_)
    assert (web(taken).state, web(taken).node) == (ServiceState.REQUEST_STOP, "n1")


def test_a_changed_definition_is_started_after_the_old_one_was_stopped() -> None:
    taken = run(STOPPING, says("n1", Outcome.OK), desired(NEW_WEB))
    assert web(taken).state is ServiceState.REQUEST_START
    assert web(taken).digest == NEW_WEB.digest()


def test_a_service_that_is_stopped_while_it_moves_stays_stopped() -> None:
    taken = run(MOVING, says("n1", Outcome.OK), desired(STOPPED_WEB))
    assert (web(taken).state, web(taken).node, web(taken).uid) == (ServiceState.STOPPED, "", "")


def test_a_service_whose_target_died_during_the_stop_goes_to_another_node() -> None:
    dead = {"n2": NodeStatus(NodeState.OFF, proof=verified_off())}
    nodes = {"n2": observed_node("n2", heartbeat_age=9.0)}
    taken = run(MOVING, says("n1", Outcome.OK), nodes=nodes, statuses=dead)
    assert web(taken).state is ServiceState.REQUEST_START
    assert web(taken).node in ("n1", "n3")


def test_a_removed_service_is_stopped_and_then_forgotten() -> None:
    stopping = run(started("n1"), says("n1", local=LocalState.RUNNING), desired())
    uid = web(stopping).uid
    gone = step(stopping.state, observed(desired(), {"n1": says("n1", Outcome.OK, uid=uid)}))
    assert "web" not in gone.state.services
    assert "forgotten" in kinds(gone.state)


def test_a_drain_moves_a_service_and_names_what_blocks_it() -> None:
    one = desired(WEB, maintenance={"n1": Maintenance()})
    taken = run(started("n1"), says("n1", local=LocalState.RUNNING), one)
    assert (web(taken).state, web(taken).target) == (ServiceState.RELOCATE, "n2")
    every = desired(WEB, maintenance={node: Maintenance() for node in ("n1", "n2", "n3")})
    stuck = run(started("n1"), says("n1", local=LocalState.RUNNING), every)
    assert web(stuck).state is ServiceState.STARTED
    assert "should leave n1" in web(stuck).reason
    free = step(stuck.state, observed(desired(WEB), {"n1": says("n1", local=LocalState.RUNNING)}))
    assert "should leave" not in web(free).reason


def test_a_service_fails_back_but_not_to_where_its_start_failed() -> None:
    rules = {"where": NodeRule("where", ("web",), {"n2": 1})}
    one = desired(WEB, node_rules=rules)
    running = says("n1", local=LocalState.RUNNING, settled=True)
    assert web(run(started("n1"), running, one)).target == "n2"
    failed = run(started("n1", failed_nodes=("n2",)), running, one)
    assert web(failed).state is ServiceState.STARTED
    assert (web(failed).failed_nodes, web(failed).no_failback) == ((), ("n2",))
    assert step(failed.state, observed(one, {"n1": running})).state == failed.state


def test_declaring_a_service_stopped_forgets_where_it_failed() -> None:
    status = ServiceStatus(ServiceState.STOPPED, failed_nodes=("n1",), no_failback=("n2",))
    taken = run(status, desired_=desired(STOPPED_WEB))
    assert (web(taken).failed_nodes, web(taken).no_failback) == ((), ())


def test_a_new_definition_is_tried_where_the_old_one_failed() -> None:
    failed = ServiceStatus(
        ServiceState.STOPPED, digest=WEB.digest(), failed_nodes=("n1",), last_node="n1"
    )
    assert web(run(failed)).node == "n2"
    anew = web(run(failed, desired_=desired(NEW_WEB)))
    assert (anew.node, anew.failed_nodes) == ("n1", ())


def test_a_service_that_failed_on_all_nodes_is_tried_once_more() -> None:
    failed = ServiceStatus(
        ServiceState.STOPPED, digest=WEB.digest(), failed_nodes=("n1", "n2", "n3")
    )
    assert web(run(failed)).state is ServiceState.REQUEST_START
    assert web(run(failed)).failed_nodes == ("n1", "n2", "n3")


@pytest.mark.parametrize(
    ("desired_", "left"),
    [
        (desired(WEB), False),
        (desired(STOPPED_WEB), True),
        (desired(NEW_WEB), True),
        (desired(), True),
    ],
)
def test_out_of_an_error_only_by_another_declaration(desired_, left) -> None:
    blocked = started("n1", state=ServiceState.ERROR)
    taken = run(blocked, says("n1", local=LocalState.BLOCKED), desired_)
    assert (web(taken).uid != blocked.uid) == left
    failed = started("", state=ServiceState.ERROR)
    taken = run(failed, desired_=desired_)
    status = taken.state.services.get("web")
    assert (status is None or status.state is not ServiceState.ERROR) == left


def test_a_stop_that_fails_again_and_again_is_not_tried_each_round() -> None:
    blocked = started("n1", state=ServiceState.ERROR)
    look = says("n1", local=LocalState.BLOCKED)
    first = run(blocked, look, desired(STOPPED_WEB))
    answer = says("n1", Outcome.BLOCKED, uid=web(first).uid)
    again = step(first.state, observed(desired(STOPPED_WEB), {"n1": answer}), rounds=3)
    assert (web(again).state, web(again).uid) == (ServiceState.ERROR, web(first).uid)
    later = replace(observed(desired(STOPPED_WEB), {"n1": answer}), wall=1031.0)
    assert web(step(again.state, later)).uid != web(first).uid


def test_an_error_ends_with_the_death_of_its_node() -> None:
    dead = {"n1": observed_node("n1", heartbeat_age=20.0, lease=LeaseSight.DEAD)}
    taken = run(started("n1", state=ServiceState.ERROR), nodes=dead)
    assert (web(taken).state, web(taken).node) == (ServiceState.REQUEST_START, "n2")


def test_a_recovery_without_a_node_says_so_and_is_stable() -> None:
    away = {node: Maintenance() for node in ("n1", "n2", "n3")}
    look = observed(desired(WEB, maintenance=away))
    taken = step(state({"web": started("n1", state=ServiceState.RECOVERY)}), look)
    assert web(taken).state is ServiceState.RECOVERY
    assert "n2: it is in maintenance" in web(taken).reason
    assert step(taken.state, look).state == taken.state


def test_a_service_on_a_node_that_is_no_longer_configured_says_so() -> None:
    gone = {"n9": NodeStatus(NodeState.FENCE)}
    before = state({"web": started("n9")}, gone)
    look = observed(desired(WEB))
    taken = step(before, look)
    assert web(taken).node == "n9"
    assert "n9" in web(taken).reason
    assert "configuration" in web(taken).reason
    assert not taken.fences
    assert step(taken.state, look).state == taken.state


def test_nothing_is_started_moved_or_stopped_in_global_maintenance() -> None:
    for status in (ServiceStatus(ServiceState.STOPPED), started("n1", state=ServiceState.RECOVERY)):
        taken = run(status, held="an update")
        assert web(taken) == status
    taken = run(started("n1"), says("n1", local=LocalState.RUNNING), desired(), held="an update")
    assert web(taken) == started("n1")


def test_a_failover_ends_when_its_services_run_again() -> None:
    failover = Failover("n1", confirmed=990.0, services=("web",))
    before = state({"web": started("n2", state=ServiceState.REQUEST_START)})
    before = replace(before, failovers=(failover,))
    waits = step(before, observed(desired(WEB)))
    assert not waits.state.failovers[0].finished
    done = step(before, observed(desired(WEB), {"n2": says("n2", Outcome.OK)}))
    assert done.state.failovers[0].finished
    assert done.state.failovers[0].started["web"][0] == "n2"


CLEARED = desired(WEB, requests={"web": Request(CLEAR, 5.0)})


def test_a_cleared_error_is_started_anew_and_answered_once() -> None:
    failed = started("", state=ServiceState.ERROR, failed_nodes=("n1", "n2"), last_node="n1")
    taken = run(failed, desired_=CLEARED)
    assert (web(taken).state, web(taken).failed_nodes) == (ServiceState.REQUEST_START, ())
    assert web(taken).request == 5.0
    again = replace(web(taken), state=ServiceState.ERROR, node="")
    assert web(run(again, desired_=CLEARED)).state is ServiceState.ERROR


def test_what_may_still_run_is_stopped_before_its_error_is_over() -> None:
    blocked = started("n1", state=ServiceState.ERROR)
    look = says("n1", local=LocalState.BLOCKED)
    first = run(blocked, look, CLEARED)
    assert (web(first).state, web(first).request) == (ServiceState.ERROR, 5.0)
    assert web(first).uid != blocked.uid
    stopped = says("n1", Outcome.OK, uid=web(first).uid)
    assert web(step(first.state, observed(CLEARED, {"n1": stopped}))).state in (
        ServiceState.STOPPED,
        ServiceState.REQUEST_START,
    )


def test_an_error_on_a_silent_node_is_cleared_when_the_node_is_back() -> None:
    blocked = started("n1", state=ServiceState.ERROR)
    suspect = {"n1": NodeStatus(NodeState.SUSPECT, boot="n1-boot1")}
    silent = observed_node("n1", heartbeat_age=4.0)
    away = step(state({"web": blocked}, suspect), observed(CLEARED, {"n1": silent}))
    assert web(away).request == 0.0
    back = step(away.state, observed(CLEARED, {"n1": says("n1", local=LocalState.BLOCKED)}))
    assert web(back).request == 5.0


def test_there_is_no_error_to_clear_of_what_runs() -> None:
    taken = run(started("n1"), desired_=CLEARED)
    assert kinds(taken.state) == ["refused"]
    assert web(taken).state is ServiceState.STARTED


def test_a_service_whose_last_node_is_not_its_place_waits_without_going_back_and_forth() -> None:
    rules = {"where": NodeRule("where", ("web",), {"n2": 1}, strict=True)}
    status = ServiceStatus(ServiceState.STOPPED, last_node="n1")
    off = {"n2": NodeStatus(NodeState.OFF, boot="n2-boot1", proof=verified_off())}
    look = {"n2": observed_node("n2", heartbeat_age=99.0)}
    asked = desired(WEB, node_rules=rules)
    first = run(status, nodes=look, statuses=off, desired_=asked)
    assert first.state.services["web"].state is ServiceState.STOPPED
    assert kinds(first.state).count("start") <= 1
    assert step(first.state, observed(asked, look), rounds=3).state.events == first.state.events


def test_to_forget_a_service_makes_an_older_record_count_as_older() -> None:
    before = state({"web": started("n1")})
    taken = step(before, observed(desired(replace(WEB, ignored=True))))
    assert "web" not in taken.state.services
    assert taken.state.commands > before.commands, "a node refuses a record with fewer commands"


def test_the_end_of_a_command_makes_an_older_record_count_as_older() -> None:
    before = state({"web": started("n1", state=ServiceState.REQUEST_STOP)})
    look = observed(desired(replace(WEB, state="stopped")), {"n1": says("n1", Outcome.OK)})
    taken = step(before, look)
    assert (web(taken).state, web(taken).uid) == (ServiceState.STOPPED, "")
    assert taken.state.commands > before.commands, "a node refuses a record with fewer commands"


def test_what_was_removed_while_it_migrated_is_stopped_where_it_came() -> None:
    going = started("n1", state=ServiceState.MIGRATE, target="n2")
    taken = run(going, says("n1", Outcome.OK), desired())
    status = taken.state.services["web"]
    assert (status.state, status.node) == (ServiceState.REQUEST_STOP, "n2")


def test_what_migrated_in_part_only_is_stopped_and_starts_where_it_was_to_go() -> None:
    going = started("n1", state=ServiceState.MIGRATE, target="n2")
    taken = run(going, says("n1", Outcome.BLOCKED))
    status = taken.state.services["web"]
    assert (status.state, status.node, status.target) == (ServiceState.RELOCATE, "n1", "n2")
    assert status.uid != going.uid


@pytest.mark.parametrize(
    ("uid", "state_", "after"),
    [
        ("7.1", LocalState.STOPPED, ServiceState.REQUEST_START),
        ("7.1", LocalState.BLOCKED, ServiceState.ERROR),
        ("7.0", LocalState.STOPPED, ServiceState.ERROR),
    ],
)
def test_what_could_not_be_stopped_is_in_error_until_a_new_lrm_finds_it_gone(
    uid, state_, after
) -> None:
    in_error = started("n1", state=ServiceState.ERROR, reason="its stop failed")
    taken = run(in_error, says("n1", local=state_, uid=uid))
    assert taken.state.services["web"].state is after


def test_what_was_defined_anew_while_it_migrated_is_not_taken_for_what_is_declared() -> None:
    going = started("n1", state=ServiceState.MIGRATE, target="n2")
    status = run(going, says("n1", Outcome.OK), desired(NEW_WEB)).state.services["web"]
    assert (status.state, status.node) == (ServiceState.REQUEST_START, "n2")
    assert (status.from_node, status.digest) == ("n1", WEB.digest())


def test_what_migrated_to_a_node_is_stopped_there_before_it_starts_anew_elsewhere() -> None:
    coming = replace(STARTING, from_node="n2")
    taken = run(coming, says("n1", Outcome.REFUSED), desired(NEW_WEB))
    status = taken.state.services["web"]
    assert (status.state, status.node) == (ServiceState.REQUEST_STOP, "n1")


def test_a_service_that_failed_wherever_it_may_be_is_tried_once_more_without_going_in_circles() -> (
    None
):
    mail = service("mail")
    both = ("mail", "web")
    asked = desired(
        WEB,
        mail,
        node_rules={"where": NodeRule("where", both, {"n1": 2, "n2": 1}, strict=True)},
        service_rules={"pair": ServiceRule("pair", both, "together")},
    )
    nodes = ("n1", "n2")
    failed = ServiceStatus(
        ServiceState.STOPPED, last_node="n1", failed_nodes=nodes, digest=WEB.digest()
    )
    there = started("n2", mail, failed_nodes=("n1",))
    taken = step(state({"web": failed, "mail": there}), observed(asked))
    assert kinds(taken.state).count("start") == 1
    assert taken.state.services["web"].state is ServiceState.REQUEST_START


def migrating_from_a_dead_node(**changes):
    return replace(
        started("n1", state=ServiceState.RECOVERY, target="n2", uid="", reason="n1 is dead"),
        **changes,
    )


@pytest.mark.parametrize("desired_", [desired(replace(WEB, state="stopped")), desired()])
def test_what_may_have_gone_over_before_its_node_died_is_stopped_on_its_target(desired_) -> None:
    off = {"n1": NodeStatus(NodeState.OFF, boot="n1-boot1", proof=verified_off())}
    taken = run(migrating_from_a_dead_node(), statuses=off, desired_=desired_)
    status = taken.state.services["web"]
    assert (status.state, status.node) == (ServiceState.REQUEST_STOP, "n2")


def test_what_may_have_gone_over_waits_for_others_without_forgetting_where_it_went() -> None:
    off = {"n1": NodeStatus(NodeState.OFF, boot="n1-boot1", proof=verified_off())}
    asked = desired(replace(WEB, after=("db",)), replace(service("db"), state="stopped"))
    taken = run(migrating_from_a_dead_node(), statuses=off, desired_=asked)
    assert taken.state.services["web"].target == "n2"


def test_what_may_have_gone_over_is_looked_for_there_though_no_node_can_take_it() -> None:
    off = {"n1": NodeStatus(NodeState.OFF, boot="n1-boot1", proof=verified_off())}
    asked = desired(WEB, node_rules={"home": NodeRule("home", ("web",), {"n1": 0}, strict=True)})
    status = run(migrating_from_a_dead_node(), statuses=off, desired_=asked).state.services["web"]
    assert (status.state, status.node) == (ServiceState.REQUEST_START, "n2")
    assert status.from_node == "n1"


def test_a_dead_target_is_proved_dead_anew_for_what_may_have_come_there_since() -> None:
    off = {
        node: NodeStatus(NodeState.OFF, boot=f"{node}-boot1", proof=verified_off())
        for node in ("n1", "n2")
    }
    silent = observed_node("n2", heartbeat_age=60.0, answer=Answer.NO)
    taken = run(migrating_from_a_dead_node(), statuses=off, nodes={"n2": silent})
    assert taken.state.nodes["n2"].state is NodeState.FENCE
    ended = FenceReport("n2", True, "off", sent=999.0, ended=1000.0)
    proved = step(taken.state, observed(desired(WEB), {"n2": silent}, fences=(ended,)))
    assert (web(proved).state, web(proved).node) == (ServiceState.REQUEST_START, "n3")
