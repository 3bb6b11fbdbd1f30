# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole lab: nodes and a storage machine with kernels of their own, boards, networks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from testbed import network as testbed_network
from testbed.node import Node
from testbed.whole import Testbed
from vmlab import network, storage
from vmlab.images import RELEASE
from vmlab.node import Machine
from vmlab.storage import Backend


class MachineLab(Testbed):
    """Machines with kernels of their own and their boards, all on; for use in a lab."""

    nodes: dict[str, Machine]
    play_seconds = 1800.0
    observer = testbed_network.address(testbed_network.CLUSTER, 0)

    def __init__(self, count: int) -> None:
        super().__init__(count, RELEASE)

    @property
    def machines(self) -> list[Machine]:
        """All machines of the lab."""
        return list(self.nodes.values())

    def _make_node(self, place: Path, number: int) -> Node:
        return Machine(place, number)

    def _build(self) -> None:
        """Create the networks and install the machines."""
        self.storage.mkdir()
        network.build(machine.number for machine in self.machines)
        key = self._make_key()
        for machine in self.machines:
            machine.install({**self._files(machine), "root/.ssh/authorized_keys": key})

    def _files(self, machine: Machine) -> dict[str, str]:
        """Return the files of one machine: names and addresses."""
        addresses = {
            place: testbed_network.address(place, machine.number) for place in network.NETWORKS
        }
        return {
            "etc/hostname": f"{machine.name}\n",
            "etc/hosts": f"127.0.0.1 localhost\n{self._hosts()}",
            "etc/lab-addresses": "".join(f"{i} {one}/24\n" for i, one in addresses.items()),
        }

    def _hosts(self) -> str:
        """Return the lines with the names of all machines in all networks."""
        return "".join(
            f"{testbed_network.address(place, one.number)} {one.name}{f'-{place}' * (place > 0)}\n"
            for one in self.machines
            for place in network.NETWORKS
        )


class VmLab(MachineLab):
    """Nodes and a storage machine, freshly installed, all on; for use in a lab."""

    def __init__(self, backend: Backend, count: int = 3) -> None:
        self.backend = backend
        super().__init__(count)

    @property
    def storage_machine(self) -> Machine:
        """The machine that serves the storage."""
        return Machine(self.folder, storage.NUMBER)

    def up(self) -> None:
        """Switch all machines and boards on, and wait until the storage is served."""
        if self.reused:
            super().up()
            return
        self.storage_machine.switch_on()
        super().up()
        self.storage_machine.wait_booted()
        self.storage_machine.run(
            "systemctl", "enable", "-q", "--now", "lab-serve", timeout=storage.SETUP
        )

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        if not self.reused:
            self.storage_machine.cut_power()

    @property
    def machines(self) -> list[Machine]:
        """All nodes and the storage machine."""
        return [*self.nodes.values(), self.storage_machine]

    def data_folder(self, service: str) -> str:
        """Return the folder of a service's ledger, as on a node."""
        return self.backend.data(service)

    def data_resources(self, service: str) -> list[dict[str, Any]]:
        """Return the resources that provide this folder."""
        return self.backend.resources(service)

    def read_shared(self, path: str) -> str:
        """Return the content of a file on the shared storage, by its path on the nodes."""
        return self.backend.read(list(self.nodes.values()), self.storage_machine, path)

    def _build(self) -> None:
        """Create the networks and install the machines."""
        super()._build()
        for name, size in storage.LUNS.items():
            self.storage_machine.add_disk(name, size)

    def _files(self, machine: Machine) -> dict[str, str]:
        """Return the files of one machine: names and addresses."""
        own = storage.FILES if machine.number == storage.NUMBER else {}
        initiator = f"InitiatorName={storage.IQN}:{machine.name}\n"
        return {**super()._files(machine), "etc/iscsi/initiatorname.iscsi": initiator, **own}
