# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Daemons of a node with a small share of a processor, as under a CPU quota.

The daemons are stopped and continued in each period, as the kernel throttles a control group with a
quota (sched-bwc, cpu.max).  That needs no CPU controller.  The process that sends keepalives has
real-time priority, which such a quota does not affect.
"""

from __future__ import annotations

import os
import signal

from testbed.background import Background
from testbed.node import Node

SHARE = 0.02
PERIOD = 0.1
"""Seconds, as the kernel's own default."""


class Starvation(Background):
    """Lets the LRM and the CRM of a node run for ``SHARE`` of the time while it is entered."""

    pause = SHARE * PERIOD

    def __init__(self, node: Node) -> None:
        super().__init__()
        self._node = node
        self._pids = _daemons(node)

    def step(self) -> None:
        """Stop the daemons for the rest of a period, if their node is on."""
        try:
            self._send(signal.SIGSTOP)
            self._stop.wait((1.0 - SHARE) * PERIOD)
        finally:
            self._send(signal.SIGCONT)

    def _send(self, number: signal.Signals) -> None:
        for pid in self._pids:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                continue


def _daemons(node: Node) -> list[int]:
    """Return the processes of a node's LRM and CRM, without their children."""
    return [
        pid
        for pid, words in node.command_lines().items()
        if {"lrm", "crm"} & set(words[2:4]) and words[-1].endswith("node.json")
    ]
