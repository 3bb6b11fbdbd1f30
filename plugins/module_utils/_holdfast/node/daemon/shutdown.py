# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why an LRM that is told to end is told so: it alone is to be started anew, or its node goes down.

SIGTERM says nothing of that.  On a real node systemd knows: while it shuts down, the
target that it is on its way to stands in its list of jobs (systemctl.1, list-jobs;
systemd.special.7).  A machine of an embedded cluster leaves word in its folder.
"""

from __future__ import annotations

from pathlib import Path

from ...cluster.model.report import POWEROFF, REBOOT, RESTART
from ...errors import AgentError
from ...process.run import run
from ..configuration import NodeConfiguration

MARKER = "ending"
"""The file in a machine's folder that says why it goes down; there is none while it does not."""

DEADLINE = 1.5
"""Seconds for systemd to answer: less than a heartbeat may be late."""

TRIES = 3

_TARGETS = {
    "reboot.target": REBOOT,
    "kexec.target": REBOOT,
    "soft-reboot.target": REBOOT,
    "poweroff.target": POWEROFF,
    "halt.target": POWEROFF,
    "shutdown.target": POWEROFF,
}


def why_ending(configuration: NodeConfiguration, tried: int = TRIES) -> str:
    """Return ``reboot`` or ``poweroff`` if the node goes down, else ``restart``.

    Where systemd does not answer it is empty, to be asked again, until that was *tried*
    ``TRIES`` times: then the services are left running for the next LRM.
    """
    if configuration.is_machine:
        return _left_word(configuration.folder / MARKER)
    try:
        asked = run(
            ["systemctl", "list-jobs", "--no-legend", "--no-pager"],
            deadline=DEADLINE,
            environment={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
        )
    except AgentError:
        return RESTART
    if asked.exit_status == 0:
        return from_jobs(asked.stdout)
    return RESTART if tried >= TRIES else ""


def from_jobs(listed: str) -> str:
    """Return what the jobs that systemd has *listed* say: number, unit, kind and state a line."""
    rows = [line.split() for line in listed.splitlines()]
    starting = {row[1] for row in rows if len(row) >= 3 and row[2] == "start"}
    return next((why for target, why in _TARGETS.items() if target in starting), RESTART)


def leave_word(folder: Path, why: str) -> None:
    """Let the LRM of the machine in *folder* find why it is to end; "" takes that back."""
    marker = folder / MARKER
    if why:
        marker.write_text(f"{why}\n", encoding="ascii")
    else:
        marker.unlink(missing_ok=True)


def _left_word(marker: Path) -> str:
    try:
        word = marker.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return RESTART
    return word if word in (REBOOT, POWEROFF) else RESTART
