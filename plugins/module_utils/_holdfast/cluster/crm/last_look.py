# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The last look before a fence is sent: what was decided may be out of date by now.

This process or its machine may have been held up, and the hypervisor that pauses a virtual machine
stops all its clocks.  Or its reads of the storage are old, which it notices only after a while.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..model.effects import Cycle, perform
from .effects import HasNewHeartbeat, OwnRecordStands


def why_not_sent(silent: Iterable[str]) -> Cycle[str]:
    """Return why the *silent* nodes may not be fenced; empty if they may.

    Every fence is recorded first.  A process that reads this record back has new reads, which
    would show a heartbeat.
    """
    if not (yield from perform(OwnRecordStands())):
        return "this node does not read back what it wrote, so what it reads may be old"
    for node in silent:
        if (yield from perform(HasNewHeartbeat(node))):
            return f"the heartbeat of {node} has changed since"
    return ""
