# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The whiteboard as plain data, for people and programs that look at it from outside.

One read cannot tell how old a block is: its timestamp is of its writer's clock.
Whether a node is alive shows only in a second read, some seconds later.
"""

from __future__ import annotations

from .whiteboard import Board, HostBlock


def view(board: Board, earlier: Board | None = None) -> dict[str, object]:
    """Return all blocks of *board* as plain data; with ``live`` if an *earlier* read is given.

    A node is live when its timestamp changed between the two reads; None without an
    earlier read.  ``global_maintenance`` is None when the global block is damaged.
    """
    return {
        "global_maintenance": _maintenance(board),
        "max_hosts": board.max_hosts,
        "hosts": [
            {
                "host_id": block.host_id,
                "host_name": block.host_name,
                "timestamp": block.timestamp,
                "live": _live(block, earlier),
                "score": block.score,
                "health": None if block.health is None else dict(block.health),
                "maintenance": block.maintenance,
                "stopped": block.stopped,
                "conf_on_shared_storage": block.conf_on_shared_storage,
                "conf_timestamp": block.conf_timestamp,
                "extra": block.extra,
            }
            for block in _in_order(board)
        ],
        "problems": [
            {"host_id": host_id, "problem": problem}
            for host_id, problem in sorted(board.problems.items())
        ],
    }


def vm_status(board: Board, earlier: Board | None = None) -> dict[str, object]:
    """Return *board* in the shape of ``hosted-engine --vm-status --json``.

    An object keyed by host id, as text, with ``global_maintenance`` beside the hosts.
    ``live-data`` is None where only one read was made.  Damaged blocks are left out.
    """
    status: dict[str, object] = {}
    for block in _in_order(board):
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
        row["live-data"] = _live(block, earlier)
        status[str(block.host_id)] = row
    status["global_maintenance"] = _maintenance(board)
    return status


def _in_order(board: Board) -> list[HostBlock]:
    """Return the blocks by host id."""
    return [board.hosts[host_id] for host_id in sorted(board.hosts)]


def _maintenance(board: Board) -> bool | None:
    """Return the global maintenance, None when it is not known."""
    return None if board.global_block is None else board.global_block.maintenance


def _live(block: HostBlock, earlier: Board | None) -> bool | None:
    """Return whether the block changed since the *earlier* read."""
    if earlier is None:
        return None
    before = earlier.hosts.get(block.host_id)
    return before is None or before.timestamp != block.timestamp
