# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files get another layout only while nobody uses them, and nothing that stands there is lost."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import (
    InputError,
    LeaseError,
    StorageError,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.kernel_lock import (
    KernelLock,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.lockspace.delta_lease import (  # noqa: E501
    DeltaLease,
    LeaseArea,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.provision import records
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.provision.lockspace import (  # noqa: E501
    DesiredLockspace,
    apply_lockspace,
    look_lockspace,
    plan_lockspace,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.provision.metadata import (  # noqa: E501
    DesiredMetadata,
    apply_metadata,
    look_metadata,
    plan_metadata,
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
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.whole_file import (
    cluster_paths,
)

MEBIBYTE = 1 << 20
SMALL = DesiredMetadata(
    "c1",
    max_hosts=3,
    record_sizes={Kind.LRM: MEBIBYTE, Kind.CRM: 2 * MEBIBYTE, Kind.CONFIGURATION: 2 * MEBIBYTE},
)
MORE = DesiredMetadata("c1", max_hosts=5)
LARGER = replace(SMALL, record_sizes={Kind.CRM: 5 * MEBIBYTE})


@pytest.fixture
def paths(tmp_path):
    existing = cluster_paths(str(tmp_path), "c1")
    lockspace = DesiredLockspace("c1")
    apply_lockspace(
        plan_lockspace(lockspace, look_lockspace(existing), existing), lockspace, existing
    )
    apply(SMALL, existing)
    with RecordFile(existing.state) as file:
        for host_id in (1, 3):
            for kind in Kind:
                for turn in range(3):
                    file.write(kind, host_id, 5 + turn, f"{kind.name} {host_id} {turn}".encode())
    return existing


def plan(desired, paths):
    return plan_metadata(desired, look_metadata(paths, desired), paths)


def apply(desired, paths):
    return apply_metadata(plan(desired, paths), desired, paths)


def standing(paths):
    """Return every record that stands in the file."""
    with RecordFile(paths.state) as file:
        return [file.read(kind, host_id) for kind in Kind for host_id in (1, 2, 3)]


def use(paths):
    with LeaseArea(paths.lockspace) as area:
        area.write_host(2, DeltaLease("c1", 2, "n2", 1, 77, 10))


@pytest.mark.parametrize("force", [False, True])
def test_records_in_use_are_not_laid_out_anew_not_even_by_force(paths, force):
    use(paths)
    before = Path(paths.state).read_bytes()
    with pytest.raises(LeaseError) as caught:
        plan(replace(LARGER, force=force), paths)
    assert str(caught.value).startswith(
        "The file of records was made with manager_record_size=2; it is converted only while"
        " the cluster is not in use, not by force either: node n2 (host id 2)"
    )
    assert Path(paths.state).read_bytes() == before
    assert plan(SMALL, paths).steps == (), "what it has already is no change"


def test_nothing_is_laid_out_anew_where_the_lockspace_cannot_tell_whether_it_is_in_use(paths):
    Path(paths.lockspace).write_bytes(b"x" * MEBIBYTE)
    with pytest.raises(LeaseError, match="converted only while"):
        plan(LARGER, paths)


def test_a_node_that_joined_after_the_plan_keeps_its_records(paths):
    made = plan(LARGER, paths)
    use(paths)
    before = Path(paths.state).read_bytes()
    with pytest.raises(LeaseError, match=r"nothing is converted: node n2"):
        apply_metadata(made, LARGER, paths)
    assert Path(paths.state).read_bytes() == before


def test_a_node_that_is_just_joining_keeps_its_records(paths):
    made = plan(LARGER, paths)
    joining = KernelLock(paths.lockspace, 4 * 512, 512)
    joining.take()
    with pytest.raises(LeaseError, match="in use by a node"):
        apply_metadata(made, LARGER, paths)
    joining.release()


@pytest.mark.parametrize("sizes", [{Kind.CRM: 5}, {Kind.LRM: 3, Kind.CONFIGURATION: 1}])
def test_every_record_is_carried_over_with_its_epoch_and_number(paths, sizes):
    before = standing(paths)
    desired = replace(SMALL, record_sizes={one: size * MEBIBYTE for one, size in sizes.items()})
    made = plan(desired, paths)
    assert [(step.action, step.path) for step in made.steps] == [("lay-out-anew", paths.state)]
    assert apply_metadata(made, desired, paths)
    assert standing(paths) == before
    assert plan(desired, paths).steps == ()
    again = look_metadata(paths, desired)
    assert again.geometry.copy_bytes == {**SMALL.record_sizes, **desired.record_sizes}
    assert plan_metadata(desired, again, paths).before == made.after
    assert not apply_metadata(made, desired, paths), "of two playbooks the second changes nothing"
    with RecordFile(paths.state) as file:
        assert file.write(Kind.CRM, 1, 7, b"next").sequence == before[3].sequence + 1


def test_a_reader_that_has_the_file_open_reads_the_new_one(paths):
    with RecordFile(paths.state) as file:
        before = file.read(Kind.CONFIGURATION, 3)
        apply(LARGER, paths)
        assert file.read(Kind.CONFIGURATION, 3) == before
        assert file.geometry().copy_bytes[Kind.CRM] == 5 * MEBIBYTE


def test_a_record_that_would_not_fit_is_named_and_nothing_is_cut(paths):
    with RecordFile(paths.state) as file:
        file.write(Kind.CRM, 3, 8, b"x" * (MEBIBYTE + 5))
    before = standing(paths)
    desired = replace(SMALL, record_sizes={Kind.CRM: MEBIBYTE})
    with pytest.raises(StorageError) as caught:
        plan(desired, paths)
    assert str(caught.value) == (
        f"The file of records has a CRM record of {MEBIBYTE + 5} bytes, which does not fit into"
        " manager_record_size=1; nothing was changed."
    )
    assert standing(paths) == before


def test_a_slot_that_is_damaged_is_not_dropped_silently(paths):
    with RecordFile(paths.state) as file:
        geometry = file.geometry()
    with Path(paths.state).open("r+b") as file:
        for copy in (0, 1):
            file.seek(geometry.offset(Kind.LRM, 3, copy) + 70)
            file.write(b"X")
    with pytest.raises(StorageError, match=r"cannot be converted: .*LRM record of host id 3"):
        plan(LARGER, paths)


def test_a_file_of_another_user_is_left_to_that_user(paths, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    with pytest.raises(StorageError, match="run this as that user"):
        plan(LARGER, paths)


def test_a_storage_that_fills_up_leaves_the_old_file(paths, monkeypatch):
    before = standing(paths)

    def full(*_arguments, **_more):
        raise StorageError("no space is left")

    monkeypatch.setattr(records, "create", full)
    with pytest.raises(StorageError, match="no space"):
        apply(LARGER, paths)
    assert standing(paths) == before


@pytest.mark.parametrize("size", [0, -1, 65, True, "2"])
def test_a_size_out_of_range_is_refused_by_its_option(size):
    with pytest.raises(InputError, match=r"configuration_size: .* MiB from 1 to 64"):
        records.sizes_from_options({"configuration_size": size})


def test_a_cluster_gets_room_for_more_hosts_and_keeps_what_it_has(paths):
    with Whiteboard(paths.metadata) as board:
        board.write_global(GlobalBlock(maintenance=True))
        board.write_host(HostBlock(3, 1000, 3400, "n3"))
        blocks = board.read_bytes()
    before = standing(paths)
    made = plan(MORE, paths)
    files = [("grow", paths.metadata), ("lay-out-anew", paths.state)]
    assert [(step.action, step.path) for step in made.steps] == files
    assert apply_metadata(made, MORE, paths)
    assert standing(paths) == before
    with Whiteboard(paths.metadata) as board, RecordFile(paths.state) as file:
        assert (board.max_hosts(), file.geometry().max_hosts) == (5, 5)
        assert board.read_bytes() == blocks.ljust(6 * board.block_bytes(), b"\0")
        assert file.read(Kind.LRM, 5) is None
        file.write(Kind.LRM, 5, 1, b"the first of n5")
    again = plan(MORE, paths)
    assert again.steps == ()
    assert again.before == made.after
    assert not apply_metadata(made, MORE, paths), "of two playbooks the second changes nothing"


def test_a_conversion_that_ended_half_way_is_finished_by_the_next_one(paths):
    made = plan(MORE, paths)
    apply_metadata(replace(made, steps=made.steps[:1]), MORE, paths)
    assert [step.path for step in plan(MORE, paths).steps] == [paths.state]
    apply(MORE, paths)
    assert plan(MORE, paths).steps == ()


@pytest.mark.parametrize("force", [False, True])
def test_a_cluster_in_use_gets_no_room_for_more_hosts(paths, force):
    made = plan(MORE, paths)
    use(paths)
    before = (Path(paths.metadata).read_bytes(), Path(paths.state).read_bytes())
    with pytest.raises(LeaseError) as caught:
        plan(replace(MORE, force=force), paths)
    assert str(caught.value).startswith(
        "The whiteboard was made with max_hosts=3; it is converted only while the cluster is not in"
        " use, not by force either: node n2 (host id 2)"
    )
    with pytest.raises(LeaseError, match="nothing is converted"):
        apply_metadata(made, MORE, paths)
    assert (Path(paths.metadata).read_bytes(), Path(paths.state).read_bytes()) == before


def test_no_host_loses_its_room(paths):
    with pytest.raises(InputError, match="max_hosts: 2 is not accepted; expected at least 3"):
        plan(replace(MORE, max_hosts=2), paths)


def test_a_whiteboard_of_another_user_is_left_to_that_user(paths, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    with pytest.raises(StorageError, match=r"max_hosts=3 and cannot be converted: .*run this as"):
        plan(MORE, paths)
