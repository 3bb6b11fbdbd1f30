# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The first process of a lab: mounts the lab's /proc, /run and control groups, and reaps.

Called with the lab's folder and a command; the lab ends with that command.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from testbed.lab import CGROUP

DISKS = "16G"
"""Limit for the disks of all nodes, which are sparse files in memory."""


def main() -> int:
    place, *command = sys.argv[1:]
    _mount("-t", "proc", "proc", "/proc")
    _mount("-t", "tmpfs", "-o", "mode=755", "run", "/run")
    for name in ("netns", "lock"):
        Path("/run", name).mkdir()
    subprocess.run(["umount", "-R", str(CGROUP)], check=True)
    _mount("-t", "cgroup2", "cgroup2", str(CGROUP))
    _mount("-t", "tmpfs", "-o", f"mode=755,size={DISKS}", "lab", place)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    return _reap_until_end_of(command)


def _mount(*words: str) -> None:
    subprocess.run(["mount", *words], check=True)


def _reap_until_end_of(command: Sequence[str]) -> int:
    """Run *command*, and reap orphaned processes meanwhile."""
    child = os.fork()
    if child == 0:
        os.execvp(command[0], list(command))
    while True:
        pid, status = os.wait()
        if pid == child:
            return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    raise SystemExit(main())
