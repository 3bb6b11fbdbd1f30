# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a CRM reads before it manages: the newest records, and whether they went back in time.

The rules are those of ``cluster/model/versions.py``; here the floors are gathered.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...cluster.crm.repair_plan import Records, compare
from ...cluster.model.report import Report, Sight
from ...cluster.model.versions import Floor, floor_of_report
from ...errors import FormatError
from ...storage.whiteboard.file import HostBlock
from ..cluster_storage import ClusterStorage
from ..configuration import NodeConfiguration
from .heartbeat import report_number
from .kept_report import KeptReport


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
    floors = known_floors(configuration, reports)
    leases = storage.lease_versions()
    return compare(
        state, wanted, slot, floors, leases, damaged, configuration_older=older_configuration
    )


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
