# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node that went down in order is no proof for what was left to its operator before it did."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.manager.report import Mode
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.manager.seen import (
    Answer,
    LeaseSight,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.manager.state import (
    NodeState,
    NodeStatus,
    ServiceState,
    ServiceStatus,
)
from ansible_collections.holdfast.ha.tests.unit.manager.sample_cluster import (
    node_seen,
    report,
    seen,
    service,
    started,
    state,
    step,
    wanted,
)

WEB = service()
IGNORED = replace(WEB, ignored=True)
ASKED = ServiceStatus(ServiceState.PROBE, uid="7.8", left_since=5)
"""A service that is looked for again, and was left to its operator as of the fifth command."""


def went_down(commands, **changes):
    """Return a node that gave its lease back after it had seen so many commands."""
    said = report("n2", commands=commands, mode=Mode.SHUTDOWN, goes_down="poweroff", **changes)
    return node_seen("n2", heartbeat_age=20.0, answer=Answer.NO, lease=LeaseSight.FREE, report=said)


def test_what_is_left_once_more_while_it_is_looked_for_was_left_before():
    taken = step(state({"web": ASKED}), seen(wanted(IGNORED)))
    assert taken.state.ignored_since == {"web": 5}


def test_that_holds_also_where_another_service_loses_its_node_in_the_same_round():
    dead = node_seen("n1", heartbeat_age=99.0, answer=Answer.NO, lease=LeaseSight.DEAD)
    dead = replace(dead, report=report("n1", found={"7.8": False}))
    services = {"web": ASKED, "db": started("n1", service("db"))}
    before = state(services, {"n1": NodeStatus(NodeState.SUSPECT, boot="n1-boot1")})
    taken = step(before, seen(wanted(IGNORED, service("db")), {"n1": dead}))
    assert taken.state.nodes["n1"].state is NodeState.OFF
    assert taken.state.ignored_since == {"web": 5}


def test_that_holds_also_in_the_round_in_which_the_cluster_is_armed():
    frozen = started("n1", state=ServiceState.FREEZE, before="started")
    disarmed = {"disarm": "disarmed", "disarm_mode": "ignore", "disarm_number": 4}
    taken = step(state({"web": frozen}, **disarmed), seen(wanted(IGNORED)))
    assert taken.state.ignored_since == {"web": 4}


@pytest.mark.parametrize(("commands", "fenced"), [(4, False), (5, True), (8, True)])
def test_only_a_node_that_left_before_it_was_left_is_not_fenced_for_it(commands, fenced):
    taken = step(state({"web": ASKED}), seen(wanted(WEB), {"n2": went_down(commands)}), rounds=3)
    assert (taken.state.nodes["n2"].state is NodeState.FENCE) is fenced


def test_a_node_that_looked_for_it_before_it_left_is_not_fenced_for_it():
    look = seen(wanted(WEB), {"n2": went_down(8, found={"7.8": False})})
    assert (
        step(state({"web": ASKED}), look, rounds=3).state.nodes["n2"].state is not NodeState.FENCE
    )


def test_a_node_that_left_before_it_was_left_is_not_taken_to_have_it():
    nodes = {
        name: node_seen(name, report=report(name, found={"7.8": False})) for name in ("n1", "n3")
    }
    gone = went_down(4)
    restarts = replace(gone.report, mode=Mode.RESTART, goes_down="reboot")
    nodes["n2"] = replace(gone, report=restarts)
    status = step(state({"web": ASKED}), seen(wanted(WEB), nodes)).state.services["web"]
    assert status.state is ServiceState.PROBE
    assert status.node == ""


@pytest.mark.parametrize("answer", [Answer.NO, Answer.YES])
def test_a_lease_given_back_before_is_no_proof_for_what_is_taken_up_there_unasked(answer):
    home = replace(WEB, node="n2")
    last = report("n2", commands=8, mode=Mode.SHUTDOWN, goes_down="poweroff")
    gone = node_seen("n2", heartbeat_age=60.0, answer=answer, lease=LeaseSight.FREE, report=last)
    offline = {"n2": NodeStatus(NodeState.OFFLINE, boot="n2-boot1", power="")}
    others = {
        name: node_seen(name, report=report(name, found={"web": False})) for name in ("n1", "n3")
    }
    taken = step(state({}, offline), seen(wanted(home), {"n2": gone, **others}), rounds=4)
    status = taken.state.services["web"]
    assert (status.node, taken.state.nodes["n2"].state) == ("n2", NodeState.FENCE)


def test_who_waits_for_a_node_that_cannot_say_reads_how_to_do_without_it():
    look = seen(wanted(WEB), {"n2": went_down(8)})
    taken = step(state({"web": ASKED}), look, rounds=3)
    reason = taken.state.services["web"].reason
    assert "n2 cannot say: a node like that has to boot, to be fenced" in reason


def test_what_is_removed_while_it_is_left_is_looked_for_with_a_number_once_it_is_declared_again():
    left = state({}, ignored=("web",), ignored_since={"web": 4})
    removed = step(left, seen(wanted()), rounds=3).state
    again = step(removed, seen(wanted(WEB))).state.services["web"]
    assert again.state is ServiceState.PROBE
    assert (bool(again.uid), again.left_since) == (True, 4)


def test_that_what_was_removed_while_it_was_looked_for_may_still_run_is_said_and_remembered():
    taken = step(state({"web": ASKED}), seen(wanted()))
    assert "web" not in taken.state.services
    assert taken.state.ignored_since == {"web": 5}
    (event,) = [one for one in taken.state.events if one.kind == "forgotten"]
    assert event.text.endswith("and may still run")


def test_of_those_that_were_removed_while_they_were_left_the_last_ones_are_remembered():
    since = {f"s{number:03}": number for number in range(150)}
    left = state({}, ignored=tuple(since), ignored_since=since)
    kept = step(left, seen(wanted(replace(WEB, ignored=True)))).state
    assert [one for one in kept.ignored if one != "web"] == [f"s{n:03}" for n in range(50, 150)]
