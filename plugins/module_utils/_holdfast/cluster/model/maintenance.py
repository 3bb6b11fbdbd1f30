# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A maintenance, of the whole cluster or of one node: why, by whom, since when, until when.

Both times are wall time, seconds since 1970: an expiry must outlive the manager that
first saw it, and a monotonic clock dies with its machine.  A wall clock may be wrong,
so nothing unsafe hangs on it.  Maintenance only ever holds the manager back, and is
no part of any proof: what is done after an end that came too early is what is done
without maintenance, each act with its own proof.  An end that comes too late leaves
the cluster held.  And a clock that jumped is not believed at once, see
``crm/global_maintenance.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from typing import Any

NOT_PROVED = " (not proved off)"
"""How the reason of a fence by hand ends once that has failed: the node may be on."""

FENCE_REASON = "fenced: "
"""With this begins the reason for which a node that was fenced by hand is kept empty.

The playbooks have the same, see ``tasks/begin.yml`` there.
"""


@dataclass(frozen=True)
class Maintenance:
    """Why, who asked, since when, and until when; *until* is 0 if it has no expiry."""

    reason: str = ""
    owner: str = ""
    since: float = 0.0
    until: float = 0.0

    @property
    def identity(self) -> tuple[float, float]:
        """What tells this maintenance from another of the same node: its two times.

        With another expiry it is another one: who puts the end off while the manager
        ends it is not overruled.
        """
        return self.since, self.until

    def expired(self, wall: float) -> bool:
        """Return whether its time is over at *wall*."""
        return 0 < self.until <= wall


EMPTIED = Maintenance("to be emptied")
"""Stands in a plan for a node that nobody drained, and that is to be emptied by it."""


def maintenance_document(maintenance: Maintenance) -> dict[str, Any]:
    """Return a maintenance as plain data."""
    return asdict(maintenance)


def maintenance_from_document(row: Mapping[str, Any]) -> Maintenance:
    """Read back what ``maintenance_document`` made; one without *until* has no expiry."""
    return Maintenance(
        str(row["reason"]), str(row["owner"]), float(row["since"]), float(row.get("until", 0.0))
    )


def with_times_told(document: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return what ``maintenance_document`` made, or a like one, with its times in UTC for people.

    One without an expiry has none there.
    """
    if document is None:
        return None
    times = {key: document[key] for key in ("since", "until") if document.get(key) is not None}
    return {**document, **{key: utc(at) if at else None for key, at in times.items()}}


def fenced_by_hand(maintenance: Maintenance) -> bool:
    """Return whether it is that of a fence by hand, and not somebody's drain."""
    return maintenance.reason.startswith(FENCE_REASON)


def told(maintenance: Maintenance) -> str:
    """Return a maintenance in a few words: who and why, and until when."""
    by = f"by {maintenance.owner}" if maintenance.owner else ""
    words = ": ".join(part for part in (by, maintenance.reason) if part) or "no reason given"
    return f"{words}; until {utc(maintenance.until)}" if maintenance.until else words


def time_from_text(text: str) -> float:
    """Return a time in seconds since 1970 from that number or from ISO 8601 with a zone.

    Raises ``ValueError`` for anything else.
    """
    try:
        return float(text)
    except ValueError:
        pass
    # Python 3.9 and 3.10 do not know the Z.
    at = datetime.fromisoformat(text[:-1] + "+00:00" if text.endswith("Z") else text)
    if at.tzinfo is None:
        raise ValueError(f"{text} has no time zone")
    return at.timestamp()


def utc(at: float) -> str:
    """Return a time in seconds since 1970 as ISO 8601 in UTC; a dash where it is none."""
    try:
        return datetime.fromtimestamp(at, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, ValueError, OSError):
        return "-"
