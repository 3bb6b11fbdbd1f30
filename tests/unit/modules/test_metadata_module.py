# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The metadata module and its info module: whiteboard, records and global maintenance."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.lease.embedded import (
    EmbeddedLeases,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.records import (
    Kind,
    RecordFile,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.whiteboard import (
    GlobalBlock,
    HostBlock,
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
    assert "cannot be told" in run_failing("metadata", {**options, "state": "absent"})
    run_ok("metadata", {**options, "state": "absent", "force": True})
    assert names(options) == ["c1.lockspace"]


def test_each_state_is_told_in_check_mode_done_once_and_then_unchanged(options):
    for state, there in (("present", ["c1.metadata", "c1.state"]), ("absent", [])):
        wanted = {**options, "state": state}
        before = names(options)
        told = run_ok("metadata", wanted, check=True, diff=True)
        assert names(options) == before
        done = run_ok("metadata", wanted, diff=True)
        assert told == done
        assert done["changed"]
        assert names(options) == there
        for check in (False, True):
            assert not run_ok("metadata", wanted, check)["changed"]


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


def test_another_number_of_hosts_is_refused_and_not_ignored(options, created):
    message = run_failing("metadata", {**options, "max_hosts": 8})
    assert message.startswith("max_hosts: 8 is not accepted; expected 4")
    assert run_ok("metadata", options)["metadata"]["max_hosts"] == 4


def test_records_are_added_to_a_whiteboard_that_hosted_engine_made(options):
    Whiteboard(f"{options['path']}/c1.metadata").create(250)
    result = run_ok("metadata", {**options, "max_hosts": 16})
    assert result["metadata"]["max_hosts"] == 250
    assert result["state"]["max_hosts"] == 16
    assert run_ok("metadata", options)["changed"] is False


def test_global_maintenance_is_changed_only_when_asked_for(options, created):
    for wanted, changed in ((None, False), (False, False), (True, True), (True, False)):
        given = {} if wanted is None else {"maintenance": wanted}
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


@pytest.mark.parametrize("watch", [-1, 121])
def test_info_does_not_wait_longer_than_it_may(options, watch):
    assert "seconds from 0 to 120" in run_failing("metadata_info", {**options, "watch": watch})
