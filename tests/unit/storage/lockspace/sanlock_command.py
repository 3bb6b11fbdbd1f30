# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command ``sanlock direct`` beside our own reading and writing."""

from __future__ import annotations

import shutil
import subprocess

import pytest

SANLOCK = shutil.which("sanlock") or shutil.which("/usr/sbin/sanlock")
needs_sanlock = pytest.mark.skipif(SANLOCK is None, reason="the sanlock command is not installed")


def sanlock(*arguments):
    """What the command prints; it wants a lockspace as NAME:...:PATH:OFFSET, and no daemon."""
    return subprocess.run(
        [SANLOCK, "direct", *arguments], check=True, timeout=60, capture_output=True, text=True
    ).stdout
