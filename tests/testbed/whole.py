# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole testbed: nodes, networks, shared storage and management boards in a lab."""

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
    """Nodes of one Debian *release*, freshly installed, all on; for use in a lab.

    *layer* adds the packages of an entry of ``bases.LAYERS``.

    In a lab that has a testbed already (``testbed up``) that one is *reused* as it is.  A testbed
    ends with its lab.  The exit of the context switches the nodes off, unless it was reused.
    """

    __test__ = False

    play_seconds = 1200.0
    """Seconds for a playbook; on an idle machine it takes less than a minute."""

    observer = ""
    """Address to which services send that they are active; "" if their processes are visible."""

    def __init__(self, count: int = 3, release: str = "13", layer: str = "") -> None:
        place = lab.folder()
        if place is None:
            raise RuntimeError("A testbed needs a lab; start it with: testbed run")
        self.release = release
        self._layer = layer
        self.folder = place
        self.storage = place / "storage"
        self.nodes = {
            f"n{number}": self._make_node(place, number) for number in range(1, count + 1)
        }
        self.reused = self.storage.exists()
        if not self.reused:
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
        if not self.reused:
            for node in self.nodes.values():
                node.cut_power()

    def up(self) -> None:
        """Switch all nodes and boards on, and wait until they answer."""
        if self.reused:
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
        """Set how the storage of all nodes behaves."""
        for node in self.nodes.values():
            node.storage(word)

    def kill_with_board(self, node: Node) -> None:
        """Cut the power of a node and of its board, as a failed power supply does."""
        network.unplug_board(node.number)
        node.cut_power()

    def repair_board(self, node: Node) -> None:
        """Switch a board on again."""
        network.plug_board(node.number)

    @property
    def key(self) -> str:
        """The path of the ssh key that all nodes accept."""
        return str(self.folder / "key")

    def data_folder(self, _service: str) -> str:
        """Return the folder of a service's ledger on the nodes."""
        return f"{STORAGE}/test"

    def data_resources(self, _service: str) -> list[dict[str, Any]]:
        """Return the resources that provide this folder."""
        return []

    def read_shared(self, path: str) -> str:
        """Return the content of a file on the shared storage, by its path on the nodes."""
        return (self.storage / Path(path).relative_to(STORAGE)).read_text()

    def _make_node(self, place: Path, number: int) -> Node:
        return Node(place, number)

    def _build(self) -> None:
        """Create the networks and install the nodes."""
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
