# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fences that may yet arrive, or did unseen: of other candidates, earlier managers, unknown end.

Without this a node would stay off that such a fence cut off after its return, or in it.  How long
ago one was sent is told by the wall clock of whoever is manager; what another clock says of it, or
one that jumped, is not believed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..model.report import POWEROFF, REBOOT, Mode
from ..model.state import FENCE_ARRIVES, FenceSender, NodeState, NodeStatus, PendingFence
from .round import Round

FENCES_KEPT = 10


def fence_may_arrive(round_: Round, status: NodeStatus) -> bool:
    """Return whether a fence with an unknown end may have switched the node off, or may yet.

    One that was sent since the node is to be fenced may have come, however long ago that is.
    """
    return _is_present(status) or _is_recent(round_, status.fence_sent_by(FenceSender.MANAGER))


def cut_off(round_: Round, name: str) -> bool:
    """Return whether a silent node is fenced to be certain, as an earlier fence may have come.

    One that restarts comes back by itself, or is switched on.
    """
    return _may_be_cut_off(round_, name) and not restarts(round_, name)


def restarts_cut_off(round_: Round, name: str) -> bool:
    """Return whether an earlier fence may have come to a node that said that it comes back."""
    return _may_be_cut_off(round_, name) and restarts(round_, name)


def restarts(round_: Round, name: str) -> bool:
    """Return whether a silent node, or its LRM, comes back by itself, as its operator wants it."""
    return _goes_down(round_, name) == REBOOT or round_.node(name).mode == Mode.RESTART.value


def is_switched_off(round_: Round, name: str) -> bool:
    """Return whether a silent node is off, or soon is, as its operator wants it to be."""
    return _goes_down(round_, name) == POWEROFF


def with_fence(status: NodeStatus, sent: float, wall: float) -> NodeStatus:
    """Return a node's status with one more fence that ended by now, counted once."""
    fenced = tuple(sorted({*status.fenced, sent}))[-FENCES_KEPT:]
    return replace(status, fenced=fenced).with_pending_fence(FenceSender.CANDIDATE, wall)


def with_own_fence(status: NodeStatus, wall: float) -> NodeStatus:
    """Return a node's status with the manager's pending fence counted as one that ended by now."""
    return with_fence(status, status.fence_sent_by(FenceSender.MANAGER), wall)


def fences_count_from(status: NodeStatus, wall: float) -> NodeStatus:
    """Return a node's status with its pending fences as if they had been sent now.

    So they count where nobody can say how long ago it was, as another clock told it.
    """
    return _with_times(status, dict.fromkeys(status.pending_fences, wall))


def let_fences_pass(round_: Round) -> None:
    """Forget the fences that can arrive no more; by a clock that jumped they count from now."""
    for name, status in round_.state.nodes.items():
        times = {one: _passing(round_, one) for one in status.pending_fences}
        if _is_present(status):
            own = next(one for one in times if one.sender is FenceSender.MANAGER)
            times[own] = times[own] or own.sent_at
        if any(at != one.sent_at for one, at in times.items()):
            round_.set_node(name, _with_times(status, times))


def _is_present(status: NodeStatus) -> bool:
    """Return whether the fence of unknown end was sent since the node is to be fenced."""
    sent = status.fence_sent_by(FenceSender.MANAGER)
    return status.state is NodeState.FENCE and bool(sent) and sent >= status.since


def _is_recent(round_: Round, sent: float) -> bool:
    return sent > 0 and round_.seen.wall - sent < FENCE_ARRIVES


def _goes_down(round_: Round, name: str) -> str:
    report = round_.report(name)
    return report.goes_down if report is not None else ""


def _may_be_cut_off(round_: Round, name: str) -> bool:
    if is_switched_off(round_, name):
        return False
    fence = fence_may_arrive(round_, round_.node(name))
    return fence or _slower_fence_may_have_come(round_, name)


def _slower_fence_may_have_come(round_: Round, name: str) -> bool:
    """Return whether a node that came back from a fence may be off again by one more.

    Each candidate that found the manager silent sent its own; only one of them was proved.  A
    node that is shut down or worked on is off, or soon is, by the will of its operator.
    """
    status = round_.node(name)
    leaves = status.mode == Mode.SHUTDOWN.value and not restarts(round_, name)
    if leaves or name in round_.seen.wanted.maintenance:
        return False
    return _is_recent(round_, status.fence_sent_by(FenceSender.CANDIDATE))


def _with_times(status: NodeStatus, times: Mapping[PendingFence, float]) -> NodeStatus:
    """Return a node's status with other times for its pending fences, 0 for one that is over.

    A fence that was counted under its old time is counted once, under the new one.
    """
    moved = {
        one.sent_at: at
        for one, at in times.items()
        if at and one.sender is not FenceSender.CANDIDATE
    }
    return replace(
        status,
        fenced=tuple(sorted({moved.get(at, at) for at in status.fenced})),
        pending_fences=tuple(PendingFence(one.sender, at) for one, at in times.items() if at),
    )


def _passing(round_: Round, fence: PendingFence) -> float:
    """Return when a fence counts as sent from now on, 0 if it does nothing any more."""
    sent, wall = fence.sent_at, round_.seen.wall
    if sent <= wall < fence.until:
        return sent
    if not round_.seen.wall_even:
        return wall
    return 0.0 if wall > sent else sent
