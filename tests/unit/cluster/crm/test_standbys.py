# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which CRMs observe all nodes, and which leave it to them until the manager is silent."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TypeVar

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.effects import (
    LeaseHolder,
    ReadHeartbeat,
    ReadManagerLease,
    ReadReadableState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.freed_leases import (  # noqa: E501
    FreedLeases,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.memory import (
    Crm,
    CrmSettings,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.standbys import (
    RANK,
    stands_back,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.effects import (
    Clocks,
    ReadClocks,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (
    Timing,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    ClusterState,
    NodeState,
    NodeStatus,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.performing import (
    play,
)

HOST_IDS = {f"n{number}": number for number in range(1, 13)}
TIMING = Timing(suspect_after=3.0, candidate_delay=2.0, standbys=2)
MANAGER = "n5"
RECORD = ClusterState(
    epoch=7, manager=MANAGER, nodes={name: NodeStatus(NodeState.ONLINE) for name in HOST_IDS}
)

T = TypeVar("T")


@dataclass
class Storage:
    """What one CRM reads, and its clock."""

    lease: LeaseHolder = field(default_factory=lambda: LeaseHolder(MANAGER, 7, active=True))
    record: ClusterState | None = RECORD
    beat: tuple[int, float] | None = (3, 100.0)
    now: float = 1000.0
    reads: list[str] = field(default_factory=list)

    def read(self, what: str, value: T) -> T:
        self.reads.append(what)
        return value

    def reserve(self, crm: Crm, after: float = 0.0) -> bool:
        """Return whether *crm* is a reserve *after* so many seconds."""
        self.now += after
        crm.begun = self.now
        self.reads = []
        return play(
            stands_back(crm),
            {
                ReadManagerLease: lambda _: self.read("lease", self.lease),
                ReadReadableState: lambda _: self.read("record", self.record),
                ReadHeartbeat: lambda effect: self.read(f"block of {effect.node}", self.beat),
                ReadClocks: lambda _: Clocks(self.now, self.now, self.now),
            },
        )


@pytest.fixture
def storage() -> Storage:
    return Storage()


def crm_of(node: str) -> Crm:
    return Crm(CrmSettings(node, HOST_IDS, TIMING, 20.0), FreedLeases(20.0))


def observers(storage: Storage) -> list[str]:
    """Return the nodes whose CRM observes the others."""
    return [name for name in HOST_IDS if not storage.reserve(crm_of(name))]


def without(*nodes: str) -> ClusterState:
    """Return the record with these nodes off."""
    off = dict.fromkeys(nodes, NodeStatus(NodeState.OFFLINE))
    return replace(RECORD, nodes={**RECORD.nodes, **off})


def test_the_manager_and_the_standbys_with_the_lowest_host_ids_observe(storage):
    assert observers(storage) == ["n1", "n2", MANAGER]


def test_a_node_that_is_off_is_no_standby_for_the_others(storage):
    # Each of them would be one as soon as its CRM asks itself: it runs, whatever the record says.
    storage.record = without("n1", "n2", "n3")
    assert {"n4", "n6", MANAGER} <= set(observers(storage))
    assert not {"n7", "n8", "n12"} & set(observers(storage))


@pytest.mark.parametrize(
    ("what", "given"),
    [
        ("no record can be read", {"record": None}),
        ("the lease is older than the record", {"lease": LeaseHolder(MANAGER, 6, active=True)}),
        ("nobody held the lease yet", {"lease": LeaseHolder("", 0)}),
    ],
)
def test_every_crm_observes_while_it_cannot_tell_who_does(storage, what, given):
    for name, value in given.items():
        setattr(storage, name, value)
    assert observers(storage) == list(HOST_IDS), what


def test_a_new_manager_makes_nobody_else_observe_before_it_has_written(storage):
    storage.lease = LeaseHolder("n6", 8, active=True)
    assert observers(storage) == ["n1", "n2", "n6"]


def test_a_crm_observes_while_a_fence_of_its_own_is_not_over(storage):
    crm = crm_of("n9")
    crm.fencing = frozenset({MANAGER})
    assert not storage.reserve(crm)
    crm.fencing = frozenset()
    crm.freed_leases.recorded = {MANAGER: 1}
    assert not storage.reserve(crm)
    crm.freed_leases.recorded = {}
    assert storage.reserve(crm)


def test_a_crm_that_manages_observes(storage):
    crm = crm_of("n9")
    crm.state = RECORD
    assert not storage.reserve(crm)


@pytest.mark.parametrize(
    ("node", "patience"),
    [("n3", 3.0), ("n4", 5.0), ("n6", 7.0), ("n7", 7.0), ("n8", 9.0), ("n11", 9.0), ("n12", 11.0)],
)
def test_the_number_of_observers_doubles_while_the_manager_is_silent(storage, node, patience):
    crm = crm_of(node)
    assert storage.reserve(crm)
    assert storage.reserve(crm, after=patience)
    assert not storage.reserve(crm, after=1.0)


def test_a_heartbeat_of_the_manager_makes_it_a_reserve_again(storage):
    crm = crm_of("n3")
    assert storage.reserve(crm)
    assert not storage.reserve(crm, after=4.0)
    storage.beat = (3, 101.0)
    assert storage.reserve(crm)


@pytest.mark.parametrize(
    ("what", "beat"),
    [
        ("an older one", (3, 99.0)),
        ("one of an older report", (2, 200.0)),
        ("none that can be read", None),
    ],
)
def test_only_a_newer_heartbeat_is_a_sign_of_life(storage, what, beat):
    crm = crm_of("n3")
    assert storage.reserve(crm)
    storage.beat = beat
    assert not storage.reserve(crm, after=4.0), what


def test_heartbeats_of_a_node_that_gave_the_lease_back_count_for_nothing(storage):
    crm = crm_of("n3")
    assert storage.reserve(crm)
    storage.lease = replace(storage.lease, active=False)
    storage.beat = (3, 101.0)
    assert not storage.reserve(crm, after=4.0)


def test_a_lease_whose_holder_is_not_known_to_live_counts_with_its_heartbeats(storage):
    crm = crm_of("n3")
    assert storage.reserve(crm)
    storage.lease = replace(storage.lease, active=None)
    storage.beat = (3, 101.0)
    assert storage.reserve(crm, after=4.0)


def test_a_new_manager_gets_the_whole_time_again(storage):
    crm = crm_of("n3")
    assert storage.reserve(crm)
    storage.lease = LeaseHolder("n6", 8, active=True)
    assert storage.reserve(crm, after=4.0)
    assert not storage.reserve(crm, after=4.0)


def test_a_reserve_reads_next_to_nothing(storage):
    crm = crm_of("n9")
    reads = []
    for _turn in range(40):
        assert storage.reserve(crm, after=0.5)
        reads += storage.reads
        storage.beat = (3, storage.now)
    assert reads.count("lease") == 20
    assert reads.count(f"block of {MANAGER}") == 20
    assert reads.count("record") == 20 * 0.5 * 2 / RANK


def test_a_reserve_becomes_a_standby_when_one_of_them_is_off(storage):
    crm = crm_of("n3")
    assert storage.reserve(crm)
    storage.record = without("n1")
    storage.beat = (3, 101.0)
    assert storage.reserve(crm, after=1.0)
    storage.beat = (3, 102.0)
    assert not storage.reserve(crm, after=RANK)
