# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The manager's decision of one turn, as a function of the last state and the observation.

Its cost grows with the number of nodes and the number of services that change.
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
from .fencing import power_on_again
from .nodes import update_nodes
from .pausing import update_disarm, update_maintenance
from .pending_fences import fences_count_from, with_fence
from .rebalance import rebalance
from .round import Change, FenceOrder, Round
from .services import update_services

MANAGER, EARLIER_MANAGER = FenceSender.MANAGER, FenceSender.EARLIER_MANAGER


@dataclass(frozen=True)
class Step:
    """The state to write, then the orders: fences to send and nodes to power on.

    *board* is what to write into the whiteboard's global block, None for nothing.  *changes* are
    the steps that led to the state, in order.
    """

    state: ClusterState
    fences: tuple[FenceOrder, ...] = ()
    powers: tuple[str, ...] = ()
    board: bool | None = None
    changes: tuple[Change, ...] = ()


def take_over(
    last: ClusterState, epoch: int, manager: str, wall: float, intent: Intent | None = None
) -> ClusterState:
    """Return the state with which a new manager begins: the last state under a new epoch.

    Retry times are dropped, because they count on the last manager's clock.  A node that the last
    manager was about to power on is powered on again.  A pending fence counts from now, because
    only its sender's clock knows its age.  A candidate's announced fence (*intent*) becomes part of
    the state, unless it was meant for an earlier manager.
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

    In global maintenance, results still change the nodes' states, but nothing is fenced, recovered,
    started or moved.
    """
    round_ = Round(state, seen, timing)
    _note_configuration(round_)
    update_maintenance(round_)
    if not round_.seen.held:
        update_disarm(round_)
    update_nodes(round_)
    if not round_.seen.held:
        update_services(round_)
        if not round_.state.disarm:
            rebalance(round_)
        power_on_again(round_)
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
    """Return the state with a fence of *last*'s manager, if a later manager was fenced.

    The later manager never wrote its record, but it could be manager only after that fence.
    """
    if last.manager not in state.nodes or last.manager == intent.node:
        return state
    if intent.epoch <= last.epoch:
        return state
    status = state.nodes[last.manager]
    return state.with_node(last.manager, with_fence(status, wall, wall))


def _with_intent(state: ClusterState, intent: Intent, wall: float) -> ClusterState:
    """Return the state with the candidate's fence pending as if the manager had sent it.

    The fenced node was manager, so it was on, even if the record has it off: an earlier proof no
    longer counts.  The fence may still arrive, because only the candidate's clock knows its age.
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
    """Record which desired configuration this state was made from."""
    seen, state = round_.seen, round_.state
    if (state.config_version, state.config_slot) != (seen.wanted.version, seen.config_slot):
        round_.state = replace(
            state, config_version=seen.wanted.version, config_slot=seen.config_slot
        )
