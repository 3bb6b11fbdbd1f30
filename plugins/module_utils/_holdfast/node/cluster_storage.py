# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster's shared storage as a node's daemons and modules use it.

One object holds the whiteboard, the records and the leases open for one node; it
is not for several threads.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, TypeVar

from ..cluster.model.desired import Wanted, wanted_document, wanted_from_document
from ..cluster.model.lease_freeing import (
    Freeing,
    awaited_writers,
    freeing_document,
    freeing_from_document,
    why_awaited,
)
from ..cluster.model.observed import HostState
from ..cluster.model.report import (
    Report,
    Sight,
    report_document,
    report_from_document,
    sight_from_document,
)
from ..cluster.model.state import ClusterState, Intent
from ..cluster.model.state_codec import known, state_document, state_from_document
from ..cluster.model.versions import LeaseVersion
from ..errors import MALFORMED, FormatError, LeaseError
from ..lease.embedded import EmbeddedLeases
from ..lease.interface import LeaseHolder, Leases
from ..storage.lockspace.host_timing import LeaseTiming
from ..storage.records import Kind, Record, RecordFile
from ..storage.whiteboard.file import Whiteboard
from .configuration import SANLOCK, NodeConfiguration
from .run_notes import note_generation, read_generation

MANAGER_LEASE = "manager"
CONFIGURATION_LEASE = "configuration"

GENERATION_SHIFT = 40
"""The bits of a slot's epoch below the generation: no lease comes to so many versions."""

WRITTEN_AGAIN_BY: Mapping[Kind, str] = {
    Kind.LRM: "its LRM writes it again within seconds",
    Kind.CRM: "its CRM writes it again within seconds if it is the manager",
    Kind.CONFIGURATION: "'holdfast records repair --keep running' writes it again",
}
"""How a record with a damaged copy gets whole."""
NO_FREEING = Freeing()

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
        self._after: dict[Kind, int] = {}
        self._generation = 0
        self._own_freeing: Freeing | None = None
        self._further: set[int] = set()
        self._searched: dict[Kind, int] = {}

    def adopt_host_lease(self) -> int:
        """Work under the host lease that this node's machine, or sanlock, holds.

        ``LeaseError`` while a node may still be freeing an earlier one: its late write would
        overwrite this one.  That is looked at once for each join: what began later reads the new
        generation, and does not write.
        """
        generation = self.leases.adopt(self._configuration.node)
        if read_generation(self._configuration.run_directory) == generation:
            return generation
        try:
            awaited = self.late_free(generation)
            if awaited:
                raise LeaseError(awaited)
        except BaseException:
            self.leases.leave()
            raise
        note_generation(self._configuration.run_directory, generation)
        return generation

    def late_free(self, generation: int = 0) -> str:
        """Return why this node may not work under its host lease *generation* yet; else empty.

        0 is for a node that has not joined.
        """
        node, records = self._configuration.node, self.freeing_records()
        writers = awaited_writers(node, generation, records, self._has_host_lease_ended)
        return why_awaited(node, writers) if writers else ""

    def freeing_records(self) -> dict[str, Freeing]:
        """Return what each node is about to free; a record that cannot be read names nothing."""
        records: dict[str, Freeing] = {}
        for name, member in self._configuration.members.items():
            record = self._read_if_readable(Kind.CRM, member.host_id, _parse_freeing)
            if record is not None and record.leases:
                records[name] = record
        return records

    def own_freeing(self) -> Freeing:
        """Return which host leases the storage says that this node is about to free."""
        if self._own_freeing is None:
            own = self._configuration.me.host_id
            try:
                self._own_freeing = self._read(Kind.CRM, own, _parse_freeing) or Freeing()
            except FormatError:
                # A damaged record names nothing; the next one that is written replaces it.
                return Freeing()
        return self._own_freeing

    def read_report(self, host_id: int, number: int = 0) -> Report | None:
        """Return a node's LRM record, or None if it never wrote one.

        If the record that was read last has *number*, the storage is not asked.
        """
        return self._read(Kind.LRM, host_id, report_from_document, number)

    def report_number(self, host_id: int) -> int:
        """Return the number of a node's LRM record as last read or written here, 0 if of none."""
        known = self._known.get((Kind.LRM, host_id))
        return known.sequence if known is not None else 0

    def own_report_number(self) -> int:
        """Return the number of this node's LRM record, 0 before it was read or written here."""
        return self.report_number(self._configuration.me.host_id)

    def next_report_number(self) -> int:
        """Return the number that this node's next LRM record will have at least."""
        return max(self._after.get(Kind.LRM, 0), self.own_report_number()) + 1

    def continue_after(self, number: int) -> None:
        """Number this node's next LRM record higher than *number*, which it had reached before."""
        self._after[Kind.LRM] = max(self._after.get(Kind.LRM, 0), number)

    def read_sight(self, host_id: int) -> Sight | None:
        """Return what is shown of a node's LRM record, or None if it never wrote one."""
        return self._read(Kind.LRM, host_id, sight_from_document)

    def write_report(self, report: Report) -> None:
        """Write this node's LRM record."""
        epoch = slot_epoch(report.generation, report.epoch)
        self._write(Kind.LRM, epoch, report_document(report))

    def read_manager(self) -> ClusterState | None:
        """Return the manager's record: that of the highest epoch.

        Normally the holder of the manager lease has written it and one slot is
        read; all slots are, while a new manager has not written yet.  An epoch is the
        lease's version when it was had, and each is one more than the last.  So once
        the record of the epoch before the holder's is found, no slot that cannot be read
        holds a newer one; else that slot's ``FormatError`` is raised.  The holder may be a
        node that this node's configuration does not have.

        That this is the newest that is readable does not say that nothing newer was ever acted
        on: who acts on it compares it with the floors (``cluster/model/versions.py``).
        """
        holder = self.leases.holder(MANAGER_LEASE)
        if holder.host_id:
            self._further.add(holder.host_id)
            state = self._read_if_readable(Kind.CRM, holder.host_id, state_from_document)
            if state is not None and self._is_of(state.generation, state.epoch, holder):
                return state
        newest, unreadable = self._newest_state()
        if (newest.epoch if newest is not None else 0) < holder.version - 1:
            # The manager before may be a node that this node's configuration does not have.
            self._search_further(Kind.CRM, holder.version)
            newest, unreadable = self._newest_state()
        if unreadable is not None and (newest is None or newest.epoch < holder.version - 1):
            raise unreadable
        return newest

    def readable_manager(self) -> tuple[ClusterState | None, str]:
        """Return what ``read_manager`` does; or what can be read, and why that is not enough.

        Where there is a reason a newer record may be damaged: nothing may be done by this one.
        """
        try:
            return self.read_manager(), ""
        except FormatError as error:
            return self._newest_state()[0], f"a record is damaged: {error}".rstrip(".")

    def _newest_state(self) -> tuple[ClusterState | None, FormatError | None]:
        """Return the newest record of a manager, and the error of a damaged slot."""
        states, unreadable = self._read_slots(Kind.CRM, state_from_document)
        written = [state for state in states.values() if _age(state) > (0, 0)]
        newest = max(written, key=_age, default=None)
        if newest is not None:
            self._generation = max(self._generation, newest.generation)
        return newest, list(unreadable.values())[-1] if unreadable else None

    def write_manager(self, state: ClusterState, freeing: Freeing = NO_FREEING) -> None:
        """Write the manager's record into this node's slot, and what it is about to free."""
        self._generation = max(self._generation, state.generation)
        epoch = slot_epoch(state.generation, state.epoch)
        self._write_crm(epoch, state_document(state), freeing)

    def write_freeing(self, freeing: Freeing) -> None:
        """Record what this node is about to free, and leave the rest of its slot as it is."""
        epoch, document = self._own_crm_document()
        self._write_crm(epoch, document, freeing)

    def own_record_stands(self, kind: Kind) -> bool:
        """Return whether the record of *kind* that this process wrote last is on storage as it was.

        Both copies must be whole.  The slot is read as a whole: a reader that knows a record
        trusts its header.
        """
        key = (kind, self._configuration.me.host_id)
        written = self._known.get(key)
        if written is None:
            return True
        try:
            return self._records.read(*key) == written and key not in self._records.damage
        except FormatError:
            return False

    def newest_intent(self) -> Intent | None:
        """Return what a candidate last meant to do: of the highest epoch, then the latest.

        Of a slot that cannot be read there is none: who decides without it fences anew.
        """
        intents, _unreadable = self._read_slots(Kind.CRM, _parse_intent)
        return max(
            intents.values(), key=lambda intent: (intent.epoch, intent.recorded), default=None
        )

    def write_intent(self, intent: Intent, freeing: Freeing = NO_FREEING) -> None:
        """Record what this node is about to do as a candidate, beside its last state.

        The state is kept under its own, older epoch: it may be the newest there is.
        *freeing* names the host lease that the fence is to prove dead.
        """
        epoch, document = self._own_crm_document()
        document["intent"] = asdict(intent)
        self._write_crm(epoch, document, freeing)

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
            wanted = self._read_if_readable(
                Kind.CONFIGURATION, holder.host_id, wanted_from_document
            )
            if wanted is not None and self._is_of(wanted.generation, wanted.version, holder):
                return wanted, holder.host_id
        return self.search_wanted()

    def search_wanted(self, acquired: int = 0) -> tuple[Wanted, int]:
        """Return what ``read_wanted`` does, from all slots, whatever the lease says.

        A slot that cannot be read is passed over where nothing newer can be in it; else its
        ``FormatError`` is raised.  That is so if the newest of the others has the version of the
        configuration lease.  The version before is enough if the holder's own slot can be read:
        only the holder writes with the lease's version.  It is enough as well for who has the
        lease with the version *acquired* and has written nothing under it.
        A node that was removed, or that this node's configuration does not have, may have written
        the newest one.
        """
        holder = self.leases.holder(CONFIGURATION_LEASE)
        if holder.host_id:
            self._further.add(holder.host_id)
        self._search_further(Kind.CONFIGURATION, holder.version)
        newest, slot, unreadable = self._newest_wanted()
        needed = holder.version
        if holder.version == acquired or (holder.host_id and holder.host_id not in unreadable):
            needed -= 1
        for error in unreadable.values():
            if not holder.version or newest.version < max(needed, 1):
                raise error
        return newest, slot

    def readable_wanted(self) -> tuple[Wanted, int]:
        """Return the newest configuration of the slots that can be read, and whose slot that is.

        Only for showing what is there, and for the repair: a newer one may be damaged.
        """
        newest, slot, _unreadable = self._newest_wanted()
        return newest, slot

    def _newest_wanted(self) -> tuple[Wanted, int, dict[int, FormatError]]:
        """Return the newest configuration, its slot, and the errors of the damaged slots."""
        configurations, unreadable = self._read_slots(Kind.CONFIGURATION, wanted_from_document)
        newest, slot = Wanted(), 0
        for host_id, wanted in configurations.items():
            if wanted.newer_than(newest):
                newest, slot = wanted, host_id
        self._generation = max(self._generation, newest.generation)
        return newest, slot, unreadable

    def read_wanted_from(self, host_id: int) -> Wanted | None:
        """Return the wanted configuration in one node's slot."""
        return self._read(Kind.CONFIGURATION, host_id, wanted_from_document)

    def write_wanted(self, wanted: Wanted) -> None:
        """Write a wanted configuration into this node's slot."""
        self._generation = max(self._generation, wanted.generation)
        epoch = slot_epoch(wanted.generation, wanted.version)
        self._write(Kind.CONFIGURATION, epoch, wanted_document(wanted))

    def lease_versions(self) -> tuple[LeaseVersion, int]:
        """Return version and holder of the manager lease, and the configuration lease's version."""
        holder = self.leases.holder(MANAGER_LEASE)
        names = {host_id: name for name, host_id in self._configuration.host_ids().items()}
        manager = LeaseVersion(holder.version, names.get(holder.host_id, ""))
        return manager, self.leases.holder(CONFIGURATION_LEASE).version

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

    def damaged_copies(self) -> list[str]:
        """Return a sentence for each record in use that was read here and has a damaged copy.

        In use are the report of each node, and of the others what the holder of their lease wrote.
        """
        names = {host_id: name for name, host_id in self._configuration.host_ids().items()}
        holders = {
            Kind.CRM: self.leases.holder(MANAGER_LEASE).host_id,
            Kind.CONFIGURATION: self.leases.holder(CONFIGURATION_LEASE).host_id,
        }
        return [
            f"The {kind.name} record of {names.get(host_id, f'host id {host_id}')} is damaged"
            f" ({reasons}); {WRITTEN_AGAIN_BY[kind]}"
            for (kind, host_id), reasons in sorted(self._records.damage.items())
            if holders.get(kind, host_id) == host_id
        ]

    def configuration_is_damaged(self) -> bool:
        """Return whether a change of the configuration makes a damaged copy whole, or unused.

        That is a copy of this node's record, which a change here writes, or of the record in use.
        """
        holder = self.leases.holder(CONFIGURATION_LEASE).host_id
        for host_id in sorted({self._configuration.me.host_id, holder} - {0}):
            try:
                self._records.read(Kind.CONFIGURATION, host_id)
            except FormatError:
                return True
            if (Kind.CONFIGURATION, host_id) in self._records.damage:
                return True
        return False

    def room(self, kind: Kind) -> int:
        """Return how many bytes the payload of a record of *kind* may have."""
        return self._records.geometry().max_payload(kind)

    def close(self) -> None:
        """Close all files; leases and locks that are held are dropped."""
        self.board.close()
        self._records.close()
        self.leases.close()

    def _is_of(self, generation: int, version: int, holder: LeaseHolder) -> bool:
        """Return whether a record is what the *holder* of its lease wrote: then it is the newest.

        The first record of a repaired cluster that this process reads tells it the generation.
        """
        if version != holder.version or generation < self._generation:
            return False
        self._generation = generation
        return True

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

    def _read_slots(
        self, kind: Kind, parse: Callable[[Any], T | None]
    ) -> tuple[dict[int, T], dict[int, FormatError]]:
        """Return what is in each slot that counts, by host id, and the errors of damaged slots."""
        contents: dict[int, T] = {}
        unreadable: dict[int, FormatError] = {}
        for host_id in self._host_ids():
            try:
                content = self._read(kind, host_id, parse)
            except FormatError as error:
                unreadable[host_id] = error
            else:
                if content is not None:
                    contents[host_id] = content
        return contents, unreadable

    def _read_if_readable(self, kind: Kind, host_id: int, parse: Callable[[Any], T]) -> T | None:
        try:
            return self._read(kind, host_id, parse)
        except FormatError:
            return None

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
        except MALFORMED as error:
            raise FormatError(
                f"The {kind.name} record of host id {host_id} in"
                f" {self._configuration.state_path} is whole but cannot be understood: {error!r}."
            ) from error
        self._parsed[key] = (record, content)
        return content

    def _has_host_lease_ended(self, node: str, generation: int) -> bool:
        """Return whether *node* no longer has its host lease of *generation*.

        Behind a watchdog that is so after the longest time in which one resets a node, by this
        node's clock: it has no host lease yet by which the leases could count as dead.
        """
        view = self.leases.host(self._configuration.members[node].host_id)
        if view.generation != generation or view.state is HostState.FREE or view.active is False:
            return True
        timing = LeaseTiming(self._configuration.sanlock.io_timeout)
        resets = self._configuration.watchdog_timeout > 0
        return resets and view.unchanged_for >= timing.dead_seconds

    def _own_crm_document(self) -> tuple[int, dict[str, Any]]:
        """Return the epoch and the content of this node's CRM slot as it is."""
        record = self._records.read(Kind.CRM, self._configuration.me.host_id)
        if record is None:
            return 0, {}
        document: dict[str, Any] = json.loads(record.payload)
        return record.epoch, document

    def _write_crm(self, epoch: int, document: dict[str, Any], freeing: Freeing) -> None:
        """Write this node's CRM slot; after an error what it records of *freeing* is unknown."""
        document.pop("freeing", None)
        if freeing.leases:
            document["freeing"] = freeing_document(freeing)
        self._own_freeing = None
        self._write(Kind.CRM, epoch, document)
        self._own_freeing = freeing

    def _write(self, kind: Kind, epoch: int, document: dict[str, Any]) -> None:
        own = self._configuration.me.host_id
        known = self._known.get((kind, own))
        after = max(self._after.get(kind, 0), known.sequence if known is not None else 0)
        written = self._records.write(kind, own, epoch, payload(document), after)
        self._known[(kind, own)] = written
        self._after[kind] = written.sequence


def slot_epoch(generation: int, epoch: int) -> int:
    """Return what the header of a slot has as epoch: a later generation is always higher.

    So the first write after a repair is not refused because of what was repaired.
    """
    return generation << GENERATION_SHIFT | epoch


def _age(state: ClusterState) -> tuple[int, int]:
    """Return by what the records of managers are compared: the highest is the newest."""
    return state.generation, state.epoch


def payload(document: Mapping[str, Any]) -> bytes:
    """Return a document as it stands in its record."""
    return json.dumps(document, separators=(",", ":")).encode()


def _parse_intent(document: dict[str, Any]) -> Intent | None:
    """Return the intent in a CRM's record, None if it has none."""
    row = document.get("intent")
    return Intent(**known(Intent, row)) if row else None


def _parse_freeing(document: dict[str, Any]) -> Freeing | None:
    """Return which host leases a CRM's record names as about to be freed, None for none."""
    row = document.get("freeing")
    return freeing_from_document(row) if row else None
