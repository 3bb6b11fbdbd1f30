# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a node is a virtual machine, as systemd-detect-virt says."""

from __future__ import annotations

import re
from collections.abc import Callable

from ...errors import HoldfastError
from ...process.run import Outcome, run
from ..configuration import NodeConfiguration

DEADLINE = 5.0
"""Seconds; it takes milliseconds."""

NONE = "none"
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")


def detect(deadline: float = DEADLINE) -> Outcome:
    """Run systemd-detect-virt; raises ``AgentError`` where it is not installed."""
    return run(["systemd-detect-virt", "--vm"], deadline=deadline)


def virtual_machine(
    configuration: NodeConfiguration, ask: Callable[[], Outcome] = detect
) -> str | None:
    """Return the kind of virtual machine that the node is, "" if none, None if that is not known.

    Containers do not count: in one on a virtual machine the answer is that machine's.  A machine
    of a cluster on one computer is a group of processes.
    """
    if configuration.is_machine:
        return ""
    try:
        outcome = ask()
    except HoldfastError:
        return None
    name = outcome.stdout.strip()
    if outcome.timed_out or not _NAME.fullmatch(name):
        return None
    # The exit status is 1 for "none" and for errors alike (systemd-detect-virt.1).
    if name == NONE:
        return ""
    return name if outcome.exit_status == 0 else None
