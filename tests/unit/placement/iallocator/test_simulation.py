# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Clusters that are made up from a few words."""

from __future__ import annotations

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import ClusterDataError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.iallocator.simulation import (  # noqa: E501
    MOST_NODES,
    simulate,
)


@pytest.mark.parametrize("count", [MOST_NODES, 10**30])
def test_more_nodes_in_all_than_fit_the_memory_are_refused(count):
    with pytest.raises(ClusterDataError, match="node count: expected at most 100000 nodes"):
        simulate([f"p,{count},900g,64g,8", "p,3,900g,64g,8"])


@pytest.mark.parametrize(
    ("text", "exclusive"), [("True", True), ("(True)", True), (" ( False )", False)]
)
def test_exclusive_storage_is_read_as_haskell_reads_it(text, exclusive):
    cluster, _warnings = simulate([f"p,1,900g,64g,8,1,{text}"])
    assert cluster.nodes[0].exclusive is exclusive


def test_a_policy_that_is_none_is_told_in_both_of_htools_ways():
    with pytest.raises(ClusterDataError) as caught:
        simulate(["(p),1,900g,64g,8"])
    assert str(caught.value) == (
        'Invalid string value for type AllocPolicy: "(p)"; '
        "Cannot parse AllocPolicy abbreviation '(p)'"
    )
