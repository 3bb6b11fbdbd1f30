# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The processes of this machine as /proc shows them, and who descends from whom.

A process number alone says little, because numbers are used again; together with
the start time it names one process for as long as the machine runs.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class ProcessEntry:
    """One line of /proc/PID/stat (proc.5): ``start`` is field 22, in ticks since boot."""

    pid: int
    state: str
    parent: int
    group: int
    session: int
    start: int

    @property
    def alive(self) -> bool:
        """A zombie has ended; it only waits for its parent to ask."""
        return self.state not in "ZX"


def process_entry(pid: int) -> ProcessEntry | None:
    """Return what /proc says of *pid*, or None when there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
            text = file.read()
    except OSError:
        return None
    # The second field is the program's name in brackets and may hold anything.
    fields = text[text.rfind(b")") + 2 :].split()
    if len(fields) < 20:
        return None
    return ProcessEntry(
        pid=pid,
        state=fields[0].decode("ascii", "replace"),
        parent=int(fields[1]),
        group=int(fields[2]),
        session=int(fields[3]),
        start=int(fields[19]),
    )


def is_alive(pid: int, start: int) -> bool:
    """Say whether the process *pid* that started at *start* still runs."""
    entry = process_entry(pid)
    return entry is not None and entry.start == start and entry.alive


def carries(pid: int, variable: bytes) -> bool:
    """Say whether *pid* was started with *variable* (``NAME=value``) in its environment."""
    return variable in _environment(pid)


def carried(pid: int, name: str) -> bytes:
    """Return the value that *name* had in the environment with which *pid* was started, or b""."""
    begin = f"{name}=".encode()
    return next((item[len(begin) :] for item in _environment(pid) if item.startswith(begin)), b"")


def _environment(pid: int) -> list[bytes]:
    """Return what *pid* was started with; what may not be read, as another user's, is empty."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123
            return file.read().split(b"\0")
    except OSError:
        return []


def process_table() -> dict[int, ProcessEntry]:
    """Return all processes by number."""
    try:
        names = os.listdir("/proc")  # noqa: PTH208
    except OSError:
        return {}
    table = {}
    for name in names:
        if name.isdigit():
            entry = process_entry(int(name))
            if entry is not None:
                table[entry.pid] = entry
    return table


def descendants(
    table: Mapping[int, ProcessEntry], root: int, known: Mapping[int, ProcessEntry]
) -> dict[int, ProcessEntry]:
    """Return *root* and all that came from it, as far as *table* and *known* tell.

    A process belongs when its parent, group or session does.  *known* holds those
    found earlier: an orphan has another parent by now, but still the same start time.
    The number of a dead leader is not given out again while its group or session lives.
    """
    found = {
        pid: table[pid]
        for pid, entry in known.items()
        if pid in table and table[pid].start == entry.start
    }
    if root in table:
        found[root] = table[root]
    leaders = {root, *found, *(pid for pid in known if pid not in table)}
    while True:
        more = {
            pid: entry
            for pid, entry in table.items()
            if pid not in found
            and (entry.parent in leaders or entry.group in leaders or entry.session in leaders)
        }
        if not more:
            return found
        found.update(more)
        leaders.update(more)
