# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs for tests of the runner, and a look at whether a process is there."""

from __future__ import annotations

import time

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.process.family import (
    process_entry,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.process.run import run


def shell(text, **options):
    """Run *text* in a shell, within 10 seconds if nothing else is said."""
    return run(["/bin/sh", "-c", text], **{"deadline": 10.0, **options})


def is_running(pid):
    """Say whether *pid* is a process that has not ended; a zombie has."""
    entry = process_entry(pid)
    return entry is not None and entry.alive


def wait_until(condition, seconds=30.0):
    """Return once *condition* holds; fail when it does not within *seconds*."""
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            raise AssertionError("it did not happen in time")
        time.sleep(0.01)
