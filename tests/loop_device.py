# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Block devices for tests: loop devices over files that the test made, and no others."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def loop_device(
    image: Path, size: int, sector_size: int = 512, *, read_only: bool = False
) -> Iterator[str]:
    """Make a loop device over the file *image* of *size* bytes; give its name, then detach it.

    What the file has already stays.  Skips the test where no loop device can be made.
    """
    if os.geteuid() != 0 or shutil.which("losetup") is None:
        pytest.skip("a loop device needs root and losetup")
    with image.open("ab") as file:
        file.truncate(size)
    options = ["--read-only"] if read_only else []
    command = ["losetup", "--find", "--show", "--sector-size", str(sector_size), *options]
    made = subprocess.run(
        [*command, str(image)], capture_output=True, text=True, timeout=60, check=False
    )
    if made.returncode:
        pytest.skip(f"no loop device can be made: {made.stderr.strip()}")
    name = made.stdout.strip()
    try:
        yield name
    finally:
        subprocess.run(["losetup", "--detach", name], check=True, timeout=60)
