# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lockspace module: creates once, and takes nothing from under running nodes."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.lease.embedded import (
    EmbeddedLeases,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.kernel_lock import (
    KernelLock,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.lockspace.delta_lease import (  # noqa: E501
    initial_lockspace,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.lockspace.resource_lease import (  # noqa: E501
    initial_leases,
)
from ansible_collections.holdfast.ha.tests.unit.module_runner import (
    run_failing,
    run_module,
    run_ok,
)


@pytest.fixture
def options(tmp_path):
    return {"name": "c1", "path": str(tmp_path)}


@pytest.fixture
def joined(tmp_path, options):
    run_ok("lockspace", options)
    leases = EmbeddedLeases(str(tmp_path / "c1.lockspace"), str(tmp_path / "c1.leases"), 3)
    leases.join("n3")
    yield leases
    leases.close()


def content(folder):
    return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


@pytest.mark.parametrize(
    "change", [{"state": "absent"}, {"io_timeout": 5}], ids=["absent", "io_timeout"]
)
@pytest.mark.parametrize("check", [True, False])
def test_a_lockspace_in_use_is_left_alone_and_its_user_named(options, joined, change, check):
    before = content(options["path"])
    message = run_failing("lockspace", {**options, **change}, check)
    assert "in use" in message
    assert "node n3 (host id 3)" in message
    assert content(options["path"]) == before


def test_a_kernel_lock_alone_counts_as_use(options):
    run_ok("lockspace", options)
    lock = KernelLock(f"{options['path']}/c1.lockspace", 6 * 512, 512)
    lock.take()
    assert "host id 7" in run_failing("lockspace", {**options, "state": "absent"})
    lock.release()


def test_a_node_that_died_without_leaving_counts_as_use_until_forced(options, joined):
    joined.close()
    assert "n3" in run_failing("lockspace", {**options, "state": "absent"})
    assert run_ok("lockspace", {**options, "state": "absent", "force": True})["changed"]
    assert content(options["path"]) == {}


def test_each_state_is_told_in_check_mode_done_once_and_then_unchanged(options):
    for state, there in (("present", {"c1.lockspace", "c1.leases"}), ("absent", set())):
        desired = {**options, "state": state}
        before = content(options["path"])
        told = run_ok("lockspace", desired, check=True, diff=True)
        assert content(options["path"]) == before
        done = run_ok("lockspace", desired, diff=True)
        assert told == done
        assert done["changed"]
        assert set(content(options["path"])) == there
        for check in (False, True):
            assert not run_ok("lockspace", desired, check)["changed"]


def test_the_files_are_sanlocks(options):
    result = run_ok("lockspace", {**options, "io_timeout": 10})
    files = content(options["path"])
    assert files["c1.lockspace"] == initial_lockspace("c1", 10)
    assert files["c1.leases"] == initial_leases("c1")
    assert result["lockspace"]["io_timeout"] == 10


def test_the_default_timeout_is_for_new_files_only(options):
    assert run_ok("lockspace", options)["lockspace"]["io_timeout"] == 2
    assert run_ok("lockspace", {**options, "io_timeout": 5})["changed"]
    result = run_ok("lockspace", options)
    assert not result["changed"]
    assert result["lockspace"]["io_timeout"] == 5


def test_a_new_timeout_keeps_the_leases_and_so_the_epoch(options, joined):
    joined.acquire("manager")
    joined.leave()
    before = content(options["path"])["c1.leases"]
    run_ok("lockspace", {**options, "io_timeout": 5})
    assert content(options["path"])["c1.leases"] == before


def test_a_missing_leases_file_is_made_while_the_lockspace_is_in_use(options, joined):
    (Path(options["path"]) / "c1.leases").unlink()
    assert run_ok("lockspace", options)["changed"]
    assert content(options["path"])["c1.leases"] == initial_leases("c1")


@pytest.mark.parametrize("damage", [b"", b"something else" * 100, initial_lockspace("other", 2)])
def test_a_file_of_another_format_is_overwritten_only_by_force(options, damage):
    path = Path(options["path"]) / "c1.lockspace"
    path.write_bytes(damage)
    assert "force" in run_failing("lockspace", options)
    assert path.read_bytes() == damage
    assert run_ok("lockspace", {**options, "force": True})["changed"]
    assert path.read_bytes() == initial_lockspace("c1", 2)


@pytest.mark.parametrize(
    ("bad", "expected"),
    [
        ({"name": "../c1"}, "a cluster name"),
        ({"name": ""}, "a cluster name"),
        ({"name": "x" * 41}, "at most 40 characters"),
        ({"io_timeout": 0}, "2 to 120 seconds"),
        ({"io_timeout": 1}, "healthy nodes are reset"),
        ({"io_timeout": 121}, "2 to 120 seconds"),
        ({"sector_size": 1024}, "must be one of"),
        ({"area_size": "3M"}, "must be one of"),
        ({"sector_size": 512, "area_size": "8M"}, "sector_size and area_size"),
        ({"io_timeout": "soon"}, "io_timeout"),
        ({"state": "gone"}, "must be one of"),
    ],
)
def test_a_bad_option_is_named_and_nothing_created(options, bad, expected):
    assert expected in run_failing("lockspace", {**options, **bad})
    assert content(options["path"]) == {}


def test_an_option_that_is_missing_or_unknown_fails(options):
    assert "path" in run_failing("lockspace", {"name": "c1"})
    assert run_module("lockspace", {**options, "sector": 1})["failed"]


@pytest.mark.parametrize("check", [True, False])
def test_a_missing_folder_fails_in_check_mode_too(options, check):
    missing = {**options, "path": options["path"] + "/missing"}
    assert "does not exist; mount" in run_failing("lockspace", missing, check)


def test_an_unwritable_folder_fails(options):
    # In sysfs nobody may create a file, not even root.
    assert "not writable" in run_failing("lockspace", {**options, "path": "/sys/kernel"})
