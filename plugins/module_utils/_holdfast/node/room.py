# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node has for services: CPUs and memory, as its kernel counts them."""

from __future__ import annotations

import os
import re
from pathlib import Path

MEMORY = Path("/proc/meminfo")
_TOTAL = re.compile(r"^MemTotal:\s+(\d+) kB$", re.MULTILINE)


def node_room(memory: Path = MEMORY) -> tuple[float, float] | None:
    """Return the number of CPUs and the MiB of memory (proc.5, meminfo); None if not known."""
    cpus = os.cpu_count()
    try:
        total = _TOTAL.search(memory.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
    if total is None or not cpus:
        return None
    return float(cpus), float(int(total[1]) // 1024)
