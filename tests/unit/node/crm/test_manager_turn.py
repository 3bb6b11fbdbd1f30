# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The turn of a CRM around its decisions: who becomes manager, what is written, what is kept."""

from __future__ import annotations

from dataclasses import replace

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.cycle import (
    CONFIRM,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (
    Answer,
    PowerReport,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import (
    LeaseError,
    NoAnswerError,
    StorageError,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.lease.interface import (
    LeaseHolder,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.heartbeat import (
    read_trouble,
)
from ansible_collections.holdfast.ha.tests.unit.node.crm.crm_daemon import (
    EPOCH,
    GIVES_UP,
    LOST,
    Daemon,
    declare_global_maintenance,
    kinds,
    observed,
    silent,
)


def test_who_does_not_use_the_storage_of_the_others_does_not_become_manager(daemon):
    daemon.observer.nodes["n3"] = observed("n3", 4.0, answer=Answer.YES)
    daemon.configuration.run_directory.mkdir(parents=True)
    daemon.observer.elsewhere = "n3 writes heartbeats that n1 does not see"
    daemon.storage.leases.manager = LeaseHolder(3, 4, EPOCH, True)
    for _turn in range(3):
        assert set(kinds(daemon.round())) <= {"release"}
    assert read_trouble(daemon.configuration.run_directory, daemon.clock.now)
    daemon.observer.elsewhere = ""
    assert "state" in kinds(daemon.round())
    assert not read_trouble(daemon.configuration.run_directory, daemon.clock.now)


def test_after_a_write_that_failed_the_record_is_read_anew(manager):
    manager.observer.nodes["n3"] = silent("n3")
    manager.storage.write_error = StorageError("no answer")
    manager.failing_round()
    manager.storage.write_error = None
    known = replace(manager.storage.state, epoch=EPOCH, manager="n1", commands=41)
    manager.storage.state = known
    manager.round()
    assert manager.written().commands >= 41


def test_who_lost_the_lease_writes_nothing_and_orders_nothing(manager):
    manager.observer.nodes["n3"] = silent("n3")
    manager.storage.leases.held_answers = [False]
    manager.storage.leases.epoch = None
    manager.storage.leases.manager = LeaseHolder(2, 4, EPOCH + 1, True)
    assert manager.round() == []
    assert manager.round() == []


def test_nothing_is_written_while_nothing_changes(manager):
    assert [manager.round() for _turn in range(3)] == [[], [], []]


def test_every_lrm_is_told_of_a_new_record(manager):
    assert sorted(port for _address, port in manager.network.hints) == [21004, 21007, 21010]


def test_the_last_managers_record_is_the_next_ones_beginning(daemon):
    daemon.round()
    state = daemon.written()
    assert (state.epoch, state.manager) == (EPOCH, "n1")
    assert state.services == daemon.storage.state.services


def test_a_record_that_cannot_be_read_makes_no_manager_with_an_empty_one(daemon):
    last = daemon.storage.state
    daemon.storage.state = StorageError("unreadable")
    assert daemon.failing_round() == GIVES_UP
    daemon.storage.state = last
    daemon.round()
    assert daemon.written().services == last.services


def test_a_node_is_switched_on_again_once_its_services_run_elsewhere(manager):
    manager.observer.nodes["n3"] = silent("n3")
    manager.round()
    manager.end_fence()
    log = [row for _turn in range(3) for row in manager.round()]
    assert log.count(("power on", "n3")) == 1
    before = [row for row in log[: log.index(("power on", "n3"))] if row[0] == "state"]
    assert before[-1][1].services["web"].node != "n3"
    manager.orders.powered.append(PowerReport("n3", True, ""))
    manager.round()
    assert manager.written().nodes["n3"].power == "on"


def test_a_declared_maintenance_stands_in_the_record_before_it_is_on_the_whiteboard(manager):
    declare_global_maintenance(manager)
    log = manager.round()
    assert kinds(log) == ["state", "global"]
    assert (log[0][1].hold.owner, log[0][1].board_pending, log[1][1]) == ("ada", True, True)
    manager.observer.held = "set on the whiteboard"
    assert kinds(manager.round()) == ["state"]
    assert manager.round() == []


def test_a_whiteboard_that_could_not_be_written_is_written_in_the_next_round(manager):
    declare_global_maintenance(manager)
    manager.storage.board.error = StorageError("no answer")
    assert kinds(manager.failing_round()) == ["state"]
    manager.storage.board.error = None
    assert manager.round() == [("global", True)]


def test_who_lost_the_lease_does_not_write_the_whiteboard(manager):
    declare_global_maintenance(manager)
    manager.storage.leases.held_answers = [True, False]
    assert kinds(manager.failing_round()) == ["state"]


def test_a_manager_whose_host_lease_is_lost_is_none_at_once_and_again_once_it_is_back(
    manager, capsys
):
    manager.observer.nodes["n3"] = silent("n3")
    manager.storage.leases.renew_error = manager.storage.host_lease = LOST
    assert manager.round(CONFIRM) == []
    assert manager.storage.leases.left == 1, "the manager lease is let go"
    assert manager.round() == manager.round() == []
    said = capsys.readouterr().err
    assert said.count("no longer manager: the host lease is lost") == 1
    assert said.count("sanlock has lost lockspace c1") == 1
    manager.storage.leases.renew_error = None
    manager.storage.host_lease = 5
    manager.storage.leases.epoch = EPOCH + 1
    manager.round()
    assert manager.written().epoch == EPOCH + 1


def test_a_manager_that_cannot_learn_of_its_host_lease_decides_nothing_and_lets_nothing_go(
    manager,
):
    manager.observer.nodes["n3"] = silent("n3")
    manager.storage.leases.renew_error = NoAnswerError("sanlock hangs")
    manager.clock.go(CONFIRM)
    assert manager.failing_round() == []
    assert manager.storage.leases.left == 0
    manager.storage.leases.renew_error = None
    assert "fence" not in kinds(manager.round()), "it judges no node by what it read before"
    assert "fence" in kinds(manager.round())


def test_a_node_without_a_host_lease_does_not_try_for_the_manager_lease(tmp_path):
    daemon = Daemon(tmp_path)
    daemon.storage.host_lease = LeaseError("host id 1 is not held for node n1")
    tried = []
    daemon.storage.leases.acquire = tried.append
    assert [daemon.round() for _turn in range(3)] == [[], [], []]
    assert tried == []


def test_a_manager_keeps_its_lease_when_a_single_round_fails(manager):
    manager.observer.error = StorageError("no answer")
    turns = []

    def listen(seconds):
        turns.append(list(manager.storage.log))
        manager.daemon._stop = True
        return False, set()

    manager.network.listen = listen
    del manager.storage.log[:]
    manager.daemon.run()
    assert turns == [[]]


def test_who_answered_is_told_to_the_observer_and_not_that_somebody_gave_a_hint(manager):
    heard = []
    manager.observer.answered = heard.append
    manager.network.listen = lambda seconds: (True, {"n3"})
    manager.daemon._listen(0.0)
    assert heard == [{"n3"}]
