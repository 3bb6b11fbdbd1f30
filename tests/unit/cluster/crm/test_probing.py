# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A service of which is to be found out where it runs: every node says so, or is verified off."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.takeover import (
    take_over,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired import (
    CLEAR,
    Request,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.maintenance import (  # noqa: E501
    Maintenance,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (
    Answer,
    FenceReport,
    LeaseSight,
    PowerReport,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    Mode,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.rules import (
    NodeRule,
    ServiceRule,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    Intent,
    NodeState,
    NodeStatus,
    Power,
    ServiceStatus,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.states import (
    ServiceState,
)
from ansible_collections.holdfast.ha.tests.unit.cluster.samples import (
    NODES,
    clean_shutdown,
    desired,
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
)

WEB = service()
IGNORED = replace(WEB, ignored=True)
ASKED = ServiceStatus(ServiceState.PROBE, uid="7.8")
"""A service that is probed again: it was unmanaged."""


def went_down(commands, **changes):
    """Return a node that gave its lease back after it had seen so many commands."""
    said = report("n2", commands=commands, mode=Mode.SHUTDOWN, goes_down="poweroff", **changes)
    return observed_node(
        "n2", heartbeat_age=20.0, answer=Answer.NO, lease=LeaseSight.FREE, report=said
    )


def test_a_node_that_left_is_fenced_for_it_once_all_others_lack_it():
    look = observed(desired(WEB), {"n2": went_down(8)})
    asked = step(state({"web": ASKED}), look, rounds=3)
    assert asked.state.nodes["n2"].state is not NodeState.FENCE, "another may say that it has it"
    answered = replace(look, nodes={**others_say_no("7.8"), "n2": went_down(8)})
    taken = step(asked.state, answered, rounds=2)
    assert taken.state.nodes["n2"].state is NodeState.FENCE


def test_a_node_that_looked_for_it_before_it_left_is_not_fenced_for_it():
    look = observed(desired(WEB), {"n2": went_down(8, found={"7.8": False})})
    assert (
        step(state({"web": ASKED}), look, rounds=3).state.nodes["n2"].state is not NodeState.FENCE
    )


def test_a_node_that_left_before_it_was_left_is_not_taken_to_have_it():
    nodes = {
        name: observed_node(name, report=report(name, found={"7.8": False}))
        for name in ("n1", "n3")
    }
    gone = went_down(4)
    restarts = replace(gone.report, mode=Mode.RESTART, goes_down="reboot")
    nodes["n2"] = replace(gone, report=restarts)
    status = step(state({"web": ASKED}), observed(desired(WEB), nodes)).state.services["web"]
    assert status.state is ServiceState.PROBE
    assert status.node == ""


@pytest.mark.parametrize("answer", [Answer.NO, Answer.YES])
def test_a_lease_given_back_before_is_no_proof_for_what_is_declared_there(answer):
    home = replace(WEB, node="n2")
    last = report("n2", commands=8, mode=Mode.SHUTDOWN, goes_down="poweroff")
    gone = observed_node(
        "n2", heartbeat_age=60.0, answer=answer, lease=LeaseSight.FREE, report=last
    )
    offline = {"n2": NodeStatus(NodeState.OFFLINE, boot="n2-boot1")}
    others = {
        name: observed_node(name, report=report(name, found={"web": False}))
        for name in ("n1", "n3")
    }
    taken = step(state({}, offline), observed(desired(home), {"n2": gone, **others}), rounds=4)
    status = taken.state.services["web"]
    assert (status.state, status.node) == (ServiceState.PROBE, "")
    assert "n2 cannot say" in status.reason
    assert "fence" not in kinds(taken.state), "its operator may be working on it"


def test_who_waits_for_a_node_that_cannot_say_reads_how_to_do_without_it():
    look = observed(desired(WEB), {"n2": went_down(8)})
    taken = step(state({"web": ASKED}), look, rounds=3)
    reason = taken.state.services["web"].reason
    assert "n2 cannot say: a node like that has to boot, to be fenced" in reason


def test_what_is_removed_while_it_is_left_is_looked_for_with_a_number_once_it_is_declared_again():
    left = state({}, ignored=("web",))
    removed = step(left, observed(desired()), rounds=3).state
    again = step(removed, observed(desired(WEB))).state.services["web"]
    assert again.state is ServiceState.PROBE
    assert again.uid


def test_that_what_was_removed_while_it_was_looked_for_may_still_run_is_said_and_remembered():
    taken = step(state({"web": ASKED}), observed(desired()))
    assert "web" not in taken.state.services
    assert taken.state.ignored == ("web",)
    (event,) = [one for one in taken.state.events if one.kind == "forgotten"]
    assert event.text.endswith("and may still run")


def test_of_those_that_were_removed_while_unmanaged_the_last_ones_are_remembered():
    left = state({}, ignored=tuple(f"s{149 - number:03}" for number in range(150)))
    kept = step(left, observed(desired(replace(WEB, ignored=True)))).state
    assert kept.ignored == (*(f"s{99 - number:03}" for number in range(100)), "web")


def proved_dead(answer, **changes):
    """Return what is seen of a node that was confirmed dead, and its status: by a fence."""
    dead = observed_node("n2", heartbeat_age=300.0, answer=answer, lease=LeaseSight.DEAD, **changes)
    return {"n2": dead}, {"n2": NodeStatus(NodeState.OFF, boot="n2-boot1", proof=verified_off())}


def others_say_no(probe):
    return {name: observed_node(name, report=report(name, found={probe: False})) for name in NODES}


@pytest.mark.parametrize(
    ("answer", "left", "state_after"),
    [
        (Answer.NO, (), ServiceState.REQUEST_START),
        (Answer.YES, (), ServiceState.PROBE),
        (Answer.YES, ("web",), ServiceState.PROBE),
        (Answer.UNKNOWN, (), ServiceState.PROBE),
    ],
)
def test_a_node_that_was_proved_dead_and_answers_again_may_have_what_was_left(
    answer, left, state_after
):
    dead, off = proved_dead(answer, report=report("n2", left=left))
    look = observed(desired(WEB), {**others_say_no("7.8"), **dead})
    status = step(state({"web": ASKED}, off), look, rounds=3).state.services["web"]
    assert status.state is state_after
    if state_after is ServiceState.PROBE:
        assert "n2 cannot say" in status.reason


@pytest.mark.parametrize(
    ("answer", "node", "reason"),
    [(Answer.NO, "n1", ""), (Answer.YES, "", "n2 cannot say")],
)
def test_what_is_declared_on_a_node_that_answers_again_without_its_lrm_waits_for_its_word(
    answer, node, reason
):
    dead, off = proved_dead(answer)
    look = observed(desired(replace(WEB, node="n2")), {**others_say_no("web"), **dead})
    status = step(state({}, off), look, rounds=4).state.services["web"]
    assert status.node == node
    assert reason in status.reason


def test_what_is_declared_on_a_node_that_the_manager_does_not_know_waits_for_it():
    look = observed(desired(replace(WEB, node="n9")), others_say_no("web"))
    taken = step(state(), look, rounds=3)
    status = taken.state.services["web"]
    assert status.state is ServiceState.PROBE
    assert "declared on n9, which is not in the configuration of n3" in status.reason
    elsewhere = observed(desired(replace(WEB, node="n1")), others_say_no("web"))
    assert step(taken.state, elsewhere, rounds=4).state.services["web"].node == "n1"


@pytest.mark.parametrize(
    ("before", "state_after"),
    [(WEB.digest(), ServiceState.REQUEST_START), ("of before", ServiceState.ERROR)],
)
def test_what_was_given_another_definition_while_it_was_left_is_not_started_beside_the_former(
    before, state_after
):
    asked = replace(ASKED, digest=before)
    look = observed(desired(WEB), others_say_no("7.8"))
    taken = step(state({"web": asked}), look, rounds=3)
    assert taken.state.services["web"].state is state_after
    if state_after is ServiceState.ERROR:
        cleared = desired(WEB, requests={"web": Request(CLEAR, 2000.0)})
        assert step(taken.state, observed(cleared), rounds=3).state.services["web"].node


@pytest.mark.parametrize(
    ("changes", "waits"),
    [
        ({"power": Power.ON}, True),
        ({"power": Power.SENT}, True),
        ({"up_again": True}, True),
        ({}, False),
    ],
)
def test_a_node_that_was_switched_on_or_answered_since_its_death_is_not_off_as_it_is_silent(
    changes, waits
):
    dead, off = proved_dead(Answer.NO)
    off = {"n2": replace(off["n2"], attempt=5, **changes)}
    look = observed(desired(WEB), {**others_say_no("7.8"), **dead})
    status = step(state({"web": ASKED}, off), look, rounds=3).state.services["web"]
    assert (status.state is ServiceState.PROBE) is waits


def test_a_node_that_the_last_manager_was_about_to_switch_on_is_not_off_as_it_is_silent():
    dead, off = proved_dead(Answer.NO)
    look = observed(desired(WEB), {**others_say_no("7.8"), **dead})

    def looked_for(power):
        last = state({"web": ASKED}, {"n2": replace(off["n2"], power=power)})
        return step(take_over(last, 8, "n1", 1000.0), look).state.services["web"].state

    assert looked_for(Power.SENT) is ServiceState.PROBE
    assert looked_for(Power.NONE) is ServiceState.REQUEST_START


def test_that_a_dead_node_answered_is_remembered_until_it_is_proved_dead_again():
    dead, off = proved_dead(Answer.YES)
    answered = step(state({"web": ASKED}, off), observed(desired(WEB), dead)).state
    assert answered.nodes["n2"].up_again
    sent = replace(answered, nodes={"n2": replace(off["n2"], power=Power.SENT)})
    assert take_over(sent, 8, "n1", 2000.0).nodes["n2"].up_again
    fenced = {"n2": replace(answered.nodes["n2"], state=NodeState.FENCE)}
    told = FenceReport("n2", True, "its device reports off", 1000.0, 1001.0)
    proved = step(
        replace(answered, nodes={**answered.nodes, **fenced}),
        observed(desired(WEB), {"n2": replace(dead["n2"], answer=Answer.NO)}, fences=(told,)),
    )
    assert proved.state.nodes["n2"].state is NodeState.OFF
    assert not proved.state.nodes["n2"].up_again


@pytest.mark.parametrize("left", [(), ("web",)])
def test_a_host_lease_is_no_proof_for_what_is_declared_where_it_ran_out_before(left):
    dead = observed_node("n2", heartbeat_age=300.0, answer=Answer.NO, lease=LeaseSight.DEAD)
    dead = {"n2": replace(dead, report=report("n2", commands=3, left=left))}
    look = observed(desired(replace(WEB, node="n2")), {**others_say_no("web"), **dead})
    offline = {"n2": NodeStatus(NodeState.OFFLINE, boot="n2-boot1", proof=verified_off())}
    taken = step(state({}, offline), look, rounds=5).state
    assert taken.services["web"].state is ServiceState.PROBE
    assert "n2 cannot say" in taken.services["web"].reason
    assert "declare it on another node" in taken.services["web"].reason
    assert taken.nodes["n2"].state is NodeState.FENCE
    assert "web may run there" in taken.nodes["n2"].reason


def test_what_is_kept_apart_from_a_service_that_is_looked_for_stays_where_it_is():
    apart = ServiceRule("pair", ("web", "db"), "apart")
    prefers = NodeRule("where", ("db",), {"n2": 1})
    both = {"service_rules": {"pair": apart}, "node_rules": {"where": prefers}}
    look = observed(desired(WEB, service("db"), **both))
    db = started("n1", service("db"))
    nowhere = ServiceStatus(ServiceState.STOPPED)
    for web, moves in ((ASKED, False), (replace(nowhere, digest=WEB.digest()), True)):
        known = {"web": replace(WEB, state="stopped"), "db": service("db")}
        desired_ = replace(look.desired, services=known)
        look = replace(look, desired=desired_)
        taken = step(state({"web": web, "db": db}), look).state
        assert (taken.services["db"].state is not ServiceState.STARTED) is moves


def test_an_answer_of_an_earlier_start_does_not_count_for_what_is_declared_there():
    old = report("n2", found={"web": False})
    dead, off = proved_dead(Answer.YES, report=old)
    look = observed(desired(replace(WEB, node="n2")), {**others_say_no("web"), **dead})
    assert step(state({}, off), look, rounds=4).state.services["web"].state is ServiceState.PROBE


def test_what_was_ignored_before_waits_for_a_node_that_the_manager_does_not_know_too():
    look = observed(desired(replace(WEB, node="n9")), others_say_no("7.10"))
    before = state(ignored=("web",))
    status = step(before, look, rounds=4).state.services["web"]
    assert status.state is ServiceState.PROBE
    assert "declared on n9" in status.reason


def test_a_node_taken_out_of_the_configuration_is_waited_for_no_more():
    look = observed(desired(WEB), others_say_no("7.8"))
    look = replace(look, nodes={key: one for key, one in look.nodes.items() if key != "n2"})
    gone = {"n2": NodeStatus(NodeState.OFF, boot="n2-boot1", power=Power.ON, proof=verified_off())}
    before = state({"web": replace(ASKED, last_node="n2")}, gone)
    assert step(before, look, rounds=3).state.services["web"].state is ServiceState.REQUEST_START


@pytest.mark.parametrize(
    ("changes", "kept", "fenced"),
    [
        ({"power": Power.ON, "attempt": 2}, {}, False),
        ({"power": Power.GIVEN_UP, "up_again": True}, {}, False),
        ({"power": Power.GIVEN_UP, "up_again": True}, {"n2": Maintenance("fenced: broken")}, True),
        ({"power": Power.ON, "attempt": 2}, {"n2": Maintenance("fenced: broken")}, True),
        ({"power": Power.ON, "attempt": 2}, {"n2": Maintenance("disks")}, False),
        ({}, {"n2": Maintenance("fenced: broken")}, False),
    ],
)
def test_a_dead_node_that_was_switched_on_in_vain_waits_for_its_operator_to_fence_it_by_hand(
    changes, kept, fenced
):
    dead, off = proved_dead(Answer.NO)
    off = {"n2": replace(off["n2"], **{"retry_after": 500.0, **changes})}
    look = observed(desired(WEB, maintenance=kept), {**others_say_no("7.8"), **dead})
    taken = step(state({"web": ASKED}, off), look, rounds=2).state
    assert (taken.nodes["n2"].state is NodeState.FENCE) is fenced
    if fenced:
        told = FenceReport("n2", True, "its device reports off", 1000.0, 1001.0)
        proved = step(taken, replace(look, fences=(told,)), rounds=2).state
        assert proved.services["web"].state is ServiceState.REQUEST_START


def test_a_fence_to_be_sure_is_called_off_once_the_service_is_declared_elsewhere():
    dead = observed_node("n2", heartbeat_age=300.0, answer=Answer.NO, lease=LeaseSight.DEAD)
    look = observed(desired(replace(WEB, node="n2")), {**others_say_no("web"), "n2": dead})
    expired = {"n2": NodeStatus(NodeState.OFF, boot="n2-boot1", proof=lease_expired("its lease"))}
    asked = step(state({}, expired), look, rounds=3).state
    assert asked.nodes["n2"].state is NodeState.FENCE
    elsewhere = observed(desired(replace(WEB, node="n1")), {**others_say_no("web"), "n2": dead})
    taken = step(asked, elsewhere, rounds=3).state
    assert taken.services["web"].node == "n1"
    assert (taken.nodes["n2"].state, taken.nodes["n2"].reason) == (NodeState.OFF, "its lease")


@pytest.mark.parametrize("before", ["started", "stopped"])
def test_what_ran_when_the_cluster_was_disarmed_and_was_declared_anew_is_not_started_beside_it(
    before,
):
    frozen = started("n1", state=ServiceState.FREEZE, before=before, digest="of before")
    disarmed = {"disarm": "disarmed", "disarm_mode": "ignore", "disarm_number": 4}
    armed = step(state({"web": frozen}, **disarmed), observed(desired(WEB))).state
    look = observed(desired(WEB), others_say_no(armed.services["web"].uid))
    found = step(armed, look, rounds=3).state.services["web"]
    assert (found.state is ServiceState.ERROR) is (before == "started")


def test_a_switching_on_that_failed_or_an_end_of_a_fence_by_hand_may_have_switched_it_on():
    dead, off = proved_dead(Answer.NO)
    failed = PowerReport("n2", ok=False, text="no answer within 20 s")
    look = observed(desired(WEB), dead, powers=(failed,))
    sent = {"n2": replace(off["n2"], power=Power.SENT)}
    assert step(state({"web": ASKED}, sent), look).state.nodes["n2"].up_again
    unfenced = {"n2": replace(off["n2"], kept="by op: fenced: broken")}
    assert (
        step(state({"web": ASKED}, unfenced), observed(desired(WEB), dead))
        .state.nodes["n2"]
        .up_again
    )


def test_what_is_kept_apart_does_not_start_where_its_opposite_was_found():
    apart = desired(
        WEB, service("db"), service_rules={"r": ServiceRule("r", ("web", "db"), "apart")}
    )
    found = observed_node("n1", report=report("n1", found={"7.8": True}))
    db = ServiceStatus(ServiceState.RECOVERY, "n2", reason="its node is dead")
    look = observed(apart, {"n1": found, "n2": observed_node("n2", heartbeat_age=1.0)})
    taken = step(state({"web": ASKED, "db": db}), look).state
    assert taken.services["web"].state is ServiceState.PROBE
    assert taken.services["db"].node != "n1"


def test_no_node_is_fenced_for_what_a_living_one_has():
    expired = {
        "n2": NodeStatus(NodeState.OFF, boot="n2-boot1", proof=lease_expired(), up_again=True)
    }
    dead = {"n2": observed_node("n2", heartbeat_age=300.0, answer=Answer.NO, lease=LeaseSight.DEAD)}
    look = observed(desired(WEB), {**others_say_no("7.8"), **dead})
    fenced = step(state({"web": ASKED}, expired), look, rounds=2).state
    assert fenced.nodes["n2"].state is NodeState.FENCE
    has = observed_node("n1", report=report("n1", found={"7.8": True}))
    look = replace(look, nodes={**look.nodes, "n1": has})
    taken = step(state({"web": ASKED}, expired, probes=("web",)), look, rounds=2).state
    assert taken.nodes["n2"].state is NodeState.OFF
    assert "fence" not in kinds(taken)
    assert (taken.services["web"].state, taken.services["web"].node) == (ServiceState.STARTED, "n1")
    # Its agents may also have said nothing in time; that it runs is more than is known.
    assert taken.services["web"].reason.endswith("it runs there, or gave no clear answer")


@pytest.mark.parametrize("answer", [Answer.NO, Answer.YES, Answer.UNKNOWN])
def test_a_node_that_comes_up_in_the_midst_of_its_fence_is_asked_first(answer):
    fencing = {"n2": NodeStatus(NodeState.FENCE, boot="n2-boot1")}
    back = observed_node("n2", answer=answer, report=replace(report("n2"), boot="n2-boot2"))
    look = observed(desired(WEB), {**others_say_no("7.8"), "n2": back})
    taken = step(state({"web": ASKED}, fencing), look).state
    assert taken.nodes["n2"].state is NodeState.OFF
    assert taken.services["web"].state is ServiceState.PROBE


def test_a_fence_that_is_called_off_and_may_have_arrived_lets_its_node_be_switched_on():
    fencing = {
        "n2": NodeStatus(
            NodeState.FENCE, proof=lease_expired("its lease"), pending_fences=pending(manager=990.0)
        )
    }
    dead = {"n2": observed_node("n2", heartbeat_age=300.0, answer=Answer.NO, lease=LeaseSight.DEAD)}
    taken = step(state({"web": started("n1")}, fencing), observed(desired(WEB), dead))
    assert taken.state.nodes["n2"].state is NodeState.OFF
    assert taken.state.nodes["n2"].fenced
    assert taken.powers == ("n2",)


def test_a_node_that_was_shut_down_is_fenced_by_hand_for_what_is_declared_there():
    down = report("n2", commands=5, mode=Mode.SHUTDOWN, goes_down="poweroff")
    dead = observed_node(
        "n2", heartbeat_age=900.0, answer=Answer.NO, lease=LeaseSight.FREE, report=down
    )
    off = {
        "n2": NodeStatus(
            NodeState.OFF, boot="n2-boot1", power=Power.LEFT_OFF, proof=clean_shutdown("it left")
        )
    }
    kept = {"n2": Maintenance("fenced: broken")}
    look = observed(
        desired(replace(WEB, node="n2"), maintenance=kept), {**others_say_no("web"), "n2": dead}
    )
    taken = step(state({}, off), look, rounds=6).state
    assert taken.nodes["n2"].state is NodeState.FENCE
    assert kinds(taken).count("proof") == 0


def test_a_node_that_is_well_again_keeps_nothing_of_an_old_proof():
    fencing = {
        "n2": NodeStatus(
            NodeState.FENCE, boot="n2-boot1", proof=lease_expired("its lease"), up_again=True
        )
    }
    node = step(state({}, fencing), observed(desired())).state.nodes["n2"]
    assert (node.state, node.proof, node.expired, node.up_again) == (
        NodeState.ONLINE,
        None,
        False,
        False,
    )


def test_what_a_dead_node_said_that_it_has_is_not_taken_up_there():
    dead, off = proved_dead(Answer.NO, report=report("n2", found={"7.8": True}))
    off = {"n2": replace(off["n2"], power=Power.ON, attempt=1, retry_after=500.0)}
    look = observed(desired(WEB), {**others_say_no("7.8"), **dead})
    assert step(state({"web": ASKED}, off), look, rounds=3).state.services["web"].node == ""


def test_the_fence_of_a_candidate_is_not_called_off_as_its_node_was_proved_dead_long_before():
    off = {
        "n1": NodeStatus(
            NodeState.OFF, boot="n1-boot1", proof=verified_off("its device reports off")
        )
    }
    last = replace(state({}, off), manager="n1")
    intent = Intent("n1", "n1 is the manager: no heartbeat for 9.5 s", 1990.0, 1980.0, epoch=7)
    taken = take_over(last, 8, "n3", 2000.0, intent)
    silent = observed_node("n1", heartbeat_age=60.0, answer=Answer.NO)
    after = step(taken, observed(desired(), {"n1": silent}), rounds=2).state
    assert after.nodes["n1"].state is NodeState.FENCE
