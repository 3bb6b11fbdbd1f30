# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Control characters that come from others reach no terminal, no log, no page and no metrics."""

from __future__ import annotations

import io
import json
import re
from typing import Any

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast import text
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node import log as node_log
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator import streams
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.report import (
    exposition,
    health,
    history,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.report.page import (
    render_page,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.report.text import (
    render_failover,
    render_text,
)
from ansible_collections.holdfast.ha.tests.unit.node.sample_status import after_failover

HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\x7f\x00\x08\r\u202eab\u2066\u200f"
CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]"
)
COLOUR = re.compile("\x1b\\[[0-9;]*m")
TEXTS = ("reason", "text", "proof", "problem", "problems", "under_way", "owner", "rejected")
"""The parts of a status that may have texts of others."""


def hostile(value: Any, key: str = "") -> Any:
    """Return a status with control characters at the end of every text that others may write."""
    if isinstance(value, dict):
        return {name: hostile(one, name) for name, one in value.items()}
    if isinstance(value, list):
        return [hostile(one, key) for one in value]
    return value + HOSTILE if isinstance(value, str) and key in TEXTS else value


def test_the_sample_has_what_must_not_be_shown() -> None:
    assert CONTROL.search(json.dumps(hostile(after_failover()), ensure_ascii=False))


@pytest.mark.parametrize("colour", [False, True])
def test_no_status_controls_a_terminal(colour: bool) -> None:
    status = hostile(after_failover())
    told = [render_text(status, colour=colour)]
    told += [line for one in status["failovers"] for line in render_failover(one)]
    told += history.lines(status["events"])
    told += health.judge_health(status).sentences
    for one in told:
        assert not CONTROL.search(COLOUR.sub("", one)), one


def test_no_status_puts_control_characters_into_a_page() -> None:
    assert not CONTROL.search(render_page(hostile(after_failover())))


def test_no_status_puts_control_characters_into_metrics() -> None:
    metric = exposition.Metric("x", exposition.Kind.GAUGE, "help")
    made = exposition.render_metrics(
        "holdfast_", [metric], [exposition.Sample(metric, 1.0, {"node": HOSTILE})], {}
    )
    assert "owned" in made
    assert not CONTROL.search(made)


def test_what_the_command_writes_has_its_own_sequences_alone() -> None:
    written = io.StringIO()
    own = "\x1b[?1049h\x1b[?25l\x1b[H\x1b[1;31mred\x1b[0m\x1b[K\x1b[J\x1b[?25h\x1b[?1049l\n\tend\n"
    streams.Output(written).write(f"{own}{HOSTILE}")
    left = written.getvalue()
    assert left.startswith(own)
    assert "owned" in left
    assert not CONTROL.search(left[len(own) :])


@pytest.mark.parametrize("fields", [{}, {"reason": HOSTILE}])
def test_a_log_has_one_printable_line_for_a_message(
    fields: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    node_log.log(f"agent failed: {HOSTILE}\nsecond line", **fields)
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert said.strip().isprintable()
    entry = node_log._entry(text.clean(HOSTILE), fields).decode()
    assert not CONTROL.search(entry)
