# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a report says, and for how long: of a suspect, of an earlier start, of an ended command."""

from __future__ import annotations

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.lrm import (
    step as local_step,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.lrm.round import (
    Memory,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.lrm.step import (
    LocalObservation,
    resume,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.jobs import (
    Job,
    JobEnd,
    JobKind,
    Purpose,
    Sight,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (
    Answer,
    FenceReport,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    CommandResult,
    LocalService,
    LocalState,
    Outcome,
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
    observed,
    observed_node,
    report,
    service,
    started,
    state,
    step,
)

WEB = service()


@pytest.mark.parametrize(
    "status",
    [
        started("n1", state=ServiceState.REQUEST_START),
        started("n1", state=ServiceState.REQUEST_STOP),
        started("n1", state=ServiceState.RELOCATE, target="n2"),
    ],
    ids=lambda one: one.state.value,
)
def test_the_result_in_the_report_of_a_suspect_is_not_believed(status) -> None:
    results = {status.uid: CommandResult("web", Outcome.FAILED, "failed", 999.0)}
    silent = observed_node(
        "n1", heartbeat_age=4.0, answer=Answer.YES, report=report("n1", results=results)
    )
    suspect = {"n1": NodeStatus(NodeState.SUSPECT, boot="n1-boot1")}
    taken = step(state({"web": status}, suspect), observed(desired(WEB), {"n1": silent}))
    assert taken.state.nodes["n1"].state is NodeState.SUSPECT
    assert taken.state.services["web"] == status


def test_a_stop_for_a_reason_of_the_nodes_own_does_not_answer_the_managers_command() -> None:
    local = LocalService(WEB, LocalState.STOPPING, "7.1")
    before = Report("n1", "n1-boot1", services={"web": local}, accepted={"7.1": "web"})
    ends = {
        purpose: JobEnd(
            Job(JobKind.STOP, WEB, "7.1", purpose, "why"), Outcome.OK, Sight.STOPPED, "", 9.0, 1.0
        )
        for purpose in (Purpose.AWAY, Purpose.COMMAND)
    }
    answers = {
        purpose: local_step.step(
            before, Memory(), LocalObservation(50.0, 1000.0, ended=(end,))
        ).report.results
        for purpose, end in ends.items()
    }
    assert (set(answers[Purpose.AWAY]), set(answers[Purpose.COMMAND])) == (set(), {"7.1"})


@pytest.mark.parametrize(("boot", "coming"), [("n1-boot1", ("web",)), ("n1-boot2", ())])
def test_a_new_lrm_answers_no_probe_by_its_predecessor_and_knows_what_comes_live(
    boot, coming
) -> None:
    last = Report("n1", "n1-boot1", found={"web": False, "7.3": True}, coming=("web",))
    taken, _memory = resume(last, "n1", boot)
    assert (taken.found, taken.coming) == ({}, coming)


@pytest.mark.parametrize(
    ("status", "probes", "kept"),
    [
        (ServiceStatus(ServiceState.PROBE, uid="7.3"), ("web",), {"7.3"}),
        (ServiceStatus(ServiceState.PROBE, uid="7.4"), ("web",), set()),
        (started("n2"), (), set()),
    ],
    ids=["asked", "asked again", "no longer asked"],
)
def test_the_answer_to_a_probe_is_kept_for_as_long_as_it_is_asked(status, probes, kept) -> None:
    before = Report("n1", "n1-boot1", found={"7.3": False})
    record = state({"web": status}, probes=probes)
    taken = local_step.step(before, Memory(), LocalObservation(50.0, 1000.0, record, desired(WEB)))
    assert set(taken.report.found) == kept


def test_a_node_whose_same_start_writes_again_is_not_dead_whatever_its_device_says() -> None:
    to_be_fenced = NodeStatus(NodeState.FENCE, reason="silent", boot="n1-boot1")
    look = observed(
        desired(WEB),
        {"n1": observed_node("n1", heartbeat_age=0.5)},
        fences=(FenceReport("n1", True, "its device reports off", 990.0, 995.0),),
    )
    before = state({"web": started("n1")}, {"n1": to_be_fenced})
    taken = step(before, look)
    assert taken.state.nodes["n1"].proof is None
    assert taken.state.services["web"].node == "n1"
    assert any("it writes again" in event.text for event in taken.state.events)


@pytest.mark.parametrize(
    ("base", "waits"),
    [
        *((one, True) for one in ("request_start", "request_stop", "relocate")),
        # It runs, or what is wrong with it does not end by itself: front ran without it as well.
        *((one, False) for one in ("started", "error")),
    ],
)
def test_a_moved_service_starts_after_the_one_that_moves_with_it(base, waits) -> None:
    front = service("front", after=("base",))
    moving = started("n1", front, state=ServiceState.RELOCATE, target="n2", reason="n1 drains")
    there = started("n3", service("base"), state=ServiceState(base), target="n2", uid="7.2")
    results = {"7.1": CommandResult("front", Outcome.OK, "stopped")}
    look = observed(
        desired(service("base"), front),
        {"n1": observed_node("n1", report=report("n1", results=results))},
    )
    after = step(state({"base": there, "front": moving}), look).state.services["front"]
    assert (after.state is ServiceState.STOPPED) == waits
    assert after.last_node == "n2"
    if waits:
        assert "waits for 'base', after which it is started" in after.reason
    else:
        assert (after.state, after.node) == (ServiceState.REQUEST_START, "n2")
