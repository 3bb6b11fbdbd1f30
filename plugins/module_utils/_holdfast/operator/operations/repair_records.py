# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Repairing records that went back in time.

The repair is a configuration of a new generation, written under the configuration lease into this
node's slot.  The manager takes it up by probing every service on every node
(``cluster/crm/repair_plan.py``).  If storage and nodes differ, the operator chooses what is right:
what runs, or what is in the file.
"""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import replace

from ...cluster.crm.repair_plan import Keep, Repair, plan_repair
from ...cluster.model.maintenance import Maintenance
from ...cluster.model.report import Report
from ...errors import FormatError, LeaseError, StorageError
from ...node import record_faults
from ...node.cluster_storage import CONFIGURATION_LEASE, ClusterStorage
from ...node.configuration import NodeConfiguration
from ...node.daemon.record_guard import read_records, report_older_than_told
from ...storage.whiteboard.board import Board
from .change import WAIT, acquire_configuration, await_manager, change_desired, refuse_too_large

REPORT_WAIT = 30.0
"""Seconds for an LRM to write its report again: it looks every 5 s, and its node may be starting.
A repair goes without a node whose heartbeat did not change in that time."""

REPORT_LOOK = 0.5


def repair_records(
    configuration: NodeConfiguration, keep: Keep, by: Maintenance, *, check: bool, timeout: float
) -> Repair:
    """Repair the records, unless they are current, and return the repair; *check* only plans it.

    If they are current, but a copy of the configuration is damaged, the same configuration is
    written into this node's slot with the next version, which takes the copy out of use.

    Waits up to *timeout* seconds for the manager to take the repair up, not at all if that is 0.
    Raises ``LeaseError`` without the configuration lease, ``StorageError`` when the storage cannot
    be read or written, ``HoldfastError`` when no manager took it up in time.
    """
    with closing(ClusterStorage(configuration)) as storage:
        repair = _plan(configuration, storage, keep, by)
        if not repair.regressions:
            damaged = not record_faults.is_configuration_current(storage)
            if damaged and not check:
                change_desired(configuration, lambda desired: desired, check=False, again=True)
            return replace(repair, written_again=damaged)
        if check:
            return repair
        refuse_too_large(storage, repair.after, configuration.members)
        storage.adopt_host_lease()
        version = acquire_configuration(storage, WAIT)
        try:
            repair = _plan(configuration, storage, keep, by)
            repair = replace(repair, after=replace(repair.after, version=version))
            storage.write_desired(repair.after)
            newest, _slot = storage.readable_desired()
            if newest.generation != repair.after.generation or newest.version != version:
                raise LeaseError("Another repair was written at the same time; look at the status.")
        finally:
            storage.leases.release(CONFIGURATION_LEASE)
    if timeout:
        generation = repair.after.generation
        await_manager(
            configuration,
            0,
            timeout,
            lambda state: (
                "" if state.generation >= generation else "No manager has applied the repair"
            ),
        )
    return repair


def _plan(
    configuration: NodeConfiguration, storage: ClusterStorage, keep: Keep, by: Maintenance
) -> Repair:
    """Return what a repair would do now, from the reports of all nodes that are alive.

    A report that went back too does not say what its node runs, so this waits until the LRM has
    written it again, which takes seconds.  Raises ``StorageError`` when it does not.
    """
    began, first = time.monotonic(), storage.board.read()
    ids = configuration.host_ids()
    while True:
        board = storage.board.read()
        reports, lost = _reports(configuration, storage, board)
        if not lost:
            break
        if time.monotonic() - began >= REPORT_WAIT:
            alive = [name for name in lost if _beat(first, ids[name]) != _beat(board, ids[name])]
            if not alive:
                break
            raise StorageError(
                f"Not repairing the records: {alive[0]} is alive, but what it runs is not known, as"
                f" {lost[alive[0]]}. See that its LRM can write to the storage, or fence"
                f" {alive[0]}; then try again."
            )
        time.sleep(REPORT_LOOK)
    records = read_records(configuration, storage, reports)
    # No node takes over while only a silent node knows what it acted on.
    silent = tuple(
        f"{name} is silent, and {why}: a service that only {name} knows of is not kept"
        for name, why in sorted(lost.items())
    )
    records = replace(records, regressions=(*records.regressions, *silent))
    return plan_repair(records, reports, keep, by)


def _reports(
    configuration: NodeConfiguration, storage: ClusterStorage, board: Board
) -> tuple[dict[str, Report], dict[str, str]]:
    """Return the reports that are current, and why each other node has none."""
    reports: dict[str, Report] = {}
    lost: dict[str, str] = {}
    for name, member in configuration.members.items():
        try:
            report = storage.read_report(member.host_id)
        except FormatError as error:
            lost[name] = f"its report is damaged: {error}"
            continue
        older = report_older_than_told(storage, member.host_id, board.hosts.get(member.host_id))
        if older:
            lost[name] = older
        elif report is not None:
            reports[name] = report
    return reports, lost


def _beat(board: Board, host_id: int) -> int | None:
    """Return the timestamp of a node's heartbeat, None if there is none."""
    block = board.hosts.get(host_id)
    return block.timestamp if block is not None else None


def describe(repair: Repair, keep: Keep) -> list[str]:
    """Return what a repair does, as lines for an operator."""
    lines = list(repair.regressions)
    lines.append(
        f"keep {keep.value}: generation {repair.after.generation} begins with"
        f" {len(repair.after.services)} services"
    )
    lines += [
        f"{service_id}: declared as {node} runs it" for service_id, node in repair.taken.items()
    ]
    lines += [
        f"{service_id}: its definition is lost; declare it again" for service_id in repair.lost
    ]
    lines += [
        f"{service_id}: not in the configuration, stopped on {node}"
        for service_id, node in repair.stopped.items()
    ]
    lines.append("every service is then probed on every node before anything is started")
    return lines
