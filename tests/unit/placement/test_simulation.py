# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Clusters that are made up from a few words."""

from __future__ import annotations

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import ClusterDataError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.simulation import (
    MOST_NODES,
    simulate,
)


@pytest.mark.parametrize("count", [MOST_NODES, 10**30])
def test_more_nodes_in_all_than_fit_the_memory_are_refused(count):
    with pytest.raises(ClusterDataError, match="node count: expected at most 100000 nodes"):
        simulate([f"p,{count},900g,64g,8", "p,3,900g,64g,8"])
