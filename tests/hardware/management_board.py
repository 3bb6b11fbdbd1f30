# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A management board that speaks IPMI: one ipmi_sim, which asks a program about its machine.

That program is called with ``get`` or ``set`` and pairs of parameter and value added to
its words (OpenIPMI, lan.conf, chassis_control).  The simulator waits for the end of its
output.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path

USER = "fence"
PASSWORD = "secret-of-board"

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


class ManagementBoard:
    """One board at an address; no word of *hook*, the program about its machine, has a blank."""

    def __init__(
        self, folder: Path, number: int, address: str, port: int, hook: Sequence[str]
    ) -> None:
        self.folder = folder
        self.address = address
        self.port = port
        (folder / "state").mkdir(parents=True, exist_ok=True)
        (folder / "lan.conf").write_text(
            LAN.format(
                name=folder.name,
                address=address,
                port=port,
                number=number,
                hook=" ".join(hook),
                user=USER,
                password=PASSWORD,
            )
        )
        (folder / "board.emu").write_text(EMULATOR)
        self._simulator: subprocess.Popen[bytes] | None = None

    @property
    def parameters(self) -> dict[str, object]:
        """What fence_ipmilan needs to talk to the board."""
        return {
            "ip": self.address,
            "ipport": self.port,
            "username": USER,
            "password": PASSWORD,
            "power_wait": 0,
        }

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
                asker.connect((self.address, self.port))
                asker.send(PING)
                return bool(asker.recv(1024))
            except OSError:
                return False

    def be_stuck(self) -> None:
        """Let the board take what it is sent, and answer no more."""
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """End ``be_stuck``."""
        self._signal(signal.SIGCONT)

    def die(self) -> None:
        """End the board itself: its port is closed, its machine runs on."""
        if self._simulator is not None:
            self._simulator.kill()
            self._simulator.wait(timeout=10)
            self._simulator = None

    def _signal(self, number: int) -> None:
        if self._simulator is not None:
            self._simulator.send_signal(number)
