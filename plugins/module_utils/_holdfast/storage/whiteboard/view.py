# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The whiteboard as plain data, for people and programs that look at it from outside.

One read cannot tell how old a block is: its timestamp is of its writer's clock.
Whether a node is alive shows only in a second read, some seconds later.

Watching a whiteboard for some seconds: who wrote meanwhile, and how long ago.

A timestamp is of its writer's clock and is never compared with the reader's.  All
that counts is that it changed, and when the reader saw that by its own monotonic
clock.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from .block import HostBlock
from .board import Board

STEP = 1.0
"""Seconds between two reads: nodes of holdfast write each second."""


@dataclass(frozen=True)
class Watched:
    """The last of several reads, and what changed from one to the next.

    ``seconds`` is how long was watched, 0 for a single read.  ``ages`` is for each
    host id whose timestamp changed the seconds since that was seen.
    """

    board: Board
    seconds: float = 0.0
    ages: Mapping[int, float] = field(default_factory=dict)

    def live(self, host_id: int) -> bool | None:
        """Whether the node wrote while it was watched; None after a single read."""
        return host_id in self.ages if self.seconds else None


def watch(
    read: Callable[[], Board],
    seconds: float,
    clock: Callable[[], float],
    sleep: Callable[[float], None],
) -> Watched:
    """Call *read* once a second for *seconds* and return what was seen; 0 reads once."""
    board = read()
    if seconds <= 0:
        return Watched(board)
    changed: dict[int, float] = {}
    now = begun = clock()
    # A clock that does not move, or a read that takes for ever, must not make this endless.
    for number in range(1, int(seconds / STEP) + 2):
        left = seconds - (number - 1) * STEP
        if left <= 0:
            break
        sleep(min(STEP, left))
        earlier, board = board, read()
        now = clock()
        for host_id, block in board.hosts.items():
            before = earlier.hosts.get(host_id)
            if before is None or before.timestamp != block.timestamp:
                changed[host_id] = now
    ages = {host_id: max(0.0, now - when) for host_id, when in changed.items()}
    return Watched(board, max(seconds, now - begun), ages)


MAINTENANCE_BANNER = "\n\n!! Cluster is in GLOBAL MAINTENANCE mode !!\n\n"
"""What hosted-engine --vm-status prints above and below all hosts."""


def view(watched: Watched) -> dict[str, object]:
    """Return all blocks as plain data.

    A node is ``live`` when its timestamp changed while it was watched, ``age`` is the
    seconds since; both are None after a single read.  ``global_maintenance`` is None
    when the global block is damaged.  ``problems`` are the damaged blocks.
    """
    board = watched.board
    return {
        "global_maintenance": _maintenance(watched),
        "max_hosts": board.max_hosts,
        "block_size": board.block_bytes,
        "hosts": [
            {
                "host_id": block.host_id,
                "host_name": block.host_name,
                "timestamp": block.timestamp,
                "live": watched.live(block.host_id),
                "age": _age(watched, block.host_id),
                "score": block.score,
                "health": None if block.health is None else dict(block.health),
                "maintenance": block.maintenance,
                "stopped": block.stopped,
                "conf_on_shared_storage": block.conf_on_shared_storage,
                "conf_timestamp": block.conf_timestamp,
                "checksum": block.checksum,
                "extra": block.extra,
            }
            for block in _in_order(watched)
        ],
        "problems": [
            {"host_id": host_id, "problem": problem}
            for host_id, problem in sorted(board.problems.items())
        ],
    }


def vm_status(watched: Watched) -> dict[str, object]:
    """Return the board in the shape of ``hosted-engine --vm-status --json``.

    An object keyed by host id, as text, with ``global_maintenance`` beside the hosts.
    ``live-data`` is None where only one read was made.  Damaged blocks are left out.
    """
    status: dict[str, object] = {}
    for block in _in_order(watched):
        row: dict[str, object] = {
            "host-id": block.host_id,
            "host-ts": block.timestamp,
            "score": block.score,
            "engine-status": None if block.health is None else dict(block.health),
            "hostname": block.host_name,
            "maintenance": block.maintenance,
            "stopped": block.stopped,
            "crc32": block.checksum,
        }
        if block.conf_on_shared_storage is not None:
            row["conf_on_shared_storage"] = block.conf_on_shared_storage
            row["local_conf_timestamp"] = block.conf_timestamp
        row["extra"] = block.extra
        row["live-data"] = watched.live(block.host_id)
        status[str(block.host_id)] = row
    status["global_maintenance"] = _maintenance(watched)
    return status


def vm_status_text(watched: Watched) -> str:
    """Return the board as ``hosted-engine --vm-status`` prints it.

    A node that is not known to be live has ``unknown stale-data`` for its health, as
    there.  Damaged blocks are left out.
    """
    banner = MAINTENANCE_BANNER if _maintenance(watched) else ""
    return banner + "".join(_host_text(block, watched) for block in _in_order(watched)) + banner


def _host_text(block: HostBlock, watched: Watched) -> str:
    """Return what ``hosted-engine --vm-status`` prints of one host."""
    live = bool(watched.live(block.host_id))
    rows: list[tuple[str, object]] = [
        ("Host ID", block.host_id),
        ("Host timestamp", block.timestamp),
        ("Score", block.score),
        ("Engine status", json.dumps(block.health) if live else "unknown stale-data"),
        ("Hostname", block.host_name),
        ("Local maintenance", block.maintenance),
        ("stopped", block.stopped),
        ("crc32", block.checksum),
    ]
    if block.conf_on_shared_storage is not None:
        rows.append(("conf_on_shared_storage", block.conf_on_shared_storage))
        rows.append(("local_conf_timestamp", block.conf_timestamp))
    rows.append(("Status up-to-date", live))
    lines = ["", "", f"--== Host {block.host_name} (id: {block.host_id}) status ==--", ""]
    lines += [f"{label:35}: {value}" for label, value in rows]
    lines.append("Extra metadata (valid at timestamp):")
    lines += [f"\t{line}" for line in block.extra.splitlines()]
    return "\n".join(lines) + "\n"


def _in_order(watched: Watched) -> list[HostBlock]:
    """Return the blocks by host id."""
    return [block for _host_id, block in sorted(watched.board.hosts.items())]


def _maintenance(watched: Watched) -> bool | None:
    """Return the global maintenance, None when it is not known."""
    block = watched.board.global_block
    return None if block is None else block.maintenance


def _age(watched: Watched, host_id: int) -> float | None:
    """Return the seconds since the node's timestamp was seen to change, None if it was not."""
    age = watched.ages.get(host_id)
    return None if age is None else round(age, 3)
