# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The metadata module and its info module: whiteboard, records and global maintenance."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
from pathlib import Path

import pytest
from ansible.module_utils import basic
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.lease.embedded import (
    EmbeddedLeases,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.lockspace.delta_lease import (  # noqa: E501
    DeltaLease,
    LeaseArea,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.record_format import (
    Kind,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.records import (
    RecordFile,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.whiteboard.block import (  # noqa: E501
    GlobalBlock,
    HostBlock,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.whiteboard.file import (
    Whiteboard,
)
from ansible_collections.holdfast.ha.tests.unit.module_runner import run_failing, run_ok


@pytest.fixture
def options(tmp_path):
    return {"name": "c1", "path": str(tmp_path)}


@pytest.fixture
def created(options):
    run_ok("metadata", {**options, "max_hosts": 4})
    return Path(options["path"])


def names(options):
    return sorted(path.name for path in Path(options["path"]).iterdir())


@pytest.mark.parametrize("check", [True, False])
def test_nothing_is_removed_while_the_lockspace_beside_it_is_in_use(options, created, check):
    run_ok("lockspace", options)
    node = EmbeddedLeases(str(created / "c1.lockspace"), str(created / "c1.leases"), 1)
    node.join("n1")
    message = run_failing("metadata", {**options, "state": "absent"}, check)
    assert "node n1 (host id 1)" in message
    assert names(options) == ["c1.leases", "c1.lockspace", "c1.metadata", "c1.state"]
    node.leave()
    node.close()
    assert run_ok("metadata", {**options, "state": "absent"}, check)["changed"]


def test_nothing_is_removed_when_the_lockspace_cannot_tell_whether_it_is_in_use(options, created):
    (created / "c1.lockspace").write_bytes(b"x" * (1 << 20))
    assert "is not known" in run_failing("metadata", {**options, "state": "absent"})
    run_ok("metadata", {**options, "state": "absent", "force": True})
    assert names(options) == ["c1.lockspace"]


def test_each_state_is_told_in_check_mode_done_once_and_then_unchanged(options):
    for state, there in (("present", ["c1.metadata", "c1.state"]), ("absent", [])):
        desired = {**options, "state": state}
        before = names(options)
        told = run_ok("metadata", desired, check=True, diff=True)
        assert names(options) == before
        done = run_ok("metadata", desired, diff=True)
        assert told == done
        assert done["changed"]
        assert names(options) == there
        for check in (False, True):
            assert not run_ok("metadata", desired, check)["changed"]


def test_what_the_nodes_wrote_survives_a_second_run(options, created):
    with RecordFile(str(created / "c1.state")) as records:
        records.write(Kind.LRM, 2, 1, b"mine")
    with Whiteboard(str(created / "c1.metadata")) as board:
        board.write_host(HostBlock(2, 1, 1, "n2"))
    assert not run_ok("metadata", options)["changed"]
    with RecordFile(str(created / "c1.state")) as records:
        assert records.read(Kind.LRM, 2).payload == b"mine"
    assert run_ok("metadata_info", options)["hosts"][0]["host_name"] == "n2"


def test_the_numbers_of_hosts_are_those_asked_for_or_the_default(options):
    assert run_ok("metadata", options)["state"]["max_hosts"] == 64
    assert run_ok("metadata_info", options)["max_hosts"] == 64


def test_there_can_be_room_for_more_hosts_and_never_for_fewer(options, created):
    more = {**options, "max_hosts": 8}
    foreseen = run_ok("metadata", more, True)
    assert run_ok("metadata", options)["metadata"]["max_hosts"] == 4
    result = run_ok("metadata", more)
    assert (result["changed"], result["metadata"]["max_hosts"]) == (True, 8)
    assert result["state"] == foreseen["state"]
    assert run_ok("metadata", more)["changed"] is False
    message = run_failing("metadata", {**options, "max_hosts": 4})
    assert message.startswith("max_hosts: 4 is not accepted; expected at least 8")


def test_records_are_added_to_a_whiteboard_that_hosted_engine_made(options):
    Whiteboard(f"{options['path']}/c1.metadata").create(250)
    result = run_ok("metadata", {**options, "max_hosts": 16})
    assert result["metadata"]["max_hosts"] == 250
    assert result["state"]["max_hosts"] == 16
    assert run_ok("metadata", options)["changed"] is False


def test_global_maintenance_is_changed_only_when_asked_for(options, created):
    for desired, changed in ((None, False), (False, False), (True, True), (True, False)):
        given = {} if desired is None else {"maintenance": desired}
        told = run_ok("metadata", {**options, **given}, check=True)
        assert told["changed"] is changed
        assert run_ok("metadata", {**options, **given})["changed"] is changed
    assert run_ok("metadata", options)["maintenance"] is True
    assert run_ok("metadata_info", options)["global_maintenance"] is True
    diff = run_ok("metadata", {**options, "maintenance": False}, diff=True)["diff"]
    assert '"maintenance": true' in diff["before"]
    assert '"maintenance": false' in diff["after"]


def test_a_damaged_global_block_is_repaired_by_saying_what_it_shall_be(options, created):
    damage(created, 0, b"maintenance=x")
    assert run_ok("metadata", options)["maintenance"] is None
    assert run_ok("metadata_info", options)["problems"][0]["host_id"] == 0
    assert run_ok("metadata", {**options, "maintenance": False})["changed"]
    with Whiteboard(str(created / "c1.metadata")) as board:
        assert board.read().global_block == GlobalBlock(False)


@pytest.mark.parametrize("file", ["c1.metadata", "c1.state"])
def test_a_file_of_another_format_is_overwritten_only_by_force(options, file):
    path = Path(options["path"]) / file
    path.write_bytes(b"something else")
    assert "use force to overwrite" in run_failing("metadata", options)
    assert path.read_bytes() == b"something else"
    assert run_ok("metadata", {**options, "force": True})["changed"]
    assert not run_ok("metadata", options)["changed"]


def test_records_of_another_cluster_are_left_alone(options):
    RecordFile(f"{options['path']}/c1.state").create("other", 4)
    assert "belongs to cluster other" in run_failing("metadata", options)


@pytest.mark.parametrize("max_hosts", [0, 2001])
def test_a_number_of_hosts_out_of_range_creates_nothing(options, max_hosts):
    assert "1 to 2000" in run_failing("metadata", {**options, "max_hosts": max_hosts})
    assert names(options) == []


def damage(folder, offset, data):
    with (folder / "c1.metadata").open("r+b") as file:
        file.seek(offset)
        file.write(data)


def test_info_lists_a_damaged_block_and_all_others(options, created):
    with Whiteboard(str(created / "c1.metadata")) as board:
        for host_id in (1, 2, 3):
            board.write_host(HostBlock(host_id, 10 * host_id, 3400, f"n{host_id}", {"vm": "up"}))
    damage(created, 2 * 4096 + 4, b"9")
    result = run_ok("metadata_info", options)
    assert [host["host_id"] for host in result["hosts"]] == [1, 3]
    assert [problem["host_id"] for problem in result["problems"]] == [2]
    assert result["hosts"][0]["live"] is None
    assert sorted(result["vm_status"]) == ["1", "3", "global_maintenance"]
    assert result["changed"] is False


def test_info_tells_who_is_live_by_watching(options, created, monkeypatch):
    with Whiteboard(str(created / "c1.metadata")) as board:
        for host_id in (1, 2):
            board.write_host(HostBlock(host_id, 10, 3400, f"n{host_id}"))
        monkeypatch.setattr(
            "time.sleep", lambda _seconds: board.write_host(HostBlock(1, 13, 3400, "n1"))
        )
        result = run_ok("metadata_info", {**options, "watch": 3})
    assert {host["host_id"]: host["live"] for host in result["hosts"]} == {1: True, 2: False}
    assert result["vm_status"]["1"]["live-data"] is True


def test_info_of_a_cluster_without_a_whiteboard_says_so(options):
    result = run_ok("metadata_info", options)
    assert (result["exists"], result["hosts"], result["problems"]) == (False, [], [])


@pytest.mark.parametrize("watch", [-1, 601])
def test_info_does_not_wait_longer_than_it_may(options, watch):
    assert "seconds from 0 to 600" in run_failing("metadata_info", {**options, "watch": watch})


def hold(folder, host_id, timestamp=50):
    with LeaseArea(str(folder / "c1.lockspace")) as area:
        area.write_host(host_id, DeltaLease("c1", host_id, f"n{host_id}", 1, timestamp, 2))


@pytest.fixture
def asleep(monkeypatch):
    """Do not wait while nodes are watched."""
    monkeypatch.setattr("time.sleep", lambda _seconds: None)


@pytest.fixture
def warned(monkeypatch):
    """Return the list of what modules warn about: where Ansible puts it differs by version."""
    texts = []
    monkeypatch.setattr(basic.AnsibleModule, "warn", lambda _module, text: texts.append(text))
    return texts


@pytest.fixture
def board(options, created, asleep):
    run_ok("lockspace", options)
    with Whiteboard(str(created / "c1.metadata")) as whiteboard:
        for host_id in (1, 2, 3):
            whiteboard.write_host(HostBlock(host_id, 10, 3400, f"n{host_id}"))
        yield whiteboard


@pytest.mark.parametrize("check", [True, False])
def test_the_block_of_a_node_that_holds_its_host_lease_is_not_cleared(options, board, check):
    hold(Path(options["path"]), 2)
    before = board.read_bytes()
    message = run_failing("metadata", {**options, "clear_host": 2}, check)
    assert "node n2 holds its host lease" in message
    assert board.read_bytes() == before


def test_a_dead_hosts_block_is_cleared_once_and_no_other_touched(options, board):
    before = board.read_bytes()
    desired = {**options, "clear_host": 2}
    told = run_ok("metadata", desired, check=True, diff=True)
    assert board.read_bytes() == before
    done = run_ok("metadata", desired, diff=True)
    assert told == done
    assert done["changed"]
    machine = before[2 * 4096 :].split(b"\0")[0].decode()
    assert f'"2": {json.dumps(machine)}' in done["diff"]["before"]
    assert done["blocks"] == {"2": ""}
    assert board.read_bytes() == before[: 2 * 4096] + bytes(4096) + before[3 * 4096 :]
    for check in (False, True):
        assert not run_ok("metadata", desired, check)["changed"]


def test_a_live_hosts_block_is_cleared_by_force(options, board):
    hold(Path(options["path"]), 2)
    assert run_ok("metadata", {**options, "clear_host": 2, "force": True})["changed"]
    assert not any(board.read_block(2))


@pytest.mark.parametrize("host_id", [0, -1, 5, 2001])
def test_a_host_id_without_a_block_cannot_be_cleared(options, board, host_id):
    message = run_failing("metadata", {**options, "clear_host": host_id})
    assert message.startswith(f"clear_host: {host_id} is not accepted")


def test_damage_is_repaired_once_and_the_block_of_a_live_node_left_with_a_warning(
    options, board, warned
):
    folder = Path(options["path"])
    hold(folder, 3)
    for host_id in (2, 3):
        damage(folder, host_id * 4096 + 4, b"9")
    damage(folder, 0, b"maintenance=x")
    before = board.read_bytes()
    desired = {**options, "repair": True}
    told = run_ok("metadata", desired, check=True, diff=True)
    assert board.read_bytes() == before
    done = run_ok("metadata", desired, diff=True)
    assert told == done
    assert done["blocks"] == {"0": "maintenance=1", "2": ""}
    assert done["maintenance"] is True
    assert len(warned) == 2
    assert "n3 holds its host lease" in warned[1]
    assert board.read_block(3) == before[3 * 4096 : 4 * 4096]
    assert sorted(board.read().problems) == [3]
    assert not run_ok("metadata", desired)["changed"]


def test_what_the_operator_says_of_maintenance_counts_more_than_a_repair(options, board):
    damage(Path(options["path"]), 0, b"maintenance=x")
    done = run_ok("metadata", {**options, "repair": True, "maintenance": False}, diff=True)
    assert done["maintenance"] is False
    assert done["blocks"] == {"0": "maintenance=0"}
    assert board.read_global() == GlobalBlock(False)


def test_a_board_of_small_blocks_is_made_by_choice_and_kept(options):
    desired = {**options, "max_hosts": 4, "block_size": 2048}
    assert run_ok("metadata", desired)["metadata"]["block_size"] == 2048
    assert not run_ok("metadata", desired)["changed"]
    assert run_ok("metadata", options)["metadata"]["block_size"] == 2048
    assert run_ok("metadata_info", options)["block_size"] == 2048
    message = run_failing("metadata", {**options, "block_size": 4096})
    assert message.startswith("block_size: 4096 is not accepted; expected 2048")
    result = run_ok("metadata", {**options, "maintenance": True}, diff=True)
    assert result["blocks"] == {"0": "maintenance = 1"}
    assert '"0": "maintenance = 0"' in result["diff"]["before"]


def test_the_diff_of_maintenance_shows_the_bytes_of_the_global_block(options, created):
    result = run_ok("metadata", {**options, "maintenance": True}, diff=True)
    assert '"0": ""' in result["diff"]["before"]
    assert '"0": "maintenance=1"' in result["diff"]["after"]


def in_parallel(jobs):
    """Run the *jobs* at the same time, each in a process of its own; fail if one does."""
    context = multiprocessing.get_context("fork")
    running = [context.Process(target=run_ok, args=job) for job in jobs]
    for process in running:
        process.start()
    for process in running:
        process.join(60)
    assert [process.exitcode for process in running] == [0] * len(running)


def test_modules_that_write_at_once_lose_nothing(options):
    first = {**options, "max_hosts": 16, "watch": 0}
    in_parallel([("metadata", first)] * 4 + [("lockspace", options)] * 2)
    with Whiteboard(f"{options['path']}/c1.metadata") as board:
        for host_id in range(1, 17):
            board.write_host(HostBlock(host_id, 10, 1, f"n{host_id}"))
        kept = {number: board.read_block(number) for number in range(9, 17)}
        jobs = [("metadata", {**first, "clear_host": number}) for number in range(1, 9)]
        in_parallel([*jobs, ("metadata", {**first, "maintenance": True})])
        assert sorted(board.read().hosts) == list(range(9, 17))
        assert {number: board.read_block(number) for number in kept} == kept
        assert board.read_global() == GlobalBlock(True)


def test_info_names_what_harms_others_although_it_can_be_read_here(options, board):
    damage(Path(options["path"]), 4096 + 512, "é".encode())
    result = run_ok("metadata_info", options)
    assert result["problems"] == []
    [finding] = result["findings"]
    assert finding["host_id"] == 1
    assert finding["repairable"]
    run_ok("metadata", {**options, "repair": True})
    assert run_ok("metadata_info", options)["findings"] == []


def test_a_file_system_without_direct_io_is_warned_about(options, created, monkeypatch, warned):
    real = os.open

    def refusing(path, flags, *rest, **more):
        if flags & os.O_DIRECT:
            raise OSError(errno.EINVAL, "Invalid argument")
        return real(path, flags, *rest, **more)

    monkeypatch.setattr(os, "open", refusing)
    for module in ("metadata", "metadata_info"):
        run_ok(module, options)
        assert "without direct I/O" in warned.pop()
        assert warned == []
