# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A daemon's node answers whatever the daemon is at, and no hint or answer is lost meanwhile."""

from __future__ import annotations

import json
import socket
import threading
import time

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.answering import (
    AnsweringNetwork,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.configuration import Member
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.network import Network
from ansible_collections.holdfast.ha.tests.unit.node.sample_node import CLUSTER, HOST, datagram

SOON = 10.0


@pytest.fixture
def daemon(port):
    found = AnsweringNetwork(CLUSTER, "n1", HOST, port)
    yield found
    found.close()


def heard(daemon, expected):
    """Listen until what came in is as expected, and return it."""
    until = time.monotonic() + SOON
    hinted, answered = False, set()
    while (hinted, answered) != expected and time.monotonic() < until:
        more_hinted, more_answered = daemon.listen(0.05)
        hinted, answered = hinted or more_hinted, answered | more_answered
    return hinted, answered


def test_a_node_answers_while_its_daemon_listens_to_nobody(daemon, stranger, port):
    for _turn in range(3):
        stranger.sendto(datagram("ask"), (HOST, port))
        answer = json.loads(stranger.recv(512))
        assert answer == {"cluster": CLUSTER, "kind": "answer", "node": "n1"}


def test_what_came_while_the_daemon_was_busy_is_there_when_it_listens(daemon, stranger, port):
    for kind, node in (("answer", "n2"), ("look", "n2"), ("answer", "n3")):
        stranger.sendto(datagram(kind, node=node), (HOST, port))
    assert heard(daemon, (True, {"n2", "n3"})) == (True, {"n2", "n3"})
    assert daemon.listen(0.02) == (False, set()), "told once"


def test_a_hint_ends_the_wait_of_a_daemon_at_once(daemon, port):
    other = Network(CLUSTER, "n2", HOST, port + 3)
    begun = time.monotonic()
    timer = threading.Timer(0.05, other.hint, [[(HOST, port)]])
    timer.start()
    assert daemon.listen(20.0) == (True, set())
    assert time.monotonic() - begun < SOON
    timer.join()
    other.close()


def test_a_daemon_asks_and_hears_the_answers(daemon, port):
    other = AnsweringNetwork(CLUSTER, "n2", HOST, port + 3)
    daemon.ask(Member("n2", 2, HOST, port + 3))
    assert heard(daemon, (False, {"n2"})) == (False, {"n2"})
    other.close()


def test_a_flood_of_hints_neither_stops_the_answers_nor_the_daemon(daemon, stranger, port):
    for _hint in range(5000):
        stranger.sendto(datagram(), (HOST, port))
    # Some may be lost on the way; a question that is repeated, as all are, comes through.
    stranger.settimeout(0.2)
    answered = False
    for _question in range(50):
        stranger.sendto(datagram("ask"), (HOST, port))
        try:
            answered = json.loads(stranger.recv(512))["kind"] == "answer"
            break
        except socket.timeout:
            continue
    assert answered
    assert daemon.listen(SOON) == (True, set())


def test_a_port_that_was_given_back_is_answered_on_no_more(port, stranger):
    for _turn in range(3):
        AnsweringNetwork(CLUSTER, "n1", HOST, port).close()
    assert "answers" not in {thread.name for thread in threading.enumerate()}
    stranger.settimeout(0.1)
    stranger.sendto(datagram("ask"), (HOST, port))
    with pytest.raises(OSError):
        stranger.recv(512)
