# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster's shared storage for a node's daemons and modules: whiteboard, records, leases."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any, TypeVar

from ..cluster.model.desired import DesiredState
from ..cluster.model.desired_codec import desired_document, desired_from_document
from ..cluster.model.inline_secrets import inline_secrets, without_inline_secrets
from ..cluster.model.lease_freeing import (
    Freeing,
    awaited_writers,
    freeing_document,
    freeing_from_document,
    why_awaited,
)
from ..cluster.model.news import News
from ..cluster.model.observed import HostState
from ..cluster.model.report import (
    Report,
    Sight,
    report_document,
    report_from_document,
    sight_from_document,
)
from ..cluster.model.state import ClusterState, Intent
from ..cluster.model.state_series import StateReader, StateWriter
from ..cluster.model.versions import LeaseVersion
from ..documents import fields_of, row
from ..errors import FormatError, LeaseError, StorageError
from ..lease.embedded import EmbeddedLeases
from ..lease.interface import LeaseHolder, Leases
from ..storage.device import device_header
from ..storage.lockspace.host_timing import LeaseTiming
from ..storage.news_index import NO_NEWS, HostNews
from ..storage.record_format import Kind
from ..storage.whiteboard.file import Whiteboard
from .cluster_key import ClusterKey
from .configuration import SANLOCK, NodeConfiguration
from .record_slots import RecordSlots, payload
from .run_notes import note_generation, read_generation

MANAGER_LEASE = "manager"
CONFIGURATION_LEASE = "configuration"

GENERATION_SHIFT = 40
"""The bits of a slot's epoch below the generation: no lease has so many versions."""

NO_FREEING = Freeing()

T = TypeVar("T")


def make_leases(
    configuration: NodeConfiguration, clock: Callable[[], float] = time.monotonic
) -> Leases:
    """Return the leases of a node's backend; nothing is opened yet."""
    lockspace, leases = str(configuration.lockspace_path), str(configuration.leases_path)
    if configuration.backend != SANLOCK:
        return EmbeddedLeases(lockspace, leases, configuration.me.host_id, clock)
    # Imported only for sanlock: it is most of the package.
    from ..lease.sanlock import SanlockLeases, installed_daemon

    return SanlockLeases(
        lockspace,
        leases,
        configuration.me.host_id,
        clock,
        io_timeout=configuration.sanlock.io_timeout,
        daemon=installed_daemon(configuration.sanlock.run_directory, leases),
    )


def check_storage(configuration: NodeConfiguration) -> None:
    """Raise ``StorageError`` unless the device is the one that this node was deployed on.

    Each use of a device compares the name of the cluster; another cluster can have the same.
    """
    expected = configuration.storage_id
    if not expected:
        return
    if not configuration.storage.exists():
        raise StorageError(
            f"{configuration.storage} does not exist; check that the device is attached to this"
            " node and that its paths are up."
        )
    header = device_header(str(configuration.state_path))
    if header is None or header.storage_id != expected:
        found = "it is no device" if header is None else f"it has the id {header.storage_id}"
        raise StorageError(
            f"{configuration.storage} is not the device on which this node was deployed: {found},"
            f" not {expected}; attach the right one, or deploy to this node again."
        )


class ClusterStorage:
    """Typed reads and writes of one node on the shared storage; not for several threads."""

    def __init__(
        self, configuration: NodeConfiguration, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Describe the files; each is opened at its first use."""
        self.configuration = configuration
        self.key = ClusterKey(configuration)
        authenticate = self.key.authentication
        self.board = Whiteboard(str(configuration.metadata_path), authenticate=authenticate)
        own, path = configuration.me.host_id, str(configuration.state_path)
        self.records = RecordSlots(path, own, authenticate)
        self.leases = make_leases(configuration, clock)
        self._generation = 0
        self._own_freeing: Freeing | None = None
        self._further: set[int] = set()
        self._searched: dict[Kind, int] = {}
        self._orders: tuple[ClusterState, ClusterState] | None = None
        self._reader, self._writer = StateReader(), StateWriter()

    def adopt_host_lease(self) -> int:
        """Work under the host lease of this node's machine, or sanlock; return its generation.

        ``LeaseError`` while a node may still be freeing an earlier one: its late write would
        overwrite this one.  One check for each join is enough: a write that begins later reads the
        new generation, and is not made.  ``StorageError`` on another device than the node's.
        """
        check_storage(self.configuration)
        generation = self.leases.adopt(self.configuration.node)
        if read_generation(self.configuration.run_directory) == generation:
            return generation
        try:
            awaited = self.late_free(generation)
            if awaited:
                raise LeaseError(awaited)
        except BaseException:
            self.leases.leave()
            raise
        note_generation(self.configuration.run_directory, generation)
        return generation

    def late_free(self, generation: int = 0) -> str:
        """Return why this node may not work under its host lease *generation* yet, or "".

        The generation is 0 before the node joined.
        """
        node, records = self.configuration.node, self.freeing_records()
        writers = awaited_writers(node, generation, records, self._has_host_lease_ended)
        return why_awaited(node, writers) if writers else ""

    def freeing_records(self) -> dict[str, Freeing]:
        """Return what each node is about to free; an unreadable record names nothing."""
        records: dict[str, Freeing] = {}
        for name, member in self.configuration.members.items():
            record = self.records.read_if_readable(Kind.CRM, member.host_id, _parse_freeing)
            if record is not None and record.leases:
                records[name] = record
        return records

    def own_freeing(self) -> Freeing | None:
        """Return which host leases this node is about to free, by its record.

        None if it has to be written again, as it is not signed with the key that signs now.
        """
        if self._own_freeing is None:
            own = self.configuration.me.host_id
            try:
                self._own_freeing = self.records.read(Kind.CRM, own, _parse_freeing) or Freeing()
            except FormatError:
                # A damaged record names nothing; the next one that is written replaces it.
                return Freeing()
        return self._own_freeing if self.records.own_is_signed(Kind.CRM) else None

    def read_report(self, host_id: int, number: int = 0) -> Report | None:
        """Return a node's LRM record, or None if it never wrote one.

        If the record that was read last has *number*, the storage is not asked.
        """
        return self.records.read(Kind.LRM, host_id, report_from_document, number)

    def report_number(self, host_id: int) -> int:
        """Return the number of a node's LRM record as last read or written here, 0 if of none."""
        return self.records.number(Kind.LRM, host_id)

    def own_report_number(self) -> int:
        """Return the number of this node's LRM record, 0 before it was read or written here."""
        return self.report_number(self.configuration.me.host_id)

    def next_report_number(self) -> int:
        """Return the number that this node's next LRM record will have at least."""
        return self.records.next_number(Kind.LRM)

    def continue_after(self, number: int) -> None:
        """Number this node's next LRM record higher than *number*, an earlier one."""
        self.records.continue_after(Kind.LRM, number)

    def read_sight(self, host_id: int) -> Sight | None:
        """Return the part of a node's LRM record for the status, or None if it never wrote one."""
        return self.records.read(Kind.LRM, host_id, sight_from_document)

    def write_report(self, report: Report) -> None:
        """Write this node's LRM record."""
        epoch = slot_epoch(report.generation, report.epoch)
        self.records.write(Kind.LRM, epoch, payload(report_document(report)))

    def read_manager(self) -> ClusterState | None:
        """Return the manager's record: that of the highest epoch.

        Normally the holder of the manager lease has written it and one slot is read; all slots
        are read while a new manager has not written yet.  An epoch is the lease's version when it
        was acquired, and each is one more than the last.  So with the record of the epoch before
        the holder's no unreadable slot can have a newer one; else that slot's ``FormatError`` is
        raised.  The holder may be a node that this node's configuration does not have.

        Something newer may have been acted on all the same: before an action this record is
        compared with the floors (``cluster/model/versions.py``).
        """
        return self._read_manager(self.leases.holder(MANAGER_LEASE))

    def read_orders(self) -> ClusterState | None:
        """Return the newest manager's record that concerns this node.

        By its index, newer ones of the same manager have nothing for this node, and the
        configuration that it names has all that this node needs.
        """
        holder = self.leases.holder(MANAGER_LEASE)
        state = self._read_manager(holder, self.configuration.me.host_id)
        needed = self.records.needed_version(Kind.CRM, holder.host_id)
        if state is None or needed is None or not self._is_newest(state, holder):
            return state
        if self._orders is None or self._orders[0] is not state:
            self._orders = (state, replace(state, config_version=needed))
        return self._orders[1]

    def _read_manager(self, holder: LeaseHolder, reader: int = 0) -> ClusterState | None:
        """Return the manager's record, for a *reader* the newest one that concerns it."""
        if holder.host_id:
            self._further.add(holder.host_id)
            state = self.records.read_if_readable(
                Kind.CRM, holder.host_id, self._reader.decode, reader
            )
            if state is not None and self._is_of(state.generation, state.epoch, holder):
                return state
        newest, unreadable = self._newest_state()
        if (newest.epoch if newest is not None else 0) < holder.version - 1:
            # The manager before may be a node that this node's configuration does not have.
            self._search_further(Kind.CRM, holder.version)
            newest, unreadable = self._newest_state()
        if unreadable and (newest is None or newest.epoch < holder.version - 1):
            raise unreadable[-1]
        return newest

    def readable_manager(self) -> tuple[ClusterState | None, str]:
        """Return what ``read_manager`` does, or the newest readable record and a reason.

        With a reason a newer record may be damaged, and nothing may be done by this one.
        """
        try:
            return self.read_manager(), ""
        except FormatError as error:
            return self._newest_state()[0], f"a record is damaged: {error}".rstrip(".")

    def _newest_state(self) -> tuple[ClusterState | None, list[FormatError]]:
        """Return the newest record of a manager, and the errors of damaged slots."""
        states, unreadable = self.records.read_each(Kind.CRM, self.host_ids(), self._reader.decode)
        written = [state for state in states.values() if _age(state) > (0, 0)]
        newest = max(written, key=_age, default=None)
        if newest is not None:
            self._generation = max(self._generation, newest.generation)
        return newest, list(unreadable.values())

    def write_manager(
        self, state: ClusterState, freeing: Freeing = NO_FREEING, news: News | None = None
    ) -> None:
        """Write the manager's record into this node's slot, and what it is about to free.

        *news* says whom it concerns, None all.
        """
        news = news or News(version=state.config_version)
        self._generation = max(self._generation, state.generation)
        epoch = slot_epoch(state.generation, state.epoch)
        concerned = HostNews(*news.numbered(self.configuration.host_ids()), news.version)
        data = self._writer.encode(state, _freeing_row(freeing))
        self._write_crm(epoch, data, freeing, concerned)

    def write_freeing(self, freeing: Freeing) -> None:
        """Record what this node is about to free, and leave the rest of its slot as it is."""
        epoch, document = self.records.own_document(Kind.CRM)
        self._write_crm(epoch, _crm_payload(document, freeing), freeing)

    def own_record_stands(self, kind: Kind) -> bool:
        """Return whether the record of *kind* that this process wrote last needs no new write."""
        return self.records.own_stands(kind)

    def newest_intent(self) -> Intent | None:
        """Return the last intent of a candidate: of the highest epoch, then the latest.

        An unreadable slot has none: a decision without it fences again.
        """
        intents, _unreadable = self.records.read_each(Kind.CRM, self.host_ids(), parse_intent)
        return max(
            intents.values(), key=lambda intent: (intent.epoch, intent.recorded), default=None
        )

    def write_intent(self, intent: Intent, freeing: Freeing = NO_FREEING) -> None:
        """Record what this node is about to do as a candidate, beside its last state.

        The state is kept under its own, older epoch: it may be the newest there is.
        *freeing* names the host lease that the fence is to prove dead.
        """
        epoch, document = self.records.own_document(Kind.CRM)
        document["intent"] = asdict(intent)
        self._write_crm(epoch, _crm_payload(document, freeing), freeing)

    def read_desired(self) -> tuple[DesiredState, int]:
        """Return the newest desired configuration and the host id of its slot.

        Normally the last holder of the configuration lease has written it, with the lease's
        version, and one slot is read.  No other slot can have a newer one then: the lease has a
        higher version each time, and a writer that was paused and writes late has a lower one.
        While the slot does not have that version, because the holder is about to write or changed
        nothing in the end, all slots are read.
        """
        holder = self.leases.holder(CONFIGURATION_LEASE)
        if holder.version and holder.host_id:
            self._further.add(holder.host_id)
            desired = self.records.read_if_readable(
                Kind.CONFIGURATION, holder.host_id, desired_from_document
            )
            if desired is not None and self._is_of(desired.generation, desired.version, holder):
                return desired, holder.host_id
        return self.search_desired()

    def search_desired(self, acquired: int = 0) -> tuple[DesiredState, int]:
        """Return what ``read_desired`` does, from all slots, whatever the lease says.

        An unreadable slot is skipped where it can have nothing newer; else its ``FormatError`` is
        raised.  It cannot if the newest of the others has the version of the configuration lease.
        The version before is enough if the holder's slot is readable: only the holder writes with
        the lease's version.  It is also enough for a caller that *acquired* the lease with that
        version and has written nothing under it.  A node that was removed, or that this node's
        configuration does not have, may have written the newest one.
        """
        holder = self.leases.holder(CONFIGURATION_LEASE)
        if holder.host_id:
            self._further.add(holder.host_id)
        self._search_further(Kind.CONFIGURATION, holder.version)
        newest, slot, unreadable = self._newest_desired()
        needed = holder.version
        if holder.version == acquired or (holder.host_id and holder.host_id not in unreadable):
            needed -= 1
        for error in unreadable.values():
            if not holder.version or newest.version < max(needed, 1):
                raise error
        return newest, slot

    def readable_desired(self) -> tuple[DesiredState, int]:
        """Return the newest configuration of the readable slots, and the host id of its slot.

        Only for the status and the repair: a newer one may be damaged.
        """
        newest, slot, _unreadable = self._newest_desired()
        return newest, slot

    def _newest_desired(self) -> tuple[DesiredState, int, dict[int, FormatError]]:
        """Return the newest configuration, its slot, and the errors of the damaged slots."""
        configurations, unreadable = self.records.read_each(
            Kind.CONFIGURATION, self.host_ids(), desired_from_document
        )
        newest, slot = DesiredState(), 0
        for host_id, desired in configurations.items():
            if desired.newer_than(newest):
                newest, slot = desired, host_id
        self._generation = max(self._generation, newest.generation)
        return newest, slot, unreadable

    def read_desired_from(self, host_id: int) -> DesiredState | None:
        """Return the desired configuration in one node's slot."""
        return self.records.read(Kind.CONFIGURATION, host_id, desired_from_document)

    def write_desired(self, desired: DesiredState) -> None:
        """Write a desired configuration into this node's slot."""
        self._generation = max(self._generation, desired.generation)
        epoch = slot_epoch(desired.generation, desired.version)
        self.records.write(Kind.CONFIGURATION, epoch, payload(desired_document(desired)))

    def forget_secrets(self, desired: DesiredState) -> None:
        """Hide secrets that are not in *desired* any more in older configurations of other nodes.

        Only for who holds the configuration lease and has written *desired*: nobody else writes
        these slots then, and no reader takes what is in them for the newest.
        """
        present = inline_secrets(desired)
        for host_id in self.host_ids():
            older = self.records.read_if_readable(
                Kind.CONFIGURATION, host_id, desired_from_document
            )
            if older is None or not desired.newer_than(older):
                continue
            if inline_secrets(older) - present:
                hidden = without_inline_secrets(older, present)
                self.records.overwrite(Kind.CONFIGURATION, host_id, desired_document(hidden))

    def lease_versions(self) -> tuple[LeaseVersion, int]:
        """Return version and holder of the manager lease, and the configuration lease's version."""
        holder = self.leases.holder(MANAGER_LEASE)
        names = {host_id: name for name, host_id in self.configuration.host_ids().items()}
        manager = LeaseVersion(holder.version, names.get(holder.host_id, ""))
        return manager, self.leases.holder(CONFIGURATION_LEASE).version

    def room(self, kind: Kind) -> int:
        """Return how many bytes the payload of a record of *kind* may have."""
        return self.records.room(kind)

    def close(self) -> None:
        """Close all files and drop all leases and locks."""
        self.board.close()
        self.records.close()
        self.leases.close()

    def _is_newest(self, state: ClusterState, holder: LeaseHolder) -> bool:
        """Return whether the *holder* of the manager lease wrote *state* under it."""
        return (state.generation, state.epoch) == (self._generation, holder.version)

    def _is_of(self, generation: int, version: int, holder: LeaseHolder) -> bool:
        """Return whether the *holder* of its lease wrote a record: then it is the newest.

        The first record of a repaired cluster that this process reads sets the generation.
        """
        if version != holder.version or generation < self._generation:
            return False
        self._generation = generation
        return True

    def host_ids(self) -> list[int]:
        """Return the host ids whose slots count: those of members and of other writers."""
        return sorted({*self.configuration.host_ids().values(), *self._further})

    def _search_further(self, kind: Kind, version: int) -> None:
        """Find the writers of *kind* that are no members, once for each *version*."""
        if self._searched.get(kind) == version:
            return
        self._searched[kind] = version
        for host_id in range(1, self.records.max_hosts + 1):
            try:
                if self.records.is_written(kind, host_id):
                    self._further.add(host_id)
            except FormatError:
                # Its writer is unknown; a slot that counts is read again, and refused.
                continue

    def _has_host_lease_ended(self, node: str, generation: int) -> bool:
        """Return whether *node* no longer has its host lease of *generation*.

        With a watchdog that is after the longest time until the reset, by this node's clock: this
        node has no host lease yet, so no lease counts as dead.
        """
        view = self.leases.host(self.configuration.members[node].host_id)
        if view.generation != generation or view.state is HostState.FREE or view.active is False:
            return True
        timing = LeaseTiming(self.configuration.sanlock.io_timeout)
        resets = self.configuration.watchdog_timeout > 0
        return resets and view.unchanged_for >= timing.dead_seconds

    def _write_crm(
        self,
        epoch: int,
        data: bytes,
        freeing: Freeing,
        news: HostNews = NO_NEWS,
    ) -> None:
        """Write this node's CRM slot; after an error the recorded *freeing* is unknown."""
        self._own_freeing = None
        self.records.write(Kind.CRM, epoch, data, news)
        self._own_freeing = freeing


def slot_epoch(generation: int, epoch: int) -> int:
    """Return the epoch in a slot's header: that of a later generation is always higher.

    So the first write after a repair is not refused as older.
    """
    return generation << GENERATION_SHIFT | epoch


def _freeing_row(freeing: Freeing) -> dict[str, Any]:
    """Return what a CRM's document has of the leases that are about to be freed."""
    return {"freeing": freeing_document(freeing)} if freeing.leases else {}


def _crm_payload(document: Mapping[str, Any], freeing: Freeing) -> bytes:
    """Return the document of a CRM with another *freeing* as the payload of its record."""
    rest = {key: value for key, value in document.items() if key != "freeing"}
    return payload({**rest, **_freeing_row(freeing)})


def _age(state: ClusterState) -> tuple[int, int]:
    """Return the sort key of managers' records: the highest is the newest."""
    return state.generation, state.epoch


def parse_intent(document: object) -> Intent | None:
    """Return the intent in a CRM's record, None if it has none."""
    intent = row(document).get("intent")
    return Intent(**_INTENT.read(intent)) if intent else None


_INTENT = fields_of(Intent)


def _parse_freeing(document: object) -> Freeing | None:
    """Return which host leases a CRM's record names as about to be freed, None for none."""
    freeing = row(document).get("freeing")
    return freeing_from_document(freeing) if freeing else None
