# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The other way to set a dead node's host lease free: join in its place, and leave.

For storage on which our own write is not wanted: only sanlock writes here.  A second
daemon, with a run directory of its own and without a watchdog, takes the dead node's
name, so that it is let in at once, and gives the lease back.  That takes about three
I/O timeouts, in which the dead node seems alive to all others; so it is not the first
choice, see ``SanlockLeases.free_host``.
"""

from __future__ import annotations

import os
import tempfile

from ..errors import LeaseError
from ..storage.lockspace.delta_lease import LeaseArea
from ..storage.lockspace.host_timing import LeaseTiming
from .free_host import refuse_to_free
from .sanlock_daemon import ANSWER, Lockspace
from .sanlock_process import await_daemon, end_daemon, start_daemon

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
