# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fences that may still arrive or arrived unseen: from candidates, earlier managers, unknown ends.

Without these, a node would stay off if such a fence hits it after its return.  The age of a fence
counts on the present manager's wall clock.  Times of another clock, or of one that jumped, are not
used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..model.report import POWEROFF, REBOOT, Mode
from ..model.state import FENCE_ARRIVES, FenceSender, NodeState, NodeStatus, PendingFence
from .round import Round

FENCES_KEPT = 10


def fence_may_arrive(round_: Round, status: NodeStatus) -> bool:
    """Return whether a fence with an unknown end may have powered the node off, or may yet.

    A fence that was sent since the node is to be fenced counts at any age.
    """
    return _is_present(status) or _is_recent(round_, status.fence_sent_by(FenceSender.MANAGER))


def cut_off(round_: Round, name: str) -> bool:
    """Return whether a silent node must be fenced because an earlier fence may have hit it.

    A restarting node comes back by itself or is powered on.
    """
    return _may_be_cut_off(round_, name) and not restarts(round_, name)


def restarts_cut_off(round_: Round, name: str) -> bool:
    """Return whether an earlier fence may have hit a node that is restarting."""
    return _may_be_cut_off(round_, name) and restarts(round_, name)


def restarts(round_: Round, name: str) -> bool:
    """Return whether a silent node, or its LRM, was restarted by its operator."""
    return _goes_down(round_, name) == REBOOT or round_.node(name).mode == Mode.RESTART.value


def is_switched_off(round_: Round, name: str) -> bool:
    """Return whether a silent node was powered off by its operator."""
    return _goes_down(round_, name) == POWEROFF


def with_fence(status: NodeStatus, sent: float, wall: float) -> NodeStatus:
    """Return a node's status with one more fence that has ended, counted once."""
    fenced = tuple(sorted({*status.fenced, sent}))[-FENCES_KEPT:]
    return replace(status, fenced=fenced).with_pending_fence(FenceSender.CANDIDATE, wall)


def with_own_fence(status: NodeStatus, wall: float) -> NodeStatus:
    """Return a node's status with the manager's pending fence counted as ended."""
    return with_fence(status, status.fence_sent_by(FenceSender.MANAGER), wall)


def fences_count_from(status: NodeStatus, wall: float) -> NodeStatus:
    """Return a node's status with its pending fences as if they were sent now.

    Their times are those of another clock, so their real age is unknown.
    """
    return _with_times(status, dict.fromkeys(status.pending_fences, wall))


def drop_past_fences(round_: Round) -> None:
    """Forget the fences that can no longer arrive.  After a clock jump they count from now."""
    for name, status in round_.state.nodes.items():
        times = {one: _passing(round_, one) for one in status.pending_fences}
        if _is_present(status):
            own = next(one for one in times if one.sender is FenceSender.MANAGER)
            times[own] = times[own] or own.sent_at
        if any(at != one.sent_at for one, at in times.items()):
            round_.set_node(name, _with_times(status, times))


def _is_present(status: NodeStatus) -> bool:
    """Return whether a fence with an unknown end was sent since the node is to be fenced."""
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
    """Return whether another candidate's fence may have hit a node after its return.

    Each candidate that found the manager silent sent a fence, and only one was confirmed.  A node
    that is shut down or in maintenance is off by its operator's decision.
    """
    status = round_.node(name)
    leaves = status.mode == Mode.SHUTDOWN.value and not restarts(round_, name)
    if leaves or name in round_.seen.wanted.maintenance:
        return False
    return _is_recent(round_, status.fence_sent_by(FenceSender.CANDIDATE))


def _with_times(status: NodeStatus, times: Mapping[PendingFence, float]) -> NodeStatus:
    """Return a node's status with other times for its pending fences, 0 to drop one.

    A fence that was counted under its old time is then counted under the new one.
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
    """Return the time at which a fence counts as sent from now on, 0 if it is over."""
    sent, wall = fence.sent_at, round_.seen.wall
    if sent <= wall < fence.until:
        return sent
    if not round_.seen.wall_even:
        return wall
    return 0.0 if wall > sent else sent
