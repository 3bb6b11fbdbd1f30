# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine while it has power: its disk, its watchdog, its path to the storage, and its system.

Called with a node's number and the monotonic time at which its clock starts, in the control group
of the node (see ``power.py``).  All processes stay in that group, so killing the group cuts the
power.  When the system reboots, the machine restarts with a disarmed watchdog, as hardware does.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import time
from pathlib import Path

from testbed import network
from testbed.lab import CGROUP, folder

HARDWARE = Path(__file__).resolve().parent.parent / "hardware"
CLONE_NEWNS = 0x00020000
REBOOT = 133
"""Exit status of systemd-nspawn --keep-unit when its system reboots."""

STORAGE = "/srv/holdfast"
"""Mount point of the shared storage on each node."""

DEVICE_WAIT = 10.0


def main() -> int:
    number, clock_start = int(sys.argv[1]), float(sys.argv[2])
    lab = folder()
    if lab is None:
        raise SystemExit("A machine runs only in a lab.")
    name = f"n{number}"
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNS):
        raise SystemExit(os.strerror(ctypes.get_errno()))
    here = lab / name
    network.switch_on(number)
    _mount_disk(here)
    children = [_start_watchdog(here, number), _start_storage(here, lab)]
    status = subprocess.run(_boot(here, name, clock_start), check=False).returncode
    sys.stdout.write(f"machine {name}: the system ended with {status}\n")
    sys.stdout.flush()
    if status == REBOOT:
        for child in children:
            child.kill()
            child.wait()
        for place in ("watchdog", "storage", "root", "disk"):
            subprocess.run(["umount", "-l", str(here / place)], check=False)
        os.execv(sys.executable, [sys.executable, "-m", "testbed.machine", *sys.argv[1:]])
    # Switch the machine off: kill all its processes, this one included.
    (CGROUP / name / "cgroup.kill").write_text("1")
    return 1


def _mount_disk(here: Path) -> None:
    """Mount the disk, and its files as a layer on the base."""
    image = here / "disk.img"
    _wait_until_free(image)
    _run("mount", "-o", "loop", image, here / "disk")
    parts = (
        f"lowerdir={':'.join(str(one) for one in sorted(here.glob('base-*')))}",
        f"upperdir={here}/disk/upper",
        f"workdir={here}/disk/work",
    )
    _run("mount", "-t", "overlay", "-o", ",".join(parts), here.name, here / "root")


def _wait_until_free(image: Path) -> None:
    """Wait until the kernel has released a disk after a power cut: mounted twice it breaks."""
    until = time.monotonic() + DEVICE_WAIT
    while subprocess.run(["losetup", "-j", image], capture_output=True, check=True).stdout:
        if time.monotonic() > until:
            raise SystemExit(f"{image} is still mounted.")
        time.sleep(0.02)


def _start_watchdog(here: Path, number: int) -> subprocess.Popen[bytes]:
    place = here / "watchdog"
    # In the lab's mount namespace, as the one of this machine ends with the machine.
    outside = ("nsenter", "--mount=/proc/1/ns/mnt", "--")
    fired = (*outside, sys.executable, "-m", "testbed.power", "reset", str(number))
    script = HARDWARE / "watchdog.py"
    child = _start(here, script, place, here / "watchdog.log", *fired)
    _wait_for_mount(place)
    return child


def _start_storage(here: Path, lab: Path) -> subprocess.Popen[bytes]:
    place = here / "storage"
    child = _start(here, HARDWARE / "storage_path.py", place, lab / "storage", here / "path")
    _wait_for_mount(place)
    return child


def _start(here: Path, *words: object) -> subprocess.Popen[bytes]:
    with (here / "hardware.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, *(str(word) for word in words)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )


def _wait_for_mount(place: Path) -> None:
    until = time.monotonic() + DEVICE_WAIT
    while f" {place} " not in Path("/proc/self/mountinfo").read_text():
        if time.monotonic() > until:
            raise SystemExit(f"{place} was not mounted.")
        time.sleep(0.01)


def _boot(here: Path, name: str, clock_start: float) -> list[str]:
    """Return how the system is started: with a clock of its own, and the hardware in its place."""
    offset = int(clock_start - time.monotonic())
    return [
        *("unshare", "--time", f"--monotonic={offset}", f"--boottime={offset}"),
        *("systemd-nspawn", "-q", f"--directory={here / 'root'}", "--boot"),
        *(f"--machine={name}", f"--hostname={name}", "--register=no", "--keep-unit"),
        *(f"--network-namespace-path=/run/netns/{name}", "--resolv-conf=off", "--timezone=off"),
        *("--link-journal=no", "--console=read-only", "--kill-signal=SIGRTMIN+3"),
        *("--capability=CAP_IPC_LOCK,CAP_NET_ADMIN", f"--bind={here / 'watchdog'}:/dev/watchdog"),
        f"--bind={here / 'storage'}:{STORAGE}",
    ]


def _run(*words: object) -> None:
    subprocess.run([str(word) for word in words], check=True)


if __name__ == "__main__":
    raise SystemExit(main())
