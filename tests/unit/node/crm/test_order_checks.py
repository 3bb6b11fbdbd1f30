# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nothing is ordered by who is late, lost the lease, or could not write the reason."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.effects import (
    Fence,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.memory import LATE
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.effects import (
    ReadClocks,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (
    Answer,
    LeaseSight,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    NodeState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import (
    StorageError,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.telemetry import (
    read_telemetry,
    telemetry_path,
)
from ansible_collections.holdfast.ha.tests.unit.node.crm.crm_daemon import (
    GIVES_UP,
    LOOK,
    kinds,
    observed,
    silent,
)


def test_a_manager_whose_storage_others_do_not_use_fences_nobody(manager):
    manager.observer.nodes["n3"] = observed("n3", 400.0, answer=Answer.NO, lease=LeaseSight.DEAD)
    manager.observer.elsewhere = "n2 writes heartbeats that n1 does not see"
    for _turn in range(3):
        assert "fence" not in kinds(manager.round())
    manager.observer.elsewhere = ""
    log = manager.round()
    assert log[0][1].nodes["n3"].state is NodeState.OFF


def test_who_has_just_joined_gives_a_node_that_it_never_saw_time_to_boot(manager):
    manager.observer.nodes["n3"] = replace(silent("n3"), beats=False)
    assert kinds(manager.round()) == ["state"]
    assert "joined only" in manager.written().nodes["n3"].reason
    assert "fence" not in kinds(manager.round(20.0))
    assert "fence" in kinds(manager.round(20.0))


def test_no_fence_is_sent_whose_reason_could_not_be_written(manager):
    manager.observer.nodes["n3"] = silent("n3")
    manager.storage.write_error = StorageError("the storage is full")
    assert manager.failing_round() == GIVES_UP
    manager.storage.write_error = None
    assert kinds(manager.round()) == ["state"], "it judges no node by what it read before"
    log = manager.round()
    assert kinds(log) == ["state", "fence"]
    assert log[0][1].nodes["n3"].state is NodeState.FENCE
    assert log[0][1].nodes["n3"].reason


@pytest.mark.parametrize("answer", [False, StorageError("unreadable")])
def test_no_order_is_given_by_who_lost_the_lease_while_it_wrote(manager, answer):
    manager.observer.nodes["n3"] = silent("n3")
    manager.storage.leases.held_answers = [True, answer]
    assert kinds(manager.failing_round()) == ["state"]


@pytest.mark.parametrize("took", [LATE, LATE + 0.1])
def test_a_round_that_was_held_up_is_thrown_away(manager, took):
    manager.observer.nodes["n3"] = silent("n3")
    read_desired = manager.storage.read_desired

    def slow():
        manager.clock.go(took)
        return read_desired()

    manager.storage.read_desired = slow
    assert kinds(manager.round()) == ([] if took > LATE else ["state", "fence"])
    run_directory = manager.daemon._configuration.run_directory
    run_directory.mkdir(parents=True, exist_ok=True)
    manager.daemon._telemetry.keep()
    measured = read_telemetry(telemetry_path(run_directory, "crm"), math.inf)
    assert measured is not None
    assert measured.values[("rounds_thrown_away", ())] == (1 if took > LATE else 0)
    manager.storage.read_desired = read_desired
    if took > LATE:
        assert "fence" not in kinds(manager.round()), "who was held up judges nobody yet"
        assert "fence" in kinds(manager.round())


def test_a_fence_that_ended_in_a_round_that_was_held_up_is_not_forgotten(manager):
    manager.observer.nodes["n3"] = silent("n3")
    manager.round()
    manager.end_fence()
    read_desired = manager.storage.read_desired
    manager.storage.read_desired = lambda: (manager.clock.go(LATE + 1), read_desired())[1]
    assert manager.round() == []
    manager.storage.read_desired = read_desired
    manager.round()
    assert manager.written().nodes["n3"].proof


def test_after_a_look_that_failed_nobody_is_judged_once(manager, monkeypatch):
    manager.observer.nodes["n3"] = silent("n3")
    manager.observer.error = StorageError("no answer")
    turns = []

    def listen(seconds):
        turns.append(list(manager.storage.log))
        manager.observer.error = None
        manager.clock.go(LOOK)
        manager.daemon._stop = len(turns) == 3
        return False, set()

    monkeypatch.setattr("signal.signal", lambda *_rest: None)
    del manager.storage.log[:]
    manager.network.listen = listen
    manager.daemon.run()
    assert [("fence", "n3") in log for log in turns] == [False, False, True]
    assert manager.storage.log[-1] == ("release", "manager")


def test_a_manager_that_was_held_up_in_writing_gives_no_orders_and_decides_anew(manager):
    well = manager.observer.nodes["n3"]
    manager.observer.nodes["n3"] = silent("n3")
    write_manager = manager.storage.write_manager

    def slow(*written):
        write_manager(*written)
        manager.clock.go(LATE + 0.1)

    manager.storage.write_manager = slow
    assert kinds(manager.round()) == ["state"]
    manager.storage.write_manager = write_manager
    manager.observer.nodes["n3"] = well
    assert "fence" not in kinds([*manager.round(), *manager.round()])
    assert manager.daemon._crm.state.nodes["n3"].state is NodeState.ONLINE


def test_who_was_held_up_in_the_last_look_at_the_lease_gives_no_orders(manager):
    """Between that look and an order nothing may come in which time passes."""
    manager.observer.nodes["n3"] = silent("n3")
    looks = []

    def slow(lease_name):
        looks.append(lease_name)
        manager.clock.go(LATE + 0.1 if len(looks) == 2 else 0.0)
        return True

    manager.storage.leases.held = slow
    assert kinds(manager.round()) == ["state"]
    assert len(looks) == 2
    assert manager.daemon._crm.state is None, "it decides again by the record that it reads then"


def test_nothing_comes_between_the_last_look_at_the_clock_and_an_order(manager, monkeypatch):
    manager.observer.nodes["n3"] = silent("n3")
    performed = []

    def noted(kind, perform):
        return lambda effect: (performed.append(kind), perform(effect))[1]

    performers = manager.daemon._performers
    for kind, perform in list(performers.items()):
        monkeypatch.setitem(performers, kind, noted(kind, perform))
    assert kinds(manager.round()) == ["state", "fence"]
    fence = performed.index(Fence)
    assert performed[fence - 1] is ReadClocks


def test_who_is_ended_in_the_middle_of_a_round_gives_no_orders(manager):
    """With the binding sanlock ends the holder of a lease in a lost lockspace by SIGTERM."""
    manager.observer.nodes["n3"] = silent("n3")
    manager.storage.on_write = manager.daemon._on_term
    assert kinds(manager.round()) == ["state"]


def test_a_manager_does_not_fence_a_node_that_writes_again(manager):
    """A hypervisor that pauses this node stops all its clocks: it cannot tell how late it is."""
    manager.observer.nodes["n3"] = silent("n3")
    manager.observer.beating = {"n3"}
    assert "fence" not in kinds(manager.round())
    manager.observer.beating = set()
    assert "fence" in kinds([row for _turn in range(3) for row in manager.round()])


def test_a_node_whose_fence_is_under_way_is_not_fenced_again(manager):
    manager.observer.nodes["n3"] = silent("n3")
    assert kinds(manager.round()).count("fence") == 1
    assert "fence" not in kinds([row for _turn in range(20) for row in manager.round()])
