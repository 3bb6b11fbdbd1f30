# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a node still lives, told from two looks at the storage; for repairs, not for recovery.

A repair may wait: where anything speaks for the node, or cannot be read, it counts as
live.  What speaks for it is a host lease that somebody holds, a kernel lock on that
lease, and a whiteboard block that changed between the looks.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from ...errors import LeaseError, StorageError
from ..block_file import SECTOR
from ..kernel_lock import KernelLock
from ..lockspace.delta_lease import HostLeases
from ..lockspace.file import locked_host_ids, read_lockspace
from ..lockspace.host_timing import LeaseTiming
from .file import Whiteboard

MIN_WATCH = 3.0
"""Seconds in which a node of holdfast writes its block three times."""


@dataclass(frozen=True)
class Look:
    """What one look found: the board's bytes, and the lockspace beside it if there is one."""

    board: bytes
    block_bytes: int
    leases: HostLeases | None = None
    lockspace_problem: str = ""
    locked: frozenset[int] = field(default_factory=frozenset)

    def block(self, number: int) -> bytes:
        """Return the bytes of one block."""
        return self.board[number * self.block_bytes : (number + 1) * self.block_bytes]


@dataclass(frozen=True)
class Sighting:
    """Two looks and the seconds between them; with 0 seconds both are the same."""

    first: Look
    second: Look
    seconds: float = 0.0


def look(board: Whiteboard, lockspace: str) -> Look:
    """Look once at *board* and at the lockspace file at *lockspace*, which may be missing."""
    leases = None
    problem = ""
    locked: frozenset[int] = frozenset()
    if lockspace and Path(lockspace).exists():
        try:
            leases = read_lockspace(lockspace)
            locked = locked_host_ids(lockspace, leases.max_hosts)
        except StorageError as error:
            problem = str(error)
    return Look(board.read_bytes(), board.block_bytes(), leases, problem, locked)


def look_twice(
    board: Whiteboard,
    lockspace: str,
    seconds: float,
    sleep: Callable[[float], None] = time.sleep,
) -> Sighting:
    """Look, wait for *seconds* and look again; with 0 look only once."""
    first = look(board, lockspace)
    if seconds <= 0:
        return Sighting(first, first)
    sleep(seconds)
    return Sighting(first, look(board, lockspace), seconds)


def host_guard(lockspace: str) -> Callable[[int], Callable[[], None]]:
    """Return what keeps a host id from being joined on this machine, and returns its release.

    It takes the kernel lock that a node of an embedded cluster needs; nodes of other
    machines are not kept off, which is why the block is read once more as well.
    Raises ``LeaseError`` when somebody has the lock.
    """

    def take(host_id: int) -> Callable[[], None]:
        if not Path(lockspace).is_file():
            return lambda: None
        lock = KernelLock(lockspace, (host_id - 1) * SECTOR, SECTOR)
        if not lock.take():
            raise LeaseError(
                f"{lockspace}: a process on this machine just took host id {host_id}; its node"
                " lives and its block is left as it is."
            )
        return lock.release

    return take


def why_live(host_id: int, seen: Sighting) -> str:
    """Return why the node of *host_id* counts as live, as a sentence; empty when it does not."""
    if seen.first.block(host_id) != seen.second.block(host_id):
        return "its block changed while it was watched"
    if host_id in seen.second.locked:
        return "a process on this machine locks its host lease"
    if seen.second.lockspace_problem:
        return f"its host lease cannot be read: {seen.second.lockspace_problem.rstrip('.')}"
    leases = seen.second.leases
    if leases is not None:
        return _why_held(host_id, seen, leases)
    if seen.seconds < MIN_WATCH:
        return (
            "there is no lockspace to ask and it was not watched for"
            f" {MIN_WATCH:g} seconds, so it may live"
        )
    return ""


def _why_held(host_id: int, seen: Sighting, leases: HostLeases) -> str:
    """Return why the host lease says that the node lives; empty when it does not."""
    if host_id in leases.problems:
        return f"its host lease cannot be read: {leases.problems[host_id].rstrip('.')}"
    lease = leases.leases.get(host_id)
    if lease is None or lease.free:
        return ""
    before = seen.first.leases.leases.get(host_id) if seen.first.leases is not None else None
    if before != lease:
        return f"node {lease.host_name} renewed its host lease while it was watched"
    # Which watchdog timeout the node has is not to be seen from here: take the longest.
    needed = LeaseTiming(lease.io_timeout).dead_seconds
    if seen.seconds < needed:
        return (
            f"node {lease.host_name} holds its host lease; without a renewal it counts as dead"
            f" only after {needed} seconds"
        )
    return ""
