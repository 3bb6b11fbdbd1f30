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
class DesiredDevice:
    """The desired device; ``max_hosts`` and ``record_sizes`` are what it must have room for."""

    name: str
    path: str
    present: bool = True
    max_hosts: int = DEFAULT_MAX_HOSTS
    record_sizes: Mapping[Kind, int] = field(default_factory=dict)


@dataclass(frozen=True)
class ExistingDevice:
    """What there is on a device.

    ``header`` is None without one; then ``obstacle`` is why it must not get one, "" if it may.
    ``problem`` is what is wrong with one copy of the header.
    """

    facts: DeviceFacts
    header: DeviceHeader | None = None
    obstacle: str = ""
    problem: str = ""


def look_device(path: str, name: str) -> ExistingDevice:
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
            return ExistingDevice(
                facts,
                obstacle=f"{path} has {facts.size} bytes in sectors of {facts.sector_size};"
                f" expected at least {GRAIN} in sectors of 512 or 4096",
            )
        try:
            copies = decode_copies(read_header_data(descriptor, path), path)
        except FormatError as error:
            return ExistingDevice(facts, obstacle=signature(path) or str(error).rstrip("."))
        if copies.header is None:
            return ExistingDevice(facts, obstacle=why_not_free(path, descriptor))
    finally:
        os.close(descriptor)
    check_header(copies.header, facts, path, name)
    return ExistingDevice(facts, copies.header, problem=copies.problem)


def plan_device(desired: DesiredDevice, existing: ExistingDevice) -> Plan:
    """Return the step to the desired device, if any.

    Raises ``StorageError`` for a device that holds anything else, is read-only or too small, and
    for one that still has areas and is to be given up.
    """
    before = state_of(existing, desired.path)
    if not desired.present:
        return _removal(desired, existing, before)
    header = existing.header
    if header is None:
        if existing.obstacle:
            raise StorageError(f"{existing.obstacle}.")
        _check_room(desired, existing.facts)
        header = DeviceHeader(desired.name, "", existing.facts.sector_size)
        return _changed("create", desired.path, existing, before, header)
    if existing.problem:
        return _changed("repair", desired.path, existing, before, header)
    return Plan(before, before)


def apply_device(plan: Plan, desired: DesiredDevice) -> bool:
    """Take the step of *plan*; return whether there was one.

    Before anything is written, and once more before the header is, the plan has to be the same.
    """
    for step in plan.steps:
        with DeviceChange(desired.path) as change:
            _check_same(plan, desired)
            change.announce()
            _check_same(plan, desired)
            if step.action == "remove":
                change.erase()
            else:
                header = decode_copies(change.header_data(), desired.path).header
                new = DeviceHeader(desired.name, str(uuid.uuid4()), change.facts().sector_size)
                change.write_header(header or new)
    return plan.changed


def state_of(existing: ExistingDevice, path: str) -> dict[str, object]:
    """Return the device as plain data; ``device`` is None without a header."""
    header = existing.header
    if header is None:
        return {"device": None}
    end = max((area.end for area in header.areas.values()), default=GRAIN)
    return {
        "device": {
            "path": path,
            "cluster": header.cluster,
            "id": header.storage_id or None,
            "sector_size": header.sector_size,
            "size": existing.facts.size,
            "free": max(existing.facts.size - end, 0),
            "areas": [
                {"kind": kind, "offset": area.offset, "size": area.size}
                for kind, area in sorted(header.areas.items(), key=lambda item: item[1].offset)
            ],
            "problem": existing.problem,
        }
    }


def _removal(desired: DesiredDevice, existing: ExistingDevice, before: dict[str, object]) -> Plan:
    """Return the plan that makes the header blank; a device without one is left alone."""
    header = existing.header
    if header is None:
        return Plan(before, before)
    if header.areas:
        raise StorageError(
            f"{desired.path} still has {', '.join(sorted(header.areas))} of cluster"
            f" {header.cluster}; remove them first, with the modules metadata and lockspace."
        )
    return _changed("remove", desired.path, existing, before, None)


def _changed(
    action: str,
    path: str,
    existing: ExistingDevice,
    before: dict[str, object],
    header: DeviceHeader | None,
) -> Plan:
    """Return the plan with one step, after which the device has *header*."""
    if existing.facts.read_only:
        raise StorageError(f"{path} is read-only on this node; make it writable.")
    after = state_of(replace(existing, header=header, problem=""), path)
    return Plan(before, after, (Step(action, path),))


def _check_same(plan: Plan, desired: DesiredDevice) -> None:
    """Raise ``StorageError`` unless the device still is as *plan* found it."""
    if plan_device(desired, look_device(desired.path, desired.name)).before != plan.before:
        raise StorageError(f"{desired.path} was changed by another node meanwhile; run this again.")


def _check_room(desired: DesiredDevice, facts: DeviceFacts) -> None:
    """Raise ``StorageError`` unless all storage files of the cluster fit on the device."""
    whole_number(desired.max_hosts, "max_hosts", 1, MAX_HOST_ID, "a number")
    area = WHOLE_AREA_BYTES[facts.sector_size]
    sizes = {**DEFAULT_COPY_BYTES, **desired.record_sizes}
    files = (
        area,
        len(LEASE_NAMES) * area,
        (desired.max_hosts + 1) * BLOCK_BYTES,
        Geometry(desired.name, desired.max_hosts, sizes).size,
    )
    needed = GRAIN + sum(-(-size // GRAIN) * GRAIN for size in files)
    if facts.size < needed:
        raise StorageError(
            f"{desired.path} is too small: it has {facts.size >> 20} MiB, and cluster"
            f" {desired.name} with {desired.max_hosts} host ids needs {needed >> 20} MiB; use a"
            " larger device, or a smaller max_hosts."
        )
