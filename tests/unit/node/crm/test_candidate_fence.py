# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A candidate fences the manager's node only by what it read just now, and under its intent."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.memory import LATE
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.pausing import (
    DISARMED,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired import (
    FREEZE,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    ClusterState,
    Intent,
    NodeState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import (
    StorageError,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.lease.interface import (
    LeaseHolder,
)
from ansible_collections.holdfast.ha.tests.unit.node.crm.crm_daemon import (
    EPOCH,
    GIVES_UP,
    acted_on,
    declare_global_maintenance,
    kinds,
    observed,
    silent,
)


def test_a_candidate_leaves_a_manager_that_lives_alone(candidate):
    assert [candidate.round() for _turn in range(3)] == [[], [], []]


def test_a_candidate_writes_its_intent_before_it_fences(candidate):
    candidate.observer.nodes["n2"] = silent("n2")
    log = candidate.round()
    assert kinds(log) == ["intent", "fence"]
    intent = log[0][1]
    assert (intent.node, intent.epoch) == ("n2", 12)
    assert "no answer on the network" in intent.reason
    assert intent.recorded - intent.last_heartbeat == pytest.approx(4.0)


def test_a_candidate_that_cannot_write_its_intent_does_not_fence(candidate):
    candidate.observer.nodes["n2"] = silent("n2")
    candidate.storage.write_error = StorageError("no answer")
    assert candidate.failing_round() == GIVES_UP


@pytest.mark.parametrize(
    "change",
    [
        {"held": "set on the whiteboard"},
        {"trouble": "this node's own reads of the storage take 1.1 s"},
    ],
)
def test_a_candidate_that_may_not_judge_does_not_fence(candidate, change):
    candidate.observer.nodes["n2"] = silent("n2")
    for name, value in change.items():
        setattr(candidate.observer, name, value)
    assert candidate.round() == []


def test_a_candidate_does_not_fence_in_a_maintenance_that_the_manager_could_not_take_up(
    candidate, capsys
):
    declare_global_maintenance(candidate)
    candidate.observer.nodes["n2"] = silent("n2")
    assert candidate.round() == []
    assert "not fenced: global maintenance" in capsys.readouterr().err


def test_a_candidate_does_not_fence_while_the_cluster_is_disarmed(candidate):
    candidate.storage.state = ClusterState(EPOCH, "n2", disarm=DISARMED, disarm_mode=FREEZE)
    candidate.storage.desired = replace(candidate.storage.desired, disarm=FREEZE)
    candidate.observer.nodes["n2"] = silent("n2")
    assert candidate.round() == []
    candidate.storage.desired = candidate.storage.desired.with_disarm("")
    assert kinds(candidate.round()) == ["intent", "fence"]


def test_a_candidate_that_does_not_read_back_its_intent_does_not_fence(candidate, capsys):
    candidate.observer.nodes["n2"] = silent("n2")
    candidate.storage.stands = False
    assert "fence" not in kinds(candidate.round())
    assert "what it reads may be old" in capsys.readouterr().err
    candidate.storage.stands = True
    assert kinds(candidate.round(5.0)) == ["intent", "fence"]


def test_a_candidate_does_not_fence_a_manager_that_writes_again(candidate):
    candidate.observer.nodes["n2"] = silent("n2")
    candidate.observer.beating = {"n2"}
    assert "fence" not in kinds(candidate.round())
    candidate.observer.beating = set()
    assert "fence" in kinds(candidate.round(5.0))


def test_a_candidate_reads_after_its_intent_whether_the_cluster_was_disarmed(candidate):
    candidate.observer.nodes["n2"] = silent("n2")

    def disarmed(_kind):
        desired = replace(candidate.storage.desired, disarm=FREEZE)
        state = ClusterState(EPOCH, "n2", disarm=DISARMED, disarm_mode=FREEZE)
        candidate.storage.state, candidate.storage.desired = state, desired
        return True

    candidate.storage.own_record_stands = disarmed
    log = kinds(candidate.round())
    assert "intent" in log and "fence" not in log


def test_a_candidate_that_was_held_up_does_not_fence_by_what_it_saw_before(candidate):
    candidate.observer.nodes["n2"] = silent("n2")
    leases = candidate.storage.leases
    holder = leases.holder

    def slow(name):
        candidate.clock.go(LATE + 0.1)
        return holder(name)

    leases.holder = slow
    assert candidate.round() == []
    leases.holder = holder
    assert candidate.round() == [], "who was held up judges nobody yet"
    assert kinds(candidate.round()) == ["intent", "fence"]


@pytest.mark.parametrize("took", [LATE, LATE + 0.1])
def test_a_candidate_that_was_held_up_in_writing_its_intent_does_not_fence(candidate, took):
    candidate.observer.nodes["n2"] = silent("n2")
    write_intent = candidate.storage.write_intent

    def slow(*written):
        write_intent(*written)
        candidate.clock.go(took)

    candidate.storage.write_intent = slow
    done = kinds(candidate.round())
    assert done == (["intent", "freeing"] if took > LATE else ["intent", "fence"])
    assert bool(candidate.storage.freeing.leases) == (took <= LATE)


def test_a_candidate_does_not_fence_once_another_is_manager_who_did_not_see_its_intent(candidate):
    candidate.observer.nodes["n2"] = silent("n2")
    leases, write_intent = candidate.storage.leases, candidate.storage.write_intent

    def another_was_faster(*written):
        leases.manager = replace(leases.manager, host_id=3, version=leases.manager.version + 1)
        write_intent(*written)

    candidate.storage.write_intent = another_was_faster
    assert kinds(candidate.round()) == ["intent", "freeing"]
    assert candidate.storage.freeing.leases == {}


def test_a_candidate_fences_once_and_again_only_after_the_retry_time(candidate):
    candidate.observer.nodes["n2"] = silent("n2")
    assert kinds(candidate.round()) == ["intent", "fence"]
    assert candidate.round() == []
    candidate.end_fence("n2", confirmed=False)
    retry = candidate.daemon._configuration.timing.fence_retry
    assert candidate.round() == [("freeing", {})]
    assert kinds(candidate.round(retry)) == ["intent", "fence"]


def test_a_candidates_proof_sets_the_managers_host_lease_free_and_counts_once_it_is_manager(
    candidate,
):
    candidate.observer.nodes["n2"] = silent("n2")
    intent = candidate.round()[0][1]
    candidate.end_fence("n2")
    assert candidate.storage.freeing.leases == {"n2": 4}
    assert candidate.round() == [("free", 2, 4, 77), ("freeing", {})]
    candidate.storage.leases.epoch = 13
    candidate.storage.intent = intent
    candidate.round()
    state = candidate.written()
    assert (state.epoch, state.nodes["n2"].state) == (13, NodeState.OFF)
    assert state.failovers[-1].reason == intent.reason


def test_a_candidates_proof_against_a_node_that_answers_sets_nothing_free(candidate, capsys):
    candidate.observer.nodes["n2"] = silent("n2")
    candidate.round()
    candidate.end_fence("n2")
    candidate.observer.answering = {"n2"}
    for _turn in range(4):
        assert "free" not in kinds(candidate.round())
    assert "fence of n2 failed" in capsys.readouterr().err


def test_a_candidates_proof_is_dropped_when_the_node_answers_after_it(candidate, capsys):
    candidate.observer.nodes["n2"] = silent("n2")
    candidate.round()
    candidate.end_fence("n2")
    candidate.round()
    candidate.observer.answering = {"n2"}
    candidate.round()
    assert "fence of n2 failed" in capsys.readouterr().err
    candidate.observer.answering = set()
    candidate.storage.leases.epoch = 13
    candidate.round()
    assert candidate.written().nodes["n2"].state is not NodeState.OFF


def test_a_fence_that_proved_nothing_about_the_holder_is_said_and_dropped(candidate, capsys):
    candidate.observer.nodes["n2"] = silent("n2")
    candidate.round()
    candidate.end_fence("n2", confirmed=False)
    assert candidate.round() == [("freeing", {})]
    assert "fence of n2 failed" in capsys.readouterr().err
    candidate.storage.leases.epoch = 13
    candidate.observer.nodes["n2"] = observed("n2")
    candidate.round()
    assert candidate.written().nodes["n2"].state is NodeState.ONLINE


def test_a_candidates_proof_says_nothing_of_a_node_that_is_manager_no_more(candidate):
    candidate.observer.nodes["n2"] = silent("n2")
    candidate.round()
    candidate.end_fence("n2")
    candidate.observer.nodes["n2"] = observed("n2")
    candidate.storage.leases.manager = LeaseHolder(3, 4, 13, True)
    assert candidate.round() == [("freeing", {})]
    candidate.storage.leases.epoch = 14
    candidate.round()
    assert candidate.written().nodes["n2"].state is NodeState.ONLINE


def test_an_intent_for_an_earlier_manager_is_not_held_against_the_node(daemon):
    daemon.storage.intent = Intent("n2", "it was silent", 1.0, 2.0, EPOCH - 2)
    daemon.round()
    assert daemon.written().nodes["n2"].state is NodeState.ONLINE


def test_a_candidate_whose_round_fails_gives_up_its_try_for_the_lease(candidate):
    candidate.observer.error = StorageError("no answer")
    turns = []

    def listen(seconds):
        turns.append(list(candidate.storage.log))
        candidate.daemon._stop = True
        return False, set()

    candidate.network.listen = listen
    candidate.daemon.run()
    assert turns == [[("release", "manager")]]


def test_no_candidate_fences_while_the_records_are_older_than_what_was_acted_on(daemon):
    daemon.storage.leases.epoch = None
    daemon.storage.leases.manager = LeaseHolder(2, 4, EPOCH, True)
    daemon.observer.nodes["n2"] = silent("n2", 20.0)
    daemon.observer.nodes["n3"] = acted_on("n3", epoch=EPOCH, commands=40)
    for _turn in range(3):
        assert daemon.round() == []
    daemon.observer.nodes["n3"] = observed("n3")
    assert kinds(daemon.round()) == ["intent", "fence"]
