# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong with the records of a cluster: damaged, not authentic, signed with an older key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..cluster.model.desired_codec import desired_from_document
from ..cluster.model.report import report_from_document
from ..cluster.model.state_codec import state_from_document
from ..errors import FormatError
from ..storage.record_format import Kind
from ..storage.whiteboard.board import Board
from .cluster_storage import CONFIGURATION_LEASE, MANAGER_LEASE, ClusterStorage, parse_intent
from .record_slots import SIGNED_AGAIN_BY, WRITTEN_AGAIN_BY


def damaged_records(storage: ClusterStorage) -> list[str]:
    """Return a sentence for each unusable record of a member, in force or not.

    Raises ``StorageError`` when the file of records cannot be read.
    """
    storage.records.room(Kind.LRM)
    parsers: tuple[tuple[Kind, Callable[[Any], object]], ...] = (
        (Kind.LRM, report_from_document),
        (Kind.CRM, state_from_document),
        (Kind.CRM, parse_intent),
        (Kind.CONFIGURATION, desired_from_document),
    )
    found = []
    for host_id in storage.host_ids():
        for kind, parse in parsers:
            try:
                storage.records.read(kind, host_id, parse)
            except FormatError as error:
                found.append(str(error))
    # A record that is damaged as such cannot be understood in any way.
    return list(dict.fromkeys(found))


def damaged_copies(storage: ClusterStorage) -> list[str]:
    """Return a sentence for each record in use that was read here and has a damaged copy.

    In use are each node's report, and what the holders of the leases wrote.
    """
    holders = {
        Kind.CRM: storage.leases.holder(MANAGER_LEASE).host_id,
        Kind.CONFIGURATION: storage.leases.holder(CONFIGURATION_LEASE).host_id,
    }
    return [
        f"The {kind.name} record of {_name(storage, host_id)} is damaged ({reasons});"
        f" {WRITTEN_AGAIN_BY[kind]}"
        for (kind, host_id), reasons in sorted(storage.records.damage.items())
        if holders.get(kind, host_id) == host_id
    ]


def not_authentic(storage: ClusterStorage, board: Board) -> list[str]:
    """Return a sentence for each record read here, and each block of *board*, of no member."""
    authentication = storage.key.authentication()
    counts = "counts as blank" if authentication.enforces else "is believed all the same"
    blocks = [
        f"The block of {_name(storage, host_id)} on the whiteboard is not authentic and {counts}"
        for host_id in sorted(board.forged)
    ]
    records = [
        f"The {kind.name} record of {_name(storage, host_id)} is not authentic and {counts}"
        f" ({reasons}); {SIGNED_AGAIN_BY[kind]}"
        for (kind, host_id), reasons in sorted(storage.records.forged.items())
    ]
    return [*blocks, *records]


def not_signed(storage: ClusterStorage) -> list[str]:
    """Return a sentence for each record of a member that the key that signs now did not sign.

    Also for each that is damaged or not authentic.  Blocks are not looked at: they are written
    each second.
    """
    return [
        f"The {kind.name} record of {_name(storage, host_id)} is not signed with the key that signs"
        " now"
        for host_id in storage.host_ids()
        for kind in Kind
        if not storage.records.is_current(kind, host_id)
    ]


def is_own_configuration_signed(storage: ClusterStorage) -> bool:
    """Return whether this node's configuration record needs no new MAC."""
    return storage.records.is_current(Kind.CONFIGURATION, storage.configuration.me.host_id)


def is_configuration_current(storage: ClusterStorage) -> bool:
    """Return whether no copy of a configuration record has to be written again.

    That is one in this node's slot, or the one in use, that is damaged, not authentic, or not
    signed with the key that signs now.  A change of the configuration here writes the first
    again and takes the other out of use.
    """
    holder = storage.leases.holder(CONFIGURATION_LEASE).host_id
    slots = {storage.configuration.me.host_id, holder} - {0}
    return all(storage.records.is_current(Kind.CONFIGURATION, one) for one in slots)


def _name(storage: ClusterStorage, host_id: int) -> str:
    """Return the name of a member, or its host id for who is none."""
    names = {number: name for name, number in storage.configuration.host_ids().items()}
    return names.get(host_id, f"host id {host_id}")
