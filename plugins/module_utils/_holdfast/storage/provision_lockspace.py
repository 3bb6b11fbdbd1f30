# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lockspace and leases of a cluster, from nothing to wanted and back.

A lockspace that anybody uses is never replaced or removed unless that is forced,
and the error says who uses it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..errors import FormatError, InputError, LeaseError, StorageError
from .block_file import SECTOR, BlockFile
from .host_lease import MAX_IO_TIMEOUT, HostLeases, LeaseArea, initial_lockspace, lease_users
from .kernel_lock import KernelLock, locked_ranges
from .leader_record import MEBIBYTE
from .paths import ClusterPaths
from .provision import Plan, Step, check_folder, exists, make, refuse_users
from .resource_lease import LEASE_NAMES, initial_leases, read_leader
from .whole_file import create, remove

DEFAULT_IO_TIMEOUT = 2
"""Seconds; with a watchdog that fires after 10 s a host is dead after 26 s."""


@dataclass(frozen=True)
class LockspaceWanted:
    """What the operator wants of lockspace and leases; ``io_timeout`` None leaves it as it is."""

    name: str
    present: bool = True
    io_timeout: int | None = None
    force: bool = False


@dataclass(frozen=True)
class LockspaceFound:
    """What there is: contents, or what is wrong with a file that exists; and who uses it."""

    hosts: HostLeases | None = None
    hosts_problem: str = ""
    lease_names: tuple[str, ...] | None = None
    leases_problem: str = ""
    users: tuple[str, ...] = ()


def look_lockspace(paths: ClusterPaths) -> LockspaceFound:
    """Return what there is of lockspace and leases; raises ``StorageError`` if unreadable."""
    hosts = None
    hosts_problem = ""
    lease_names = None
    leases_problem = ""
    users: list[str] = []
    if exists(paths.lockspace):
        try:
            with LeaseArea(paths.lockspace) as area:
                hosts = area.read()
        except FormatError as error:
            hosts_problem = str(error)
        users += _users(paths.lockspace, hosts)
    if exists(paths.leases):
        try:
            lease_names = _lease_names(paths.leases, _lockspace_of(paths))
        except FormatError as error:
            leases_problem = str(error)
        for start, _length in locked_ranges(paths.leases, 0, len(LEASE_NAMES) * MEBIBYTE):
            users.append(f"the holder of lease {LEASE_NAMES[start // MEBIBYTE]}")
    return LockspaceFound(hosts, hosts_problem, lease_names, leases_problem, tuple(users))


def plan_lockspace(wanted: LockspaceWanted, found: LockspaceFound, paths: ClusterPaths) -> Plan:
    """Return the steps to the wanted lockspace and leases.

    Raises ``StorageError`` for a file of another format or name in the way and
    ``LeaseError`` naming the users of a lockspace that would be replaced or removed;
    with ``force`` neither.  ``InputError`` for an I/O timeout out of range.
    """
    timeout = wanted.io_timeout
    if timeout is not None and not 1 <= timeout <= MAX_IO_TIMEOUT:
        raise InputError("io_timeout", timeout, f"seconds from 1 to {MAX_IO_TIMEOUT}")
    before = _state(found, paths)
    if not wanted.present:
        return _removal(wanted, found, paths)
    steps = [
        step
        for step in (_lockspace_step(wanted, found, paths), _leases_step(wanted, found, paths))
        if step is not None
    ]
    if any(step.action == "replace" for step in steps):
        refuse_users(wanted.force, found.users, "made anew", paths)
    kept = found.hosts.io_timeout if found.hosts is not None else DEFAULT_IO_TIMEOUT
    after = {
        "lockspace": {
            "path": paths.lockspace,
            "name": wanted.name,
            "io_timeout": kept if timeout is None else timeout,
        },
        "leases": {"path": paths.leases, "names": list(LEASE_NAMES)},
    }
    return Plan(before, after, tuple(steps))


def apply_lockspace(plan: Plan, wanted: LockspaceWanted, paths: ClusterPaths) -> bool:
    """Take the steps of *plan*; return whether any of them changed something.

    A step that finds its file already created by another node changes nothing.
    Between plan and act a node could have joined: unless forced, the kernel locks of
    all host ids are held while files are replaced or removed, and users looked for
    once more.
    """
    check_folder(plan, paths)
    guard = None
    destructive = any(step.action in ("replace", "remove") for step in plan.steps)
    if destructive and not wanted.force and exists(paths.lockspace):
        guard = KernelLock(paths.lockspace, 0, MEBIBYTE)
        if not guard.take():
            refuse_users(False, look_lockspace(paths).users, "changed", paths)
            raise LeaseError(f"{paths.lockspace} is in use by a node that is joining.")
    changed = False
    try:
        if guard is not None:
            with LeaseArea(paths.lockspace) as area:
                refuse_users(False, lease_users(area.read()), "changed", paths)
        for step in plan.steps:
            changed |= _apply_step(step, plan, wanted, paths)
    finally:
        if guard is not None:
            guard.release()
    return changed


def refuse_use(force: bool, found: LockspaceFound, what: str, paths: ClusterPaths) -> None:
    """Refuse to go on with a lockspace in use, or with one that cannot tell whether it is."""
    refuse_users(force, found.users, what, paths)
    if found.hosts_problem and not force:
        raise StorageError(
            f"{found.hosts_problem.rstrip('.')}; so it cannot be told whether the cluster is in"
            f" use, and nothing is {what}. Use force if it is not."
        )


def _removal(wanted: LockspaceWanted, found: LockspaceFound, paths: ClusterPaths) -> Plan:
    """Return the plan that removes what there is."""
    steps = []
    if found.hosts is not None or found.hosts_problem:
        steps.append(Step("remove", paths.lockspace))
    if found.lease_names is not None or found.leases_problem:
        steps.append(Step("remove", paths.leases))
    if steps:
        refuse_use(wanted.force, found, "removed", paths)
    return Plan(_state(found, paths), {}, tuple(steps))


def _users(path: str, hosts: HostLeases | None) -> list[str]:
    """Return who uses the lockspace, in words: by its leases and by its kernel locks."""
    users = lease_users(hosts) if hosts is not None else []
    for start, _length in locked_ranges(path, 0, MEBIBYTE):
        host_id = start // SECTOR + 1
        if hosts is None or host_id not in hosts.leases or hosts.leases[host_id].free:
            users.append(f"a process that locks host id {host_id}")
    return users


def _lockspace_of(paths: ClusterPaths) -> str:
    """Return the cluster's name, as the paths were made from it."""
    return Path(paths.lockspace).name[: -len(".lockspace")]


def _lease_names(path: str, lockspace: str) -> tuple[str, ...]:
    """Return the names of the leases in the file at *path*, which must be of *lockspace*."""
    with BlockFile.open(path, alignment=SECTOR) as file:
        if file.size < len(LEASE_NAMES) * MEBIBYTE:
            raise FormatError(f"{path} has only {file.size} bytes; it is truncated.")
        leaders = [read_leader(file, index) for index in range(len(LEASE_NAMES))]
    names = tuple(leader.name for leader in leaders)
    if names != LEASE_NAMES or any(leader.lockspace != lockspace for leader in leaders):
        raise FormatError(
            f"{path} has leases {', '.join(names)} of lockspace {leaders[0].lockspace}; expected"
            f" {', '.join(LEASE_NAMES)} of {lockspace}."
        )
    return names


def _state(found: LockspaceFound, paths: ClusterPaths) -> dict[str, object]:
    """Return lockspace and leases as they are, as plain data."""
    state: dict[str, object] = {}
    if found.hosts is not None:
        state["lockspace"] = {
            "path": paths.lockspace,
            "name": found.hosts.lockspace,
            "io_timeout": found.hosts.io_timeout,
        }
    elif found.hosts_problem:
        state["lockspace"] = {"path": paths.lockspace, "problem": found.hosts_problem}
    if found.lease_names is not None:
        state["leases"] = {"path": paths.leases, "names": list(found.lease_names)}
    elif found.leases_problem:
        state["leases"] = {"path": paths.leases, "problem": found.leases_problem}
    return state


def _lockspace_step(
    wanted: LockspaceWanted, found: LockspaceFound, paths: ClusterPaths
) -> Step | None:
    """Return what has to be done about the lockspace file."""
    hosts = found.hosts
    if hosts is None:
        return make(paths.lockspace, found.hosts_problem, wanted.force)
    if hosts.lockspace != wanted.name:
        problem = f"{paths.lockspace} is lockspace {hosts.lockspace}"
        return make(paths.lockspace, problem, wanted.force)
    if wanted.io_timeout is not None and wanted.io_timeout != hosts.io_timeout:
        return Step("replace", paths.lockspace)
    return None


def _leases_step(
    wanted: LockspaceWanted, found: LockspaceFound, paths: ClusterPaths
) -> Step | None:
    """Return what has to be done about the leases file.

    It stays when only the lockspace is made anew: the version of the manager lease is
    the epoch, and records of an older epoch are refused.
    """
    if found.lease_names is None:
        return make(paths.leases, found.leases_problem, wanted.force)
    return None


def _apply_step(step: Step, plan: Plan, wanted: LockspaceWanted, paths: ClusterPaths) -> bool:
    """Take one step of a plan."""
    if step.action == "remove":
        return remove(step.path)
    if step.path == paths.lockspace:
        state = plan.after["lockspace"]
        timeout = state["io_timeout"] if isinstance(state, dict) else DEFAULT_IO_TIMEOUT
        content = initial_lockspace(wanted.name, timeout)
    else:
        content = initial_leases(wanted.name)
    replace = step.action == "replace"
    return create(step.path, len(content), [(0, content)], replace=replace)
