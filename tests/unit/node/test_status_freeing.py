# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the status shows of a host lease that is being freed."""

from __future__ import annotations

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.lease_freeing import (  # noqa: E501
    Freeing,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.report.record_problems import (  # noqa: E501
    UNHELD,
    leases_being_freed,
)

RECORDS = {"n1": Freeing(4, {"n3": 7})}


def node(state="online", lease="live", generation=4):
    return {"state": state, "host_lease": {"state": lease, "generation": generation}}


@pytest.mark.parametrize(
    ("writer", "freed", "shown"),
    [
        (node(), node("off", "free", 7), True),
        (node(), node("unknown", "free", 7), True),
        (node(), node("online", "live", 8), False),
        (node(lease="free"), node("off", "free", 7), False),
        (node(lease=UNHELD), node("off", "free", 7), False),
        (node(generation=5), node("off", "free", 7), False),
        (node("off"), node("off", "free", 7), False),
    ],
)
def test_it_is_shown_for_as_long_as_the_node_waits_for_it(writer, freed, shown):
    found = leases_being_freed(RECORDS, {"n1": writer, "n3": freed})
    said = (
        "Node n1 may be freeing host lease 7 of node n3; node n3 does not join before that has"
        " ended."
    )
    assert found == ([said] if shown else [])


def test_what_was_recorded_of_a_node_that_was_removed_since_is_not_shown():
    assert leases_being_freed(RECORDS, {"n1": node()}) == []
