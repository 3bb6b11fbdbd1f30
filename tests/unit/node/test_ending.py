# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why an LRM is told to end, by the word of systemd or of a machine; and what room a node has."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import AgentError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.configuration import (
    SANLOCK,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon import system
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.process.run import Outcome
from ansible_collections.holdfast.ha.tests.unit.node.sample_node import configuration

STOPPING = "  901 holdfast-lrm.service  stop  running\n"


@pytest.mark.parametrize(
    ("jobs", "why"),
    [
        ("", "restart"),
        (STOPPING, "restart"),
        (STOPPING + "902 reboot.target start waiting\n", "reboot"),
        (STOPPING + "902 kexec.target start waiting\n", "reboot"),
        (STOPPING + "902 poweroff.target start waiting\n", "poweroff"),
        ("900 shutdown.target start waiting\n902 reboot.target start waiting\n", "reboot"),
        ("900 shutdown.target start waiting\n", "poweroff"),
        ("902 reboot.target stop waiting\n", "restart"),
        ("No jobs running.\n", "restart"),
    ],
)
def test_systemds_jobs_say_whether_the_node_goes_down(jobs, why):
    assert system.from_jobs(jobs) == why


def real_node(tmp_path):
    return replace(configuration(tmp_path), backend=SANLOCK)


def test_a_real_node_asks_systemd_and_is_not_held_up_by_it(tmp_path, monkeypatch):
    asked = []

    def run(argv, *, deadline, **_more):
        asked.append((list(argv), deadline))
        return Outcome(tuple(argv), 0, None, False, 0.1, "9 poweroff.target start waiting\n", "")

    monkeypatch.setattr(system, "run", run)
    assert system.why_ending(real_node(tmp_path)) == "poweroff"
    ((argv, deadline),) = asked
    assert argv[:2] == ["systemctl", "list-jobs"]
    assert deadline <= 1.5


@pytest.mark.parametrize("status", [None, 1])
def test_where_systemd_does_not_say_it_the_services_are_left_running(tmp_path, monkeypatch, status):
    text = "9 poweroff.target start waiting\n"
    outcome = Outcome((), status, None, status is None, 5.0, text, "")
    monkeypatch.setattr(system, "run", lambda *_rest, **_more: outcome)
    node = real_node(tmp_path)
    assert [system.why_ending(node, tried) for tried in (1, 2, 3)] == ["", "", "restart"]

    def missing(*_rest, **_more):
        raise AgentError("systemctl is not there.")

    monkeypatch.setattr(system, "run", missing)
    assert system.why_ending(real_node(tmp_path)) == "restart"


@pytest.mark.parametrize(
    ("word", "why"),
    [("reboot", "reboot"), ("poweroff", "poweroff"), ("nonsense", "restart"), ("", "restart")],
)
def test_a_machine_leaves_word_and_takes_it_back(tmp_path, word, why):
    machine = configuration(tmp_path)
    machine.folder.mkdir(parents=True, exist_ok=True)
    system.leave_word(machine.folder, word)
    assert system.why_ending(machine) == why
    system.leave_word(machine.folder, "")
    assert system.why_ending(machine) == "restart"


def test_the_room_of_a_node_is_told_in_mebibytes_and_never_guessed(tmp_path, monkeypatch):
    file = tmp_path / "meminfo"
    file.write_text("MemFree:  1 kB\nMemTotal:        2097152 kB\n")
    monkeypatch.setattr("os.cpu_count", lambda: 3)
    assert system.node_room(file) == (3.0, 2048.0)
    file.write_text("MemFree:  1 kB\n")
    assert system.node_room(file) is None
    assert system.node_room(Path("/nonexistent/meminfo")) is None
