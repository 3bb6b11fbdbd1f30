# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Setting a block device up for a cluster, repairing its header, and giving it up again.

Nothing of anybody else is ever overwritten, not by force either: a device gets a header only if it
is free (``foreign``), and loses it only once its areas were removed.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ...errors import FormatError, StorageError
from ...names import MAX_HOST_ID, cluster_name, whole_number
from ..device import (
    DeviceFacts,
    check_header,
    is_device,
    open_device,
    read_facts,
    read_header_data,
)
from ..device_change import DeviceChange
from ..device_header import GRAIN, SECTOR_SIZES, DeviceHeader, decode_copies
from ..lockspace.leader_record import WHOLE_AREA_BYTES
from ..lockspace.resource_lease import LEASE_NAMES
from ..record_format import DEFAULT_COPY_BYTES, Geometry, Kind
from ..whiteboard.block import BLOCK_BYTES
from .foreign import signature, why_not_free
from .metadata import DEFAULT_MAX_HOSTS
from .plan import Plan, Step


@dataclass(frozen=True)
class DeviceWanted:
    """The desired device; ``max_hosts`` and ``record_sizes`` are what it must have room for."""

    name: str
    path: str
    present: bool = True
    max_hosts: int = DEFAULT_MAX_HOSTS
    record_sizes: Mapping[Kind, int] = field(default_factory=dict)


@dataclass(frozen=True)
class DeviceFound:
    """What there is on a device.

    ``header`` is None without one; then ``obstacle`` is why it must not get one, "" if it may.
    ``problem`` is what is wrong with one copy of the header.
    """

    facts: DeviceFacts
    header: DeviceHeader | None = None
    obstacle: str = ""
    problem: str = ""


def look_device(path: str, name: str) -> DeviceFound:
    """Return what there is on the device at *path*.

    Raises ``StorageError`` when *path* is no block device, and when the device is that of another
    cluster than *name* or is not as it was created.
    """
    cluster_name(name)
    if not is_device(path):
        raise StorageError(
            f"{path} is not a block device on this node; attach the device, or name another path."
        )
    descriptor = open_device(path)
    try:
        facts = read_facts(descriptor, path)
        if facts.size < GRAIN or facts.sector_size not in SECTOR_SIZES:
            return DeviceFound(
                facts,
                obstacle=f"{path} has {facts.size} bytes in sectors of {facts.sector_size};"
                f" expected at least {GRAIN} in sectors of 512 or 4096",
            )
        try:
            copies = decode_copies(read_header_data(descriptor, path), path)
        except FormatError as error:
            return DeviceFound(facts, obstacle=signature(path) or str(error).rstrip("."))
        if copies.header is None:
            return DeviceFound(facts, obstacle=why_not_free(path, descriptor))
    finally:
        os.close(descriptor)
    check_header(copies.header, facts, path, name)
    return DeviceFound(facts, copies.header, problem=copies.problem)


def plan_device(wanted: DeviceWanted, found: DeviceFound) -> Plan:
    """Return the step to the wanted device, if any.

    Raises ``StorageError`` for a device that holds anything else, is read-only or too small, and
    for one that still has areas and is to be given up.
    """
    before = state_of(found, wanted.path)
    if not wanted.present:
        return _removal(wanted, found, before)
    header = found.header
    if header is None:
        if found.obstacle:
            raise StorageError(f"{found.obstacle}.")
        _check_room(wanted, found.facts)
        header = DeviceHeader(wanted.name, "", found.facts.sector_size)
        return _changed("create", wanted.path, found, before, header)
    if found.problem:
        return _changed("repair", wanted.path, found, before, header)
    return Plan(before, before)


def apply_device(plan: Plan, wanted: DeviceWanted) -> bool:
    """Take the step of *plan*; return whether there was one.

    Before anything is written, and once more before the header is, the plan has to be the same.
    """
    for step in plan.steps:
        with DeviceChange(wanted.path) as change:
            _check_same(plan, wanted)
            change.announce()
            _check_same(plan, wanted)
            if step.action == "remove":
                change.erase()
            else:
                header = decode_copies(change.header_data(), wanted.path).header
                new = DeviceHeader(wanted.name, str(uuid.uuid4()), change.facts().sector_size)
                change.write_header(header or new)
    return plan.changed


def state_of(found: DeviceFound, path: str) -> dict[str, object]:
    """Return the device as plain data; ``device`` is None without a header."""
    header = found.header
    if header is None:
        return {"device": None}
    end = max((area.end for area in header.areas.values()), default=GRAIN)
    return {
        "device": {
            "path": path,
            "cluster": header.cluster,
            "id": header.storage_id or None,
            "sector_size": header.sector_size,
            "size": found.facts.size,
            "free": max(found.facts.size - end, 0),
            "areas": [
                {"kind": kind, "offset": area.offset, "size": area.size}
                for kind, area in sorted(header.areas.items(), key=lambda item: item[1].offset)
            ],
            "problem": found.problem,
        }
    }


def _removal(wanted: DeviceWanted, found: DeviceFound, before: dict[str, object]) -> Plan:
    """Return the plan that makes the header blank; a device without one is left alone."""
    header = found.header
    if header is None:
        return Plan(before, before)
    if header.areas:
        raise StorageError(
            f"{wanted.path} still has {', '.join(sorted(header.areas))} of cluster"
            f" {header.cluster}; remove them first, with the modules metadata and lockspace."
        )
    return _changed("remove", wanted.path, found, before, None)


def _changed(
    action: str,
    path: str,
    found: DeviceFound,
    before: dict[str, object],
    header: DeviceHeader | None,
) -> Plan:
    """Return the plan with one step, after which the device has *header*."""
    if found.facts.read_only:
        raise StorageError(f"{path} is read-only on this node; make it writable.")
    after = state_of(replace(found, header=header, problem=""), path)
    return Plan(before, after, (Step(action, path),))


def _check_same(plan: Plan, wanted: DeviceWanted) -> None:
    """Raise ``StorageError`` unless the device still is as *plan* found it."""
    if plan_device(wanted, look_device(wanted.path, wanted.name)).before != plan.before:
        raise StorageError(f"{wanted.path} was changed by another node meanwhile; run this again.")


def _check_room(wanted: DeviceWanted, facts: DeviceFacts) -> None:
    """Raise ``StorageError`` unless all storage files of the cluster fit on the device."""
    whole_number(wanted.max_hosts, "max_hosts", 1, MAX_HOST_ID, "a number")
    area = WHOLE_AREA_BYTES[facts.sector_size]
    sizes = {**DEFAULT_COPY_BYTES, **wanted.record_sizes}
    files = (
        area,
        len(LEASE_NAMES) * area,
        (wanted.max_hosts + 1) * BLOCK_BYTES,
        Geometry(wanted.name, wanted.max_hosts, sizes).size,
    )
    needed = GRAIN + sum(-(-size // GRAIN) * GRAIN for size in files)
    if facts.size < needed:
        raise StorageError(
            f"{wanted.path} is too small: it has {facts.size >> 20} MiB, and cluster {wanted.name}"
            f" with {wanted.max_hosts} host ids needs {needed >> 20} MiB; use a larger device, or"
            " a smaller max_hosts."
        )
