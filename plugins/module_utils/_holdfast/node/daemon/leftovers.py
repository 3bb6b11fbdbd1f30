# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Agents that outlived the LRM which called them.

A resource agent has a session of its own, so it goes on when its LRM is killed.  A
start that is half done may then finish after the next LRM has found the service
stopped, and after the manager has started it elsewhere.  So the next LRM ends its
predecessor's agents before it probes anything, with all that came of their calls: what
``su`` runs for an agent has a session of its own, and may start the service yet.  What an
agent left behind when it ended is not touched.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from ...errors import StorageError
from ...process.family import MARK as RUN
from ...process.family import Family, carried, carries, process_table
from ..configuration import NodeConfiguration

CALLER = "HOLDFAST_CALLER"
"""Environment variable that names the node folder for which an agent was called."""

DEADLINE = 10.0


def end_leftover_agents(configuration: NodeConfiguration) -> int:
    """Kill every agent that still runs for this node; return how many there were.

    Raises ``StorageError`` when one will not die within ``DEADLINE`` seconds: then
    nothing on this node can be said to be stopped.
    """
    mark = os.fsencode(f"{CALLER}={configuration.folder.resolve()}")
    until = time.monotonic() + DEADLINE
    ended: set[int] = set()
    while True:
        agents = {
            pid: entry.start
            for pid, entry in process_table().items()
            if _is_agent(pid, mark, configuration)
        }
        if not agents:
            return len(ended)
        if time.monotonic() > until:
            raise StorageError(
                f"An agent of the LRM before this one does not end (process {min(agents)}); what it"
                " does to its service is not known, so restart the node."
            )
        for pid, start in agents.items():
            call = os.fsdecode(carried(pid, RUN))
            # Without one it ended by itself meanwhile: what it left behind is a service.
            if call:
                ended.add(pid)
                Family(pid, call, start).end(until, time.monotonic)
        time.sleep(0.02)


def _is_agent(pid: int, mark: bytes, configuration: NodeConfiguration) -> bool:
    """Return whether a process is an agent at work: called by us, and still the agent itself.

    What an agent started inherits the mark too, but not the agent's command line.
    """
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:-1]
        if len(words) < 2 or not _is_agent_file(os.fsdecode(words[-2]), configuration):
            return False
    except OSError:
        return False
    return carries(pid, mark)


def _is_agent_file(path: str, configuration: NodeConfiguration) -> bool:
    folders = (f"{directory}/resource.d/" for directory in configuration.agent_directories)
    return path.startswith(tuple(folders))
