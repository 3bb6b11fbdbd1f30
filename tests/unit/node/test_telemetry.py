# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a daemon measures of itself: left whole, now and then, and never in its way."""

from __future__ import annotations

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.telemetry import (
    EVERY,
    Span,
    Telemetry,
    read_telemetry,
    telemetry_path,
)
from ansible_collections.holdfast.ha.tests.unit.node.sample_node import Clock


@pytest.fixture
def path(tmp_path):
    return telemetry_path(tmp_path, "lrm")


def test_what_was_measured_is_read_back(path):
    clock = Clock()
    telemetry = Telemetry(path, clock)
    telemetry.set("margin", 12.5)
    telemetry.set("margin", 11.5)
    telemetry.set("thrown_away", 2)
    telemetry.timed("fence", 2.0, node="n1", result="failed")
    telemetry.timed("fence", 3.0, node="n1", result="failed")
    telemetry.keep()
    measured = read_telemetry(path, clock())
    assert measured is not None
    assert measured.kept_at == clock()
    assert measured.values == {("margin", ()): 11.5, ("thrown_away", ()): 2.0}
    labels = (("node", "n1"), ("result", "failed"))
    assert measured.spans == {("fence", labels): Span(2, 5.0, 3.0)}


def test_it_is_left_now_and_then_only(path):
    clock = Clock()
    telemetry = Telemetry(path, clock)
    telemetry.keep()
    clock.go(EVERY - 0.1)
    telemetry.keep()
    assert read_telemetry(path, clock()).kept_at == 1000.0
    clock.go(0.1)
    telemetry.keep()
    assert read_telemetry(path, clock()).kept_at == clock()


def test_a_folder_that_is_gone_does_not_stop_the_daemon(tmp_path):
    telemetry = Telemetry(tmp_path / "gone" / "telemetry-lrm.json")
    telemetry.set("margin", 1.0)
    telemetry.keep()
    assert not (tmp_path / "gone").exists()


def test_nothing_but_the_file_is_left(path):
    Telemetry(path).keep()
    assert [one.name for one in path.parent.iterdir()] == ["telemetry-lrm.json"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '{"kept_at": 1}',
        '{"kept_at": "x", "values": [], "spans": []}',
        '{"kept_at": 1, "values": [[1]], "spans": []}',
        '{"kept_at": 1, "values": [], "spans": [["a", [], 1, 1, 1]]}',
    ],
)
def test_what_is_no_measurement_counts_as_none(path, text):
    path.write_text(text)
    assert read_telemetry(path, 10.0) is None


def test_what_was_left_before_a_reboot_counts_as_none(path):
    clock = Clock(5000.0)
    Telemetry(path, clock).keep()
    assert read_telemetry(path, 30.0) is None
    assert read_telemetry(path, 5001.0) is not None
