# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Managers' records one after the other: what did not change is neither encoded nor decoded again.

From one record to the next few services change, and all are in each record.  So the cost is that of
a comparison for each service and node, and of the codec for those that changed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Generic, TypeVar

from ... import names
from ...documents import check_keys, row
from ...errors import DocumentError
from .membership import Membership, membership_document
from .state import ClusterState, NodeStatus, ServiceStatus
from .state_codec import (
    node_from_row,
    row_of,
    service_from_row,
    state_document,
    state_from_document,
)

T = TypeVar("T")


class StateWriter:
    """Encodes the records that one process writes."""

    def __init__(self) -> None:
        """Encode the first one as a whole."""
        self._services = _Texts[ServiceStatus](row_of)
        self._nodes = _Texts[NodeStatus](row_of)
        self._membership = _Texts[Membership](membership_document)

    def encode(self, state: ClusterState, more: Mapping[str, Any]) -> bytes:
        """Return *state* as the payload of a record, with what *more* is in its document."""
        document = state_document(replace(state, services={}, nodes={}, membership=None))
        document.update(more)
        del document["services"], document["nodes"]
        text = _text(document)[:-1]
        services, nodes = self._services.text(state.services), self._nodes.text(state.nodes)
        parts = [text, f'"services":{{{services}}}', f'"nodes":{{{nodes}}}']
        if state.membership is not None:
            parts.append(self._membership.text({"membership": state.membership}))
        return (",".join(parts) + "}").encode()


class StateReader:
    """Decodes the records that one process reads."""

    def __init__(self) -> None:
        """Decode the first one as a whole."""
        self._services = _Values(service_from_row, names.SERVICE_ID, "a service id")
        self._nodes = _Values(node_from_row, names.NODE_NAME, "a node name")

    def decode(self, document: object) -> ClusterState:
        """Return the state of a document, as ``state_from_document`` does.

        A service or node that did not change is the same object as before.
        """
        given = row(document)
        state = state_from_document({**given, "services": {}, "nodes": {}})
        services = self._services.read(given.get("services", {}))
        nodes = self._nodes.read(given.get("nodes", {}))
        return replace(state, services=services, nodes=nodes)


class _Texts(Generic[T]):
    """The JSON text of values by key, made again for another object only."""

    def __init__(self, plain: Callable[[T], Any]) -> None:
        """*plain* makes plain data of a value."""
        self._plain = plain
        self._known: dict[str, tuple[T, str]] = {}

    def text(self, values: Mapping[str, T]) -> str:
        """Return the members of an object with these *values*, without its braces."""
        known, made = self._known, {}
        for key, value in values.items():
            piece = known.get(key)
            if piece is None or piece[0] is not value:
                piece = value, f"{_text(key)}:{_text(self._plain(value))}"
            made[key] = piece
        self._known = made
        return ",".join([piece[1] for piece in made.values()])


class _Values(Generic[T]):
    """Values by key, read again only from a row that differs from the last one."""

    def __init__(self, read: Callable[[object], T], key: re.Pattern[str], what: str) -> None:
        """*read* takes a row; each key is *what* the pattern *key* takes."""
        self._read, self._key, self._what = read, key, what
        self._known: dict[str, tuple[object, T]] = {}

    def read(self, rows: object) -> dict[str, T]:
        """Return the values of *rows*; ``DocumentError`` names the key of a wrong one."""
        known, found = self._known, {}
        for key, given in row(rows).items():
            last = known.get(key)
            if last is None or last[0] != given:
                check_keys((key,), self._key, self._what)
                try:
                    last = given, self._read(given)
                except DocumentError as error:
                    raise DocumentError(f"{key}: {error}") from None
            found[key] = last
        self._known = found
        return {key: value for key, (_given, value) in found.items()}


def _text(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
