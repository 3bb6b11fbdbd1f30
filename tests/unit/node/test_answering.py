# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A daemon's node answers whatever the daemon is at, and no hint or answer is lost meanwhile."""

from __future__ import annotations

import json
import socket
import threading
import time
from dataclasses import replace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.configuration import (
    CRM,
    LRM,
    Member,
    SanlockSettings,
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
    datagram,
    free_ports,
)

SOON = 10.0


class NotifierStandIn:
    def __init__(self):
        self.patience = []

    def waits(self, patience):
        self.patience.append(patience)


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


def test_somebody_speaks_for_a_daemon_that_waits_however_often_its_node_is_asked(port, stranger):
    spoken = []
    network = AnsweringNetwork(
        CLUSTER, "n1", HOST, port, meanwhile=lambda: spoken.append(time.monotonic())
    )
    begun = time.monotonic()
    while len(spoken) < 2 and time.monotonic() < begun + 4 * TURN:
        stranger.sendto(datagram("ask"), (HOST, port))
        stranger.recv(512)
    network.close()
    assert len(spoken) == 2
    assert spoken[1] - spoken[0] >= TURN


@pytest.mark.parametrize(
    ("io_timeout", "daemon_grace", "lrm"),
    [
        (2, 30.0, 16.0),
        (1, 30.0, 8.0),
        (10, 30.0, 20.0),
        (10, 25.0, 15.0),
        (2, 25.0, 15.0),
    ],
)
def test_a_daemon_waits_until_its_host_lease_fails_or_its_node_would_be_reset_for_its_lrm(
    tmp_path, io_timeout, daemon_grace, lrm
):
    node = configuration(tmp_path)
    node = replace(
        node,
        sanlock=SanlockSettings(io_timeout, 10),
        timing=replace(node.timing, daemon_grace=daemon_grace),
    )
    assert patience(node, LRM) == lrm
    assert patience(node, CRM) == lrm + 5.0, "one of both answers"


def test_a_daemon_is_silent_for_as_long_as_systemd_waits_before_its_patience_ends(tmp_path):
    node = replace(configuration(tmp_path, first_port=free_ports()), sanlock=SanlockSettings(2, 10))
    notifier = NotifierStandIn()
    network = answering_network(node, LRM, notifier)
    until = time.monotonic() + SOON
    while not notifier.patience and time.monotonic() < until:
        network.listen(0.05)
    network.close()
    assert set(notifier.patience) == {6.0}
