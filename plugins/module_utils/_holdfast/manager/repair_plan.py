# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a CRM or an operator makes of the records on storage: what went back, how to repair it."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from .maintenance import Maintenance
from .report import Report
from .service import STARTED, Service
from .state import ClusterState
from .versions import Floor, LeaseVersion, regressions
from .wanted import Wanted


@dataclass(frozen=True)
class Records:
    """The newest records that can be read, and why they are not to be acted on.

    *state* is None if no manager ever wrote one; *regressions* is empty if both are current.
    *generation* is the highest that is known from anywhere but the configuration;
    *configuration_older* says that a newer configuration existed, or may have.
    """

    state: ClusterState | None
    wanted: Wanted
    slot: int
    regressions: tuple[str, ...]
    generation: int
    configuration_older: bool = False

    @property
    def repaired(self) -> bool:
        """Whether an operator has repaired the records, and no manager has taken that up yet."""
        return self.wanted.generation > self.generation


def compare(
    state: ClusterState | None,
    wanted: Wanted,
    slot: int,
    floors: Iterable[Floor],
    leases: tuple[LeaseVersion, int],
    damaged: Iterable[str] = (),
    *,
    configuration_older: bool = False,
) -> Records:
    """Return the newest records that were read, compared with all *floors* and both *leases*.

    *damaged* has a sentence for each record of which a newer one may have been damaged;
    *configuration_older* says that the configuration is one of them.
    """
    known = list(floors)
    older = regressions(state, wanted, known, *leases)
    generation = max((floor.generation for floor in known), default=0)
    minimum = [(floor.generation, floor.config_version) for floor in known]
    if state is not None:
        generation = max(generation, state.generation)
        minimum.append((state.generation, state.config_version))
    if not all(wanted.at_least(*versions) for versions in minimum):
        configuration_older = True
    return Records(state, wanted, slot, (*damaged, *older), generation, configuration_older)


class Keep(str, enum.Enum):
    """What is right where the storage and the nodes differ.

    running: what runs goes on, also what the configuration on storage does not have (any more).
    file: what the configuration on storage does not have is stopped.
    """

    RUNNING = "running"
    FILE = "file"


@dataclass(frozen=True)
class Repair:
    """What a repair does: *regressions* are its reason, empty if there is nothing to repair.

    *taken* are the services whose definition comes from the report of the node, named beside
    them, that runs them; *stopped* those that run there and are not declared.  *written_again*
    says that nothing went back, but a copy of this node's configuration record was damaged.
    """

    regressions: tuple[str, ...]
    after: Wanted
    taken: Mapping[str, str]
    stopped: Mapping[str, str]
    written_again: bool = False


def plan_repair(
    records: Records, reports: Mapping[str, Report], keep: Keep, by: Maintenance
) -> Repair:
    """Return what a repair would do, from what was read and what nodes report."""
    running = _running(reports)
    declared = dict(records.wanted.services)
    taken: dict[str, str] = {}
    stopped: dict[str, str] = {}
    for service_id, (node, service) in sorted(running.items()):
        known = declared.get(service_id)
        if keep is Keep.RUNNING:
            if not records.configuration_older:
                # It is what it was: what runs by another definition is just being changed.
                continue
            if known is None or known.state != STARTED or known.digest() != service.digest():
                declared[service_id] = replace(service, state=STARTED)
                taken[service_id] = node
        elif known is None:
            stopped[service_id] = node
    generation = max(records.generation, records.wanted.generation) + 1
    after = replace(
        records.wanted,
        services=declared,
        generation=generation,
        repaired_by=replace(by, reason=f"keep {keep.value}: {by.reason}"),
    )
    return Repair(records.regressions, after, taken, stopped)


def _running(reports: Mapping[str, Report]) -> dict[str, tuple[str, Service]]:
    """Return the services that nodes report, each with its node and what was started there."""
    found: dict[str, tuple[str, Service]] = {}
    # The report of the node that acted on the latest command counts.
    newest_last = sorted(reports.items(), key=lambda one: (one[1].epoch, one[1].commands, one[0]))
    for node, report in newest_last:
        for service_id in report.running():
            found[service_id] = (node, report.services[service_id].definition)
    return found
