# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""``holdfast board`` and ``holdfast lockspace`` on files, with nothing else around."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.cli.main import main
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.lockspace.delta_lease import (  # noqa: E501
    DeltaLease,
    LeaseArea,
    initial_lockspace,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.whiteboard.block import (  # noqa: E501
    HostBlock,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.whiteboard.file import (
    Whiteboard,
)

LIBRARY = Path(__file__).resolve().parents[3] / "plugins" / "module_utils"


@pytest.fixture(params=[4096, 2048])
def board(request, tmp_path, monkeypatch):
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    path = tmp_path / "c1.metadata"
    with Whiteboard(str(path)) as whiteboard:
        whiteboard.create(4, block_bytes=request.param)
        for host_id in (1, 2, 3):
            whiteboard.write_host(HostBlock(host_id, 10, 3400, f"n{host_id}", {"vm": "up"}))
        yield whiteboard


@pytest.fixture
def damaged(board):
    block = bytearray(board.read_block(2))
    block[4] = ord("9")
    board.write_block(2, bytes(block))
    return board


def run(capsys, *arguments):
    """Run the command; return its exit status and what it printed."""
    status = main(arguments)
    return status, capsys.readouterr()


def test_a_dump_shows_all_blocks_and_fails_for_a_damaged_one(damaged, capsys):
    status, output = run(capsys, "board", "dump", damaged.path)
    assert status == 1
    assert "n1" in output.out
    assert "n3" in output.out
    assert "host id 2: block of host id 2: the checksum" in output.out
    status, output = run(capsys, "board", "dump", damaged.path, "--json")
    assert [host["host_id"] for host in json.loads(output.out)["hosts"]] == [1, 3]


def test_a_dump_can_look_like_hosted_engines(board, capsys):
    status, output = run(capsys, "board", "dump", board.path, "--hosted-engine", "--json")
    assert status == 0
    assert json.loads(output.out)["2"]["hostname"] == "n2"
    _status, output = run(capsys, "board", "dump", board.path, "--hosted-engine")
    assert "--== Host n2 (id: 2) status ==--" in output.out


def test_lint_finds_nothing_on_a_board_that_is_right(board, capsys):
    assert run(capsys, "board", "lint", board.path)[0] == 0
    status, output = run(capsys, "board", "lint", board.path, "--json")
    assert (status, json.loads(output.out)["findings"]) == (0, [])


def test_repair_writes_nothing_until_it_is_told_to_apply(damaged, capsys):
    before = Path(damaged.path).read_bytes()
    status, output = run(capsys, "board", "repair", damaged.path)
    assert status == 1
    assert "would be cleared" in output.out
    assert "--apply" in output.out
    assert Path(damaged.path).read_bytes() == before
    status, output = run(capsys, "board", "repair", damaged.path, "--apply")
    assert status == 0
    assert "is cleared" in output.out
    assert sorted(damaged.read().hosts) == [1, 3]
    assert run(capsys, "board", "lint", damaged.path)[0] == 0
    assert run(capsys, "board", "repair", damaged.path, "--apply")[0] == 0


def test_the_block_of_a_live_node_is_left_until_forced(damaged, tmp_path, capsys):
    (tmp_path / "c1.lockspace").write_bytes(initial_lockspace("c1", 2))
    with LeaseArea(str(tmp_path / "c1.lockspace")) as area:
        area.write_host(2, DeltaLease("c1", 2, "n2", 1, 50, 2))
    before = Path(damaged.path).read_bytes()
    arguments = ("board", "repair", damaged.path, "--apply", "--json")
    status, output = run(capsys, *arguments)
    assert status == 1
    [repair] = json.loads(output.out)["repairs"]
    assert (repair["action"], json.loads(output.out)["written"]) == ("leave", 0)
    assert "n2 holds its host lease" in repair["reason"]
    assert Path(damaged.path).read_bytes() == before
    status, output = run(capsys, *arguments, "--force")
    assert (status, json.loads(output.out)["written"]) == (0, 1)


def test_without_a_watch_and_a_lockspace_nothing_is_touched(damaged, capsys):
    status, output = run(capsys, "board", "repair", damaged.path, "--apply", "--watch", "0")
    assert status == 1
    assert "it may live" in output.out


def test_a_file_that_ends_within_a_block_is_told_and_completed(board, capsys):
    size = board.block_bytes()
    os.truncate(board.path, 4 * size + 512)
    status, output = run(capsys, "board", "lint", board.path)
    assert status == 1
    assert "ends within the block of host id 4" in output.out
    assert run(capsys, "board", "dump", board.path)[0] == 2
    assert run(capsys, "board", "repair", board.path)[0] == 1
    assert Path(board.path).stat().st_size == 4 * size + 512
    assert run(capsys, "board", "repair", board.path, "--apply")[0] == 0
    assert Path(board.path).stat().st_size == 5 * size


@pytest.mark.parametrize(
    "arguments",
    [
        ("board", "dump", "/nowhere/board"),
        ("board", "lint", "/nowhere/board"),
        ("board", "repair", "/nowhere/board"),
        ("lockspace", "dump", "/nowhere/lockspace"),
        ("lockspace", "init", "/nowhere/lockspace"),
        ("board", "dump", "/nowhere/board", "--watch", "601"),
    ],
)
def test_what_cannot_be_answered_is_one_sentence_and_status_2(arguments, capsys):
    status, output = run(capsys, *arguments)
    assert status == 2
    assert output.err.startswith("holdfast: ")
    assert output.err.count("\n") == 1


def test_a_lockspace_is_made_shown_and_not_made_anew_while_in_use(tmp_path, capsys):
    path = str(tmp_path / "c1.lockspace")
    assert run(capsys, "lockspace", "init", path, "--io-timeout", "2")[0] == 0
    assert Path(path).read_bytes() == initial_lockspace("c1", 2)
    with LeaseArea(path) as area:
        area.write_host(7, DeltaLease("c1", 7, "n7", 3, 50, 2))
    status, output = run(capsys, "lockspace", "dump", path)
    assert status == 0
    assert output.out.splitlines()[1].split() == [
        "00003072",
        "c1",
        "n7",
        "0000000050",
        "0007",
        "0003",
    ]
    _status, output = run(capsys, "lockspace", "dump", path, "--json")
    assert json.loads(output.out)[0]["generation"] == 3
    status, output = run(capsys, "lockspace", "init", path)
    assert status == 2
    assert "node n7 (host id 7)" in output.err
    assert run(capsys, "lockspace", "init", path, "--force")[0] == 0
    assert Path(path).read_bytes() == initial_lockspace("c1", 10)


def test_python_alone_is_enough(damaged):
    done = subprocess.run(
        [sys.executable, "-I", "-c",
         f"import sys; sys.path.insert(0, {str(LIBRARY)!r}); "
         "from _holdfast.operator.cli.main import main; "
         f"raise SystemExit(main(['board', 'lint', {damaged.path!r}]))"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "")
    assert "the checksum" in done.stdout
