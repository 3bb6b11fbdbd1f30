# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Simulated management boards: one ipmi_sim each, on a port of its own of the loopback address.

Nothing here needs root.  Every process is started and ended by its number, with a deadline.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ansible_collections.holdfast.ha.tests.system.fencing.chassis_hook import (
    is_on,
    switch_off,
    switch_on,
)

ADDRESS = "127.0.0.1"
USER = "fence"
PASSWORD = "secret-of-board"
START = 20.0
"""Seconds in which all boards have to answer; the machine may be busy."""

HOOK = Path(__file__).with_name("chassis_hook.py")

LAN = """name "{name}"
set_working_mc 0x20
  startlan 1
    addr {address} {port}
    priv_limit admin
    allowed_auths_callback none md2 md5 straight
    allowed_auths_user none md2 md5 straight
    allowed_auths_operator none md2 md5 straight
    allowed_auths_admin none md2 md5 straight
    guid a123456789abcdefa12345678900{number:04x}
  endlan
  chassis_control "{hook}"
  user 1 true  ""       "unused" user 10 none md2 md5 straight
  user 2 true  "{user}"  "{password}" admin 10 none md2 md5 straight
"""

EMULATOR = """mc_setbmc 0x20
mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr
sel_enable 0x20 1000 0x0a
mc_enable 0x20
"""

PING = bytes.fromhex("0600ff07000000000000000000092018c88100388e04b5")
"""An IPMI "get channel authentication capabilities" for any channel, without a session."""


def missing() -> str:
    """Return which program is not here, "" when the boards can be started and asked."""
    for name, package in (
        ("ipmi_sim", "openipmi"),
        ("ipmitool", "ipmitool"),
        ("fence_ipmilan", "fence-agents"),
    ):
        if shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin") is None:
            return f"{name} of the package {package} is not installed"
    return ""


class Board:
    """One management board with one machine, which is on."""

    def __init__(self, folder: Path, number: int, port: int) -> None:
        self.folder = folder
        self.port = port
        self._machine = folder / "process"
        folder.mkdir()
        (folder / "state").mkdir()
        (folder / "faults").write_text("")
        hook = f"{sys.executable} -S -E {folder.parent / HOOK.name} {folder}"
        (folder / "lan.conf").write_text(
            LAN.format(
                name=folder.name,
                address=ADDRESS,
                port=port,
                number=number,
                hook=hook,
                user=USER,
                password=PASSWORD,
            )
        )
        (folder / "board.emu").write_text(EMULATOR)
        switch_on(self._machine)
        self._simulator: subprocess.Popen[bytes] | None = None

    @property
    def parameters(self) -> dict[str, object]:
        """What fence_ipmilan needs to talk to the board."""
        return {
            "ip": ADDRESS,
            "ipport": self.port,
            "username": USER,
            "password": PASSWORD,
            "power_wait": 0,
        }

    @property
    def machine_runs(self) -> bool:
        """Whether the process that stands for the machine is alive."""
        return is_on(self._machine)

    @property
    def machine_process(self) -> int:
        """The process that stands for the machine, or last did."""
        return int(self._machine.read_text())

    def start(self) -> None:
        """Start the board; it answers once ``answers`` is true."""
        command = ["ipmi_sim", "-n", "-c", "lan.conf", "-f", "board.emu", "-s", "state"]
        with (self.folder / "log").open("wb") as log:
            self._simulator = subprocess.Popen(
                command,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def answers(self, seconds: float = 0.2) -> bool:
        """Ask the board for a sign of life."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
            asker.settimeout(seconds)
            try:
                asker.connect((ADDRESS, self.port))
                asker.send(PING)
                return bool(asker.recv(1024))
            except OSError:
                return False

    def be_deaf(self, deaf: bool = True) -> None:
        """Let the board say that it switches, and do nothing; or end that."""
        (self.folder / "faults").write_text("deaf" if deaf else "")

    def be_stuck(self) -> None:
        """Let the board take what it is sent, and answer no more."""
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """End ``be_stuck``."""
        self._signal(signal.SIGCONT)

    def switch_on(self) -> None:
        """Switch the machine on by hand."""
        switch_on(self._machine)

    def switch_off(self) -> None:
        """Switch the machine off by hand."""
        switch_off(self._machine)

    def die(self) -> None:
        """End the board itself: its port is closed, its machine runs on."""
        if self._simulator is not None:
            self._simulator.kill()
            self._simulator.wait(timeout=10)
            self._simulator = None

    def end(self) -> None:
        """End board and machine."""
        self.die()
        self.switch_off()

    def _signal(self, number: int) -> None:
        if self._simulator is not None:
            self._simulator.send_signal(number)


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
