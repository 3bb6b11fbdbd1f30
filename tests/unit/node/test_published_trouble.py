# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The file in which a CRM says why it judges nobody."""

from __future__ import annotations

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.heartbeat import (
    COUNTS,
    EVERY,
    LONGEST,
    PublishedTrouble,
    read_trouble,
    trouble_path,
)
from ansible_collections.holdfast.ha.tests.unit.node.sample_node import Clock


def test_it_is_there_while_the_trouble_goes_on(tmp_path):
    clock = Clock()
    published = PublishedTrouble(tmp_path, clock)
    published.publish("")
    assert read_trouble(tmp_path, clock.now) == ""
    for _turn in range(3):
        published.publish("n2 writes elsewhere")
        assert read_trouble(tmp_path, clock.now + COUNTS) == "n2 writes elsewhere"
        clock.go(EVERY)
    published.publish("")
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_crm_left_counts_no_more_after_a_while_or_a_reboot(tmp_path):
    clock = Clock()
    PublishedTrouble(tmp_path, clock).publish("n2 writes elsewhere")
    assert read_trouble(tmp_path, clock.now + COUNTS + 0.1) == ""
    assert read_trouble(tmp_path, clock.now - 0.1) == ""


def test_a_folder_that_is_not_there_does_not_end_the_crm(tmp_path):
    published = PublishedTrouble(tmp_path / "none", Clock())
    published.publish("n2 writes elsewhere")
    published.publish("")


@pytest.mark.parametrize("content", ["", "[]", "{", '{"at": "x", "text": ""}', '{"at": 1}'])
def test_a_damaged_file_says_nothing(tmp_path, content):
    trouble_path(tmp_path).write_text(content)
    assert read_trouble(tmp_path, 1.0) == ""


def test_a_long_text_is_cut(tmp_path):
    PublishedTrouble(tmp_path, Clock(5.0)).publish("x" * 5000)
    assert len(read_trouble(tmp_path, 5.0)) == LONGEST
