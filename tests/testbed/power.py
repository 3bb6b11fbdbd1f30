# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The power switches of the nodes, for the tests, for the management boards and for the watchdogs.

Called as a program with ``reset`` and a node's number (by its watchdog), or with a number
and what ipmi_sim asks (by its management board).
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from testbed import lab, network
from testbed.lab import CGROUP

CUT = 10.0
"""Seconds after which a machine without power must be gone."""

SHUTDOWN = 90.0
POWER_BUTTON = signal.SIGRTMIN + 4
"""Asks systemd to power off (systemd(1), signals)."""


def is_on(number: int) -> bool:
    """Return whether anything of a machine runs."""
    return _is_populated(_group(number))


def switch_on(number: int) -> None:
    """Give a machine power; nothing happens if it has it."""
    with _switch(number):
        _on(number)


def cut(number: int) -> None:
    """Take a machine's power away: not one more instruction is run."""
    with _switch(number):
        _off(number)


def reset(number: int) -> None:
    """Press the reset button."""
    with _switch(number):
        _off(number)
        _on(number)


def press_button(number: int) -> None:
    """Have a machine shut down, and wait until it is off."""
    os.kill(first_process(number), POWER_BUTTON)
    until = time.monotonic() + SHUTDOWN
    while is_on(number):
        if time.monotonic() > until:
            raise TimeoutError(f"n{number} did not shut down within {SHUTDOWN:.0f} s")
        time.sleep(0.02)


def freeze(number: int, frozen: bool = True) -> None:
    """Let the system of a machine hang, or go on; its hardware is not touched.

    Raises ``ProcessLookupError`` when it has none at the moment.
    """
    try:
        (_group(number) / "payload" / "cgroup.freeze").write_text(str(int(frozen)))
    except FileNotFoundError:
        raise ProcessLookupError(f"n{number} is off") from None


def pause(number: int, paused: bool = True) -> None:
    """Let a whole machine stand still, its watchdog too, or go on: as a hypervisor does.

    Its clocks do not stop.  Raises ``ProcessLookupError`` when it is off.
    """
    try:
        (_group(number) / "cgroup.freeze").write_text(str(int(paused)))
    except FileNotFoundError:
        raise ProcessLookupError(f"n{number} is off") from None


def first_process(number: int) -> int:
    """Return the process that is number 1 in a node; ``ProcessLookupError`` if there is none."""
    for pid in _members(number):
        if _number_within(pid) == 1:
            return pid
    raise ProcessLookupError(f"n{number} is off")


def processes(number: int) -> list[int]:
    """Return the processes of a node's system, as the lab numbers them."""
    return sorted(_members(number))


def in_group(group: Path) -> tuple[str, ...]:
    """Return the words before a command that has to be in a control group before it runs."""
    return ("sh", "-c", 'echo $$ > "$0" && exec "$@"', str(group / "cgroup.procs"))


def empty(group: Path) -> None:
    """Kill all that is in a control group, and wait until it is gone."""
    (group / "cgroup.kill").write_text("1")
    until = time.monotonic() + CUT
    while _is_populated(group):
        if time.monotonic() > until:
            raise TimeoutError(f"{group.name} still runs {CUT:.0f} s after it was killed")
        time.sleep(0.002)


def _is_populated(group: Path) -> bool:
    try:
        return "populated 1" in (group / "cgroup.events").read_text()
    except OSError:
        return False


def _group(number: int) -> Path:
    return CGROUP / f"n{number}"


@contextmanager
def _switch(number: int) -> Iterator[None]:
    """Have a machine's switch alone: its board, its watchdog and a test may want it at once."""
    with (_here(number) / "switch").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _here(number: int) -> Path:
    place = lab.folder()
    if place is None:
        raise SystemExit("There are machines in a lab only.")
    return place / f"n{number}"


def _on(number: int) -> None:
    if is_on(number):
        return
    lab.remove_group(_group(number))
    _group(number).mkdir(exist_ok=True)
    here = _here(number)
    # Module and arguments of the program that is the machine while it has power.
    words = (here / "start").read_text().split()
    # One that joined its group by itself would count as off until then, be missed by a power
    # cut, and get a second one beside it.
    join = in_group(_group(number))
    with (here / "console").open("ab") as console:
        # Twice removed, so that the lab's first process collects it.
        subprocess.run(
            [*join, "setsid", "--fork", sys.executable, "-m", *words],
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=console,
            check=True,
        )


def _off(number: int) -> None:
    group = _group(number)
    if not group.exists():
        return
    empty(group)
    network.switch_off(number)
    lab.remove_group(group)


def _members(number: int) -> Iterator[int]:
    """Give the processes of a node's system; groups that go meanwhile have none any more."""
    for folder, _folders, _files in os.walk(_group(number) / "payload"):
        try:
            yield from map(int, Path(folder, "cgroup.procs").read_text().split())
        except OSError:
            continue


def _number_within(pid: int) -> int:
    """Return the number that a process has in its innermost namespace."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    (line,) = (line for line in status.splitlines() if line.startswith("NSpid:"))
    return int(line.split()[-1])


def _board(number: int, operation: str, words: list[str]) -> int:
    """Answer ipmi_sim: what a machine's power is, or do with it what was asked."""
    if operation == "get":
        values = {"power": int(is_on(number)), "boot": "default"}
        for word in words:
            sys.stdout.write(f"{word}:{values.get(word, 0)}\n")
        return 0
    desired = dict(zip(words[::2], words[1::2]))
    if "power" in desired:
        (switch_on if desired["power"] == "1" else cut)(number)
    if "reset" in desired:
        reset(number)
    if "shutdown" in desired:
        press_button(number)
    return 0


def main() -> int:
    if sys.argv[1] == "reset":
        # Out of the machine's group first: this must outlive its loss of power.
        (CGROUP / "cgroup.procs").write_text(str(os.getpid()))
        reset(int(sys.argv[2]))
        return 0
    return _board(int(sys.argv[1]), sys.argv[2], sys.argv[3:])


if __name__ == "__main__":
    raise SystemExit(main())
