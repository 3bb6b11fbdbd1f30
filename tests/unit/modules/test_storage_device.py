# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The modules on block devices: nothing of anybody else is overwritten, nothing is done twice."""

from __future__ import annotations

import os
import shutil
import subprocess
import zlib
from contextlib import closing
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.lease.embedded import (
    EmbeddedLeases,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage import device_change
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.device_header import (
    COPY_BYTES,
    GRAIN,
    Area,
    DeviceHeader,
    encode_header,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.record_format import (
    Kind,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.records import (
    RecordFile,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.whiteboard.block import (  # noqa: E501
    HostBlock,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.whiteboard.file import (
    Whiteboard,
)
from ansible_collections.holdfast.ha.tests.loop_device import loop_device
from ansible_collections.holdfast.ha.tests.unit.module_runner import run_failing, run_ok

MEBIBYTE = 1 << 20
SIZE = 160 * MEBIBYTE
FILES = {"max_hosts": 4}
ID = "6fa459ea-ee8a-3ca4-894e-db77e160355e"
OTHER = encode_header(DeviceHeader("c2", ID, 512))
WITH_4096 = encode_header(DeviceHeader("c1", ID, 4096))


@pytest.fixture(autouse=True)
def _no_wait(monkeypatch):
    """Nobody else changes the device of a test."""
    monkeypatch.setattr(device_change, "ANNOUNCED_SECONDS", 0.0)


@pytest.fixture(params=[512, 4096], ids=["sectors of 512", "sectors of 4096"])
def device(request, tmp_path):
    with loop_device(tmp_path / "image", SIZE, request.param) as name:
        yield name


@pytest.fixture
def options(device):
    return {"name": "c1", "path": device}


@pytest.fixture
def complete(options):
    """A device with all files of c1."""
    run_ok("storage_device", {**options, **FILES})
    run_ok("lockspace", options)
    run_ok("metadata", {**options, **FILES})
    return options


def content(device):
    return zlib.crc32(Path(device).read_bytes())


def flip(device, offset, data):
    descriptor = os.open(device, os.O_RDWR | os.O_SYNC)
    with closing(os.fdopen(descriptor, "r+b", buffering=0)) as file:
        file.seek(offset)
        file.write(data)


def boot_record():
    """Return a sector with a partition table of one partition of Linux."""
    entry = bytes([0, 0, 2, 0, 0x83, 0, 0, 0]) + (2048).to_bytes(4, "little")
    entry += (2048).to_bytes(4, "little")
    return (bytes(446) + entry).ljust(510, b"\0") + b"\x55\xaa"


def swap_area():
    """Return the first page of a swap area, as mkswap writes it."""
    header = bytes(1024) + (1).to_bytes(4, "little") + (9999).to_bytes(4, "little")
    return header.ljust(4096 - 10, b"\0") + b"SWAPSPACE2"


@pytest.mark.parametrize(
    ("data", "more", "reason"),
    [
        (
            boot_record(),
            {},
            "has a partition table (dos), and is left as it is; clear it with wipefs --all",
        ),
        (swap_area(), {}, "has data of another program (swap), and is left"),
        (bytes(5 * MEBIBYTE) + b"x", {}, "has data in its first 8 MiB that no known program wrote"),
        (OTHER * 2, {}, "belongs to cluster c2, not to c1"),
        (WITH_4096 * 2, {}, "has sectors of 512 bytes, but cluster c1 was created on it with"),
        (
            OTHER[:50] + b"x" + OTHER[51:],
            {},
            "no copy of its header is whole: the checksum of copy 0",
        ),
        (b"", {"size": GRAIN - 4096}, "expected at least 8388608 in sectors of 512 or 4096"),
        (
            b"",
            {"size": SIZE - MEBIBYTE * 56},
            "has 104 MiB, and cluster c1 with 4 host ids needs 112",
        ),
        (b"", {"read_only": True}, "is read-only on this node; make it writable"),
    ],
    ids=[
        *("a partition table", "swap", "unknown data", "another cluster", "other sectors"),
        *("a damaged header", "tiny", "too small", "read-only"),
    ],
)
@pytest.mark.parametrize("check", [True, False], ids=["check", "run"])
def test_a_device_that_is_not_free_is_refused_in_one_sentence_and_left_as_it_is(
    tmp_path, data, more, reason, check
):
    image = tmp_path / "image"
    image.write_bytes(data)
    made = {"size": SIZE, **more}
    with loop_device(image, made.pop("size"), **made) as device:
        before = content(device)
        message = run_failing("storage_device", {"name": "c1", "path": device, **FILES}, check)
        assert content(device) == before
    assert message.startswith(device)
    assert reason in message
    assert message.endswith(".")
    assert ". " not in message


@pytest.mark.parametrize("check", [True, False], ids=["check", "run"])
def test_a_device_with_a_file_system_is_refused(tmp_path, check):
    if shutil.which("mkfs.ext4", path=f"{os.environ['PATH']}:/usr/sbin:/sbin") is None:
        pytest.skip("there is no mkfs.ext4")
    with loop_device(tmp_path / "image", SIZE) as device:
        subprocess.run(["/usr/sbin/mkfs.ext4", "-q", device], check=True)
        before = content(device)
        message = run_failing("storage_device", {"name": "c1", "path": device}, check)
        assert content(device) == before
        assert "has a file system (ext4), and is left as it is; clear it with wipefs" in message
        # Not even with what is left of a header of ours.
        flip(device, COPY_BYTES, WITH_4096)
        assert "has a file system (ext4)" in run_failing(
            "storage_device", {"name": "c1", "path": device}, check
        )


@pytest.mark.parametrize("check", [True, False], ids=["check", "run"])
def test_a_device_that_another_program_has_claimed_is_refused(options, check):
    claimed = os.open(options["path"], os.O_RDONLY | os.O_EXCL)
    try:
        message = run_failing("storage_device", {**options, **FILES}, check)
    finally:
        os.close(claimed)
    assert "is in use on this node" in message
    assert not any(Path(options["path"]).read_bytes())


@pytest.mark.parametrize("module", ["storage_device", "storage_device_info"])
def test_what_is_no_block_device_is_refused(tmp_path, module):
    (tmp_path / "file").write_bytes(b"kept")
    for path in (tmp_path, tmp_path / "file", tmp_path / "missing"):
        message = run_failing(module, {"name": "c1", "path": str(path)})
        assert f"{path} is not a block device on this node" in message
    assert (tmp_path / "file").read_bytes() == b"kept"


def test_a_device_that_changes_between_plan_and_change_is_left_as_it_is(options, monkeypatch):
    announce = device_change.DeviceChange.announce

    def overtaken(change):
        announce(change)
        flip(options["path"], 2 * MEBIBYTE, b"a file system of another node")

    monkeypatch.setattr(device_change.DeviceChange, "announce", overtaken)
    assert "no known program wrote" in run_failing("storage_device", {**options, **FILES})
    assert not any(Path(options["path"]).read_bytes()[: 2 * COPY_BYTES])


def test_check_mode_writes_nothing_and_says_what_a_run_does(options):
    checked = run_ok("storage_device", {**options, **FILES}, check=True, diff=True)
    assert not any(Path(options["path"]).read_bytes())
    made = run_ok("storage_device", {**options, **FILES}, diff=True)
    assert checked["changed"]
    assert made["changed"]
    assert made["device"].pop("id")
    assert checked["device"].pop("id") is None
    assert made["device"] == checked["device"]


def test_a_second_run_changes_nothing_whatever_else_is_on_the_device_by_then(complete):
    before = content(complete["path"])
    for module, more in (("storage_device", FILES), ("lockspace", {}), ("metadata", FILES)):
        result = run_ok(module, {**complete, **more})
        assert not result["changed"], module
    assert content(complete["path"]) == before
    info = run_ok("storage_device_info", complete)
    assert [area["kind"] for area in info["device"]["areas"]] == [
        *("lockspace", "leases", "metadata", "state")
    ]
    assert info["obstacle"] == ""


def test_all_nodes_see_the_same_id_whatever_name_the_device_has_there(complete, tmp_path):
    (tmp_path / "lun").symlink_to(complete["path"])
    there = run_ok("storage_device_info", {**complete, "path": str(tmp_path / "lun")})
    assert there["device"]["id"] == run_ok("storage_device_info", complete)["device"]["id"]


def test_check_mode_and_run_agree_for_the_files_on_a_device(options):
    run_ok("storage_device", {**options, **FILES})
    for module, more in (("lockspace", {}), ("metadata", FILES)):
        before = content(options["path"])
        checked = run_ok(module, {**options, **more}, check=True, diff=True)
        assert content(options["path"]) == before
        made = run_ok(module, {**options, **more}, diff=True)
        assert {**made, "invocation": 0} == {**checked, "invocation": 0}
        assert made["changed"]


def test_the_sectors_of_the_lockspace_are_those_of_the_device(options):
    run_ok("storage_device", {**options, **FILES})
    made = run_ok("lockspace", options)["lockspace"]
    sector = made["sector_size"]
    assert sector == run_ok("storage_device_info", options)["device"]["sector_size"]
    assert made["max_hosts"] == 2000
    other = 4096 if sector == 512 else 512
    message = run_failing("lockspace", {**options, "sector_size": other})
    assert f"expected {sector}, the device's own" in message


def test_blocks_smaller_than_a_sector_are_refused(options):
    run_ok("storage_device", {**options, **FILES})
    run_ok("lockspace", options)
    if run_ok("storage_device_info", options)["device"]["sector_size"] == 512:
        made = run_ok("metadata", {**options, **FILES, "block_size": 2048})
        assert made["metadata"]["block_size"] == 2048
        return
    before = content(options["path"])
    for check in (True, False):
        message = run_failing("metadata", {**options, **FILES, "block_size": 2048}, check)
        assert "expected 4096, a sector of the device" in message
    assert content(options["path"]) == before


@pytest.mark.parametrize("check", [True, False], ids=["check", "run"])
def test_files_for_which_the_device_is_too_small_are_refused_before_anything_is_written(
    options, check
):
    run_ok("storage_device", {**options, **FILES})
    run_ok("lockspace", options)
    before = content(options["path"])
    message = run_failing("metadata", {**options, "max_hosts": 9}, check)
    assert "is too small: state of cluster c1 needs 163 MiB" in message
    assert content(options["path"]) == before


@pytest.mark.parametrize("check", [True, False], ids=["check", "run"])
@pytest.mark.parametrize(
    ("module", "reason"),
    [("storage_device", "still has leases, lockspace, metadata, state"), ("metadata", "in use")],
)
def test_files_in_use_are_not_removed(complete, module, reason, check):
    path = complete["path"]
    with closing(EmbeddedLeases(f"{path}/c1.lockspace", f"{path}/c1.leases", 3)) as leases:
        leases.join("n3")
        before = content(path)
        message = run_failing(module, {**complete, "state": "absent"}, check)
        assert reason in message
        assert content(path) == before


def test_everything_is_removed_step_by_step_and_the_device_can_be_used_again(complete):
    for module in ("metadata", "lockspace", "storage_device"):
        gone = {**complete, "state": "absent"}
        before = content(complete["path"])
        assert run_ok(module, gone, check=True)["changed"]
        assert content(complete["path"]) == before
        assert run_ok(module, gone)["changed"]
        assert not run_ok("storage_device_info", complete).get("problem")
        if module != "storage_device":
            assert not run_ok(module, gone)["changed"]
    assert run_ok("storage_device_info", complete)["device"] is None
    assert not run_ok("storage_device", gone)["changed"]
    assert run_ok("storage_device", {**complete, "name": "c3", **FILES})["changed"]


@pytest.mark.parametrize("copy", [0, 1])
def test_a_damaged_copy_of_the_header_is_shown_and_repaired(complete, copy):
    path = complete["path"]
    flip(path, copy * COPY_BYTES + 100, b"x")
    damaged = content(path)
    problem = f"the checksum of copy {copy} of its header is wrong"
    assert run_ok("storage_device_info", complete)["device"]["problem"] == problem
    assert run_ok("storage_device", {**complete, **FILES}, check=True)["changed"]
    assert content(path) == damaged
    assert run_ok("storage_device", {**complete, **FILES})["device"]["problem"] == ""
    assert not run_ok("storage_device", {**complete, **FILES})["changed"]
    for module, more in (("lockspace", {}), ("metadata", FILES)):
        assert not run_ok(module, {**complete, **more})["changed"]


def test_nodes_work_on_a_device_as_in_a_folder(complete):
    path = complete["path"]
    with Whiteboard(f"{path}/c1.metadata") as board:
        board.write_host(HostBlock(2, 11, 1, "n2"))
        assert (board.max_hosts(), sorted(board.read().hosts)) == (4, [2])
    with RecordFile(f"{path}/c1.state") as records:
        for host_id in range(1, 5):
            for kind in Kind:
                assert records.read(kind, host_id) is None
                records.write(kind, host_id, 1, f"{kind.name} {host_id}".encode() * 2000)
    with RecordFile(f"{path}/c1.state") as records:
        for host_id in range(1, 5):
            for kind in Kind:
                record = records.read(kind, host_id)
                assert record is not None
                assert record.payload == f"{kind.name} {host_id}".encode() * 2000
    observed = run_ok("metadata_info", complete)
    assert [host["host_id"] for host in observed["hosts"]] == [2]


def test_records_are_laid_out_with_other_sizes_and_keep_their_contents(complete):
    path = complete["path"]
    with RecordFile(f"{path}/c1.state") as records:
        records.write(Kind.CONFIGURATION, 4, 1, b"kept")
    smaller = {**complete, **FILES, "manager_record_size": 1, "configuration_size": 2}
    before = content(path)
    assert run_ok("metadata", smaller, check=True)["changed"]
    assert content(path) == before
    assert run_ok("metadata", smaller)["changed"]
    assert not run_ok("metadata", smaller)["changed"]
    with RecordFile(f"{path}/c1.state") as records:
        assert records.geometry().copy_bytes[Kind.CRM] == MEBIBYTE
        record = records.read(Kind.CONFIGURATION, 4)
        assert record is not None
        assert record.payload == b"kept"


def test_an_area_over_the_end_of_the_device_is_refused(tmp_path):
    header = DeviceHeader("c1", ID, 512, {"state": Area(GRAIN, SIZE)})
    (tmp_path / "image").write_bytes(encode_header(header) * 2)
    with loop_device(tmp_path / "image", SIZE) as device:
        for module in ("storage_device", "storage_device_info", "metadata", "metadata_info"):
            message = run_failing(module, {"name": "c1", "path": device})
            assert "the device was made smaller, or the path leads to another one" in message
