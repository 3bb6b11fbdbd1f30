# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The room in which the testbed stands: namespaces of its own, from which nothing gets out.

Processes, mounts and networks of a lab end with its first process, by the kernel.  Its
control groups and its folder are taken away by a janitor that has a session of its own,
so that they go too when whoever started the lab is killed, however that is done.  If even
the janitor is killed, the next lab does its work.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

FOLDER = "HOLDFAST_LAB"
"""Environment variable that names the lab's folder, for all that runs in it."""

PREFIX = "holdfast-lab-"
PLACE = Path("/var/tmp")
TESTS = Path(__file__).resolve().parent.parent
CGROUP = Path("/sys/fs/cgroup")
"""Where control groups are in a lab: those of the lab alone."""

NAMESPACES = ("--mount", "--net", "--pid", "--cgroup", "--ipc", "--uts")
PR_SET_PDEATHSIG = 1
CLEANING = 20.0
"""Seconds for a lab to end once it is told to."""

TOOLS = {
    "systemd-nspawn": "systemd-container",
    "debootstrap": "debootstrap",
    "nft": "nftables",
    "mkfs.ext4": "e2fsprogs",
    "losetup": "mount",
    "ip": "iproute2",
    "ssh": "openssh-client",
    "ipmi_sim": "openipmi",
}
"""What a lab is made with, and Debian's package of each."""


def missing() -> str:
    """Return why there can be no lab here, "" if there can."""
    if os.geteuid() != 0:
        return "the testbed needs root"
    for tool, package in TOOLS.items():
        if shutil.which(tool) is None:
            return f"{tool} of the package {package} is not installed"
    for device in ("/dev/fuse", "/dev/loop-control"):
        if not Path(device).exists():
            return f"there is no {device} here"
    return ""


def folder() -> Path | None:
    """Return the folder of the lab in which this process runs, None outside of any."""
    place = os.environ.get(FOLDER)
    return Path(place) if place else None


def run(command: Sequence[str]) -> int:
    """Run *command* in a new lab and return its exit status; nothing of the lab is left then."""
    sweep()
    told, ours = os.pipe()
    janitor = os.fork()
    if janitor == 0:
        os.close(ours)
        os.setsid()
        os._exit(_keep(command, told))
    os.close(told)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, lambda *_arguments: os.close(ours))
    # Whatever becomes of this process, the pipe's end tells the janitor.
    return os.waitstatus_to_exitcode(os.waitpid(janitor, 0)[1])


def sweep() -> None:
    """Take away what is left of labs whose janitor was killed."""
    for old in PLACE.glob(f"{PREFIX}*"):
        try:
            with (old / "lock").open() as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _take_away(old)
        except OSError:
            # Its janitor is at work, or it is gone by now.
            continue


def _keep(command: Sequence[str], told: int) -> int:
    """Be the janitor: run the lab until it ends or *told* does, then clean up."""
    place = Path(tempfile.mkdtemp(prefix=PREFIX, dir=PLACE))
    place.chmod(0o755)
    (place / "lock").touch()
    lock = (place / "lock").open()
    fcntl.flock(lock, fcntl.LOCK_EX)
    group = _outer_group(place)
    group.mkdir()
    first = [sys.executable, "-m", "testbed.inside", str(place), *command]
    lab = subprocess.Popen(
        ["unshare", *NAMESPACES, "--fork", "--kill-child", *first],
        # What stands for hardware loads this package, too.
        env={**os.environ, "PYTHONPATH": str(TESTS), FOLDER: str(place)},
        preexec_fn=lambda: _enter(group),
    )
    ended = os.pidfd_open(lab.pid)
    select.select((told, ended), [], [])
    _take_away(place)
    return lab.wait(CLEANING)


def _enter(group: Path) -> None:
    """Go into the lab's control group; die with the janitor."""
    (group / "cgroup.procs").write_text(str(os.getpid()))
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _take_away(place: Path) -> None:
    """Kill all that is in a lab, and remove its control groups and its folder."""
    group = _outer_group(place)
    until = time.monotonic() + CLEANING
    while group.exists() and time.monotonic() < until:
        (group / "cgroup.kill").write_text("1")
        remove_group(group)
        time.sleep(0.02)
    shutil.rmtree(place, ignore_errors=True)


def remove_group(group: Path) -> None:
    """Remove a control group and those below it, as far as no process is in them."""
    for path, _folders, _files in os.walk(group, topdown=False):
        try:
            Path(path).rmdir()
        except OSError:
            continue


def _outer_group(place: Path) -> Path:
    """Return the lab's control group as the machine sees it, in either layout."""
    unified = CGROUP / "unified"
    return (unified if unified.is_dir() else CGROUP) / place.name
