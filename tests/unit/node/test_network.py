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
    Network,
)
from ansible_collections.holdfast.ha.tests.unit.node.sample_node import CLUSTER, HOST, datagram


@pytest.fixture
def network(port):
    found = Network(CLUSTER, "n1", HOST, port)
    yield found
    found.close()


def test_a_port_in_use_is_named_with_the_node_that_wants_it(network, port):
    with pytest.raises(InputError) as caught:
        Network(CLUSTER, "n2", HOST, port)
    assert str(caught.value) == (
        f"port: {port} is not accepted; expected a port that is free on {HOST};"
        " node n2 cannot listen there."
    )


def test_an_address_of_another_machine_is_refused(port):
    with pytest.raises(InputError, match=r"address: '192\.0\.2\.1' .* an address of this machine"):
        Network(CLUSTER, "n1", "192.0.2.1", port)


def test_a_port_that_was_given_back_can_be_taken_again(port):
    for _turn in range(2):
        Network(CLUSTER, "n1", HOST, port).close()


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
def test_a_datagram_that_is_not_ours_does_nothing(network, stranger, port, data):
    stranger.sendto(data, (HOST, port))
    assert network.listen(0.02) == (False, set())
    stranger.sendto(datagram(), (HOST, port))
    assert network.listen(1.0) == (True, set())


def test_a_question_of_another_cluster_is_not_answered(network, stranger, port):
    stranger.settimeout(0.2)
    for cluster, answered in (("other", False), (CLUSTER, True)):
        stranger.sendto(datagram(cluster=cluster, kind="ask"), (HOST, port))
        network.listen(0.02)
        try:
            answer = json.loads(stranger.recv(512))
        except socket.timeout:
            answer = None
        ours = {"cluster": CLUSTER, "kind": "answer", "node": "n1"}
        assert answer == (ours if answered else None)


def test_a_node_that_is_asked_answers_with_its_name_from_each_of_its_ports(network, port):
    others = [Network(CLUSTER, "n2", HOST, port + 3 + place) for place in range(3)]
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
    other = Network(CLUSTER, "n2", HOST, port + 3)
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


def test_an_answer_names_no_heartbeat_that_was_written_long_ago(network, stranger, port):
    network.wrote(41)
    network._wrote = (41, time.monotonic() - BEAT_COUNTS)
    stranger.sendto(datagram(kind="ask"), (HOST, port))
    network.listen(0.02)
    assert "beat" not in json.loads(stranger.recv(512))


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
def test_a_heartbeat_that_cannot_be_one_is_passed_over(network, stranger, port, beat, known):
    network.ask(Member("n2", 2, HOST, port + 3))
    stranger.sendto(datagram("answer", beat=beat), (HOST, port))
    assert network.listen(0.05) == (False, {"n2"})
    assert network.take_beats() == ({"n2": beat} if known else {})


def test_heartbeats_of_nodes_that_were_not_asked_fill_no_memory(network, stranger, port):
    network.ask(Member("n2", 2, HOST, port + 3))
    for number in range(20):
        stranger.sendto(datagram("answer", node=f"x{number}", beat=1), (HOST, port))
    network.listen(0.05)
    assert network.take_beats() == {}


def test_nobody_there_is_no_error(network, port):
    for _turn in range(3):
        network.ask(Member("n2", 2, HOST, port + 3))
        network.hint([(HOST, port + 3), ("192.0.2.1", 9), ("300.1.1.1", 9)])
        assert network.listen(0.01) == (False, set())


def test_a_hint_ends_the_wait_at_once(network, port):
    other = Network(CLUSTER, "n2", HOST, port + 3)
    begun = time.monotonic()
    timer = threading.Timer(0.05, other.hint, [[(HOST, port)]])
    timer.start()
    assert network.listen(20.0) == (True, set())
    assert time.monotonic() - begun < 10.0
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
    assert len(read) == 1000
