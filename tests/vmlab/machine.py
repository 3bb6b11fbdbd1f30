# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine while it has power: a kernel in user mode, restarted when the system reboots.

Called with the machine's number, in a control group of its own.  Killing the group cuts the power.
A kernel that panics leaves the machine on and silent.
"""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

from testbed import power
from testbed.lab import CGROUP
from vmlab import network
from vmlab.powered import count_boot, powered

MEMORY = "512M"
GOODBYES = ("lab: poweroff", "lab: halt")
"""Printed by the system when it shuts down for good."""

RESET = "softdog: Initiating system reboot"
"""Printed last by a kernel whose watchdog resets the machine.  A kernel in user mode that has I/O
errors may abort in its reset, unlike a real machine."""

PANICKED = "panicked, and stays on"
"""Printed last by this program when a kernel has panicked."""


def main() -> None:
    with powered() as (here, number):
        while True:
            status, output = _boot(here, number)
            print(f"machine {here.name}: the kernel ended with {status}", flush=True)
            if any(goodbye in output for goodbye in GOODBYES):
                break
            if not reboots(status, output):
                # A panic does not switch a machine off.
                print(f"machine {here.name}: {PANICKED}", flush=True)
                signal.pause()


def reboots(status: int, output: str) -> bool:
    """Return whether a kernel with this exit status and last output was reset or rebooted."""
    return status == 0 or output.rstrip().endswith(RESET)


def _boot(here: Path, number: int) -> tuple[int, str]:
    """Run the kernel until it ends; return its exit status and its last 2,000 characters of output.

    A kernel that aborts leaves its I/O process behind.  Late writes of that process would damage
    the disk of the next kernel, so it is killed.
    """
    group = CGROUP / here.name / "kernel"
    group.mkdir(exist_ok=True)
    count_boot(here)
    console = here / "console"
    with console.open("ab") as output:
        status = subprocess.run(
            [*power.in_group(group), *_kernel(here, number)],
            env={**os.environ, "TMPDIR": str(here / "memory")},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            check=False,
        ).returncode
    power.empty(group)
    return status, console.read_text(errors="replace")[-2000:]


def _kernel(here: Path, number: int) -> list[str]:
    """Return the command line of the kernel: its disks, its network cards and its console."""
    cards = [
        f"vec{index}:transport=tap,ifname={network.cable(number, index)},depth=64,gro=1,"
        f"mac=52:54:00:77:{index:02x}:{number:02x}"
        for index in network.NETWORKS
    ]
    disks = [f"ubd{2 + index}={disk}" for index, disk in enumerate(sorted(here.glob("lun-*")))]
    return [
        *(str(here / "image/linux"), f"umid={here.name}", f"uml_dir={here / 'uml'}/"),
        *(f"mem={MEMORY}", f"ubd0={here / 'disk.cow'},{here / 'image/disk.img'}"),
        *(f"ubd1={here / 'seed.tar'}", *disks, *cards, "root=/dev/ubda", "rw", "noreboot"),
        *("panic=0", "con=null", "con0=null,fd:1", "quiet", "systemd.show_status=0"),
    ]


if __name__ == "__main__":
    main()
