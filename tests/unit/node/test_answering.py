# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A daemon's node answers whatever the daemon is at, and no hint or answer is lost meanwhile."""

from __future__ import annotations

import json
import socket
import threading
import time
from contextlib import suppress
from dataclasses import replace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.configuration import (
    CRM,
    LRM,
    Member,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.network import (
    TURN,
    AnsweringNetwork,
    Network,
    answering_network,
    patience,
)
from ansible_collections.holdfast.ha.tests.unit.node.sample_node import (
    CLUSTER,
    HOST,
    configuration,
    correspondence,
    datagram,
    free_ports,
)

SOON = 19.0


class NotifierStandIn:
    def __init__(self):
        self.patience = []

    def waits(self, patience):
        self.patience.append(patience)


@pytest.fixture
def daemon(port):
    found = AnsweringNetwork(HOST, port, correspondence("n1", port))
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


def test_a_node_answers_while_its_daemon_listens_to_nobody(daemon, n2, port):
    for _turn in range(3):
        n2.sendto(datagram("ask"), (HOST, port))
        answer = json.loads(n2.recv(512))
        assert answer == {"cluster": CLUSTER, "kind": "answer", "node": "n1"}


def test_what_came_while_the_daemon_was_busy_is_there_when_it_listens(daemon, n2, port):
    daemon.ask(Member("n2", 2, HOST, port + 3))
    for kind in ("answer", "look"):
        n2.sendto(datagram(kind), (HOST, port))
    assert heard(daemon, (True, {"n2"})) == (True, {"n2"})
    assert daemon.listen(0.02) == (False, set()), "told once"


def test_a_hint_ends_the_wait_of_a_daemon_at_once(daemon, port):
    other = Network(HOST, port + 3, correspondence("n2", port))
    begun = time.monotonic()
    timer = threading.Timer(0.05, other.hint, [[(HOST, port)]])
    timer.start()
    assert daemon.listen(20.0) == (True, set())
    assert time.monotonic() - begun < SOON
    timer.join()
    other.close()


def test_a_daemon_asks_and_hears_the_answers(daemon, port):
    other = AnsweringNetwork(HOST, port + 3, correspondence("n2", port))
    daemon.ask(Member("n2", 2, HOST, port + 3))
    assert heard(daemon, (False, {"n2"})) == (False, {"n2"})
    other.close()


def test_a_flood_of_hints_neither_stops_the_answers_nor_the_daemon(daemon, n2, port):
    for _hint in range(5000):
        n2.sendto(datagram(), (HOST, port))
    # Some may be lost on the way; a question that is repeated, as all are, comes through.
    n2.settimeout(0.2)
    answered = False
    for _question in range(50):
        n2.sendto(datagram("ask"), (HOST, port))
        try:
            answered = json.loads(n2.recv(512))["kind"] == "answer"
            break
        except socket.timeout:
            continue
    assert answered
    assert daemon.listen(SOON) == (True, set())


def test_a_port_that_was_given_back_is_answered_on_no_more(port, n2):
    for _turn in range(3):
        AnsweringNetwork(HOST, port, correspondence("n1", port)).close()
    assert "answers" not in {thread.name for thread in threading.enumerate()}
    n2.settimeout(0.1)
    n2.sendto(datagram("ask"), (HOST, port))
    with pytest.raises(OSError):
        n2.recv(512)


def test_somebody_speaks_for_a_daemon_that_waits_however_often_its_node_is_asked(port, n2):
    spoken = []
    network = AnsweringNetwork(
        HOST, port, correspondence("n1", port), meanwhile=lambda: spoken.append(time.monotonic())
    )
    begun = time.monotonic()
    # More than a few at once are not looked at.
    n2.settimeout(0.05)
    while len(spoken) < 2 and time.monotonic() < begun + 30 * TURN:
        n2.sendto(datagram("ask"), (HOST, port))
        with suppress(socket.timeout):
            n2.recv(512)
    network.close()
    assert len(spoken) == 2
    assert spoken[1] - spoken[0] >= TURN


@pytest.mark.parametrize(("daemon_grace", "lrm"), [(30.0, 20.0), (25.0, 15.0), (60.0, 50.0)])
def test_a_daemon_may_hang_until_its_node_would_be_reset_for_want_of_it(
    tmp_path, daemon_grace, lrm
):
    node = configuration(tmp_path)
    node = replace(node, timing=replace(node.timing, daemon_grace=daemon_grace))
    assert patience(node, LRM) == lrm
    assert patience(node, CRM) == lrm + 5.0, "one of both answers"


def test_a_daemon_is_silent_for_as_long_as_systemd_waits_before_its_patience_ends(tmp_path):
    node = configuration(tmp_path, first_port=free_ports())
    notifier = NotifierStandIn()
    network = answering_network(node, LRM, notifier)
    until = time.monotonic() + SOON
    while not notifier.patience and time.monotonic() < until:
        network.listen(0.05)
    network.close()
    assert set(notifier.patience) == {10.0}
