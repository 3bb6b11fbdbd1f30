# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A daemon's measurements of itself, in a small file from which metrics are made.

No decision depends on them: a measurement that cannot be written is dropped.  The file is in the
node's run directory and is replaced as a whole, without a sync.  Times in it are of the machine's
monotonic clock, which all its processes share.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...documents import items, number, read_document_file, row, text, whole, wrong
from ...errors import DocumentError
from ..run_notes import replace_file

EVERY = 5.0
"""Seconds between two writes: often enough for metrics, which are taken four times a minute."""

LEASE_RENEWED_AT = "lease_renewed_at"
LEASE_FAIL_SECONDS = "lease_fail_seconds"
LEASE_LOOK = "lease_look"
LEASE_RENEWAL = "lease_renewal"
HEARTBEAT_WRITE = "heartbeat_write"
ROUND_TOOK = "round"
STORAGE_LOOK = "storage_look"
ROUNDS_THROWN_AWAY = "rounds_thrown_away"
WORKERS_BUSY = "workers_busy"
JOB = "job"
FENCE = "fence"
FENCES_UNDER_WAY = "fences_under_way"
DATAGRAMS_REFUSED = "datagrams_refused"
UNANSWERED = "unanswered"

Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Span:
    """Number of timings since the daemon started, their seconds in total and of the last."""

    count: int = 0
    total: float = 0.0
    last: float = 0.0


@dataclass(frozen=True)
class Measured:
    """A daemon's measurements; *kept_at* is when it wrote them, in monotonic seconds."""

    kept_at: float
    values: Mapping[tuple[str, Labels], float]
    spans: Mapping[tuple[str, Labels], Span]


class Telemetry:
    """A daemon's measurements since it started; not for several threads."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        """Write the measurements to *path* from now on."""
        self._path = path
        self._clock = clock
        self._next = clock()
        self._values: dict[tuple[str, Labels], float] = {}
        self._spans: dict[tuple[str, Labels], Span] = {}

    def set(self, name: str, value: float, **labels: str) -> None:
        """Record a present value, or how often something has happened so far."""
        self._values[(name, _labels(labels))] = value

    def timed(self, name: str, seconds: float, **labels: str) -> None:
        """Record how long something took."""
        key = (name, _labels(labels))
        known = self._spans.get(key, Span())
        self._spans[key] = Span(known.count + 1, known.total + max(seconds, 0.0), seconds)

    def keep(self) -> None:
        """Write the file if that was not done for ``EVERY`` seconds."""
        now = self._clock()
        if now < self._next:
            return
        self._next = now + EVERY
        document = {
            "kept_at": now,
            "values": [[name, dict(labels), one] for (name, labels), one in self._values.items()],
            "spans": [
                [name, dict(labels), one.count, one.total, one.last]
                for (name, labels), one in self._spans.items()
            ],
        }
        with suppress(OSError):
            replace_file(self._path, json.dumps(document))


def telemetry_path(run_directory: Path, daemon: str) -> Path:
    """Return the file of a *daemon* (``lrm``, ``crm``, ``machine``)."""
    return run_directory / f"telemetry-{daemon}.json"


def read_telemetry(path: Path, now: float) -> Measured | None:
    """Return the measurements at *path*; None if there are none of this boot.

    *now* is monotonic seconds: a later time in the file is of before a reboot.
    """
    try:
        measured = _measured(row(read_document_file(path, str(path))))
    except (OSError, DocumentError):
        return None
    return measured if measured.kept_at <= now else None


def _measured(document: Mapping[str, Any]) -> Measured:
    values: dict[tuple[str, Labels], float] = {}
    for one in items(document.get("values")):
        name, labels, value = _parts(one, 3)
        values[text(name), _labels(labels)] = number(value)
    spans: dict[tuple[str, Labels], Span] = {}
    for one in items(document.get("spans")):
        name, labels, count, total, last = _parts(one, 5)
        spans[text(name), _labels(labels)] = Span(whole(count), number(total), number(last))
    return Measured(number(document.get("kept_at")), values, spans)


def _parts(value: object, count: int) -> list[Any]:
    found = items(value)
    if len(found) != count:
        raise wrong(value, f"a list of {count} values")
    return found


def _labels(labels: object) -> Labels:
    return tuple(sorted((key, text(value)) for key, value in row(labels).items()))
