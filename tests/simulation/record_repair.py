# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an operator does who repairs the records: see ``operator/operations/repair_records.py``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.repair_plan import (
    Keep,
    Records,
    Repair,
    compare,
    plan_repair,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.maintenance import (  # noqa: E501
    Maintenance,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    Report,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.versions import (
    known_floors,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.simulator.machine import (
    EPOCH,
    Machine,
)

if TYPE_CHECKING:
    from ansible_collections.holdfast.ha.tests.simulation.faulty_fleet import FaultyFleet


def read_records(fleet: FaultyFleet, machine: Machine, reports: Mapping[str, Report]) -> Records:
    """Read the newest records on *machine* and compare them with all floors."""
    storage = fleet.world.storage
    state, unreadable = storage.newest_manager()
    damaged = ["a record is damaged: the manager's"] if unreadable else []
    if not storage.desired_readable:
        damaged.append("a record is damaged: the configuration")
    return compare(
        state,
        storage.desired,
        1,
        known_floors(reports, machine.name, machine.kept.read()[1]),
        storage.lease_versions(),
        damaged,
        configuration_older=not storage.desired_readable,
    )


def believed_reports(fleet: FaultyFleet) -> dict[str, Report]:
    """Return the reports that somebody believes who reads them for the first time."""
    slots = fleet.world.storage.reports
    return {
        name: slot.value
        for name, slot in slots.items()
        if slot.value is not None and not slot.damaged and slot.sequence >= slot.told
    }


def repair(fleet: FaultyFleet, keep: Keep) -> Repair | None:
    """Repair the records as an operator does on a node that is up; None if that cannot be done."""
    world, storage = fleet.world, fleet.world.storage
    able = [one for one in world.machines.values() if one.awake and one.storage and not one.freed]
    if not able:
        return None
    reports = believed_reports(fleet)
    by = Maintenance("asked for", "operator", EPOCH + world.now)
    done = plan_repair(read_records(fleet, able[0], reports), reports, keep, by)
    if not done.regressions:
        return done
    world.say(f"the records are repaired, {keep.value} is kept: {'; '.join(done.regressions)}")
    fleet.went_back = True
    world.before_change(None)
    storage.configuration_lease += 1
    storage.note_leases(world.now)
    done = replace(done, after=replace(done.after, version=storage.configuration_lease))
    storage.configuration.put(done.after, world.now)
    storage.desired_at = world.now
    world.after_change(None)
    return done
