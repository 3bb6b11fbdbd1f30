# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A rehearsal finds what is wrong with real management boards, and switches nobody unasked."""

from __future__ import annotations

import json
import re
import time

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.cli.rehearse_fence import (  # noqa: E501
    rehearse_fence,
)
from ansible_collections.holdfast.ha.tests.system.fencing import ipmi_boards

pytestmark = pytest.mark.skipif(bool(ipmi_boards.missing()), reason=ipmi_boards.missing())

TIMEOUT = 20.0


@pytest.fixture(scope="module")
def started():
    with ipmi_boards.boards(2) as made:
        yield made


@pytest.fixture
def two_boards(started):
    for board in started:
        board.switch_on()
    yield started
    for board in started:
        board.be_deaf(False)
        board.go_on()


@pytest.fixture
def rehearse(tmp_path, two_boards):
    """Rehearse with each board for one node; *timeout* and *changed* are for n1's board."""

    def act(timeout=TIMEOUT, changed=None, **more):
        devices = {
            f"board{number}": {
                "agent": "fence_ipmilan",
                "parameters": {**board.parameters, **((changed or {}) if number == 1 else {})},
                "timeout": timeout if number == 1 else TIMEOUT,
                "retries": 0,
            }
            for number, board in enumerate(two_boards, 1)
        }
        nodes = {f"n{number}": {"levels": [[{"device": f"board{number}"}]]} for number in (1, 2)}
        path = tmp_path / "fence.json"
        path.write_text(json.dumps({"devices": devices, "nodes": nodes}))
        path.chmod(0o600)
        options = {
            "config": str(path),
            "nodes": None,
            "running": ["n1", "n2"],
            "node_config": None,
            "report": str(tmp_path / "report.json"),
            "max_age": None,
            "consent": False,
            "with_services": False,
            "address": None,
            "port": 22,
            "boot_timeout": 10.0,
            **more,
        }
        return rehearse_fence(options, False)

    return act


def verdicts(result):
    return {name: one["verdict"] for name, one in result.values["nodes"].items()}


def test_two_boards_that_are_well_work_and_their_machines_run_on(rehearse, two_boards):
    result = rehearse()
    assert verdicts(result) == {"n1": "works", "n2": "works"}
    assert result.values["nodes"]["n1"]["steps"][0]["shown"] == ["on"]
    assert all(board.machine_runs for board in two_boards)


def test_a_board_that_hangs_fails_its_node_within_its_timeout(rehearse, two_boards):
    two_boards[0].be_stuck()
    began = time.monotonic()
    result = rehearse(timeout=2.0)
    assert time.monotonic() - began < 30
    assert verdicts(result) == {"n1": "fails", "n2": "works"}
    said = r"n1: level 1, board1: no answer (to monitor )?within \d"
    assert re.search(said, result.failure), result.failure


@pytest.mark.parametrize(
    "wrong", [{"username": "nobody"}, {"password": "not-the-one", "ipmitool_timeout": 1}]
)
def test_a_board_that_refuses_us_fails_its_node_before_it_matters(rehearse, wrong):
    result = rehearse(changed=wrong)
    assert verdicts(result) == {"n1": "fails", "n2": "works"}
    assert "board1" in result.failure
    assert "not-the-one" not in repr(result)


def test_a_machine_that_is_off_at_a_board_whose_node_runs_is_another_s(rehearse, two_boards):
    two_boards[1].switch_off()
    result = rehearse()
    assert verdicts(result) == {"n1": "works", "n2": "fails"}
    assert "so it is the plug of something else" in result.failure


def test_with_consent_the_one_machine_is_really_cut_and_comes_back(rehearse, two_boards):
    first, other = (board.machine_process for board in two_boards)
    result = rehearse(nodes=["n1"], consent=True, with_services=True)
    assert result.failure == ""
    assert two_boards[0].machine_process != first
    assert two_boards[1].machine_process == other
    assert all(board.machine_runs for board in two_boards)
    assert result.values["nodes"]["n1"]["plugs"][0]["switched_seconds"] > 0


def test_a_board_that_lies_passes_the_questions_and_fails_for_real(rehearse, two_boards):
    two_boards[0].be_deaf()
    changed = {"power_timeout": 1}
    assert verdicts(rehearse(changed=changed)) == {"n1": "works", "n2": "works"}
    result = rehearse(5.0, changed, nodes=["n1"], consent=True, with_services=True)
    assert "n1: level 1 for real: it was not proved off" in result.failure
    assert two_boards[0].machine_runs
