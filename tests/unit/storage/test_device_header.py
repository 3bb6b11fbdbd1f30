# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The header of a device: damage to a copy is repaired from the other, anything else is refused."""

from __future__ import annotations

import struct
import zlib
from dataclasses import replace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import (
    FormatError,
    StorageError,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.device_header import (
    COPY_BYTES,
    GRAIN,
    HEADER_BYTES,
    Area,
    DeviceHeader,
    decode_copies,
    encode_header,
    write_order,
)

MEBIBYTE = 1 << 20
DEVICE = "/dev/disk/by-id/lun1"
HEADER = DeviceHeader(
    "rack1",
    "6fa459ea-ee8a-3ca4-894e-db77e160355e",
    4096,
    {"lockspace": Area(GRAIN, 8 * MEBIBYTE), "metadata": Area(2 * GRAIN, 65 * 4096)},
    7,
)
PAGE = encode_header(HEADER)


def forged(**changes: int) -> bytes:
    """Return a page with other fields and the right checksum, as a faulty writer leaves it."""
    page = bytearray(PAGE)
    for field, value in changes.items():
        form, offset = {"version": ("<I", 8), "sectors": ("<I", 12), "areas": ("<I", 88)}.get(
            field, ("<Q", {"offset": 92 + 32 + 16, "size": 92 + 32 + 24}.get(field, 0))
        )
        struct.pack_into(form, page, offset, value)
    page[-4:] = struct.pack("<I", zlib.crc32(page[:-4]))
    return bytes(page)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\xeb\x3c\x90MSDOS5.0".ljust(COPY_BYTES, b"\0") + PAGE, "something else is written"),
        (PAGE + bytes(512) + b"LABELONE".ljust(COPY_BYTES - 512, b"\0"), "something else"),
        (PAGE[:100] + b"x" + PAGE[101:] + bytes(COPY_BYTES), "no copy of its header is whole"),
        (
            PAGE + encode_header(replace(HEADER, storage_id="7" * 32, sequence=8)),
            "two clusters' storage",
        ),
        (forged(version=2) * 2, "format 2; this version of holdfast knows 1"),
        (forged(sectors=1024) * 2, "makes no sense"),
        (forged(areas=17) * 2, "makes no sense"),
        (forged(offset=GRAIN) * 2, "makes no sense"),
        (forged(offset=0) * 2, "makes no sense"),
        (forged(offset=2 * GRAIN + 4096) * 2, "makes no sense"),
        (forged(size=0) * 2, "makes no sense"),
    ],
    ids=[
        *("a boot sector", "a label in the second copy", "both damaged", "two clusters"),
        *("a later format", "sectors", "too many areas", "areas that overlap"),
        *("an area over the header", "an area off its place", "an empty area"),
    ],
)
def test_what_is_no_header_of_one_cluster_is_refused(data, reason):
    with pytest.raises(FormatError, match=reason) as error:
        decode_copies(data, DEVICE)
    assert DEVICE in str(error.value)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (PAGE[:100] + b"x" + PAGE[101:] + PAGE, "checksum of copy 0"),
        (PAGE + PAGE[:-1] + b"x", "checksum of copy 1"),
        (PAGE + bytes(COPY_BYTES), "copy 1 of its header is blank"),
        (PAGE + encode_header(replace(HEADER, areas={}, sequence=6)), "older than the other"),
        (encode_header(replace(HEADER, areas={}, sequence=6)) + PAGE, "older than the other"),
    ],
)
def test_the_newest_whole_copy_counts_and_the_other_is_a_problem(data, problem):
    copies = decode_copies(data, DEVICE)
    assert copies.header == HEADER
    assert problem in copies.problem


def test_two_whole_copies_are_no_problem_and_a_blank_device_has_no_header():
    assert decode_copies(PAGE * 2, DEVICE) == decode_copies(PAGE * 2, DEVICE)
    assert decode_copies(PAGE * 2, DEVICE).problem == ""
    assert decode_copies(bytes(HEADER_BYTES), DEVICE).header is None


def test_the_newest_whole_copy_is_written_last():
    older = encode_header(replace(HEADER, sequence=6))
    torn = PAGE[:100] + b"x" + PAGE[101:]
    assert write_order(PAGE + older) == [1, 0]
    assert write_order(older + PAGE) == [0, 1]
    assert write_order(torn + older) == [0, 1]
    assert write_order(older + torn) == [1, 0]


def test_an_area_that_does_not_fit_is_refused_with_the_space_that_is_left():
    with pytest.raises(StorageError, match="is too small: state of cluster rack1 needs 9 MiB") as e:
        HEADER.placed("state", 8 * MEBIBYTE + 1, 32 * MEBIBYTE, DEVICE)
    assert "8 of 32 MiB are free" in str(e.value)
    HEADER.placed("state", 8 * MEBIBYTE, 32 * MEBIBYTE, DEVICE)


def test_an_area_takes_the_first_gap_and_never_the_place_of_the_one_it_replaces():
    size = 1 << 40
    after = HEADER.placed("lockspace", 8 * MEBIBYTE, size, DEVICE)
    assert after.areas["lockspace"] == Area(3 * GRAIN, 8 * MEBIBYTE)
    assert after.sequence == HEADER.sequence + 1
    assert after.placed("leases", 8 * MEBIBYTE, size, DEVICE).areas["leases"].offset == GRAIN
    large = after.placed("leases", 8 * MEBIBYTE + 1, size, DEVICE).areas["leases"]
    assert large.offset == 4 * GRAIN


def test_a_removed_area_leaves_the_others_where_they_are():
    after = HEADER.without("lockspace")
    assert after.areas == {"metadata": HEADER.areas["metadata"]}
    assert decode_copies(encode_header(after) * 2, DEVICE).header == after
