# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lockspace_info module: who holds which lease, and who still renews it."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.block_file import (
    BlockFile,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.kernel_lock import (
    KernelLock,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.lockspace.delta_lease import (  # noqa: E501
    DeltaLease,
    LeaseArea,
    initial_lockspace,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.lockspace.leader_record import (  # noqa: E501
    MEBIBYTE,
    Layout,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.lockspace.resource_lease import (  # noqa: E501
    ResourceLease,
    write_leader,
)
from ansible_collections.holdfast.ha.tests.unit.module_runner import run_failing, run_ok


@pytest.fixture
def options(tmp_path):
    return {"name": "c1", "path": str(tmp_path)}


@pytest.fixture
def folder(options):
    run_ok("lockspace", options)
    return Path(options["path"])


def hold(folder, host_id, timestamp):
    with LeaseArea(str(folder / "c1.lockspace")) as area:
        area.write_host(host_id, DeltaLease("c1", host_id, f"n{host_id}", 3, timestamp, 2))


def test_a_damaged_host_lease_is_listed_and_harms_no_other(options, folder):
    hold(folder, 1, 50)
    with (folder / "c1.lockspace").open("r+b") as file:
        file.seek(512 + 40)
        file.write(b"\xff")
    result = run_ok("lockspace_info", options)
    assert [host["host_id"] for host in result["hosts"]] == [1]
    assert [row["host_id"] for row in result["problems"]] == [2]


def test_one_read_does_not_tell_who_lives(options, folder):
    hold(folder, 1, 50)
    [host] = run_ok("lockspace_info", options)["hosts"]
    assert host == {
        "host_id": 1,
        "host_name": "n1",
        "generation": 3,
        "timestamp": 50,
        "io_timeout": 2,
        "held": True,
        "live": None,
        "state": None,
        "locked": False,
        "dead_after": 76,
    }


def test_who_renews_is_live_and_who_gave_back_is_not(options, folder, monkeypatch):
    for host_id, timestamp in ((1, 50), (2, 50), (3, 50), (4, 0)):
        hold(folder, host_id, timestamp)

    def meanwhile(_seconds):
        hold(folder, 1, 51)
        hold(folder, 3, 0)

    monkeypatch.setattr("time.sleep", meanwhile)
    hosts = run_ok("lockspace_info", {**options, "watch": 5})["hosts"]
    assert [(host["live"], host["held"]) for host in hosts] == [
        *((True, True), (False, True), (False, False), (False, False)),
    ]


@pytest.mark.parametrize(
    ("seconds", "state"),
    [(0, None), (15, None), (16, "fail"), (75, "fail"), (76, "dead")],
)
def test_the_state_of_a_host_is_said_as_soon_as_it_can_be_seen(
    options, folder, monkeypatch, seconds, state
):
    hold(folder, 1, 50)
    hold(folder, 2, 50)
    hold(folder, 3, 0)
    monkeypatch.setattr("time.sleep", lambda _seconds: hold(folder, 2, 51))
    hosts = run_ok("lockspace_info", {**options, "watch": seconds})["hosts"]
    renewing = "live" if seconds else None
    assert [host["state"] for host in hosts] == [state, renewing, "free"]


def test_a_lock_of_this_machine_is_shown(options, folder):
    hold(folder, 2, 50)
    lock = KernelLock(str(folder / "c1.lockspace"), 512, 512)
    lock.take()
    assert run_ok("lockspace_info", options)["hosts"][0]["locked"] is True
    lock.release()
    assert run_ok("lockspace_info", options)["hosts"][0]["locked"] is False


def test_the_leases_of_the_cluster_are_shown(options, folder):
    with BlockFile.open(str(folder / "c1.leases"), writable=True, alignment=512) as file:
        write_leader(file, 0, ResourceLease("c1", "manager", 2, 3, 14, 99))
    manager, configuration = run_ok("lockspace_info", options)["leases"]
    assert manager == {
        "name": "manager",
        "owner_id": 2,
        "owner_generation": 3,
        "version": 14,
        "timestamp": 99,
        "held": True,
    }
    assert (configuration["name"], configuration["held"]) == ("configuration", False)


@pytest.mark.parametrize("size", [None, 600])
def test_leases_that_are_missing_or_truncated_are_a_problem_and_the_hosts_are_shown(
    options, folder, size
):
    (folder / "c1.leases").unlink()
    if size is not None:
        (folder / "c1.leases").write_bytes(bytes(size))
    hold(folder, 1, 50)
    result = run_ok("lockspace_info", options)
    assert len(result["hosts"]) == 1
    assert result["leases"] == []
    assert all(row["host_id"] is None for row in result["problems"])
    assert result["problems"]


def test_a_lockspace_with_large_sectors_is_read_by_its_own_sizes(options):
    layout = Layout(4096, 8 * MEBIBYTE)
    area = initial_lockspace("c1", 10, layout=layout)
    (Path(options["path"]) / "c1.lockspace").write_bytes(area)
    result = run_ok("lockspace_info", options)
    assert (result["sector_size"], result["area_bytes"]) == (4096, 8 * MEBIBYTE)
    assert (result["io_timeout"], result["max_hosts"]) == (10, 2000)


def test_a_cluster_without_a_lockspace_says_so(options):
    result = run_ok("lockspace_info", options)
    assert (result["exists"], result["hosts"], result["lockspace"]) == (False, [], None)


def test_what_is_no_lockspace_fails(options):
    (Path(options["path"]) / "c1.lockspace").write_bytes(b"x" * MEBIBYTE)
    assert "c1.lockspace" in run_failing("lockspace_info", options)


@pytest.mark.parametrize("watch", [-1, 601])
def test_nobody_waits_longer_than_that(options, watch):
    assert "seconds from 0 to 600" in run_failing("lockspace_info", {**options, "watch": watch})
