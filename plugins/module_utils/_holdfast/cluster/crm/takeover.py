# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state with which a manager begins: after another manager, or after a repair of the records.

After a repair, places and proofs in the record may be out of date and are not used.  Every node is
observed again and every service is probed on every node first.  A node that cannot answer must be
confirmed off; an expired host lease is not enough.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..model.desired import DesiredState
from ..model.maintenance import maintenance_text
from ..model.observed import ObservedState, Timing
from ..model.past_fences import FenceCause
from ..model.state import (
    ClusterState,
    Event,
    Failover,
    FenceSender,
    Intent,
    NodeState,
    NodeStatus,
    Power,
    ServiceStatus,
)
from ..model.states import ServiceState
from ..model.versions import Floor
from .fencing import fences_count_from, with_fence
from .round import Round

MANAGER, EARLIER_MANAGER = FenceSender.MANAGER, FenceSender.EARLIER_MANAGER


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
    round_ = Round(state, ObservedState(0.0, wall, DesiredState()), Timing())
    before = f"; before it {last.manager}" if last.manager and last.manager != manager else ""
    round_.say("manager", f"is manager with epoch {epoch}{before}", node=manager)
    return round_.state


def repaired(
    last: ClusterState,
    desired: DesiredState,
    floors: Iterable[Floor],
    epoch: int,
    manager: str,
    wall: float,
) -> ClusterState:
    """Return the state with which *manager* begins the generation of *desired*.

    *last* is the newest readable record.  Command numbers continue above all *floors*, so that no
    uid is used twice.
    """
    commands = max([last.commands, *(floor.commands for floor in floors)]) + 1
    state = ClusterState(
        epoch=epoch,
        manager=manager,
        commands=commands,
        nodes={name: _observed_again(status, wall) for name, status in last.nodes.items()},
        ignored=last.ignored,
        failovers=tuple(one for one in last.failovers if one.finished),
        events=last.events,
        hold=last.hold,
        hold_from_board=last.hold_from_board,
        board=last.board,
        board_pending=last.board_pending,
        ended=last.ended,
        membership=last.membership,
        generation=desired.generation,
        base=commands,
    )
    round_ = Round(state, ObservedState(0.0, wall, desired), Timing())
    for service_id, service in sorted(desired.services.items()):
        if service.ignored:
            continue
        before = last.services.get(service_id)
        place = (before.node or before.last_node) if before is not None else service.node
        asking = ServiceStatus(
            ServiceState.PROBE,
            reason="asking where it runs after the records were repaired",
            last_node=place,
            request=before.request if before is not None else 0.0,
        )
        round_.command(service_id, asking, ServiceState.PROBE)
    by = f", {maintenance_text(desired.repaired_by)}" if desired.repaired_by is not None else ""
    round_.say("repaired", f"the records were repaired{by}: generation {desired.generation} begins")
    probes = tuple(sorted(round_.state.services))
    return replace(round_.state, probes=probes)


def record_restored(state: ClusterState, wall: float) -> ClusterState:
    """Return *state* with an event that its record was damaged and is written again.

    The manager knows what it wrote, so nothing is lost.
    """
    round_ = Round(state, ObservedState(0.0, wall, DesiredState()), Timing())
    text = "its record on storage was damaged or older than what it wrote: written again"
    round_.say("record_restored", text, node=state.manager)
    return round_.state


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
    return state.with_node(last.manager, with_fence(status, wall, wall, FenceCause.SILENT))


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


def _observed_again(status: NodeStatus, wall: float) -> NodeStatus:
    """Return a node of which only the pending fences are known."""
    earlier = max(status.fence_sent_by(sender) for sender in (MANAGER, EARLIER_MANAGER))
    return NodeStatus(
        NodeState.UNKNOWN,
        since=wall,
        fenced=status.fenced,
        fence_causes=status.fence_causes,
        pending_fences=status.pending_fences,
        kept=status.kept,
    ).with_pending_fence(EARLIER_MANAGER, earlier)
