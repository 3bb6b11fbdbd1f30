# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report of the rehearsals: a proof of other settings is none, and nothing is lost halfway."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import (
    FenceError,
    StorageError,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.rehearsal.ask import (
    SwitchedLevel,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.rehearsal.judge import (
    NodeVerdict,
    StepVerdict,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.rehearsal.report import (
    KEPT,
    NodeReport,
    PlugRecord,
    Rehearsal,
    load_report,
    node_summary,
    report_text,
    save_report,
    stale,
    text_path,
    updated,
    with_switched,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.topology import (
    FenceStep,
    parse_fence_configuration,
)
from hypothesis import given
from hypothesis import strategies as st

DAY = 86400.0
NOW = 1_795_312_800.0


def configuration(nodes=("n1",), plug="1", **parameters):
    given_parameters = {"ip": "192.0.2.1", "password": "hunter2", **parameters}
    return parse_fence_configuration(
        {
            "devices": {
                name: {
                    "agent": "fence_x",
                    "parameters": {**given_parameters, "ipport": 1000 + number},
                }
                for number, name in enumerate(nodes)
            },
            "nodes": {node: {"levels": [[{"device": node, "plug": plug}]]} for node in nodes},
        }
    )


def verdict(node="n1", power="on", word="works", plug="1", problems=()):
    step = StepVerdict(1, FenceStep(node, plug), "device-verified", power, (), 0.25, 20.0)
    return NodeVerdict(node, word, "device-verified", (step,), tuple(problems), ())


def switched(report, desired, at, problem="", node="n1"):
    return with_switched(report, desired, node, [SwitchedLevel(1, 2.5, 3.5, problem)], at)


@pytest.mark.parametrize(
    ("changed", "kept"),
    [
        ({}, True),
        ({"password": "other"}, True),
        ({"ip": "192.0.2.9"}, False),
        ({"plug": "2"}, False),
    ],
)
def test_a_proof_counts_for_the_settings_it_was_made_with(changed, kept):
    before = switched({}, configuration(), NOW)
    assert before["n1"].switched_at == NOW
    plug = changed.get("plug", "1")
    after = updated(before, configuration(**changed), [verdict(plug=plug)], NOW + DAY)
    assert (after["n1"].switched_at == NOW) is kept
    assert (after["n1"].switched_at is None) is not kept


def test_a_plug_that_did_not_answer_keeps_the_time_when_it_last_did():
    desired = configuration()
    report = updated({}, desired, [verdict()], NOW)
    report = updated(report, desired, [verdict(power="unknown", word="fails")], NOW + DAY)
    assert report["n1"].plugs[0].answered_at == NOW
    assert report["n1"].verdict == "fails"


def test_a_switch_that_failed_is_no_proof_and_makes_the_verdict_fail():
    desired = configuration()
    report = switched(updated({}, desired, [verdict()], NOW), desired, NOW, "it was not proved off")
    assert report["n1"].switched_at is None
    assert (report["n1"].verdict, report["n1"].rehearsals[0].manner) == ("fails", "switched")
    assert report["n1"].rehearsals[0].problems == ("n1: level 1 for real: it was not proved off.",)


def test_a_node_of_gates_alone_was_not_switched_and_so_fails():
    desired = configuration()
    report = with_switched(updated({}, desired, [verdict()], NOW), desired, "n1", [], NOW)
    assert (report["n1"].verdict, report["n1"].switched_at) == ("fails", None)


def test_a_plug_of_two_levels_is_one_plug():
    desired = configuration()
    (level,) = desired.levels["n1"]
    desired = replace(desired, levels={"n1": (level, level)})
    assert len(updated({}, desired, [verdict()], NOW)["n1"].plugs) == 1


def test_a_proof_by_another_agent_is_dropped():
    desired = configuration()
    report = switched({}, desired, NOW)
    other = replace(desired, devices={"n1": replace(desired.devices["n1"], agent="fence_y")})
    assert updated(report, other, [verdict()], NOW)["n1"].switched_at is None


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (119, "119 seconds"),
        (90 * 60, "90 minutes"),
        (3 * 3600, "3 hours"),
        (47 * 3600, "47 hours"),
        (2 * DAY, "2 days"),
    ],
)
def test_an_age_is_told_in_the_unit_that_says_enough(seconds, told):
    report = switched({}, configuration(), NOW)
    assert f"last switched for real {told} ago" in report_text(report, NOW + seconds)


def test_of_several_plugs_the_one_without_a_proof_counts():
    half = NodeReport((), (PlugRecord("a", "1", "x", switched_at=NOW), PlugRecord("b", "1", "x")))
    assert half.switched_at is None
    both = NodeReport((), tuple(PlugRecord(d, None, "x", switched_at=NOW + d) for d in (2, 1)))
    assert both.switched_at == NOW + 1


def test_nodes_that_are_gone_are_dropped_and_others_are_left_as_they_are():
    desired = configuration(("n1", "n2"))
    report = updated({}, desired, [verdict("n1"), verdict("n2")], NOW)
    assert updated(report, desired, [verdict("n1")], NOW + 1)["n2"] == report["n2"]
    assert set(updated(report, configuration(), [verdict("n1")], NOW + 1)) == {"n1"}


def test_only_the_last_rehearsals_are_kept_newest_first():
    report = {}
    for number in range(KEPT + 5):
        report = updated(report, configuration(), [verdict()], NOW + number)
    times = [one.at for one in report["n1"].rehearsals]
    assert times == [NOW + number for number in range(KEPT + 4, 4, -1)]


def test_a_node_that_was_not_switched_for_long_or_never_is_told():
    report = switched({}, configuration(), NOW)
    assert stale(report, ["n1"], 10, NOW + 10 * DAY) == []
    (old,) = stale(report, ["n1"], 10, NOW + 11 * DAY)
    assert "11 days ago, which is more than 10 days" in old
    (never,) = stale(report, ["n2"], 10, NOW)
    assert "n2 was never switched off and on for real" in never


def test_the_report_is_read_as_it_was_written_and_shows_no_password(tmp_path):
    desired = configuration()
    report = switched(updated({}, desired, [verdict()], NOW), desired, NOW + 1)
    path = tmp_path / "new" / "report.json"
    save_report(path, report, NOW + 2)
    assert load_report(path) == report
    assert path.stat().st_mode & 0o777 == 0o640
    text = text_path(path).read_text()
    assert "hunter2" not in path.read_text() + text
    assert "n1: works" in text
    assert "last switched for real 1 seconds ago, in 2.5 s" in text
    summary = node_summary(report["n1"], NOW + 61)
    assert summary["switched_age"] == 60
    assert "settings" not in json.dumps(summary)


def test_the_text_has_the_nodes_that_fail_first():
    desired = configuration(("n1", "n2"))
    bad = verdict("n2", "unknown", "fails", problems=["n2: it is dead."])
    report = updated({}, desired, [verdict("n1"), bad], NOW)
    text = report_text(report, NOW)
    assert text.index("n2: fails") < text.index("n2: it is dead.") < text.index("n1: works")
    assert "2026-11-2" in text.splitlines()[0]


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"version": 2, "nodes": {}}',
        '{"version": 1, "nodes": {"n1": {}}}',
        '{"version": 1, "nodes": {"n1": {"rehearsals": [], "plugs": [{"x": 1}]}}}',
        "\xff\x00",
    ],
)
def test_a_file_that_is_no_report_is_refused_and_left_alone(tmp_path, content):
    path = tmp_path / "report.json"
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(FenceError, match="report"):
        load_report(path)
    assert path.read_bytes() == content.encode("latin-1")


def test_no_report_yet_is_an_empty_one_and_a_folder_in_its_place_an_error(tmp_path):
    assert load_report(tmp_path / "none.json") == {}
    with pytest.raises(FenceError, match="cannot be read"):
        load_report(tmp_path)


def test_a_report_that_cannot_be_written_says_where(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match=r"file/report\.json"):
        save_report(tmp_path / "file" / "report.json", {}, NOW)


def test_a_write_that_is_killed_half_way_leaves_the_old_report(tmp_path, monkeypatch):
    path = tmp_path / "report.json"
    save_report(path, switched({}, configuration(), NOW), NOW)
    old = path.read_bytes()

    def killed(*_arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", killed)
    with pytest.raises(KeyboardInterrupt):
        save_report(path, {}, NOW)
    assert path.read_bytes() == old


times = st.one_of(st.none(), st.floats(0, 1e10))
texts = st.text(max_size=20)
plugs = st.builds(PlugRecord, texts, st.one_of(st.none(), texts), texts, times, times, times, times)
rehearsals = st.builds(
    Rehearsal, st.floats(0, 1e10), texts, texts, st.lists(texts, max_size=3).map(tuple)
)
nodes = st.builds(
    NodeReport,
    st.lists(rehearsals, max_size=3).map(tuple),
    st.lists(plugs, max_size=3).map(tuple),
)


@given(report=st.dictionaries(texts, nodes, max_size=3))
def test_every_report_survives_being_written_and_can_be_told(tmp_path_factory, report):
    path = tmp_path_factory.getbasetemp() / "any.json"
    save_report(path, report, NOW)
    assert load_report(path) == report
    assert text_path(path).read_bytes() == report_text(report, NOW).encode()
