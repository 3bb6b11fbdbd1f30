# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Global maintenance: when it begins and ends, in the configuration and on the whiteboard.

An operator sets it in the desired configuration (with reason, owner and expiry) or in block 0 of
the whiteboard (hosted engine's tools; yes or no only).  **The last change wins.** The manager
remembers what block 0 said when both last agreed.  If the block differs from that, someone else
wrote it and the manager adopts it.  Otherwise the configuration changed, and the manager writes the
block.  It records that first, so that it recognises its own write.  If it cannot tell who was last,
maintenance holds.

While either says maintenance, or block 0 cannot be read, nothing is started, moved, recovered or
fenced.  The proof of a fence under way is recorded, but nothing is recovered by it, a failed fence
is not repeated, and no node is powered on.

The manager ends an expired maintenance and records that, so that it stays ended if the next
manager's clock is behind.  After a jump, the wall clock is trusted again once it ran evenly for a
while.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ..model.desired import Wanted
from ..model.maintenance import Maintenance, told, utc

if TYPE_CHECKING:
    # Callers of ``in_force`` do not need to load the manager.
    from ..model.state import ClusterState
    from .round import Round

CLUSTER = ""
"""The key of the cluster's own maintenance among those of nodes."""


def in_force(desired: Wanted, ended: Mapping[str, tuple[float, float]]) -> Wanted:
    """Return *desired* without the maintenances that the manager has ended."""
    over = [key for key, one in _all(desired) if ended.get(key) == one.identity]
    for key in over:
        desired = (
            desired.without_global_maintenance()
            if key == CLUSTER
            else desired.without_maintenance(key)
        )
    return desired


def why_held(state: ClusterState) -> str:
    """Return why nothing moves in the whole cluster now; empty if nothing prevents it.

    A request made now would be carried out only much later.
    """
    if state.hold is not None:
        return f"the cluster is in global maintenance ({told(state.hold)})"
    return f"the cluster is {state.disarm} ({state.disarm_mode})" if state.disarm else ""


def has_maintenance(desired: Wanted) -> bool:
    """Return whether anything in *desired* is in maintenance."""
    return bool(desired.maintenance) or desired.global_maintenance is not None


def update_maintenance(round_: Round) -> None:
    """Update maintenance before anything else is decided.

    Afterwards ``seen.wanted`` has only maintenances in force, and ``seen.held`` is why nothing may
    be done.
    """
    _forget_ended(round_)
    _end_expired(round_)
    desired = in_force(round_.seen.wanted, round_.state.ended)
    before = round_.state.hold
    asked = desired.global_maintenance
    hold = asked
    if hold is None and round_.state.hold_from_board:
        hold = before
    why = "as the configuration says"
    if asked is None and round_.seen.wanted.global_maintenance is not None:
        why = "its time was over"
    taken_up = _compare_with_board(round_, hold)
    if round_.board is not None:
        _note_board(round_, round_.state.board, pending=True)
    if taken_up is not None:
        why = "on the whiteboard"
        hold = Maintenance(round_.seen.held, "", round_.seen.wall) if taken_up else None
        if not taken_up and asked is not None:
            _note_end(round_, CLUSTER, asked)
            desired = desired.without_global_maintenance()
    from_board = hold is not None and desired.global_maintenance is None
    if (hold, from_board) != (before, round_.state.hold_from_board):
        round_.state = replace(round_.state, hold=hold, hold_from_board=from_board)
    if before is None and hold is not None:
        round_.say("maintenance", f"global maintenance begins: {told(hold)}")
    elif before is not None and hold is None:
        round_.say("maintenance_ended", f"global maintenance ends, {why}; it was {told(before)}")
    held = _why_held(round_, hold)
    if desired is not round_.seen.wanted or held != round_.seen.held:
        round_.seen = replace(round_.seen, wanted=desired, held=held)


def _compare_with_board(round_: Round, hold: Maintenance | None) -> bool | None:
    """Make block 0 agree with *hold*; return what block 0 says if that is to be adopted."""
    holds = hold is not None
    if not round_.seen.board_readable:
        # What someone wrote there is lost.  The manager may write yes, but not no.
        round_.board = True if holds else None
        return None
    says, known = bool(round_.seen.held), round_.state.board
    # The manager's own write, not yet seen, may have changed the block.
    by_others = not round_.state.board_pending and says != known and (says or known is not None)
    if says != holds and not by_others:
        round_.board = holds
    else:
        _note_board(round_, says, pending=False)
    return says if says != holds and by_others else None


def _note_board(round_: Round, says: bool | None, *, pending: bool) -> None:
    if (says, pending) != (round_.state.board, round_.state.board_pending):
        round_.state = replace(round_.state, board=says, board_pending=pending)


def _why_held(round_: Round, hold: Maintenance | None) -> str:
    """Return why nothing may be done, from the first source that says so; empty if none."""
    if hold is not None:
        return told(hold)
    if not round_.seen.board_readable or not round_.seen.held:
        return round_.seen.held
    return "ended, but the whiteboard still says so"


def _end_expired(round_: Round) -> None:
    if not round_.seen.wall_even:
        return
    for key, one in _all(in_force(round_.seen.wanted, round_.state.ended)):
        if not one.expired(round_.seen.wall):
            continue
        _note_end(round_, key, one)
        if key != CLUSTER:
            text = f"maintenance ends, its time was over at {utc(one.until)}; it was {told(one)}"
            round_.say("maintenance_ended", text, node=key)


def _note_end(round_: Round, key: str, maintenance: Maintenance) -> None:
    ended = {**round_.state.ended, key: maintenance.identity}
    round_.state = replace(round_.state, ended=ended)


def _forget_ended(round_: Round) -> None:
    """Forget the ends of maintenances that are no longer in the configuration."""
    present = {key: one.identity for key, one in _all(round_.seen.wanted)}
    ended = {key: one for key, one in round_.state.ended.items() if present.get(key) == one}
    if ended != round_.state.ended:
        round_.state = replace(round_.state, ended=ended)


def _all(desired: Wanted) -> Iterator[tuple[str, Maintenance]]:
    """Yield every maintenance, that of the cluster first."""
    if desired.global_maintenance is not None:
        yield CLUSTER, desired.global_maintenance
    yield from sorted(desired.maintenance.items())
