# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The manager's part of a turn: decide, write the record, confirm the manager lease, act."""

from __future__ import annotations

from dataclasses import replace

from ...errors import LeaseError, StorageError
from ..model.effects import Clocks, Cycle, Log, ReadClocks, perform
from ..model.lease_freeing import freeing
from ..model.observed import FenceReport, Seen
from ..model.state import ClusterState, NodeState
from ..model.versions import older_than_reports, paused, reports_seen
from . import eligibility, step
from .effects import (
    Fence,
    HoldsManagerLease,
    IsEnding,
    Observation,
    OwnRecordStands,
    PowerOn,
    ReadDesired,
    SetBoardMaintenance,
    WakeNodes,
    WriteState,
)
from .memory import Crm
from .repair_plan import record_restored

OWN_LOOK = 5.0
"""Seconds between two checks of the manager's own record on storage."""


def _keeps_managing(
    crm: Crm, state: ClusterState, observation: Observation, clocks: Clocks
) -> Cycle[ClusterState | None]:
    """Return the state to continue with, or None if the manager may not act in this turn.

    A deploy can change the fence settings while this node is manager.
    """
    why = yield from crm.obstacle(state, observation)
    if not why:
        node = crm.settings.node
        return (yield from eligibility.with_own_membership(node, state, clocks.wall))
    yield from perform(Log(why, repeated=True))
    if crm.membership_differs_since is None:
        crm.membership_differs_since = clocks.mono
    if clocks.mono - crm.membership_differs_since >= eligibility.RESIGN_AFTER:
        text = "the manager lease is given up: this node's membership is another one"
        yield from perform(Log(text))
        crm.stop_managing()
        yield from crm.give_up_lease()
    return None


def manage(crm: Crm, state: ClusterState, observation: Observation, clocks: Clocks) -> Cycle[None]:
    """Decide, write the decision, and act on it.  *clocks* were read after the observation."""
    keeps = yield from _keeps_managing(crm, state, observation, clocks)
    if keeps is None:
        return
    crm.state = keeps
    observed = yield from _observe(crm, keeps, observation)
    if observed is None or crm.state is None:
        return
    start, seen = observed
    decided = step.step(start, seen, crm.settings.timing)
    crm.changes = decided.changes
    crm.trouble = ""
    if (yield from crm.is_late()):
        return
    # A fence whose node still answers was not accepted as proof, so it does not free the host lease
    # either.
    proofs = [
        one if _is_off(decided.state, one.node) else replace(one, confirmed=False)
        for one in seen.fences
    ]
    yield from _write(crm, decided.state, proofs)
    crm.drop_ends()
    yield from _act(crm, decided)


def _observe(
    crm: Crm, state: ClusterState, observation: Observation
) -> Cycle[tuple[ClusterState, Seen] | None]:
    """Return the input of the decision, or None if the manager cannot decide in this turn."""
    foreign = eligibility.foreign_hosts(observation, crm.settings.timing.suspect_after)
    if foreign != state.foreign_hosts:
        state = replace(state, foreign_hosts=foreign)
    desired, slot = yield from perform(ReadDesired())
    if desired.generation > state.generation:
        records = yield from crm.records(observation)
        yield from crm.begin_generation(records, state.epoch)
        return None
    older = older_than_reports(state, desired, reports_seen(observation.nodes))
    if older:
        yield from crm.pause(paused(older))
        return None
    clocks = yield from crm.look_at_wall_clock()
    state = yield from _look_at_own_record(crm, state, clocks)
    seen = Seen(
        now=clocks.mono,
        wall=clocks.wall,
        wanted=desired,
        config_slot=slot,
        nodes=observation.nodes,
        storage_trouble=observation.trouble or crm.trouble,
        held=observation.held,
        fencing=crm.fencing | {end.report.node for end in crm.held_back},
        fences=tuple(crm.fences),
        powers=tuple(crm.powers),
        board_readable=observation.board_readable,
        wall_even=crm.wall_is_even(clocks),
    )
    return state, seen


def _look_at_own_record(crm: Crm, state: ClusterState, clocks: Clocks) -> Cycle[ClusterState]:
    """Return *state*; note that it must be written again if its record is damaged.

    The manager knows what it wrote, so a damaged record loses nothing.
    """
    if crm.written is None or clocks.mono < crm.next_own_look:
        return state
    crm.next_own_look = clocks.mono + OWN_LOOK
    if (yield from perform(OwnRecordStands())):
        return state
    text = "this manager's record on storage is damaged or older than what was written"
    yield from perform(Log(text))
    crm.written = None
    return record_restored(state, clocks.wall)


def _write(crm: Crm, state: ClusterState, proofs: list[FenceReport]) -> Cycle[None]:
    """Write the record if it changed, and free the host leases that *proofs* prove dead.

    A failed write may still reach the storage, with command uids that must not be used again.  So
    the manager then reads its record again.
    """
    record = freeing(crm.host_lease_generation, crm.freed_leases.to_record(proofs))
    if state != crm.written:
        before = crm.state
        try:
            yield from perform(WriteState(state, record))
        except (StorageError, LeaseError):
            crm.stop_managing()
            raise
        for line in _new_events(before, state):
            yield from perform(line)
        crm.state = crm.written = state
        yield from perform(WakeNodes())
    yield from crm.record_freeing(record)
    crm.state = state
    for fence in proofs:
        clocks = yield from perform(ReadClocks())
        yield from crm.freed_leases.fence_ended(fence, clocks.mono)


def _act(crm: Crm, decided: step.Step) -> Cycle[None]:
    """Send the orders of a written decision, after confirming the manager lease."""
    if not decided.fences and not decided.powers and decided.board is None:
        return
    nodes = [order.node for order in decided.fences]
    for node in nodes:
        yield from crm.freed_leases.fence_begins(node, crm.settings.host_ids[node])
    if not (yield from _may_act(crm)):
        for node in nodes:
            crm.freed_leases.forget(node)
        return
    for node in nodes:
        yield from perform(Fence(node))
    for node in decided.powers:
        yield from perform(PowerOn(node))
    if decided.board is not None:
        yield from perform(SetBoardMaintenance(decided.board))


def _may_act(crm: Crm) -> Cycle[bool]:
    """Return whether orders may be sent now.  Nothing is read between this and the orders."""
    if not (yield from perform(HoldsManagerLease())):
        raise LeaseError("the manager lease was lost before the orders were given")
    if (yield from perform(IsEnding())):
        # This process would not wait for the end of the orders.
        return False
    if (yield from crm.is_late()):
        # The written orders were not sent: read the record and decide again.
        crm.stop_managing()
        return False
    return True


def _is_off(state: ClusterState, node: str) -> bool:
    """Return whether *node* is proved dead in *state*."""
    status = state.nodes.get(node)
    return status is not None and status.state is NodeState.OFF


def _new_events(before: ClusterState | None, after: ClusterState) -> list[Log]:
    """Return a journal line for each event that is new in *after*."""
    known = set(before.events) if before is not None else set()
    lines = []
    for event in after.events:
        if event not in known:
            about = " ".join(part for part in (event.service, event.node) if part)
            lines.append(
                Log(
                    f"{event.kind} {about}: {event.text}",
                    node=event.node,
                    service=event.service,
                    epoch=after.epoch,
                    reason=event.text,
                )
            )
    return lines
