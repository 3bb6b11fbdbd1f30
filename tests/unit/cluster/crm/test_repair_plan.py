# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""After a repair of the records nothing is believed that they said; every service is looked for."""

from __future__ import annotations

from dataclasses import replace

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm import step
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.takeover import (
    record_restored,
    repaired,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.maintenance import (  # noqa: E501
    Maintenance,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (
    Answer,
    LeaseSight,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    LocalService,
    LocalState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    ClusterState,
    NodeState,
    NodeStatus,
    ServiceStatus,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.states import (
    ServiceState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.versions import (
    Floor,
)
from ansible_collections.holdfast.ha.tests.unit.cluster.samples import (
    NODES,
    TIMING,
    desired,
    fence_time,
    observed,
    observed_node,
    pending,
    report,
    service,
    verified_off,
)

WALL = 2000.0
LAST = ClusterState(
    epoch=5,
    manager="n2",
    commands=10,
    services={
        "web": ServiceStatus(ServiceState.STARTED, "n1", uid="5.9", digest="old"),
        "gone": ServiceStatus(ServiceState.STARTED, "n3", uid="5.8"),
    },
    nodes={
        "n1": NodeStatus(NodeState.ONLINE, boot="n1-boot1"),
        "n2": NodeStatus(NodeState.OFF, proof=verified_off("n2 is off"), boot="n2-boot1"),
        "n3": NodeStatus(NodeState.FENCE, pending_fences=pending(manager=1990.0)),
    },
)
DECLARED = desired(
    service(),
    service("left", ignored=True),
    generation=3,
    repaired_by=Maintenance("keep running: a test", "ada", WALL),
)


def begun(floors=()):
    return repaired(LAST, DECLARED, floors, 7, "n1", WALL)


def test_a_generation_begins_above_every_number_of_commands_that_is_known():
    state = begun([Floor("n2", commands=12), Floor("n3", commands=11)])
    assert (state.generation, state.epoch, state.manager) == (3, 7, "n1")
    assert state.base == 13
    assert state.commands == 14
    assert state.services["web"].uid == "7.14"


def test_no_place_and_no_proof_of_the_old_record_is_believed():
    state = begun()
    assert {one.state for one in state.nodes.values()} == {NodeState.UNKNOWN}
    assert not any(one.proof or one.boot for one in state.nodes.values())
    assert set(state.services) == {"web"}
    assert state.services["web"].state is ServiceState.PROBE
    assert not state.services["web"].node
    assert state.probes == ("web",)


def test_a_fence_that_may_still_arrive_is_remembered():
    n3 = begun().nodes["n3"]
    assert (fence_time(n3, "manager"), fence_time(n3, "earlier")) == (1990.0, 1990.0)


def test_the_history_says_who_repaired_the_records_and_why():
    text = begun().events[-1].text
    assert begun().events[-1].kind == "repaired"
    assert "keep running: a test" in text
    assert "ada" in text


def answered(state, name, runs, **changes):
    local = LocalService(service(), LocalState.RUNNING, "5.9")
    said = report(name, found={state.services["web"].uid: runs}, generation=3)
    if runs:
        said = replace(said, services={"web": local})
    return observed_node(name, report=said, **changes)


def rounds(state, nodes, number=4):
    for _turn in range(number):
        state = step.step(state, observed(DECLARED, nodes), TIMING).state
    return state


def test_a_service_is_taken_up_where_it_is_found_whatever_the_old_record_said():
    state = begun()
    nodes = {name: answered(state, name, name == "n2") for name in NODES}
    web = rounds(state, nodes).services["web"]
    assert (web.state, web.node) == (ServiceState.STARTED, "n2")


def test_nothing_is_started_until_every_node_has_answered():
    state = begun()
    nodes = {name: answered(state, name, False) for name in NODES}
    waiting = rounds(state, {**nodes, "n3": observed_node("n3")})
    assert waiting.services["web"].state is ServiceState.PROBE
    assert "n3 has not reported since the records" in waiting.services["web"].reason
    web = rounds(state, nodes).services["web"]
    assert web.state is ServiceState.REQUEST_START


def test_an_answer_from_before_a_node_says_what_it_is_at_work_on_does_not_count():
    """Only the lost record knew of a live migration to n2, which answered before that ended."""
    state = begun()
    nodes = {name: answered(state, name, False) for name in NODES}
    old = report("n3", generation=2)
    state = rounds(state, {**nodes, "n3": observed_node("n3", report=old)})
    migrating = LocalService(service(), LocalState.MIGRATING, "5.9")
    busy = replace(report("n3", generation=3), services={"web": migrating})
    state = rounds(state, {**nodes, "n3": observed_node("n3", report=busy)})
    assert "n3 is still at work on it" in state.services["web"].reason
    asked = state.services["web"].uid
    gone = report("n3", generation=3, found={asked: False})
    state = rounds(state, {**nodes, "n3": observed_node("n3", report=gone)})
    web = state.services["web"]
    assert (web.state, web.uid != asked) == (ServiceState.PROBE, True)
    nodes = {name: answered(state, name, name == "n2") for name in NODES}
    assert rounds(state, nodes).services["web"].node == "n2"


def test_an_expired_lease_is_not_enough_for_a_node_that_cannot_answer():
    state = begun()
    nodes = {name: answered(state, name, False) for name in NODES}
    silent = observed_node("n3", heartbeat_age=99.0, answer=Answer.NO, lease=LeaseSight.DEAD)
    after = rounds(state, {**nodes, "n3": silent})
    assert after.nodes["n3"].state is NodeState.FENCE
    assert after.services["web"].state is ServiceState.PROBE


def test_a_record_that_was_damaged_on_storage_is_named_in_the_history():
    event = record_restored(LAST, WALL).events[-1]
    assert (event.kind, event.node, event.at) == ("record_restored", "n2", WALL)
