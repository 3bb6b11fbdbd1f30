# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module balance: a plan as data, and the cluster as it will be in a file."""

from __future__ import annotations

import pytest
from ansible_collections.holdfast.ha.tests.unit.module_runner import run_failing, run_ok
from ansible_collections.holdfast.ha.tests.unit.placement.clusters import (
    instance,
    new,
    node,
    request,
)
from ansible_collections.holdfast.ha.tests.unit.placement.random_clusters import uneven_cluster


@pytest.fixture
def cluster(tmp_path):
    path = tmp_path / "cluster.data"
    path.write_text(uneven_cluster(3))
    return path


def test_check_mode_plans_the_same_and_writes_nothing(cluster, tmp_path):
    dest = tmp_path / "balanced.data"
    options = {"src": str(cluster), "dest": str(dest)}
    planned = run_ok("balance", options, check=True)
    assert planned["changed"]
    assert not dest.exists()
    made = run_ok("balance", options)
    assert made["changed"]
    for key in ("moves", "score_before", "score_after", "copied", "blocked"):
        assert made[key] == planned[key]
    assert not run_ok("balance", options)["changed"]


def test_the_cluster_that_was_written_needs_no_move(cluster, tmp_path):
    dest = tmp_path / "balanced.data"
    first = run_ok("balance", {"src": str(cluster), "dest": str(dest)})
    again = run_ok("balance", {"src": str(dest), "dest": str(dest)})
    assert first["moves"]
    assert again["moves"] == []
    assert not again["changed"]
    assert again["score_before"] == pytest.approx(first["score_after"])


def test_nothing_is_changed_where_nothing_is_to_be_written(cluster):
    planned = run_ok("balance", {"src": str(cluster)})
    assert planned["moves"]
    assert not planned["changed"]


def test_hbals_moves_are_made_if_they_are_asked_for(cluster):
    ours = run_ok("balance", {"src": str(cluster)})
    theirs = run_ok("balance", {"src": str(cluster), "like_hbal": True})
    assert theirs["moves"] != ours["moves"]
    assert ours["copied"] <= theirs["copied"]
    assert len(ours["moves"]) <= len(theirs["moves"])


def test_only_selected_instances_move(cluster):
    names = [move["instance"] for move in run_ok("balance", {"src": str(cluster)})["moves"]]
    some = run_ok("balance", {"src": str(cluster), "select": names[:2]})
    assert {move["instance"] for move in some["moves"]} <= set(names[:2])
    others = run_ok("balance", {"src": str(cluster), "exclude": names})
    assert not {move["instance"] for move in others["moves"]} & set(names)


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"select": ["nobody"]}, "nobody"),
        ({"group": "nowhere"}, "nowhere"),
        ({"src": "/nonexistent/cluster"}, "/nonexistent/cluster"),
        ({"dest": "/nonexistent/folder/file"}, "/nonexistent/folder/file"),
        ({"like_hbal": True, "swaps": True}, "swaps"),
    ],
)
def test_a_mistake_is_named(cluster, options, part):
    assert part in run_failing("balance", {"src": str(cluster), **options})


@pytest.mark.parametrize("like_hbal", [False, True])
def test_a_score_that_is_no_number_is_null(like_hbal):
    nodes = {"a": node(), "b": node(total_cpus=0)}
    described = request(new(), nodes, {"i": instance("drbd", ("a", "b"))})
    planned = run_ok("balance", {"cluster": described, "like_hbal": like_hbal})
    assert planned["score_before"] is None
    assert planned["score_after"] is None


@pytest.mark.parametrize("gain", ["nan", "inf", "-1"])
def test_a_gain_that_cannot_be_asked_for_is_refused(cluster, gain):
    told = run_failing("balance", {"src": str(cluster), "gain_per_gib": gain})
    assert "gain_per_gib is" in told
    assert "it has to be 0 or more" in told
