# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whom a manager's record concerns: too many is dear, too few leaves a node without its orders."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model import (
    news as news_module,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired import (
    DesiredState,
    Request,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.maintenance import (  # noqa: E501
    Maintenance,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.news import news
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.service import (
    Resource,
    Service,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    ClusterState,
    Event,
    NodeState,
    NodeStatus,
    ServiceStatus,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.states import (
    ServiceState,
)

NODES = ("n1", "n2", "n3", "n4")
NOBODY: frozenset[str] = frozenset()


def service(name, **options):
    return Service(name, (Resource("r", "ocf:test:thing"),), **options)


WEB, DB, BATCH = service("web", after=("db",)), service("db"), service("batch")
WANTED = DesiredState(version=5, services={"web": WEB, "db": DB, "batch": BATCH})
BEFORE = ClusterState(
    epoch=3,
    manager="n1",
    config_version=5,
    config_slot=1,
    services={
        "web": ServiceStatus(ServiceState.STARTED, node="n1", uid="3.1"),
        "db": ServiceStatus(ServiceState.STARTED, node="n2", uid="3.2"),
        "batch": ServiceStatus(ServiceState.STOPPED),
    },
    nodes={name: NodeStatus(NodeState.ONLINE) for name in NODES},
)


def with_service(name, **values):
    return BEFORE.with_service(name, replace(BEFORE.services[name], **values))


def concerned(after=BEFORE, desired=WANTED):
    found = news(BEFORE, WANTED, after, desired)
    return found.nodes, found.configured


@pytest.mark.parametrize(
    ("after", "nodes", "configured"),
    [
        pytest.param(BEFORE, NOBODY, NOBODY, id="nothing"),
        pytest.param(
            replace(BEFORE, commands=9, events=(Event(1.0, "x", "y"),), uneven=3.0),
            NOBODY,
            NOBODY,
            id="what no LRM acts on",
        ),
        pytest.param(with_service("db", reason="other"), {"n2"}, NOBODY, id="its place"),
        pytest.param(
            with_service("db", state=ServiceState.REQUEST_START, node="n3"),
            {"n2", "n3"},
            {"n3"},
            id="old place and new one",
        ),
        pytest.param(
            with_service("db", state=ServiceState.MIGRATE, target="n4"),
            {"n2", "n4"},
            {"n4"},
            id="the target of a live migration",
        ),
        pytest.param(
            with_service("db", from_node="n3"), {"n2", "n3"}, {"n3"}, id="where it comes from"
        ),
        pytest.param(
            with_service("web", state=ServiceState.REQUEST_STOP),
            {"n1", "n2"},
            NOBODY,
            id="what stops before another one",
        ),
        pytest.param(
            with_service("batch", state=ServiceState.PROBE), None, NOBODY, id="a probe asks all"
        ),
        pytest.param(
            with_service("batch", reason="waits for memory"), NOBODY, NOBODY, id="it runs nowhere"
        ),
        pytest.param(
            BEFORE.with_node("n4", NodeStatus(NodeState.ONLINE, reason="other")),
            {"n4"},
            NOBODY,
            id="a node's own status",
        ),
        pytest.param(
            BEFORE.with_node("n1", NodeStatus(NodeState.FENCE)),
            {"n1", "n2"},
            NOBODY,
            id="the node of what stops before another one",
        ),
        pytest.param(replace(BEFORE, epoch=4), None, None, id="another manager"),
        pytest.param(replace(BEFORE, generation=1), None, None, id="repaired records"),
        pytest.param(replace(BEFORE, disarm="disarming"), None, NOBODY, id="the whole cluster"),
        pytest.param(replace(BEFORE, ignored=("batch",)), None, NOBODY, id="unmanaged ones"),
        pytest.param(
            replace(BEFORE, services={key: BEFORE.services[key] for key in ("web", "batch")}),
            {"n2"},
            NOBODY,
            id="one that is gone",
        ),
    ],
)
def test_a_change_concerns(after, nodes, configured):
    assert concerned(after) == (nodes, configured)


def declared(**services):
    return replace(WANTED, version=6, services={**WANTED.services, **services})


SECRET = service("db")
SECRET = replace(SECRET, resources=(replace(SECRET.resources[0], sources={"key_file": "ab"}),))


@pytest.mark.parametrize(
    ("desired", "nodes", "configured"),
    [
        pytest.param(replace(WANTED, version=6), NOBODY, NOBODY, id="nothing"),
        pytest.param(
            replace(WANTED, version=6, requests={"db": Request("move", 1.0, "n3")}),
            NOBODY,
            NOBODY,
            id="a request",
        ),
        pytest.param(
            declared(web=replace(WEB, max_restart=9)), {"n1", "n2"}, {"n1", "n2"}, id="a service"
        ),
        pytest.param(declared(db=replace(DB, max_restart=9)), {"n2"}, {"n2"}, id="where it runs"),
        pytest.param(declared(new=service("new")), None, None, id="a new service"),
        pytest.param(declared(db=replace(DB, ignored=True)), None, None, id="an unmanaged one"),
        pytest.param(declared(db=SECRET), None, None, id="a secret, which each node compares"),
        pytest.param(
            replace(WANTED, version=6, maintenance={"n4": Maintenance(1.0, "root", "n1")}),
            None,
            None,
            id="a maintenance",
        ),
    ],
)
def test_a_change_of_the_configuration_concerns(desired, nodes, configured):
    after = replace(BEFORE, config_version=6, config_slot=2)
    found = news(BEFORE, WANTED, after, desired)
    assert (found.nodes, found.configured, found.version) == (nodes, configured, 6)


def test_a_removed_service_concerns_all():
    left = {key: one for key, one in WANTED.services.items() if key != "batch"}
    assert concerned(desired=replace(WANTED, version=6, services=left)) == (None, None)


@pytest.mark.parametrize("known", [(None, WANTED), (BEFORE, None)])
def test_a_record_after_an_unknown_one_concerns_all(known):
    found = news(*known, BEFORE, WANTED)
    assert (found.nodes, found.configured, found.version) == (None, None, 5)


def test_each_field_that_is_left_out_exists():
    """A field of a new name would be compared, and one that was renamed no longer be left out."""
    state = {item.name for item in fields(ClusterState)}
    assert state >= news_module.OF_NO_LRM | news_module.OF_SINGLE_NODES
    assert {item.name for item in fields(DesiredState)} >= news_module.NOT_OF_NODES


def test_nodes_that_left_have_no_host_id():
    found = news(BEFORE, WANTED, with_service("db", node="n3"), WANTED)
    assert found.numbered({"n1": 1, "n2": 2}) == ({2}, frozenset())
