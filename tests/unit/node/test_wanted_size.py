# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A large cluster fits its records, and what would not fit is refused before it is written."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired import (
    DesiredState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired_codec import (  # noqa: E501
    desired_document,
    desired_from_document,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.maintenance import (  # noqa: E501
    Maintenance,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    LocalService,
    LocalState,
    Report,
    report_document,
    report_from_document,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.service import (
    Resource,
    Service,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    EVENTS_KEPT,
    FAILOVER_SERVICES_KEPT,
    ClusterState,
    Event,
    Failover,
    NodeState,
    NodeStatus,
    Power,
    ServiceStatus,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state_codec import (  # noqa: E501
    state_document,
    state_from_document,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.states import (
    ServiceState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import (
    FormatError,
    StorageError,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.cluster_storage import (
    ClusterStorage,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.record_slots import payload
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.operations.change import (  # noqa: E501
    REASON,
    UID,
    WALL,
    change_desired,
    manager_bytes,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.record_format import (
    Kind,
    Record,
    encode_record,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.records import (
    PAGE,
    RecordFile,
)
from ansible_collections.holdfast.ha.tests.unit.cluster.samples import pending, verified_off
from ansible_collections.holdfast.ha.tests.unit.node.sample_node import (
    configuration,
    create_storage,
    join,
)

MEBIBYTE = 1 << 20
SERVICES, NODES = 20_000, 2000
SIZES = {Kind.LRM: MEBIBYTE, Kind.CRM: 16 * MEBIBYTE, Kind.CONFIGURATION: 16 * MEBIBYTE}
TEARS = 10


def machine(number):
    """A virtual machine with its disk, as an operator would declare it."""
    return Service(
        f"vm:{number}",
        (
            Resource("disk", "ocf:heartbeat:LVM-activate", {"vgname": f"vg{number}"}),
            Resource("domain", "ocf:heartbeat:VirtualDomain", {"config": f"/srv/{number}.xml"}),
        ),
    )


def cluster_desired(services, version=7):
    return DesiredState(version, {one.id: one for one in map(machine, range(services))})


def node_names(nodes):
    return [f"node{number:04}.example.com" for number in range(1, nodes + 1)]


def worst(desired, nodes):
    """A manager's record in which everything is under way at once."""
    services = {
        key: ServiceStatus(
            ServiceState.REQUEST_START,
            nodes[place % len(nodes)],
            nodes[-1],
            UID,
            WALL,
            REASON,
            "0" * 16,
            (nodes[0],),
            (nodes[-1],),
            last_node=nodes[-1],
            maintenance_node=nodes[0],
            request=WALL,
            from_node=nodes[-1],
            crashes=10,
            not_before=WALL,
        )
        for place, key in enumerate(desired.services)
    }
    dead = NodeStatus(
        NodeState.OFF,
        WALL,
        REASON,
        "0" * 36,
        verified_off(REASON),
        (WALL,) * 10,
        pending(manager=WALL, earlier=WALL, candidate=WALL),
        10,
        WALL,
        Power.GIVEN_UP,
        mode="maintenance",
    )
    state = ClusterState(
        9,
        nodes[0],
        7,
        3,
        10_000_000,
        services,
        dict.fromkeys(nodes, dead),
        hold=Maintenance(REASON),
    )
    for number in range(EVENTS_KEPT):
        state = state.with_event(_choice(WALL + number, nodes[0]))
    ids = tuple(desired.services)
    for turn in range(20):
        fell = ids if turn == 19 else ids[turn * 50 : turn * 50 + 100]
        back = dict.fromkeys(fell, (nodes[0], WALL))
        times = (WALL,) * 5
        failover = Failover(nodes[turn % len(nodes)], REASON, *times, REASON, fell, back, WALL)
        state = state.with_failover(failover)
    return state


def _choice(at, node):
    """A choice among many nodes, each of them rejected with a reason."""
    return Event(at, "started", node, "vm:1", REASON, ((node, REASON),) * 2)


@pytest.fixture
def without_waiting_for_the_disk(monkeypatch):
    """Leave out direct and synchronous I/O, which only take time here."""
    real = os.open
    waiting = os.O_DIRECT | os.O_DSYNC
    monkeypatch.setattr(
        os, "open", lambda path, flags, *rest, **more: real(path, flags & ~waiting, *rest, **more)
    )


@pytest.fixture
def records(tmp_path, without_waiting_for_the_disk):
    with RecordFile(str(tmp_path / "big.state")) as file:
        file.create("big", NODES, SIZES)
        yield file


def test_two_thousand_node_records_read_back_each_from_its_own_place(records):
    for host_id in range(1, NODES + 1):
        local = {
            f"vm:{host_id}-{place}": LocalService(
                machine(place), LocalState.RUNNING, UID, WALL, "started"
            )
            for place in range(SERVICES // NODES)
        }
        report = Report(f"node{host_id}", "0" * 32, 9, 10_000, 7, services=local)
        records.write(Kind.LRM, host_id, 9, payload(report_document(report)))
        if host_id in (1, NODES):
            read = records.read(Kind.LRM, host_id).payload
            assert report_from_document(json.loads(read)) == report
    found = {records.read(Kind.LRM, one).host_id for one in range(1, NODES + 1)}
    assert found == set(range(1, NODES + 1))
    name = f'"node":"node{NODES}"'.encode()
    assert name in records.read(Kind.LRM, NODES).payload


def test_twenty_thousand_services_read_back_as_configuration_and_managers_record(records):
    desired = cluster_desired(SERVICES)
    records.write(Kind.CONFIGURATION, NODES, 7, payload(desired_document(desired)))
    read = records.read(Kind.CONFIGURATION, NODES).payload
    assert desired_from_document(json.loads(read)) == desired
    state = worst(desired, node_names(NODES))
    records.write(Kind.CRM, NODES, 9, payload(state_document(state)))
    assert state_from_document(json.loads(records.read(Kind.CRM, NODES).payload)) == state


@pytest.mark.parametrize("kind", [Kind.CRM, Kind.CONFIGURATION])
def test_a_large_record_that_is_torn_leaves_the_one_before(records, kind):
    size = 11 * MEBIBYTE
    before = records.write(kind, NODES, 1, b"b" * size)
    records.write(kind, NODES, 1, b"a" * size)
    before = records.write(kind, NODES, 1, b"b" * size)
    data = encode_record(Record(kind, NODES, 4, 1, b"c" * size))
    offset = records.geometry().offset(kind, NODES, 1)
    with Path(records.path).open("r+b", buffering=0) as file:
        done = 0
        for part in range(1, TEARS + 1):
            cut = len(data) * part // TEARS // PAGE * PAGE
            file.seek(offset + done)
            file.write(data[done:cut])
            done = cut
            whole = done >= len(data)
            assert (records.read(kind, NODES).payload[:1] == b"c") is whole
            if not whole:
                assert records.read(kind, NODES) == before
    assert records.read(kind, NODES).payload == b"c" * size


@pytest.mark.parametrize(
    ("services", "nodes"), [(0, 1), (1, 2), (300, 2), (300, 64), (3000, 3), (SERVICES, NODES)]
)
def test_the_record_that_a_manager_may_need_is_not_told_smaller_than_it_gets(services, nodes):
    desired, names = cluster_desired(services), node_names(nodes)
    needed = len(payload(state_document(worst(desired, names))))
    told = manager_bytes(desired, names)
    assert needed <= told <= 1.6 * needed + 100_000


def test_finished_failovers_do_not_fill_the_record():
    ids = tuple(map(str, range(FAILOVER_SERVICES_KEPT)))
    state = ClusterState()
    for turn in range(5):
        state = state.with_failover(Failover(f"n{turn}", services=ids, finished=WALL))
    assert [one.node for one in state.failovers] == ["n4"]
    under_way = replace(state.failovers[0], node="n5", finished=0.0)
    assert [one.node for one in state.with_failover(under_way).failovers] == ["n4", "n5"]


@pytest.fixture
def node(tmp_path):
    """The configuration of n1, which is on, with records for few services only."""
    create_storage(tmp_path)
    found = configuration(tmp_path)
    leases = join(found)
    yield found
    leases.close()


def shrink(node, **sizes):
    changed = {Kind[name]: size for name, size in sizes.items()}
    RecordFile(str(node.state_path)).create("c1", 4, changed, replace=True)


@pytest.mark.parametrize("check", [True, False], ids=["check mode", "for real"])
@pytest.mark.parametrize(
    ("sizes", "text"),
    [
        (
            {"CONFIGURATION": 16 * PAGE},
            r"The desired configuration would need \d+ bytes for 300 services, but the file of"
            rf" records has room for {16 * PAGE - 64}; nothing was changed. Give it more with"
            r" configuration_size of the module metadata\.",
        ),
        (
            {"CRM": 64 * PAGE},
            r"The manager's record for this desired configuration would need \d+ bytes for 300"
            rf" services, but the file of records has room for {64 * PAGE - 64};"
            r" nothing was changed. Give it more with manager_record_size",
        ),
    ],
)
def test_a_change_that_would_not_fit_is_refused_and_writes_nothing(node, sizes, text, check):
    shrink(node, **sizes)
    before = Path(node.state_path).read_bytes()
    with pytest.raises(StorageError, match=text):
        change_desired(node, lambda _desired: cluster_desired(300), check=check)
    assert Path(node.state_path).read_bytes() == before
    storage = ClusterStorage(node)
    storage.adopt_host_lease()
    assert storage.leases.acquire("configuration"), "nobody was kept waiting"
    storage.close()


def test_a_change_that_fits_to_the_byte_is_written(node):
    desired = cluster_desired(300, version=1)
    size = len(payload(desired_document(desired)))
    pages = -(-(size + 64) // PAGE)
    shrink(node, CONFIGURATION=(pages - 1) * PAGE)
    with pytest.raises(StorageError, match=f"would need {size} bytes"):
        change_desired(node, lambda one: replace(desired, version=1), check=True)
    shrink(node, CONFIGURATION=pages * PAGE)
    assert change_desired(node, lambda _desired: desired, check=False).changed


def test_damage_elsewhere_is_not_mistaken_for_want_of_room(node):
    Path(node.state_path).write_bytes(b"x" * PAGE)
    with pytest.raises(FormatError, match="not a state file"):
        change_desired(node, lambda _desired: cluster_desired(1), check=True)
