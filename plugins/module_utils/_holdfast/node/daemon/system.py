# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an LRM asks the system that it runs on.

Whether the node is a virtual machine (systemd-detect-virt), how many CPUs and how much memory it
has, and whether an LRM that is told to end is only restarted or its node goes down.  SIGTERM does
not say that.  On a real node systemd does: the target of a shutdown is in its list of jobs
(systemctl.1, list-jobs; systemd.special.7).  A machine of an embedded cluster leaves word in its
folder.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

from ...cluster.model.report import POWEROFF, REBOOT, RESTART
from ...errors import AgentError, HoldfastError
from ...process.run import Outcome, run
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

    Returns "" where systemd does not answer, to be asked again; after *tried* reached ``TRIES``
    ``restart``, so the services are left running for the next LRM.
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
    """Leave word for the LRM of the machine in *folder* why it is to end; "" removes it."""
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


DETECTION_DEADLINE = 5.0
"""Seconds; it takes milliseconds."""

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")


def detect(deadline: float = DETECTION_DEADLINE) -> Outcome:
    """Run systemd-detect-virt; raises ``AgentError`` where it is not installed."""
    return run(["systemd-detect-virt", "--vm"], deadline=deadline)


def virtual_machine(
    configuration: NodeConfiguration, ask: Callable[[], Outcome] = detect
) -> str | None:
    """Return the kind of virtual machine that the node is, "" if none, None if that is not known.

    A container does not count: the answer is that of the computer that it runs on.  A machine of
    a cluster on one computer is a group of processes.
    """
    if configuration.is_machine:
        return ""
    try:
        outcome = ask()
    except HoldfastError:
        return None
    name = outcome.stdout.strip()
    if outcome.timed_out or not _NAME.fullmatch(name):
        return None
    # The exit status is 1 for "none" and for errors alike (systemd-detect-virt.1).
    if name == "none":
        return ""
    return name if outcome.exit_status == 0 else None


MEMORY = Path("/proc/meminfo")
_TOTAL = re.compile(r"^MemTotal:\s+(\d+) kB$", re.MULTILINE)


def node_room(memory: Path = MEMORY) -> tuple[float, float] | None:
    """Return the number of CPUs and the MiB of memory (proc.5, meminfo); None if not known."""
    cpus = os.cpu_count()
    try:
        total = _TOTAL.search(memory.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
    if total is None or not cpus:
        return None
    return float(cpus), float(int(total[1]) // 1024)
