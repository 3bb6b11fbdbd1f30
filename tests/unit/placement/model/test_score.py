# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The score: what a change makes of it, and that the bounds never lie above it."""

from __future__ import annotations

import json
import math

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.allocate.pair_bounds import (  # noqa: E501
    PairBounds,
    _as_primary,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.allocate.solution import (  # noqa: E501
    fixed,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.iallocator.request import (  # noqa: E501
    read_request,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.model.admission import (  # noqa: E501
    with_primary,
    with_secondary,
    without_primary,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.model.score import (
    Score,
    spread_values,
)
from ansible_collections.holdfast.ha.tests.unit.placement.clusters import (
    instance,
    new,
    node,
    request,
)
from ansible_collections.holdfast.ha.tests.unit.placement.random_requests import Maker


def cluster_of(message):
    return read_request(json.dumps(message), 4096)[0]


def random_clusters(count):
    for seed in range(count):
        maker = Maker(seed)
        maker.kind, maker.mix, maker.planned = "allocate", ["drbd"], 0.0
        cluster, asked, _warnings = read_request(json.dumps(maker.request()), 4096)
        nodes = [each for each in cluster.nodes if not each.offline]
        if len(nodes) > 1 and all(n.high_spindles > 0 for n in nodes):
            yield cluster, nodes, asked.placements[0].instance


def test_an_even_cluster_scores_zero():
    assert Score(cluster_of(request(new(), {n: node() for n in "abc"})).nodes).value() == 0.0


def test_the_terms_add_up_to_the_score():
    nodes = {n: node() for n in "abc"}
    cluster = cluster_of(request(new(), nodes, {"i": instance("drbd", ("a", "b"))}))
    score = Score(cluster.nodes)
    assert math.isclose(sum(score.terms().values()), score.value())
    assert score.terms()["cpu_load_cv"] > 0


def test_a_change_makes_of_the_score_what_adding_all_up_anew_does():
    for cluster, nodes, placed in random_clusters(80):
        score = Score(cluster.nodes)
        at = placed.at(nodes[0].index, nodes[1].index)
        first, second = with_primary(nodes[0], at), with_secondary(nodes[1], at, nodes[0].index)
        changed = score.value_with([(nodes[0], first), (nodes[1], second)])
        after = cluster.with_nodes({first.index: first, second.index: second})
        assert math.isclose(changed, Score(after.nodes).value(), rel_tol=1e-9, abs_tol=1e-7)


def test_what_is_added_and_removed_leaves_a_node_as_it_was():
    for _cluster, nodes, placed in random_clusters(40):
        for each in nodes:
            if each.exclusive and placed.spindles is None:
                continue
            back = without_primary(with_primary(each, placed), placed)
            for field in ("unallocated", "free_disk", "used_cpus", "primaries", "exclusion"):
                assert getattr(back, field) == getattr(each, field)
            assert spread_values(back) == spread_values(each)


def test_no_bound_lies_above_the_score_of_its_pair():
    for cluster, nodes, placed in random_clusters(60):
        score = Score(cluster.nodes)
        bounds = PairBounds(score, placed, nodes)
        for i, first in enumerate(nodes):
            assert bounds.primary_rows[i] == _as_primary(first, placed)
            for j, second in enumerate(nodes):
                if first is second:
                    continue
                common = len(first.location & second.location)
                at = placed.at(first.index, second.index, common)
                value = score.value_with(
                    [
                        (first, with_primary(first, at)),
                        (second, with_secondary(second, at, first.index)),
                    ]
                )
                assert bounds.primary[i] + bounds.secondary[j] <= value + bounds.slack


def test_the_values_as_primary_are_those_of_the_node_with_the_instance():
    for _cluster, nodes, placed in random_clusters(60):
        for each in nodes:
            real = spread_values(with_primary(each, placed))
            short = _as_primary(each, placed)
            assert short[:2] + short[3:] == real[:2] + real[3:]


def test_decimals_are_rounded_as_htools_prints_them():
    cases = [(0.43775, 4), (2.5, 0 + 1), (1e-9, 8), (0.0, 8), (-0.5, 1), (12345678901234567.0, 8)]
    texts = ["0.4378", "2.5", "0.00000000", "0.00000000", "-0.5", "12345678901234568.00000000"]
    assert [fixed(value, places) for value, places in cases] == texts
