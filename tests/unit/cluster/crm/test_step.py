# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A manager's beginning, its quiet rounds, and what it makes of a changed configuration."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.takeover import (
    take_over,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.author import (
    Author,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired import (
    Maintenance,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (
    Answer,
    FenceReport,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    LocalState,
    Outcome,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    EVENTS_KEPT,
    FAILOVERS_KEPT,
    ClusterState,
    Event,
    Failover,
    Intent,
    NodeState,
    NodeStatus,
    Power,
    ServiceStatus,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state_codec import (  # noqa: E501
    state_document,
    state_from_document,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.states import (
    ServiceState,
)
from ansible_collections.holdfast.ha.tests.unit.cluster.samples import (
    desired,
    fence_time,
    lease_expired,
    observed,
    observed_node,
    pending,
    says,
    service,
    started,
    state,
    step,
    verified_off,
)

INTENT = Intent("n1", "n1 is the manager: silent", 990.0, 995.0, epoch=7)
SILENT = observed_node("n1", heartbeat_age=5.0, answer=Answer.NO)


def test_a_new_manager_takes_the_last_state_under_its_own_epoch() -> None:
    last = state({"web": started("n1")})
    taken = take_over(last, 8, "n2", 1000.0)
    assert (taken.epoch, taken.manager, taken.commands) == (8, "n2", last.commands)
    assert taken.services == last.services
    assert "before it n3" in taken.events[-1].text


@pytest.mark.parametrize(
    ("author", "text", "node"),
    [
        (
            Author("alice", "n2", 0.0, "192.0.2.7", "service web"),
            "version 6: service web, by alice on n2, from 192.0.2.7 at 1970-01-01T00:00:00Z",
            "n2",
        ),
        (
            Author("", "n9", 0.0),
            "version 6: written again, by an unknown user on n9 at 1970-01-01T00:00:00Z",
            "",
        ),
        (
            Author("a\x1b[31m" + "b" * 999, "n2", math.inf, "x" * 999, "y" * 999),
            f"version 6: {'y' * 64}, by a [31m{'b' * 58} on n2, from {'x' * 64} at -",
            "n2",
        ),
    ],
)
def test_a_new_configuration_is_in_the_history_with_its_author_once(author, text, node) -> None:
    look = observed(replace(desired(), version=6, changed_by=author))
    taken = step(state(), look)
    events = [event for event in taken.state.events if event.kind == "configuration"]
    assert [(event.text, event.node) for event in events] == [(text, node)]
    again = step(taken.state, look)
    assert [one for one in again.state.events if one.kind == "configuration"] == events


def test_the_very_first_manager_begins_with_nothing() -> None:
    taken = take_over(ClusterState(), 1, "n1", 1000.0)
    assert (taken.epoch, taken.manager, dict(taken.services)) == (1, "n1", {})


def test_a_new_manager_drops_the_waits_and_sends_what_may_not_have_been_sent() -> None:
    nodes = {
        "n1": NodeStatus(
            NodeState.OFF, power=Power.SENT, fenced=(9.0,), retry_after=55.0, proof=verified_off()
        ),
        "n2": NodeStatus(NodeState.OFF, power=Power.LEFT_OFF, fenced=(9.0,), proof=verified_off()),
    }
    taken = take_over(state({}, nodes), 8, "n3", 1000.0)
    assert (taken.nodes["n1"].power, taken.nodes["n1"].retry_after) == ("", 0.0)
    assert taken.nodes["n2"].power == "left off"


@pytest.mark.parametrize("behind", [-7200.0, 10.0, 7200.0])
@pytest.mark.parametrize("manager", ["n2", "n3"])
def test_a_fence_of_the_last_manager_may_yet_arrive_whatever_its_clock_says(
    behind, manager
) -> None:
    sent = NodeStatus(
        NodeState.FENCE, pending_fences=pending(manager=1000.0 - behind, earlier=990.0 - behind)
    )
    last = replace(state({}, {"n1": sent, "n4": NodeStatus(NodeState.ONLINE)}), manager="n2")
    taken = take_over(last, 8, manager, 1000.0)
    assert fence_time(taken.nodes["n1"], "manager") == 1000.0
    assert fence_time(taken.nodes["n1"], "earlier") == 1000.0
    assert (fence_time(taken.nodes["n4"], "manager"), fence_time(taken.nodes["n4"], "earlier")) == (
        0.0,
        0.0,
    )


def test_a_candidates_fence_becomes_part_of_the_state() -> None:
    taken = take_over(state({"web": started("n1")}), 8, "n2", 1000.0, INTENT)
    status = taken.nodes["n1"]
    assert (status.state, status.reason) == (NodeState.FENCE, INTENT.reason)
    assert fence_time(status, "manager") == 1000.0
    assert taken.open_failover("n1").services == ("web",)
    assert [event.kind for event in taken.events] == ["fence", "manager"]


def test_a_fence_by_a_candidate_ends_with_its_node_switched_on_again_even_if_idle() -> None:
    taken = step(take_over(state(), 8, "n2", 1000.0, INTENT), observed(desired(), {"n1": SILENT}))
    assert [order.node for order in taken.fences] == ["n1"]


def test_a_manager_that_was_fenced_right_after_its_return_is_switched_on_once_more() -> None:
    off = NodeStatus(
        NodeState.OFF, power=Power.ON, fenced=(900.0,), boot="n1-boot1", proof=verified_off()
    )
    taken = take_over(state({}, {"n1": off}), 8, "n2", 1000.0, INTENT)
    assert taken.nodes["n1"].state is NodeState.FENCE


def test_a_manager_that_is_fenced_may_run_what_it_reports_whatever_proved_it_dead_before() -> None:
    off = NodeStatus(
        NodeState.OFF, power=Power.ON, proof=lease_expired("its lease"), boot="n1-boot1"
    )
    stopped = ServiceStatus(ServiceState.STOPPED, last_node="n2")
    last = take_over(state({"web": stopped}, {"n1": off}), 8, "n2", 1000.0, INTENT)
    silent = replace(SILENT, report=says("n1", local=LocalState.RUNNING).report)
    waits = step(last, observed(desired(service()), {"n1": silent}), 3).state
    assert waits.services["web"].state is ServiceState.STOPPED
    assert waits.services["web"].reason == "n1 reports that it still has it"
    told = FenceReport("n1", True, "its device reports off", 1000.0, 1001.0)
    proved = step(waits, observed(desired(service()), {"n1": silent}, fences=(told,))).state
    assert proved.nodes["n1"].proved_by == "its device reports off"
    assert proved.services["web"].state is ServiceState.REQUEST_START


@pytest.mark.parametrize(
    ("last", "intent"),
    [
        (
            state({}, {"n1": NodeStatus(NodeState.OFF, proof=verified_off())}),
            replace(INTENT, epoch=0),
        ),
        (state(), replace(INTENT, epoch=6)),
    ],
)
def test_an_old_intent_changes_nothing(last, intent) -> None:
    assert take_over(last, 8, "n2", 1000.0, intent) == take_over(last, 8, "n2", 1000.0)


def test_a_candidates_fence_may_yet_arrive_whatever_its_clock_says_of_when_it_was_sent() -> None:
    hour_ago = replace(INTENT, recorded=INTENT.recorded - 3600.0)
    back = step(take_over(state(), 8, "n2", 1000.0, hour_ago), observed(desired()))
    assert back.state.nodes["n1"].state is NodeState.ONLINE
    gone = step(back.state, observed(desired(), {"n1": SILENT}))
    assert gone.state.nodes["n1"].state is NodeState.FENCE


def test_a_manager_whose_successor_was_fenced_before_it_wrote_may_have_been_fenced_too() -> None:
    successor = replace(INTENT, epoch=8)
    taken = take_over(state(), 9, "n2", 1000.0, successor)
    assert taken.nodes["n1"].state is NodeState.FENCE
    assert taken.nodes["n3"].fenced == (1000.0,)
    assert not take_over(state(), 8, "n2", 1000.0, INTENT).nodes["n3"].fenced


RUNNING = {"n1": says("n1", Outcome.OK, LocalState.RUNNING)}
QUIET = {
    "a running service": (state({"web": started("n1")}), desired(service()), RUNNING),
    "a settled service": (
        state({"web": started("n1")}),
        desired(service()),
        {"n1": says("n1", Outcome.OK, LocalState.RUNNING, settled=True)},
    ),
    "a service that starts": (
        state({"web": started("n1", state=ServiceState.REQUEST_START)}),
        desired(service()),
        {},
    ),
    "a stopped service": (
        state({"web": ServiceStatus(ServiceState.STOPPED)}),
        desired(service(state="stopped")),
        {},
    ),
    "an error": (
        state({"web": started("n1", state=ServiceState.ERROR)}),
        desired(service()),
        {"n1": says("n1", Outcome.BLOCKED, LocalState.BLOCKED)},
    ),
    "an error nowhere": (
        state({"web": started("", state=ServiceState.ERROR)}),
        desired(service()),
        {},
    ),
    "no node": (
        state({"web": ServiceStatus(ServiceState.STOPPED, failed_nodes=("n1", "n2", "n3"))}),
        desired(service()),
        {},
    ),
    "a blocked drain": (
        state({"web": started("n1")}),
        desired(service(), maintenance={node: Maintenance() for node in ("n1", "n2", "n3")}),
        RUNNING,
    ),
    "a probe that waits": (state(), desired(service()), {}),
    "a dead node": (
        state(
            {},
            {"n1": NodeStatus(NodeState.OFF, boot="n1-boot1", fenced=(9.0,), proof=verified_off())},
        ),
        desired(),
        {"n1": SILENT},
    ),
    "an idle node that is gone": (state(), desired(), {"n1": SILENT}),
    "a node that never came": (
        state({}, {"n1": NodeStatus()}),
        desired(),
        {"n1": replace(SILENT, report=None)},
    ),
}


@pytest.mark.parametrize("case", QUIET)
def test_when_nothing_changes_nothing_is_written(case) -> None:
    before, desired_, nodes = QUIET[case]
    settled = step(before, observed(desired_, nodes), rounds=3).state
    later = replace(observed(desired_, nodes), now=120.0, wall=1020.0)
    taken = step(settled, later)
    assert taken.state == settled
    assert not taken.fences
    assert not taken.powers


def test_a_node_that_left_the_configuration_is_dropped_once_nothing_is_on_it() -> None:
    nodes = {
        "n8": NodeStatus(NodeState.OFF, fenced=(9.0,), proof=verified_off()),
        "n9": NodeStatus(NodeState.FENCE),
    }
    taken = step(state({"web": started("n9")}, nodes), observed(desired(service())))
    assert "n8" not in taken.state.nodes
    assert "n9" in taken.state.nodes
    assert not taken.fences
    assert not taken.powers


def test_the_record_names_the_configuration_it_was_made_from() -> None:
    taken = step(state(), replace(observed(replace(desired(), version=5)), config_slot=3))
    assert (taken.state.config_version, taken.state.config_slot) == (5, 3)


def test_the_history_and_the_failovers_keep_within_their_bounds() -> None:
    full = ClusterState()
    for number in range(EVENTS_KEPT + 50):
        full = full.with_event(Event(float(number), "test"))
        full = full.with_failover(Failover(f"n{number}", finished=1.0))
    assert len(full.events) == EVENTS_KEPT
    assert len(full.failovers) == FAILOVERS_KEPT


@pytest.mark.parametrize("case", QUIET)
def test_a_state_comes_back_from_its_record_whatever_a_newer_version_adds(case) -> None:
    before = step(QUIET[case][0], observed(QUIET[case][1], QUIET[case][2])).state
    document = {**state_document(before), "from the future": 1}
    assert state_from_document(document) == before
