# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who is believed on the network: a member, with the key, and an answer only if it was asked."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.lrm.keepalives import (
    ASKED_FOR,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.datagrams import (
    MAX_DATAGRAM,
    NONCE_COUNTS,
    SIGNED_ALWAYS,
    Correspondence,
    Kind,
    Message,
    decode,
    encode,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.authentication import (
    KEY_BYTES,
    Authentication,
    Policy,
)
from ansible_collections.holdfast.ha.tests.unit.node.sample_node import (
    CLUSTER,
    HOST,
    correspondence,
)
from hypothesis import given
from hypothesis import strategies as st

PORT = 7410
FROM_N1, FROM_N2, FROM_N3 = (HOST, PORT + 2), (HOST, PORT + 3), (HOST, PORT + 6)
KEY, OTHER = b"k" * KEY_BYTES, b"o" * KEY_BYTES
OFF = Authentication()
WARN = Authentication(Policy.WARN, CLUSTER, (KEY,))
ENFORCE = Authentication(Policy.ENFORCE, CLUSTER, (KEY,))
POLICIES = (OFF, WARN, ENFORCE)


def of(node: str, authentication: Authentication) -> Correspondence:
    return correspondence(node, PORT, authentication)


def nonce_of(question: bytes) -> str:
    return str(json.loads(question)["nonce"])


@pytest.mark.parametrize("policy", POLICIES)
def test_a_question_and_its_answer_are_believed(policy: Authentication) -> None:
    n1, n2 = of("n1", policy), of("n2", policy)
    question = n2.believed(n1.question("n2", 10.0), FROM_N1, 10.0)
    assert question is not None
    answer = n1.believed(n2.message(Kind.ANSWER, question.nonce, 41), FROM_N2, 10.5)
    assert answer == Message(CLUSTER, Kind.ANSWER, "n2", question.nonce, 41)
    assert (n1.refused, n2.refused) == (0, 0)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("kind", sorted(set(Kind) - SIGNED_ALWAYS, key=str))
def test_nobody_but_a_member_is_heard(policy: Authentication, kind: Kind) -> None:
    n1, n2 = of("n1", policy), of("n2", policy)
    nonce = nonce_of(n1.question("n2", 10.0))
    data = n2.message(kind, nonce)
    for stranger in ((HOST, PORT + 9), ("192.0.2.1", PORT + 3), FROM_N3):
        assert n1.believed(data, stranger, 10.0) is None
    assert n1.refused == 3
    assert n1.believed(data, FROM_N2, 10.0) is not None


@pytest.mark.parametrize("kind", [Kind.ANSWER, Kind.LOOK])
@pytest.mark.parametrize(
    "signed", [OFF, replace(ENFORCE, keys=(OTHER,)), replace(ENFORCE, cluster="x")]
)
def test_who_has_no_key_is_not_believed_even_from_a_members_port(
    kind: Kind, signed: Authentication
) -> None:
    n1, n2 = of("n1", ENFORCE), of("n2", signed)
    nonce = nonce_of(n1.question("n2", 10.0))
    assert n1.believed(n2.message(kind, nonce), FROM_N2, 10.0) is None
    assert n1.other_keys == ({"n2": 10.0} if kind is Kind.ANSWER else {})


def test_a_member_with_another_key_is_answered_so_that_it_can_know() -> None:
    n1, n2 = of("n1", ENFORCE), of("n2", replace(ENFORCE, keys=(OTHER,)))
    question = n1.believed(n2.question("n1", 10.0), FROM_N2, 10.0)
    assert question is not None
    assert n2.believed(n1.message(Kind.ANSWER, question.nonce), FROM_N1, 10.1) is None
    assert n2.other_keys == {"n1": 10.1}
    assert n2.believed(n1.message(Kind.ANSWER, "00"), FROM_N1, 10.2) is None
    assert n2.other_keys == {"n1": 10.1}, "nobody was asked with that nonce"


@pytest.mark.parametrize("policy", POLICIES)
def test_an_answer_counts_only_for_a_question_of_a_moment_ago(policy: Authentication) -> None:
    n1, n2 = of("n1", policy), of("n2", policy)
    assert n1.believed(n2.message(Kind.ANSWER, "ab"), FROM_N2, 10.0) is None
    answer = n2.message(Kind.ANSWER, nonce_of(n1.question("n2", 10.0)))
    assert n1.believed(answer, FROM_N2, 10.0 + NONCE_COUNTS) is not None
    assert n1.believed(answer, FROM_N2, 10.1 + NONCE_COUNTS) is None
    n1.question("n2", 13.0)
    assert n1.believed(answer, FROM_N2, 13.0) is None, "it is of an earlier question"


def test_a_node_of_the_version_before_answers_without_a_nonce() -> None:
    for policy, heard in ((OFF, True), (WARN, True), (ENFORCE, False)):
        n1 = of("n1", policy)
        n1.question("n2", 10.0)
        answer = encode(Message(CLUSTER, Kind.ANSWER, "n2"), policy)
        assert (n1.believed(answer, FROM_N2, 10.0) is not None) is heard


@pytest.mark.parametrize(
    "changed",
    [{"kind": "look"}, {"nonce": "00"}, {"beat": 42}, {"beat": None}, {"mac": "00"}, {"mac": "x"}],
)
def test_no_field_of_a_datagram_can_be_changed(changed: dict[str, object]) -> None:
    n1, n2 = of("n1", ENFORCE), of("n2", ENFORCE)
    answer = n2.message(Kind.ANSWER, nonce_of(n1.question("n2", 10.0)), 41)
    document = {**json.loads(answer), **changed}
    assert n1.believed(json.dumps(document).encode(), FROM_N2, 10.0) is None
    assert n1.believed(answer, FROM_N2, 10.0) is not None


def test_each_of_two_keys_is_accepted() -> None:
    n1 = of("n1", replace(ENFORCE, keys=(OTHER, KEY)))
    n2 = of("n2", ENFORCE)
    assert n1.believed(n2.message(Kind.LOOK), FROM_N2, 10.0) is not None
    assert n2.believed(n1.message(Kind.LOOK), FROM_N1, 10.0) is None


@pytest.mark.parametrize("policy", [WARN, ENFORCE])
@pytest.mark.parametrize("kind", [Kind.ALIVE, Kind.STOPS])
def test_keepalives_count_once_each_in_their_order(policy: Authentication, kind: Kind) -> None:
    n1, n2 = of("n1", policy), of("n2", policy)
    nonce = nonce_of(n1.request("n2", 10.0))
    sent = [n2.message(kind, nonce, count) for count in (1, 2, 3)]
    assert n1.believed(sent[0], FROM_N2, 10.1) == Message(CLUSTER, kind, "n2", nonce, 1)
    assert n1.believed(sent[2], FROM_N2, 10.2) is not None
    for repeated in sent:
        assert n1.believed(repeated, FROM_N2, 10.3) is None
    assert n1.refused == 0, "they are from a member"


def test_a_recorded_keepalive_shows_a_dead_node_alive_for_seconds_only() -> None:
    n1, n2 = of("n1", WARN), of("n2", WARN)
    nonce = nonce_of(n1.request("n2", 10.0))
    recorded = [n2.message(Kind.ALIVE, nonce, count) for count in range(1, 100)]
    assert n1.believed(recorded[0], FROM_N2, 10.0 + ASKED_FOR) is not None
    n1.request("n2", 10.0 + ASKED_FOR)
    for one in recorded:
        assert n1.believed(one, FROM_N2, 10.1 + ASKED_FOR) is None
    assert of("n1", WARN).believed(recorded[5], FROM_N2, 10.0) is None, "of another process"


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("kind", sorted(SIGNED_ALWAYS, key=str))
@pytest.mark.parametrize("signed", [OFF, replace(WARN, keys=(OTHER,)), replace(WARN, cluster="x")])
def test_no_policy_believes_a_keepalive_or_a_request_without_the_key(
    policy: Authentication, kind: Kind, signed: Authentication
) -> None:
    n1, n2 = of("n1", policy), of("n2", signed)
    nonce = nonce_of(n1.request("n2", 10.0))
    assert n1.believed(n2.message(kind, nonce, 1), FROM_N2, 10.0) is None
    assert n1.refused == 1


@pytest.mark.parametrize(
    "changed", [{"kind": "alive"}, {"beat": 9}, {"nonce": "00"}, {"beat": None}]
)
def test_no_field_of_a_keepalive_can_be_changed(changed: dict[str, object]) -> None:
    n1, n2 = of("n1", WARN), of("n2", WARN)
    sent = n2.message(Kind.STOPS, nonce_of(n1.request("n2", 10.0)), 1)
    document = {**json.loads(sent), **changed}
    assert n1.believed(json.dumps(document).encode(), FROM_N2, 10.0) is None
    assert n1.believed(sent, FROM_N2, 10.0) is not None


def test_requests_that_nobody_answers_fill_no_memory() -> None:
    n1 = of("n1", WARN)
    for turn in range(1000):
        n1.request("n2", turn * 0.5)
    assert sum(map(len, n1._watched.values())) <= ASKED_FOR / 0.5 + 1


def test_questions_that_nobody_answers_fill_no_memory() -> None:
    n1 = of("n1", OFF)
    for turn in range(1000):
        n1.question("n2", turn * 0.5)
    assert sum(map(len, n1._queries.values())) <= NONCE_COUNTS / 0.5 + 1


def test_the_longest_datagram_fits() -> None:
    message = Message("c" * 48, Kind.ANSWER, "n" * 63, "f" * 16, 2**63 - 1)
    data = encode(message, ENFORCE)
    assert len(data) <= MAX_DATAGRAM
    decoded = decode(data)
    assert decoded is not None
    assert decoded[0] == message


@given(st.binary(max_size=MAX_DATAGRAM))
def test_bytes_that_are_no_message_are_passed_over(data: bytes) -> None:
    n1 = of("n1", OFF)
    assert n1.believed(data, FROM_N2, 10.0) is None
    assert n1.refused == 1
