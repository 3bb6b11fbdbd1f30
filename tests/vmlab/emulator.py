# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An emulated machine while it has power: Debian's kernel, a hardware watchdog, a crash kernel.

Called with the machine's number, like ``vmlab.machine``.  QEMU emulates the processor, so it needs
no KVM.  The machine stays on when its watchdog or its kernel resets it, and goes off when the
system shuts down.
"""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

from vmlab import network
from vmlab.powered import count_boot, powered

MEMORY = "1G"
CRASH_MEMORY = "256M"
"""Memory reserved for the crash kernel."""

FIRED = "hardware watchdog: resets the machine"
"""Printed by this program when the watchdog resets the machine."""


def main() -> None:
    with powered() as (here, number):
        count_boot(here)
        ours, its = socket.socketpair()
        words = _emulator(here, number, its.fileno())
        emulator = subprocess.Popen(words, stdin=subprocess.DEVNULL, pass_fds=(its.fileno(),))
        its.close()
        for event in _events(ours):
            if event == "WATCHDOG":
                print(FIRED, flush=True)
            elif event == "RESET":
                # An upper bound: the firmware may reset the machine before it starts the kernel.
                count_boot(here)
        print(f"machine {here.name}: the emulator ended with {emulator.wait()}", flush=True)


def _events(monitor: socket.socket) -> Iterator[str]:
    """Yield the names of QEMU's events until QEMU ends (QEMU Machine Protocol)."""
    monitor.sendall(b'{"execute": "qmp_capabilities"}\n')
    with monitor.makefile("r") as lines:
        for line in lines:
            yield json.loads(line).get("event", "")


def _emulator(here: Path, number: int, monitor: int) -> list[str]:
    """Return QEMU's command line: disks, network cards, watchdog and console of the machine.

    *monitor* is the file descriptor of the socket for QEMU's events.
    """
    cards = [
        word
        for place in network.NETWORKS
        for word in (
            "-netdev",
            f"tap,id=net{place},ifname={network.cable(number, place)},script=no,downscript=no",
            "-device",
            f"virtio-net-pci,netdev=net{place},mac=52:54:00:77:{place:02x}:{number:02x}",
        )
    ]
    settings = (
        *("root=/dev/vda", "rw", "net.ifnames=0", "console=ttyS0", "quiet", "panic=0"),
        *("mitigations=off", "tsc=reliable", "no_timer_check", "systemd.show_status=0"),
        f"crashkernel={CRASH_MEMORY}",
    )
    return [
        *("qemu-system-x86_64", "-accel", "tcg,tb-size=128", "-machine", "pc"),
        *("-cpu", "qemu64,-svm", "-nodefaults", "-display", "none", "-smp", "1", "-m", MEMORY),
        *("-chardev", f"file,id=console,path={here / 'console'},append=on"),
        *("-serial", "chardev:console", "-chardev", f"socket,id=events,fd={monitor}"),
        *("-mon", "chardev=events,mode=control"),
        *("-kernel", str(here / "image/linux"), "-initrd", str(here / "image/initrd")),
        *("-append", " ".join(settings)),
        *("-drive", f"file={here / 'disk.img'},format=raw,if=virtio"),
        *("-drive", f"file={here / 'seed.tar'},format=raw,if=virtio,readonly=on"),
        *cards,
        *("-device", "virtio-rng-pci", "-device", "i6300esb", "-action", "watchdog=reset"),
    ]


if __name__ == "__main__":
    main()
