# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A lockspace and the leases beside it as plain data, for people and programs.

One read cannot tell whether a host lives: the timestamp of its lease is of its own
clock.  That shows in a second read, once it had the time to renew.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from ...errors import FormatError
from ..block_file import SECTOR, BlockFile
from ..whole_file import ClusterPaths, exists
from .delta_lease import DeltaLease, HostLeases
from .file import locked_host_ids, read_lockspace
from .host_timing import LeaseTiming
from .resource_lease import LEASE_NAMES, ResourceLease, area_offset, leases_layout, read_leader


@dataclass(frozen=True)
class LockspaceSeen:
    """Two reads of a lockspace ``seconds`` apart, the same with 0, and the leases beside it.

    ``locked`` are the host ids whose leases a process of this machine locks.
    """

    first: HostLeases
    second: HostLeases
    seconds: float = 0.0
    locked: frozenset[int] = field(default_factory=frozenset)
    leases: tuple[ResourceLease, ...] = ()
    lease_problems: tuple[str, ...] = ()


def see_lockspace(
    paths: ClusterPaths, seconds: float, sleep: Callable[[float], None] = time.sleep
) -> LockspaceSeen | None:
    """Read the lockspace of a cluster, twice with *seconds* between; None when there is none."""
    if not exists(paths.lockspace):
        return None
    first = second = read_lockspace(paths.lockspace)
    if seconds > 0:
        sleep(seconds)
        second = read_lockspace(paths.lockspace)
    leases, problems = _read_leases(paths.leases)
    locked = locked_host_ids(paths.lockspace, second.max_hosts)
    return LockspaceSeen(first, second, seconds, locked, leases, problems)


def view_lockspace(seen: LockspaceSeen) -> dict[str, object]:
    """Return what was seen as plain data.

    A host is ``live`` when its lease changed between the reads; None after one read.
    ``dead_after`` is the seconds without renewal after which it counts as dead with the
    longest watchdog timeout there is; which one it has is not on the storage.
    """
    hosts = seen.second
    return {
        "lockspace": hosts.lockspace,
        "io_timeout": hosts.io_timeout,
        "sector_size": hosts.layout.sector_size,
        "area_bytes": hosts.layout.area_bytes,
        "max_hosts": hosts.max_hosts,
        "hosts": [
            {
                "host_id": host_id,
                "host_name": lease.host_name,
                "generation": lease.generation,
                "timestamp": lease.timestamp,
                "io_timeout": lease.io_timeout,
                "held": not lease.free,
                "live": _live(host_id, seen),
                "state": _state(lease, seen),
                "locked": host_id in seen.locked,
                "dead_after": LeaseTiming(lease.io_timeout).dead_seconds,
            }
            for host_id, lease in sorted(hosts.leases.items())
        ],
        "leases": [
            {
                "name": lease.name,
                "owner_id": lease.owner_id,
                "owner_generation": lease.owner_generation,
                "version": lease.version,
                "timestamp": lease.timestamp,
                "held": not lease.free,
            }
            for lease in seen.leases
        ],
        "problems": [
            {"host_id": host_id, "problem": problem}
            for host_id, problem in sorted(hosts.problems.items())
        ]
        + [{"host_id": None, "problem": problem} for problem in seen.lease_problems],
    }


def view_nothing() -> dict[str, object]:
    """Return what ``view_lockspace`` says where there is no lockspace."""
    numbers = ("lockspace", "io_timeout", "sector_size", "area_bytes", "max_hosts")
    return {**dict.fromkeys(numbers), "hosts": [], "leases": [], "problems": []}


def _read_leases(path: str) -> tuple[tuple[ResourceLease, ...], tuple[str, ...]]:
    """Return the leases of the cluster and what is wrong with those that cannot be read."""
    if not exists(path):
        return (), (f"{path} does not exist.",)
    leases = []
    problems = []
    with BlockFile.open(path, alignment=SECTOR) as file:
        try:
            layout = leases_layout(file)
        except FormatError as error:
            return (), (str(error),)
        for index in range(len(LEASE_NAMES)):
            try:
                if area_offset(index + 1, layout) > file.size:
                    raise FormatError(f"{path} has only {file.size} bytes; it is truncated.")
                leases.append(read_leader(file, index, layout))
            except FormatError as error:
                problems.append(str(error))
    return tuple(leases), tuple(problems)


def _live(host_id: int, seen: LockspaceSeen) -> bool | None:
    """Return whether the host's lease changed between the reads."""
    if not seen.seconds:
        return None
    lease = seen.second.leases[host_id]
    return not lease.free and seen.first.leases.get(host_id) != lease


def _state(lease: DeltaLease, seen: LockspaceSeen) -> str | None:
    """Return free, live, fail or dead; None when that takes longer to see than was watched."""
    if lease.free:
        return "free"
    if _live(lease.host_id, seen):
        return "live"
    timing = LeaseTiming(lease.io_timeout)
    if seen.seconds >= timing.dead_seconds:
        return "dead"
    return "fail" if seen.seconds >= timing.fail_seconds else None
