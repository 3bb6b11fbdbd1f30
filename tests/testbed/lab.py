# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab: namespaces for a testbed, isolated from the machine.

Processes, mounts and networks of a lab end with its first process.  A janitor process, in a session
of its own, removes the control groups and the folder, also if the process that started the lab is
killed.  If the janitor is killed too, the next lab cleans up.
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
"""Environment variable with the lab's folder, for all processes in the lab."""

PREFIX = "holdfast-lab-"
PLACE = Path("/var/tmp")
TESTS = Path(__file__).resolve().parent.parent
CGROUP = Path("/sys/fs/cgroup")
"""Control groups; in a lab only those of the lab."""

NAMESPACES = ("--mount", "--net", "--pid", "--cgroup", "--ipc", "--uts")
PR_SET_PDEATHSIG = 1
CLEANING = 20.0
"""Seconds in which a lab has to end."""

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
"""The programs that a lab needs, and Debian's package of each."""


def missing() -> str:
    """Return why this machine cannot run a lab, "" if it can."""
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
    """Return the folder of the lab of this process, None outside of a lab."""
    place = os.environ.get(FOLDER)
    return Path(place) if place else None


def run(command: Sequence[str]) -> int:
    """Run *command* in a new lab, remove the lab, and return the exit status of the command."""
    sweep()
    closed, ours = os.pipe()
    janitor = os.fork()
    if janitor == 0:
        os.close(ours)
        os.setsid()
        os._exit(_keep(command, closed))
    os.close(closed)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, lambda *_arguments: os.close(ours))
    # The janitor notices the end of this process by the end of the pipe.
    return os.waitstatus_to_exitcode(os.waitpid(janitor, 0)[1])


def sweep() -> None:
    """Remove labs whose janitor was killed."""
    for old in PLACE.glob(f"{PREFIX}*"):
        try:
            with (old / "lock").open() as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _take_away(old)
        except OSError:
            # Its janitor is alive, or it is gone.
            continue


def _keep(command: Sequence[str], closed: int) -> int:
    """Be the janitor: run the lab until it ends or the pipe *closed* does, then clean up."""
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
        # The simulated hardware imports this package, too.
        env={**os.environ, "PYTHONPATH": str(TESTS), FOLDER: str(place)},
        preexec_fn=lambda: _enter(group),
    )
    ended = os.pidfd_open(lab.pid)
    select.select((closed, ended), [], [])
    _take_away(place)
    return lab.wait(CLEANING)


def _enter(group: Path) -> None:
    """Enter the lab's control group; die with the janitor."""
    (group / "cgroup.procs").write_text(str(os.getpid()))
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _take_away(place: Path) -> None:
    """Kill all processes of a lab, and remove its control groups and its folder."""
    group = _outer_group(place)
    until = time.monotonic() + CLEANING
    while group.exists() and time.monotonic() < until:
        (group / "cgroup.kill").write_text("1")
        remove_group(group)
        time.sleep(0.02)
    shutil.rmtree(place, ignore_errors=True)


def remove_group(group: Path) -> None:
    """Remove a control group and those below it, unless they have a process."""
    for path, _folders, _files in os.walk(group, topdown=False):
        try:
            Path(path).rmdir()
        except OSError:
            continue


def _outer_group(place: Path) -> Path:
    """Return the lab's control group outside of the lab, in either layout of cgroups."""
    unified = CGROUP / "unified"
    return (unified if unified.is_dir() else CGROUP) / place.name
