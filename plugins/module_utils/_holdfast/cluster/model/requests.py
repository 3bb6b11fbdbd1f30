# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an operator asks for once: a move, a stop with a timeout, or the end of an error.

A request stands in the wanted configuration with the time at which it was made.  The
manager remembers in the service's status the last one that it has heard, so that each is
answered once: it is carried out, or refused with a reason, and never tried again later.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ... import names
from ...errors import InputError

MOVE = "move"
STOP = "stop"
CLEAR = "clear"


@dataclass(frozen=True)
class Request:
    """One request: ``move`` to *node*, ``stop`` within *timeout* seconds, or ``clear`` its error.

    *made* is seconds since 1970 and tells one request from another.  *live* False means
    that a move stops the service and starts it again, even where it could migrate.
    """

    kind: str
    made: float
    node: str = ""
    timeout: float | None = None
    live: bool = True


def request_document(request: Request) -> dict[str, Any]:
    """Return a request as plain data."""
    return asdict(request)


def request_from_document(row: Mapping[str, Any]) -> Request:
    """Read back what ``request_document`` made; raises ``InputError`` where it is wrong."""
    kind = row.get("kind")
    if kind not in (MOVE, STOP, CLEAR):
        raise InputError("kind", kind, "'move', 'stop' or 'clear'")
    timeout = row.get("timeout")
    return Request(
        kind=kind,
        made=float(row.get("made", 0.0)),
        node=names.node_name(row.get("node"), "node") if kind == MOVE else "",
        timeout=float(timeout) if timeout is not None else None,
        live=bool(row.get("live", True)),
    )
