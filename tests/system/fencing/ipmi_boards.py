# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Simulated management boards: one ipmi_sim each, on a port of its own of the loopback address.

Nothing here needs root.  Every process is started and ended by its number, with a deadline.
"""

from __future__ import annotations

import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ansible_collections.holdfast.ha.tests.hardware.management_board import (
    PASSWORD,
    USER,
    ManagementBoard,
    missing,
)
from ansible_collections.holdfast.ha.tests.system.fencing.chassis_hook import (
    is_on,
    switch_off,
    switch_on,
)

__all__ = ["PASSWORD", "USER", "Board", "boards", "missing"]

ADDRESS = "127.0.0.1"
START = 20.0
"""Seconds in which all boards have to answer; the machine may be busy."""

HOOK = Path(__file__).with_name("chassis_hook.py")


class Board(ManagementBoard):
    """One management board with one machine, which is on."""

    def __init__(self, folder: Path, number: int, port: int) -> None:
        self._machine = folder / "process"
        hook = (sys.executable, "-S", "-E", str(folder.parent / HOOK.name), str(folder))
        super().__init__(folder, number, ADDRESS, port, hook)
        (folder / "faults").write_text("")
        switch_on(self._machine)

    @property
    def machine_runs(self) -> bool:
        """Whether the process that stands for the machine is alive."""
        return is_on(self._machine)

    @property
    def machine_process(self) -> int:
        """The process that stands for the machine, or last did."""
        return int(self._machine.read_text())

    def be_deaf(self, deaf: bool = True) -> None:
        """Let the board say that it switches, and do nothing; or end that."""
        (self.folder / "faults").write_text("deaf" if deaf else "")

    def switch_on(self) -> None:
        """Switch the machine on by hand."""
        switch_on(self._machine)

    def switch_off(self) -> None:
        """Switch the machine off by hand."""
        switch_off(self._machine)

    def end(self) -> None:
        """End board and machine."""
        self.die()
        self.switch_off()


@contextmanager
def boards(count: int) -> Iterator[Sequence[Board]]:
    """Give *count* boards that answer; they and their machines end with the block."""
    # Not pytest's folder: the simulator takes its hook's command apart at blanks.
    folder = Path(tempfile.mkdtemp(prefix="hf-boards-"))
    shutil.copy(HOOK, folder)
    made: list[Board] = []
    try:
        for number, port in enumerate(_free_ports(count), 1):
            made.append(Board(folder / f"n{number}", number, port))
            made[-1].start()
        until = time.monotonic() + START
        for board in made:
            while not board.answers():
                if time.monotonic() > until:
                    log = (board.folder / "log").read_text(errors="replace")
                    raise TimeoutError(f"{board.folder.name} does not answer: {log[-500:]}")
        yield made
    finally:
        for board in made:
            board.end()
        shutil.rmtree(folder)


def _free_ports(count: int) -> list[int]:
    """Return ports of the loopback address that no UDP socket has, all different."""
    sockets = []
    try:
        for _number in range(count):
            one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            sockets.append(one)
            one.bind((ADDRESS, 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()
