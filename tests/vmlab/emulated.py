# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A lab of one machine on emulated hardware."""

from __future__ import annotations

import subprocess
from pathlib import Path

from testbed.network import CLUSTER, address
from testbed.node import CALL, Node
from vmlab import emulator
from vmlab.images import EMULATED
from vmlab.node import Machine
from vmlab.whole import MachineLab


class EmulatedMachine(Machine):
    """A machine with Debian's kernel, a hardware watchdog and a crash kernel."""

    kind = EMULATED
    program = "vmlab.emulator"
    fired = emulator.FIRED

    def reinstall(self) -> None:
        """Give the machine, which is off, a copy of the image."""
        words = ("cp", "--sparse=always", self._here / "image/disk.img", self._here / "disk.img")
        subprocess.run(words, check=True, timeout=CALL)


class EmulatedLab(MachineLab):
    """One emulated machine, n1, and its board; n2 and n3 are names of the lab itself."""

    nodes: dict[str, EmulatedMachine]

    def __init__(self) -> None:
        super().__init__(1)

    def _make_node(self, place: Path, number: int) -> Node:
        return EmulatedMachine(place, number)

    def _hosts(self) -> str:
        return f"{super()._hosts()}{address(CLUSTER, 0)} n2 n3\n"
