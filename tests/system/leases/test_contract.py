# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The contract of leases, kept by every backend: the embedded one, and sanlock both ways in.

Every holder here is a process of its own, on a machine of its own.
"""

from __future__ import annotations

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (
    HostState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import (
    InputError,
    LeaseError,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.lease.embedded import (
    EmbeddedLeases,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.lease.interface import (
    LeaseHolder,
    Leases,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.lease.sanlock import (
    SanlockLeases,
)
from ansible_collections.holdfast.ha.tests.system.leases.lease_backends import (
    Cluster,
    Kind,
    eventually,
)

KINDS = (
    Kind("embedded"),
    Kind("command"),
    Kind("binding"),
    Kind("command", 5, 30, debian_13=True),
    Kind("command", 2, 10, debian_13=True),
    Kind("binding", 2, 10, debian_13=True),
)

SETTLED = 40.0
"""Seconds after which no test's lease may be held; on busy storage a release may come late."""


@pytest.fixture(scope="module", params=KINDS, ids=str)
def cluster(request):
    """Five machines that have joined, the last two to lose; tests leave no lease held."""
    made = Cluster(request.param)
    try:
        made.join(1, 2, 3, 4, 5)
        yield made
    finally:
        made.end()


@pytest.fixture
def node(cluster):
    made = []

    def make(host_id):
        made.append(cluster.node(host_id))
        return made[-1]

    yield make
    for worker in made:
        if worker.child.poll() is None:
            worker.close()
        worker.end()
    assert eventually(lambda: not _held(cluster), SETTLED), _what_is_known(cluster)


def _held(cluster):
    return [
        name
        for name in ("manager", "configuration")
        if cluster.machines[3].holder(name).active is not False
    ]


def _what_is_known(cluster):
    """Return who has which lease, by the storage and by the daemons."""
    lines = [f"{name}: {cluster.machines[3].holder(name)}" for name in _held(cluster)]
    for host_id in cluster.daemons:
        said = (cluster.run_directory(host_id) / "said").read_text().splitlines()
        told = [line for line in said if "cmd_status" not in line][-30:]
        lines += [f"host id {host_id}:", cluster.client(host_id, "status"), *told]
    return "\n".join(lines)


def _had(node, name="manager"):
    """Return the version of a lease that is free; slow storage may take more than one call."""
    return eventually(lambda: node.acquire(name))


def test_a_host_id_that_a_node_has_is_refused_by_its_name(cluster):
    intruder = cluster.worker(1)
    with pytest.raises(LeaseError, match="host id 1 is already held by node n1"):
        intruder.join("n1")
    intruder.end()


def test_joining_or_adopting_twice_is_refused(node):
    mine = node(1)
    for call in (mine.join, mine.adopt):
        with pytest.raises(LeaseError, match="host id 1 is already joined as node n1"):
            call("n1")


def test_nobody_adopts_a_host_lease_under_another_name(cluster):
    daemon = cluster.worker(1)
    with pytest.raises(LeaseError, match="host id 1 is not held for node other"):
        daemon.adopt("other")
    daemon.end()


@pytest.mark.parametrize("name", ["", "with space", "-n1", "x" * 64])
def test_a_name_that_is_none_is_refused(cluster, name):
    daemon = cluster.machines[3]
    with pytest.raises(InputError):
        daemon.adopt(name)


def test_without_a_host_lease_there_is_no_lease_and_no_fail_time(cluster):
    stranger = cluster.worker(1)
    for call in (lambda: stranger.acquire("manager"), stranger.fail_seconds, stranger.renew):
        with pytest.raises(LeaseError, match="host id 1 is not joined"):
            call()
    assert stranger.held("manager") is False
    stranger.release("manager")
    stranger.leave()
    stranger.end()


def test_a_host_lease_that_is_good_is_confirmed_and_leaving_it_to_its_holder_keeps_it(node):
    mine, other = node(1), node(2)
    mine.renew()
    assert (mine.host(1).state, mine.host(1).active) == (HostState.LIVE, True)
    mine.leave()
    assert other.host(1).state is HostState.LIVE


def test_a_node_may_not_act_after_eight_io_timeouts(cluster, node):
    assert node(1).fail_seconds() == 8 * cluster.kind.io_timeout


def test_a_held_lease_is_not_granted_to_another_node(node):
    first, second = node(1), node(2)
    version = _had(first)
    assert version is not None
    assert second.acquire("manager") is None
    assert (first.held("manager"), second.held("manager")) == (True, False)
    holder = second.holder("manager")
    assert (holder.host_id, holder.version) == (1, version)
    assert holder.generation == second.host(1).generation
    assert holder.active is not False


def test_a_held_lease_is_not_granted_to_another_process_of_the_same_node(node):
    first, second = node(1), node(1)
    assert _had(first) is not None
    assert second.acquire("manager") is None
    assert not second.held("manager")
    second.release("manager")
    assert first.held("manager")


def test_each_acquisition_has_a_higher_version_and_the_same_holder_the_same(node):
    first, second = node(1), node(2)
    one = _had(first)
    assert first.acquire("manager") == one
    first.release("manager")
    first.release("manager")
    assert not first.held("manager")
    two = _had(second)
    second.release("manager")
    three = _had(first)
    assert one < two < three


def test_a_released_lease_is_free_at_once(node):
    first, second = node(1), node(2)
    version = _had(first)
    first.release("manager")
    assert eventually(lambda: second.holder("manager").active is False)
    holder = second.holder("manager")
    assert (holder.host_id, holder.version, holder.active) == (1, version, False)
    assert _had(second) is not None


def test_two_leases_do_not_exclude_each_other(node):
    first, second = node(1), node(2)
    assert _had(first) is not None
    assert _had(second, "configuration") is not None
    assert first.acquire("configuration") is None
    assert second.acquire("manager") is None


def test_of_many_that_try_at_once_one_wins(node):
    contenders = [node(1), node(2), node(3)]
    won = eventually(lambda: [one for one in contenders if one.acquire("manager") is not None])
    assert len(won) == 1
    assert [one for one in contenders if one.held("manager")] == won


def test_a_holder_that_is_killed_loses_its_lease_and_not_its_host_lease(node):
    first, second = node(1), node(2)
    version = _had(first)
    first.kill()
    taken = _had(second)
    assert taken is not None and taken > version
    assert second.host(1).state is HostState.LIVE


def test_a_holder_that_closes_leaves_the_lease_to_others(node):
    first, second = node(1), node(2)
    _had(first)
    first.close()
    assert _had(second) is not None


@pytest.mark.parametrize("name", ["", "other", "Manager"])
def test_a_lease_that_does_not_exist_is_an_error(node, name):
    mine = node(1)
    for call in (mine.acquire, mine.held, mine.release, mine.holder):
        with pytest.raises(LeaseError, match="there is no lease"):
            call(name)


def test_all_hosts_are_seen_with_one_look_and_a_host_that_never_was_is_free(node):
    views = node(1).hosts()
    assert {number: view.host_name for number, view in views.items() if number < 4} == {
        1: "n1",
        2: "n2",
        3: "n3",
    }
    assert {views[number].state for number in (1, 2, 3)} == {HostState.LIVE}
    never = node(1).host(2000)
    assert (never.state, never.generation, never.active) == (HostState.FREE, 0, False)


@pytest.mark.parametrize("host_id", [0, 2001, True])
def test_a_host_id_out_of_range_is_refused(node, host_id):
    mine = node(1)
    for call in (mine.host, lambda one: mine.free_host(one, 1)):
        with pytest.raises(InputError):
            call(host_id)


def test_nobody_sets_itself_free_nor_a_node_of_another_generation(node):
    mine = node(1)
    generation = mine.host(1).generation
    with pytest.raises(LeaseError, match="this node's own"):
        mine.free_host(1, generation)
    with pytest.raises(LeaseError, match="host id 2 is not set free"):
        mine.free_host(2, mine.host(2).generation + 1)
    assert mine.host(1).state is mine.host(2).state is HostState.LIVE


def test_a_lease_of_a_machine_without_power_is_had_once_its_host_lease_is_set_free(cluster, node):
    dead, mine = cluster.node(4), node(1)
    version = _had(dead)
    cluster.cut_power(4)
    dead.kill()
    # Only now: what was renewed since the last look is not set free.
    generation = mine.host(4).generation
    mine.free_host(4, generation)
    mine.free_host(4, generation)
    assert mine.host(4).state is HostState.FREE
    taken = eventually(lambda: mine.acquire("manager"))
    assert taken is not None and taken > version
    assert mine.holder("manager") == LeaseHolder(1, mine.host(1).generation, taken, True)


def test_a_node_that_left_is_free_at_once_and_so_are_its_leases(cluster, node):
    leaving, mine = cluster.machines.pop(5), node(1)
    assert _had(leaving) is not None
    leaving.leave()
    leaving.leave()
    assert mine.host(5).state is HostState.FREE
    assert mine.holder("manager").active is False
    assert _had(mine) is not None


@pytest.mark.parametrize("backend", [EmbeddedLeases, SanlockLeases])
def test_a_backend_has_all_that_the_contract_names(backend):
    methods = [name for name in vars(Leases) if not name.startswith("_")]
    assert all(hasattr(backend, name) for name in methods)
