# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A sanlock daemon of our own: by an ordinary user, in its own run directory, without a watchdog.

A node has the distribution's daemon, started by systemd.  One of these stands in for
a dead node (``sanlock_stand_in``), or is a machine's of a cluster on one computer.
"""

from __future__ import annotations

import grp
import os
import pwd
import subprocess
import time

from ..errors import LeaseError
from .sanlock_command import CommandDaemon, sanlock_program

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
