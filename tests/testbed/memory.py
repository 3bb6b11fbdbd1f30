# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node short of memory: each new page waits until the kernel has reclaimed another one.

The node's processes are moved to a memory group (cgroup v1).  A process in the group keeps it full:
it reads a file larger than the group, again and again.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

from testbed import lab
from testbed.background import Background
from testbed.node import CALL, Node, wait_until

LIMIT_MIB, FILE_MIB = 160, 256
"""Limit of the group, enough for a node's programs, and size of the file, larger than that."""


def memory_groups() -> bool:
    """Return whether this kernel can mount memory groups separately (cgroup v1)."""
    rows = (line.split() for line in Path("/proc/cgroups").read_text().splitlines())
    return any(row[0] == "memory" and row[1] != "0" for row in rows)


class ShortOfMemory(Background):
    """Keeps all processes of a node in a full memory *group* while it is entered."""

    pause = 0.5

    def __init__(self, node: Node) -> None:
        super().__init__()
        place = lab.folder()
        assert place is not None, "a node is in a lab"
        self._node = node
        self._root = place / "memory"
        self.group = self._root / f"{place.name}-{node.name}"
        # Not in the lab's folder, which may be in memory itself.
        self._file = tempfile.TemporaryFile(dir=lab.PLACE)  # noqa: SIM115 - closed at the exit

    def __enter__(self) -> ShortOfMemory:
        self._root.mkdir(exist_ok=True)
        if not os.path.ismount(self._root):
            mount = ("mount", "-t", "cgroup", "-o", "memory", "none", str(self._root))
            subprocess.run(mount, check=True, timeout=CALL)
        self.group.mkdir(exist_ok=True)
        (self.group / "memory.limit_in_bytes").write_text(str(LIMIT_MIB << 20))
        for _number in range(FILE_MIB):
            self._file.write(bytes(1 << 20))
        self._file.flush()
        os.fsync(self._file.fileno())
        # Drop its pages, so that they are charged to the group that reads them.
        os.posix_fadvise(self._file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        for pid in self._node.command_lines():
            self._move(pid, self.group)
        super().__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        try:
            super().__exit__(*error)
        finally:
            (self.group / "memory.limit_in_bytes").write_text("-1")
            wait_until(self._leave, CALL, "an empty memory group")
            self.group.rmdir()
            self._file.close()

    def _leave(self) -> bool:
        """Move all processes out, and return whether the group is empty: some may have forked."""
        inside = (self.group / "cgroup.procs").read_text().split()
        for pid in inside:
            self._move(int(pid), self._root)
        return not inside

    def step(self) -> None:
        """Read the file once, as a process of the group."""
        self._file.seek(0)
        join = 'echo $$ > "$1"/cgroup.procs; exec dd of=/dev/null bs=64k'
        words = ("sh", "-c", join, "sh", str(self.group))
        out = subprocess.DEVNULL
        subprocess.run(words, stdin=self._file, stderr=out, check=True, timeout=CALL)

    @staticmethod
    def _move(pid: int, group: Path) -> None:
        with suppress(ProcessLookupError):
            (group / "cgroup.procs").write_text(str(pid))
