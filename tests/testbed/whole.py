# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The testbed as a whole: nodes, networks, shared storage and management boards in a lab."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from hardware.management_board import ManagementBoard
from testbed import lab, network
from testbed.bases import base
from testbed.machine import STORAGE
from testbed.node import Node

IPMI_PORT = 623
BOARD_START = 20.0

CLOCK_STEP = 90_061.0
"""Seconds between the monotonic clocks of two nodes: more than a day, as of machines in use."""


class Testbed:
    """Nodes of one Debian *release*, fresh from the installer, all on; for use in a lab.

    With *layer* they have the packages of that one of ``bases.LAYERS`` besides.

    In a lab where one stands already (``testbed up``) it is that one, as it is.  It is taken
    down with the lab; leaving it as a context switches the nodes off if they were made here.
    """

    __test__ = False

    play_seconds = 1200.0
    """Seconds for a playbook, for which an idle machine takes less than one minute."""

    observer = ""
    """Where services show that they are active, an address; "" if their processes can be seen."""

    def __init__(self, count: int = 3, release: str = "13", layer: str = "") -> None:
        place = lab.folder()
        if place is None:
            raise RuntimeError("The testbed stands in a lab; start it there.")
        self.release = release
        self._layer = layer
        self.folder = place
        self.storage = place / "storage"
        self.nodes = {
            f"n{number}": self._make_node(place, number) for number in range(1, count + 1)
        }
        self.stood_before = self.storage.exists()
        if not self.stood_before:
            self._build()
        self.boards = {node.name: self._board(node) for node in self.nodes.values()}

    def __enter__(self) -> Testbed:
        self.up()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self.stood_before:
            for node in self.nodes.values():
                node.cut_power()

    def up(self) -> None:
        """Switch all nodes and boards on, and wait until they answer."""
        if self.stood_before:
            return
        for node in self.nodes.values():
            node.switch_on()
        for board in self.boards.values():
            board.start()
        for node in self.nodes.values():
            node.wait_booted()
        until = time.monotonic() + BOARD_START
        for board in self.boards.values():
            while not board.answers():
                if time.monotonic() > until:
                    raise TimeoutError(f"the board of {board.folder.name} does not answer")

    def storage_of_all(self, word: str) -> None:
        """Set what becomes of the storage operations of all nodes."""
        for node in self.nodes.values():
            node.storage(word)

    def kill_with_board(self, node: Node) -> None:
        """Take a node's power away together with its board's, as when a power supply fails."""
        network.unplug_board(node.number)
        node.cut_power()

    def repair_board(self, node: Node) -> None:
        """Give a board its power back."""
        network.plug_board(node.number)

    @property
    def key(self) -> str:
        """The path of the key with which ssh is let in on all nodes."""
        return str(self.folder / "key")

    def data_folder(self, _service: str) -> str:
        """Return where a service has its data: a folder on the shared storage, as nodes see it."""
        return f"{STORAGE}/test"

    def data_resources(self, _service: str) -> list[dict[str, Any]]:
        """Return the resources that a service needs before it has that folder."""
        return []

    def read_shared(self, path: str) -> str:
        """Return the content of a file on the shared storage, by its path on the nodes."""
        return (self.storage / Path(path).relative_to(STORAGE)).read_text()

    def _make_node(self, place: Path, number: int) -> Node:
        return Node(place, number)

    def _build(self) -> None:
        """Lay the cables and install the nodes."""
        self.storage.mkdir()
        network.build(len(self.nodes))
        key = self._make_key()
        names = {node.name: node.address for node in self.nodes.values()}
        root = base(self.release, self._layer)
        for node in self.nodes.values():
            node.create(root, names, key, 100.0 + CLOCK_STEP * (node.number - 1))

    def _make_key(self) -> str:
        words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "testbed", "-f", self.key]
        subprocess.run(words, check=True)
        return Path(f"{self.key}.pub").read_text()

    def _board(self, node: Node) -> ManagementBoard:
        return ManagementBoard(
            self.folder / "boards" / node.name,
            node.number,
            network.board_address(node.number),
            IPMI_PORT,
            (sys.executable, "-m", "testbed.power", str(node.number)),
        )
