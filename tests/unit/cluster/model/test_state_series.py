# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Records one after the other: each is the same as if it had been encoded and decoded alone."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model import (
    state_series,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.membership import (  # noqa: E501
    Membership,
    Place,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    ClusterState,
    Event,
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
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import DocumentError

WEB = ServiceStatus(ServiceState.STARTED, node="n1", uid="3.1", failed_nodes=("n2",))
FIRST = ClusterState(
    epoch=3,
    manager="n1",
    services={"web": WEB, "db": replace(WEB, node="n2", uid="3.2")},
    nodes={"n1": NodeStatus(NodeState.ONLINE), "n2": NodeStatus(NodeState.ONLINE, boot="b")},
)
MEMBERSHIP = Membership(1, "ab", {"n1": Place(1, "192.0.2.1", 7170)})
SERIES = (
    FIRST,
    FIRST.with_service("web", replace(WEB, state=ServiceState.FREEZE, before="started")),
    FIRST.with_service("new", ServiceStatus(ServiceState.PROBE)),
    replace(FIRST, services={"db": FIRST.services["db"]}),
    FIRST.with_node("n2", NodeStatus(NodeState.FENCE, reason="silent")),
    replace(FIRST, membership=MEMBERSHIP, commands=7),
    replace(FIRST, membership=replace(MEMBERSHIP, version=2)),
    FIRST.with_event(Event(1.0, "started", "it is well")),
    ClusterState(),
    FIRST,
)


def test_each_record_of_a_series_is_read_as_it_was_written():
    writer, reader = state_series.StateWriter(), state_series.StateReader()
    for state in SERIES:
        document = json.loads(writer.encode(state, {}))
        assert document == json.loads(json.dumps(state_document(state)))
        assert reader.decode(document) == state_from_document(document) == state


def test_what_did_not_change_is_the_same_object_and_is_not_encoded_again(monkeypatch):
    writer, reader = state_series.StateWriter(), state_series.StateReader()
    first = reader.decode(json.loads(writer.encode(FIRST, {})))
    encoded = []
    whole = state_series._text

    def counted(value):
        encoded.append(value)
        return whole(value)

    monkeypatch.setattr(state_series, "_text", counted)
    changed = FIRST.with_service("web", replace(WEB, reason="moved"))
    data = writer.encode(changed, {})
    assert [value["reason"] for value in encoded if isinstance(value, dict) and "uid" in value] == [
        "moved"
    ]
    second = reader.decode(json.loads(data))
    assert second.services["db"] is first.services["db"]
    assert second.nodes["n1"] is first.nodes["n1"]
    assert second.services["web"].reason == "moved"


def test_more_is_in_the_document():
    data = state_series.StateWriter().encode(FIRST, {"freeing": {"a": 1}})
    assert json.loads(data)["freeing"] == {"a": 1}


@pytest.mark.parametrize(
    ("rows", "error"),
    [
        ({"web": {"state": "nonsense"}}, "web: "),
        ({"we b": {"state": "started"}}, "a service id"),
        ({"web": 3}, "web: "),
        (["web"], "expected an object"),
    ],
)
def test_a_wrong_row_is_refused_also_after_a_right_one(rows, error):
    reader = state_series.StateReader()
    document = json.loads(json.dumps(state_document(FIRST)))
    reader.decode(document)
    for _again in range(2):
        with pytest.raises(DocumentError, match=error):
            reader.decode({**document, "services": rows})
    assert reader.decode(document) == FIRST
