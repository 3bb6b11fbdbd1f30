# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node's way from suspicion over fence and proof back to life, and the brakes on it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm import (
    step as plain_step,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.takeover import (
    take_over,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired import (
    Maintenance,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (
    Answer,
    FenceReport,
    LeaseSight,
    PowerReport,
    Timing,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    LocalService,
    LocalState,
    Mode,
    Report,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    FENCE_ARRIVES,
    Intent,
    NodeState,
    NodeStatus,
    Power,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.states import (
    ACTIVE,
    ServiceState,
)
from ansible_collections.holdfast.ha.tests.unit.cluster.samples import (
    desired,
    fence_time,
    kinds,
    lease_expired,
    observed,
    observed_node,
    pending,
    report,
    service,
    started,
    state,
    step,
    verified_off,
    web,
)

SILENT = observed_node("n1", heartbeat_age=5.0, answer=Answer.NO, lease=LeaseSight.STALE)
ASKED = replace(SILENT, answer=Answer.UNKNOWN)
WANTED = desired(service())
IN_FENCE = NodeStatus(NodeState.FENCE, reason="silent", boot="n1-boot1")
OFF = NodeStatus(
    NodeState.OFF, reason="fenced", proof=verified_off("fenced"), boot="n1-boot1", fenced=(995.0,)
)
NEW_BOOT = observed_node("n1", report=Report("n1", boot="n1-boot2"))


def n1(taken) -> NodeStatus:
    return taken.state.nodes["n1"]


def run(status, look, *, at_stake=True, desired_=WANTED, **changes):
    """Return the step with n1 in a status and as seen; web runs there if it is at stake."""
    before = state({"web": started("n1")} if at_stake else {}, {"n1": status} if status else {})
    return step(before, observed(desired_ if at_stake else desired(), {"n1": look}, **changes))


def fence_report(**changes):
    return replace(FenceReport("n1", True, "device says off", 998.0, 999.0), **changes)


def test_a_node_is_suspected_while_it_is_asked_and_fenced_when_it_does_not_answer() -> None:
    asked = run(None, ASKED)
    assert n1(asked).state is NodeState.SUSPECT
    assert not asked.fences
    silent = step(asked.state, observed(WANTED, {"n1": SILENT}))
    assert n1(silent).state is NodeState.FENCE
    assert [order.node for order in silent.fences] == ["n1"]
    assert silent.fences[0].reason == n1(silent).reason != ""
    assert silent.state.open_failover("n1").services == ("web",)


def test_a_service_of_a_silent_node_is_left_alone_without_proof() -> None:
    taken = run(None, SILENT)
    again = step(taken.state, observed(WANTED, {"n1": SILENT}, fencing=frozenset({"n1"})))
    assert web(again).state is ServiceState.FENCE
    assert web(again).underlying is ServiceState.STARTED
    assert (web(again).node, web(again).uid) == ("n1", "7.1")
    assert again.state == taken.state


def test_a_fence_that_is_called_off_leaves_nothing_to_undo() -> None:
    taken = run(None, SILENT)
    back = step(taken.state, observed(WANTED))
    assert replace(web(back), since=0.0) == started("n1")


@pytest.mark.parametrize("service_state", sorted(ACTIVE))
def test_a_proof_recovers_what_was_or_may_be_active_on_the_node(service_state) -> None:
    before = state({"web": started("n1", state=service_state)}, {"n1": IN_FENCE})
    look = observed(WANTED, {"n1": SILENT}, fences=(fence_report(),))
    taken = step(before, look)
    assert n1(taken).state is NodeState.OFF
    assert web(taken).state is ServiceState.REQUEST_START
    assert web(taken).node == "n2"


@pytest.mark.parametrize(
    ("ended", "reason"),
    [
        (fence_report(confirmed=False, text="timed out"), "timed out"),
        (fence_report(quiet=False), "went on writing"),
    ],
)
def test_a_fence_that_proves_nothing_is_tried_again_later_and_later(ended, reason) -> None:
    taken, wait = run(IN_FENCE, SILENT, fences=(ended,)), 5.0
    for attempt in range(1, 7):
        assert n1(taken).attempt == attempt
        assert reason in n1(taken).reason
        assert web(taken).underlying is ServiceState.STARTED
        assert web(taken).uid == "7.1"
        assert not taken.fences
        due = replace(observed(WANTED, {"n1": SILENT}), now=100.0 + wait - 0.1)
        assert not step(taken.state, due).fences
        assert step(taken.state, replace(due, now=100.0 + wait)).fences
        taken = step(taken.state, observed(WANTED, {"n1": SILENT}, fences=(ended,)))
        wait = min(wait * 2, 60.0)


def test_a_node_that_answers_on_the_network_is_not_dead_whatever_its_device_says() -> None:
    silent = replace(SILENT, answer=Answer.YES)
    taken = run(IN_FENCE, silent, fences=(fence_report(),))
    assert n1(taken).state is NodeState.FENCE
    assert "still answers on the network" in n1(taken).reason
    assert web(taken).underlying is ServiceState.STARTED


def test_a_fence_is_cancelled_when_the_heartbeat_returns_before_it_is_sent() -> None:
    taken = run(IN_FENCE, observed_node("n1"))
    assert n1(taken).state is NodeState.ONLINE
    assert not taken.fences
    assert "fence_cancelled" in kinds(taken.state)
    assert web(taken) == started("n1")


def test_a_fence_under_way_is_waited_for_although_the_heartbeat_returns() -> None:
    taken = run(IN_FENCE, observed_node("n1"), fencing=frozenset({"n1"}))
    assert n1(taken).state is NodeState.FENCE


def test_a_node_that_came_up_anew_is_recovered_before_its_fence_has_ended() -> None:
    under_way = replace(IN_FENCE, since=990.0, pending_fences=pending(manager=998.0))
    fencing = frozenset({"n1"})
    silent = run(under_way, SILENT, fencing=fencing).state
    assert web(step(silent, observed(WANTED, {"n1": SILENT}, fencing=fencing))).node == "n1"
    taken = step(silent, observed(WANTED, {"n1": NEW_BOOT}, fencing=fencing))
    assert web(taken).state is ServiceState.REQUEST_START
    assert (n1(taken).state, n1(taken).restarted) == (NodeState.OFF, True)
    still = step(taken.state, observed(WANTED, {"n1": NEW_BOOT}, fencing=fencing))
    assert (n1(still).state, still.powers) == (NodeState.OFF, ())
    failed = (fence_report(confirmed=False),)
    back = step(still.state, observed(WANTED, {"n1": NEW_BOOT}, fences=failed))
    assert n1(back).state is NodeState.ONLINE


def test_a_fence_that_ends_after_the_restart_powers_the_node_on_again() -> None:
    under_way = replace(IN_FENCE, since=990.0, pending_fences=pending(manager=998.0))
    fencing = frozenset({"n1"})
    silent = run(under_way, SILENT, fencing=fencing).state
    taken = step(silent, observed(WANTED, {"n1": NEW_BOOT}, fencing=fencing))
    hit = step(taken.state, observed(WANTED, {"n1": SILENT}, fences=(fence_report(),)))
    assert (n1(hit).state, hit.powers) == (NodeState.OFF, ("n1",))
    assert web(hit).node != "n1"


def test_a_fence_inherited_from_the_last_manager_waits_for_an_own_look() -> None:
    unwatched = observed_node("n1", heartbeat_age=1.0, beats=False)
    assert not run(IN_FENCE, unwatched).fences
    assert run(IN_FENCE, SILENT).fences


def test_a_fence_says_that_the_lease_ran_out_and_is_no_proof_and_says_it_once() -> None:
    ran_out = replace(SILENT, lease=LeaseSight.FAILED, lease_note="it is a virtual machine")
    taken = run(IN_FENCE, ran_out)
    assert n1(taken).state is NodeState.FENCE
    assert n1(taken).reason == "silent; it is a virtual machine"
    assert web(taken).node == "n1"
    again = step(taken.state, observed(WANTED, {"n1": ran_out}, fencing=frozenset({"n1"})))
    assert again.state == taken.state


def test_a_failed_fence_says_that_the_lease_ran_out_and_is_no_proof() -> None:
    ran_out = replace(SILENT, lease=LeaseSight.FAILED, lease_note="it is a virtual machine")
    taken = run(IN_FENCE, ran_out, fences=(fence_report(confirmed=False),))
    assert n1(taken).reason.endswith("; it is a virtual machine")
    (event,) = [one for one in taken.state.events if one.kind == "fence_failed"]
    assert "it is a virtual machine" in event.text


def test_a_run_out_host_lease_proves_a_death_even_while_a_fence_is_under_way() -> None:
    dead = replace(SILENT, lease=LeaseSight.DEAD)
    taken = run(
        replace(IN_FENCE, pending_fences=pending(manager=998.0)), dead, fencing=frozenset({"n1"})
    )
    assert n1(taken).state is NodeState.OFF
    assert web(taken).state is ServiceState.REQUEST_START
    assert not taken.powers
    later = observed(WANTED, {"n1": dead}, fences=(fence_report(),))
    ended = step(taken.state, later)
    assert ended.powers == ("n1",)
    assert n1(ended).fenced == (998.0,)


@pytest.mark.parametrize(
    ("status", "look", "expected"),
    [
        (None, SILENT, NodeState.OFFLINE),
        (None, ASKED, NodeState.OFFLINE),
        (NodeStatus(NodeState.UNKNOWN), SILENT, NodeState.UNKNOWN),
        (
            NodeStatus(NodeState.ONLINE, pending_fences=pending(manager=1001.0 - FENCE_ARRIVES)),
            SILENT,
            NodeState.FENCE,
        ),
        (
            NodeStatus(NodeState.ONLINE, pending_fences=pending(manager=999.0 - FENCE_ARRIVES)),
            SILENT,
            NodeState.OFFLINE,
        ),
    ],
)
def test_an_idle_node_is_fenced_only_if_an_earlier_fence_may_have_hit_it(
    status, look, expected
) -> None:
    assert n1(run(status, look, at_stake=False)).state is expected


@pytest.mark.parametrize(
    ("sent", "even", "expected"),
    [
        (0.0, False, 0.0),
        (990.0, False, 990.0),
        (1000.0 - FENCE_ARRIVES, True, 0.0),
        (1000.0 - FENCE_ARRIVES, False, 1000.0),
        (1000.5, True, 1000.5),
        (4600.0, False, 1000.0),
    ],
)
def test_a_fence_does_nothing_any_more_in_the_end_by_a_clock_that_ran_evenly(
    sent, even, expected
) -> None:
    fenced = NodeStatus(
        NodeState.ONLINE, boot="n1-boot1", pending_fences=pending(manager=sent, earlier=sent)
    )
    taken = n1(run(fenced, observed_node("n1"), wall_even=even))
    assert (fence_time(taken, "manager"), fence_time(taken, "earlier")) == (expected, expected)


def test_a_fence_whose_end_was_told_counts_from_then_by_this_clock_for_those_of_others() -> None:
    by_another_clock = fence_report(sent=-2600.0)
    taken = n1(
        step(
            state({"web": started("n1")}, {"n1": IN_FENCE}),
            observed(WANTED, {"n1": SILENT}, fences=(by_another_clock,)),
        )
    )
    assert (taken.fenced, fence_time(taken, "candidate")) == ((-2600.0,), 1000.0)


def test_a_fence_is_counted_once_by_whichever_clock() -> None:
    counted = NodeStatus(
        NodeState.OFF,
        boot="n1-boot1",
        fenced=(900.0, 990.0),
        pending_fences=pending(manager=990.0, candidate=900.0),
        proof=verified_off(),
    )
    taken = take_over(state({}, {"n1": counted}), 8, "n3", 2000.0).nodes["n1"]
    assert (taken.fenced, fence_time(taken, "manager")) == ((900.0, 2000.0), 2000.0)
    told = fence_report(sent=1999.5)
    later = observed(desired(), {"n1": SILENT}, fences=(told,))
    ended = n1(step(state({}, {"n1": taken}), replace(later, wall=2000.0)))
    assert ended.fenced == (900.0, 2000.0)


@pytest.mark.parametrize(
    ("look", "expected"),
    [
        (NEW_BOOT, NodeState.ONLINE),
        (observed_node("n1"), NodeState.OFF),
        (replace(NEW_BOOT, report=None), NodeState.OFF),
        (replace(NEW_BOOT, heartbeat_age=9.0), NodeState.OFF),
        (replace(NEW_BOOT, beats=False), NodeState.OFF),
    ],
)
def test_a_dead_node_is_back_only_with_another_boot(look, expected) -> None:
    taken = run(OFF, look, at_stake=False)
    assert n1(taken).state is expected


def test_a_node_that_lost_its_host_lease_and_had_stopped_all_is_back_without_a_new_start() -> None:
    expired = observed_node("n1", heartbeat_age=40.0, lease=LeaseSight.DEAD)
    dead = run(NodeStatus(NodeState.ONLINE, boot="n1-boot1"), expired).state.nodes["n1"]
    assert dead.state is NodeState.OFF
    assert n1(run(dead, observed_node("n1"), at_stake=False)).state is NodeState.ONLINE
    without = observed_node("n1", report=Report("n1", boot="n1-boot1", lease_lost=True))
    assert n1(run(dead, without, at_stake=False)).state is NodeState.OFF


def test_a_node_whose_host_lease_expired_while_it_runs_services_is_reported_not_back() -> None:
    running = LocalService(service(), LocalState.RUNNING, "1.1")
    look = observed_node("n1", report=Report("n1", boot="n1-boot1", services={"web": running}))
    taken = run(replace(OFF, fenced=(), proof=lease_expired()), look, at_stake=False)
    assert n1(taken).state is NodeState.OFF
    assert "watchdog" in n1(taken).reason


def test_a_dead_node_that_goes_on_writing_is_reported_once() -> None:
    taken = run(OFF, observed_node("n1"), at_stake=False)
    again = step(taken.state, observed(desired(), {"n1": observed_node("n1")}))
    assert kinds(again.state).count("contradiction") == 1
    assert "fence device" in n1(again).reason


def test_a_fenced_node_is_switched_on_after_its_services_were_recovered() -> None:
    taken = run(IN_FENCE, SILENT, fences=(fence_report(),))
    assert web(taken).state is ServiceState.REQUEST_START
    assert taken.powers == ("n1",)
    assert n1(taken).power == "sent"
    assert not step(taken.state, observed(WANTED, {"n1": SILENT})).powers


@pytest.mark.parametrize(
    ("status", "changes"),
    [
        (replace(OFF, fenced=()), {}),
        (replace(OFF, power=Power.ON, retry_after=101.0), {}),
        (replace(OFF, retry_after=101.0), {}),
        (OFF, {"held": "an update"}),
        (OFF, {"fencing": frozenset({"n1"})}),
        (OFF, {"desired_": desired(service(), maintenance={"n1": Maintenance()})}),
        (replace(OFF, fenced=(200.0, 600.0, 900.0)), {}),
    ],
)
def test_a_node_is_not_switched_on_without_need_or_in_a_loop(status, changes) -> None:
    look = observed(changes.pop("desired_", desired()), {"n1": SILENT}, **changes)
    assert not step(state({}, {"n1": status}), look).powers


def test_a_node_that_was_fenced_too_often_says_why_it_stays_off() -> None:
    taken = run(replace(OFF, fenced=(200.0, 600.0, 900.0)), SILENT, at_stake=False)
    assert n1(taken).power == "left off"
    assert "3 times" in n1(taken).reason


def test_switching_on_is_tried_five_times_and_then_left_to_the_operator() -> None:
    status = OFF
    for attempt in range(1, 6):
        failed = (PowerReport("n1", False, "no answer"),)
        taken = run(status, SILENT, at_stake=False, powers=failed)
        assert n1(taken).attempt == attempt
        status = replace(n1(taken), retry_after=0.0)
    assert n1(taken).power == "given up"
    assert not run(status, SILENT, at_stake=False).powers


@pytest.mark.parametrize("look", [SILENT, ASKED, replace(SILENT, lease=LeaseSight.DEAD)])
def test_global_maintenance_holds_back_fence_and_recovery(look) -> None:
    taken = run(None, look, held="an update")
    assert n1(taken).state is NodeState.SUSPECT
    assert "an update" in n1(taken).reason
    assert not taken.fences
    assert web(taken) == started("n1")
    assert not run(IN_FENCE, SILENT, held="an update").fences


def test_an_ill_manager_fences_nobody() -> None:
    assert not run(None, SILENT, storage_trouble="slow").fences
    assert not run(IN_FENCE, SILENT, storage_trouble="slow").fences
    assert n1(run(None, SILENT, storage_trouble="slow")).state is NodeState.SUSPECT


def test_a_storm_of_deaths_is_fenced_two_at_a_time() -> None:
    names = [f"n{number}" for number in range(1, 6)]
    services = {name: started(name) for name in names}
    nodes = dict.fromkeys(names, NodeStatus(NodeState.FENCE, reason="silent"))
    looks = dict.fromkeys(names, SILENT)
    before = replace(state(services, nodes), manager="n9")
    assert len(plain_step.step(before, observed(desired(), looks), Timing()).fences) == 2
    busy = observed(desired(), looks, fencing=frozenset({"n1"}))
    assert [one.node for one in plain_step.step(before, busy, Timing()).fences] == ["n2"]


def test_a_manager_neither_declares_its_own_node_dead_nor_fences_it() -> None:
    before = state({"web": started("n3")}, {"n3": NodeStatus(NodeState.FENCE, reason="inherited")})
    for lease in LeaseSight:
        silent = observed_node("n3", heartbeat_age=99.0, answer=Answer.NO, lease=lease)
        taken = step(before, observed(WANTED, {"n3": silent}))
        assert not taken.fences
        assert web(taken).underlying is ServiceState.STARTED
        assert (web(taken).node, web(taken).uid) == ("n3", "7.1")


@pytest.mark.parametrize(
    "look",
    [
        ASKED,
        SILENT,
        replace(SILENT, answer=Answer.YES, lease=LeaseSight.RENEWED),
        replace(SILENT, answer=Answer.YES),
    ],
)
@pytest.mark.parametrize("trouble", ["", "reads take 2.1 s"])
@pytest.mark.parametrize("held", ["", "an update"])
def test_a_long_wait_writes_nothing_new(look, trouble, held) -> None:
    fencing = frozenset({"n1"})
    first = observed(WANTED, {"n1": look}, storage_trouble=trouble, held=held, fencing=fencing)
    taken = step(state({"web": started("n1")}), first, rounds=2)
    older = replace(look, heartbeat_age=look.heartbeat_age + 1.0)
    second = replace(first, now=101.0, wall=1001.0, nodes={**first.nodes, "n1": older})
    assert step(taken.state, second).state == taken.state


def test_another_reason_to_wait_is_written() -> None:
    grace = replace(SILENT, answer=Answer.YES, lease=LeaseSight.RENEWED)
    taken = run(None, grace)
    ill = step(taken.state, observed(WANTED, {"n1": grace}, storage_trouble="its reads are slow"))
    assert "its reads are slow" in n1(ill).reason


LEFT = observed_node(
    "n1",
    heartbeat_age=5.0,
    answer=Answer.NO,
    lease=LeaseSight.FREE,
    report=Report("n1", "n1-boot1", mode=Mode.SHUTDOWN),
)


def test_the_services_of_a_node_that_was_shut_down_are_recovered_without_a_fence() -> None:
    taken = run(None, LEFT)
    assert n1(taken).state is NodeState.OFF
    assert "gave its host lease back" in n1(taken).proved_by
    assert (web(taken).state, web(taken).node) == (ServiceState.REQUEST_START, "n2")
    assert not taken.fences


def test_a_node_that_was_shut_down_is_left_off_and_comes_back_when_it_is_started() -> None:
    taken = run(replace(OFF, state=NodeState.ONLINE), LEFT)
    assert n1(taken).state is NodeState.OFF
    assert not step(taken.state, observed(WANTED, {"n1": LEFT}), 3).powers
    for again in (observed_node("n1"), NEW_BOOT):
        back = step(taken.state, observed(WANTED, {"n1": again}))
        assert n1(back).state is NodeState.ONLINE


def test_a_node_that_may_have_been_fenced_in_its_shutdown_is_proved_off_by_the_fence() -> None:
    assert (
        n1(run(replace(IN_FENCE, pending_fences=pending(manager=990.0)), LEFT)).state
        is NodeState.FENCE
    )


def test_a_node_that_was_shut_down_with_nothing_on_it_is_just_offline() -> None:
    assert n1(run(None, LEFT, at_stake=False)).state is NodeState.OFFLINE


def test_what_waits_frozen_on_a_silent_node_is_named() -> None:
    frozen = started("n1", state=ServiceState.FREEZE, before="started")
    taken = step(state({"web": frozen}), observed(WANTED, {"n1": SILENT}))
    assert n1(taken).state is NodeState.OFFLINE
    assert "web wait frozen" in n1(taken).reason


def without_n1(taken_state, wall: float = 1000.0):
    """Return the step of a manager in whose configuration n1 is not any more."""
    look = observed(WANTED)
    nodes = {name: one for name, one in look.nodes.items() if name != "n1"}
    return step(taken_state, replace(look, nodes=nodes, wall=wall))


def test_a_node_taken_out_of_the_configuration_is_gone_and_forgotten_an_hour_later() -> None:
    taken = without_n1(state({"web": started("n2")}))
    assert n1(taken).state is NodeState.GONE
    assert kinds(taken.state) == ["gone"]
    assert without_n1(taken.state, 4599.0).state == taken.state
    assert "n1" not in without_n1(taken.state, 4600.0).state.nodes


def test_a_node_that_is_put_back_begins_anew() -> None:
    taken = without_n1(state({"web": started("n2")}))
    assert n1(step(taken.state, observed(WANTED))).state is NodeState.ONLINE
    silent = observed_node("n1", heartbeat_age=5.0, answer=Answer.NO, beats=False)
    assert n1(step(taken.state, observed(WANTED, {"n1": silent}))).state is NodeState.UNKNOWN


def test_a_node_with_a_service_is_not_forgotten_and_one_that_is_dead_is_at_once() -> None:
    kept = n1(without_n1(state({"web": started("n1")})))
    assert kept.state is NodeState.UNKNOWN
    assert "not in the manager's configuration" in kept.reason
    dead = without_n1(state({"web": started("n2")}, {"n1": OFF}))
    assert "n1" not in dead.state.nodes


def test_a_node_that_became_manager_is_not_to_be_fenced_for_a_service_any_more() -> None:
    demanded = replace(IN_FENCE, boot="n3-boot1", demanded=True)
    before = state({"web": started("n3", state=ServiceState.FREEZE)}, {"n3": demanded})
    taken = step(before, observed(WANTED))
    assert taken.state.nodes["n3"].state is NodeState.ONLINE
    assert not taken.state.nodes["n3"].demanded


def test_a_node_that_was_switched_on_and_does_not_come_back_is_switched_on_once_more() -> None:
    waits = replace(OFF, power=Power.ON, retry_after=99.0)
    assert step(state({}, {"n1": waits}), observed(desired(), {"n1": SILENT})).powers == ("n1",)
    often = replace(waits, attempt=5)
    assert not step(state({}, {"n1": often}), observed(desired(), {"n1": SILENT})).powers


def test_a_fence_of_the_last_manager_may_still_arrive_after_an_own_one_was_proved() -> None:
    fenced = replace(IN_FENCE, pending_fences=pending(manager=990.0))
    taken = take_over(replace(state({}, {"n1": fenced}), manager="n2"), 8, "n3", 995.0)
    report = fence_report(confirmed=True)
    proved = step(taken, observed(desired(), {"n1": SILENT}, fences=(report,))).state.nodes["n1"]
    assert proved.state is NodeState.OFF
    assert fence_time(proved, "manager") == 995.0


def test_an_idle_node_back_from_a_fence_may_be_off_by_that_of_a_slower_candidate() -> None:
    back = NodeStatus(
        NodeState.ONLINE, boot="n1-boot2", fenced=(500.0,), pending_fences=pending(candidate=500.0)
    )
    silent = observed(desired(), {"n1": SILENT})
    assert n1(step(state({}, {"n1": back}), silent)).state is NodeState.FENCE
    long_ago = replace(back, pending_fences=pending(candidate=300.0))
    assert n1(step(state({}, {"n1": long_ago}), silent)).state is NodeState.OFFLINE


@pytest.mark.parametrize(
    ("look", "mode"),
    [
        (observed(desired(), {"n1": LEFT}), Mode.SHUTDOWN.value),
        (observed(desired(maintenance={"n1": Maintenance("a new board")}), {"n1": SILENT}), ""),
    ],
)
def test_an_idle_node_that_is_off_by_its_operators_will_is_left_off_soon_after_a_fence(
    look, mode
) -> None:
    back = NodeStatus(
        NodeState.ONLINE,
        boot="n1-boot2",
        fenced=(990.0,),
        pending_fences=pending(candidate=990.0),
        mode=mode,
    )
    assert n1(step(state({}, {"n1": back}), look)).state is NodeState.OFFLINE


@pytest.mark.parametrize("mode", [Mode.MAINTENANCE, Mode.RESTART, Mode.SHUTDOWN])
def test_an_idle_node_that_is_switched_off_is_left_off_although_a_fence_may_arrive(mode) -> None:
    back = NodeStatus(
        NodeState.ONLINE,
        boot="n1-boot2",
        fenced=(990.0,),
        pending_fences=pending(manager=990.0, candidate=990.0),
    )
    report = Report("n1", boot="n1-boot2", mode=mode, goes_down="poweroff")
    look = observed(desired(), {"n1": replace(SILENT, report=report)})
    assert n1(step(state({}, {"n1": back}), look)).state is NodeState.OFFLINE


@pytest.mark.parametrize("mode", [Mode.MAINTENANCE, Mode.RESTART, Mode.SHUTDOWN])
def test_an_idle_node_that_is_rebooted_soon_after_a_fence_is_switched_on_not_fenced(mode) -> None:
    back = NodeStatus(
        NodeState.ONLINE, boot="n1-boot2", pending_fences=pending(candidate=990.0), mode=mode.value
    )
    report = Report("n1", boot="n1-boot2", mode=mode, goes_down="reboot")
    taken = step(
        state({}, {"n1": back}), observed(desired(), {"n1": replace(SILENT, report=report)})
    )
    assert (n1(taken).state, taken.powers) == (NodeState.OFFLINE, ("n1",))


@pytest.mark.parametrize(
    ("report", "at_stake", "under_way", "expected"),
    [
        (Report("n1", boot="n1-boot1", goes_down="poweroff"), False, False, NodeState.OFFLINE),
        (Report("n1", boot="n1-boot1", goes_down="reboot"), False, False, NodeState.OFFLINE),
        (Report("n1", boot="n1-boot1"), False, False, NodeState.FENCE),
        (Report("n1", boot="n1-boot1", goes_down="reboot"), True, False, NodeState.FENCE),
        (Report("n1", boot="n1-boot1", goes_down="reboot"), False, True, NodeState.FENCE),
    ],
)
def test_an_idle_manager_that_goes_down_is_not_fenced_as_a_candidate_meant_to_long_before(
    report, at_stake, under_way, expected
) -> None:
    services = {"web": started("n1")} if at_stake else {}
    intent = Intent("n1", "silent", 300.0, 303.0, 7)
    taken = take_over(replace(state(services), manager="n1"), 8, "n3", 1000.0, intent)
    fencing = frozenset({"n1"}) if under_way else frozenset()
    declared = WANTED if at_stake else desired()
    look = observed(declared, {"n1": replace(SILENT, report=report)}, fencing=fencing)
    after = step(taken, look)
    assert n1(after).state is expected
    assert bool(after.fences) == (expected is NodeState.FENCE and not under_way)
    assert (after.state.open_failover("n1") is None) == (expected is NodeState.OFFLINE)


@pytest.mark.parametrize(("sent", "recorded"), [(301.5, 301.5), (304.0, 303.0)])
def test_a_failover_is_never_told_to_be_recorded_after_its_fence_was_sent(sent, recorded) -> None:
    """Another candidate may have announced its own fence meanwhile."""
    announced = Intent("n1", "silent", 300.0, 303.0, 7)
    taken = take_over(
        replace(state({"web": started("n1")}), manager="n1"), 8, "n3", 310.0, announced
    )
    fence = FenceReport("n1", True, "its own status", sent, 309.0)
    look = observed(WANTED, {"n1": SILENT}, fences=(fence,))
    (told,) = step(taken, look).state.failovers
    assert (told.suspected, told.recorded, told.fence_sent) == (recorded, recorded, sent)


def test_a_node_that_is_switched_off_in_order_is_left_off_although_a_fence_may_arrive() -> None:
    left = replace(LEFT, report=replace(LEFT.report, goes_down="poweroff"))
    taken = run(
        NodeStatus(NodeState.ONLINE, boot="n1-boot1", pending_fences=pending(manager=990.0)), left
    )
    assert (n1(taken).state, n1(taken).shut_down) == (NodeState.OFF, True)
    assert not taken.fences
    assert not step(taken.state, observed(WANTED, {"n1": left})).powers
    assert web(taken).state is ServiceState.REQUEST_START


def test_a_node_dead_by_its_lease_long_after_a_fence_of_unknown_end_is_switched_on() -> None:
    dead = {"n1": replace(SILENT, lease=LeaseSight.DEAD)}
    long_ago = replace(IN_FENCE, since=100.0, pending_fences=pending(manager=101.0))
    taken = step(state({"web": started("n1")}, {"n1": long_ago}), observed(WANTED, dead))
    assert taken.powers == ("n1",)
    earlier = replace(long_ago, since=102.0)
    assert not step(state({"web": started("n1")}, {"n1": earlier}), observed(WANTED, dead)).powers


@pytest.mark.parametrize("earlier", [{"candidate": 990.0}, {"manager": 990.0}])
@pytest.mark.parametrize(
    ("goes_down", "powers"), [("", ("n1",)), ("reboot", ("n1",)), ("poweroff", ())]
)
def test_a_node_that_restarts_soon_after_a_fence_is_not_fenced_but_switched_on(
    earlier, goes_down, powers
) -> None:
    back = NodeStatus(
        NodeState.ONLINE,
        boot="n1-boot2",
        mode=Mode.RESTART.value,
        pending_fences=pending(**earlier),
    )
    last = report("n1", mode=Mode.RESTART, goes_down=goes_down)
    look = observed(desired(), {"n1": replace(SILENT, report=last)})
    taken = step(state({}, {"n1": back}), look)
    assert n1(taken).state is NodeState.OFFLINE
    assert taken.powers == powers
    tried = step(taken.state, replace(look, powers=(PowerReport("n1", True, ""),)))
    assert not tried.powers
    assert n1(step(tried.state, observed(desired()))).power == ""


def test_a_node_that_restarts_while_the_cluster_is_disarmed_is_left_as_it_is() -> None:
    back = NodeStatus(
        NodeState.OFFLINE,
        mode=Mode.RESTART.value,
        pending_fences=pending(candidate=990.0),
        proof=verified_off(),
    )
    disarmed = state({}, {"n1": back}, disarm="disarmed", disarm_mode="freeze")
    assert not step(disarmed, observed(desired(disarm="freeze"), {"n1": SILENT})).powers


def test_a_start_asked_of_a_node_that_was_started_anew_is_left_to_it() -> None:
    asked = started("n1", state=ServiceState.FREEZE, before="request_start")
    held = replace(asked, state=ServiceState.FENCE)
    taken = step(
        state({"web": held}, {"n1": IN_FENCE}), observed(WANTED, {"n1": NEW_BOOT}), rounds=3
    )
    status = taken.state.services["web"]
    assert (status.state, status.node, status.uid) == (ServiceState.REQUEST_START, "n1", "7.1")


def test_the_lease_of_a_node_that_was_disarmed_is_no_proof_once_it_ran_out() -> None:
    disarmed = {"n1": NodeStatus(NodeState.ONLINE, boot="n1-boot1", mode="disarm")}
    dead = observed_node("n1", heartbeat_age=60.0, answer=Answer.NO, lease=LeaseSight.DEAD)
    taken = step(
        state({"web": started("n1")}, disarmed), observed(desired(service()), {"n1": dead})
    )
    assert taken.state.nodes["n1"].state is NodeState.FENCE


def test_that_no_manager_noted_its_disarm_makes_its_lease_no_proof_either() -> None:
    said = Report("n1", boot="n1-boot1", mode=Mode.DISARM)
    dead = observed_node(
        "n1", heartbeat_age=60.0, answer=Answer.NO, lease=LeaseSight.DEAD, report=said
    )
    known = {"n1": NodeStatus(NodeState.ONLINE, boot="n1-boot1")}
    taken = step(state({"web": started("n1")}, known), observed(desired(service()), {"n1": dead}))
    assert taken.state.nodes["n1"].state is NodeState.FENCE
