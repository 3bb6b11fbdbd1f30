# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster resource manager's step: the node that holds the manager lease runs it each round.

``step`` takes the last state and what was seen, and returns the state to write
and the orders to carry out once it is written.  Its cost grows with the number
of nodes plus the number of services that change.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..model.desired import Wanted
from ..model.observed import Seen, Timing
from ..model.state import (
    ClusterState,
    Event,
    Failover,
    FenceSender,
    Intent,
    NodeState,
    NodeStatus,
    Power,
)
from .fencing import switch_on_again
from .freeze import look_at_disarm
from .global_maintenance import look_at_maintenance
from .nodes import look_at_nodes
from .pending_fences import fences_count_from, with_fence
from .rebalance import rebalance
from .round import Change, FenceOrder, Round
from .services import look_at_services

MANAGER, EARLIER_MANAGER = FenceSender.MANAGER, FenceSender.EARLIER_MANAGER


@dataclass(frozen=True)
class Step:
    """The state to write, then the orders: fences to send and nodes to switch on.

    *board* is what to write into the whiteboard's global block, None for nothing;
    *changes* are the steps that led to the state, in their order.
    """

    state: ClusterState
    fences: tuple[FenceOrder, ...] = ()
    powers: tuple[str, ...] = ()
    board: bool | None = None
    changes: tuple[Change, ...] = ()


def take_over(
    last: ClusterState, epoch: int, manager: str, wall: float, intent: Intent | None = None
) -> ClusterState:
    """Return the state with which a new manager begins: the last one's, under a new epoch.

    Waits of the last manager are dropped, as they count on its own clock, and a
    node that it was about to switch on is switched on again.  A fence of its that may
    yet arrive counts from now: how long ago it was sent only its clock could say.  The
    fence that a candidate sent, whether it won the lease or not, becomes part of the state
    through its *intent*; one that was meant for an earlier manager does not.
    """
    state = replace(last, epoch=epoch, manager=manager, base=last.commands)
    for name, status in last.nodes.items():
        sent = status.power is Power.SENT
        sender = MANAGER if last.manager != manager else EARLIER_MANAGER
        begun = replace(
            status,
            retry_after=0.0,
            power=Power.NONE if sent else status.power,
            up_again=status.up_again or sent,
        ).with_pending_fence(EARLIER_MANAGER, status.fence_sent_by(sender))
        state = state.with_node(name, fences_count_from(begun, wall))
    if intent is not None and (not intent.epoch or intent.epoch >= last.epoch):
        state = _with_intent(_with_lost_manager(state, last, intent, wall), intent, wall)
    round_ = Round(state, Seen(0.0, wall, Wanted()), Timing())
    before = f"; before it {last.manager}" if last.manager and last.manager != manager else ""
    round_.say("manager", f"is manager with epoch {epoch}{before}", node=manager)
    return round_.state


def step(state: ClusterState, seen: Seen, timing: Timing) -> Step:
    """Return what the manager does next.

    While global maintenance holds (see ``global_maintenance.py``), results are still read into the
    nodes' states, but nothing is fenced, recovered, started or moved.
    """
    round_ = Round(state, seen, timing)
    _note_configuration(round_)
    look_at_maintenance(round_)
    if not round_.seen.held:
        look_at_disarm(round_)
    look_at_nodes(round_)
    if not round_.seen.held:
        look_at_services(round_)
        if not round_.state.disarm:
            rebalance(round_)
        switch_on_again(round_)
    return Step(
        round_.state,
        tuple(round_.fences),
        tuple(round_.powers),
        round_.board,
        tuple(round_.changes),
    )


def _with_lost_manager(
    state: ClusterState, last: ClusterState, intent: Intent, wall: float
) -> ClusterState:
    """Return the state with a fence of the *last* manager's node, if one after it was fenced.

    That one never wrote what became of the node before it, which is why it was manager.
    """
    if last.manager not in state.nodes or last.manager == intent.node:
        return state
    if intent.epoch <= last.epoch:
        return state
    status = state.nodes[last.manager]
    return state.with_node(last.manager, with_fence(status, wall, wall))


def _with_intent(state: ClusterState, intent: Intent, wall: float) -> ClusterState:
    """Return the state with the candidate's fence under way, as if the manager had sent it.

    A node that was the manager by then was on, even if the record still has it off: what proved
    it dead before counts no more.  How long ago the fence was sent nobody can say, as the
    candidate's clock is another: it may yet arrive.
    """
    status = state.nodes.get(intent.node, NodeStatus())
    if status.state is NodeState.OFF and not intent.epoch:
        return state
    fenced = replace(
        status.to_be_fenced(intent.reason), since=intent.recorded, proof=None, up_again=False
    ).with_pending_fence(MANAGER, wall)
    failover = Failover(
        node=intent.node,
        reason=intent.reason,
        last_heartbeat=intent.last_heartbeat,
        suspected=intent.recorded,
        recorded=intent.recorded,
        services=tuple(state.services_on(intent.node)),
    )
    event = Event(intent.recorded, "fence", intent.node, "", intent.reason)
    return state.with_node(intent.node, fenced).with_failover(failover).with_event(event)


def _note_configuration(round_: Round) -> None:
    """Record which wanted configuration this state was made from."""
    seen, state = round_.seen, round_.state
    if (state.config_version, state.config_slot) != (seen.wanted.version, seen.config_slot):
        round_.state = replace(
            state, config_version=seen.wanted.version, config_slot=seen.config_slot
        )
