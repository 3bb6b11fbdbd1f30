# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A note of the host lease generation that this node's daemons work under.

It is in the run directory, which the LRM makes.  A daemon that starts again does not have to wait
for late writes a second time.
"""

from __future__ import annotations

import os
from pathlib import Path

NAME = "host-lease-generation"


class GenerationNote:
    """The note of one node."""

    def __init__(self, run_directory: Path) -> None:
        """Describe the note; it is read and written by its methods."""
        self._directory = run_directory

    def read(self) -> int:
        """Return the generation, 0 if there is none."""
        try:
            return int((self._directory / NAME).read_text(encoding="ascii"))
        except (OSError, ValueError):
            return 0

    def write(self, generation: int) -> None:
        """Note *generation*; without the note a daemon that starts again asks the storage."""
        path = self._directory / NAME
        beside = path.with_name(f"{NAME}.{os.getpid()}")
        try:
            beside.write_text(f"{generation}\n", encoding="ascii")
            beside.replace(path)
        except OSError:
            return
