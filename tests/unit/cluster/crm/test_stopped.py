# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A service is not started while another node reports it, whatever the manager's record says."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (
    Answer,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    LocalState,
    Outcome,
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
    says,
    service,
    started,
    state,
    step,
    verified_off,
)

STOPPED = ServiceStatus(ServiceState.STOPPED, last_node="n1")
RECOVERY = ServiceStatus(ServiceState.RECOVERY, "n3", last_node="n3")
OFF = NodeStatus(NodeState.OFF, proof=verified_off("n2 is off"), boot="n2-boot1")


def web(status, look, nodes=None):
    return step(
        state({"web": status}, nodes), observed(desired(service()), look), 3
    ).state.services["web"]


@pytest.mark.parametrize("status", [STOPPED, RECOVERY], ids=["stopped", "recovery"])
@pytest.mark.parametrize("local", sorted(set(LocalState) - {LocalState.UNKNOWN}))
def test_a_start_waits_for_the_node_that_reports_the_service(status, local):
    after = web(status, {"n2": says("n2", local=local, uid="6.1")})
    gone = local in (LocalState.STOPPED, LocalState.FAILED)
    assert (after.state is ServiceState.REQUEST_START) is gone
    assert gone or after.reason == "n2 reports that it still has it"


def test_it_starts_once_that_node_does_not_report_it_any_more():
    look = {"n2": says("n2", local=LocalState.RUNNING, uid="6.1")}
    waiting = step(state({"web": STOPPED}), observed(desired(service()), look)).state
    after = step(waiting, observed(desired(service())), 3).state.services["web"]
    assert (after.state, after.node) == (ServiceState.REQUEST_START, "n1")


def test_what_a_node_reported_before_it_was_confirmed_off_does_not_count():
    silent = says("n2", local=LocalState.RUNNING, uid="6.1")
    look = {"n2": replace(silent, heartbeat_age=60.0, answer=Answer.NO)}
    assert web(STOPPED, look, {"n2": OFF}).state is ServiceState.REQUEST_START


def test_what_a_node_has_not_seen_itself_since_it_was_started_does_not_count():
    look = {"n2": says("n2", local=LocalState.UNKNOWN, uid="6.1")}
    assert web(STOPPED, look).state is ServiceState.REQUEST_START


def test_after_a_failed_start_it_is_not_tried_elsewhere_while_a_third_node_reports_it():
    starting = replace(started("n1"), state=ServiceState.REQUEST_START)
    look = {
        "n1": says("n1", Outcome.FAILED, LocalState.FAILED),
        "n3": says("n3", local=LocalState.RUNNING, uid="6.1"),
    }
    after = web(starting, look)
    assert after.state is ServiceState.STOPPED
    assert not after.node
