# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fence proves a death, and frees a host lease, only if nothing speaks against it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.cycle import (
    CONFIRM,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.lease_freeing import (  # noqa: E501
    Freeing,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (
    Answer,
    HostState,
    LeaseSight,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    NodeState,
    NodeStatus,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.states import (
    ServiceState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import (
    LeaseError,
    StorageError,
)
from ansible_collections.holdfast.ha.tests.unit.cluster.samples import pending
from ansible_collections.holdfast.ha.tests.unit.node.crm.crm_daemon import (
    EPOCH,
    GIVES_UP,
    LOOK,
    LOST,
    kinds,
    observed,
    silent,
)
from ansible_collections.holdfast.ha.tests.unit.node.stand_ins import (
    lease_view,
)


@pytest.mark.parametrize(
    ("wrote_after_sent", "silent_for", "proved"),
    [
        (None, 0.0, True),
        (0.5, 2.9, None),
        (0.5, 3.0, True),
        (1.0 + LOOK, 0.0, None),
        (1.1 + LOOK, 0.0, False),
    ],
    ids=["wrote nothing", "silent too short", "silent long enough", "just at its end", "goes on"],
)
def test_the_proof_of_a_node_that_wrote_after_the_fence_waits_until_it_is_quiet(
    manager, wrote_after_sent, silent_for, proved
):
    manager.observer.nodes["n3"] = silent("n3")
    manager.round()
    sent = manager.clock.now
    manager.clock.go(1.0)
    manager.end_fence(took=1.0)
    if wrote_after_sent is not None:
        manager.observer.changed["n3"] = sent + wrote_after_sent
        manager.clock.now = max(manager.clock.now, sent + wrote_after_sent + silent_for)
    log = manager.round(0.0)
    if proved is None:
        assert not [row for row in log if row[0] in ("fence", "free")]
        assert manager.daemon._crm.held_back
        return
    state = manager.written()
    assert (state.nodes["n3"].state is NodeState.OFF) == proved
    assert (state.services["web"].underlying is ServiceState.STARTED) == (not proved)
    assert ("free", 3, 4, 77) in log if proved else "free" not in kinds(log)
    assert proved or "it went on writing" in state.nodes["n3"].reason


def test_a_manager_that_was_held_up_in_its_look_takes_what_it_saw_before_for_no_silence(manager):
    """The device lies, and this process was frozen with the whiteboard as it was before."""
    manager.observer.nodes["n3"] = silent("n3")
    manager.round()
    manager.observer.changed["n3"] = manager.clock.now
    manager.clock.go(0.5)
    manager.end_fence(took=0.5)
    manager.observer.took = 60.0
    manager.round(0.0)
    manager.observer.nodes["n3"] = observed("n3")
    manager.observer.changed["n3"] = manager.clock.now
    manager.round(0.0)
    assert manager.written().nodes["n3"].state is not NodeState.OFF


def fenced_while_it_answered(manager):
    manager.observer.nodes["n3"] = replace(silent("n3"), answer=Answer.YES, lease=LeaseSight.FAILED)
    manager.round()
    manager.clock.go(1.0)
    manager.observer.answering = {"n3"}
    manager.end_fence(took=1.0)
    manager.round(0.0)


def test_an_answer_from_before_the_fence_does_not_speak_against_its_proof(manager):
    fenced_while_it_answered(manager)
    assert manager.daemon._crm.state.nodes["n3"].state is NodeState.FENCE
    assert manager.daemon._crm.held_back
    manager.observer.nodes["n3"], manager.observer.answering = silent("n3"), set()
    manager.round(0.5)
    assert manager.written().nodes["n3"].state is NodeState.OFF


def test_a_node_that_goes_on_answering_after_its_fence_is_not_taken_for_dead(manager):
    fenced_while_it_answered(manager)
    manager.round(1.1)
    node = manager.written().nodes["n3"]
    assert node.state is NodeState.FENCE
    assert "still answers on the network" in node.reason
    # Its host lease is the other proof that may come.
    assert "free" not in kinds(manager.storage.log)


def test_a_proof_that_the_manager_does_not_accept_frees_no_host_lease(manager):
    manager.observer.nodes["n3"] = silent("n3")
    manager.round()
    manager.clock.go(4.0)
    manager.end_fence()
    manager.observer.nodes["n3"] = replace(silent("n3"), answer=Answer.YES)
    log = manager.round(0.0)
    assert manager.written().nodes["n3"].state is NodeState.FENCE
    assert "free" not in kinds(log)


def test_a_proof_from_a_round_that_was_thrown_away_is_none_of_a_node_that_writes_again(manager):
    manager.observer.nodes["n3"] = silent("n3")
    manager.round()
    manager.end_fence()
    manager.clock.go(3.0)
    manager.observer.took = 2.0
    assert manager.round() == []
    manager.observer.took = 0.0
    manager.observer.nodes["n3"] = observed("n3", 0.4, beats=True)
    manager.observer.changed["n3"] = manager.clock.now
    manager.round()
    state = manager.daemon._crm.state
    assert state.nodes["n3"].proof is None
    assert state.services["web"].node == "n3"


def test_a_proof_that_is_held_back_counts_as_a_fence_under_way(manager):
    manager.observer.nodes["n3"] = silent("n3")
    manager.round()
    manager.clock.go(1.0)
    manager.end_fence()
    manager.observer.changed["n3"] = manager.clock.now
    manager.observer.nodes["n3"] = observed("n3")
    for _turn in range(5):
        assert "fence" not in kinds(manager.round())
        assert manager.daemon._crm.state.nodes["n3"].state is NodeState.FENCE
    manager.observer.nodes["n3"] = silent("n3", 3.0)
    assert ("free", 3, 4, 77) in manager.round()
    assert manager.written().nodes["n3"].state is NodeState.OFF


@pytest.mark.parametrize(("confirmed", "freed"), [(False, []), (True, [("free", 3, 4, 77)])])
def test_a_host_lease_is_set_free_only_after_a_proof_and_of_the_fenced_generation(
    manager, confirmed, freed
):
    manager.observer.nodes["n3"] = silent("n3")
    manager.round()
    manager.storage.leases.views[3] = lease_view(3, generation=5)
    manager.end_fence(confirmed=confirmed)
    log = manager.round()
    assert [row for row in log if row[0] == "free"] == freed
    assert kinds(log)[0] == "state", "the proof is in the record first"
    assert manager.storage.freeing.leases == ({"n3": 4} if confirmed else {})
    manager.round()
    assert manager.storage.freeing.leases == {}, "it has returned"


def test_a_proof_that_could_not_be_written_sets_nothing_free_until_it_is(manager):
    manager.observer.nodes["n3"] = silent("n3")
    manager.round()
    manager.end_fence()
    manager.storage.write_error = StorageError("no answer")
    assert manager.failing_round() == GIVES_UP
    manager.storage.write_error = None
    manager.storage.state = replace(
        manager.storage.state,
        epoch=EPOCH,
        nodes={
            **manager.storage.state.nodes,
            "n3": NodeStatus(NodeState.FENCE, pending_fences=pending(manager=1.0), boot="n3-boot1"),
        },
    )
    log = manager.round()
    assert ("free", 3, 4, 77) in log
    assert manager.written().nodes["n3"].state is NodeState.OFF


def test_a_host_lease_that_cannot_be_set_free_does_not_end_the_recovery(manager, capsys):
    manager.observer.nodes["n3"] = silent("n3")
    manager.round()
    manager.storage.leases.free_error = LeaseError("its generation is 5, not 4.")
    manager.end_fence()
    manager.round()
    assert manager.written().nodes["n3"].state is NodeState.OFF
    assert "host lease of n3 not freed yet: its generation is 5" in capsys.readouterr().err


def test_a_host_lease_is_freed_under_a_new_own_one_only_once_that_is_recorded(manager):
    """Nobody waits for a record of a host lease that this node has no more."""
    manager.observer.nodes["n3"] = silent("n3")
    manager.round()
    manager.storage.leases.free_error = StorageError("it cannot be written.")
    manager.end_fence()
    manager.round()
    assert manager.storage.freeing == Freeing(4, {"n3": 4})
    manager.storage.state = manager.written()
    manager.storage.leases.renew_error = manager.storage.host_lease = LOST
    assert manager.round(CONFIRM) == []
    manager.storage.leases.renew_error = manager.storage.leases.free_error = None
    manager.storage.host_lease, manager.storage.leases.epoch = 5, EPOCH + 1
    log = manager.round(1000.0)
    assert "free" not in kinds(log)
    assert manager.storage.freeing == Freeing(5, {"n3": 4})
    assert kinds(manager.round()).count("free") == 1


def test_a_host_lease_that_another_crm_has_freed_is_not_freed_again(manager):
    manager.observer.nodes["n3"] = silent("n3")
    manager.round()
    manager.storage.leases.free_error = LeaseError("it cannot be written.")
    manager.end_fence()
    manager.round()
    manager.storage.leases.free_error = None
    manager.storage.leases.views[3] = lease_view(3, state=HostState.FREE)
    assert "free" not in kinds(manager.round(1000.0))


def test_no_host_lease_is_freed_by_a_node_that_has_just_lost_its_own(manager):
    manager.observer.nodes["n3"] = silent("n3")
    manager.round(CONFIRM)
    manager.end_fence()
    manager.storage.leases.renew_error = LOST
    assert "free" not in kinds(manager.round(CONFIRM / 4))
    assert manager.written().nodes["n3"].state is NodeState.OFF


def test_a_host_lease_is_watched_for_three_io_timeouts_after_a_proof(manager):
    io_timeout = manager.configuration.sanlock.io_timeout
    assert manager.daemon._crm.settings.lease_silence == 3.0 * io_timeout
