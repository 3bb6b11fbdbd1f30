# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether records on the shared storage went back in time, and a node's own copy of its report.

The rules are those of ``cluster/model/versions.py``; here the newest records and the floors are
read.  What a node has acted on must not be forgotten with the storage.  So an LRM keeps each
report on its local disk too, before it acts on it, and the next LRM takes the newer of both.  The
file is for root only.  It is not synced, so a power cut may take its last seconds: then the node
runs nothing any more.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from ...cluster.crm.repair_plan import Records, StoredRecords, compare_stored
from ...cluster.model.report import Report, Sight, report_document, report_from_document
from ...documents import read_document_file, row, whole
from ...errors import DocumentError, FormatError, InputError, StorageError
from ...storage.whiteboard.block import HostBlock
from ..cluster_storage import ClusterStorage
from ..configuration import NodeConfiguration
from .heartbeat import report_number

NAME = "report.json"

MAX_BYTES = 64 << 20
"""No report is larger than the largest copy of a record (storage/record_format.py)."""


class KeptReport:
    """One node's copy of its report in *folder*; not for several threads."""

    def __init__(self, folder: Path, cluster: str) -> None:
        """Remember where it is; nothing is opened yet.  A copy of another *cluster* is no copy."""
        self._path = folder / NAME
        self._cluster = cluster

    def read(self) -> tuple[int, Report | None]:
        """Return the number of the record and the report; 0 and None if there is none.

        What cannot be understood counts as none: it only is a second copy.
        """
        try:
            document = row(read_document_file(self._path, str(self._path), MAX_BYTES))
            if document.get("cluster") != self._cluster:
                return 0, None
            number = whole(document.get("number"))
            return number, report_from_document(document.get("report"))
        except (OSError, DocumentError, InputError):
            return 0, None

    def write(self, number: int, report: Report) -> None:
        """Keep *report*, which is record *number* of this node, whole or not at all.

        Raises ``StorageError`` when the local disk does not take it.
        """
        document = {"cluster": self._cluster, "number": number, "report": report_document(report)}
        text = json.dumps(document)
        temporary = ""
        try:
            # Here, as it costs the command more to load than the rest of this file.
            import tempfile

            self._path.parent.mkdir(parents=True, exist_ok=True)
            descriptor, temporary = tempfile.mkstemp(prefix=f".{NAME}.", dir=self._path.parent)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
            Path(temporary).replace(self._path)
        except OSError as error:
            with suppress(OSError):
                if temporary:
                    Path(temporary).unlink()
            raise StorageError(f"{self._path} cannot be written: {error.strerror}.") from error


def read_records(
    configuration: NodeConfiguration,
    storage: ClusterStorage,
    reports: Mapping[str, Report | Sight],
) -> Records:
    """Read the newest records and compare them with all floors; *reports* were read before.

    A floor is what a node has acted on by its report, and this node by its local disk as well.
    Raises ``StorageError`` when the storage cannot be read at all.
    """
    return compare_stored(read_stored(configuration, storage), reports, configuration.node)


def read_stored(configuration: NodeConfiguration, storage: ClusterStorage) -> StoredRecords:
    """Return the newest records that can be read, and why a newer one may be damaged."""
    state, damage = storage.readable_manager()
    damaged = [damage] if damage else []
    configuration_damaged = False
    try:
        desired, slot = storage.read_desired()
    except FormatError as error:
        desired, slot = storage.readable_desired()
        damaged.append(f"a record is damaged: {error}".rstrip("."))
        configuration_damaged = True
    _number, kept = KeptReport(configuration.folder, configuration.cluster).read()
    leases = storage.lease_versions()
    return StoredRecords(state, desired, slot, tuple(damaged), configuration_damaged, kept, leases)


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
