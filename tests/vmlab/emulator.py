# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""One emulated machine while it has power: Debian's kernel, a hardware watchdog, a crash kernel.

Called with the machine's number, like ``vmlab.machine``.  Its processor is emulated by QEMU, so it
needs no KVM.  It stays on through a reset, by its watchdog or by its kernel, and goes off when it
is shut down.
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
"""What is kept free for the kernel that writes a dump."""

FIRED = "hardware watchdog: resets the machine"
"""What this program prints when the watchdog resets the machine."""


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
                # The firmware itself may reset the machine several times before the kernel starts.
                count_boot(here)
        print(f"machine {here.name}: the emulator ended with {emulator.wait()}", flush=True)


def _events(talk: socket.socket) -> Iterator[str]:
    """Give what QEMU tells of the machine, until it ends (QEMU Machine Protocol)."""
    talk.sendall(b'{"execute": "qmp_capabilities"}\n')
    with talk.makefile("r") as lines:
        for line in lines:
            yield json.loads(line).get("event", "")


def _emulator(here: Path, number: int, talk: int) -> list[str]:
    """Return the command line: the machine's disks, network cards, watchdog and console.

    *talk* is the file descriptor of the socket on which it tells what becomes of the machine.
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
        *("-serial", "chardev:console", "-chardev", f"socket,id=events,fd={talk}"),
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
