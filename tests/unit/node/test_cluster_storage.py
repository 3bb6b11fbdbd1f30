# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the cluster keeps on its storage: whose record counts, and what an intent leaves alone."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired import (
    DesiredState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.news import (
    News,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    LocalService,
    LocalState,
    Report,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.service import (
    Resource,
    Service,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    ClusterState,
    Intent,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import (
    FormatError,
    LeaseError,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.lease.embedded import (
    EmbeddedLeases,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.lease.sanlock import (
    SanlockLeases,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.cluster_storage import (
    CONFIGURATION_LEASE,
    MANAGER_LEASE,
    ClusterStorage,
    make_leases,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.configuration import (
    EMBEDDED,
    SANLOCK,
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
from ansible_collections.holdfast.ha.tests.unit.node.sample_node import (
    NODES,
    configuration,
    create_storage,
    join,
)

WEB = Service("web", (Resource("r", "ocf:test:thing"),))


@pytest.fixture
def storages(tmp_path):
    """The storage as each of three nodes uses it; all of them are on."""
    create_storage(tmp_path)
    nodes = [configuration(tmp_path, name) for name in NODES]
    leases = [join(node) for node in nodes]
    found = [ClusterStorage(node) for node in nodes]
    for storage in found:
        storage.adopt_host_lease()
    yield found
    for one in (*found, *leases):
        one.close()


def spoil(tmp_path, kind, host_id, payload=b"{", epoch=99):
    with RecordFile(str(configuration(tmp_path).state_path)) as records:
        records.write(kind, host_id, epoch, payload)


def test_a_storage_nobody_wrote_on_has_no_manager_no_reports_and_nothing_wanted(storages):
    first = storages[0]
    assert (first.read_manager(), first.newest_intent()) == (None, None)
    assert first.read_report(2) is None
    assert first.read_desired() == (DesiredState(), 0)


def test_a_report_whose_number_is_known_is_not_read_again(storages):
    first, second, _third = storages
    second.write_report(Report("n2", "boot", commands=1))
    number = second.own_report_number()
    assert first.read_report(2, number).commands == 1
    second.write_report(Report("n2", "boot", commands=2))
    assert first.read_report(2, number).commands == 1
    assert first.read_report(2, second.own_report_number()).commands == 2
    second.write_report(Report("n2", "boot", commands=3))
    assert first.read_report(2).commands == 3


def test_a_node_reads_the_records_that_concern_it_and_keeps_the_last_one_else(storages):
    first, second, third = storages
    epoch = first.leases.acquire(MANAGER_LEASE)
    state = ClusterState(epoch=epoch, manager="n1", config_version=4, commands=1)
    first.write_manager(state)
    kept = third.read_orders()
    assert kept == second.read_orders() == state
    newer = replace(state, config_version=6, commands=2)
    first.write_manager(newer, news=News(frozenset({"n2", "gone"}), frozenset({"n2"}), 6))
    assert third.read_orders() is kept
    assert (second.read_orders(), third.read_manager()) == (newer, newer)


def test_a_node_needs_the_configuration_of_the_last_change_that_concerns_it(storages):
    first, _second, third = storages
    epoch = first.leases.acquire(MANAGER_LEASE)
    state = ClusterState(epoch=epoch, manager="n1", config_version=4, commands=1)
    first.write_manager(state)
    assert third.read_orders().config_version == 4
    newer = replace(state, config_version=6, commands=2)
    first.write_manager(newer, news=News(frozenset({"n3"}), frozenset(), 6))
    assert third.read_orders() == replace(newer, config_version=4)
    assert third.read_orders() is third.read_orders()
    newest = replace(newer, config_version=7, commands=3)
    first.write_manager(newest, news=News(frozenset({"n3"}), frozenset({"n3"}), 7))
    assert third.read_orders() == newest


def test_a_node_reads_the_record_of_a_new_manager_whomever_it_concerns(storages):
    first, second, third = storages
    state = ClusterState(epoch=first.leases.acquire(MANAGER_LEASE), manager="n1")
    first.write_manager(state)
    assert third.read_orders() == state
    first.leases.release(MANAGER_LEASE)
    taken = ClusterState(epoch=second.leases.acquire(MANAGER_LEASE), manager="n2")
    assert third.read_orders() == state
    second.write_manager(taken, news=News(frozenset({"n1"}), frozenset(), 0))
    assert third.read_orders() == taken


def test_the_record_of_the_highest_epoch_counts_while_the_new_manager_has_not_written(storages):
    first, second, third = storages
    for storage, epoch in ((first, 5), (second, 7), (third, 6)):
        storage.write_manager(ClusterState(epoch=epoch, manager=f"by {epoch}"))
    assert third.leases.acquire(MANAGER_LEASE) == 1
    assert [storage.read_manager().epoch for storage in storages] == [7, 7, 7]


def test_a_node_that_lost_its_power_in_its_first_write_as_manager_keeps_no_other_from_it(
    storages, tmp_path
):
    first, second, _third = storages
    second.write_manager(ClusterState(epoch=5, manager="n2"))
    with RecordFile(str(configuration(tmp_path).state_path)) as records:
        torn = encode_record(Record(Kind.CRM, 1, 1, 6, b"x" * PAGE))[:512]
        descriptor = os.open(records.path, os.O_WRONLY)
        os.pwrite(descriptor, torn, records.geometry().offset(Kind.CRM, 1, 0))
        os.close(descriptor)
    assert first.read_manager().manager == "n2"
    assert first.newest_intent() is None
    first.write_manager(ClusterState(epoch=7, manager="n1"))
    assert second.read_manager().manager == "n1"


def test_the_lease_holders_record_is_the_managers_whatever_the_others_slots_hold(
    storages, tmp_path
):
    first, second, _third = storages
    epoch = second.leases.acquire(MANAGER_LEASE)
    second.write_manager(ClusterState(epoch=epoch, manager="n2"))
    spoil(tmp_path, Kind.CRM, 3)
    assert first.read_manager().manager == "n2"


def test_a_record_that_may_be_the_managers_and_makes_no_sense_is_an_error(storages, tmp_path):
    spoil(tmp_path, Kind.CRM, 3, b'{"services": {"web": {"state": "dancing"}}}')
    with pytest.raises(FormatError, match=r"The CRM record of host id 3 .* cannot be understood"):
        storages[0].read_manager()


def test_a_slot_that_cannot_be_read_keeps_nobody_from_following_the_last_manager(
    storages, tmp_path
):
    first, second, third = storages
    first.write_intent(Intent("n2", "it is silent", 10.0, 14.0, 1))
    second.write_manager(ClusterState(epoch=second.leases.acquire(MANAGER_LEASE), manager="n2"))
    second.leases.release(MANAGER_LEASE)
    spoil(tmp_path, Kind.CRM, 3)
    assert first.leases.acquire(MANAGER_LEASE) == 2
    assert first.read_manager().manager == "n2"
    assert third.newest_intent().node == "n2"


def test_a_slot_that_may_hold_the_record_of_the_last_manager_is_not_passed_over(storages, tmp_path):
    first, second, third = storages
    second.write_manager(ClusterState(epoch=second.leases.acquire(MANAGER_LEASE), manager="n2"))
    second.leases.release(MANAGER_LEASE)
    assert third.leases.acquire(MANAGER_LEASE) == 2
    third.leases.release(MANAGER_LEASE)
    spoil(tmp_path, Kind.CRM, 3)
    assert first.leases.acquire(MANAGER_LEASE) == 3
    with pytest.raises(FormatError, match="CRM record of host id 3"):
        first.read_manager()


def test_an_intent_leaves_the_nodes_last_state_and_its_epoch_as_they_are(storages):
    first, second, _third = storages
    state = ClusterState(epoch=5, manager="n1", commands=41)
    first.write_manager(state)
    first.write_intent(Intent("n2", "it is silent", 10.0, 14.0, 7))
    assert second.read_manager() == state
    assert second.newest_intent() == Intent("n2", "it is silent", 10.0, 14.0, 7)


def test_an_intent_of_a_node_that_never_was_manager_makes_no_manager(storages):
    storages[0].write_intent(Intent("n2", "it is silent", 10.0, 14.0, 7))
    assert storages[1].read_manager() is None
    assert storages[1].newest_intent().node == "n2"


def test_of_several_intents_that_for_the_latest_manager_counts_and_then_the_latest(storages):
    first, second, third = storages
    first.write_intent(Intent("n2", "old", 0.0, 99.0, 6))
    second.write_intent(Intent("n1", "early", 0.0, 10.0, 7))
    third.write_intent(Intent("n1", "late", 0.0, 12.0, 7))
    assert first.newest_intent().reason == "late"


def test_a_managers_record_ends_its_own_intent(storages):
    first = storages[0]
    first.write_intent(Intent("n2", "it is silent", 10.0, 14.0, 7))
    first.write_manager(ClusterState(epoch=8, manager="n1"))
    assert storages[1].newest_intent() is None


def test_a_manager_of_an_earlier_epoch_cannot_write_over_a_later_one(storages):
    storages[0].write_manager(ClusterState(epoch=8))
    with pytest.raises(LeaseError, match="a write of the older epoch 7 is refused"):
        storages[0].write_manager(ClusterState(epoch=7))


def test_of_the_wanted_configurations_the_highest_version_counts_with_its_slot(storages):
    first, second, third = storages
    for storage, version in ((first, 3), (second, 5), (third, 4)):
        storage.write_desired(DesiredState(version, {"web": WEB}))
    assert first.read_desired() == (DesiredState(5, {"web": WEB}), 2)
    assert third.read_desired_from(1).version == 3


def test_a_report_is_read_as_it_was_written_and_again_when_it_changed(storages):
    first, second, _third = storages
    report = Report("n1", "boot1", services={"web": LocalService(WEB, LocalState.RUNNING, "7.1")})
    first.write_report(report)
    assert second.read_report(1) == report
    assert second.read_report(1) is second.read_report(1)
    first.write_report(Report("n1", "boot2"))
    assert second.read_report(1) == Report("n1", "boot2")


def slots_read(storage, monkeypatch):
    """Return the list that will have each configuration slot that *storage* reads."""
    read = []
    file = storage.records._file
    whole = file.read_if_newer

    def counted(kind, host_id, known, reader=0):
        if kind is Kind.CONFIGURATION:
            read.append(host_id)
        return whole(kind, host_id, known, reader)

    monkeypatch.setattr(file, "read_if_newer", counted)
    return read


def change(storage, version):
    """Write a desired configuration as a change does: under the lease, with its version."""
    assert storage.leases.acquire(CONFIGURATION_LEASE) == version
    storage.write_desired(DesiredState(version, {"web": WEB}))
    storage.leases.release(CONFIGURATION_LEASE)


def test_one_slot_is_read_for_the_newest_configuration_whoever_wrote_it(storages, monkeypatch):
    first, second, third = storages
    for version, writer in enumerate((first, second, third, second), start=1):
        change(writer, version)
    read = slots_read(first, monkeypatch)
    assert first.read_desired() == (DesiredState(4, {"web": WEB}), 2)
    assert read == [2]


def test_no_newer_configuration_is_missed_while_a_change_is_under_way_or_came_to_nothing(
    storages, monkeypatch
):
    first, second, third = storages
    change(second, 1)
    change(first, 2)
    assert second.leases.acquire(CONFIGURATION_LEASE) == 3
    read = slots_read(third, monkeypatch)
    assert third.read_desired() == (DesiredState(2, {"web": WEB}), 1)
    second.leases.release(CONFIGURATION_LEASE)
    assert third.read_desired() == (DesiredState(2, {"web": WEB}), 1)
    assert set(read) == {1, 2, 3, 4}, "4 is no member: it is searched once"
    read.clear()
    assert third.read_desired() == (DesiredState(2, {"web": WEB}), 1)
    assert set(read) == {1, 2, 3}
    change(third, 4)
    assert first.read_desired() == (DesiredState(4, {"web": WEB}), 3)


def test_a_change_that_was_paused_and_is_written_late_is_not_the_newest(storages):
    first, second, third = storages
    change(first, 1)
    change(second, 2)
    change(third, 3)
    second.write_desired(DesiredState(2, {}))
    assert first.read_desired() == (DesiredState(3, {"web": WEB}), 3)


def test_a_slot_of_another_node_that_is_damaged_hides_no_configuration(storages, tmp_path):
    first, second, _third = storages
    change(second, 1)
    spoil(tmp_path, Kind.CONFIGURATION, 3)
    assert first.read_desired() == (DesiredState(1, {"web": WEB}), 2)


def test_a_damaged_slot_of_another_is_passed_over_while_the_holder_has_not_written_yet(
    storages, tmp_path
):
    first, second, third = storages
    change(third, 1)
    change(first, 2)
    spoil(tmp_path, Kind.CONFIGURATION, 3)
    assert second.leases.acquire(CONFIGURATION_LEASE) == 3
    assert first.read_desired() == second.search_desired() == (DesiredState(2, {"web": WEB}), 1)
    second.leases.release(CONFIGURATION_LEASE)
    assert first.leases.acquire(CONFIGURATION_LEASE) == 4
    # Version 3 may have been written by anybody.
    for storage in (first, second):
        with pytest.raises(FormatError, match="record of host id 3"):
            storage.search_desired()
    with pytest.raises(FormatError, match="record of host id 3"):
        first.search_desired(acquired=4)


def test_the_damaged_slot_of_a_holder_may_have_the_newest_until_the_holder_says_otherwise(
    storages, tmp_path
):
    first, second, third = storages
    change(third, 1)
    change(first, 2)
    spoil(tmp_path, Kind.CONFIGURATION, 3)
    assert third.leases.acquire(CONFIGURATION_LEASE) == 3
    for storage in (first, second, third):
        with pytest.raises(FormatError, match="record of host id 3"):
            storage.search_desired()
    assert third.search_desired(acquired=3) == (DesiredState(2, {"web": WEB}), 1)
    with pytest.raises(FormatError, match="record of host id 3"):
        third.search_desired(acquired=2)


def test_a_damaged_slot_counts_where_no_other_has_a_configuration(storages, tmp_path):
    first, second, _third = storages
    spoil(tmp_path, Kind.CONFIGURATION, 3)
    assert second.leases.acquire(CONFIGURATION_LEASE) == 1
    with pytest.raises(FormatError, match="record of host id 3"):
        first.search_desired()
    with pytest.raises(FormatError, match="record of host id 3"):
        second.search_desired(acquired=1)


@pytest.mark.parametrize(
    ("backend", "kind"), [(EMBEDDED, EmbeddedLeases), (SANLOCK, SanlockLeases)]
)
def test_the_backend_of_the_configuration_is_the_one_that_is_used(tmp_path, backend, kind):
    leases = make_leases(replace(configuration(tmp_path), backend=backend))
    assert isinstance(leases, kind)
    leases.close()


def narrow(tmp_path):
    """Return the storage as n1 uses it, whose configuration has no other node."""
    node = configuration(tmp_path)
    return ClusterStorage(replace(node, members={"n1": node.members["n1"]}))


def test_the_manager_and_its_record_are_found_also_where_the_configuration_lacks_its_node(
    storages, tmp_path
):
    first, second, third = storages
    first.write_manager(ClusterState(epoch=first.leases.acquire(MANAGER_LEASE), manager="n1"))
    first.leases.release(MANAGER_LEASE)
    second.write_manager(ClusterState(epoch=second.leases.acquire(MANAGER_LEASE), manager="n2"))
    assert narrow(tmp_path).read_manager().manager == "n2"
    second.leases.release(MANAGER_LEASE)
    # Another one has the lease, and has not written: the record before is in a foreign slot.
    assert first.leases.acquire(MANAGER_LEASE) == 3
    assert narrow(tmp_path).read_manager().manager == "n2"
    assert third.read_manager().manager == "n2"


def test_the_newest_configuration_is_found_also_where_the_configuration_lacks_its_node(
    storages, tmp_path
):
    first, second, _third = storages
    change(first, 1)
    change(second, 2)
    one = narrow(tmp_path)
    assert one.read_desired() == (DesiredState(2, {"web": WEB}), 2)
    # Another one had the lease, and changed nothing.
    assert first.leases.acquire(CONFIGURATION_LEASE) == 3
    first.leases.release(CONFIGURATION_LEASE)
    assert narrow(tmp_path).read_desired() == (DesiredState(2, {"web": WEB}), 2)
    assert narrow(tmp_path).search_desired() == (DesiredState(2, {"web": WEB}), 2)


@pytest.mark.parametrize("kind", [Kind.LRM, Kind.CRM])
def test_a_writer_notices_any_damage_to_its_own_record(storages, tmp_path, kind):
    first = storages[0]
    for number in (1, 2, 3):
        first.write_report(Report("n1", "boot1", commands=number))
        first.write_manager(ClusterState(epoch=number, manager="n1"))
    assert first.own_record_stands(kind)
    path = configuration(tmp_path).state_path
    with RecordFile(str(path)) as records:
        geometry = records.geometry()
    for copy in (0, 1):
        place = geometry.offset(kind, 1, copy)
        kept = path.read_bytes()[place : place + PAGE]
        for damage in (kept[:66] + b"!" + kept[67:], kept[:20] + b"!" + kept[21:], bytes(PAGE)):
            with path.open("r+b") as file:
                file.seek(place)
                file.write(damage)
            older = int.from_bytes(kept[16:24], "little") < 3
            assert first.own_record_stands(kind) is (older and not any(damage)), (
                "a blank older copy loses nothing"
            )
            with path.open("r+b") as file:
                file.seek(place)
                file.write(kept)
        assert first.own_record_stands(kind)
