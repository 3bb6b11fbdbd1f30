# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Global maintenance as the manager keeps it: when it begins, when it ends, and block 0.

There are two places where an operator speaks: the wanted configuration (our modules;
with reason, owner and expiry), and block 0 of the whiteboard (hosted engine's tools, and
the module ``metadata`` without a node's configuration; a bare yes or no).  The manager
makes the two agree by one rule: **what was changed last counts**.  It remembers what
block 0 said when both last agreed.  If the block differs from that, somebody wrote it,
and the manager takes that up: a yes holds the cluster until it is ended, a no ends the
maintenance of the configuration too.  If the block is as it was, it is the configuration
that changed, and the manager writes the block; that it is about to stands in its record
before, so that its own write is never taken for somebody else's.  Where it cannot tell
who spoke last, it holds.

While either place says maintenance, or block 0 cannot be read, nothing is started,
moved, recovered or fenced.  A fence that is under way cannot be called back: its proof is
still recorded, but nothing is recovered by it, and one that failed is not tried again
before the end; nor is the node switched on before.

A maintenance, of the cluster or of a node, that is past its expiry is ended here.  That
is a decision of the manager and stands in its record, so that it stays ended when the
next manager's clock goes back.  A wall clock that jumped is believed only when it ran
evenly again for a while (``Seen.wall_even``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ..model.desired import Wanted
from ..model.maintenance import Maintenance, told, utc

if TYPE_CHECKING:
    # Who only asks what is in force pays for no manager.
    from ..model.state import ClusterState
    from .round import Round

CLUSTER = ""
"""The key of the cluster's own maintenance among those of the nodes."""


def in_force(wanted: Wanted, ended: Mapping[str, tuple[float, float]]) -> Wanted:
    """Return *wanted* without the maintenances that the manager has ended."""
    over = [key for key, one in _all(wanted) if ended.get(key) == one.identity]
    for key in over:
        wanted = (
            wanted.without_global_maintenance()
            if key == CLUSTER
            else wanted.without_maintenance(key)
        )
    return wanted


def why_held(state: ClusterState) -> str:
    """Return why nothing is moved in the whole cluster now, or nothing.

    A request that was made all the same would be carried out long after, when that has ended.
    """
    if state.hold is not None:
        return f"the cluster is in global maintenance ({told(state.hold)})"
    return f"the cluster is {state.disarm} ({state.disarm_mode})" if state.disarm else ""


def has_maintenance(wanted: Wanted) -> bool:
    """Return whether anything in *wanted* is in maintenance."""
    return bool(wanted.maintenance) or wanted.global_maintenance is not None


def look_at_maintenance(round_: Round) -> None:
    """Bring maintenance up to date, before anything else is decided.

    Afterwards the round sees only what is in force: ``seen.wanted`` is without what
    ended, and ``seen.held`` says why nothing may be done, or is empty.
    """
    _forget_ended(round_)
    _end_expired(round_)
    wanted = in_force(round_.seen.wanted, round_.state.ended)
    before = round_.state.hold
    asked = wanted.global_maintenance
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
            wanted = wanted.without_global_maintenance()
    from_board = hold is not None and wanted.global_maintenance is None
    if (hold, from_board) != (before, round_.state.hold_from_board):
        round_.state = replace(round_.state, hold=hold, hold_from_board=from_board)
    if before is None and hold is not None:
        round_.say("maintenance", f"global maintenance begins: {told(hold)}")
    elif before is not None and hold is None:
        round_.say("maintenance_ended", f"global maintenance ends, {why}; it was {told(before)}")
    held = _why_held(round_, hold)
    if wanted is not round_.seen.wanted or held != round_.seen.held:
        round_.seen = replace(round_.seen, wanted=wanted, held=held)


def _compare_with_board(round_: Round, hold: Maintenance | None) -> bool | None:
    """Make block 0 agree with what holds; return what it says if that is to be taken up."""
    wanted = hold is not None
    if not round_.seen.board_readable:
        # What somebody wrote there is lost; a yes can be written, a no is theirs to say.
        round_.board = True if wanted else None
        return None
    says, known = bool(round_.seen.held), round_.state.board
    # A write of our own that was not seen yet may be what changed the block.
    by_others = not round_.state.board_pending and says != known and (says or known is not None)
    if says != wanted and not by_others:
        round_.board = wanted
    else:
        _note_board(round_, says, pending=False)
    return says if says != wanted and by_others else None


def _note_board(round_: Round, says: bool | None, *, pending: bool) -> None:
    if (says, pending) != (round_.state.board, round_.state.board_pending):
        round_.state = replace(round_.state, board=says, board_pending=pending)


def _why_held(round_: Round, hold: Maintenance | None) -> str:
    """Return why nothing may be done, from the first place that says so."""
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
    """Forget the ends of maintenances that the configuration does not have any more."""
    present = {key: one.identity for key, one in _all(round_.seen.wanted)}
    ended = {key: one for key, one in round_.state.ended.items() if present.get(key) == one}
    if ended != round_.state.ended:
        round_.state = replace(round_.state, ended=ended)


def _all(wanted: Wanted) -> Iterator[tuple[str, Maintenance]]:
    """Yield every maintenance there is, that of the cluster first."""
    if wanted.global_maintenance is not None:
        yield CLUSTER, wanted.global_maintenance
    yield from sorted(wanted.maintenance.items())
