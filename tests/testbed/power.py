# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The power switches of the nodes, for tests, management boards and watchdogs.

A node's watchdog calls it as a program with ``reset`` and the node's number, its management board
(ipmi_sim) with the number and the board's command.
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
"""Seconds in which the processes of a machine without power must end."""

SHUTDOWN = 90.0
POWER_BUTTON = signal.SIGRTMIN + 4
"""Asks systemd to power off (systemd(1), signals)."""


def is_on(number: int) -> bool:
    """Return whether a machine is on: any of its processes runs."""
    return _is_populated(_group(number))


def switch_on(number: int) -> None:
    """Switch a machine on, if it is off."""
    with _switch(number):
        _on(number)


def cut(number: int) -> None:
    """Cut a machine's power: it runs no further instruction."""
    with _switch(number):
        _off(number)


def reset(number: int) -> None:
    """Press the reset button."""
    with _switch(number):
        _off(number)
        _on(number)


def press_button(number: int) -> None:
    """Press the power button: shut a machine down, and wait until it is off."""
    os.kill(first_process(number), POWER_BUTTON)
    until = time.monotonic() + SHUTDOWN
    while is_on(number):
        if time.monotonic() > until:
            raise TimeoutError(f"n{number} did not shut down within {SHUTDOWN:.0f} s")
        time.sleep(0.02)


def freeze(number: int, frozen: bool = True) -> None:
    """Freeze the system of a machine, but not its hardware, or let it continue.

    Raises ``ProcessLookupError`` if no system runs.
    """
    try:
        (_group(number) / "payload" / "cgroup.freeze").write_text(str(int(frozen)))
    except FileNotFoundError:
        raise ProcessLookupError(f"n{number} is off") from None


def pause(number: int, paused: bool = True) -> None:
    """Pause a whole machine with its watchdog, as a hypervisor does, or resume it.

    Its clocks do not stop.  Raises ``ProcessLookupError`` if the machine is off.
    """
    try:
        (_group(number) / "cgroup.freeze").write_text(str(int(paused)))
    except FileNotFoundError:
        raise ProcessLookupError(f"n{number} is off") from None


def first_process(number: int) -> int:
    """Return the init process of a node; ``ProcessLookupError`` if there is none."""
    for pid in _members(number):
        if _number_within(pid) == 1:
            return pid
    raise ProcessLookupError(f"n{number} is off")


def processes(number: int) -> list[int]:
    """Return the process ids of a node's system in the lab."""
    return sorted(_members(number))


def in_group(group: Path) -> tuple[str, ...]:
    """Return a command prefix that enters a control group before the command runs."""
    return ("sh", "-c", 'echo $$ > "$0" && exec "$@"', str(group / "cgroup.procs"))


def empty(group: Path) -> None:
    """Kill all processes of a control group, and wait until they are gone."""
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
    """Lock a machine's switch: its board, its watchdog and a test may use it at once."""
    with (_here(number) / "switch").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _here(number: int) -> Path:
    place = lab.folder()
    if place is None:
        raise SystemExit("Machines run only in a lab.")
    return place / f"n{number}"


def _on(number: int) -> None:
    if is_on(number):
        return
    lab.remove_group(_group(number))
    _group(number).mkdir(exist_ok=True)
    here = _here(number)
    # Module and arguments of the program that runs while the machine has power.
    words = (here / "start").read_text().split()
    # A program that entered the group by itself would count as off until then: a power cut would
    # miss it, and a second one would be started.
    join = in_group(_group(number))
    with (here / "console").open("ab") as console:
        # Detached, so that the lab's first process reaps it.
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
    """Yield the processes of a node's system, without groups that end meanwhile."""
    for folder, _folders, _files in os.walk(_group(number) / "payload"):
        try:
            yield from map(int, Path(folder, "cgroup.procs").read_text().split())
        except OSError:
            continue


def _number_within(pid: int) -> int:
    """Return the id of a process in its innermost process namespace."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    (line,) = (line for line in status.splitlines() if line.startswith("NSpid:"))
    return int(line.split()[-1])


def _board(number: int, operation: str, words: list[str]) -> int:
    """Answer ipmi_sim: print the state of a machine's power, or change it."""
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
        # Leave the machine's group first: this process must survive the power cut.
        (CGROUP / "cgroup.procs").write_text(str(os.getpid()))
        reset(int(sys.argv[2]))
        return 0
    return _board(int(sys.argv[1]), sys.argv[2], sys.argv[3:])


if __name__ == "__main__":
    raise SystemExit(main())
