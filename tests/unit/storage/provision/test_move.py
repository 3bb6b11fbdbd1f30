# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster is moved while no node uses it; wherever that ends, nodes join in one place only."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import (
    FormatError,
    InputError,
    LeaseError,
    StorageError,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.lease.embedded import (
    EmbeddedLeases,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage import device_change
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.device import is_device
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.device_header import (
    GRAIN,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.lockspace.delta_lease import (  # noqa: E501
    LeaseArea,
    read_lockspace,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.lockspace.resource_lease import (  # noqa: E501
    LEASE_NAMES,
    LeaseFile,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.provision import move
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.provision.device import (  # noqa: E501
    DesiredDevice,
    apply_device,
    look_device,
    plan_device,
)
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
    HostBlock,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.whiteboard.file import (
    Whiteboard,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.whole_file import (
    cluster_paths,
)
from ansible_collections.holdfast.ha.tests.loop_device import loop_device

MEBIBYTE = 1 << 20
SIZES = dict.fromkeys(Kind, MEBIBYTE)
FILES = {"leases", "lockspace", "metadata", "state"}


class PowerCutError(BaseException):
    """The machine that moves the files lost its power: nothing more of it reaches the storage."""


def make(place, block_bytes=None):
    """Make a cluster of which two nodes worked and left, with two managers after each other."""
    if is_device(place):
        set_up(place)
    paths = cluster_paths(place, "c1")
    lockspace = DesiredLockspace("c1", io_timeout=3)
    apply_lockspace(plan_lockspace(lockspace, look_lockspace(paths), paths), lockspace, paths)
    metadata = DesiredMetadata("c1", max_hosts=3, record_sizes=SIZES, block_bytes=block_bytes)
    apply_metadata(plan_metadata(metadata, look_metadata(paths), paths), metadata, paths)
    for host_id in (1, 3, 3):
        leases = EmbeddedLeases(paths.lockspace, paths.leases, host_id)
        leases.join(f"n{host_id}")
        for name in LEASE_NAMES:
            leases.acquire(name)
        leases.leave()
        leases.close()
    with RecordFile(paths.state) as file:
        for kind in Kind:
            for turn in range(3):
                file.write(kind, 3, 5 + turn, f"{kind.name} {turn}".encode())
    with Whiteboard(paths.metadata) as board:
        board.write_host(HostBlock(host_id=3, timestamp=77, host_name="n3", score=0))
    return content(place)


def set_up(device):
    desired = DesiredDevice("c1", device, max_hosts=3, record_sizes=SIZES)
    apply_device(plan_device(desired, look_device(device, "c1")), desired)


def content(place, hosts=3):
    """Return all that has to be the same in the new place."""
    paths = cluster_paths(place, "c1")
    lockspace = read_lockspace(paths.lockspace)
    joins = {number: (one.host_name, one.generation) for number, one in lockspace.leases.items()}
    leaders = LeaseFile(paths.leases, LEASE_NAMES)
    existing = [leaders.read(name) for name in LEASE_NAMES]
    leaders.close()
    versions = [(one.owner_id, one.owner_generation, one.version, one.free) for one in existing]
    with RecordFile(paths.state) as file:
        records = [file.read(kind, number) for kind in Kind for number in range(1, hosts + 1)]
    with Whiteboard(paths.metadata) as board:
        block = board.read_host(3)
    return lockspace.io_timeout, joins, versions, records, block


@pytest.fixture
def places(tmp_path, request, monkeypatch):
    """Return two places, folders unless the test says what they are."""
    monkeypatch.setattr(device_change, "ANNOUNCED_SECONDS", 0.01)
    kinds = getattr(request, "param", ("folder", "folder"))
    with ExitStack() as devices:
        existing = []
        for number, kind in enumerate(kinds):
            if kind == "folder":
                (tmp_path / str(number)).mkdir()
                existing.append(str(tmp_path / str(number)))
            else:
                image = tmp_path / f"image{number}"
                # As small as it can be, but for a lockspace and leases with sectors of 4096.
                size = 72 << 20 if kind == 4096 else 64 << 20
                existing.append(devices.enter_context(loop_device(image, size, kind)))
        if kinds[1] != "folder":
            set_up(existing[1])
        yield tuple(existing)


def desired(places, **more):
    return move.DesiredPlace("c1", *places, **more)


def go(asked, sleep=lambda _seconds: None):
    existing = move.look_move(asked)
    plan = move.plan_move(asked, existing)
    return move.apply_move(plan, asked, existing, sleep)


def kinds(place):
    return set(move._kinds(place, "c1"))


def joinable(places):
    return [place for place in places if "lockspace" in kinds(place)]


@pytest.mark.parametrize(
    "places",
    [("folder", "folder"), ("folder", 512), (512, "folder"), ("folder", 4096), (4096, 512)],
    indirect=True,
)
def test_everything_is_the_same_in_the_new_place_and_the_old_one_is_blank(places):
    before = make(places[0])
    assert go(desired(places, prepare=True))
    assert not go(desired(places, prepare=True))
    assert joinable(places) == [places[0]]
    assert content(places[0]) == before
    assert "moving" in kinds(places[1])
    waited = []
    assert go(desired(places), waited.append)
    assert waited == [3], "as long as a write of a join may take"
    assert kinds(places[0]) == set()
    assert kinds(places[1]) - {"header"} == FILES
    assert content(places[1]) == before
    if is_device(places[0]):
        assert not any(Path(places[0]).read_bytes()[:GRAIN])
    assert not go(desired(places))
    leases = EmbeddedLeases(*(f"{places[1]}/c1.{kind}" for kind in ("lockspace", "leases")), 3)
    assert leases.join("n3") == before[1][3][1] + 1
    assert leases.acquire("manager") == before[2][0][2] + 1
    leases.leave()


def test_the_new_files_may_be_larger_and_not_smaller(places):
    before = make(places[0])
    with pytest.raises(InputError, match="expected at least 3, as the cluster has"):
        go(desired(places, max_hosts=2))
    assert go(desired(places, max_hosts=5, record_sizes={Kind.CRM: 2 * MEBIBYTE}))
    assert content(places[1]) == before
    paths = cluster_paths(places[1], "c1")
    with RecordFile(paths.state) as file, Whiteboard(paths.metadata) as board:
        assert file.geometry().max_hosts == board.max_hosts() == 5
        assert file.geometry().copy_bytes[Kind.CRM] == 2 * MEBIBYTE


def test_a_record_that_does_not_fit_is_named_before_anything_is_written(places):
    make(places[0])
    with RecordFile(f"{places[0]}/c1.state") as file:
        file.write(Kind.CRM, 3, 9, bytes(5000))
    with pytest.raises(StorageError, match=r"has a CRM record of 5000 bytes; give manager_record"):
        go(desired(places, prepare=True, record_sizes={Kind.CRM: 4096}))
    assert kinds(places[1]) == set()


def test_a_damaged_record_is_not_left_behind(places):
    make(places[0])
    with RecordFile(f"{places[0]}/c1.state") as file:
        geometry = file.geometry()
    with Path(places[0], "c1.state").open("r+b") as file:
        for copy in (0, 1):
            file.seek(geometry.offset(Kind.CRM, 3, copy) + 8)
            file.write(b"damage")
    with pytest.raises(FormatError):
        go(desired(places))
    assert joinable(places) == [places[0]]


@pytest.mark.parametrize("places", [("folder", 4096)], indirect=True)
def test_a_whiteboard_of_small_blocks_does_not_get_on_large_sectors(places):
    make(places[0], block_bytes=2048)
    with pytest.raises(StorageError, match=r"blocks of 2048 bytes, and .* has sectors of 4096"):
        go(desired(places, prepare=True))


def hold(place, host_id=2):
    """Have a node hold its host lease, as by sanlock on another machine."""
    with LeaseArea(f"{place}/c1.lockspace") as area:
        lease = replace(area.read_host(1), host_id=host_id, host_name=f"n{host_id}", timestamp=9)
        area.write_host(host_id, lease)


def test_nothing_is_moved_while_a_node_holds_a_host_lease_but_it_is_prepared(places):
    make(places[0])
    hold(places[0])
    with pytest.raises(LeaseError, match=r"in use and nothing is moved: node n2 \(host id 2\)"):
        go(desired(places))
    assert go(desired(places, prepare=True))
    assert joinable(places) == [places[0]]


def test_a_node_that_joined_after_the_look_keeps_its_cluster(places):
    make(places[0])
    asked = desired(places)
    existing = move.look_move(asked)
    hold(places[0])
    with pytest.raises(LeaseError, match="n2"):
        move.apply_move(move.plan_move(asked, existing), asked, existing)
    assert kinds(places[0]) == FILES
    assert kinds(places[1]) == set()


def test_a_node_that_was_joining_when_the_old_place_was_given_up_keeps_its_cluster(places):
    make(places[0])

    def join_late(_seconds):
        Path(places[0], "c1.moved").rename(Path(places[0], "c1.lockspace"))
        hold(places[0])
        Path(places[0], "c1.lockspace").rename(Path(places[0], "c1.moved"))

    with pytest.raises(LeaseError, match="n2"):
        go(desired(places), join_late)
    assert kinds(places[0]) == FILES
    assert kinds(places[1]) == set()


def test_files_of_a_cluster_in_the_new_place_are_left_alone(places):
    make(places[0])
    make(places[1])
    with pytest.raises(StorageError, match=r"and .*c1\.lockspace exist, and a cluster has one"):
        go(desired(places))
    Path(places[1], "c1.lockspace").unlink()
    with pytest.raises(StorageError, match="has leases, metadata, state of a cluster c1 already"):
        go(desired(places))


def test_a_storage_that_is_not_mounted_is_no_cluster_that_was_moved(places):
    with pytest.raises(StorageError, match="no lockspace of cluster c1"):
        go(desired(places))
    with pytest.raises(InputError, match="another place"):
        go(desired((places[0], places[0])))


def acts(monkeypatch, ends_at, error):
    """Let the act on the storage number *ends_at*, and all after it, end with *error*."""
    done = []

    def counted(name, act):
        def run(*arguments, **options):
            if len(done) >= ends_at and (error is PowerCutError or len(done) == ends_at):
                done.append("failed")
                raise error("an act on the storage")
            done.append(name)
            return act(*arguments, **options)

        return run

    for name in ("create", "remove", "rename"):
        monkeypatch.setattr(move, name, counted(name, getattr(move, name)))
    return done


ACTS = 11
"""How many acts a move of a prepared cluster has."""


@pytest.mark.parametrize("ends_at", range(ACTS + 1))
def test_after_a_power_cut_nodes_can_join_in_one_place_at_most_and_the_next_run_continues(
    places, monkeypatch, ends_at
):
    before = make(places[0])
    go(desired(places, prepare=True))
    with monkeypatch.context() as patch:
        done = acts(patch, ends_at, PowerCutError)
        if ends_at < ACTS:
            with pytest.raises(PowerCutError):
                go(desired(places))
        else:
            go(desired(places))
        assert len([one for one in done if one != "failed"]) == ends_at
    assert len(joinable(places)) <= 1
    if joinable(places) == [places[1]]:
        assert content(places[1]) == before
    go(desired(places, prepare=True))
    go(desired(places))
    assert kinds(places[0]) == set()
    assert content(places[1]) == before


@pytest.mark.parametrize("ends_at", range(6))
def test_after_an_error_the_old_place_is_as_before(places, monkeypatch, ends_at):
    before = make(places[0])
    go(desired(places, prepare=True))
    with monkeypatch.context() as patch:
        acts(patch, ends_at, StorageError)
        with pytest.raises(StorageError, match="an act on the storage"):
            go(desired(places))
    assert joinable(places) == [places[0]]
    assert content(places[0]) == before
    assert not kinds(places[1]) & FILES
    go(desired(places))
    assert content(places[1]) == before
