# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Proofs and pending fences in the manager's record, also in those of versions before."""

from __future__ import annotations

from itertools import permutations

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    ClusterState,
    FenceSender,
    NodeState,
    NodeStatus,
    PendingFence,
    Power,
    Proof,
    ProofKind,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state_codec import (  # noqa: E501
    state_document,
    state_from_document,
)


@pytest.mark.parametrize("kind", ProofKind)
@pytest.mark.parametrize("power", Power)
def test_a_proof_is_read_back_as_it_was_written(kind, power):
    status = NodeStatus(NodeState.OFF, 990.0, proof=Proof(kind, 989.5, "why"), power=power)
    state = ClusterState(nodes={"n1": status})
    assert state_from_document(state_document(state)) == state


@pytest.mark.parametrize(
    ("row", "kind", "power"),
    [
        ({}, ProofKind.VERIFIED_OFF, Power.NONE),
        ({"power": "on"}, ProofKind.VERIFIED_OFF, Power.ON),
        ({"expired": True}, ProofKind.LEASE_EXPIRED, Power.NONE),
        ({"power": "shut down"}, ProofKind.CLEAN_SHUTDOWN, Power.LEFT_OFF),
        ({"power": "left off"}, ProofKind.VERIFIED_OFF, Power.LEFT_OFF),
    ],
)
def test_a_proof_of_the_version_before_is_understood(row, kind, power):
    row = {"state": "off", "since": 990.0, "proof": "why", **row}
    status = state_from_document({"nodes": {"n1": row}}).nodes["n1"]
    assert (status.proof, status.power) == (Proof(kind, 990.0, "why"), power)


@pytest.mark.parametrize(
    ("kind", "power", "expired", "said"),
    [
        (ProofKind.VERIFIED_OFF, Power.SENT, None, "sent"),
        (ProofKind.LEASE_EXPIRED, Power.NONE, True, None),
        (ProofKind.CLEAN_SHUTDOWN, Power.LEFT_OFF, None, "shut down"),
    ],
)
def test_the_version_before_finds_in_a_record_what_it_knows(kind, power, expired, said):
    status = NodeStatus(NodeState.OFF, 990.0, proof=Proof(kind, 990.0, "why"), power=power)
    row = state_document(ClusterState(nodes={"n1": status}))["nodes"]["n1"]
    assert (row["proof"], row.get("expired"), row.get("power")) == ("why", expired, said)


def test_a_node_that_is_not_dead_has_no_proof():
    row = {"state": "online", "since": 990.0}
    assert state_from_document({"nodes": {"n1": row}}).nodes["n1"].proof is None


@pytest.mark.parametrize("senders", list(permutations(FenceSender)))
def test_pending_fences_are_read_back_as_they_were_written(senders):
    status = NodeStatus(NodeState.FENCE, 990.0)
    for number, sender in enumerate(senders):
        status = status.with_pending_fence(sender, 991.0 + number)
    state = ClusterState(nodes={"n1": status})
    assert state_from_document(state_document(state)) == state
    assert all(status.fence_sent_by(one) == 991.0 + senders.index(one) for one in FenceSender)


def test_pending_fences_are_where_the_version_before_has_them():
    row = {"state": "online", "fence_sent": 1.0, "inherited_fence": 2.0, "slower_fence": 3.0}
    state = state_from_document({"nodes": {"n1": row}})
    assert state.nodes["n1"].pending_fences == (
        PendingFence(FenceSender.MANAGER, 1.0),
        PendingFence(FenceSender.EARLIER_MANAGER, 2.0),
        PendingFence(FenceSender.CANDIDATE, 3.0),
    )
    written = state_document(state)["nodes"]["n1"]
    assert {key: written[key] for key in row} == row
    assert "pending_fences" not in written
