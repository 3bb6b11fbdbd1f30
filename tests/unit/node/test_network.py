# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Questions and hints over real sockets: what is not ours is passed over, no wait is too long."""

from __future__ import annotations

import json
import socket
import threading
import time

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import InputError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.configuration import Member
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.network import (
    BEAT_COUNTS,
    FLOOD,
    HINT_PAUSE,
    PORTION,
    Network,
)
from ansible_collections.holdfast.ha.tests.unit.node.sample_node import (
    CLUSTER,
    HOST,
    correspondence,
    datagram,
)


def own(node, first_port, place=0):
    """Return the socket of *node*; n1 to n3 have three ports each from the first on."""
    number = int(node[1:])
    return Network(HOST, first_port + 3 * number - 3 + place, correspondence(node, first_port))


@pytest.fixture
def network(port):
    found = own("n1", port)
    yield found
    found.close()


def test_a_port_in_use_is_named_with_the_node_that_wants_it(network, port):
    with pytest.raises(InputError) as caught:
        Network(HOST, port, correspondence("n2", port))
    assert str(caught.value) == (
        f"port: {port} is not accepted; expected a port that is free on {HOST};"
        " node n2 cannot listen there."
    )


def test_an_address_of_another_machine_is_refused(port):
    with pytest.raises(InputError, match=r"address: '192\.0\.2\.1' .* an address of this machine"):
        Network("192.0.2.1", port, correspondence("n1", port))


def test_a_port_that_was_given_back_can_be_taken_again(port):
    for _turn in range(2):
        own("n1", port).close()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0\1\2\3",
        b"\xff\xfe\xfa",
        b"[" * 512,
        b"9" * 512,
        b"null",
        b'"look"',
        b"[1, 2]",
        b'{"kind": "look", "node": "n2"}',
        datagram(cluster="other"),
        datagram(cluster=None),
        datagram(kind="dance"),
        datagram(kind=["look"]),
        datagram(padding="x" * 600),
        datagram(padding="x" * 60000),
        datagram()[:-1],
    ],
    ids=lambda data: repr(data[:20]),
)
def test_a_datagram_that_is_not_ours_does_nothing(network, n2, port, data):
    n2.sendto(data, (HOST, port))
    assert network.listen(0.02) == (False, set())
    n2.sendto(datagram(), (HOST, port))
    assert network.listen(20.0) == (True, set())


def test_a_question_of_another_cluster_is_not_answered(network, n2, port):
    n2.settimeout(0.2)
    for cluster, answered in (("other", False), (CLUSTER, True)):
        n2.sendto(datagram(cluster=cluster, kind="ask"), (HOST, port))
        network.listen(0.02)
        try:
            answer = json.loads(n2.recv(512))
        except socket.timeout:
            answer = None
        ours = {"cluster": CLUSTER, "kind": "answer", "node": "n1"}
        assert answer == (ours if answered else None)


def test_a_node_that_is_asked_answers_with_its_name_from_each_of_its_ports(network, port):
    others = [own("n2", port, place) for place in range(3)]
    member = Member("n2", 2, HOST, port + 3)
    try:
        for listening in ((0, 1, 2), (1,), ()):
            network.ask(member)
            for place, other in enumerate(others):
                if place in listening:
                    other.drain()
            assert network.listen(0.02) == (False, {"n2"} if listening else set())
            for other in others:
                other.drain()
            network.drain()
    finally:
        for other in others:
            other.close()


def test_an_answer_names_the_heartbeat_that_was_written_last(network, port):
    other = own("n2", port)
    member = Member("n2", 2, HOST, port + 3)
    try:
        for beat in (41, 42):
            other.wrote(beat)
            network.ask(member)
            other.drain()
            assert network.listen(0.02) == (False, {"n2"})
            assert network.take_beats() == {"n2": beat}
            assert network.take_beats() == {}
    finally:
        other.close()


def test_an_answer_names_no_heartbeat_that_was_written_long_ago(network, n2, port):
    network.wrote(41)
    network._wrote = (41, time.monotonic() - BEAT_COUNTS)
    n2.sendto(datagram(kind="ask"), (HOST, port))
    network.listen(0.02)
    assert "beat" not in json.loads(n2.recv(512))


@pytest.mark.parametrize(
    ("beat", "known"),
    [
        (0, True),
        (2**63 - 1, True),
        (2**63, False),
        (-1, False),
        (1.5, False),
        (True, False),
        ("41", False),
        ([41], False),
        (None, False),
    ],
)
def test_a_heartbeat_that_cannot_be_one_is_passed_over(network, n2, port, beat, known):
    network.ask(Member("n2", 2, HOST, port + 3))
    n2.sendto(datagram("answer", beat=beat), (HOST, port))
    assert network.listen(0.05) == (False, {"n2"})
    assert network.take_beats() == ({"n2": beat} if known else {})


def test_an_answer_counts_only_from_the_node_that_was_asked(network, port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as n3:
        n3.bind((HOST, port + 6))
        network.ask(Member("n2", 2, HOST, port + 3))
        n3.sendto(datagram("answer", beat=1), (HOST, port))
        n3.sendto(datagram("answer", node="n3", beat=1), (HOST, port))
        assert network.listen(0.05) == (False, set())
    assert network.take_beats() == {}
    assert network.refused() == (2, HOST)


def test_nobody_there_is_no_error(network, port):
    for _turn in range(3):
        network.ask(Member("n2", 2, HOST, port + 3))
        network.hint([(HOST, port + 3), ("192.0.2.1", 9), ("300.1.1.1", 9)])
        assert network.listen(0.01) == (False, set())


def test_a_hint_ends_the_wait_at_once(network, port):
    other = own("n2", port)
    begun = time.monotonic()
    timer = threading.Timer(0.05, other.hint, [[(HOST, port)]])
    timer.start()
    assert network.listen(20.0) == (True, set())
    assert time.monotonic() - begun < 19.0
    timer.join()
    other.close()


def test_a_hint_that_came_before_is_not_lost(network, port):
    network.hint([(HOST, port)])
    assert network.listen(20.0)[0]


@pytest.mark.parametrize("seconds", [0.0, -1.0, 0.05])
def test_without_a_hint_the_wait_ends_when_its_time_is_over(network, seconds):
    begun = time.monotonic()
    assert network.listen(seconds) == (False, set())
    assert seconds <= time.monotonic() - begun < seconds + 5.0


def test_a_flood_of_datagrams_does_not_prolong_the_wait(network, port, monkeypatch):
    network.hint([(HOST, port)])
    drained = []

    def nothing_of_use():
        # What came in stays there, as if more came in than can be read.
        drained.append(True)
        if len(drained) > 1_000_000:
            raise RuntimeError("the wait does not end")
        return False, {"n2"}

    monkeypatch.setattr(network, "drain", nothing_of_use)
    assert network.listen(0.02) == (False, {"n2"})
    assert drained


def test_one_look_reads_a_bounded_number_of_datagrams(network, port, monkeypatch):
    read = []

    class Endless:
        @staticmethod
        def recvfrom(size):
            read.append(size)
            return datagram(kind="dance"), (HOST, 9)

        @staticmethod
        def close():
            return None

    network.close()
    monkeypatch.setattr(network, "_socket", Endless)
    assert network.drain() == (False, set())
    assert len(read) == PORTION


def test_a_flood_of_hints_costs_few_turns_and_loses_none(network, n2, port):
    begun = time.monotonic()
    turns, sent = 0, 0
    while time.monotonic() < begun + 3 * HINT_PAUSE:
        n2.sendto(datagram(), (HOST, port))
        sent += 1
        turns += network.listen(0.001)[0]
    taken = time.monotonic() - begun
    assert sent > 2 * turns
    assert 1 <= turns <= taken / HINT_PAUSE + 1
    n2.sendto(datagram(), (HOST, port))
    assert network.listen(20.0)[0], "a hint that came too soon counts later"


def test_of_one_senders_flood_little_is_looked_at_and_the_others_are_heard(network, n2, port):
    n3 = own("n3", port)
    network.ask(Member("n3", 3, HOST, port + 6))
    for _datagram in range(10 * FLOOD):
        n2.sendto(datagram(kind="ask"), (HOST, port))
    n3.drain()
    n3.close()
    assert network.listen(0.05) == (False, {"n3"})
    assert network.refused()[0] == 9 * FLOOD
