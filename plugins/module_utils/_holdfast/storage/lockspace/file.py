# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A lockspace file or device of any geometry: dump, initialise, and view as plain data.

This is for ``holdfast lockspace`` and for other people's lockspaces; ``storage/provision`` makes
a cluster's own files.  The dump agrees with ``sanlock direct dump``, and a new lockspace with
``sanlock direct init``.

One read does not show whether a host lives: the timestamp of its lease is of its own clock.  A
second read does, once the host had the time to renew.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from ...errors import FormatError, InputError, LeaseError, StorageError
from ...names import MAX_HOST_ID
from ..block_file import PAGE, SECTOR, BlockFile
from ..device import device_of
from ..kernel_lock import KernelLock, is_lockable, locked_ranges
from ..whole_file import ClusterPaths, create, exists
from . import delta_lease, resource_lease
from .delta_lease import DeltaLease, HostLeases, initial_lockspace, lease_users, read_lockspace
from .host_timing import LeaseTiming
from .leader_record import AREA_HOSTS, MEBIBYTE, RECORD, Layout, decode_leader, layout_of
from .resource_lease import LEASE_NAMES, ResourceLease, area_offset, leases_layout, read_leader

MAX_AREAS = 1024
"""The number of areas of one file that are shown, as in sanlock's own index of leases."""


@dataclass(frozen=True)
class DumpRow:
    """One lease, whole or not; ``version`` is None for a host lease.

    ``offset`` is in bytes.  ``problem`` is "" for a whole lease.
    """

    offset: int
    lockspace: str
    name: str
    timestamp: int
    owner_id: int
    generation: int
    version: int | None
    io_timeout: int
    problem: str = ""


def dump(path: str) -> list[DumpRow]:
    """Return each lease in the file or device at *path* that was ever held.

    The leases and the order of ``sanlock direct dump``: host leases with an owner or a
    generation, and all resource leases, also damaged ones.  Raises ``FormatError`` when the file
    begins with no lease.
    """
    rows: list[DumpRow] = []
    with BlockFile.open(path, alignment=SECTOR) as file:
        size = file.size
        offset = 0
        layout = layout_of(file.read(0, PAGE) if size >= PAGE else b"", _MAGICS)
        if layout is None:
            raise FormatError(f"{path} does not begin with a lease of sanlock.")
        for _area_number in range(MAX_AREAS):
            if offset + layout.area_bytes > size:
                break
            magic = int.from_bytes(file.read(offset, PAGE)[:4], "little")
            if magic == delta_lease.MAGIC:
                rows += _host_rows(file.read(offset, layout.area_bytes), offset, layout)
            elif magic in (resource_lease.MAGIC, resource_lease.MAGIC_CLEARED):
                rows.append(_row(file.read(offset, PAGE), offset, None))
            else:
                break
            offset += layout.area_bytes
    return rows


def dump_text(rows: list[DumpRow]) -> str:
    """Return *rows* in the columns of ``sanlock direct dump``."""
    lines = [
        f"{'offset':>8} {'lockspace':>36} {'resource':>48} {'timestamp':>10}"
        f" {'own':>4} {'gen':>4} {'lver'}"
    ]
    for row in rows:
        version = "" if row.version is None else f" {row.version}"
        lines.append(
            f"{row.offset:08d} {row.lockspace:>36} {row.name:>48} {row.timestamp:010d}"
            f" {row.owner_id:04d} {row.generation:04d}{version}"
        )
    return "\n".join(lines) + "\n"


def initialise(
    path: str, name: str, io_timeout: int, layout: Layout, *, force: bool = False
) -> bool:
    """Make the file or device at *path* a new lockspace; return whether the file was created.

    Byte for byte as ``sanlock direct init`` makes it.  Raises ``LeaseError`` naming the users of
    a lockspace that is in use, and ``StorageError`` for other content in the way; with *force*
    both are overwritten.
    """
    if (layout.sector_size, layout.area_bytes) not in AREA_HOSTS:
        raise InputError(
            "sector size and area size",
            (layout.sector_size, layout.area_bytes),
            f"one of {', '.join(map(str, sorted(AREA_HOSTS)))}",
        )
    area = initial_lockspace(name, io_timeout, MAX_HOST_ID, layout)
    if not (exists(path) if device_of(path) else Path(path).exists()):
        if create(path, len(area), [(0, area)]):
            return True
        raise StorageError(f"{path} was created by somebody else at this moment; look at it first.")
    guard = _guard(path, force)
    try:
        if not force:
            _refuse_what_is_there(path, len(area))
        with BlockFile.open(path, writable=True, alignment=layout.sector_size) as file:
            file.write(0, area)
    finally:
        if guard is not None:
            guard.release()
    return False


_MAGICS = (delta_lease.MAGIC, resource_lease.MAGIC, resource_lease.MAGIC_CLEARED)


def _host_rows(area: bytes, offset: int, layout: Layout) -> list[DumpRow]:
    """Return the rows of one area of host leases."""
    rows = []
    for host_id in range(1, layout.max_hosts + 1):
        place = (host_id - 1) * layout.sector_size
        row = _row(area[place : place + layout.sector_size], offset + place, host_id)
        if row.owner_id or row.generation:
            rows.append(row)
    return rows


def _row(sector: bytes, offset: int, host_id: int | None) -> DumpRow:
    """Return one lease, whole or not; *host_id* is None for a resource lease."""
    fields = RECORD.unpack_from(sector)
    problem = ""
    try:
        if host_id is None:
            resource_lease.decode_lease(sector, "lease")
        else:
            delta_lease.decode_delta(sector, host_id)
    except FormatError as error:
        problem = str(error)
    return DumpRow(
        offset=offset,
        lockspace=_shown(fields[9]),
        name=_shown(fields[10]),
        timestamp=fields[11],
        owner_id=fields[6],
        generation=fields[7],
        version=fields[8] if host_id is None else None,
        io_timeout=fields[15],
        problem=problem,
    )


def _shown(name: bytes) -> str:
    """Return a name field as printable text, up to its first NUL."""
    return name.split(b"\0", 1)[0].decode("utf-8", "backslashreplace")


def _guard(path: str, force: bool) -> KernelLock | None:
    """Return a kernel lock on all host ids, against joins; None on a whole device or by force."""
    if force or not is_lockable(path):
        return None
    guard = KernelLock(path, 0, MEBIBYTE)
    if not guard.take():
        raise LeaseError(
            f"{path} is in use: a process on this machine locks it. Nothing was written; stop"
            " what uses it, or use force if that is certainly off."
        )
    return guard


def _refuse_what_is_there(path: str, length: int) -> None:
    """Raise an error for a lockspace in use, and for content that is neither one nor blank."""
    with BlockFile.open(path, alignment=SECTOR) as file:
        if file.size < length:
            raise StorageError(
                f"{path} has {file.size} bytes; a lockspace of this geometry takes {length}."
            )
        start = file.read(0, length)
    if not any(start):
        return
    try:
        decode_leader(start, path)
        hosts = read_lockspace(path)
    except FormatError as error:
        raise StorageError(
            f"{path} contains something that is no lockspace ({str(error).rstrip('.')}); it is"
            " left as it is. Use force to overwrite it."
        ) from error
    users = lease_users(hosts)
    if users:
        raise LeaseError(
            f"{path} is in use and nothing is recreated: {', '.join(users)}. Stop what uses it;"
            " use force only for hosts that are certainly off."
        )


def locked_host_ids(path: str, max_hosts: int) -> frozenset[int]:
    """Return the host ids whose leases a process of this machine locks; none on a whole device."""
    if not is_lockable(path):
        return frozenset()
    end = max_hosts * SECTOR
    locked: set[int] = set()
    for start, length in locked_ranges(path, 0, end):
        # A lock of length 0 reaches to the end of the file.
        last = min(start + length, end) - 1 if length else end - 1
        locked.update(range(start // SECTOR + 1, last // SECTOR + 2))
    return frozenset(locked)


@dataclass(frozen=True)
class ObservedLockspace:
    """Two reads of a lockspace ``seconds`` apart, the same with 0, and the leases beside it.

    ``locked`` are the host ids whose leases a process of this machine locks.
    """

    first: HostLeases
    second: HostLeases
    seconds: float = 0.0
    locked: frozenset[int] = field(default_factory=frozenset)
    leases: tuple[ResourceLease, ...] = ()
    lease_problems: tuple[str, ...] = ()


def observe_lockspace(
    paths: ClusterPaths, seconds: float, sleep: Callable[[float], None] = time.sleep
) -> ObservedLockspace | None:
    """Read the lockspace of a cluster, twice with *seconds* between; None when there is none."""
    if not exists(paths.lockspace):
        return None
    first = second = read_lockspace(paths.lockspace)
    if seconds > 0:
        sleep(seconds)
        second = read_lockspace(paths.lockspace)
    leases, problems = _read_leases(paths.leases)
    locked = locked_host_ids(paths.lockspace, second.max_hosts)
    return ObservedLockspace(first, second, seconds, locked, leases, problems)


def view_lockspace(observed: ObservedLockspace) -> dict[str, object]:
    """Return the reads as plain data.

    A host is ``live`` when its lease changed between the reads; None after one read.
    ``dead_after`` is the seconds without renewal after which it counts as dead, with the longest
    watchdog timeout there is: its own is not on the storage.
    """
    hosts = observed.second
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
                "live": _live(host_id, observed),
                "state": _state(lease, observed),
                "locked": host_id in observed.locked,
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
            for lease in observed.leases
        ],
        "problems": [
            {"host_id": host_id, "problem": problem}
            for host_id, problem in sorted(hosts.problems.items())
        ]
        + [{"host_id": None, "problem": problem} for problem in observed.lease_problems],
    }


def view_nothing() -> dict[str, object]:
    """Return the view of a lockspace that does not exist."""
    numbers = ("lockspace", "io_timeout", "sector_size", "area_bytes", "max_hosts")
    return {**dict.fromkeys(numbers), "hosts": [], "leases": [], "problems": []}


def _read_leases(path: str) -> tuple[tuple[ResourceLease, ...], tuple[str, ...]]:
    """Return the leases of the cluster, and the problems of those that cannot be read."""
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


def _live(host_id: int, observed: ObservedLockspace) -> bool | None:
    """Return whether the host's lease changed between the reads."""
    if not observed.seconds:
        return None
    lease = observed.second.leases[host_id]
    return not lease.free and observed.first.leases.get(host_id) != lease


def _state(lease: DeltaLease, observed: ObservedLockspace) -> str | None:
    """Return free, live, fail or dead; None when the reads are too close to know."""
    if lease.free:
        return "free"
    if _live(lease.host_id, observed):
        return "live"
    timing = LeaseTiming(lease.io_timeout)
    if observed.seconds >= timing.dead_seconds:
        return "dead"
    return "fail" if observed.seconds >= timing.fail_seconds else None
