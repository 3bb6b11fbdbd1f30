# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a daemon measures of itself, left in a small file from which metrics are made.

Nothing is decided on it and nothing waits for it: a measurement that cannot be left is
dropped, and the daemon goes on.  The file lies in the node's run directory, in memory on a
real node, and is replaced as a whole; it is not synced, as nobody needs it after the node
was off.  Times in it are of the machine's monotonic clock, which all its processes share.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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

Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Span:
    """How often something was timed since the daemon started, seconds in all and of the last."""

    count: int = 0
    total: float = 0.0
    last: float = 0.0


@dataclass(frozen=True)
class Measured:
    """A daemon's measurements; *kept_at* is when it left them, in monotonic seconds."""

    kept_at: float
    values: Mapping[tuple[str, Labels], float]
    spans: Mapping[tuple[str, Labels], Span]


class Telemetry:
    """A daemon's measurements since it started; not for several threads."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        """Leave the measurements at *path* from now on."""
        self._path = path
        self._clock = clock
        self._next = clock()
        self._values: dict[tuple[str, Labels], float] = {}
        self._spans: dict[tuple[str, Labels], Span] = {}

    def set(self, name: str, value: float, **labels: str) -> None:
        """Say how large something is now."""
        self._values[(name, _labels(labels))] = value

    def count(self, name: str, **labels: str) -> None:
        """Count something that happened."""
        key = (name, _labels(labels))
        self._values[key] = self._values.get(key, 0.0) + 1.0

    def timed(self, name: str, seconds: float, **labels: str) -> None:
        """Take down how long something took."""
        key = (name, _labels(labels))
        known = self._spans.get(key, Span())
        self._spans[key] = Span(known.count + 1, known.total + max(seconds, 0.0), seconds)

    def keep(self) -> None:
        """Leave the measurements in the file, if that was not done for a while."""
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
        new = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        try:
            new.write_text(json.dumps(document), encoding="utf-8")
            new.replace(self._path)
        except OSError:
            pass


def telemetry_path(run_directory: Path, daemon: str) -> Path:
    """Return where a *daemon* (``lrm``, ``crm``, ``machine``) leaves its measurements."""
    return run_directory / f"telemetry-{daemon}.json"


def read_telemetry(path: Path, now: float) -> Measured | None:
    """Return what a daemon left at *path*; None if there is nothing of this boot of the machine.

    *now* is monotonic seconds: what was left later than that was left before a reboot.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        measured = _measured(document)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
    return measured if measured.kept_at <= now else None


def _measured(document: Any) -> Measured:
    return Measured(
        float(document["kept_at"]),
        {(str(name), _labels(labels)): float(one) for name, labels, one in document["values"]},
        {
            (str(name), _labels(labels)): Span(int(count), float(total), float(last))
            for name, labels, count, total, last in document["spans"]
        },
    )


def _labels(labels: Mapping[str, str]) -> Labels:
    return tuple(sorted((str(key), str(value)) for key, value in labels.items()))
