# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Creating and removing lockspace and leases of a cluster.

A lockspace in use is never replaced or removed unless that is forced; the error names its users.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ...errors import FormatError, InputError, LeaseError, StorageError
from ..block_file import SECTOR, BlockFile
from ..device import device_header
from ..kernel_lock import KernelLock, locked_ranges
from ..lockspace.delta_lease import HostLeases, initial_lockspace, lease_users, read_lockspace
from ..lockspace.host_timing import checked_io_timeout
from ..lockspace.leader_record import AREA_HOSTS, DEFAULT_LAYOUT, MEBIBYTE, WHOLE_AREA_BYTES, Layout
from ..lockspace.resource_lease import LEASE_NAMES, initial_leases, leases_layout, read_leader
from ..whole_file import ClusterPaths, create, exists, remove
from .plan import Plan, Step, check_folder, make

DEFAULT_IO_TIMEOUT = 2
"""Seconds; with a watchdog that fires after 10 s a host is dead after 26 s."""


@dataclass(frozen=True)
class DesiredLockspace:
    """The desired lockspace and leases; a number that is None stays as it is.

    ``sector_size`` and ``area_bytes`` are sanlock's, for lockspace and leases alike.
    """

    name: str
    present: bool = True
    io_timeout: int | None = None
    force: bool = False
    sector_size: int | None = None
    area_bytes: int | None = None


@dataclass(frozen=True)
class ExistingLockspace:
    """What there is: contents, or the problem of a file that exists; and its users.

    ``device_sector`` is the sector size of the device that the files are on; None for a folder.
    """

    hosts: HostLeases | None = None
    hosts_problem: str = ""
    lease_names: tuple[str, ...] | None = None
    lease_layout: Layout | None = None
    leases_problem: str = ""
    users: tuple[str, ...] = ()
    device_sector: int | None = None


@dataclass(frozen=True)
class LockspacePlan(Plan):
    """The plan for lockspace and leases, and the numbers for the files that it creates."""

    io_timeout: int = DEFAULT_IO_TIMEOUT
    layout: Layout = DEFAULT_LAYOUT


def look_lockspace(paths: ClusterPaths) -> ExistingLockspace:
    """Return what there is of lockspace and leases; raises ``StorageError`` if unreadable."""
    hosts = None
    hosts_problem = ""
    lease_names = lease_layout = None
    leases_problem = ""
    users: list[str] = []
    header = device_header(paths.lockspace)
    if exists(paths.lockspace):
        try:
            hosts = read_lockspace(paths.lockspace)
        except FormatError as error:
            hosts_problem = str(error)
        users += _users(paths.lockspace, hosts)
    if exists(paths.leases):
        try:
            lease_names, lease_layout = _read_leases(paths.leases, _lockspace_of(paths))
        except FormatError as error:
            leases_problem = str(error)
        for start, _length in locked_ranges(paths.leases, 0, len(LEASE_NAMES) * MEBIBYTE):
            users.append(f"the holder of lease {LEASE_NAMES[start // MEBIBYTE]}")
    return ExistingLockspace(
        hosts,
        hosts_problem,
        lease_names,
        lease_layout,
        leases_problem,
        tuple(users),
        None if header is None else header.sector_size,
    )


def plan_lockspace(
    desired: DesiredLockspace, existing: ExistingLockspace, paths: ClusterPaths
) -> LockspacePlan:
    """Return the steps to the desired lockspace and leases.

    Unless forced, raises ``StorageError`` for a file of another format, name or geometry in the
    way, and ``LeaseError`` naming the users of a lockspace that would be replaced or removed.
    Raises ``InputError`` for an I/O timeout with which healthy nodes are reset, and for sizes
    that sanlock does not have.
    """
    if desired.io_timeout is not None:
        checked_io_timeout(desired.io_timeout)
    layout = _desired_layout(desired, existing)
    if not desired.present:
        return _removal(desired, existing, paths)
    steps = [
        step
        for step in (
            _lockspace_step(desired, existing, layout, paths),
            _leases_step(desired, existing, layout, paths),
        )
        if step is not None
    ]
    if any(step.action == "replace" for step in steps):
        refuse_users(desired.force, existing.users, "recreated", paths)
    io_timeout = desired.io_timeout
    if io_timeout is None:
        io_timeout = DEFAULT_IO_TIMEOUT if existing.hosts is None else existing.hosts.io_timeout
    after = {
        "lockspace": _lockspace_state(paths, desired.name, io_timeout, layout),
        "leases": {"path": paths.leases, "names": list(LEASE_NAMES)},
    }
    return LockspacePlan(
        _state(existing, paths),
        after,
        tuple(steps),
        sizes={
            paths.lockspace: layout.area_bytes,
            paths.leases: len(LEASE_NAMES) * layout.area_bytes,
        },
        io_timeout=io_timeout,
        layout=layout,
    )


def apply_lockspace(plan: LockspacePlan, desired: DesiredLockspace, paths: ClusterPaths) -> bool:
    """Take the steps of *plan*; return whether any of them changed something.

    A step whose file another node created in the meantime changes nothing.  A node could have
    joined since the plan was made: unless forced, the kernel locks of all host ids are held
    while files are replaced or removed, and users are looked for once more.
    """
    check_folder(plan, paths)
    guard = None
    destructive = any(step.action in ("replace", "remove") for step in plan.steps)
    if destructive and not desired.force and exists(paths.lockspace):
        guard = KernelLock(paths.lockspace, 0, MEBIBYTE)
        if not guard.take():
            refuse_users(False, look_lockspace(paths).users, "changed", paths)
            raise LeaseError(f"{paths.lockspace} is in use by a node that is joining.")
    changed = False
    try:
        if guard is not None:
            refuse_users(False, lease_users(read_lockspace(paths.lockspace)), "changed", paths)
        for step in plan.steps:
            changed |= _apply_step(step, plan, desired.name, paths)
    finally:
        if guard is not None:
            guard.release()
    return changed


def refuse_users(force: bool, users: Sequence[str], what: str, paths: ClusterPaths) -> None:
    """Raise ``LeaseError`` with the *users* of the lockspace if there are any, unless forced."""
    if users and not force:
        raise LeaseError(
            f"{paths.lockspace} is in use and nothing is {what}: {', '.join(users)}. Stop"
            " holdfast there; use force only for nodes that are certainly off."
        )


def refuse_use(force: bool, existing: ExistingLockspace, what: str, paths: ClusterPaths) -> None:
    """Raise an error for a lockspace in use, or one that does not show whether it is."""
    refuse_users(force, existing.users, what, paths)
    if existing.hosts_problem and not force:
        raise StorageError(
            f"{existing.hosts_problem.rstrip('.')}; so it is not known whether the cluster is in"
            f" use, and nothing is {what}. Use force if it is not."
        )


def _removal(
    desired: DesiredLockspace, existing: ExistingLockspace, paths: ClusterPaths
) -> LockspacePlan:
    """Return the plan that removes what there is."""
    steps = []
    if existing.hosts is not None or existing.hosts_problem:
        steps.append(Step("remove", paths.lockspace))
    if existing.lease_names is not None or existing.leases_problem:
        steps.append(Step("remove", paths.leases))
    if steps:
        refuse_use(desired.force, existing, "removed", paths)
    return LockspacePlan(_state(existing, paths), {}, tuple(steps))


def _users(path: str, hosts: HostLeases | None) -> list[str]:
    """Return the users of the lockspace as text, by its leases and its kernel locks."""
    users = lease_users(hosts) if hosts is not None else []
    for start, _length in locked_ranges(path, 0, MEBIBYTE):
        host_id = start // SECTOR + 1
        if hosts is None or host_id not in hosts.leases or hosts.leases[host_id].free:
            users.append(f"a process that locks host id {host_id}")
    return users


def _lockspace_of(paths: ClusterPaths) -> str:
    """Return the cluster's name, as the paths were made from it."""
    return Path(paths.lockspace).name[: -len(".lockspace")]


def _desired_layout(desired: DesiredLockspace, existing: ExistingLockspace) -> Layout:
    """Return the desired sizes of lockspace and leases, by default the present ones."""
    present = existing.hosts.layout if existing.hosts is not None else existing.lease_layout
    present = present or _device_layout(existing.device_sector)
    if desired.sector_size not in (None, existing.device_sector or desired.sector_size):
        raise InputError(
            "sector_size", desired.sector_size, f"{existing.device_sector}, the device's own"
        )
    sector_size = desired.sector_size or present.sector_size
    area_bytes = desired.area_bytes or (
        present.area_bytes
        if sector_size == present.sector_size
        else WHOLE_AREA_BYTES.get(sector_size, 0)
    )
    if (sector_size, area_bytes) not in AREA_HOSTS:
        raise InputError(
            "sector_size and area_size",
            (sector_size, area_bytes),
            f"one of {', '.join(map(str, sorted(AREA_HOSTS)))}, in bytes",
        )
    return Layout(sector_size, area_bytes)


def _device_layout(sector_size: int | None) -> Layout:
    """Return the default sizes on a device with sectors of *sector_size*, None for a folder."""
    return Layout(sector_size, WHOLE_AREA_BYTES[sector_size]) if sector_size else DEFAULT_LAYOUT


def _read_leases(path: str, lockspace: str) -> tuple[tuple[str, ...], Layout]:
    """Return names and sizes of the leases in the file at *path*, all of *lockspace*."""
    with BlockFile.open(path, alignment=SECTOR) as file:
        layout = leases_layout(file)
        if file.size < len(LEASE_NAMES) * layout.area_bytes:
            raise FormatError(f"{path} has only {file.size} bytes; it is truncated.")
        leaders = [read_leader(file, index, layout) for index in range(len(LEASE_NAMES))]
    names = tuple(leader.name for leader in leaders)
    if names != LEASE_NAMES or any(leader.lockspace != lockspace for leader in leaders):
        raise FormatError(
            f"{path} has leases {', '.join(names)} of lockspace {leaders[0].lockspace}; expected"
            f" {', '.join(LEASE_NAMES)} of {lockspace}."
        )
    return names, layout


def _lockspace_state(
    paths: ClusterPaths, name: str, io_timeout: int, layout: Layout
) -> dict[str, object]:
    """Return a lockspace as plain data."""
    return {
        "path": paths.lockspace,
        "name": name,
        "io_timeout": io_timeout,
        "sector_size": layout.sector_size,
        "area_bytes": layout.area_bytes,
        "max_hosts": layout.max_hosts,
    }


def _state(existing: ExistingLockspace, paths: ClusterPaths) -> dict[str, object]:
    """Return lockspace and leases as they are, as plain data."""
    state: dict[str, object] = {}
    hosts = existing.hosts
    if hosts is not None:
        state["lockspace"] = _lockspace_state(
            paths, hosts.lockspace, hosts.io_timeout, hosts.layout
        )
    elif existing.hosts_problem:
        state["lockspace"] = {"path": paths.lockspace, "problem": existing.hosts_problem}
    if existing.lease_names is not None:
        state["leases"] = {"path": paths.leases, "names": list(existing.lease_names)}
    elif existing.leases_problem:
        state["leases"] = {"path": paths.leases, "problem": existing.leases_problem}
    return state


def _lockspace_step(
    desired: DesiredLockspace, existing: ExistingLockspace, layout: Layout, paths: ClusterPaths
) -> Step | None:
    """Return the step for the lockspace file, if any."""
    hosts = existing.hosts
    if hosts is None:
        return make(paths.lockspace, existing.hosts_problem, desired.force)
    if hosts.lockspace != desired.name:
        problem = f"{paths.lockspace} is lockspace {hosts.lockspace}"
        return make(paths.lockspace, problem, desired.force)
    if hosts.layout != layout:
        return make(paths.lockspace, _other_sizes(paths.lockspace, hosts.layout), desired.force)
    if desired.io_timeout is not None and desired.io_timeout != hosts.io_timeout:
        return Step("replace", paths.lockspace)
    return None


def _leases_step(
    desired: DesiredLockspace, existing: ExistingLockspace, layout: Layout, paths: ClusterPaths
) -> Step | None:
    """Return the step for the leases file, if any.

    It stays when the lockspace is replaced: the version of the manager lease is the epoch, and
    records of an older epoch are refused.
    """
    if existing.lease_layout is None:
        return make(paths.leases, existing.leases_problem, desired.force)
    if existing.lease_layout != layout:
        return make(paths.leases, _other_sizes(paths.leases, existing.lease_layout), desired.force)
    return None


def _other_sizes(path: str, layout: Layout) -> str:
    """Return the problem of a file with other sizes."""
    return (
        f"{path} has sectors of {layout.sector_size} bytes and areas of {layout.area_bytes} bytes"
    )


def _apply_step(step: Step, plan: LockspacePlan, name: str, paths: ClusterPaths) -> bool:
    """Take one step of a plan for the lockspace called *name*."""
    if step.action == "remove":
        return remove(step.path)
    layout = plan.layout
    if step.path == paths.lockspace:
        content = initial_lockspace(name, plan.io_timeout, layout=layout)
    else:
        content = initial_leases(name, max_hosts=layout.max_hosts, layout=layout)
    replace = step.action == "replace"
    return create(step.path, len(content), [(0, content)], replace=replace)
