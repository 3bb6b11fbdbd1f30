# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a fence failed is said in the words of its agent, wherever the failure is shown."""

from __future__ import annotations

import json
import shlex

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.apply import operate
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.call import (
    WORDS_LIMIT,
    FenceCall,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.conversation import (
    FenceTools,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.prove import (
    power_off,
    power_on,
    power_status,
    unfence,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.rehearsal.ask import ask
from ansible_collections.holdfast.ha.tests.unit.fence.device_script import (
    single_device,
    write_device,
)

AS_WRITTEN = "2026-11-25 08:34:03,124 ERROR: Failed: {}\n\n\n"
HINT = "2026-11-25 08:34:03,125 ERROR: Please use '-h' for usage\n\n"
"""As fencing.py of fence-agents 4.12 writes its errors."""


@pytest.mark.parametrize(
    ("output", "words"),
    [
        (AS_WRITTEN.format("Unable to obtain correct plug status"), "Unable to obtain correct"),
        (AS_WRITTEN.format("no route to host") + HINT, "no route to host"),
        ("Traceback (most recent call last):\n  x\nE: no telnet.\n", "E: no telnet"),
        ("[error]: failed to get node 'x'\n", "[error]: failed to get node 'x'"),
        ("\x1b]0;title\x07wrong\tpassword\u202e\n", "wrong password"),
        ("", "exit status 1"),
        (HINT, "exit status 1"),
    ],
)
def test_the_words_of_an_agent_are_its_last_line_with_a_reason(output, words):
    found = FenceCall("status", 1, False, 0.1, output).words
    assert words in found
    assert found.isprintable()


def test_long_words_are_cut_in_their_middle():
    found = FenceCall("off", 1, False, 0.1, "login " + "x" * 5000 + " refused").words
    assert len(found) <= WORDS_LIMIT
    assert found.startswith("login ")
    assert found.endswith(" refused")


SAYS = f"printf %s {shlex.quote(AS_WRITTEN.format('login of hunter2 refused') + HINT)} >&2; exit 1"


@pytest.mark.parametrize(
    ("act", "device"),
    [
        (power_off, {"off": SAYS}),
        (power_off, {"status": SAYS}),
        (power_off, {"off": SAYS.replace("exit 1", "exit 2")}),
        (power_off, {"off": SAYS, "name": "fence_scsi"}),
        (power_on, {"on": SAYS, "status": "exit 2"}),
        (power_on, {"status": SAYS}),
        (unfence, {"on": SAYS, "automatic_on": True}),
        (power_status, {"status": SAYS}),
    ],
)
def test_the_reason_of_a_failure_has_the_agents_words_without_its_secrets(tmp_path, act, device):
    agent = write_device(tmp_path, **device)
    configuration, node = single_device(agent, {"ip": "x", "password": "hunter2"}, "1", 1.0)
    result = act(configuration, node, FenceTools(sleep=lambda seconds: None))
    assert not result.confirmed
    assert "login of ******** refused" in result.reason
    assert result.reason.isprintable()


def test_a_failed_task_and_a_rehearsal_have_the_agents_words(tmp_path):
    agent = write_device(tmp_path, off=SAYS, status=SAYS, validate=SAYS)
    configuration, node = single_device(agent, {"ip": "x", "password": "hunter2"}, "1", 1.0)
    for action in ("off", "validate-all"):
        assert "login of ******** refused" in operate(configuration, [node], action, False).failure
    findings = ask(configuration, [node])
    assert "login of ******** refused" in findings.devices["device"].problem
    assert "hunter2" not in json.dumps(findings.devices["device"].problem)
