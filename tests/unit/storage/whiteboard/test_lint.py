# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lint says what is wrong with each block; repair never touches the block of a node that lives."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import LeaseError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.kernel_lock import (
    KernelLock,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.lockspace.delta_lease import (  # noqa: E501
    DeltaLease,
    LeaseArea,
    initial_lockspace,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.whiteboard.block import (  # noqa: E501
    BLOCK_BYTES,
    SMALL_BLOCK_BYTES,
    GlobalBlock,
    HostBlock,
    encode_global,
    encode_host,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.whiteboard.file import (
    Whiteboard,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.whiteboard.lint import (
    CLEAR,
    LEAVE,
    REWRITE,
    apply_repair,
    complete_file,
    host_guard,
    lint,
    look_twice,
    plan_repair,
    read_for_lint,
    why_live,
)

SIZES = (BLOCK_BYTES, SMALL_BLOCK_BYTES)

DEAD_AFTER = 8 * 2 + 60
"""Seconds: eight I/O timeouts of 2 s, and the longest watchdog timeout."""


@pytest.fixture(params=SIZES)
def size(request):
    return request.param


@pytest.fixture
def board(tmp_path, size):
    path = str(tmp_path / "c1.metadata")
    Whiteboard(path).create(8, block_bytes=size)
    with Whiteboard(path) as whiteboard:
        for host_id in (1, 2, 3):
            whiteboard.write_host(HostBlock(host_id, 10, 3400, f"n{host_id}", extra="a=b\n"))
        yield whiteboard


@pytest.fixture
def lockspace(tmp_path):
    path = tmp_path / "c1.lockspace"
    path.write_bytes(initial_lockspace("c1", 2))
    return str(path)


def damage(board, number, place, data):
    block = bytearray(board.read_block(number))
    block[place : place + len(data)] = data
    board.write_block(number, bytes(block))


def observed(board, lockspace="", seconds=12.0, meanwhile=lambda: None):
    return look_twice(board, lockspace, seconds, lambda _seconds: meanwhile())


def hold(lockspace, host_id, timestamp=50):
    with LeaseArea(lockspace) as area:
        area.write_host(host_id, DeltaLease("c1", host_id, f"n{host_id}", 1, timestamp, 2))


def findings(board):
    return lint(board.read_bytes(), board.block_bytes())


def test_a_board_that_is_right_has_no_findings(board):
    assert findings(board) == []


@pytest.mark.parametrize(
    ("number", "place", "data", "problem", "remedy"),
    [
        (2, 5, b"\xff", "not UTF-8", CLEAR),
        (2, 4, b"9", "checksum", CLEAR),
        (2, 0, b"key=value", "not the start of a block", CLEAR),
        (5, 600, b"x", "machine part is blank", CLEAR),
        (2, 512, b"\xff", "beyond ASCII in its text", REWRITE),
        (2, 1000, b"x", "follow the end of its text", REWRITE),
        (0, 0, b"maintenance", "global block", REWRITE),
        (0, 100, b"x", "global block", REWRITE),
    ],
)
def test_each_kind_of_damage_is_named_and_put_right(board, number, place, data, problem, remedy):
    if number == 0:
        board.write_global(GlobalBlock(False))
        data = data if place else data.ljust(board.block_bytes(), b"\0") + b""
    damage(board, number, place, data)
    if number == 0 and place == 0:
        damage(board, 0, 0, b"maintenance=perhaps")
    before = {other: board.read_block(other) for other in range(9) if other != number}
    found = findings(board)
    assert [finding.host_id for finding in found] == [number]
    assert problem in found[0].problem
    repairs = plan_repair(found, observed(board))
    assert [repair.action for repair in repairs] == [remedy]
    assert apply_repair(board, repairs) == 1
    assert findings(board) == []
    assert {other: board.read_block(other) for other in before} == before


def test_a_block_in_a_wrong_slot_is_cleared_there_and_kept_where_it_belongs(board, size):
    board.write_block(4, board.read_block(1))
    [repair] = plan_repair(findings(board), observed(board))
    assert "wrong slot" in repair.problem
    apply_repair(board, [repair])
    assert board.read_block(4) == bytes(size)
    assert board.read_host(1).host_name == "n1"


def test_an_unknown_maintenance_is_written_as_maintenance(board, size):
    damage(board, 0, 0, b"maintenance\xff")
    apply_repair(board, plan_repair(findings(board), observed(board)))
    assert board.read_block(0) == encode_global(GlobalBlock(True), size)


def test_a_host_name_that_two_nodes_have_is_named_and_left(board):
    board.write_host(HostBlock(6, 10, 1, "n2"))
    [finding] = findings(board)
    assert (finding.host_id, finding.remedy) == (6, None)
    assert "that of host id 2 too" in finding.problem
    assert plan_repair([finding], observed(board)) == []


def test_text_beyond_ascii_is_rewritten_and_the_machine_part_kept(board, size):
    block = encode_host(HostBlock(2, 10, 1, "n2"), size)
    board.write_block(2, block[:512] + "été\n".encode().ljust(size - 512, b"\0"))
    apply_repair(board, plan_repair(findings(board), observed(board)))
    assert board.read_host(2).extra == "\\xe9t\\xe9\n"
    assert board.read_block(2)[:512] == block[:512]


@pytest.mark.parametrize(
    "reason", ["held", "renewed", "locked", "damaged", "wrote", "no lockspace"]
)
def test_the_block_of_a_node_that_may_live_is_left_with_the_reason(board, lockspace, reason):
    damage(board, 2, 4, b"9")
    lock = KernelLock(lockspace, 512, 512)
    seconds = 1000.0 if reason == "renewed" else 12.0
    if reason in ("held", "renewed"):
        hold(lockspace, 2)
    if reason == "locked":
        lock.take()
    if reason == "damaged":
        with open(lockspace, "r+b") as file:  # noqa: PTH123
            file.seek(512 + 40)
            file.write(b"\xff")
    if reason == "no lockspace":
        lockspace, seconds = "", 0.0

    def meanwhile():
        if reason == "renewed":
            hold(lockspace, 2, 51)
        if reason == "wrote":
            damage(board, 2, 4, b"8")

    look = observed(board, lockspace, seconds, meanwhile)
    before = board.read_block(2)
    words = {
        "held": "node n2 holds its host lease",
        "renewed": "renewed its host lease",
        "locked": "locks its host lease",
        "damaged": "cannot be read",
        "wrote": "its block changed",
        "no lockspace": "may live",
    }
    [repair] = plan_repair(findings(board), look)
    assert (repair.action, repair.after) == (LEAVE, repair.before)
    assert words[reason] in repair.reason
    assert apply_repair(board, [repair]) == 0
    assert board.read_block(2) == before
    [forced] = plan_repair(findings(board), look, force=True)
    assert apply_repair(board, [forced]) == 1
    lock.release()


def test_a_host_lease_that_was_not_renewed_for_long_enough_is_that_of_a_dead_node(board, lockspace):
    hold(lockspace, 2)
    assert why_live(2, observed(board, lockspace, DEAD_AFTER - 1))
    assert why_live(2, observed(board, lockspace, DEAD_AFTER)) == ""


def test_a_lockspace_that_cannot_be_read_speaks_for_everybody(board, tmp_path):
    (tmp_path / "c1.lockspace").write_bytes(b"x" * (1 << 20))
    look = observed(board, str(tmp_path / "c1.lockspace"))
    assert "cannot be read" in why_live(8, look)


def test_a_node_that_writes_between_plan_and_repair_keeps_its_block(board):
    damage(board, 2, 4, b"9")
    repairs = plan_repair(findings(board), observed(board))
    board.write_host(HostBlock(2, 11, 3400, "n2"))
    with pytest.raises(LeaseError, match="written meanwhile"):
        apply_repair(board, repairs)
    assert board.read_host(2).timestamp == 11


def test_a_node_that_joins_between_plan_and_repair_keeps_its_block(board, lockspace):
    damage(board, 2, 4, b"9")
    before = board.read_block(2)
    repairs = plan_repair(findings(board), observed(board, lockspace))
    lock = KernelLock(lockspace, 512, 512)
    lock.take()
    with pytest.raises(LeaseError, match="just took host id 2"):
        apply_repair(board, repairs, host_guard(lockspace))
    assert board.read_block(2) == before
    lock.release()
    assert apply_repair(board, repairs, host_guard(lockspace)) == 1
    assert lock.take()
    lock.release()


def test_what_somebody_else_repaired_already_is_no_change(board):
    damage(board, 2, 4, b"9")
    repairs = plan_repair(findings(board), observed(board))
    assert apply_repair(board, repairs) == 1
    assert apply_repair(board, repairs) == 0


def test_only_the_host_ids_asked_for_are_repaired(board):
    for number in (1, 2, 3):
        damage(board, number, 4, b"9")
    repairs = plan_repair(findings(board), observed(board), only=[2])
    assert [repair.host_id for repair in repairs] == [2]


def test_a_file_that_ends_within_a_block_is_completed(board, size, tmp_path):
    path = tmp_path / "c1.metadata"
    path.write_bytes(path.read_bytes()[: 4 * size + 700])
    data, block_bytes, problem = read_for_lint(str(path))
    assert (len(data), block_bytes) == (4 * size, size)
    assert problem == "the file ends within the block of host id 4"
    complete_file(str(path), size)
    with Whiteboard(str(path)) as whole:
        assert sorted(whole.read().hosts) == [1, 2, 3]
    assert read_for_lint(str(path))[2] == ""


def test_a_forced_repair_says_what_it_was_forced_against(board, lockspace):
    damage(board, 2, 4, b"9")
    hold(lockspace, 2)
    [repair] = plan_repair(findings(board), observed(board, lockspace), force=True)
    assert repair.reason.startswith("forced although node n2 holds")
    assert replace(repair, reason="").action == CLEAR
