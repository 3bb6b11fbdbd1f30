# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find and kill all processes that descend from one call of a program.

A process leaves its group with setsid, and its ancestors when one between them ends.  It is found
all the same, without any privilege: by its parent, group or session now or earlier, and by a mark
that every process of the call inherits in its environment.  Only one that left its session, lost
its parent between two looks and cleared its environment is not found.  Process numbers are used
again; a number and a start time together identify one process while the machine runs.

The kernel's own means are no better for agents.  A child subreaper (PR_SET_CHILD_SUBREAPER) gets
processes that it does not know: daemons that end become zombies that an agent takes for alive.
A control group needs privileges, and would include the services that have to outlive the call.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

GRACE = 2.0
"""Seconds to wait for a killed child; one in an uninterruptible wait never ends."""


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
        """Whether it runs: a zombie has ended and waits to be collected."""
        return self.state not in "ZX"


def process_entry(pid: int) -> ProcessEntry | None:
    """Return the entry of *pid* in /proc, or None when there is no such process."""
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
    """Return whether the process *pid* that started at *start* still runs."""
    entry = process_entry(pid)
    return entry is not None and entry.start == start and entry.alive


def carries(pid: int, variable: bytes) -> bool:
    """Return whether *pid* was started with *variable* (``NAME=value``) in its environment."""
    return variable in _environment(pid)


def carried(pid: int, name: str) -> bytes:
    """Return the value of *name* in the environment with which *pid* was started, or b""."""
    begin = f"{name}=".encode()
    return next((item[len(begin) :] for item in _environment(pid) if item.startswith(begin)), b"")


def _environment(pid: int) -> list[bytes]:
    """Return the variables that *pid* was started with; none if they may not be read."""
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
    """Return *root* and all its descendants by *table* and *known*.

    A process belongs when its parent, group or session does.  *known* has those found earlier:
    an orphan has another parent by now, but still the same start time.  The kernel does not use
    the number of a dead leader again while its group or session lives.
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


MARK = "HOLDFAST_RUN"
"""Environment variable with a value of its own for each call."""

_EMPTY_LOOKS = 4
"""How many looks in a row find nobody before all have ended.  One walk through /proc can miss a
process that starts meanwhile, and one that is within execve(2) has no environment to be read."""

_PAUSE = 0.02
"""Seconds between two looks; on a busy machine an execve(2) may be held up for longer."""


class Family:
    """The child of one call, not collected yet, and all its descendants."""

    def __init__(self, child: int, mark: str, start: int | None = None) -> None:
        """Describe the call with the process *child* and the value *mark* of MARK.

        Without *start* it is a child of this process; else another process's child that started
        then, in clock ticks since the boot.
        """
        self._child, self._start = child, start
        self._variable = f"{MARK}={mark}".encode()
        self._known: dict[int, ProcessEntry] = {}

    def look(self) -> None:
        """Remember the present descendants."""
        self._remember(process_table())

    def end(self, until: float, clock: Callable[[], float]) -> None:
        """Kill the child and all its descendants until none is left or *clock* reaches *until*.

        A child of ours must not have been collected: until then its number and its group's
        cannot belong to another process.
        """
        empty_looks = 0
        while empty_looks < _EMPTY_LOOKS:
            # Looked up before the kill: an orphan has lost its parent.
            self._look_closely()
            alive = [pid for pid, entry in self._known.items() if is_alive(pid, entry.start)]
            # The group needs no look, which fails when we are out of descriptors.
            if self._start is None:
                _send_kill(os.killpg, self._child)
            for pid in alive:
                if is_alive(pid, self._known[pid].start):
                    _send_kill(os.kill, pid)
            empty_looks = 0 if alive else empty_looks + 1
            if clock() >= until:
                return
            time.sleep(_PAUSE)

    def _look_closely(self) -> None:
        """Remember the descendants and the processes with the mark."""
        table = process_table()
        self._remember(table)
        child = self._known.get(self._child)
        for pid, entry in table.items():
            # A process that is older than the child cannot descend from it.
            if pid in self._known or child is None or entry.start < child.start:
                continue
            if carries(pid, self._variable):
                self._known[pid] = entry

    def _remember(self, table: dict[int, ProcessEntry]) -> None:
        if self._start is not None:
            child = table.get(self._child)
            ended_before = child is None and not self._known
            if ended_before or (child is not None and child.start != self._start):
                return
        self._known.update(descendants(table, self._child, self._known))


def _send_kill(kill: Callable[[int, int], None], number: int) -> None:
    """Send SIGKILL by *kill* (os.kill or os.killpg), unless the process is gone or not ours."""
    try:
        kill(number, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
