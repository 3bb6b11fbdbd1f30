# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Byte for byte what hosted engine writes; its cases are outside data, read where they exist."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import (
    FormatError,
    InputError,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.lockspace.delta_lease import (  # noqa: E501
    decode_area,
    decode_delta,
    initial_lockspace,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.lockspace.leader_record import (  # noqa: E501
    Layout,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.whiteboard.block import (  # noqa: E501
    BLOCK_BYTES,
    MACHINE_BYTES,
    GlobalBlock,
    HostBlock,
    decode_global,
    decode_host,
    encode_global,
    encode_host,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.whiteboard.board import (  # noqa: E501
    Watched,
    decode_board,
    vm_status,
    vm_status_text,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.whiteboard.file import (
    Whiteboard,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.whiteboard.lint import (
    lint,
)
from ansible_collections.holdfast.ha.tests.unit.storage.whiteboard.hosted_engine_departures import (
    CONTAINED_HERE,
    GLOBAL_REFUSED_HERE,
    REFUSED_HERE,
)

FILE = Path(__file__).resolve().parents[5] / "shared" / "corpus" / "hosted-engine" / "vectors.json"
VECTORS = json.loads(FILE.read_text()) if FILE.exists() else {}
needs_vectors = pytest.mark.skipif(not VECTORS, reason="the hosted engine vectors are not here")


def named(section):
    return [pytest.param(case, id=case["name"]) for case in VECTORS.get(section, [])]


def block_of(case):
    parsed = case["parsed_by_peer"]
    return HostBlock(
        host_id=parsed["host-id"],
        timestamp=parsed["host-ts"],
        score=parsed["score"],
        host_name=parsed["hostname"],
        health=json.loads(parsed["engine-status"]),
        maintenance=parsed["maintenance"],
        stopped=parsed["stopped"],
        conf_on_shared_storage=parsed["conf_on_shared_storage"],
        conf_timestamp=parsed["local_conf_timestamp"],
        extra=parsed["extra"],
    )


def padded(encoded, size):
    return base64.b64decode(encoded).ljust(size, b"\0")


WRITTEN_HERE_TOO = ("good", "ten_tokens_with_crc_no_conf_fields", "negative_score")
"""Reader cases that are what a writer of today writes: the others have fields left out or added,
or characters that are not written here."""


@needs_vectors
@pytest.mark.parametrize("case", named("host_blocks"))
def test_a_host_block_is_byte_identical_in_both_directions(case):
    on_disk = base64.b64decode(case["ondisk_block_b64"])
    assert encode_host(block_of(case)) == on_disk
    decoded = decode_host(on_disk, case["parsed_by_peer"]["host-id"])
    assert decoded == block_of(case)
    assert decoded.checksum == case["crc32"]


@needs_vectors
def test_one_byte_more_than_the_machine_part_has_is_refused():
    case = next(c for c in VECTORS["host_blocks"] if c["machine_len"] == MACHINE_BYTES)
    longer = json.loads(json.dumps(case))
    longer["parsed_by_peer"]["hostname"] += "x"
    with pytest.raises(InputError, match="513 bytes"):
        encode_host(block_of(longer))


@needs_vectors
@pytest.mark.parametrize("maintenance", [True, False])
def test_a_global_block_is_byte_identical(maintenance):
    [case] = [
        case
        for case in VECTORS["global_blocks"]
        if case["text"] == f"maintenance={int(maintenance)}"
    ]
    on_disk = base64.b64decode(case["block_b64"])
    assert encode_global(GlobalBlock(maintenance)) == on_disk
    assert decode_global(on_disk) == GlobalBlock(maintenance)


@needs_vectors
@pytest.mark.parametrize("case", named("reader_cases"))
def test_a_reader_case_matches_or_departs_on_purpose(case):
    data = padded(case["machine_b64"], MACHINE_BYTES) + padded(
        case["extra_b64"], BLOCK_BYTES - MACHINE_BYTES
    )
    if case["name"] == "all_zero_block":
        assert decode_host(data, case["host_id"]) is None
    elif case["outcome"] != "accepted" or case["name"] in REFUSED_HERE:
        with pytest.raises(FormatError):
            decode_host(data, case["host_id"])
    else:
        found = decode_host(data, case["host_id"])
        desired = case["result"]
        assert found.timestamp == desired["host-ts"]
        assert found.score == desired["score"]
        assert found.health == json.loads(desired["engine-status"])
        assert found.host_name == desired["hostname"]
        assert found.maintenance == desired["maintenance"]
        assert found.stopped == desired["stopped"]
        assert found.conf_on_shared_storage == desired.get("conf_on_shared_storage")
        assert found.conf_timestamp == desired.get("local_conf_timestamp")
        if case["name"] in WRITTEN_HERE_TOO:
            assert encode_host(found) == data


@needs_vectors
def test_every_departure_is_a_case_that_exists():
    assert set(REFUSED_HERE) <= {case["name"] for case in VECTORS["reader_cases"]}
    assert set(GLOBAL_REFUSED_HERE) <= {case["name"] for case in VECTORS["global_reader_cases"]}
    file_level = {case["case"] for case in VECTORS["file_level_cases"]}
    assert set(CONTAINED_HERE) == file_level | {"global_two_keys_peer_bug"}


@needs_vectors
@pytest.mark.parametrize("case", named("global_reader_cases"))
def test_a_global_reader_case_matches_or_departs_on_purpose(case):
    data = padded(case["raw_b64"], BLOCK_BYTES)
    if case["outcome"] == "accepted" and case["name"] not in GLOBAL_REFUSED_HERE:
        assert decode_global(data).maintenance == case["result"].get("maintenance", False)
    else:
        with pytest.raises(FormatError):
            decode_global(data)


@needs_vectors
def test_a_blank_global_block_is_what_a_new_board_has(tmp_path):
    [case] = [case for case in VECTORS["global_blocks"] if not case["text"]]
    on_disk = base64.b64decode(case["block_b64"])
    assert decode_global(on_disk) == GlobalBlock(False)
    Whiteboard(str(tmp_path / "board")).create(3)
    assert (tmp_path / "board").read_bytes() == 4 * on_disk


@needs_vectors
def test_a_global_block_of_two_keys_is_read_and_lint_puts_it_right():
    data = VECTORS["global_two_keys_peer_bug"]["text"].encode().ljust(BLOCK_BYTES, b"\0")
    assert decode_global(data) == GlobalBlock(True)
    [finding] = lint(data + bytes(BLOCK_BYTES), BLOCK_BYTES)
    assert finding.remedy == encode_global(GlobalBlock(True))


def board_of(*host_ids):
    """Return the board that the vectors' status was made from."""
    blocks = {c["parsed_by_peer"]["host-id"]: c for c in VECTORS["host_blocks"]}
    data = bytearray(BLOCK_BYTES * 251)
    data[:BLOCK_BYTES] = encode_global(GlobalBlock(True))
    for host_id in host_ids:
        start = host_id * BLOCK_BYTES
        data[start : start + BLOCK_BYTES] = base64.b64decode(blocks[host_id]["ondisk_block_b64"])
    return data


@needs_vectors
@pytest.mark.parametrize("place", [5, 600], ids=["machine", "text"])
def test_a_byte_that_is_no_text_takes_no_other_block_away(place):
    data = board_of(1, 2, 3)
    data[2 * BLOCK_BYTES + place] = 0xFF
    found = decode_board(bytes(data))
    assert {1, 3} <= set(found.hosts)
    assert (2 in found.problems) == (place < MACHINE_BYTES)
    assert [finding.host_id for finding in lint(bytes(data), BLOCK_BYTES)] == [2]


@needs_vectors
def test_a_host_name_beyond_ascii_shifts_no_later_block():
    case = next(c for c in VECTORS["reader_cases"] if c["name"] == "utf8_hostname")
    data = board_of(2, 3, 250)
    data[BLOCK_BYTES : BLOCK_BYTES + MACHINE_BYTES] = padded(case["machine_b64"], MACHINE_BYTES)
    found = decode_board(bytes(data))
    assert sorted(found.hosts) == [1, 2, 3, 250]
    assert not found.problems
    [finding] = lint(bytes(data), BLOCK_BYTES)
    assert finding.host_id == 1
    assert "shift all later blocks" in finding.problem


@needs_vectors
def test_a_file_shorter_than_hosted_engines_window_has_as_many_blocks_as_it_has(tmp_path):
    path = tmp_path / "board"
    path.write_bytes(board_of(1, 2, 3)[: 4 * BLOCK_BYTES])
    with Whiteboard(str(path)) as board:
        found = board.read()
    assert (found.max_hosts, sorted(found.hosts)) == (3, [1, 2, 3])
    path.write_bytes(path.read_bytes()[:-100])
    with Whiteboard(str(path)) as board, pytest.raises(FormatError, match="no whiteboard"):
        board.read()


@needs_vectors
def test_a_payload_that_ran_into_the_next_block_harms_that_block_alone():
    data = board_of(1, 2, 3)
    start = BLOCK_BYTES + MACHINE_BYTES
    data[start : start + 5120 - MACHINE_BYTES] = b"key=value\n" * 460 + b"key=valu"
    found = decode_board(bytes(data))
    assert sorted(found.hosts) == [1, 3]
    findings = lint(bytes(data), BLOCK_BYTES)
    assert [finding.host_id for finding in findings] == [2]
    assert "the text of host id 1 runs into it" in findings[0].problem


@needs_vectors
@pytest.mark.parametrize("name", sorted(VECTORS.get("lockspace_vectors", {})))
def test_a_new_lockspace_is_what_sanlock_makes(name):
    case = VECTORS["lockspace_vectors"][name]
    layout = Layout(case["sector"], case["size"])
    area = initial_lockspace("hosted-engine", 10, layout=layout)
    assert layout.max_hosts == case["records"]
    assert hashlib.sha256(area).hexdigest() == case["sha256"]
    assert decode_area(area).max_hosts == case["records"]
    record = base64.b64decode(case["first_record_b64"])
    assert area[: len(record)] == record
    lease = decode_delta(record, 1)
    desired = case["first_record_fields"]
    assert lease.lockspace == desired["space_name"]
    assert (lease.host_id, lease.generation) == (desired["owner_id"], desired["owner_generation"])
    assert (lease.host_name, lease.timestamp) == (desired["resource_name"], desired["timestamp"])
    assert (lease.io_timeout, lease.layout) == (desired["io_timeout"], layout)


def watched_board():
    return Watched(decode_board(bytes(board_of(1, 2, 250))), 60.0, {1: 1.0, 2: 1.0})


@needs_vectors
def test_the_status_for_programs_is_hosted_engines_byte_for_byte():
    assert json.dumps(vm_status(watched_board())) + "\n" == VECTORS["vm_status_output"]["json"]


@needs_vectors
def test_the_status_for_people_is_hosted_engines_byte_for_byte():
    assert vm_status_text(watched_board()) == VECTORS["vm_status_output"]["text"]
