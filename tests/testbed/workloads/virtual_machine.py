# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A virtual machine as a service: its guest sends a counter, and a listener receives it.

The guest is one sector of machine code.  With each tick of its clock, 18 times a second, it adds
one to a number in its memory and writes the number to its serial line, which is a stream of
datagrams to the lab.  The number continues after a live migration, and starts from zero at each
boot, so it shows from outside what happened to the guest.
"""

from __future__ import annotations

import fcntl
import os
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass

from testbed import network
from testbed.background import Background
from testbed.deployment import Deployment
from testbed.machine import STORAGE
from testbed.node import Node
from testbed.whole import Testbed

NAME = "machine"
PORT = 5555
DISK = f"{STORAGE}/{NAME}.img"
DEFINITION = f"{STORAGE}/{NAME}.xml"

GUEST = bytes.fromhex(
    "fa"  # cli
    "31c0 8ed8 8ed0 bc007c fb"  # data and stack segment 0, stack below the code, sti
    "baf903 30c0 ee"  # no interrupts of the serial line at 0x3f8
    "6631db"  # ebx = 0, the number
    # again:
    "f4"  # wait for an interrupt
    "a16c04 39060006 74f6 a30006"  # unless the clock's ticks at 0x46c changed, again
    "6643"  # add one
    "b90800 6689de"  # eight digits of esi = ebx:
    "66c1c604 6689f0 240f 0430 3c3a 7202 0427"  # the highest, as 0-9 or a-f
    "e80900 e2ea"  # send it, and on to the next digit
    "b00a e80200 ebce"  # send a line feed; again
    # send al:
    "88c4 bafd03 ec a820 74fb"  # wait until the line takes a byte
    "baf803 88e0 ee c3"  # give it that byte
)
"""16-bit code that a PC's firmware loads to 0x7c00 from the first sector of its disk."""

SECTOR = GUEST.ljust(510, b"\0") + b"\x55\xaa"
DISK_SIZE = 1 << 20
"""Bytes of the disk; the firmware does not boot from a disk with a single sector."""

XML = f"""<domain type='{{accelerator}}'>
<name>{NAME}</name>
<memory unit='MiB'>32</memory><vcpu>1</vcpu>
<os><type arch='x86_64' machine='pc'>hvm</type></os>
<devices>
<emulator>/usr/bin/qemu-system-x86_64</emulator>
<disk type='file' device='disk'>
<driver name='qemu' type='raw'/><source file='{DISK}'/><target dev='vda' bus='virtio'/><readonly/>
</disk>
<serial type='udp'><source mode='connect' host='{network.address(network.CLUSTER, 0)}'
 service='{PORT}'/></serial>
</devices>
</domain>
"""

QEMU = (
    'user = "root"\ngroup = "root"\nsecurity_driver = "none"\nstdio_handler = "file"\n'
    "cgroup_controllers = [ ]\nnamespaces = [ ]\nremember_owner = 0\n"
)
LIBVIRT = 'auth_tcp = "none"\nauth_unix_rw = "none"\n'
UNITS = ("libvirtd.socket", "libvirtd-tcp.socket", "libvirtd.service")


KVM_CREATE_VM, KVM_CREATE_VCPU = 0xAE01, 0xAE41
"""Requests to KVM (Linux, Documentation/virt/kvm/api.rst)."""


def accelerator() -> str:
    """Return ``kvm`` if this machine can run a KVM guest, else ``qemu`` (emulation)."""
    descriptors = []
    try:
        descriptors.append(os.open("/dev/kvm", os.O_RDWR | os.O_CLOEXEC))
        descriptors.append(fcntl.ioctl(descriptors[-1], KVM_CREATE_VM, 0))
        descriptors.append(fcntl.ioctl(descriptors[-1], KVM_CREATE_VCPU, 0))
    except OSError:
        return "qemu"
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
    return "kvm"


def prepare(testbed: Testbed) -> None:
    """Write the machine's disk and definition, and start libvirt on all nodes."""
    node = next(iter(testbed.nodes.values()))
    (testbed.storage / f"{NAME}.img").write_bytes(SECTOR.ljust(DISK_SIZE, b"\0"))
    node.run("sh", "-c", f"cat >{DEFINITION}", text=XML.format(accelerator=accelerator()))
    for node in testbed.nodes.values():
        node.run("sh", "-c", "cat >/etc/libvirt/qemu.conf", text=QEMU)
        node.run("sh", "-c", "cat >/etc/libvirt/libvirtd.conf", text=LIBVIRT)
        node.run("systemctl", "enable", "--now", *UNITS)


def declare(deployment: Deployment) -> None:
    """Declare the service, and wait until it runs."""
    parameters = {
        "config": DEFINITION,
        "hypervisor": "qemu:///system",
        "migration_transport": "tcp",
        "force_stop": "true",
    }
    resource = {
        "name": "guest",
        "agent": "ocf:heartbeat:VirtualDomain",
        "parameters": parameters,
        "monitor_interval": 2.0,
    }
    options = {"name": NAME, "resources": [resource], "live_migration": True}
    deployment.module("service", options)
    deployment.wait_healthy()


@dataclass(frozen=True)
class Count:
    """A number from the guest: when it arrived (monotonic), and from which node."""

    at: float
    node: str
    number: int


class Listener(Background):
    """Receives the numbers of the guest from all nodes."""

    pause = 0.0

    def __init__(self, nodes: Sequence[Node]) -> None:
        super().__init__()
        self._names = {node.address: node.name for node in nodes}
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((network.address(network.CLUSTER, 0), PORT))
        self._socket.settimeout(0.2)
        self._partial: dict[tuple[str, int], bytes] = {}
        self.counts: list[Count] = []

    def __exit__(self, *error: object) -> None:
        try:
            super().__exit__(*error)
        finally:
            self._socket.close()

    def longest_silence(self) -> float:
        """Return the longest time in seconds between two numbers."""
        times = [count.at for count in self.counts]
        return max((later - at for at, later in zip(times, times[1:])), default=0.0)

    def starts(self) -> int:
        """Return how often the guest has started since the first number."""
        numbers = [count.number for count in self.counts]
        return sum(later < before for before, later in zip(numbers, numbers[1:]))

    def overlaps(self) -> list[Count]:
        """Return the numbers that only a second guest can have sent.

        They are not greater than the number before, and not the first after a start.
        """
        pairs = zip(self.counts, self.counts[1:])
        return [now for before, now in pairs if now.number <= before.number and now.number > 1]

    def step(self) -> None:
        """Receive one datagram, or none for a moment."""
        try:
            data, sender = self._socket.recvfrom(4096)
        except TimeoutError:
            return
        *lines, self._partial[sender] = (self._partial.get(sender, b"") + data).split(b"\n")
        for line in lines:
            # The first line after a migration may be incomplete.
            if len(line) == 8:
                self.counts.append(Count(time.monotonic(), self._names[sender[0]], int(line, 16)))


def guests(nodes: Sequence[Node]) -> list[str]:
    """Return the nodes with a process of the machine, also one that is only prepared."""
    return [
        node.name
        for node in nodes
        if any(f"guest={NAME}" in word for line in node.command_lines().values() for word in line)
    ]
