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
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.board_view import (
    vm_status,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.host_lease import (
    decode_area,
    initial_lockspace,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.leader_record import (
    Layout,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.whiteboard import (
    BLOCK_BYTES,
    MACHINE_BYTES,
    GlobalBlock,
    HostBlock,
    decode_board,
    decode_global,
    decode_host,
    encode_global,
    encode_host,
)
from ansible_collections.holdfast.ha.tests.unit.storage.hosted_engine_departures import (
    REFUSED_HERE,
)

FILE = Path(__file__).resolve().parents[4] / "shared" / "corpus" / "hosted-engine" / "vectors.json"
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
        wanted = case["result"]
        assert found.timestamp == wanted["host-ts"]
        assert found.score == wanted["score"]
        assert found.health == json.loads(wanted["engine-status"])
        assert found.host_name == wanted["hostname"]
        assert found.maintenance == wanted["maintenance"]
        assert found.stopped == wanted["stopped"]
        assert found.conf_on_shared_storage == wanted.get("conf_on_shared_storage")
        assert found.conf_timestamp == wanted.get("local_conf_timestamp")


@needs_vectors
def test_every_departure_is_a_case_that_exists():
    assert set(REFUSED_HERE) <= {case["name"] for case in VECTORS["reader_cases"]}


@needs_vectors
@pytest.mark.parametrize("case", named("global_reader_cases"))
def test_a_global_reader_case_matches(case):
    data = padded(case["raw_b64"], BLOCK_BYTES)
    if case["outcome"] == "accepted":
        assert decode_global(data).maintenance == case["result"].get("maintenance", False)
    else:
        with pytest.raises(FormatError):
            decode_global(data)


@needs_vectors
@pytest.mark.parametrize("name", sorted(VECTORS.get("lockspace_vectors", {})))
def test_a_new_lockspace_is_what_sanlock_makes(name):
    case = VECTORS["lockspace_vectors"][name]
    layout = Layout(case["sector"], case["size"])
    area = initial_lockspace("hosted-engine", 10, layout=layout)
    assert layout.max_hosts == case["records"]
    assert hashlib.sha256(area).hexdigest() == case["sha256"]
    assert decode_area(area).max_hosts == case["records"]


@needs_vectors
def test_the_status_has_hosted_engines_shape():
    wanted = json.loads(VECTORS["vm_status_output"]["json"])
    blocks = {c["parsed_by_peer"]["host-id"]: c for c in VECTORS["host_blocks"]}
    data = bytearray(BLOCK_BYTES * 251)
    data[:BLOCK_BYTES] = encode_global(GlobalBlock(True))
    for host_id in (1, 2, 250):
        start = host_id * BLOCK_BYTES
        data[start : start + BLOCK_BYTES] = base64.b64decode(blocks[host_id]["ondisk_block_b64"])
    found = vm_status(decode_board(bytes(data)))
    for one in (
        *(wanted[key] for key in ("1", "2", "250")),
        *(found[k] for k in ("1", "2", "250")),
    ):
        one.pop("live-data")
    assert found == wanted
