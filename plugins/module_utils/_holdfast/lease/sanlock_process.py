# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A sanlock daemon of our own: by an ordinary user, in its own run directory, without a watchdog.

A node has the distribution's daemon, started by systemd.  One of these stands in for
a dead node (``sanlock_stand_in``), or is a machine's of a cluster on one computer.

The other way to set a dead node's host lease free: join in its place, and leave.

For storage on which our own write is not wanted: only sanlock writes here.  A second
daemon, with a run directory of its own and without a watchdog, takes the dead node's
name, so that it is let in at once, and gives the lease back.  That takes about three
I/O timeouts, in which the dead node seems alive to all others; so it is not the first
choice, see ``SanlockLeases.free_host``.
"""

from __future__ import annotations

import grp
import os
import pwd
import subprocess
import tempfile
import time

from ..errors import LeaseError
from ..storage.lockspace.delta_lease import LeaseArea
from ..storage.lockspace.host_timing import LeaseTiming
from .host_watch import refuse_to_free
from .sanlock_command import CommandDaemon, sanlock_program
from .sanlock_daemon import ANSWER, Lockspace

START = 10.0
"""Seconds for the daemon to answer; it takes about 50 ms."""

ENDING = 5.0


def start_daemon(run_directory: str, host_name: str) -> subprocess.Popen[bytes]:
    """Start a daemon as the user that we are; ``LeaseError`` if there is no such program."""
    user = pwd.getpwuid(os.geteuid()).pw_name
    group = grp.getgrgid(os.getegid()).gr_name
    environment = {
        **os.environ,
        "SANLOCK_RUN_DIR": run_directory,
        "SANLOCK_PRIVILEGED": "0",
    }
    arguments = [sanlock_program(), "daemon", "-D", "-w", "0", "-U", user, "-G", group]
    try:
        return subprocess.Popen(  # pylint: disable=ansible-bad-function
            [*arguments, "-e", host_name],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment,
            cwd="/",
        )
    except OSError as error:
        raise LeaseError(f"a sanlock of our own cannot be started: {error.strerror}.") from error


def await_daemon(run_directory: str) -> CommandDaemon:
    """Return the daemon once it answers; ``LeaseError`` if it does not in time."""
    daemon = CommandDaemon(run_directory)
    until = time.monotonic() + START
    while True:
        try:
            daemon.status()
            return daemon
        except LeaseError:
            if time.monotonic() >= until:
                raise
        time.sleep(0.05)


def end_daemon(child: subprocess.Popen[bytes]) -> None:
    """End a daemon that has no lockspace, the hard way if it has to be."""
    for end in (child.terminate, child.kill):
        end()
        try:
            child.wait(ENDING)
            return
        except subprocess.TimeoutExpired:
            continue


LEAVE_WAIT = 30.0


def free_host_by_joining(
    lockspace_path: str, host_id: int, generation: int, timestamp: int | None
) -> None:
    """Set the host lease of a node free that a fence device has verified to be off.

    The conditions are those of ``SanlockLeases.free_host``: nothing weaker than a
    verified off will do, and *generation* and *timestamp* are those of the lease when
    the fence began.  Raises ``LeaseError`` when they are others by now, and when
    sanlock does not do it; the lease then runs out by itself.
    """
    path = os.path.realpath(lockspace_path)
    with LeaseArea(path) as area:
        present = area.read_host(host_id)
        refuse_to_free(present, host_id, generation, timestamp)
        if present.free:
            return
        with tempfile.TemporaryDirectory(prefix="holdfast-") as run_directory:
            child = start_daemon(run_directory, present.host_name)
            try:
                daemon = await_daemon(run_directory)
                refuse_to_free(area.read_host(host_id), host_id, generation, timestamp)
                timing = LeaseTiming(present.io_timeout)
                space = Lockspace(present.lockspace, host_id, path)
                longest = timing.longest_join_seconds + ANSWER
                daemon.add_lockspace(space, timing.io_timeout, longest)
                daemon.remove_lockspace(space, LEAVE_WAIT)
            finally:
                end_daemon(child)
        if not area.read_host(host_id).free:
            raise LeaseError(f"host id {host_id} was joined and left, but is not free after that.")
