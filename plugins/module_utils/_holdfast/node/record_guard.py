# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a CRM reads before it manages: the newest records, and whether they went back in time.

The rules are those of ``manager/versions.py``; here the floors are gathered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..errors import FormatError
from ..manager.report import Report, Sight
from ..manager.seen import NodeSeen
from ..manager.state import ClusterState
from ..manager.versions import (
    Floor,
    LeaseVersion,
    floor_of_report,
    regressions,
)
from ..manager.wanted import Wanted
from ..storage.whiteboard import HostBlock
from .cluster_storage import ClusterStorage
from .configuration import NodeConfiguration
from .heartbeat import report_number
from .kept_report import KeptReport


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


def read_records(
    configuration: NodeConfiguration,
    storage: ClusterStorage,
    reports: Mapping[str, Report | Sight],
) -> Records:
    """Read the newest records and compare them with all floors; *reports* were read before.

    Raises ``StorageError`` when the storage cannot be read at all.
    """
    state, damage = storage.readable_manager()
    damaged = [damage] if damage else []
    older_configuration = False
    try:
        wanted, slot = storage.read_wanted()
    except FormatError as error:
        wanted, slot = storage.readable_wanted()
        damaged.append(f"a record is damaged: {error}".rstrip("."))
        older_configuration = True
    manager_lease, configuration_lease = storage.lease_versions()
    floors = known_floors(configuration, reports)
    older = regressions(state, wanted, floors, manager_lease, configuration_lease)
    generation = max((floor.generation for floor in floors), default=0)
    minimum = [(floor.generation, floor.config_version) for floor in floors]
    if state is not None:
        generation = max(generation, state.generation)
        minimum.append((state.generation, state.config_version))
    if not all(wanted.at_least(*versions) for versions in minimum):
        older_configuration = True
    return Records(state, wanted, slot, (*damaged, *older), generation, older_configuration)


def known_floors(
    configuration: NodeConfiguration, reports: Mapping[str, Report | Sight]
) -> list[Floor]:
    """Return what each node has acted on by its report, and this node by its local disk as well."""
    floors = [floor_of_report(report, name) for name, report in sorted(reports.items())]
    _number, kept = KeptReport(configuration.folder, configuration.cluster).read()
    if kept is not None:
        floors.append(floor_of_report(kept, configuration.node, kept=True))
    return floors


def report_older_than_told(storage: ClusterStorage, host_id: int, block: HostBlock | None) -> str:
    """Return why the report just read is not what its node knows, by its heartbeat; or nothing.

    A node writes its report before its heartbeat has the report's number.
    """
    read, written = storage.report_number(host_id), report_number(block)
    if read >= written:
        return ""
    return (
        f"its report on storage is older (number {read}) than its heartbeat says (number {written})"
    )


def reports_seen(nodes: Mapping[str, NodeSeen]) -> dict[str, Report]:
    """Return the reports of the nodes of which there is one that can be believed."""
    return {name: seen.report for name, seen in nodes.items() if seen.report is not None}


def older_than_reports(
    state: ClusterState, wanted: Wanted, nodes: Mapping[str, NodeSeen]
) -> tuple[str, ...]:
    """Return what of a manager's own *state* and configuration is older than a node's report.

    That is for each round: nothing is read.  The leases are compared when the manager takes over.
    """
    floors = [floor_of_report(report, name) for name, report in reports_seen(nodes).items()]
    lease = LeaseVersion(state.epoch, state.manager)
    return regressions(state, wanted, floors, lease, wanted.version)
