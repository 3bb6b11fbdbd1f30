# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster's shared storage as a node's daemons and modules use it.

One object holds the whiteboard, the records and the leases open for one node; it
is not for several threads.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from typing import Any, TypeVar

from ..errors import FormatError, InputError
from ..lease.embedded import EmbeddedLeases
from ..lease.interface import Leases
from ..manager.intent import Intent
from ..manager.report import (
    Report,
    Sight,
    report_document,
    report_from_document,
    sight_from_document,
)
from ..manager.state import ClusterState
from ..manager.state_document import known, state_document, state_from_document
from ..manager.wanted import Wanted, wanted_document, wanted_from_document
from ..storage.records import Kind, Record, RecordFile
from ..storage.whiteboard import Whiteboard
from .configuration import SANLOCK, NodeConfiguration

MANAGER_LEASE = "manager"
CONFIGURATION_LEASE = "configuration"

T = TypeVar("T")


def make_leases(
    configuration: NodeConfiguration, clock: Callable[[], float] = time.monotonic
) -> Leases:
    """Return the leases of a node by its backend; nothing is opened or asked yet."""
    lockspace, leases = str(configuration.lockspace_path), str(configuration.leases_path)
    if configuration.backend != SANLOCK:
        return EmbeddedLeases(lockspace, leases, configuration.me.host_id, clock)
    # Most of the library's lease room; what has no sanlock does not pay for it.
    from ..lease.sanlock import SanlockLeases, installed_daemon

    return SanlockLeases(
        lockspace,
        leases,
        configuration.me.host_id,
        clock,
        io_timeout=configuration.sanlock.io_timeout,
        daemon=installed_daemon(configuration.sanlock.run_directory, leases),
    )


class ClusterStorage:
    """Typed reading and writing of what the cluster keeps on its storage."""

    def __init__(
        self, configuration: NodeConfiguration, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Describe the files; each is opened at its first use."""
        self._configuration = configuration
        self.board = Whiteboard(str(configuration.metadata_path))
        self._records = RecordFile(str(configuration.state_path))
        self.leases = make_leases(configuration, clock)
        self._known: dict[tuple[Kind, int], Record] = {}
        self._parsed: dict[tuple[Kind, int, Any], tuple[Record, Any]] = {}
        self._further: set[int] = set()
        self._searched: dict[Kind, int] = {}

    def adopt_host_lease(self) -> int:
        """Work under the host lease that this node's machine, or sanlock, holds."""
        return self.leases.adopt(self._configuration.node)

    def read_report(self, host_id: int, number: int = 0) -> Report | None:
        """Return a node's LRM record, or None if it never wrote one.

        If the record that was read last has *number*, the storage is not asked.
        """
        return self._read(Kind.LRM, host_id, report_from_document, number)

    def own_report_number(self) -> int:
        """Return the number of this node's LRM record, 0 before it was read or written here."""
        known = self._known.get((Kind.LRM, self._configuration.me.host_id))
        return known.sequence if known is not None else 0

    def read_sight(self, host_id: int) -> Sight | None:
        """Return what is shown of a node's LRM record, or None if it never wrote one."""
        return self._read(Kind.LRM, host_id, sight_from_document)

    def write_report(self, report: Report) -> None:
        """Write this node's LRM record."""
        self._write(Kind.LRM, report.epoch, report_document(report))

    def read_manager(self) -> ClusterState | None:
        """Return the manager's record: that of the highest epoch.

        Normally the holder of the manager lease has written it and one slot is
        read; all slots are, while a new manager has not written yet.  An epoch is the
        lease's version when it was had, and each is one more than the last.  So once
        the record of the epoch before the holder's is found, no slot that cannot be read
        holds a newer one; else that slot's ``FormatError`` is raised.  The holder may be a
        node that this node's configuration does not have.
        """
        holder = self.leases.holder(MANAGER_LEASE)
        if holder.host_id:
            self._further.add(holder.host_id)
            state = self._read_state(holder.host_id)
            if state is not None and state.epoch == holder.version:
                return state
        newest, unreadable = self._newest_state(self._host_ids())
        if (newest.epoch if newest is not None else 0) < holder.version - 1:
            # The manager before may be a node that this node's configuration does not have.
            self._search_further(Kind.CRM, holder.version)
            newest, unreadable = self._newest_state(self._host_ids())
        if unreadable is not None and (newest is None or newest.epoch < holder.version - 1):
            raise unreadable
        return newest

    def _newest_state(
        self, host_ids: Iterable[int]
    ) -> tuple[ClusterState | None, FormatError | None]:
        """Return the manager's record of the highest epoch, and the error of a damaged slot."""
        newest: ClusterState | None = None
        unreadable: FormatError | None = None
        for host_id in host_ids:
            try:
                state = self._read_state(host_id)
            except FormatError as error:
                unreadable = error
                continue
            if state is not None and state.epoch > (newest.epoch if newest is not None else 0):
                newest = state
        return newest, unreadable

    def write_manager(self, state: ClusterState) -> None:
        """Write the manager's record into this node's slot."""
        self._write(Kind.CRM, state.epoch, state_document(state))

    def newest_intent(self) -> Intent | None:
        """Return what a candidate last meant to do: of the highest epoch, then the latest.

        Of a slot that cannot be read there is none: who decides without it fences anew.
        """
        found = []
        for host_id in self._host_ids():
            try:
                intent = self._read(Kind.CRM, host_id, _parse_intent)
            except FormatError:
                continue
            if intent is not None:
                found.append(intent)
        return max(found, key=lambda intent: (intent.epoch, intent.recorded), default=None)

    def write_intent(self, intent: Intent) -> None:
        """Record what this node is about to do as a candidate, beside its last state.

        The state is kept under its own, older epoch: it may be the newest there is.
        """
        own = self._configuration.me.host_id
        record = self._records.read(Kind.CRM, own)
        document = json.loads(record.payload) if record is not None else {}
        document["intent"] = asdict(intent)
        self._write(Kind.CRM, record.epoch if record is not None else 0, document)

    def read_wanted(self) -> tuple[Wanted, int]:
        """Return the newest wanted configuration and the host id in whose slot it stands.

        Normally who had the configuration lease last has written it, with the lease's
        version, and one slot is read.  No other slot can hold a newer one then: a
        version is that of the lease when it was had, the lease gets a higher one each
        time, and a writer that was paused and writes late has a lower one.  While the
        slot has not that version, because the holder is about to write or changed
        nothing in the end, all slots are read.
        """
        holder = self.leases.holder(CONFIGURATION_LEASE)
        if holder.version and holder.host_id:
            self._further.add(holder.host_id)
            wanted = self._read(Kind.CONFIGURATION, holder.host_id, wanted_from_document)
            if wanted is not None and wanted.version == holder.version:
                return wanted, holder.host_id
        return self.search_wanted()

    def search_wanted(self) -> tuple[Wanted, int]:
        """Return what ``read_wanted`` does, from all slots, whatever the lease says.

        A node that was removed, or that this node's configuration does not have, may have written
        the newest one.
        """
        self._search_further(Kind.CONFIGURATION, self.leases.holder(CONFIGURATION_LEASE).version)
        newest, slot = Wanted(), 0
        for host_id in self._host_ids():
            wanted = self._read(Kind.CONFIGURATION, host_id, wanted_from_document)
            if wanted is not None and wanted.version > newest.version:
                newest, slot = wanted, host_id
        return newest, slot

    def read_wanted_from(self, host_id: int) -> Wanted | None:
        """Return the wanted configuration in one node's slot."""
        return self._read(Kind.CONFIGURATION, host_id, wanted_from_document)

    def write_wanted(self, wanted: Wanted) -> None:
        """Write a wanted configuration into this node's slot."""
        self._write(Kind.CONFIGURATION, wanted.version, wanted_document(wanted))

    def damaged_records(self) -> list[str]:
        """Return a sentence for each record of a member that cannot be used, in force or not.

        Raises ``StorageError`` when none of them can be read.
        """
        self._records.geometry()
        parsers: tuple[tuple[Kind, Callable[[Any], object]], ...] = (
            (Kind.LRM, report_from_document),
            (Kind.CRM, state_from_document),
            (Kind.CRM, _parse_intent),
            (Kind.CONFIGURATION, wanted_from_document),
        )
        found = []
        for host_id in self._host_ids():
            for kind, parse in parsers:
                try:
                    self._read(kind, host_id, parse)
                except FormatError as error:
                    found.append(str(error))
        # A record that is damaged as such cannot be understood in any way.
        return list(dict.fromkeys(found))

    def room(self, kind: Kind) -> int:
        """Return how many bytes the payload of a record of *kind* may have."""
        return self._records.geometry().max_payload(kind)

    def close(self) -> None:
        """Close all files; leases and locks that are held are dropped."""
        self.board.close()
        self._records.close()
        self.leases.close()

    def _host_ids(self) -> list[int]:
        """Return the host ids whose slots count: of the members, and of other writers."""
        return sorted({*self._configuration.host_ids().values(), *self._further})

    def _search_further(self, kind: Kind, version: int) -> None:
        """Find the writers of *kind* that are no members, once for each *version*."""
        if self._searched.get(kind) == version:
            return
        self._searched[kind] = version
        for host_id in range(1, self._records.geometry().max_hosts + 1):
            try:
                if self._records.read(kind, host_id) is not None:
                    self._further.add(host_id)
            except FormatError:
                # Nobody knows who wrote there; a slot that counts is read again, and refused.
                continue

    def _read_state(self, host_id: int) -> ClusterState | None:
        return self._read(Kind.CRM, host_id, state_from_document)

    def _read(
        self, kind: Kind, host_id: int, parse: Callable[[Any], T], number: int = 0
    ) -> T | None:
        """Return a record's content; what did not change since the last read is not parsed anew."""
        record = self._known.get((kind, host_id))
        if record is None or record.sequence != number:
            record = self._records.read_if_newer(kind, host_id, record)
        if record is None:
            return None
        self._known[(kind, host_id)] = record
        key = (kind, host_id, parse)
        parsed = self._parsed.get(key)
        if parsed is not None and parsed[0] is record:
            same: T = parsed[1]
            return same
        try:
            content = parse(json.loads(record.payload))
        except (InputError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise FormatError(
                f"The {kind.name} record of host id {host_id} in"
                f" {self._configuration.state_path} is whole but cannot be understood: {error!r}."
            ) from error
        self._parsed[key] = (record, content)
        return content

    def _write(self, kind: Kind, epoch: int, document: dict[str, Any]) -> None:
        own = self._configuration.me.host_id
        self._known[(kind, own)] = self._records.write(kind, own, epoch, payload(document))


def payload(document: Mapping[str, Any]) -> bytes:
    """Return a document as it stands in its record."""
    return json.dumps(document, separators=(",", ":")).encode()


def _parse_intent(document: dict[str, Any]) -> Intent | None:
    """Return the intent in a CRM's record, None if it has none."""
    row = document.get("intent")
    return Intent(**known(Intent, row)) if row else None
