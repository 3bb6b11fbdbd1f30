# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules that say where services would go warn of a node that would carry more than it has."""

from __future__ import annotations

import pytest
from ansible.module_utils.basic import AnsibleModule
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired import (
    DesiredState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (
    ObservedNode,
    ObservedState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    Report,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.service import (
    Resource,
    Service,
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
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.forecast import outages
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.operations import move
from ansible_collections.holdfast.ha.tests.unit.module_runner import run_ok

NODES = ("n1", "n2", "n3")


@pytest.fixture
def looked(monkeypatch):
    """Let n1 run a service of 4000 MiB, by the default policy, and each node have 1000.

    Returns what was warned of.
    """
    desired = DesiredState().with_service(
        Service("big", (Resource("r", "ocf:test:thing"),), memory=4000)
    )
    state = ClusterState(
        services={"big": ServiceStatus(ServiceState.STARTED, "n1")},
        nodes={name: NodeStatus(NodeState.ONLINE) for name in NODES},
    )
    nodes = {name: ObservedNode(0.0, report=Report(name, room=(4.0, 1000.0))) for name in NODES}
    for user in (move, outages):
        monkeypatch.setattr(
            user, "look", lambda _node: (state, ObservedState(0.0, 0.0, desired, 0, nodes))
        )
    warned = []
    monkeypatch.setattr(AnsibleModule, "warn", lambda _module, text: warned.append(text))
    return warned


@pytest.mark.parametrize(
    ("module", "options", "begin"),
    [
        ("evacuate", {"nodes": ["n1"]}, "n2 would carry services that declare 4000 MiB"),
        ("outage_info", {"nodes": ["n1"]}, "While n1 cannot be used, n2 would carry"),
        ("place_info", {"service": "new", "memory": 9999}, "n2 would carry services that"),
    ],
)
def test_it_is_warned_before_anything_moves(node_config, looked, module, options, begin):
    run_ok(module, {"config": node_config, **options}, check=True)
    (warning,) = looked
    assert warning.startswith(begin)
    assert "MiB of memory of 1000" in warning


@pytest.mark.parametrize(
    ("module", "options"),
    [("evacuate", {"nodes": ["n2"]}), ("place_info", {"service": "new", "memory": 900})],
)
def test_what_has_room_is_not_warned_of(node_config, looked, module, options):
    run_ok(module, {"config": node_config, **options}, check=True)
    assert not looked


def test_a_new_service_has_no_place_where_its_resource_is_missing(looked, node_config):
    found = run_ok(
        "place_info", {"config": node_config, "service": "new", "utilization": {"gpu": 2}}
    )
    assert found["node"] == ""
    assert found["rejected"] == {name: f"needs 2 gpu; node {name} has none" for name in NODES}
