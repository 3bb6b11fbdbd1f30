# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The layout of the records: chosen at creation, changed only while no node uses the file.

A change writes a new file with a copy of every record, which replaces the old one as a whole.
That is done only while no host lease is held, not even by force: what a node wrote between the
copy and the replacement would be lost.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from ...errors import FormatError, LeaseError, StorageError
from ...names import whole_number
from ..device import device_of
from ..kernel_lock import KernelLock
from ..lockspace.delta_lease import lease_users, read_lockspace
from ..record_format import MAX_COPY_BYTES, Geometry, Kind, Record, encode_header, encode_record
from ..records import RecordFile
from ..whole_file import ClusterPaths, create, exists
from .lockspace import refuse_users

MEBIBYTE = 1 << 20
MAX_SIZE = MAX_COPY_BYTES // MEBIBYTE

OPTIONS: Mapping[Kind, str] = {
    Kind.LRM: "node_record_size",
    Kind.CRM: "manager_record_size",
    Kind.CONFIGURATION: "configuration_size",
}
"""The option of the module ``metadata`` for the size of each kind of record."""


@dataclass(frozen=True)
class ExistingRecords:
    """The records in a file whose layout is to change.

    ``largest`` is the bytes of the largest payload of each kind; ``problem`` is why the records
    cannot be copied, "" if they can.
    """

    largest: Mapping[Kind, int] = field(default_factory=dict)
    problem: str = ""


def sizes_from_options(options: Mapping[str, object]) -> dict[Kind, int]:
    """Return the bytes of a copy of each kind that has a size, in MiB, in *options*."""
    what = "a whole number of MiB"
    return {
        kind: whole_number(options[option], option, 1, MAX_SIZE, what) * MEBIBYTE
        for kind, option in OPTIONS.items()
        if options.get(option) is not None
    }


def records_document(geometry: Geometry, paths: ClusterPaths) -> dict[str, object]:
    """Return the file of records as plain data, its sizes in MiB by their options."""
    return {
        "path": paths.state,
        "cluster": geometry.cluster,
        "max_hosts": geometry.max_hosts,
        # In a file of an earlier version they may be no whole number of MiB.
        **{option: geometry.copy_bytes[kind] / MEBIBYTE for kind, option in OPTIONS.items()},
    }


def desired_layout(present: Geometry, sizes: Mapping[Kind, int], max_hosts: int | None) -> Geometry:
    """Return the *present* layout with other *sizes* and room for *max_hosts*, where given."""
    sizes = {**present.copy_bytes, **sizes}
    return replace(present, copy_bytes=sizes, max_hosts=max_hosts or present.max_hosts)


def look_records(path: str, present: Geometry, desired: Geometry) -> ExistingRecords:
    """Return the records in the file at *path* if its layout is to change."""
    if desired == present:
        return ExistingRecords()
    problem = other_owner(path)
    if problem:
        return ExistingRecords(problem=problem)
    largest = dict.fromkeys(Kind, 0)
    try:
        for record in all_records(path, present):
            largest[record.kind] = max(largest[record.kind], len(record.payload))
    except FormatError as error:
        return ExistingRecords(problem=str(error).rstrip("."))
    return ExistingRecords(largest)


def other_owner(path: str) -> str:
    """Return that a file is another user's, so that its copy would not be; empty if it is ours."""
    if device_of(path):
        return ""
    try:
        owner = os.stat(path).st_uid  # noqa: PTH116
    except OSError as error:
        raise StorageError(f"{path} cannot be examined: {error.strerror}.") from error
    return "" if owner == os.geteuid() else f"{path} is user id {owner}'s: run this as that user"


def check_layout(
    present: Geometry, desired: Geometry, existing: ExistingRecords, users: tuple[str, ...]
) -> None:
    """Refuse a change of the layout that is not possible.

    Raises ``StorageError`` when a record does not fit or cannot be copied, and ``LeaseError``
    naming the *users* of a cluster that is in use.
    """
    if desired == present:
        return
    has = _differences(present, desired)
    refuse_conversion("The file of records", has, users, existing.problem)
    for kind, largest in existing.largest.items():
        if largest > desired.max_payload(kind):
            raise StorageError(
                f"The file of records has a {kind.name} record of {largest} bytes, which does not"
                f" fit into {OPTIONS[kind]}={desired.copy_bytes[kind] // MEBIBYTE}; nothing was"
                " changed."
            )


def refuse_conversion(what: str, has: str, users: tuple[str, ...], problem: str) -> None:
    """Raise why a file that was made with *has* is not converted: it has *users*, or a *problem*.

    Raises ``LeaseError`` and ``StorageError``.
    """
    if users:
        raise LeaseError(
            f"{what} was made with {has}; it is converted only while the cluster is not in use,"
            f" not by force either: {', '.join(users)}. Run the playbook storage_change, which"
            " stops the daemons, or leave the option out."
        )
    if problem:
        raise StorageError(f"{what} was made with {has} and cannot be converted: {problem}.")


def lay_out_anew(paths: ClusterPaths, desired: Geometry) -> bool:
    """Give the file of records the *desired* geometry; return False when it has it already.

    No node can join by a kernel lock meanwhile, and host leases are read once more.
    """
    with nobody_joins(paths):
        with RecordFile(paths.state) as file:
            present = file.geometry()
        if present == desired:
            return False
        content = laid_out(paths.state, present, desired)
        return create(paths.state, desired.size, content, mode=0o600, replace=True, sparse=True)


def laid_out(path: str, present: Geometry, desired: Geometry) -> Iterator[tuple[int, bytes]]:
    """Yield the pieces of a new file: its header, and each record at its new offset.

    The records are those in the file at *path*, which has the *present* geometry.
    """
    yield 0, encode_header(desired)
    for record in all_records(path, present):
        data = encode_record(record)
        if len(record.payload) > desired.max_payload(record.kind):
            raise StorageError(
                f"{path}: the {record.kind.name} record of host id {record.host_id} has grown and"
                " does not fit any more; nothing was changed."
            )
        yield desired.offset(record.kind, record.host_id, 0), data


def all_records(path: str, geometry: Geometry) -> Iterator[Record]:
    """Yield the newest record of every slot; ``FormatError`` at a slot that is damaged."""
    with RecordFile(path) as file:
        for host_id in range(1, geometry.max_hosts + 1):
            for kind in Kind:
                record = file.read(kind, host_id)
                if record is not None:
                    yield record


@contextmanager
def nobody_joins(paths: ClusterPaths) -> Iterator[None]:
    """Hold the kernel locks of all host ids; raises ``LeaseError`` when one is in use."""
    if not exists(paths.lockspace):
        yield
        return
    guard = KernelLock(paths.lockspace, 0, MEBIBYTE)
    if not guard.take():
        raise LeaseError(f"{paths.lockspace} is in use by a node; nothing is converted.")
    try:
        hosts = read_lockspace(paths.lockspace)
        refuse_users(False, lease_users(hosts), "converted", paths)
        yield
    finally:
        guard.release()


def _differences(present: Geometry, desired: Geometry) -> str:
    """Return as text what of the *present* layout is not as *desired*."""
    has = [
        f"{option}={present.copy_bytes[kind] / MEBIBYTE:g}"
        for kind, option in OPTIONS.items()
        if present.copy_bytes[kind] != desired.copy_bytes[kind]
    ]
    if present.max_hosts != desired.max_hosts:
        has.append(f"max_hosts={present.max_hosts}")
    return " and ".join(has)
