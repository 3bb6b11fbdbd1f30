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
import sys
from collections.abc import Iterator
from pathlib import Path

from testbed.lab import CGROUP, folder
from vmlab import network

MEMORY = "1G"
CRASH_MEMORY = "256M"
"""What is kept free for the kernel that writes a dump."""

FIRED = "hardware watchdog: resets the machine"
"""What this program prints when the watchdog resets the machine."""

PANICKED = "]---"
"""What Debian's kernel prints last when it has panicked and stands still."""


def main() -> int:
    number = int(sys.argv[1])
    lab = folder()
    if lab is None:
        raise SystemExit("A machine runs in a lab only.")
    here = lab / f"n{number}"
    print(f"machine {here.name}: on", flush=True)
    _count_boot(here)
    ours, its = socket.socketpair()
    words = _emulator(here, number, its.fileno())
    emulator = subprocess.Popen(words, stdin=subprocess.DEVNULL, pass_fds=(its.fileno(),))
    its.close()
    for event in _events(ours):
        if event == "WATCHDOG":
            print(FIRED, flush=True)
        elif event == "RESET":
            # The firmware itself may reset the machine several times before the kernel starts.
            _count_boot(here)
    status = emulator.wait()
    print(f"machine {here.name}: the emulator ended with {status}", flush=True)
    # What is left, itself too: the machine is off.
    (CGROUP / here.name / "cgroup.kill").write_text("1")
    return 1


def _count_boot(here: Path) -> None:
    boots = here / "boots"
    new = here / "boots.new"
    new.write_text(str(int(boots.read_text()) + 1))
    new.rename(boots)


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
    raise SystemExit(main())
