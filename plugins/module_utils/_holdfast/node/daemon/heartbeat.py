# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node's block on the whiteboard says, as its LRM writes it and as a CRM reads it.

What keeps this node's CRM from judging other nodes, left in a file for ``holdfast status``.

``status`` reads the storage only.  If this node uses another storage than the others, that has no
record which says so: only the CRM heard it on the network.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable
from pathlib import Path

from ...storage.whiteboard.block import HostBlock

FULL_SCORE = 3400
"""The score of a host without faults (hosted engine, agent/states.py)."""

REPORT = "report"
"""Under this the health has the number of the LRM's record, so that no reader has to look there."""


TROUBLE = "trouble"
"""Under this, why the LRM does nothing that it is told: it can write, or read, no record."""

TOLD = 160
"""So many characters of it fit into the 512 bytes of a block's fields with all else."""

_UNPLAIN = re.compile(r'[^ -~]|["\\|]')
"""What takes more than one byte in the health's JSON, or ends a field."""


def heartbeat(
    host_id: int,
    name: str,
    at: float,
    *,
    running: int,
    drained: bool,
    report: int,
    trouble: str = "",
) -> HostBlock:
    """Return the block of a node at *at*, in seconds of its own monotonic clock.

    *running* services run there; *report* is the number of its LRM's record, 0 if it has none;
    *trouble* is why it does nothing that it is told.
    """
    health = {
        "vm": "up" if running else "down",
        "health": "good" if running else "bad",
        "detail": f"{running} services",
        REPORT: report,
    }
    return HostBlock(
        host_id=host_id,
        timestamp=int(at),
        score=0 if drained or trouble else FULL_SCORE,
        health={**health, TROUBLE: _UNPLAIN.sub("'", trouble)[:TOLD]} if trouble else health,
        host_name=name,
        maintenance=drained,
        stopped=False,
    )


def report_number(block: HostBlock | None) -> int:
    """Return the number of the LRM's record of which a block speaks, 0 if of none."""
    number = block.health.get(REPORT) if block is not None and block.health is not None else 0
    return number if isinstance(number, int) else 0


def trouble_told(block: HostBlock | None) -> str:
    """Return why a node says that its LRM can do nothing, or nothing."""
    told = block.health.get(TROUBLE, "") if block is not None and block.health is not None else ""
    return told if isinstance(told, str) else ""


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
