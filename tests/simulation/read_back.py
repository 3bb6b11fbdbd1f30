# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Records that a daemon reads when it starts or takes over go through the real code.

Elsewhere in a simulation a record is a value.  Here the record of another process is encoded,
decoded and compared, so that a field that the code drops is noticed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    Report,
    report_document,
    report_from_document,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    ClusterState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state_codec import (  # noqa: E501
    state_document,
    state_from_document,
)

if TYPE_CHECKING:
    from ansible_collections.holdfast.ha.tests.simulation.rules import Rules

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
    """Return *value* encoded and decoded; S8: it is what was written.

    A record that is read again comes to the same.
    """
    if value is None:
        return None
    known = rules.read_back.get(id(value))
    if known is not None and known[0] is value:
        return cast(T, known[1])
    read = decode(json.loads(json.dumps(encode(value))))
    if read != value:
        rules.broken("S8", f"{what} is read back otherwise than it was written")
    rules.read_back[id(value)] = (value, read)
    return read
