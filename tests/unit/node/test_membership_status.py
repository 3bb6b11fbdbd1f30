# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the status says of memberships, and which host ids run that nobody configured."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.membership import (  # noqa: E501
    Place,
    make_membership,
    with_version,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    Sight,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    ClusterState,
    NodeState,
    NodeStatus,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.configuration import (
    Member,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.heartbeat import (
    heartbeat,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.own_membership import (  # noqa: E501
    ForeignHosts,
    places,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.report import (
    conditions,
    record_problems,
    wording,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.whiteboard.board import (  # noqa: E501
    Board,
)
from ansible_collections.holdfast.ha.tests.unit.cluster.samples import verified_off
from ansible_collections.holdfast.ha.tests.unit.node.sample_node import configuration
from ansible_collections.holdfast.ha.tests.unit.node.sample_status import healthy

N2 = Member("n2", 2, "127.0.0.1", 21006)


def state_of(membership):
    nodes = {"n2": NodeStatus(NodeState.ONLINE)}
    return ClusterState(nodes=nodes, membership=with_version(membership, 5))


@pytest.fixture
def own(tmp_path):
    return make_membership(places(configuration(tmp_path)), "f")


def without(membership, name):
    members = {key: one for key, one in membership.members.items() if key != name}
    return make_membership(members, membership.fence)


def test_a_node_that_the_manager_does_not_have_is_shown_as_unknown(own):
    assert record_problems.unknown_node("n2", N2, ClusterState()) == {}
    assert record_problems.unknown_node("n2", N2, state_of(own)) == {}
    found = record_problems.unknown_node("n2", N2, state_of(without(own, "n2")))
    assert found["state"] == "unknown"
    assert "(version 5) does not have it: run the playbook deploy" in found["reason"]
    other = make_membership({**own.members, "n2": Place(8)}, "f")
    found = record_problems.unknown_node("n2", N2, state_of(other))
    assert "has it with host id 8" in found["reason"]


def test_a_node_that_runs_with_another_membership_has_a_problem(own):
    state = state_of(own)
    for report in (None, Sight(), Sight(node="n2"), Sight(node="n2", membership=own.digest)):
        assert record_problems.node_problem("n2", report, state) == ""
    other = Sight(node="n2", membership="0" * 32, membership_differs="it lacks n3")
    found = record_problems.node_problem("n2", other, state)
    assert "cannot be manager" in found
    assert "(version 5): it lacks n3; run the playbook deploy" in found
    off = state.with_node("n2", NodeStatus(NodeState.OFF, proof=verified_off()))
    assert record_problems.node_problem("n2", other, off) == ""


def test_a_record_under_another_name_is_a_problem(own):
    found = record_problems.node_problem("n2", Sight(node="n7"), state_of(own))
    assert "is that of n7" in found


def errors(status):
    found = conditions.find_conditions({**status, "services": {}})
    return wording.texts(found, wording.Severity.ERROR)


def test_the_configuration_of_this_node_and_foreign_hosts_are_problems(own, tmp_path):
    here = configuration(tmp_path)
    state = replace(state_of(own), foreign_hosts={"9": "n9"})
    status = {**healthy(), "membership": record_problems.membership_status(here, state)}
    status["nodes"] = {}
    assert status["membership"]["differs"] == ""
    (problem,) = errors(status)
    assert problem.startswith("Host id 9 (n9) runs, but is not in the cluster's membership")
    wider = make_membership({**own.members, "n4": Place(4)}, "f")
    status["membership"] = record_problems.membership_status(here, state_of(wider))
    (problem,) = errors(status)
    assert problem.startswith("The configuration file of n1 is not")
    assert "it lacks n4" in problem
    node = {**healthy()["nodes"]["n1"], "problem": "it cannot be manager: it lacks n4"}
    status["nodes"] = {"n1": node}
    assert errors(status) == ["Node n1: it cannot be manager: it lacks n4."]
    none = record_problems.membership_status(here, ClusterState())
    assert (none["version"], none["members"]) == (0, [])


def test_a_host_id_outside_of_the_configuration_beats_once_it_was_seen_to_change():
    hosts = ForeignHosts([1, 2, 3])

    def look(now, watched_since=0.0, **stamps):
        blocks = {
            int(host_id[1:]): heartbeat(
                int(host_id[1:]), host_id, stamp, running=0, drained=False, report=1
            )
            for host_id, stamp in stamps.items()
        }
        return hosts.look(replace(Board(8), hosts=blocks), now, watched_since)

    assert look(10.0, n1=5) == {}
    first = look(11.0, n1=6, n9=5)[9]
    assert (first.name, first.age, first.beats) == ("n9", 0.0, False)
    assert look(13.0, n9=5)[9].age == 2.0
    assert look(14.0, n9=6)[9].beats
    late = look(20.0, n9=6)[9]
    assert (late.age, late.beats) == (6.0, True)
    unwatched = look(40.0, watched_since=39.0, n9=6)[9]
    assert (unwatched.age, unwatched.beats) == (1.0, False)
