# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What nodes say to each other in datagrams, and whom they believe.

There are three messages: "are you there?", which every process of a node answers, "look at the
storage now", which saves the receiver its wait for the next turn, and "send me keepalives", which
an LRM's sender answers for a few seconds (``cluster/lrm/keepalives.py``).  None carries a decision.
An LRM's answer names the heartbeat that it wrote last, which shows a node on another storage
(``cluster/crm/lease_proof.py``).

Only members are heard: by address and port, before anything else is looked at, and by a MAC under
the cluster key if the policy enforces that; only a question needs no MAC, as its answer goes to a
member, whose key this node may not have.  A question has a nonce, and an answer counts only with
the nonce of a question that was asked a moment ago, so that no old one can be repeated.

Keepalives and requests for them need a MAC under every policy.  A keepalive counts once, and only
with the nonce of a request of the last seconds: its count rises with each one of that nonce.
"""

from __future__ import annotations

import enum
import json
import math
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ...cluster.lrm.keepalives import ASKED_FOR
from ...documents import read_document, row, text
from ...errors import DocumentError
from ...storage.authentication import Authenticate, Authentication
from ..configuration import Member

MAX_DATAGRAM = 512
"""Bytes of the longest datagram; what is longer is cut off, and is none of ours."""

SIGNED_AS = "datagram"
"""The purpose of a datagram's MAC."""

NONCE_BYTES = 8
NONCE_COUNTS = 2.0
"""Seconds for which the answer to a question counts."""

MAX_BEAT = 2**63 - 1

Address = tuple[str, int]


class Kind(enum.Enum):
    """The kinds of messages.

    ALIVE is a keepalive, STOPS the same of a node whose LRM does not work; WATCH asks for them.
    """

    ASK = "ask"
    ANSWER = "answer"
    LOOK = "look"
    WATCH = "watch"
    ALIVE = "alive"
    STOPS = "stops"


SIGNED_ALWAYS = frozenset({Kind.WATCH, Kind.ALIVE, Kind.STOPS})
"""Kinds that need a right MAC under every policy."""


@dataclass(frozen=True)
class Message:
    """One datagram.

    *beat* is the heartbeat that an answer names, None for none, or the count of a keepalive.
    """

    cluster: str
    kind: Kind
    node: str
    nonce: str = ""
    beat: int | None = None

    def signed(self) -> bytes:
        """Return what is under the MAC, beside the cluster's name."""
        fields = (self.kind.value, self.node, self.nonce, self.beat)
        return json.dumps(fields).encode()


def encode(message: Message, authentication: Authentication) -> bytes:
    """Return the bytes of a datagram."""
    document: dict[str, str | int] = {
        "cluster": message.cluster,
        "kind": message.kind.value,
        "node": message.node,
    }
    if message.nonce:
        document["nonce"] = message.nonce
    if message.beat is not None:
        document["beat"] = message.beat
    if authentication.signs:
        document["mac"] = authentication.mac(SIGNED_AS, message.signed()).hex()
    return json.dumps(document).encode()


def decode(data: bytes) -> tuple[Message, str] | None:
    """Return the message in *data* and its MAC, "" without one; None if it is none of ours."""
    try:
        document = row(read_document(data, "A datagram", MAX_DATAGRAM))
        cluster, node, nonce, mac = (
            text(document.get(key, "")) for key in ("cluster", "node", "nonce", "mac")
        )
        message = Message(
            cluster, Kind(document.get("kind")), node, nonce, _beat(document.get("beat"))
        )
    except (DocumentError, ValueError):
        return None
    return message, mac


def _beat(value: object) -> int | None:
    """Return the heartbeat that a datagram names, None if it names none."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_BEAT:
        return value
    return None


@dataclass
class Correspondence:
    """What one process has asked, and whom it believes; not for several threads.

    *sources* has the member by each address and port from which it may write.  *refused* counts
    the datagrams that were not believed, *last_refused* is where the last one came from.
    *other_keys* says when a member last answered a question of this node without a right MAC.
    """

    cluster: str
    node: str
    sources: Mapping[Address, str]
    authenticate: Authenticate
    refused: int = 0
    last_refused: Address | None = None
    other_keys: dict[str, float] = field(default_factory=dict)
    _queries: dict[str, dict[str, float]] = field(default_factory=dict)
    _watched: dict[str, dict[str, tuple[float, int]]] = field(default_factory=dict)
    """When each request for keepalives was made, and the highest count with its nonce."""

    def message(self, kind: Kind, nonce: str = "", beat: int | None = None) -> bytes:
        """Return a datagram of this node."""
        made = Message(self.cluster, kind, self.node, nonce, beat)
        return encode(made, self.authenticate())

    def question(self, node: str, now: float) -> bytes:
        """Return a new question for *node*, whose answer counts from *now* on."""
        queries = self._queries.setdefault(node, {})
        for nonce in [nonce for nonce, when in queries.items() if now - when > NONCE_COUNTS]:
            del queries[nonce]
        nonce = secrets.token_hex(NONCE_BYTES)
        queries[nonce] = now
        return self.message(Kind.ASK, nonce)

    def request(self, node: str, now: float) -> bytes:
        """Return a new request for keepalives to *node*, whose nonce counts from *now* on."""
        watched = self._watched.setdefault(node, {})
        for nonce in [one for one, seen in watched.items() if now - seen[0] > ASKED_FOR]:
            del watched[nonce]
        nonce = secrets.token_hex(NONCE_BYTES)
        watched[nonce] = (now, 0)
        return self.message(Kind.WATCH, nonce)

    def believed(self, data: bytes, sender: Address, now: float) -> Message | None:
        """Return the message in *data* if a member sent it, and an answer only if it was asked."""
        node = self.sources.get(sender)
        decoded = decode(data) if node is not None else None
        if decoded is not None:
            message, mac = decoded
            if (
                message.cluster == self.cluster
                and message.node == node
                and message.kind in SIGNED_ALWAYS
            ):
                if self._is_signed(message, mac):
                    # One that is late, or comes twice, is a member's all the same.
                    return message if self._counts(message, now) else None
            elif (
                message.cluster == self.cluster
                and message.node == node
                and (message.kind is not Kind.ANSWER or self._was_asked(message, now))
            ):
                if message.kind is Kind.ASK or self._is_authentic(message, mac):
                    return message
                if message.kind is Kind.ANSWER:
                    self.other_keys[message.node] = now
        self.refuse(sender)
        return None

    def refuse(self, sender: Address) -> None:
        """Count a datagram that is not believed, or not even looked at."""
        self.refused += 1
        self.last_refused = sender

    def _is_authentic(self, message: Message, mac: str) -> bool:
        return not self.authenticate().enforces or self._is_signed(message, mac)

    def _counts(self, message: Message, now: float) -> bool:
        """Return whether a signed keepalive is new; record its count.  Requests always count."""
        if message.kind is Kind.WATCH:
            return bool(message.nonce)
        watched = self._watched.get(message.node, {})
        when, highest = watched.get(message.nonce, (-math.inf, 0))
        if now - when > ASKED_FOR or message.beat is None or message.beat <= highest:
            return False
        watched[message.nonce] = (when, message.beat)
        return True

    def _is_signed(self, message: Message, mac: str) -> bool:
        """Return whether *mac* is one of this message under a key of the cluster."""
        authentication = self.authenticate()
        try:
            made = bytes.fromhex(mac)
        except ValueError:
            return False
        return authentication.accepts(made, SIGNED_AS, message.signed())

    def _was_asked(self, message: Message, now: float) -> bool:
        queries = self._queries.get(message.node, {})
        if not message.nonce and not self.authenticate().enforces:
            # A node of the version before answers without the nonce.
            return any(now - when <= NONCE_COUNTS for when in queries.values())
        when = queries.get(message.nonce)
        return when is not None and now - when <= NONCE_COUNTS


def sources_of(members: Iterable[Member]) -> dict[Address, str]:
    """Return the name of the member that may write from each address and port."""
    return {(member.address, port): member.name for member in members for port in member.ports()}
