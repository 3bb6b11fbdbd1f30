# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a daemon publishes: a node's block on the whiteboard, and its CRM's trouble in a file.

The file is for ``holdfast status``, which reads the storage only: if this node uses another
storage than the others, only the CRM knows, from the network.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from ...documents import number, read_document_file, row, text
from ...errors import DocumentError
from ...storage.whiteboard.block import HostBlock
from ..run_notes import replace_file

FULL_SCORE = 3400
"""The score of a host without faults (hosted engine, agent/states.py).

It is for readers of a hosted engine board.  No decision of holdfast uses it.
"""

REPORT = "report"
"""Key of the health with the number of the LRM's record, so that no reader has to read that."""

TROUBLE = "trouble"
"""Key of the reason why the LRM follows no command: it can write, or read, no record."""

PART = "part"
"""Key of the hundredths of the second at which the block was written, if they are not 0.

The format's timestamp is whole seconds, and there may be several heartbeats in one.
"""

TOLD = 140
"""Characters of the reason that fit into the 512 bytes of a block's fields with all else."""

_UNPLAIN = re.compile(r'[^ -~]|["\\|]')
"""Characters that take more than one byte in the health's JSON, or end a field."""


def heartbeat(
    host_id: int,
    name: str,
    at: float,
    *,
    running: int,
    drained: bool,
    report: int,
    stopped: bool = False,
    trouble: str = "",
) -> HostBlock:
    """Return the block of a node at *at*, in seconds of its own monotonic clock.

    *running* services run there; *report* is the number of its LRM's record, 0 if it has none;
    *stopped* says that it shuts down in order and runs nothing any more; *trouble* is why its LRM
    follows no command.
    """
    health: dict[str, object] = {
        "vm": "up" if running else "down",
        "health": "good" if running else "bad",
        "detail": f"{running} services",
        REPORT: report,
    }
    part = int(at * 100) % 100
    if part:
        health[PART] = part
    return HostBlock(
        host_id=host_id,
        timestamp=int(at),
        score=0 if drained or stopped or trouble else FULL_SCORE,
        health={**health, TROUBLE: _UNPLAIN.sub("'", trouble)[:TOLD]} if trouble else health,
        host_name=name,
        maintenance=drained,
        stopped=stopped,
    )


def report_number(block: HostBlock | None) -> int:
    """Return the number of the LRM's record that a block names, 0 if none."""
    number = block.health.get(REPORT) if block is not None and block.health is not None else 0
    return number if isinstance(number, int) else 0


def beat_of(block: HostBlock) -> float:
    """Return when a block was written, in seconds of its node's monotonic clock.

    It rises with each heartbeat: two of them are at least a hundredth of a second apart.
    """
    part = block.health.get(PART) if block.health is not None else 0
    return block.timestamp + (part / 100 if isinstance(part, int) and 0 < part < 100 else 0)


def trouble_told(block: HostBlock | None) -> str:
    """Return why a node's LRM follows no command, by its block; "" if it does."""
    told = block.health.get(TROUBLE, "") if block is not None and block.health is not None else ""
    return told if isinstance(told, str) else ""


EVERY = 2.0
"""Seconds after which the CRM writes the file again while the trouble lasts."""

COUNTS = 10.0
"""Seconds for which the file is valid: a CRM that was killed does not remove it."""

LONGEST = 1000
"""Characters of the trouble that are shown."""


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
        # It is for people only: the CRM goes on without it.
        with suppress(OSError):
            if text:
                replace_file(self._path, json.dumps({"at": now, "text": text}))
            else:
                self._path.unlink()


def trouble_path(run_directory: Path) -> Path:
    """Return the path of the file."""
    return run_directory / "trouble-crm.json"


def read_trouble(run_directory: Path, now: float | None = None) -> str:
    """Return what keeps this node's CRM from judging others; empty if nothing is known to.

    *now* is monotonic seconds: a later time in the file is of before a reboot.
    """
    now = time.monotonic() if now is None else now
    try:
        path = trouble_path(run_directory)
        document = row(read_document_file(path, str(path)))
        at, trouble = number(document.get("at")), text(document.get("text"))
    except (OSError, DocumentError):
        return ""
    return trouble[:LONGEST] if 0.0 <= now - at <= COUNTS else ""
