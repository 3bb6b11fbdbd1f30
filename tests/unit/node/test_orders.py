# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Orders are carried out beside the manager's rounds, and each of them ends with a report."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import replace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    FENCE_ARRIVES,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import FenceError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence import conversation, prove
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.conversation import (
    TOOLS,
    FenceTools,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.metadata import ASSUMED
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.fence_orders import (  # noqa: E501
    Orders,
)
from ansible_collections.holdfast.ha.tests.unit.fence.device_script import (
    calls,
    listing,
    write_device,
)
from ansible_collections.holdfast.ha.tests.unit.node.sample_node import Clock, configuration

WAIT = 30.0


class Given:
    """Orders of n1, and the devices that they go to."""

    def __init__(self, folder, tools=TOOLS, **device):
        self.folder = folder
        self.wakes = threading.Semaphore(0)
        self.orders = Orders(configuration(folder), self.wakes.release, tools)
        self.fence_file = folder / "fence.json"
        self.write(write_device(folder / "a", **{"listed": listing("n3"), **device}))

    def write(self, agent, **more):
        level = [{"device": "d", "plug": "n3"}]
        device = {"agent": agent, "parameters": {"ip": "x"}, "timeout": 2.0, **more}
        document = {"devices": {"d": device}, "nodes": {"n3": {"levels": [level]}}}
        self.fence_file.write_text(json.dumps(document))
        self.fence_file.chmod(0o600)

    def wait(self):
        assert self.wakes.acquire(timeout=WAIT)

    def fence(self, node="n3"):
        self.orders.fence(node)
        self.wait()
        (end,) = self.orders.take_fences()
        return end


@pytest.mark.parametrize(
    ("device", "part"),
    [
        ({"off": "exit 1", "status": "exit 0"}, "its status is on"),
        ({"off": "sleep 60"}, "no answer within"),
        ({"name": "fence_dummy"}, ""),
    ],
    ids=["it lies", "it hangs", "it is no power switch"],
)
def test_a_fence_that_proves_nothing_is_not_confirmed(tmp_path, device, part):
    end = Given(tmp_path, **device).fence()
    assert not end.report.confirmed
    assert part in end.report.text


def assumed(confirmed_at, proof_at):
    return prove.FenceResult(
        "n3", True, ASSUMED, "off", (), "d is assumed to be off", 0.0, confirmed_at, proof_at
    )


def test_an_off_that_is_only_assumed_and_never_proof_is_not_confirmed(tmp_path, monkeypatch):
    monkeypatch.setattr(prove, "power_off", lambda *_rest: assumed(1.0, None))
    report = Given(tmp_path).fence().report
    assert (report.confirmed, report.verified) == (False, False)
    assert report.text == "d is assumed to be off, which never is proof"


def test_what_is_not_confirmed_is_no_proof_whatever_its_times_say(tmp_path, monkeypatch):
    doubtful = replace(assumed(1.0, 1.0), confirmed=False)
    monkeypatch.setattr(prove, "power_off", lambda *_rest: doubtful)
    assert not Given(tmp_path).fence().report.confirmed


def test_an_off_that_is_assumed_is_proof_once_the_watchdog_had_its_time_and_says_so(
    tmp_path, monkeypatch
):
    clock = Clock()
    slept, go_on = [], threading.Event()

    def sleep(seconds):
        slept.append(seconds)
        go_on.wait(WAIT)
        clock.go(seconds)

    monkeypatch.setattr(
        prove, "power_off", lambda *_rest: assumed(clock.now - 10.0, clock.now + 20.0)
    )
    given = Given(tmp_path, tools=FenceTools(clock=clock, sleep=sleep))
    given.orders.fence("n3")
    # Meanwhile nothing blocks, and the fence counts as under way.
    assert given.orders.take_fences() == []
    assert given.orders.fencing() == {"n3"}
    go_on.set()
    given.wait()
    (end,) = given.orders.take_fences()
    assert slept == [20.0]
    assert (end.report.confirmed, end.report.verified) == (True, False)
    assert end.report.text == "d is assumed to be off, and its watchdog had 30 s since"
    assert end.ended - end.sent == 20.0


def test_a_message_for_a_watchdog_counts_after_the_wait_that_the_operator_gave(tmp_path):
    given = Given(tmp_path, name="fence_sbd")
    assert not given.fence().report.confirmed
    given.write(str(tmp_path / "a" / "fence_sbd"), assumed_after=0.5)
    end = given.fence()
    assert (end.report.confirmed, end.report.verified) == (True, False)
    assert "is assumed to be off, and its watchdog had 0.5 s since" in end.report.text
    assert end.ended - end.sent >= 0.5


def test_no_device_is_asked_anything_once_the_manager_takes_the_fence_for_over(
    tmp_path, monkeypatch
):
    asked = []

    def power_off(*arguments):
        asked.append(arguments)
        return assumed(1.0, None)

    monkeypatch.setattr(prove, "power_off", power_off)
    Given(tmp_path).fence()
    assert asked[0][3] == FENCE_ARRIVES
    assert conversation.LONGEST_WAIT <= FENCE_ARRIVES


@pytest.mark.parametrize("act", ["fence", "power_on"])
def test_a_fence_configuration_that_cannot_be_used_is_a_failure_with_its_sentence(tmp_path, act):
    given = Given(tmp_path)
    given.fence_file.chmod(0o644)
    getattr(given.orders, act)("n3")
    given.wait()
    ended = given.orders.take_fences() if act == "fence" else given.orders.take_powers()
    report = ended[0].report if act == "fence" else ended[0]
    assert not (report.confirmed if act == "fence" else report.ok)
    assert "make it 0600" in report.text
    assert calls(tmp_path / "a") == []


@pytest.mark.parametrize("error", [FenceError("no."), ValueError("oops")])
def test_whatever_goes_wrong_an_order_ends(tmp_path, monkeypatch, error):
    given = Given(tmp_path)

    def fails(*_rest):
        raise error

    monkeypatch.setattr(prove, "power_off", fails)
    monkeypatch.setattr(prove, "power_on", fails)
    end = given.fence()
    assert (end.report.confirmed, str(error) in end.report.text) == (False, True)
    given.orders.power_on("n3")
    given.wait()
    (report,) = given.orders.take_powers()
    assert (report.ok, str(error) in report.text) == (False, True)


def test_the_fence_configuration_is_read_anew_for_each_order(tmp_path):
    given = Given(tmp_path, off="exit 1", status="exit 0")
    assert not given.fence().report.confirmed
    given.write(write_device(tmp_path / "b", listed=listing("n3")))
    assert given.fence().report.confirmed
    assert calls(tmp_path / "b") == ["off n3", "status n3", "list "]


def test_a_node_is_fenced_once_at_a_time_and_counts_as_under_way_until_its_end_is_taken(tmp_path):
    given = Given(tmp_path)
    for _turn in range(3):
        given.orders.fence("n3")
    assert given.orders.fencing() == {"n3"}
    given.wait()
    assert given.orders.fencing() == {"n3"}
    assert len(given.orders.take_fences()) == 1
    assert given.orders.fencing() == frozenset()
    assert calls(tmp_path / "a") == ["off n3", "status n3", "list "]


def test_a_proof_says_when_its_fence_was_sent_and_when_it_ended(tmp_path):
    before, wall = time.monotonic(), time.time()
    end = Given(tmp_path).fence()
    assert before <= end.sent <= end.ended <= time.monotonic()
    assert (end.report.confirmed, end.report.verified) == (True, True)
    assert end.report.ended - end.report.sent == pytest.approx(end.ended - end.sent, abs=1e-3)
    assert abs(end.report.sent - wall) < WAIT


def test_a_node_that_is_on_again_says_so(tmp_path):
    given = Given(tmp_path)
    given.fence()
    given.orders.power_on("n3")
    given.wait()
    (report,) = given.orders.take_powers()
    assert (report.node, report.ok) == ("n3", True)
