# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ``holdfast balance`` prints of a plan of its own, and how it refuses."""

from __future__ import annotations

import io
import json
import os
import signal
import threading

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import ClusterDataError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator import streams
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.cli.htools import (
    hbal,
    hbal_cluster,
)
from ansible_collections.holdfast.ha.tests.unit.placement.random_clusters import uneven_cluster


@pytest.fixture
def cluster(tmp_path):
    path = tmp_path / "cluster.data"
    path.write_text(uneven_cluster(3))
    return str(path)


def test_a_plan_is_printed_in_hbals_form_with_what_it_copies(cluster, capsys):
    assert hbal.main(["-t", cluster, "-C"]) == 0
    printed = capsys.readouterr().out
    assert " => " in printed
    assert "Cluster score improved from" in printed
    assert "Copied: " in printed
    assert "gnt-instance" in printed


@pytest.mark.parametrize(
    ("seed", "told"), [(10, "the plan above is better"), (34, "swaps gain nothing beyond it")]
)
def test_with_swaps_the_result_without_them_is_printed(tmp_path, capsys, seed, told):
    path = tmp_path / "cluster.data"
    path.write_text(uneven_cluster(seed))
    assert hbal.main(["-t", str(path)]) == 0
    without = capsys.readouterr().out.partition("Cluster score improved from ")[2].split()[2]
    assert hbal.main(["-t", str(path), "--swaps"]) == 0
    assert f"Without swaps: {without} with " in (printed := capsys.readouterr().out)
    assert told in printed


def test_what_n1_costs_is_said_before_the_plan_and_there_is_a_plan_without(tmp_path, capsys):
    path = tmp_path / "cluster.data"
    path.write_text(uneven_cluster(34))
    assert hbal.main(["-t", str(path)]) == 0
    before, _arrow, _rest = capsys.readouterr().out.partition(" => ")
    assert "Keeping N+1 after every move costs 0.06193620 of the score" in before
    assert "hbal's rule ends at 3.69363261 with 22 moves" in before
    assert "use --ignore-n1" in before
    assert hbal.main(["-t", str(path), "--ignore-n1"]) == 0
    printed = capsys.readouterr().out
    assert "to 3.69363261" in printed
    assert "Keeping N+1" not in printed


def test_a_search_prints_the_result_before_it(tmp_path, capsys):
    path = tmp_path / "cluster.data"
    path.write_text(uneven_cluster(2))
    assert hbal.main(["-t", str(path), "--budget=0.5", "--seed", "7"]) == 0
    printed = capsys.readouterr().out
    assert "Before the search: 0.82353091 with 3 moves and 80.4 GiB" in printed
    assert float(printed.partition("improved from ")[2].split()[2]) <= 0.82353091
    assert hbal.main(["-t", str(path), "--budget=0.5", "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["score_after"] <= plan["before_search"]["score_after"]


def test_a_signal_ends_a_search_with_the_best_plan_so_far(tmp_path, capsys):
    path = tmp_path / "cluster.data"
    path.write_text(uneven_cluster(2))
    timer = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    assert hbal.main(["-t", str(path), "--budget=600"]) == 0
    timer.join()
    printed = capsys.readouterr()
    assert "Before the search" in printed.out
    assert printed.err == "Interrupted: this is the best plan so far\n"


def test_a_plan_is_printed_as_data(cluster, capsys):
    assert hbal.main(["-t", cluster, "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["score_after"] < plan["score_before"]
    assert [move["set"] for move in plan["moves"]] == sorted(move["set"] for move in plan["moves"])
    assert plan["copied"] == sum(move["copied"] for move in plan["moves"])


def test_the_saved_cluster_needs_no_move(cluster, tmp_path, capsys):
    assert hbal.main(["-t", cluster, "-S", str(tmp_path / "saved")]) == 0
    assert hbal.main(["-t", str(tmp_path / "saved.balanced")]) == 0
    assert capsys.readouterr().out.count("No solution found") == 1


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ([], "No backend selected"),
        (["-t", "/nonexistent/file"], "/nonexistent/file cannot be read"),
        (["-m", "cluster"], "-t"),
        (["-L"], "-t"),
        (["-X"], "-C FILE"),
        (["--like-hbal", "--swaps"], "--swaps"),
        (["--like-hbal", "--most-copied=1"], "--most-copied"),
        (["--like-hbal", "--budget=1"], "--budget"),
        (["--like-hbal", "--ignore-n1"], "--ignore-n1"),
        (["--budget=0"], "0 of budget, expected more than 0"),
        (["--seed=x"], "cannot parse"),
        (["--most-copied=x"], "cannot parse"),
        (["--most-copied=-1"], "-1 of most-copied, expected >=0"),
        (["--gain-per-gib=-0.5"], "-0.5 of gain-per-gib, expected >=0"),
    ],
)
def test_what_cannot_be_done_is_said_with_what_to_do(cluster, capsys, options, part):
    assert hbal.main([*options]) == 1
    assert part in capsys.readouterr().err


def test_a_plan_for_an_empty_cluster_is_data_too(tmp_path, capsys):
    path = tmp_path / "empty.data"
    parts = uneven_cluster(3).split("\n\n")
    path.write_text("\n\n".join(parts[:2]) + "\n\n\n" + "\n\n".join(parts[3:]))
    assert hbal.main(["-t", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["moves"] == []


MODULE = {
    "src": None,
    "cluster": {},
    "most_moves": -1,
    "most_copied": -1,
    "gain_per_gib": 0.0,
    "swaps": False,
    "budget": 0.0,
    "seed": 1,
    "keep_n1": True,
    "like_hbal": False,
}


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"gain_per_gib": -0.1}, "gain_per_gib is -0.1"),
        ({"budget": -1.0}, "budget is -1"),
        ({"budget": 1e9}, "budget is 1e\\+09"),
        ({"like_hbal": True, "budget": 5.0}, "budget cannot"),
        ({"like_hbal": True, "keep_n1": False}, "keep_n1 cannot"),
        ({"most_moves": -2}, "most_moves is -2"),
        ({"most_copied": -5}, "most_copied is -5"),
        ({"like_hbal": True, "swaps": True}, "swaps cannot"),
        ({"like_hbal": True, "most_copied": 5}, "most_copied cannot"),
        ({"like_hbal": True, "gain_per_gib": 0.5}, "gain_per_gib cannot"),
    ],
)
def test_a_limit_that_is_none_is_refused_before_anything_is_read(options, part):
    with pytest.raises(ClusterDataError, match=part):
        hbal_cluster.plan_balance({**MODULE, **options}, True)


def test_an_unknown_option_ends_with_the_help(capsys):
    assert hbal.main(["--nothing"]) == 2
    assert "Usage: holdfast balance" in capsys.readouterr().err


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Told(streams.Progress):
    """One whose thread the test is."""

    def _begin(self):
        pass


def test_on_a_terminal_work_that_lasts_tells_what_it_is_at():
    stream = Terminal()
    told = Told("reading", stream)
    waits = []

    def sleep(seconds):
        waits.append(seconds)
        if len(waits) == 2:
            told.tell(7, 1.5)
        if len(waits) == 3:
            told.done()

    told.run(sleep)
    assert stream.getvalue() == "at work for 2 s: reading\nat work for 4 s: 7 moves, score 1.5000\n"


def test_short_work_tells_nothing():
    stream = Terminal()
    told = Told("reading", stream)
    told.run(lambda _seconds: told.done())
    assert stream.getvalue() == ""


def test_nothing_is_told_where_there_is_no_terminal():
    stream = io.StringIO()
    told = streams.Progress("reading", stream)
    told.run(lambda _seconds: None)
    assert stream.getvalue() == ""
