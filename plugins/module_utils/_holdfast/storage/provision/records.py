# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sizes of the records: chosen at creation, changed only while no node uses the file.

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
from ..records import (
    MAX_COPY_BYTES,
    Geometry,
    Kind,
    Record,
    RecordFile,
    encode_header,
    encode_record,
)
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
class RecordsFound:
    """The records in a file whose sizes are to change.

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


def look_records(path: str, present: Geometry, sizes: Mapping[Kind, int]) -> RecordsFound:
    """Return the records in the file at *path* if its sizes are not *sizes*."""
    if not _differs(present, sizes):
        return RecordsFound()
    try:
        owner = os.geteuid() if device_of(path) else os.stat(path).st_uid  # noqa: PTH116
    except OSError as error:
        raise StorageError(f"{path} cannot be examined: {error.strerror}.") from error
    # Its copy would be another user's.
    if owner != os.geteuid():
        return RecordsFound(problem=f"{path} is user id {owner}'s: run this as that user")
    largest = dict.fromkeys(Kind, 0)
    try:
        for record in _records(path, present):
            largest[record.kind] = max(largest[record.kind], len(record.payload))
    except FormatError as error:
        return RecordsFound(problem=str(error).rstrip("."))
    return RecordsFound(largest)


def plan_sizes(
    present: Geometry, sizes: Mapping[Kind, int], found: RecordsFound, users: tuple[str, ...]
) -> Geometry:
    """Return the geometry with *sizes*, the *present* one if it has them.

    Raises ``StorageError`` when a record does not fit or cannot be copied, and ``LeaseError``
    naming the *users* of a cluster that is in use.
    """
    if not _differs(present, sizes):
        return present
    wanted = replace(present, copy_bytes={**present.copy_bytes, **sizes})
    has = _present_sizes(present, sizes)
    if users:
        raise LeaseError(
            f"The file of records was made with {has}; it is converted only while the cluster"
            f" is not in use, not by force either: {', '.join(users)}. Stop holdfast there, or"
            " leave the size out."
        )
    if found.problem:
        raise StorageError(
            f"The file of records was made with {has} and cannot be converted: {found.problem}."
        )
    for kind, largest in found.largest.items():
        if largest > wanted.max_payload(kind):
            raise StorageError(
                f"The file of records has a {kind.name} record of {largest} bytes, which does not"
                f" fit into {OPTIONS[kind]}={sizes[kind] // MEBIBYTE}; nothing was changed."
            )
    return wanted


def lay_out_anew(paths: ClusterPaths, wanted: Geometry) -> bool:
    """Give the file of records the *wanted* geometry; return False when it has it already.

    No node can join by a kernel lock meanwhile, and host leases are read once more.
    """
    with _nobody_joins(paths):
        with RecordFile(paths.state) as file:
            present = file.geometry()
        if present.copy_bytes == wanted.copy_bytes:
            return False
        content = _laid_out(paths.state, present, wanted)
        return create(paths.state, wanted.size, content, mode=0o600, replace=True, sparse=True)


def _laid_out(path: str, present: Geometry, wanted: Geometry) -> Iterator[tuple[int, bytes]]:
    """Yield the pieces of the new file: its header, and each record at its new offset."""
    yield 0, encode_header(wanted)
    for record in _records(path, present):
        data = encode_record(record)
        if len(record.payload) > wanted.max_payload(record.kind):
            raise StorageError(
                f"{path}: the {record.kind.name} record of host id {record.host_id} has grown and"
                " does not fit any more; nothing was changed."
            )
        yield wanted.offset(record.kind, record.host_id, 0), data


def _records(path: str, geometry: Geometry) -> Iterator[Record]:
    """Yield the newest record of every slot; ``FormatError`` at a slot that is damaged."""
    with RecordFile(path) as file:
        for host_id in range(1, geometry.max_hosts + 1):
            for kind in Kind:
                record = file.read(kind, host_id)
                if record is not None:
                    yield record


@contextmanager
def _nobody_joins(paths: ClusterPaths) -> Iterator[None]:
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


def _differs(present: Geometry, sizes: Mapping[Kind, int]) -> bool:
    return any(present.copy_bytes[kind] != size for kind, size in sizes.items())


def _present_sizes(present: Geometry, sizes: Mapping[Kind, int]) -> str:
    """Return as text the present sizes of the kinds in *sizes*."""
    sizes_now = {kind: present.copy_bytes[kind] / MEBIBYTE for kind in sizes}
    return " and ".join(f"{OPTIONS[kind]}={size:g}" for kind, size in sizes_now.items())
