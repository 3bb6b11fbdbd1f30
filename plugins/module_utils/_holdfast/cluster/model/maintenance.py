# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A maintenance of the cluster or of one node: reason, owner, beginning and expiry.

Both times are wall time, seconds since 1970, because an expiry must outlive the manager.  A wall
clock may be wrong, so no safety depends on it: maintenance only makes the manager do less and is
never part of a proof.  An end that comes too early leads to normal operation, with a proof for each
action; one that comes too late leaves the cluster paused.  A clock that jumped is not trusted at
once, see ``crm/pausing.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from typing import Any

from ...documents import fields_of

CLUSTER = ""
"""The key of the cluster's own maintenance among those of nodes."""

NOT_PROVED = " (not proved off)"
"""The end of a maintenance's reason when its fence by hand failed: the node may be on."""

FENCE_REASON = "fenced: "
"""The beginning of a maintenance's reason that a fence by hand sets.

The playbooks have the same, see ``tasks/begin.yml`` there.
"""


@dataclass(frozen=True)
class Maintenance:
    """Reason, owner, beginning and expiry; *until* is 0 without an expiry."""

    reason: str = ""
    owner: str = ""
    since: float = 0.0
    until: float = 0.0

    @property
    def identity(self) -> tuple[float, float]:
        """The two times, which identify this maintenance among those of the same node.

        With another expiry it is another maintenance: an extension is not lost if the manager ends
        the old one at the same time.
        """
        return self.since, self.until

    def expired(self, wall: float) -> bool:
        """Return whether it has expired at *wall*."""
        return 0 < self.until <= wall


EMPTIED = Maintenance("to be emptied")
"""The maintenance, in a plan, of a node that the plan drains."""


def maintenance_document(maintenance: Maintenance) -> dict[str, Any]:
    """Return a maintenance as plain data."""
    return asdict(maintenance)


def maintenance_from_document(value: object) -> Maintenance:
    """Return the maintenance of a document; without *until* it has no expiry.

    Raises ``DocumentError`` if it is wrong.
    """
    return Maintenance(**_FIELDS.read(value))


_FIELDS = replace(fields_of(Maintenance), required=frozenset({"reason", "owner", "since"}))


def with_times_told(document: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return a maintenance document with its times as text in UTC.

    An expiry of 0 becomes None.
    """
    if document is None:
        return None
    times = {key: document[key] for key in ("since", "until") if document.get(key) is not None}
    return {**document, **{key: utc(at) if at else None for key, at in times.items()}}


def fenced_by_hand(maintenance: Maintenance) -> bool:
    """Return whether this is the maintenance of a fence by hand."""
    return maintenance.reason.startswith(FENCE_REASON)


def maintenance_text(maintenance: Maintenance) -> str:
    """Return owner, reason and expiry of a maintenance as text."""
    by = f"by {maintenance.owner}" if maintenance.owner else ""
    words = ": ".join(part for part in (by, maintenance.reason) if part) or "no reason given"
    return f"{words}; until {utc(maintenance.until)}" if maintenance.until else words


def time_from_text(text: str) -> float:
    """Return seconds since 1970 from a number or from ISO 8601 with a time zone.

    Raises ``ValueError`` for anything else.
    """
    try:
        return float(text)
    except ValueError:
        pass
    # Python 3.9 and 3.10 do not accept the Z.
    at = datetime.fromisoformat(text[:-1] + "+00:00" if text.endswith("Z") else text)
    if at.tzinfo is None:
        raise ValueError(f"{text} has no time zone")
    return at.timestamp()


def utc(at: float) -> str:
    """Return a time in seconds since 1970 as ISO 8601 in UTC; a dash if it is not valid."""
    try:
        return datetime.fromtimestamp(at, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, ValueError, OSError):
        return "-"
