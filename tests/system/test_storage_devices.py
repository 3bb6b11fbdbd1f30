# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whiteboard and lockspace on block devices with sectors of 512 and of 4096 bytes; needs root."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / ".collections"))

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import StorageError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.cli.main import main
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.lockspace.delta_lease import (  # noqa: E501
    read_lockspace,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.lockspace.file import (
    initialise,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.lockspace.leader_record import (  # noqa: E501
    MEBIBYTE,
    Layout,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.whiteboard.block import (  # noqa: E501
    GlobalBlock,
    HostBlock,
    encode_global,
    encode_host,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.whiteboard.file import (
    Whiteboard,
)


def run(*command: str) -> str:
    """Run a command that has to work and return what it says."""
    return subprocess.run(
        command, check=True, capture_output=True, text=True, timeout=60
    ).stdout.strip()


@pytest.fixture(params=[512, 4096], ids=["sectors of 512", "sectors of 4096"])
def device(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, int]]:
    """Return a loop device and the size of its sectors; skip where that is not possible."""
    if os.geteuid() != 0 or shutil.which("losetup") is None:
        pytest.skip("a loop device needs root and losetup")
    with (tmp_path / "image").open("wb") as file:
        file.truncate(9 << 20)
    try:
        name = run(
            *("losetup", "--find", "--show", "--sector-size", str(request.param)),
            str(tmp_path / "image"),
        )
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no loop device can be had: {error.stderr.strip()}")
    try:
        yield name, request.param
    finally:
        run("losetup", "--detach", name)


def put_board(name: str, size: int) -> None:
    """Write a board with two hosts on a device."""
    blocks = [encode_global(GlobalBlock(False), size)]
    blocks += [encode_host(HostBlock(number, 10, 1, f"n{number}"), size) for number in (1, 2)]
    Path(name).write_bytes(b"".join(blocks))


def test_blocks_of_4096_are_read_written_and_repaired_on_any_device(
    device: tuple[str, int], capsys: pytest.CaptureFixture[str]
) -> None:
    name, _sector = device
    put_board(name, 4096)
    with Whiteboard(name) as board:
        board.write_host(HostBlock(2, 11, 1, "n2"))
        assert sorted(board.read().hosts) == [1, 2]
        assert board.max_hosts() == 2000
        board.write_block(1, b"damage".ljust(4096, b"\0"))
    assert main(["board", "lint", name]) == 1
    assert main(["board", "repair", name, "--apply", "--watch", "3"]) == 0
    with Whiteboard(name) as board:
        assert list(board.read().hosts) == [2]
    assert "is cleared" in capsys.readouterr().out


def test_blocks_of_2048_are_refused_where_a_sector_is_larger(device: tuple[str, int]) -> None:
    name, sector = device
    put_board(name, 2048)
    with Whiteboard(name) as board:
        assert sorted(board.read().hosts) == [1, 2]
        if sector <= 2048:
            board.write_host(HostBlock(2, 11, 1, "n2"))
            assert board.read_host(2) == HostBlock(2, 11, 1, "n2")
            return
        before = Path(name).read_bytes()
        with pytest.raises(StorageError, match="sectors larger than 2048 bytes"):
            board.write_host(HostBlock(2, 11, 1, "n2"))
        assert Path(name).read_bytes() == before


@pytest.mark.parametrize("area", [1, 8])
def test_a_lockspace_is_made_and_read_with_the_sectors_of_its_device(
    device: tuple[str, int], area: int
) -> None:
    name, sector = device
    layout = Layout(sector, (area if sector == 4096 else 1) * MEBIBYTE)
    assert not initialise(name, "c1", 10, layout)
    found = read_lockspace(name)
    assert (found.lockspace, found.layout, found.problems) == ("c1", layout, {})
