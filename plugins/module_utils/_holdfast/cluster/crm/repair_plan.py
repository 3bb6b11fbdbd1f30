# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Repair of the records: what went back in time, and what a repair does.

The state with which the next manager begins is in ``takeover.py``.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from ..model.desired import DesiredState
from ..model.maintenance import Maintenance
from ..model.report import NOT_RUNNING, Report, Sight
from ..model.service import STARTED, Service
from ..model.state import ClusterState
from ..model.states import ACTIVE
from ..model.versions import Floor, LeaseVersion, known_floors, regressions


@dataclass(frozen=True)
class StoredRecords:
    """The newest readable records.

    *damaged* says which records have no whole copy, *configuration_damaged* that the configuration
    is one of them.  *kept* is the report on this node's local disk.
    """

    state: ClusterState | None
    desired: DesiredState
    slot: int
    damaged: tuple[str, ...]
    configuration_damaged: bool
    kept: Report | None
    leases: tuple[LeaseVersion, int]


@dataclass(frozen=True)
class Records:
    """The newest readable records, and why they must not be acted on.

    *state* is None if no manager has written one.  *regressions* is empty if all records are
    current.  *generation* is the highest known outside the configuration.  *configuration_older*
    says that a newer configuration existed or may have.  *floors* are the versions compared with.
    """

    state: ClusterState | None
    desired: DesiredState
    slot: int
    regressions: tuple[str, ...]
    generation: int
    configuration_older: bool = False
    floors: tuple[Floor, ...] = ()

    @property
    def repaired(self) -> bool:
        """Whether an operator has repaired the records and no manager has adopted that yet."""
        return self.desired.generation > self.generation


def compare(
    state: ClusterState | None,
    desired: DesiredState,
    slot: int,
    floors: Iterable[Floor],
    leases: tuple[LeaseVersion, int],
    damaged: Iterable[str] = (),
    *,
    configuration_older: bool = False,
) -> Records:
    """Return the newest records, compared with all *floors* and both *leases*.

    *damaged* has a sentence for each record of which a newer one may be damaged.
    *configuration_older* says that the configuration is one of them.
    """
    known = list(floors)
    older = regressions(state, desired, known, *leases)
    generation = max((floor.generation for floor in known), default=0)
    minimum = [(floor.generation, floor.config_version) for floor in known]
    if state is not None:
        generation = max(generation, state.generation)
        minimum.append((state.generation, state.config_version))
    if not all(desired.at_least(*versions) for versions in minimum):
        configuration_older = True
    return Records(
        state, desired, slot, (*damaged, *older), generation, configuration_older, tuple(known)
    )


def compare_stored(
    stored: StoredRecords, reports: Mapping[str, Report | Sight], node: str
) -> Records:
    """Return what *node* read, compared with what each node has acted on by its report."""
    return compare(
        stored.state,
        stored.desired,
        stored.slot,
        known_floors(reports, node, stored.kept),
        stored.leases,
        stored.damaged,
        configuration_older=stored.configuration_damaged,
    )


class Keep(str, enum.Enum):
    """What is right where storage and nodes differ.

    running: running services go on, even if the configuration on storage lacks them. file: services
    that the configuration on storage lacks are stopped.
    """

    RUNNING = "running"
    FILE = "file"


@dataclass(frozen=True)
class Repair:
    """The effect of a repair.  *regressions* are its reason, empty if nothing needs repair.

    *taken* are services whose definition comes from the report of the node named beside them.
    *lost* are services in the manager's record without a known definition.  *stopped* are
    undeclared services that run on the node beside them.  *written_again* says that only a damaged
    copy of the configuration is written again.
    """

    regressions: tuple[str, ...]
    after: DesiredState
    taken: Mapping[str, str]
    stopped: Mapping[str, str]
    lost: tuple[str, ...] = ()
    written_again: bool = False


def plan_repair(
    records: Records, reports: Mapping[str, Report], keep: Keep, by: Maintenance
) -> Repair:
    """Return what a repair would do with these records and reports."""
    running, last = _definitions(reports)
    declared = dict(records.desired.services)
    taken: dict[str, str] = {}
    stopped: dict[str, str] = {}
    lost: list[str] = []
    if keep is Keep.FILE:
        stopped = {one: node for one, (node, _known) in running.items() if one not in declared}
    elif records.configuration_older:
        # Otherwise the configuration is current, and a service that runs differently is being
        # changed.
        for service_id in sorted({*running, *_active(records), *_beyond(records, reports)}):
            known = declared.get(service_id)
            if service_id in running:
                node, service = running[service_id]
            elif known is not None:
                continue
            elif service_id in last:
                node, service = last[service_id]
            else:
                lost.append(service_id)
                continue
            if known is None or known.state != STARTED or known.digest() != service.digest():
                declared[service_id] = replace(service, state=STARTED)
                taken[service_id] = node
    generation = max(records.generation, records.desired.generation) + 1
    after = replace(
        records.desired,
        services=declared,
        generation=generation,
        repaired_by=replace(by, reason=f"keep {keep.value}: {by.reason}"),
    )
    return Repair(records.regressions, after, taken, stopped, tuple(lost))


def _active(records: Records) -> list[str]:
    """Return the services that should run by a manager's record newer than the configuration."""
    state = records.state
    if state is None or records.desired.at_least(state.generation, state.config_version):
        return []
    return [key for key, status in state.services.items() if status.underlying in ACTIVE]


def _beyond(records: Records, reports: Mapping[str, Report]) -> list[str]:
    """Return the services of nodes that acted on more than the manager's record has.

    Services that stopped there, for example in a power cut, should run as far as anyone knows.
    """
    state = records.state or ClusterState()
    known = (state.generation, state.epoch, state.commands)
    return [
        service_id
        for report in reports.values()
        if (report.generation, report.epoch, report.commands) > known
        for service_id in report.services
    ]


Definitions = dict[str, tuple[str, Service]]
"""Each service with a node that reports it and the definition known there."""


def _definitions(reports: Mapping[str, Report]) -> tuple[Definitions, Definitions]:
    """Return the services that nodes run, and all that they know."""
    running: Definitions = {}
    last: Definitions = {}
    # The report of the node that acted on the latest command wins.
    newest_last = sorted(reports.items(), key=lambda one: (one[1].epoch, one[1].commands, one[0]))
    for node, report in newest_last:
        for service_id, local in report.services.items():
            last[service_id] = (node, local.definition)
            if local.state not in NOT_RUNNING:
                running[service_id] = (node, local.definition)
    return running, last
