# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Repairing records that went back in time: the way out of a regression, for an operator.

The repair is a configuration of a new generation, written under the configuration lease into
this node's slot.  The manager takes it up by looking for every service on every node
(``manager/repair.py``).  What is right, if storage and nodes differ, is for the operator to say:
what runs, or what is in the file.
"""

from __future__ import annotations

from dataclasses import replace

from ..errors import FormatError, LeaseError
from ..manager.maintenance import Maintenance
from ..manager.repair_plan import Keep, Repair, plan_repair
from ..manager.report import Report
from ..manager.state import ClusterState
from ..manager.wanted import Wanted
from .await_manager import await_manager
from .cluster_storage import CONFIGURATION_LEASE, ClusterStorage
from .configuration import NodeConfiguration
from .record_guard import read_records, report_older_than_told
from .wanted_change import WAIT, acquire_configuration
from .wanted_size import refuse_too_large


def repair_records(
    configuration: NodeConfiguration, keep: Keep, by: Maintenance, *, check: bool, timeout: float
) -> Repair:
    """Repair the records, or only say how with *check*; nothing is done if they are current.

    Waits up to *timeout* seconds for the manager to take the repair up, not at all if that is 0.
    Raises ``LeaseError`` when the configuration lease cannot be had, ``StorageError`` when the
    storage cannot be read or written, ``HoldfastError`` when no manager took it up in time.
    """
    storage = ClusterStorage(configuration)
    try:
        repair = _plan(configuration, storage, keep, by)
        if check:
            return repair
        if not repair.regressions:
            return replace(repair, written_again=_write_own_again(storage))
        refuse_too_large(storage, repair.after, configuration.members)
        storage.adopt_host_lease()
        version = acquire_configuration(storage, WAIT)
        try:
            repair = _plan(configuration, storage, keep, by)
            repair = replace(repair, after=replace(repair.after, version=version))
            storage.write_wanted(repair.after)
            newest, _slot = storage.readable_wanted()
            if newest.generation != repair.after.generation or newest.version != version:
                raise LeaseError("Another repair was written at the same time; look at the status.")
        finally:
            storage.leases.release(CONFIGURATION_LEASE)
    finally:
        storage.close()
    if timeout:
        _wait(configuration, repair.after, timeout)
    return repair


def _write_own_again(storage: ClusterStorage) -> bool:
    """Write this node's configuration record again if one of its copies is damaged."""
    if not storage.own_configuration_is_damaged():
        return False
    storage.adopt_host_lease()
    acquire_configuration(storage, WAIT)
    try:
        storage.write_own_configuration_again()
    finally:
        storage.leases.release(CONFIGURATION_LEASE)
    return True


def _plan(
    configuration: NodeConfiguration, storage: ClusterStorage, keep: Keep, by: Maintenance
) -> Repair:
    board = storage.board.read()
    reports: dict[str, Report] = {}
    for name, member in configuration.members.items():
        try:
            report = storage.read_report(member.host_id)
        except FormatError:
            continue
        block = board.hosts.get(member.host_id)
        if report is not None and not report_older_than_told(storage, member.host_id, block):
            reports[name] = report
    return plan_repair(read_records(configuration, storage, reports), reports, keep, by)


def _wait(configuration: NodeConfiguration, after: Wanted, timeout: float) -> None:
    def done(state: ClusterState) -> bool:
        return state.generation >= after.generation

    def why(_state: ClusterState) -> str:
        return "No manager has taken up the repair"

    await_manager(configuration, 0, timeout, done, why)


def describe(repair: Repair, keep: Keep) -> list[str]:
    """Return what a repair does, a line for each thing, for an operator."""
    lines = list(repair.regressions)
    lines.append(
        f"keep {keep.value}: generation {repair.after.generation} begins with"
        f" {len(repair.after.services)} services"
    )
    lines += [
        f"{service_id}: declared as {node} runs it" for service_id, node in repair.taken.items()
    ]
    lines += [
        f"{service_id}: not in the configuration, stopped on {node}"
        for service_id, node in repair.stopped.items()
    ]
    lines.append("every service is then looked for on every node before anything is started")
    return lines
