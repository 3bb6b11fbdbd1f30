# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The copy of a node's report on its local disk: what it acted on is not forgotten."""

from __future__ import annotations

import json
import stat

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    Report,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.versions import (
    Floor,
    known_floors,
    newer_report,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import StorageError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.record_guard import (  # noqa: E501
    NAME,
    KeptReport,
)

REPORT = Report("n1", "boot1", epoch=5, commands=12)


def test_a_report_is_read_back_and_is_for_its_owner_only(tmp_path):
    kept = KeptReport(tmp_path / "state", "demo")
    assert kept.read() == (0, None)
    kept.write(7, REPORT)
    assert KeptReport(tmp_path / "state", "demo").read() == (7, REPORT)
    path = tmp_path / "state" / NAME
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [one.name for one in path.parent.iterdir()] == [NAME]


def test_the_report_of_another_cluster_is_no_copy(tmp_path):
    KeptReport(tmp_path, "demo").write(7, REPORT)
    assert KeptReport(tmp_path, "other").read() == (0, None)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '{"cluster": "demo"}',
        '{"cluster": "demo", "number": "x", "report": {}}',
        '{"cluster": "demo", "number": 1, "report": []}',
        '{"cluster": "demo", "number": 1, "report": {"mode": "no such"}}',
        "[" * 100_000,
        '{"cluster": "demo", "number": 1e999, "report": {}}',
    ],
)
def test_what_cannot_be_understood_counts_as_no_copy(tmp_path, text):
    (tmp_path / NAME).write_text(text)
    assert KeptReport(tmp_path, "demo").read() == (0, None)


def test_a_disk_that_takes_nothing_is_an_error_and_leaves_the_last_copy(tmp_path):
    kept = KeptReport(tmp_path, "demo")
    kept.write(7, REPORT)
    (tmp_path / NAME).unlink()
    (tmp_path / NAME).mkdir()
    with pytest.raises(StorageError, match=r"report\.json cannot be written"):
        kept.write(8, REPORT)
    assert [one.name for one in tmp_path.iterdir()] == [NAME]


OLD, NEW = Report("n1", commands=1), Report("n1", commands=2)
SAME = Report("n1", commands=2, boot="2")
LATER_CONFIGURATION = Report("n1", commands=2, config_version=1)
LATER_EPOCH = Report("n1", commands=1, epoch=2)
REPAIRED = Report("n1", commands=1, generation=1)


@pytest.mark.parametrize(
    ("stored", "kept", "newer"),
    [
        ((0, None), (0, None), None),
        ((5, OLD), (0, None), OLD),
        ((0, None), (5, OLD), OLD),
        ((5, OLD), (6, NEW), NEW),
        ((6, NEW), (5, OLD), NEW),
        ((5, NEW), (5, SAME), NEW),
        ((5, NEW), (5, LATER_CONFIGURATION), LATER_CONFIGURATION),
        ((5, LATER_CONFIGURATION), (9, NEW), LATER_CONFIGURATION),
        ((6, NEW), (5, SAME), NEW),
        ((9, OLD), (5, NEW), NEW),
        ((9, NEW), (5, LATER_EPOCH), LATER_EPOCH),
        ((5, LATER_EPOCH), (9, NEW), LATER_EPOCH),
        ((5, REPAIRED), (9, NEW), REPAIRED),
        ((9, NEW), (5, REPAIRED), REPAIRED),
    ],
)
def test_the_newer_report_is_gone_on_with(stored, kept, newer):
    assert newer_report(*stored, *kept) is newer


def test_the_file_is_plain_json(tmp_path):
    KeptReport(tmp_path, "demo").write(7, REPORT)
    document = json.loads((tmp_path / NAME).read_text())
    assert (document["cluster"], document["number"]) == ("demo", 7)


def test_what_the_local_disk_has_is_a_floor_of_this_node_as_well(tmp_path):
    copy = KeptReport(tmp_path, "demo")
    reports = {"n1": Report("n1", epoch=4, commands=9), "n2": Report("n2", epoch=5, commands=3)}
    told = [Floor("n1", epoch=4, commands=9), Floor("n2", epoch=5, commands=3)]
    assert known_floors(reports, "n1", copy.read()[1]) == told
    copy.write(7, REPORT)
    assert known_floors(reports, "n1", copy.read()[1]) == [
        *told,
        Floor("n1", epoch=5, commands=12, kept=True),
    ]
