# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The power switch of a machine of an embedded cluster: on, off, frozen.

A machine is everything that runs for one node on this computer: its parent process
(``machine.py``), the two daemons, the agents and their services.  A process belongs to a machine
if its environment has the machine's mark, or if it descends from one that does and has no other
mark.  Only a process that cleared its environment *and* lost its parent, because the machine's
parent process was killed alone, is missed.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path

from ...errors import FenceError, InputError
from ...process.family import carried
from ...process.own_program import own_program
from ..configuration import MARK, run_directory

POLL = 0.02
_PARENT_DEATH_SIGNAL = 1
"""PR_SET_PDEATHSIG of prctl(2)."""

EMPTY_LOOKS = 2
"""A walk through /proc can miss what is born during it; two in a row cannot miss both."""


def machines(folder: Path) -> list[str]:
    """Return the names of the machines below *folder*: each has a folder with a node.json."""
    return sorted(path.parent.name for path in folder.glob("*/node.json"))


def is_on(folder: Path, name: str) -> bool:
    """Return whether anything of the machine is alive; a frozen machine is on."""
    return bool(processes(_machine(folder, name)))


def power_off(folder: Path, name: str, deadline: float) -> None:
    """Kill all that runs for the machine, without warning, and prove that nothing is left.

    Raises ``FenceError`` when something still lives after *deadline* seconds.
    What the machine kept in its run folder is lost, as memory is.
    """
    machine = _machine(folder, name)
    until = time.monotonic() + deadline
    empty_looks = 0
    while empty_looks < EMPTY_LOOKS:
        alive = processes(machine)
        empty_looks = 0 if alive else empty_looks + 1
        if alive and time.monotonic() > until:
            raise FenceError(
                f"Machine {name!r} cannot be switched off: {len(alive)} of its processes"
                f" are still there after {deadline:.0f} s, such as {alive[0]}."
            )
        # Stopped first, so that none can start another while the rest is killed.
        _signal(alive, signal.SIGSTOP)
        _signal(processes(machine), signal.SIGKILL)
        time.sleep(POLL)
    shutil.rmtree(run_directory(machine), ignore_errors=True)


def power_on(folder: Path, name: str, deadline: float) -> None:
    """Start the machine and wait until it says that it is up.

    A machine that is on is left alone.  Raises ``FenceError`` with the machine's
    own last words when it does not come up within *deadline* seconds.
    """
    machine = _machine(folder, name)
    if processes(machine):
        return
    ready = machine / "ready"
    environment = {
        MARK: str(machine),
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": os.environ.get("HOME", "/"),
        "LC_ALL": "C.UTF-8",
    }
    try:
        ready.unlink(missing_ok=True)
        with (machine / "console.log").open("ab") as console:
            child = subprocess.Popen(  # pylint: disable=ansible-bad-function
                own_program("machine", "run", str(machine / "node.json")),
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=console,
                env=environment,
                cwd="/",
                start_new_session=True,
            )
    except OSError as error:
        raise FenceError(f"Machine {name!r} cannot be started: {error}.") from error
    until = time.monotonic() + deadline
    while not ready.exists():
        if child.poll() is not None or time.monotonic() > until:
            raise FenceError(f"Machine {name!r} did not come up: {_last_words(machine)}")
        time.sleep(POLL)


def freeze(folder: Path, name: str) -> None:
    """Stop all that runs for the machine with SIGSTOP: it hangs, and keeps what it holds."""
    _signal(processes(_machine(folder, name)), signal.SIGSTOP)


def thaw(folder: Path, name: str) -> None:
    """Let a frozen machine go on."""
    _signal(processes(_machine(folder, name)), signal.SIGCONT)


def restart_daemons(folder: Path, name: str) -> None:
    """Restart the daemons of a machine that is on, with the present code and files.

    Services are left as they are.  Nothing is done to a machine that is off, or to a node that is
    no machine, whose configuration is not in its folder.
    """
    if name not in machines(folder):
        return
    pid = _machine_process(_machine(folder, name))
    if pid:
        _signal([pid], signal.SIGHUP)


def shut_down(folder: Path, name: str, deadline: float, *, reboot: bool = False) -> None:
    """Shut a machine down in order, and wait until it is off, or up again after a *reboot*.

    A machine that is off is left alone, or started for a *reboot*.  Raises ``FenceError`` after
    *deadline* seconds; the shutdown goes on then.
    """
    machine = _machine(folder, name)
    ready = machine / "ready"
    pid = _machine_process(machine)
    if not pid:
        if reboot:
            power_on(folder, name, deadline)
        return
    until = time.monotonic() + deadline
    ready.unlink(missing_ok=True)
    _signal([pid], signal.SIGINT if reboot else signal.SIGTERM)
    while not ready.exists() if reboot else processes(machine):
        if time.monotonic() > until:
            raise FenceError(
                f"Machine {name!r} is still on its way down after {deadline:.0f} s: services that"
                " cannot be stopped or moved keep it up; see holdfast status."
            )
        time.sleep(POLL)


def die_with_parent() -> None:
    """Make this process die when the machine that started it is killed (prctl(2)).

    Without its machine the node's host lease is not renewed; a daemon that went on would only keep
    the others from noticing.  Does nothing outside a machine.
    """
    if MARK in os.environ:
        ctypes.CDLL(None, use_errno=True).prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)


def processes(machine: Path) -> list[int]:
    """Return the process ids of all that lives for the machine in this folder."""
    mark = os.fsencode(machine)
    parents: dict[int, int] = {}
    marks: dict[int, bytes] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        pid = int(entry.name)
        parent = _parent_if_alive(entry)
        if parent is not None:
            parents[pid] = parent
            marks[pid] = carried(pid, MARK)
    found = {pid for pid, own in marks.items() if own == mark}
    grown = True
    while grown:
        more = {
            pid
            for pid, parent in parents.items()
            if parent in found and pid not in found and not marks[pid]
        }
        found |= more
        grown = bool(more)
    found.discard(os.getpid())
    return sorted(found)


def _machine(folder: Path, name: str) -> Path:
    """Return the machine's folder by its real path, which is also its mark."""
    machine = folder / name
    if not name or "/" in name or not (machine / "node.json").is_file():
        known = ", ".join(machines(folder)) or "there are none"
        raise InputError("plug", name, f"one of the machines below {folder} ({known})")
    return machine.resolve()


def _machine_process(machine: Path) -> int:
    """Return the parent process of a machine that is on, else 0."""
    try:
        pid = int((machine / "machine.pid").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return 0
    return pid if pid in processes(machine) else 0


def _parent_if_alive(entry: Path) -> int | None:
    """Return the parent of a process, or None if it is gone or a zombie."""
    try:
        stat = (entry / "stat").read_bytes()
    except OSError:
        return None
    state, parent = stat.rpartition(b")")[2].split()[:2]
    return None if state in (b"Z", b"X") else int(parent)


def _signal(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            continue


def _last_words(machine: Path) -> str:
    """Return the last line that the machine wrote on its console."""
    try:
        lines = (machine / "console.log").read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    for line in reversed(lines):
        if line.strip():
            return line.strip()
    return "it said nothing"
