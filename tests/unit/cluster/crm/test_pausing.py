# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Services that are left alone: under a fence, while an LRM is away, while all is disarmed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired import (
    MOVE,
    Request,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.maintenance import (  # noqa: E501
    Maintenance,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (
    Answer,
    FenceReport,
    LeaseSight,
    ObservedNode,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    LocalService,
    LocalState,
    Mode,
    Outcome,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.rules import (
    NodeRule,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    NodeState,
    NodeStatus,
    ServiceStatus,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state_codec import (  # noqa: E501
    state_document,
    state_from_document,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.states import (
    ServiceState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import InputError
from ansible_collections.holdfast.ha.tests.unit.cluster.samples import (
    NODES,
    desired,
    kinds,
    lease_expired,
    observed,
    observed_node,
    pending,
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
NEW_WEB = replace(WEB, resources=(replace(WEB.resources[0], parameters={"x": "2"}),))
DEAD = observed_node("n1", heartbeat_age=99.0, answer=Answer.NO, lease=LeaseSight.DEAD)


def in_mode(mode: Mode, node: str = "n1", local: LocalState | None = None) -> dict:
    look = says(node, local=local) if local is not None else observed_node(node)
    return {node: replace(look, report=replace(look.report, mode=mode))}


def all_in(mode: Mode, commands: int = 99) -> dict:
    return {
        node: observed_node(node, report=report(node, mode=mode, commands=commands))
        for node in NODES
    }


def test_a_service_is_left_alone_while_its_lrm_is_started_anew() -> None:
    before = state({"web": started("n1")})
    frozen = step(before, observed(desired(WEB), in_mode(Mode.RESTART)))
    assert (web(frozen).state, web(frozen).uid) == (ServiceState.FREEZE, "7.1")
    back = step(frozen.state, observed(desired(WEB), {"n1": says("n1", local=LocalState.RUNNING)}))
    assert (web(back).state, web(back).uid) == (ServiceState.STARTED, "7.1")


def test_a_frozen_service_of_a_node_that_was_rebooted_is_started_there_again() -> None:
    frozen = started("n1", state=ServiceState.FREEZE, before="started")
    back = step(
        state({"web": frozen}), observed(desired(WEB), {"n1": says("n1", local=LocalState.STOPPED)})
    )
    assert (web(back).state, web(back).node) == (ServiceState.REQUEST_START, "n1")


@pytest.mark.parametrize(
    "local",
    [{}, {"web": LocalService(WEB, LocalState.UNKNOWN, "7.0")}],
    ids=["not known yet", "by another number"],
)
def test_what_was_taken_up_just_before_it_was_frozen_is_not_taken_for_stopped(local) -> None:
    # Its LRM found it, and was restarted before it heard under which number it was adopted.
    frozen = started("n1", state=ServiceState.FREEZE, before="started")
    look = {"n1": observed_node("n1", report=report("n1", services=local))}
    nowhere = desired(
        WEB, node_rules={"where": NodeRule("where", ("web",), {"n9": 0}, strict=True)}
    )
    back = step(state({"web": frozen}), observed(nowhere, look))
    assert (web(back).state, web(back).node) == (ServiceState.STARTED, "n1")


@pytest.mark.parametrize("command", ["request_start", "request_stop"])
def test_a_frozen_command_is_ended_and_not_taken_for_a_service_that_is_gone(command) -> None:
    frozen = started("n1", state=ServiceState.FREEZE, before=command)
    runs = {"n1": says("n1", local=LocalState.RUNNING)}
    back = step(state({"web": frozen}), observed(desired(NEW_WEB), runs))
    assert (web(back).state.value, web(back).uid) == (command, "7.1")


def test_what_came_to_a_node_while_it_ran_is_taken_up_there_before_it_is_frozen() -> None:
    coming = started("n1", state=ServiceState.REQUEST_START, from_node="n2")
    look = observed(desired(WEB), in_mode(Mode.RESTART))
    assert web(step(state({"web": coming}), look)).state is ServiceState.REQUEST_START
    new = replace(coming, from_node="")
    assert web(step(state({"web": new}), look)).state is ServiceState.FREEZE


def test_a_service_frozen_for_a_reboot_is_let_go_once_its_node_is_to_be_off_for_good() -> None:
    frozen = started("n1", state=ServiceState.FREEZE, before="started")
    look = in_mode(Mode.SHUTDOWN, local=LocalState.STOPPED)
    thawed = web(step(state({"web": frozen}), observed(desired(WEB), look)))
    assert (thawed.state, thawed.node, thawed.uid) == (ServiceState.STARTED, "n1", "7.1")


def test_a_node_with_frozen_services_only_is_not_fenced() -> None:
    frozen = started("n1", state=ServiceState.FREEZE, before="started")
    silent = replace(DEAD, lease=LeaseSight.STALE)
    taken = step(state({"web": frozen}), observed(desired(WEB), {"n1": silent}))
    assert not taken.fences
    assert taken.state.nodes["n1"].state is NodeState.OFFLINE


def test_what_stopped_on_a_node_that_shuts_down_waits_until_the_node_is_gone() -> None:
    before = state({"web": started("n1")})
    look = in_mode(Mode.SHUTDOWN, local=LocalState.STOPPED)
    assert web(step(before, observed(desired(WEB), look))) == started("n1")


def test_nothing_is_started_on_a_node_that_shuts_down() -> None:
    stopped = ServiceStatus(ServiceState.STOPPED)
    taken = step(state({"web": stopped}), observed(desired(WEB), in_mode(Mode.SHUTDOWN)))
    assert web(taken).node == "n2"


def test_disarming_freezes_first_and_ends_with_the_last_lrm() -> None:
    asked = desired(WEB, disarm="freeze")
    first = step(state({"web": started("n1")}), observed(asked))
    assert (web(first).state, first.state.disarm) == (ServiceState.FREEZE, "disarming")
    looks = all_in(Mode.DISARM)
    one_is_missing = {**looks, "n2": observed_node("n2")}
    assert step(first.state, observed(asked, one_is_missing)).state.disarm == "disarming"
    earlier = all_in(Mode.DISARM, first.state.commands - 1)
    assert step(first.state, observed(asked, earlier)).state.disarm == "disarming"
    last = step(first.state, observed(asked, looks))
    assert last.state.disarm == "disarmed"
    assert "disarmed" in kinds(last.state)
    # By that number an older copy of the record is recognised: operators act on it.
    assert last.state.commands > first.state.commands


FROZEN = started("n1", state=ServiceState.FREEZE, before="started")


def disarms(mode: str, look: ObservedNode, node: NodeState = NodeState.ONLINE):
    """Return how far a cluster is disarmed while its node n1 looks like *look*."""
    nodes = {"n1": NodeStatus(node, boot="n1-boot1")}
    before = state({"web": FROZEN}, nodes, disarm="disarming", disarm_mode=mode)
    looks = {**all_in(Mode.DISARM), "n1": look}
    taken = step(before, observed(desired(WEB, disarm=mode), looks))
    return taken.state.disarm, taken.state.disarm_waits


def disarmed_but(local: LocalState) -> ObservedNode:
    look = says("n1", local=local)
    return replace(look, report=replace(look.report, mode=Mode.DISARM, commands=99))


@pytest.mark.parametrize("mode", ["freeze", "ignore"])
def test_a_restart_that_an_lrm_began_is_waited_for(mode) -> None:
    told = disarms(mode, disarmed_but(LocalState.STARTING))
    assert told == ("disarming", "n1: its LRM still works on web")


def test_an_lrm_lets_go_of_what_is_left_to_the_operator_before_anything_is_moved() -> None:
    look = disarmed_but(LocalState.RUNNING)
    assert disarms("ignore", look) == ("disarming", "n1: its LRM still works on web")
    assert disarms("freeze", look) == ("disarmed", "")


@pytest.mark.parametrize(
    ("local", "told"),
    [
        (LocalState.RUNNING, ("disarming", "n1: it goes down, and is to stop web first")),
        (LocalState.STOPPED, ("disarmed", "")),
        (LocalState.BLOCKED, ("disarmed", "")),
    ],
)
def test_a_node_that_goes_down_has_stopped_what_it_can_before_the_cluster_is_disarmed(
    local, told
) -> None:
    look = disarmed_but(local)
    going = replace(look.report, mode=Mode.MAINTENANCE, goes_down="poweroff")
    assert disarms("freeze", replace(look, report=going)) == told


def test_a_silent_node_that_may_start_a_service_again_keeps_it_from_its_operator() -> None:
    silent = replace(says("n1", local=LocalState.RUNNING), heartbeat_age=9.0, answer=Answer.YES)
    told = disarms("ignore", silent, NodeState.OFFLINE)
    assert told == ("disarming", "n1: it is offline and may start web again")
    assert disarms("freeze", silent, NodeState.OFFLINE) == ("disarmed", "")


def test_a_dead_node_keeps_nothing_from_the_operator() -> None:
    dead = replace(says("n1", local=LocalState.RUNNING), heartbeat_age=99.0, answer=Answer.NO)
    assert disarms("ignore", dead, NodeState.OFF) == ("disarmed", "")


@pytest.mark.parametrize(
    "under_way",
    [
        started("n1", state=ServiceState.RECOVERY, uid=""),
        started("n1", state=ServiceState.RELOCATE, target="n2"),
        started("n1", state=ServiceState.REQUEST_START),
    ],
)
def test_what_is_under_way_is_ended_before_the_cluster_is_disarmed(under_way) -> None:
    db = service("db")
    before = state({"web": under_way, "db": started("n2", db)})
    taken = step(before, observed(desired(WEB, db, disarm="freeze"), all_in(Mode.DISARM)))
    assert taken.state.disarm == "disarming"
    assert taken.state.services["db"].state is ServiceState.STARTED


def test_a_disarmed_cluster_neither_fences_nor_recovers() -> None:
    frozen = started("n1", state=ServiceState.FREEZE, before="started")
    before = state({"web": frozen}, disarm="disarmed", disarm_mode="freeze")
    taken = step(before, observed(desired(WEB, disarm="freeze"), {"n1": DEAD}))
    assert not taken.fences
    assert web(taken) == frozen


def test_a_fence_without_services_at_stake_is_not_sent_while_all_is_disarmed() -> None:
    """Nothing waits for such a fence before the cluster is disarmed."""
    fenced = {"n1": NodeStatus(NodeState.FENCE, boot="n1-boot1", reason="to be certain")}
    silent = {"n1": observed_node("n1", heartbeat_age=99.0, answer=Answer.NO)}
    before = state(nodes=fenced, disarm="disarmed", disarm_mode="freeze")
    assert not step(before, observed(desired(disarm="freeze"), silent)).fences
    assert step(replace(before, disarm="", disarm_mode=""), observed(desired(), silent)).fences


def test_a_node_that_dies_while_all_is_disarmed_has_its_services_back_once_it_is_armed() -> None:
    frozen = started("n1", state=ServiceState.FREEZE, before="started")
    fenced = {"n1": NodeStatus(NodeState.FENCE, boot="n1-boot1")}
    before = state({"web": frozen}, fenced, disarm="disarmed", disarm_mode="freeze")
    dead = step(before, observed(desired(WEB, disarm="freeze"), {"n1": DEAD}), rounds=3)
    assert web(dead).state is ServiceState.RECOVERY
    assert web(dead).uid == ""
    armed = step(dead.state, observed(desired(WEB), {"n1": DEAD}))
    assert (web(armed).state, web(armed).node) == (ServiceState.REQUEST_START, "n2")


def test_a_service_that_was_moved_by_hand_while_disarmed_is_found() -> None:
    frozen = started("n1", state=ServiceState.FREEZE, before="started")
    before = state({"web": frozen}, disarm="disarmed", disarm_mode="ignore")
    armed = step(before, observed(desired(WEB)))
    assert web(armed).state is ServiceState.PROBE

    def answers(probe: str, there: str) -> dict[str, ObservedNode]:
        return {
            node: observed_node(node, report=report(node, found={probe: node == there}))
            for node in NODES
        }

    earlier = step(armed.state, observed(desired(WEB), answers("web", "n1")))
    assert web(earlier).state is ServiceState.PROBE, "what was said before it was moved is old"
    taken = step(armed.state, observed(desired(WEB), answers(web(armed).uid, "n3")))
    assert (web(taken).state, web(taken).node) == (ServiceState.STARTED, "n3")


def answered(uid: str, there: str) -> dict[str, ObservedNode]:
    """Return looks at all nodes, whose LRMs found web on *there* alone."""
    return {
        node: observed_node(node, report=report(node, found={uid: node == there})) for node in NODES
    }


@pytest.mark.parametrize(
    ("there", "ends_as"),
    [("n2", (ServiceState.STARTED, "n2")), ("", (ServiceState.ERROR, ""))],
    ids=["started by hand", "started nowhere"],
)
def test_what_was_in_error_may_have_been_started_by_hand_while_disarmed(there, ends_as) -> None:
    in_error = ServiceStatus(ServiceState.ERROR, digest=WEB.digest(), last_node="n1")
    before = state({"web": in_error}, disarm="disarmed", disarm_mode="ignore")
    armed = step(before, observed(desired(WEB)))
    assert web(armed).state is ServiceState.PROBE
    taken = step(armed.state, observed(desired(WEB), answered(web(armed).uid, there)), rounds=2)
    assert (web(taken).state, web(taken).node) == ends_as


def test_what_is_no_longer_declared_and_could_not_be_stopped_stays_in_error_when_armed() -> None:
    in_error = started("n1", state=ServiceState.ERROR)
    before = state({"web": in_error}, disarm="disarmed", disarm_mode="ignore")
    armed = step(before, observed(desired()))
    assert (web(armed).state, web(armed).node) == (ServiceState.ERROR, "n1")


def test_what_was_ignored_is_looked_for_on_a_node_that_lost_its_host_lease_with_it() -> None:
    ignored = desired(replace(WEB, ignored=True))
    noted = step(state({"web": started("n1")}), observed(ignored))
    assert noted.state.ignored == ("web",)
    asked = step(noted.state, observed(desired(WEB), {"n1": DEAD}))
    assert (web(asked).state, bool(web(asked).uid)) == (ServiceState.PROBE, True)
    looks = {**answered(web(asked).uid, ""), "n1": DEAD}
    fenced = step(asked.state, observed(desired(WEB), looks), rounds=2)
    assert fenced.state.nodes["n1"].state is NodeState.FENCE
    assert web(fenced).state is ServiceState.PROBE
    told = FenceReport("n1", True, "its device reports off", 1000.0, 1001.0)
    proved = step(fenced.state, replace(observed(desired(WEB), looks), fences=(told,)), rounds=3)
    assert web(proved).state is ServiceState.REQUEST_START


def test_a_node_that_is_dead_by_its_lease_alone_is_proved_dead_anew_for_what_was_ignored() -> None:
    expired = NodeStatus(NodeState.OFF, boot="n1-boot1", proof=lease_expired())
    before = state({}, {"n1": expired}, ignored=("web",))
    asked = step(before, observed(desired(WEB), {"n1": DEAD}), rounds=2)
    assert asked.state.nodes["n1"].state is NodeState.OFF, "another may say that it has it"
    looks = {**answered(web(asked).uid, ""), "n1": DEAD}
    fenced = step(asked.state, observed(desired(WEB), looks))
    assert fenced.state.nodes["n1"].state is NodeState.FENCE
    assert "web may run there" in fenced.state.nodes["n1"].reason


def test_a_request_that_comes_with_a_disarm_is_refused_and_not_done_later() -> None:
    asked = desired(WEB, disarm="freeze", requests={"web": Request(MOVE, 5.0, "n2")})
    frozen = step(state({"web": started("n1")}), observed(asked))
    assert "refused" in kinds(frozen.state)
    armed = replace(asked, disarm="")
    look = observed(armed, {"n1": says("n1", local=LocalState.RUNNING)})
    taken = step(frozen.state, look, rounds=2)
    assert (web(taken).state, web(taken).node) == (ServiceState.STARTED, "n1")


def test_disarming_in_another_way_is_refused_until_the_cluster_is_armed() -> None:
    disarmed = desired(WEB).with_disarm("freeze")
    assert disarmed.with_disarm("freeze") == disarmed
    with pytest.raises(InputError, match="disarmed already"):
        disarmed.with_disarm("ignore")
    assert disarmed.with_disarm("").with_disarm("ignore").disarm == "ignore"


@pytest.mark.parametrize(("first", "then"), [("freeze", "ignore"), ("ignore", "freeze")])
def test_a_cluster_that_was_armed_and_disarmed_in_another_way_unseen_is_disarmed_so(
    first, then
) -> None:
    before = state({"web": FROZEN}, disarm="disarmed", disarm_mode=first)
    asked = desired(WEB, disarm=then)
    armed = step(before, observed(asked, all_in(Mode.DISARM)))
    assert armed.state.disarm == ""
    disarming = step(armed.state, observed(asked, all_in(Mode.DISARM, commands=0)))
    assert (disarming.state.disarm, disarming.state.disarm_mode) == ("disarming", then)
    looks = all_in(Mode.DISARM, disarming.state.disarm_number)
    assert step(disarming.state, observed(asked, looks)).state.disarm == "disarmed"


def test_older_versions_see_the_state_under_a_fence() -> None:
    fenced = started("n1", state=ServiceState.FENCE, before="relocate", target="n2")
    before = state({"web": fenced}, {"n1": NodeStatus(NodeState.FENCE)})
    row = state_document(before)["services"]["web"]
    assert row["state"] == "relocate"
    assert state_from_document(state_document(before)) == before


def test_a_service_that_cannot_be_stopped_has_its_node_fenced_if_it_asks_for_that() -> None:
    asks = service(fence_on_stop_failure=True)
    stopping = started("n1", state=ServiceState.REQUEST_STOP)
    look = observed(desired(replace(asks, state="stopped")), {"n1": says("n1", Outcome.BLOCKED)})
    taken = step(state({"web": stopping}), look, rounds=2)
    assert taken.state.nodes["n1"].state is NodeState.FENCE
    assert "could not be stopped" in taken.state.nodes["n1"].reason
    assert web(taken).state is ServiceState.FENCE
    first = step(state({"web": stopping}), look)
    assert [order.node for order in first.fences or step(first.state, look).fences] == ["n1"]


def test_without_that_it_is_in_error_and_its_node_is_left_alone() -> None:
    stopping = started("n1", state=ServiceState.REQUEST_STOP)
    look = observed(desired(WEB), {"n1": says("n1", Outcome.BLOCKED)})
    taken = step(state({"web": stopping}), look, rounds=2)
    assert web(taken).state is ServiceState.ERROR
    assert taken.state.nodes["n1"].state is NodeState.ONLINE


def test_a_manager_does_not_have_its_own_node_fenced_for_a_service() -> None:
    asks = service(fence_on_stop_failure=True)
    stopping = started("n3", state=ServiceState.REQUEST_STOP)
    look = observed(desired(asks), {"n3": says("n3", Outcome.BLOCKED, LocalState.BLOCKED)})
    taken = step(state({"web": stopping}), look, rounds=2)
    assert (web(taken).state, taken.fences) == (ServiceState.ERROR, ())
    other = replace(taken.state, manager="n1")
    assert step(other, look, rounds=2).state.nodes["n3"].state is NodeState.FENCE


@pytest.mark.parametrize(("mode", "waits"), [("restart", True), ("disarm", False), ("", False)])
def test_only_a_node_that_said_it_comes_back_is_waited_for_once_the_cluster_is_armed(
    mode, waits
) -> None:
    frozen = started("n1", state=ServiceState.FREEZE, before="started")
    offline = {
        "n1": NodeStatus(NodeState.OFFLINE, boot="n1-boot1", mode=mode, proof=verified_off())
    }
    silent = observed_node("n1", heartbeat_age=9.0, answer=Answer.NO, lease=LeaseSight.STALE)
    look = observed(desired(service()), {"n1": silent})
    taken = step(state({"web": frozen}, offline), look, 3)
    assert (taken.state.nodes["n1"].state is NodeState.FENCE) != waits
    assert (taken.state.services["web"].state is ServiceState.FREEZE) == waits


@pytest.mark.parametrize("mode", [Mode.SHUTDOWN, Mode.RESTART])
def test_a_service_that_blocks_its_nodes_shutdown_is_an_error_and_not_left_frozen(mode) -> None:
    frozen = started("n1", state=ServiceState.FREEZE, before="started")
    look = in_mode(mode, local=LocalState.BLOCKED)
    taken = step(state({"web": frozen}), observed(desired(WEB), look))
    assert taken.state.services["web"].state is ServiceState.ERROR
    assert taken.state.services["web"].reason == "local reason"


def test_a_fence_that_a_new_manager_begins_with_is_ended_before_all_is_disarmed() -> None:
    fenced = {
        "n1": NodeStatus(NodeState.FENCE, boot="n1-boot1", pending_fences=pending(manager=999.0))
    }
    silent = {"n1": observed_node("n1", heartbeat_age=9.0, answer=Answer.NO)}
    asked = observed(desired(WEB, disarm="ignore"), silent, fencing=frozenset({"n1"}))
    taken = step(state({"web": started("n1")}, fenced), asked)
    assert (taken.state.disarm, web(taken).state) == ("disarming", ServiceState.FENCE)


def test_what_waits_frozen_for_a_node_that_left_the_configuration_is_told_of() -> None:
    frozen = started("n1", state=ServiceState.FREEZE, before="started")
    offline = {
        "n1": NodeStatus(NodeState.OFFLINE, boot="n1-boot1", mode="restart", proof=verified_off())
    }
    look = observed(desired(WEB))
    without = {name: one for name, one in look.nodes.items() if name != "n1"}
    taken = step(state({"web": frozen}, offline), replace(look, nodes=without), rounds=3)
    status = taken.state.services["web"]
    assert status.state is ServiceState.STARTED
    assert "n1, which is not in the configuration any more" in status.reason
    assert "blocked" in kinds(taken.state)


@pytest.mark.parametrize(
    ("reason", "state_"), [("fenced: it never came back", "fence"), ("memory", "offline")]
)
def test_what_waits_frozen_for_a_node_is_recovered_once_that_is_fenced_by_hand(
    reason, state_
) -> None:
    frozen = started("n1", state=ServiceState.FREEZE, before="started")
    offline = {
        "n1": NodeStatus(NodeState.OFFLINE, boot="n1-boot1", mode="restart", proof=verified_off())
    }
    silent = observed_node("n1", heartbeat_age=9.0, answer=Answer.NO, lease=LeaseSight.STALE)
    asked = desired(WEB, maintenance={"n1": Maintenance(reason, "ann", 900.0)})
    taken = step(state({"web": frozen}, offline), observed(asked, {"n1": silent}), rounds=3)
    assert taken.state.nodes["n1"].state.value == state_
