# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""One line a fact, on standard error: the journal or the machine's log keeps it."""

from __future__ import annotations

import sys
import time


def log(text: str) -> None:
    """Write a line with the local time."""
    stamp = time.strftime("%Y-%m-%d %H:%M:%S")
    sys.stderr.write(f"{stamp} {text}\n")
    sys.stderr.flush()
