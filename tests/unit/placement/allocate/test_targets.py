# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The best pair for an instance that leaves both its nodes, beside all pairs tried out."""

from __future__ import annotations

import json

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.allocate.solution import (  # noqa: E501
    Unplaceable,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.allocate.targets import (  # noqa: E501
    move_to_best_pair,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.iallocator.request import (  # noqa: E501
    read_request,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.model.moves import (
    failover,
    replace_secondary,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.model.score import (
    Score,
)
from ansible_collections.holdfast.ha.tests.unit.placement.random_requests import random_request

LEAVES_WHAT_ITS_NODES_SHARE = 1000062


def step(nodes, move, *what):
    """Return the nodes and the instance after a move, None if it cannot be made."""
    moved = move(nodes, *what, False)
    if isinstance(moved, str):
        return None
    return [moved.nodes.get(node.index, node) for node in nodes], moved.instance


def lowest_score(cluster, instance, group, targets):
    """Return the least score of the group over all pairs of targets, None if none can be."""
    start = list(cluster.nodes), instance
    if start[0][instance.primary].offline:
        start = step(start[0], failover, instance)
    scores = []
    for primary in targets:
        half = start and step(start[0], replace_secondary, start[1], primary)
        half = half and step(half[0], failover, half[1])
        for secondary in targets:
            if half and secondary != primary:
                whole = step(half[0], replace_secondary, half[1], secondary)
                if whole:
                    inside = [node for node in whole[0] if node.group == group]
                    scores.append(Score(inside).value())
    return min(scores, default=None)


@pytest.mark.parametrize("seed", [LEAVES_WHAT_ITS_NODES_SHARE, *range(150)])
def test_no_pair_has_a_lower_score_than_the_one_that_is_taken(seed):
    cluster, _asked, _warnings = read_request(json.dumps(random_request(seed)), 4096)
    mirrored = [each for each in cluster.instances() if each.template == "drbd"]
    for instance in mirrored[:3] if seed < LEAVES_WHAT_ITS_NODES_SHARE else mirrored:
        group = cluster.nodes[instance.primary].group
        targets = [
            node.index
            for node in cluster.nodes
            if node.group == group and not node.offline and node.index not in instance.nodes
        ]
        lowest = lowest_score(cluster, instance, group, targets)
        try:
            found = move_to_best_pair(cluster, instance, group, targets, False)
        except Unplaceable:
            assert lowest is None
            continue
        inside = [node for node in found.cluster.nodes if node.group == group]
        assert Score(inside).value() == pytest.approx(lowest, rel=1e-9, nan_ok=True)
