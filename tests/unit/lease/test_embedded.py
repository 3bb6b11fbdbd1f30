# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Embedded leases: one holder, told apart by version; and nobody is dead by time alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (
    HostState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import (
    FormatError,
    InputError,
    LeaseError,
    StorageError,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.lease.embedded import (
    EmbeddedLeases,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.lease.interface import (
    LeaseHolder,
    Leases,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.lockspace.delta_lease import (  # noqa: E501
    LeaseArea,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.provision.lockspace import (  # noqa: E501
    DesiredLockspace,
    apply_lockspace,
    look_lockspace,
    plan_lockspace,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.whole_file import (
    cluster_paths,
)
from ansible_collections.holdfast.ha.tests.unit.node.stand_ins import given

IO_TIMEOUT = 2


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def paths(tmp_path):
    found = cluster_paths(str(tmp_path), "c1")
    desired = DesiredLockspace("c1", io_timeout=IO_TIMEOUT)
    apply_lockspace(plan_lockspace(desired, look_lockspace(found), found), desired, found)
    return found


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def node(paths, clock):
    made = []

    def make(host_id, own_clock=None) -> EmbeddedLeases:
        leases = EmbeddedLeases(paths.lockspace, paths.leases, host_id, own_clock or clock)
        made.append(leases)
        return leases

    yield make
    for leases in made:
        leases.close()


HOLDER = """
import sys
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.lease.embedded import (
    EmbeddedLeases,
)
lockspace, leases, host_id, names = sys.argv[1:]
node = EmbeddedLeases(lockspace, leases, int(host_id))
said = [node.join("n" + host_id)] + [node.acquire(name) for name in names.split(",") if name]
sys.stdout.write(" ".join(map(str, said)) + "\\n")
sys.stdout.flush()
sys.stdin.read()
"""


@pytest.fixture
def holder(paths):
    started = []

    def start(host_id, lease_names=""):
        child = subprocess.Popen(
            [
                sys.executable,
                "-c",
                HOLDER,
                paths.lockspace,
                paths.leases,
                str(host_id),
                lease_names,
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        started.append(child)
        return child, child.stdout.readline().split()

    yield start
    for child in started:
        child.kill()
        child.wait(timeout=60)
        child.stdin.close()
        child.stdout.close()


def kill(child):
    child.send_signal(signal.SIGKILL)
    child.wait(timeout=60)


def test_a_host_id_held_by_another_process_is_refused_by_its_holders_name(node, holder):
    holder(3)
    with pytest.raises(LeaseError, match="host id 3 is already held by node n3"):
        node(3).join("intruder")


def test_a_lease_held_by_another_process_is_not_granted(node, holder):
    _child, said = holder(1, "manager")
    mine = node(2)
    mine.join("n2")
    assert said == ["1", "1"]
    assert mine.acquire("manager") is None
    assert not mine.held("manager")
    assert mine.holder("manager") == LeaseHolder(1, 1, 1, True)


def test_after_kill_9_the_next_one_gets_the_lease_with_a_higher_version(node, holder):
    child, _said = holder(1, "manager")
    mine = node(2)
    mine.join("n2")
    kill(child)
    assert mine.holder("manager") == LeaseHolder(1, 1, 1, False)
    assert mine.acquire("manager") == 2
    assert mine.held("manager")
    assert mine.holder("manager") == LeaseHolder(2, 1, 2, True)


def test_a_killed_node_is_never_dead_by_time(node, holder, clock):
    child, _said = holder(1)
    reader = node(2)
    assert reader.host(1).state is HostState.LIVE
    kill(child)
    clock.now += 8 * IO_TIMEOUT - 0.5
    assert reader.host(1).state is HostState.LIVE
    clock.now += 0.5
    view = reader.host(1)
    assert (view.state, view.unchanged_for) == (HostState.FAIL, 8 * IO_TIMEOUT)
    clock.now += 10**6
    assert reader.host(1).state is HostState.FAIL


def test_a_killed_node_joins_again_under_its_name_with_a_new_generation(node, holder):
    child, _said = holder(1)
    kill(child)
    assert node(1).join("n1") == 2


def test_a_killed_nodes_host_id_is_not_for_a_node_of_another_name(node, holder):
    child, _said = holder(1)
    kill(child)
    with pytest.raises(LeaseError, match="belongs to node n1, which did not leave"):
        node(1).join("other")
    node(2).free_host(1, 1)
    assert node(1).join("other") == 2


def test_a_host_that_was_proved_off_is_set_free(node, holder):
    child, _said = holder(1)
    kill(child)
    reader = node(2)
    reader.free_host(1, 1)
    assert reader.host(1).state is HostState.FREE
    reader.free_host(1, 1)


def test_a_host_whose_kernel_lock_is_held_is_not_set_free(node, holder):
    holder(1)
    reader = node(2)
    with pytest.raises(LeaseError, match="still holds its kernel lock"):
        reader.free_host(1, 1)
    assert reader.host(1).state is HostState.LIVE


def test_a_host_that_joined_again_since_the_fence_is_not_set_free(node, holder):
    for _turn in range(2):
        child, _said = holder(1)
        kill(child)
    reader = node(2)
    with pytest.raises(LeaseError, match="its generation is 2, not 1"):
        reader.free_host(1, 1)
    assert reader.host(1).state is HostState.LIVE


def test_a_renewal_is_seen_as_life_by_the_readers_own_clock(node, clock):
    writer, reader = node(1), node(2, Clock())
    reader_clock = reader._clock
    writer.join("n1")
    reader.host(1)
    for _turn in range(5):
        reader_clock.now += 8 * IO_TIMEOUT - 1
        clock.now += 1
        writer.renew()
        view = reader.host(1)
        assert (view.state, view.unchanged_for) == (HostState.LIVE, 0.0)
    reader_clock.now += 8 * IO_TIMEOUT
    assert reader.host(1).state is HostState.FAIL


def test_the_time_after_which_a_node_may_not_act_is_eight_io_timeouts(node):
    mine = node(1)
    with pytest.raises(LeaseError, match="not joined"):
        mine.fail_seconds  # noqa: B018
    mine.join("n1")
    assert mine.fail_seconds == 8 * IO_TIMEOUT


def test_a_node_that_left_is_free_at_once_and_so_are_its_leases(node):
    first, second = node(1), node(2)
    first.join("n1")
    second.join("n2")
    assert first.acquire("manager") == 1
    first.leave()
    first.leave()
    assert second.host(1).state is HostState.FREE
    assert second.holder("manager") == LeaseHolder(1, 1, 1, False)
    assert second.acquire("manager") == 2


def test_renewing_after_the_lease_was_taken_away_is_an_error_and_leases_are_not_held(node, paths):
    mine = node(1)
    mine.join("n1")
    mine.acquire("manager")
    with LeaseArea(paths.lockspace) as area:
        area.write_host(1, replace(area.read_host(1), timestamp=0))
    with pytest.raises(LeaseError, match="no longer held by node n1"):
        mine.renew()
    assert not mine.held("manager")
    with pytest.raises(LeaseError):
        mine.acquire("configuration")


def test_a_lockspace_made_anew_under_a_node_is_noticed(node, paths):
    mine = node(1)
    mine.join("n1")
    mine.acquire("manager")
    desired = DesiredLockspace("c1", io_timeout=5, force=True)
    apply_lockspace(plan_lockspace(desired, look_lockspace(paths), paths), desired, paths)
    with pytest.raises(LeaseError):
        mine.renew()
    assert not mine.held("manager")


def test_without_a_host_lease_no_lease_is_granted(node):
    with pytest.raises(LeaseError, match="not joined"):
        node(1).acquire("manager")


def test_acquiring_twice_returns_the_same_version(node):
    mine = node(1)
    mine.join("n1")
    assert [mine.acquire("manager"), mine.acquire("manager")] == [1, 1]
    mine.release("manager")
    mine.release("manager")
    assert mine.acquire("manager") == 2


def test_two_leases_do_not_exclude_each_other(node):
    first, second = node(1), node(2)
    first.join("n1")
    second.join("n2")
    assert first.acquire("manager") == 1
    assert second.acquire("configuration") == 1
    assert first.acquire("configuration") is None
    assert second.acquire("manager") is None


def test_a_daemon_works_under_the_host_lease_of_its_parent(node, clock):
    parent, daemon = node(1), node(1)
    with pytest.raises(LeaseError, match="start the node's parent process first"):
        daemon.adopt("n1")
    generation = parent.join("n1")
    assert daemon.adopt("n1") == generation
    version = daemon.acquire("manager")
    daemon.renew()
    daemon.leave()
    clock.now += 1
    parent.renew()
    assert version == 1
    assert node(2).host(1).state is HostState.LIVE


def test_a_daemon_whose_parent_died_has_lost_its_lease(node, paths):
    parent, daemon = node(1), node(1)
    parent.join("n1")
    daemon.adopt("n1")
    parent.close()
    with pytest.raises(LeaseError, match="no longer held"):
        daemon.renew()


def test_all_hosts_are_seen_with_one_look(node):
    for host_id in (1, 2, 2000):
        node(host_id).join(f"n{host_id}")
    views = node(3).hosts()
    assert {host_id: view.host_name for host_id, view in views.items()} == {
        1: "n1",
        2: "n2",
        2000: "n2000",
    }


@pytest.mark.parametrize("name", ["", "other", "Manager"])
def test_a_lease_that_does_not_exist_is_an_error(node, name):
    mine = node(1)
    mine.join("n1")
    for call in (mine.acquire, mine.held, mine.release, mine.holder):
        with pytest.raises(LeaseError, match="there is no lease"):
            call(name)


def test_a_damaged_leader_grants_no_lease_and_leaves_no_lock(node, paths):
    mine, other = node(1), node(2)
    mine.join("n1")
    descriptor = os.open(paths.leases, os.O_WRONLY)
    os.pwrite(descriptor, b"\xff" * 16, 40)
    os.close(descriptor)
    with pytest.raises(FormatError):
        mine.acquire("manager")
    assert not mine._lease_locks["manager"].held
    other.join("n2")


def test_a_lease_of_another_name_in_the_place_is_an_error_and_no_answer(paths, clock):
    other = EmbeddedLeases(paths.lockspace, paths.leases, 1, clock, ("configuration",))
    with pytest.raises(FormatError, match="area 0 is lease 'manager', not 'configuration'"):
        other.holder("configuration")
    other.close()


@pytest.mark.parametrize("host_id", [0, 2001, "1", True])
def test_a_host_id_out_of_range_is_refused(node, host_id):
    with pytest.raises(InputError):
        node(host_id)


def test_embedded_leases_keep_the_contract(node):
    leases: Leases = node(1)
    leases.join("n1")
    methods = [name for name in vars(Leases) if not name.startswith("_")]
    assert all(hasattr(leases, name) for name in methods)


def test_who_leaves_while_the_storage_fails_holds_nothing_and_can_come_back(node, monkeypatch):
    """The CRM leaves when the host lease is lost, and adopts the next one."""
    machine, crm, other = node(1), node(1), node(2)
    machine.join("n1")
    crm.adopt("n1")
    crm.acquire("manager")
    other.join("n2")
    with monkeypatch.context() as broken:
        broken.setattr(crm._leaders, "read", lambda name: given(StorageError("no answer")))
        with pytest.raises(StorageError, match="no answer"):
            crm.leave()
    assert other.acquire("manager") == 2
    assert crm.adopt("n1") == 1
