# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A device does one thing at a time, and the same request is carried out once."""

from __future__ import annotations

import threading

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import FenceError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.conversation import (
    Turns,
    together,
)

LONG = 30.0


def test_one_device_is_held_by_one_while_others_are_free():
    turns = Turns()
    entered = threading.Event()

    def second():
        with turns.turn("board", "board"):
            entered.set()

    with turns.turn("board", "board"):
        waiting = threading.Thread(target=second)
        waiting.start()
        with turns.turn("outlets", "outlets"):
            assert not entered.is_set()
    waiting.join(LONG)
    assert entered.is_set()


def test_a_device_that_is_never_let_go_of_is_a_failure_and_not_a_hang():
    turns = Turns(longest_wait=0.01)
    busy = pytest.raises(FenceError, match=r"bmc1 was busy with others for 0\.01 seconds")
    with turns.turn("board", "bmc1"), busy, turns.turn("board", "bmc1"):
        pass
    with turns.turn("board", "bmc1"):
        pass


def test_who_has_less_patience_waits_no_longer_than_that():
    turns = Turns()
    busy = pytest.raises(FenceError, match=r"busy with others for 0\.01 seconds")
    with turns.turn("board", "bmc1"), busy, turns.turn("board", "bmc1", 0.01):
        pass


def meanwhile(turns, request, second_request):
    """Ask a second time while the first is under way; return what both got, and the calls."""
    under_way, go_on = threading.Event(), threading.Event()
    calls, results = [], {}

    def slow():
        calls.append("slow")
        under_way.set()
        go_on.wait(LONG)
        return "of the first"

    def ask(name, request, act):
        results[name] = turns.joined(request, act)

    first = threading.Thread(target=ask, args=("first", request, slow))
    first.start()
    under_way.wait(LONG)
    own = threading.Event()

    def quick():
        calls.append("quick")
        own.set()
        return "its own"

    second = threading.Thread(target=ask, args=("second", second_request, quick))
    second.start()
    if request != second_request:
        own.wait(LONG)
    go_on.set()
    first.join(LONG)
    second.join(LONG)
    return results, calls


def test_a_request_that_is_under_way_is_joined():
    # The second may come so late that the first has ended: then it is done again.
    for _attempt in range(20):
        results, calls = meanwhile(Turns(), ["off", "n1"], ["off", "n1"])
        if calls == ["slow"]:
            break
    assert results == {"first": "of the first", "second": "of the first"}


def test_another_request_is_carried_out_by_itself():
    results, calls = meanwhile(Turns(), ["off", "n1"], ["off", "n2"])
    assert results == {"first": "of the first", "second": "its own"}
    assert sorted(calls) == ["quick", "slow"]


def refuse():
    raise FenceError("no.")


def test_an_ended_request_is_carried_out_again_and_a_failed_one_fails():
    turns = Turns()
    assert [turns.joined("off", lambda one=one: one) for one in (1, 2)] == [1, 2]
    with pytest.raises(FenceError, match="no"):
        turns.joined("off", refuse)
    assert turns.joined("off", lambda: 3) == 3


def test_one_failure_among_many_stops_no_other():
    def act(name):
        if name == "n2":
            raise FenceError("n2 has no device.")
        return name.upper()

    ends = together(["n1", "n2", "n3", "n1"], act)
    assert ends.done == {"n1": "N1", "n3": "N3"}
    assert {name: str(error) for name, error in ends.failed.items()} == {"n2": "n2 has no device."}
    assert together([], act).done == {}


def test_all_are_treated_at_the_same_time():
    names = [f"n{number}" for number in range(64)]
    # Each waits until all the others are there, which never happens one after the other.
    barrier = threading.Barrier(len(names))
    ends = together(names, lambda name: barrier.wait(LONG) >= 0)
    assert all(ends.done[name] for name in names)
