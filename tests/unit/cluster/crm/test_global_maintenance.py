# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Maintenance: the last word counts wherever it was spoken, and nothing is done while it holds."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.takeover import (
    take_over,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired_codec import (  # noqa: E501
    desired_document,
    desired_from_document,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.maintenance import (  # noqa: E501
    Maintenance,
    maintenance_text,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (
    Answer,
    FenceReport,
    LeaseSight,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    NodeState,
    NodeStatus,
    ServiceStatus,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state_codec import (  # noqa: E501
    state_document,
    state_from_document,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.states import (
    ServiceState,
)
from ansible_collections.holdfast.ha.tests.unit.cluster.samples import (
    desired,
    kinds,
    observed,
    observed_node,
    pending,
    service,
    started,
    state,
    step,
)
from hypothesis import given, settings
from hypothesis import strategies as st

BY_HAND = "set on the whiteboard"
DAMAGED = "the whiteboard's global block is damaged"
ADA = Maintenance("new switches", "ada", since=990.0)
SHORT = replace(ADA, until=1005.0)
ASKED = {"global_maintenance": ADA}
SILENT = observed_node("n1", heartbeat_age=5.0, answer=Answer.NO)
WALL = 1000.0


def look(declared=None, board="", wall=WALL, nodes=None, **changes):
    """What a manager sees: *declared* in the configuration, *board* on the whiteboard."""
    sight = observed(desired(service(), global_maintenance=declared), nodes, **changes)
    return replace(sight, held=board, wall=wall, now=wall - 900.0)


def agreed(declared=None, hold=None, board=False, **changes):
    """The state of a manager that knows what both places say."""
    from_board = hold is not None and declared is None
    return state(
        {"web": started("n1")}, hold=hold, hold_from_board=from_board, board=board, **changes
    )


def stopped(before=None, **changes):
    """A state in which a service waits to be started."""
    return replace(before or agreed(), services={"web": ServiceStatus(ServiceState.STOPPED)})


def test_a_declared_maintenance_is_written_on_the_whiteboard_until_that_says_so() -> None:
    taken = step(agreed(), look(ADA))
    assert (taken.state.hold, taken.state.hold_from_board, taken.board) == (ADA, False, True)
    assert "begins: by ada: new switches" in taken.state.events[-1].text
    again = step(taken.state, look(ADA))
    assert (again.board, again.state) == (True, taken.state), "the write failed: it is tried again"
    settled = step(again.state, look(ADA, BY_HAND))
    assert (settled.board, settled.state.board, settled.state.hold) == (None, True, ADA)
    assert kinds(settled.state) == ["maintenance"]


def test_nothing_is_started_from_the_very_round_on_in_which_it_is_declared() -> None:
    free = step(stopped(), look())
    assert free.state.services["web"].state is ServiceState.REQUEST_START
    held = step(stopped(), look(ADA))
    assert held.state.services["web"].state is ServiceState.STOPPED


def test_its_end_holds_until_the_whiteboard_has_it_too() -> None:
    before = stopped(agreed(ADA, ADA, True))
    ended = step(before, look(None, BY_HAND))
    assert (ended.state.hold, ended.board) == (None, False)
    assert ended.state.services["web"].state is ServiceState.STOPPED
    assert "ends, as configured; it was by ada" in ended.state.events[-1].text
    free = step(ended.state, look())
    assert (free.state.board, free.board) == (False, None)
    assert free.state.services["web"].state is ServiceState.REQUEST_START


def test_what_is_set_on_the_whiteboard_is_taken_up_and_not_fought() -> None:
    taken = step(agreed(), look(None, BY_HAND))
    assert taken.board is None
    assert taken.state.hold == Maintenance(BY_HAND, "", WALL)
    assert taken.state.hold_from_board
    later = step(taken.state, look(None, BY_HAND, wall=WALL + 7))
    assert later.state == taken.state
    freed = step(later.state, look())
    assert (freed.state.hold, freed.board) == (None, None)
    assert "ends, on the whiteboard" in freed.state.events[-1].text


def test_what_is_ended_on_the_whiteboard_ends_the_declared_one_and_stays_ended() -> None:
    taken = step(agreed(ADA, ADA, True), look(ADA))
    assert (taken.state.hold, taken.board) == (None, None)
    assert taken.state.ended == {"": ADA.identity}
    assert desired(**ASKED).in_force(taken.state.ended).global_maintenance is None
    again = step(taken.state, look(ADA))
    assert again.state.hold is None
    assert again.state.events == taken.state.events
    other = step(again.state, look(replace(ADA, since=1001.0)))
    assert (other.board, other.state.ended) == (True, {}), "one that is declared again counts"


def test_a_declared_maintenance_takes_over_from_one_set_by_hand_and_ends_with_its_own_end() -> None:
    by_hand = step(agreed(), look(None, BY_HAND)).state
    declared = step(by_hand, look(ADA, BY_HAND))
    assert (declared.state.hold, declared.state.hold_from_board, declared.board) == (
        ADA,
        False,
        None,
    )
    assert step(declared.state, look(None, BY_HAND)).board is False


@pytest.mark.parametrize(
    ("declared", "board", "held", "written"),
    [
        (None, "", False, None),
        (None, BY_HAND, True, None),
        (ADA, "", True, True),
        (ADA, BY_HAND, True, None),
    ],
)
def test_a_manager_that_cannot_know_who_spoke_last_holds(declared, board, held, written) -> None:
    taken = step(stopped(state()), look(declared, board))
    assert (taken.state.hold is not None, taken.board) == (held, written)


@pytest.mark.parametrize(("declared", "written"), [(None, None), (ADA, True)])
def test_a_damaged_block_holds_and_is_written_over_only_by_a_yes(declared, written) -> None:
    before = stopped(agreed(declared, declared, declared is not None))
    taken = step(before, look(declared, DAMAGED, board_readable=False))
    assert taken.state.services["web"].state is ServiceState.STOPPED
    assert taken.board is written
    assert taken.state.board is before.board
    assert taken.state.ended == {}


@pytest.mark.parametrize(
    ("declared", "board", "readable", "written"),
    [
        (None, BY_HAND, True, False),
        (None, DAMAGED, False, False),
        (None, "", True, None),
        (ADA, "", True, True),
        (ADA, DAMAGED, False, True),
        (ADA, BY_HAND, True, None),
    ],
)
@pytest.mark.parametrize("known", [None, False, True])
def test_a_block_that_does_not_bind_only_shows_what_the_configuration_says(
    declared, board, readable, written, known
) -> None:
    before = stopped(agreed(declared, declared, known))
    sight = look(declared, board, board_readable=readable, board_binds=False)
    taken = step(before, sight)
    assert (taken.state.hold is not None, taken.board) == (declared is not None, written)
    assert taken.state.ended == {}
    # Whoever declared it waits for this.
    assert taken.state.board_pending is (written is not None)
    assert written is not None or taken.state.board is (declared is not None)
    moved = "web" in taken.state.services and taken.state.services["web"].state
    assert (moved is ServiceState.STOPPED) is (declared is not None)


def test_a_maintenance_of_the_block_ends_when_the_block_does_not_bind_any_more() -> None:
    before = stopped(agreed(None, Maintenance(BY_HAND, "", WALL), True))
    taken = step(before, look(None, BY_HAND, board_binds=False))
    assert (taken.state.hold, taken.board) == (None, False)


class Places:
    """The configuration, block 0, and a manager whose writes of the block may be lost."""

    def __init__(self):
        self.declared, self.block, self.loses = None, False, False
        self.last, self.rounds = state(), 0

    def round(self):
        self.rounds += 1
        sight = look(self.declared, BY_HAND if self.block else "", wall=WALL + self.rounds)
        taken = step(self.last, sight)
        self.last = taken.state
        if taken.board is not None and not self.loses:
            self.block = taken.board
        self.loses = False

    def declare(self):
        self.declared = replace(ADA, since=float(self.rounds))
        return True

    def revoke(self):
        in_it = desired(global_maintenance=self.declared).in_force(self.last.ended)
        self.declared = None
        return False if in_it.global_maintenance is not None else None

    def write(self, says):
        # Within the round in which the manager itself writes the block, its word is the last.
        while self.last.board_pending:
            self.round()
        self.block = says
        return says


@settings(max_examples=500, deadline=None)
@given(st.lists(st.sampled_from(["declare", "revoke", "yes", "no", "lost", "new"]), max_size=25))
def test_whoever_spoke_last_has_it_in_both_places(acts) -> None:
    places, last_word = Places(), False
    for act in acts:
        said = None
        if act == "declare":
            said = places.declare()
        elif act == "revoke":
            said = places.revoke()
        elif act in ("yes", "no"):
            said = places.write(act == "yes")
        elif act == "new":
            places.last = take_over(places.last, places.last.epoch + 1, "n2", WALL)
        last_word = last_word if said is None else said
        places.loses = act == "lost"
        places.round()
    for _turn in range(3):
        places.round()
    assert (places.last.hold is not None, places.block) == (last_word, last_word)
    assert not places.last.board_pending


def test_the_manager_ends_it_at_its_expiry_with_its_reason_and_only_then() -> None:
    before = agreed(SHORT, SHORT, True)
    early = step(before, look(SHORT, BY_HAND, wall=1004.9))
    assert early.state.hold == SHORT
    taken = step(early.state, look(SHORT, BY_HAND, wall=1005.0))
    assert (taken.state.hold, taken.board) == (None, False)
    assert taken.state.events[-1].text == (
        "global maintenance ends, it expired; it was by ada: new switches;"
        " until 1970-01-01T00:16:45Z"
    )


def test_an_end_that_stands_in_the_record_survives_the_manager_and_a_clock_that_goes_back() -> None:
    ended = step(agreed(SHORT, SHORT, True), look(SHORT, BY_HAND, wall=1005.0)).state
    stored = state_from_document(state_document(ended))
    assert stored == ended
    taken = step(take_over(stored, 8, "n2", 900.0), look(SHORT, wall=900.0))
    assert (taken.state.hold, taken.board) == (None, None)


def test_a_clock_that_jumped_ends_nothing_before_it_ran_evenly_for_a_while() -> None:
    jumped = look(SHORT, BY_HAND, wall=90000.0, wall_even=False)
    taken = step(agreed(SHORT, SHORT, True), jumped)
    assert (taken.state.hold, taken.board) == (SHORT, None)


def test_who_puts_the_end_off_while_the_manager_ends_it_is_not_overruled() -> None:
    ended = step(agreed(SHORT, SHORT, True), look(SHORT, BY_HAND, wall=1005.0)).state
    later = replace(SHORT, until=2000.0)
    taken = step(ended, look(later, BY_HAND, wall=1005.5))
    assert (taken.state.hold, taken.state.ended, taken.board) == (later, {}, None)


def test_a_drained_node_is_used_again_after_its_expiry() -> None:
    drained = replace(look(), desired=desired(service(), maintenance={"n1": SHORT}))
    assert step(agreed(), drained).state.services["web"].state is ServiceState.RELOCATE
    nowhere = stopped(state({}, {"n2": NodeStatus(), "n3": NodeStatus()}))
    quiet = {name: observed_node(name, heartbeat_age=50.0, report=None) for name in ("n2", "n3")}
    drained = replace(drained, nodes={**drained.nodes, **quiet})
    assert step(nowhere, drained).state.services["web"].state is ServiceState.STOPPED
    over = step(nowhere, replace(drained, wall=1005.0))
    assert over.state.services["web"].node == "n1"
    ends = [one for one in over.state.events if one.kind == "maintenance_ended"]
    assert [(one.node, one.text) for one in ends] == [
        (
            "n1",
            "maintenance ends, it expired at 1970-01-01T00:16:45Z; it was by ada: new"
            " switches; until 1970-01-01T00:16:45Z",
        )
    ]
    assert (
        kinds(step(over.state, replace(drained, wall=1006.0)).state).count("maintenance_ended") == 1
    )


@pytest.mark.parametrize("answer", [SILENT, replace(SILENT, lease=LeaseSight.DEAD)])
def test_a_silent_node_is_neither_fenced_nor_declared_dead_for_a_declared_maintenance(answer):
    taken = step(agreed(), look(ADA, nodes={"n1": answer}))
    assert not taken.fences
    status = taken.state.nodes["n1"]
    assert status.state is NodeState.SUSPECT
    assert "not fenced: global maintenance (by ada: new switches)" in status.reason
    after = step(replace(taken.state, hold=None, board=False), look(nodes={"n1": answer}))
    assert after.state.nodes["n1"].state in (NodeState.FENCE, NodeState.OFF)


def fencing(confirmed):
    """A fence that was sent before the maintenance began and has ended."""
    fenced = NodeStatus(
        NodeState.FENCE, 980.0, "silent", "n1-boot1", pending_fences=pending(manager=985.0)
    )
    before = replace(agreed(), nodes={**agreed().nodes, "n1": fenced})
    report = FenceReport("n1", confirmed, "its own status", 985.0, 999.0)
    return step(before, look(ADA, nodes={"n1": SILENT}, fences=(report,)))


def test_the_proof_of_a_fence_that_was_under_way_counts_but_nothing_is_recovered_by_it() -> None:
    taken = fencing(confirmed=True)
    assert taken.state.nodes["n1"].state is NodeState.OFF
    assert taken.state.services["web"].state is ServiceState.RECOVERY
    later = step(taken.state, look(ADA, BY_HAND, nodes={"n1": SILENT}), rounds=3)
    assert later.state.services["web"].state is ServiceState.RECOVERY
    assert later.powers == ()
    after = step(replace(later.state), look(None, "", nodes={"n1": SILENT}), rounds=2)
    assert after.state.services["web"].state is ServiceState.REQUEST_START


def test_a_fence_that_failed_is_not_tried_again_before_the_end() -> None:
    taken = fencing(confirmed=False)
    later = look(ADA, BY_HAND, wall=WALL + 300, nodes={"n1": SILENT})
    assert step(taken.state, later).fences == ()
    free = step(step(taken.state, later).state, replace(look(wall=WALL + 301), nodes=later.nodes))
    assert [one.node for one in free.fences] == ["n1"]


def test_older_documents_have_no_global_maintenance_and_no_expiry() -> None:
    document = desired_document(desired(service(), maintenance={"n1": ADA}))
    assert "global_maintenance" not in document
    del document["maintenance"]["n1"]["until"]
    assert desired_from_document(document) == desired(service(), maintenance={"n1": ADA})
    old = state_document(state())
    for key in ("hold", "hold_from_board", "board", "board_pending", "ended"):
        del old[key]
    assert state_from_document(old) == state()


def test_a_configuration_reads_back_with_its_maintenances() -> None:
    one = desired(service(), maintenance={"n1": SHORT}, global_maintenance=SHORT)
    assert desired_from_document(desired_document(one)) == one


@pytest.mark.parametrize(
    ("one", "text"),
    [
        (Maintenance(), "no reason given"),
        (Maintenance("disks"), "disks"),
        (Maintenance("", "ada"), "by ada"),
        (Maintenance("disks", "ada", 0.0, 3600.0), "by ada: disks; until 1970-01-01T01:00:00Z"),
        (Maintenance("disks", until=1e300), "disks; until -"),
    ],
)
def test_a_maintenance_is_told_by_what_is_known_of_it(one, text) -> None:
    assert maintenance_text(one) == text
