# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What keeps this node's CRM from judging other nodes, left in a file for ``holdfast status``.

``status`` reads the storage only.  If this node uses another storage than the others, that has no
record which says so: only the CRM heard it on the network.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

EVERY = 2.0
"""Seconds after which the CRM writes the file again while the trouble goes on."""

COUNTS = 10.0
"""Seconds for which the file counts: a CRM that was killed does not remove it."""

LONGEST = 1000
"""So many characters of it are shown."""


class PublishedTrouble:
    """The file as the CRM keeps it; not for several threads."""

    def __init__(self, run_directory: Path, clock: Callable[[], float] = time.monotonic) -> None:
        """Keep the file in *run_directory*."""
        self._path = trouble_path(run_directory)
        self._clock = clock
        self._text = ""
        self._next = 0.0

    def publish(self, text: str) -> None:
        """Write *text* to the file if it changed or is due again; an empty one removes the file."""
        now = self._clock()
        if text == self._text and (not text or now < self._next):
            return
        self._text, self._next = text, now + EVERY
        new = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        try:
            if not text:
                self._path.unlink()
                return
            new.write_text(json.dumps({"at": now, "text": text}), encoding="utf-8")
            new.replace(self._path)
        except OSError:
            # It is for people only: the CRM goes on without it.
            return


def trouble_path(run_directory: Path) -> Path:
    """Return where the CRM leaves its trouble."""
    return run_directory / "trouble-crm.json"


def read_trouble(run_directory: Path, now: float | None = None) -> str:
    """Return what keeps this node's CRM from judging others; empty if nothing is known to.

    *now* is monotonic seconds: what was written later than that was written before a reboot.
    """
    now = time.monotonic() if now is None else now
    try:
        document = json.loads(trouble_path(run_directory).read_text(encoding="utf-8"))
        at, text = float(document["at"]), str(document["text"])
    except (OSError, ValueError, TypeError, KeyError):
        return ""
    return text[:LONGEST] if 0.0 <= now - at <= COUNTS else ""
