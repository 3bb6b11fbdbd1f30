# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Records under the cluster key: who can write the file, but has no key, is not believed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import LeaseError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.authentication import (
    KEY_BYTES,
    NO_MAC,
    Authentication,
    Policy,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.record_format import (
    MAX_U64,
    Geometry,
    Kind,
    Record,
    encode_record,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.records import (
    NOT_AUTHENTIC,
    PAGE,
    RecordFile,
)

SIZES = {Kind.LRM: 4 * PAGE, Kind.CRM: 8 * PAGE, Kind.CONFIGURATION: 2 * PAGE}
GEOMETRY = Geometry("c1", 3, SIZES)
KEY, OTHER = b"k" * KEY_BYTES, b"o" * KEY_BYTES
OFF = Authentication()
WARN = Authentication(Policy.WARN, "c1", (KEY,))
ENFORCE = Authentication(Policy.ENFORCE, "c1", (KEY,))

SLOT = (Kind.CRM, 2)


@pytest.fixture
def path(tmp_path: Path) -> str:
    name = str(tmp_path / "c1.state")
    RecordFile(name).create("c1", 3, SIZES)
    return name


def opened(path: str, authentication: Authentication) -> RecordFile:
    return RecordFile(path, authenticate=lambda: authentication)


def put(path: str, record: Record, *copies: int, cut: int | None = None) -> None:
    """Write *record* as who has the file but no key may, or its first *cut* bytes."""
    with Path(path).open("r+b") as file:
        for copy in copies:
            file.seek(GEOMETRY.offset(record.kind, record.host_id, copy))
            file.write(encode_record(record)[:cut])


def forged(**changed: object) -> Record:
    return replace(Record(*SLOT, 7, 9, b"started by a stranger"), **changed)  # type: ignore[arg-type]


def test_a_forged_copy_outranks_nothing_and_is_named(path: str) -> None:
    with opened(path, ENFORCE) as file:
        written = file.write(*SLOT, 5, b"true")
        put(path, forged(sequence=MAX_U64, epoch=MAX_U64), 1)
        assert file.read(*SLOT) == written
        assert file.read_if_newer(*SLOT, written) is written
        assert file.forged == {SLOT: f"copy 1: {NOT_AUTHENTIC}"}
        assert not file.damage


def test_a_slot_with_nothing_but_forged_copies_is_blank_and_can_be_written(path: str) -> None:
    with opened(path, ENFORCE) as file:
        put(path, forged(sequence=MAX_U64, epoch=MAX_U64), 0, 1)
        assert file.read(*SLOT) is None
        assert set(file.forged) == {SLOT}
        written = file.write(*SLOT, 5, b"true")
        assert not file.forged, "nothing forged is left, and nobody need write it again"
        assert file.read(*SLOT) == written
        assert not file.forged


def test_who_knows_a_newer_record_is_given_no_older_one_beside_a_forged_copy(path: str) -> None:
    with opened(path, ENFORCE) as file:
        file.write(*SLOT, 5, b"first")
        known = file.write(*SLOT, 5, b"second")
        put(path, forged(), 1)
        assert file.read_if_newer(*SLOT, known) is known


def test_a_torn_copy_is_not_believed_to_be_of_any_epoch_or_far_ahead(path: str) -> None:
    long = forged(sequence=MAX_U64, epoch=MAX_U64, payload=b"x" * PAGE)
    with opened(path, ENFORCE) as file:
        file.write(*SLOT, 5, b"true")
        put(path, long, 1, cut=PAGE)
        assert file.write(*SLOT, 5, b"next").sequence == 2


def test_the_sequence_of_a_torn_write_is_not_used_twice(path: str) -> None:
    with opened(path, ENFORCE) as file:
        file.write(*SLOT, 5, b"true")
        put(path, forged(sequence=2, payload=b"x" * PAGE), 1, cut=PAGE)
        assert file.write(*SLOT, 5, b"next").sequence == 3


def test_an_older_epoch_is_refused_by_what_is_authentic(path: str) -> None:
    with opened(path, ENFORCE) as file:
        file.write(*SLOT, 5, b"true")
        with pytest.raises(LeaseError, match="of epoch 5"):
            file.write(*SLOT, 4, b"late")


def test_a_warning_names_what_is_not_authentic_as_long_as_it_stands(path: str) -> None:
    with opened(path, OFF) as file:
        unsigned = file.write(*SLOT, 5, b"before")
    with opened(path, WARN) as file:
        found = file.read(*SLOT)
        assert found == unsigned
        assert file.read_if_newer(*SLOT, found) is found
        assert set(file.forged) == {SLOT}
        file.write(*SLOT, 5, b"after")
        assert set(file.forged) == {SLOT}, "the other copy is still not authentic"
        file.write(*SLOT, 5, b"after")
        assert not file.forged
        assert file.read(*SLOT) is not None
        assert not file.forged


@pytest.mark.parametrize("writes", [OFF, WARN, ENFORCE])
def test_who_has_no_policy_reads_all(path: str, writes: Authentication) -> None:
    with opened(path, writes) as file:
        written = file.write(*SLOT, 5, b"true")
        assert (written.mac != NO_MAC) is writes.signs
    with opened(path, OFF) as file:
        assert file.read(*SLOT) == written
        assert not file.forged


@pytest.mark.parametrize(
    "change",
    [
        lambda one: replace(one, sequence=one.sequence + 1),
        lambda one: replace(one, epoch=one.epoch + 1),
        lambda one: replace(one, payload=one.payload + b" "),
        lambda one: replace(one, host_id=3),
        lambda one: replace(one, kind=Kind.LRM),
        lambda one: replace(one, mac=one.mac[:-1] + bytes([one.mac[-1] ^ 1])),
    ],
    ids=["sequence", "epoch", "payload", "host id", "kind", "mac"],
)
def test_no_part_of_an_authentic_record_can_be_changed_or_used_elsewhere(
    path: str, change: Callable[[Record], Record]
) -> None:
    with opened(path, ENFORCE) as file:
        moved = change(file.write(*SLOT, 5, b"true"))
        put(path, moved, 0, 1)
        assert file.read(moved.kind, moved.host_id) is None
        assert (moved.kind, moved.host_id) in file.forged


@pytest.mark.parametrize("keys", [(OTHER,), (OTHER, b"x" * KEY_BYTES)])
def test_the_records_of_another_key_or_cluster_are_not_believed(
    path: str, keys: tuple[bytes, ...]
) -> None:
    with opened(path, ENFORCE) as file:
        file.write(*SLOT, 5, b"true")
    for other in (replace(ENFORCE, keys=keys), replace(ENFORCE, cluster="c2")):
        with opened(path, other) as file:
            assert file.read(*SLOT) is None


def test_keys_are_exchanged_under_a_file_that_stays_open(path: str) -> None:
    now = [ENFORCE]
    with RecordFile(path, authenticate=lambda: now[0]) as file:
        first = file.write(*SLOT, 5, b"old key")
        now[0] = replace(ENFORCE, keys=(KEY, OTHER))
        assert file.is_signed(first)
        now[0] = replace(ENFORCE, keys=(OTHER, KEY))
        assert file.read(*SLOT) == first
        assert not file.is_signed(first)
        second = file.write(*SLOT, 5, b"new key")
        assert file.is_signed(second)
        now[0] = replace(ENFORCE, keys=(OTHER,))
        assert file.read(*SLOT) == second
