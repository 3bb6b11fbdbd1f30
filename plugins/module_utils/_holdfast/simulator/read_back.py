# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A record as a process reads it that begins, or takes over: through the real code.

Elsewhere in a simulation a record is a value.  A field that the code for records drops would be
missed by nobody, so what another process wrote is encoded and decoded here, and compared.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from ..cluster.model.report import Report, report_document, report_from_document
from ..cluster.model.state import ClusterState
from ..cluster.model.state_codec import state_document, state_from_document

if TYPE_CHECKING:
    from .rules import Rules

T = TypeVar("T")


def read_report(rules: Rules, report: Report | None) -> Report | None:
    """Return the report of a node as its next LRM reads it."""
    return _read(rules, "the report of an LRM", report, report_document, report_from_document)


def read_state(rules: Rules, state: ClusterState | None) -> ClusterState | None:
    """Return a manager's record as the next manager reads it."""
    return _read(rules, "the record of a manager", state, state_document, state_from_document)


def _read(
    rules: Rules,
    what: str,
    value: T | None,
    encode: Callable[[T], Mapping[str, Any]],
    decode: Callable[[Mapping[str, Any]], T],
) -> T | None:
    """Return *value* encoded and decoded; S8: it is what was written."""
    if value is None:
        return None
    read = decode(json.loads(json.dumps(encode(value))))
    if read != value:
        rules.broken("S8", f"{what} is read back otherwise than it was written")
    return read
