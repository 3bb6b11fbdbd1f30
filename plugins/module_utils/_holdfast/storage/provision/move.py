# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Moving the files of a cluster to another folder or device, while no node uses them.

At no time can nodes join in both places: a node needs the lockspace, and the new place gets one
only when the old one has none any more.

1. ``NAME.moving``, a copy of the records, shows that they fit and that all nodes see the place.
2. ``NAME.lockspace`` of the old place becomes ``NAME.moved``, which no node can join.
3. All files are copied, at last the lockspace.  Versions, epochs and generations continue, so the
   records are as new as each node knows them.
4. The old files are removed, at last ``NAME.moved``.

An error before the new lockspace is there undoes step 2.  After a crash the same move continues.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from ...errors import HoldfastError, InputError, StorageError
from ...names import MAX_HOST_ID, whole_number
from ..block_file import SECTOR, BlockFile
from ..device import device_header, is_device
from ..lockspace.delta_lease import encode_delta, initial_lockspace, lease_users, read_lockspace
from ..lockspace.leader_record import DEFAULT_LAYOUT, WHOLE_AREA_BYTES, Layout
from ..lockspace.resource_lease import (
    LEASE_NAMES,
    area_offset,
    encode_lease,
    initial_leases,
    leases_layout,
    read_leader,
)
from ..record_format import Geometry, Kind
from ..records import RecordFile
from ..whiteboard.file import Whiteboard
from ..whole_file import ClusterPaths, cluster_paths, create, remove, rename
from .device import DesiredDevice, apply_device, look_device, plan_device
from .lockspace import look_lockspace, refuse_use, refuse_users
from .plan import Plan, Step, check_folder
from .records import OPTIONS, all_records, desired_layout, laid_out, nobody_joins

FILES = ("lockspace", "leases", "metadata", "state")

MOVING = "moving"
"""The kind of the records in a place to which the cluster has not moved yet."""

MOVED = "moved"
"""The kind of a lockspace that was given up."""

HEADER = "header"
"""Stands among the kinds of files for the header of a device."""


@dataclass(frozen=True)
class DesiredPlace:
    """The desired place of a cluster; a number that is None stays as it is.

    ``prepare`` says that the place is only to be prepared, while the cluster runs.
    """

    name: str
    source: str
    target: str
    prepare: bool = False
    max_hosts: int | None = None
    record_sizes: Mapping[Kind, int] = field(default_factory=dict)

    @property
    def old(self) -> ClusterPaths:
        """The paths in the old place."""
        return cluster_paths(self.source, self.name)

    @property
    def new(self) -> ClusterPaths:
        """The paths in the new place."""
        return cluster_paths(self.target, self.name)

    @property
    def moving(self) -> str:
        """The path of the records in the new place while it is prepared."""
        return f"{self.new.folder}/{self.name}.{MOVING}"

    @property
    def moved(self) -> str:
        """The path of the lockspace that was given up."""
        return f"{self.old.folder}/{self.name}.{MOVED}"


@dataclass(frozen=True)
class Copies:
    """The sizes of the files in the new place; ``board_bytes`` is that of the whiteboard."""

    geometry: Geometry
    board_bytes: int
    layout: Layout


@dataclass(frozen=True)
class ExistingPlace:
    """What there is in both places: the kinds of the files of the cluster.

    ``copies`` is None if there is nothing to copy.  ``prepared`` says that the new place has a
    copy of the records with the desired sizes.
    """

    source: frozenset[str]
    target: frozenset[str]
    copies: Copies | None = None
    prepared: bool = False


def look_move(desired: DesiredPlace) -> ExistingPlace:
    """Return what there is in both places.

    Raises ``InputError`` if they are the same, ``StorageError`` or ``FormatError`` for files that
    cannot be copied, and ``LeaseError`` while nodes use the old place, unless the new one is only
    to be prepared.
    """
    _refuse_same(desired)
    source, target = _kinds(desired.source, desired.name), _kinds(desired.target, desired.name)
    if "lockspace" in target or not source & {"lockspace", MOVED}:
        return ExistingPlace(source, target)
    lockspace = desired.old.lockspace if "lockspace" in source else desired.moved
    if not desired.prepare:
        used = look_lockspace(replace(desired.old, lockspace=lockspace))
        refuse_use(False, used, "moved", desired.old)
    layout = _layout(desired, read_lockspace(lockspace).layout)
    geometry = _geometry(desired)
    with Whiteboard(desired.old.metadata) as board:
        block_bytes = board.block_bytes()
        if block_bytes < layout.sector_size:
            raise StorageError(
                f"{desired.old.metadata} has blocks of {block_bytes} bytes, and {desired.target}"
                f" has sectors of {layout.sector_size}: a node could not write its block alone."
                " Name a device with sectors of 512 bytes, or a folder."
            )
        blocks = max(board.max_hosts(), geometry.max_hosts) + 1
        copies = Copies(geometry, blocks * block_bytes, layout)
    return ExistingPlace(
        source, target, copies, MOVING in target and _has(desired.moving, geometry)
    )


def plan_move(desired: DesiredPlace, existing: ExistingPlace) -> Plan:
    """Return the steps of the move that are left.

    Raises ``StorageError`` where there is no cluster to move, or the new place has other files of
    a cluster with its name.
    """
    active, given_up = "lockspace" in existing.source, MOVED in existing.source
    complete = "lockspace" in existing.target
    if active and (given_up or complete):
        other = desired.moved if given_up else desired.new.lockspace
        raise StorageError(
            f"{desired.old.lockspace} and {other} exist, and a cluster has one lockspace. Find out"
            " which one the nodes use, and move the files of the other storage away."
        )
    if not (active or given_up or complete):
        raise StorageError(
            f"There is no lockspace of cluster {desired.name} in {desired.source}: nothing is"
            " moved. Mount or attach the storage that the cluster uses."
        )
    obstacles = sorted(existing.target & set(FILES))
    if active and obstacles:
        raise StorageError(
            f"{desired.target} has {', '.join(obstacles)} of a cluster {desired.name} already; they"
            " are left as they are. Move them away, or name another place."
        )
    before = {
        "storage": desired.target if complete else desired.source,
        "prepared": existing.prepared,
    }
    if desired.prepare:
        after = {**before, "prepared": existing.prepared or active}
        steps = _creation(desired, existing) if active and not existing.prepared else []
    else:
        after = {"storage": desired.target, "prepared": False}
        steps = [Step("give-up", desired.old.lockspace)] if active else []
        steps += _creation(desired, existing)
        steps += [Step("clear", desired.source)] if existing.source else []
    return Plan(before, after, tuple(steps), sizes=_sizes(desired, existing.copies))


def check_move(plan: Plan, desired: DesiredPlace) -> None:
    """Raise the ``StorageError`` that *plan* would meet in the new place; check mode calls it."""
    there = tuple(step for step in plan.steps if step.action in ("create", "remove"))
    check_folder(replace(plan, steps=there), desired.new)


def apply_move(
    plan: Plan,
    desired: DesiredPlace,
    existing: ExistingPlace,
    sleep: Callable[[float], None] = time.sleep,
) -> bool:
    """Take the steps of *plan*; return whether there were any.

    Raises ``LeaseError`` and changes nothing when a node has joined since the plan was made.
    """
    check_move(plan, desired)
    if not plan.steps:
        return False
    if existing.copies is not None:
        removed = [step.path for step in plan.steps if step.action == "remove"]
        if desired.prepare:
            _copy_records(desired, existing.copies, removed)
            return True
        if plan.steps[0].action == "give-up":
            with nobody_joins(desired.old):
                _give_up(desired, existing.copies, removed, sleep)
        else:
            _copy(desired, existing.copies, removed)
        # From here on the cluster is in the new place.
        _copy_lockspace(desired, existing.copies.layout)
    _clear(desired)
    return True


def _refuse_same(desired: DesiredPlace) -> None:
    """Raise ``InputError`` if both places are one."""
    same = desired.old.folder == desired.new.folder
    with suppress(OSError):
        same = same or os.path.samefile(desired.source, desired.target)  # noqa: PTH121
    if same:
        raise InputError("src", desired.source, f"another place than path ({desired.target})")


def _kinds(place: str, name: str) -> frozenset[str]:
    """Return the kinds of the files of cluster *name* in *place*, none if it is not there."""
    if is_device(place):
        header = look_device(place, name).header
        return frozenset((HEADER, *header.areas) if header is not None else ())
    try:
        names = os.listdir(place)  # noqa: PTH208
    except FileNotFoundError:
        return frozenset()
    except OSError as error:
        raise StorageError(f"{place} cannot be read: {error.strerror}.") from error
    return frozenset(kind for kind in (*FILES, MOVING, MOVED) if f"{name}.{kind}" in names)


def _geometry(desired: DesiredPlace) -> Geometry:
    """Return the geometry that the records will have; raises why they cannot be copied."""
    number = desired.max_hosts
    if number is not None:
        whole_number(number, "max_hosts", 1, MAX_HOST_ID, "a number")
    with RecordFile(desired.old.state) as file:
        present = file.geometry()
    if number is not None and number < present.max_hosts:
        raise InputError("max_hosts", number, f"at least {present.max_hosts}, as the cluster has")
    geometry = desired_layout(present, desired.record_sizes, number)
    for record in all_records(desired.old.state, present):
        if len(record.payload) > geometry.max_payload(record.kind):
            raise StorageError(
                f"{desired.old.state} has a {record.kind.name} record of {len(record.payload)}"
                f" bytes; give {OPTIONS[record.kind]} room for it. Nothing was moved."
            )
    return geometry


def _layout(desired: DesiredPlace, present: Layout) -> Layout:
    """Return the sizes of the new lockspace: from folder to folder the *present* ones."""
    header = device_header(desired.new.lockspace)
    if header is None:
        return DEFAULT_LAYOUT if is_device(desired.source) else present
    return Layout(header.sector_size, WHOLE_AREA_BYTES[header.sector_size])


def _has(path: str, geometry: Geometry) -> bool:
    """Return whether the file of records at *path* has this *geometry*."""
    try:
        with RecordFile(path) as file:
            return file.geometry() == geometry
    except HoldfastError:
        return False


def _creation(desired: DesiredPlace, existing: ExistingPlace) -> list[Step]:
    """Return the steps that create the files in the new place, in their order."""
    if existing.copies is None:
        return []
    new = desired.new
    files = [new.state, new.metadata, new.leases]
    there = [desired.moving, *files]
    steps = [Step("remove", path) for path in there if path.rpartition(".")[2] in existing.target]
    created = [desired.moving] if desired.prepare else [*files, new.lockspace]
    return steps + [Step("create", path) for path in created]


def _sizes(desired: DesiredPlace, copies: Copies | None) -> dict[str, int]:
    """Return the bytes of each file in the new place."""
    if copies is None:
        return {}
    new, area = desired.new, copies.layout.area_bytes
    return {
        desired.moving: copies.geometry.size,
        new.state: copies.geometry.size,
        new.metadata: copies.board_bytes,
        new.leases: len(LEASE_NAMES) * area,
        new.lockspace: area,
    }


def _give_up(
    desired: DesiredPlace, copies: Copies, removed: Iterable[str], sleep: Callable[[float], None]
) -> None:
    """Give the old place up and copy all but the lockspace; after an error it is as before."""
    io_timeout = read_lockspace(desired.old.lockspace).io_timeout
    rename(desired.old.lockspace, desired.moved)
    try:
        # A join that began before has written its host lease by then.
        sleep(io_timeout)
        refuse_users(False, lease_users(read_lockspace(desired.moved)), "moved", desired.old)
        _copy(desired, copies, removed)
    except BaseException:
        for path in (desired.new.state, desired.new.metadata, desired.new.leases):
            with suppress(HoldfastError):
                remove(path)
        with suppress(HoldfastError):
            rename(desired.moved, desired.old.lockspace)
        raise


def _copy(desired: DesiredPlace, copies: Copies, removed: Iterable[str]) -> None:
    """Copy all but the lockspace, after the files *removed* of a former try."""
    new = desired.new
    _copy_records(desired, copies, removed)
    rename(desired.moving, new.state)
    with Whiteboard(desired.old.metadata) as board:
        _create(new.metadata, copies.board_bytes, [(0, board.read_bytes())])
    leases = _leases(desired, copies.layout)
    _create(new.leases, len(leases), [(0, leases)])


def _copy_records(desired: DesiredPlace, copies: Copies, removed: Iterable[str]) -> None:
    """Copy the records into the new place, and compare them, as ``MOVING``."""
    for path in removed:
        remove(path)
    with RecordFile(desired.old.state) as file:
        present = file.geometry()
    content = laid_out(desired.old.state, present, copies.geometry)
    _create(desired.moving, copies.geometry.size, content, mode=0o600, sparse=True)
    written = list(all_records(desired.moving, copies.geometry))
    # While the cluster runs, its nodes write on.
    if not desired.prepare and written != list(all_records(desired.old.state, present)):
        raise StorageError(f"{desired.moving} does not have the records that were written to it.")


def _create(
    path: str,
    size: int,
    content: Iterable[tuple[int, bytes]],
    mode: int = 0o660,
    *,
    sparse: bool = False,
) -> None:
    """Create a file as ``whole_file.create`` does; ``StorageError`` if another one has its name."""
    if not create(path, size, content, mode=mode, sparse=sparse):
        raise StorageError(f"{path} was created by another process meanwhile; run this again.")


def _leases(desired: DesiredPlace, layout: Layout) -> bytes:
    """Return the leases as they are, but free, with the sizes of *layout*."""
    content = bytearray(initial_leases(desired.name, layout.max_hosts, layout))
    with BlockFile.open(desired.old.leases, alignment=SECTOR) as file:
        present = leases_layout(file)
        for index in range(len(LEASE_NAMES)):
            leader = read_leader(file, index, present)
            free = replace(leader, layout=layout, num_hosts=layout.max_hosts, timestamp=0)
            start = area_offset(index, layout)
            content[start : start + layout.sector_size] = encode_lease(free)
    return bytes(content)


def _copy_lockspace(desired: DesiredPlace, layout: Layout) -> None:
    """Create the lockspace with the host leases as they are, which are all free."""
    hosts = read_lockspace(desired.moved)
    content = bytearray(initial_lockspace(desired.name, hosts.io_timeout, layout=layout))
    for host_id, lease in hosts.leases.items():
        start = (host_id - 1) * layout.sector_size
        free = replace(lease, layout=layout, events=b"")
        content[start : start + layout.sector_size] = encode_delta(free)
    _create(desired.new.lockspace, len(content), [(0, bytes(content))])


def _clear(desired: DesiredPlace) -> None:
    """Remove the old files; the lockspace that was given up is the last, as it shows the move."""
    left = _kinds(desired.source, desired.name)
    for kind in ("state", "metadata", "leases", MOVED):
        if kind in left:
            remove(f"{desired.old.folder}/{desired.name}.{kind}")
    if HEADER in left:
        gone = DesiredDevice(desired.name, desired.source, present=False)
        apply_device(plan_device(gone, look_device(desired.source, desired.name)), gone)
