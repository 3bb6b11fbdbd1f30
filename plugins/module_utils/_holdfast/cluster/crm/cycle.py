# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The CRM's cycle: observe, decide, write the record, confirm the manager lease, act.

Each node's CRM runs one turn every half second under the host lease of its node.  Without a host
lease it is neither manager nor candidate.  A candidate's part of a turn is in ``candidate.py``.
"""

from __future__ import annotations

from dataclasses import replace

from ...errors import LeaseError, NoAnswerError, StorageError
from ..model.desired import DesiredState
from ..model.effects import Clocks, Cycle, ForgetRepeated, Log, ReadClocks, perform
from ..model.lease_freeing import Freeing, freeing
from ..model.news import news
from ..model.observed import FenceReport, ObservedState
from ..model.state import ClusterState, Event, NodeState
from ..model.versions import not_heard_yet, observed_reports, older_than_reports, paused
from . import eligibility, step
from .candidate import watch_manager
from .effects import (
    AcquireManagerLease,
    AdoptHostLease,
    AwaitPredecessor,
    ConfirmHostLease,
    Fence,
    HoldsManagerLease,
    IsEnding,
    LeaveHostLease,
    Look,
    Observation,
    OwnRecordStands,
    PowerOn,
    ReadDesired,
    ReadIntent,
    ReadReadableState,
    SetBoardMaintenance,
    ShowTrouble,
    TakeEnded,
    WakeNodes,
    WriteState,
)
from .health import sort_ends
from .last_look import why_not_sent
from .memory import Crm, WallClock
from .repair_plan import Records
from .standbys import stands_back
from .takeover import record_restored, take_over

CONFIRM = 1.0
"""Seconds between two confirmations of this node's host lease."""

OWN_LOOK = 5.0
"""Seconds between two checks of the manager's own record on storage."""


def turn(crm: Crm) -> Cycle[None]:
    """Run one turn.  A storage error ends the turn without a decision."""
    try:
        yield from _turn(crm)
    except (StorageError, LeaseError) as error:
        crm.trouble = f"this node's own storage fails: {error}"
        yield from perform(Log(f"round without result: {error}", repeated=True))
        if crm.state is None:
            yield from crm.give_up_lease()


def end(crm: Crm) -> Cycle[None]:
    """Release the manager lease because the process ends.  It no longer frees host leases."""
    try:
        if crm.adopted:
            yield from crm.record_freeing(Freeing())
    except (StorageError, LeaseError) as error:
        text = f"the record of what is being freed is not taken back: {error}"
        yield from perform(Log(text, repeated=True))
    yield from crm.give_up_lease()


def _turn(crm: Crm) -> Cycle[None]:
    clocks = yield from perform(ReadClocks())
    crm.begun = clocks.mono
    if crm.wall_clock is None:
        crm.wall_clock = WallClock.first_look(clocks)
    yield from perform(AwaitPredecessor())
    if not (yield from _has_host_lease(crm)):
        return
    if (yield from stands_back(crm)):
        crm.trouble = ""
        yield from perform(ShowTrouble(""))
        yield from crm.record_freeing(freeing(crm.host_lease_generation, {}))
        return
    observation = yield from perform(Look())
    yield from perform(ShowTrouble(observation.elsewhere))
    clocks = yield from perform(ReadClocks())
    yield from _collect(crm, observation, clocks.mono)
    yield from crm.freed_leases.watch(clocks.mono)
    if crm.state is not None and not (yield from perform(HoldsManagerLease())):
        yield from perform(Log("the manager lease is lost: no longer manager"))
        crm.stop_managing()
    if crm.state is None:
        yield from _try_for_manager(crm, observation)
    if crm.state is None:
        record = freeing(crm.host_lease_generation, crm.freed_leases.to_record())
        yield from crm.record_freeing(record)
    else:
        yield from _manage(crm, crm.state, observation, clocks)


def _has_host_lease(crm: Crm) -> Cycle[bool]:
    """Adopt or confirm this node's host lease; return whether this node has it."""
    try:
        if not crm.adopted:
            crm.host_lease_generation = yield from perform(AdoptHostLease())
        elif crm.begun >= crm.next_confirmation:
            yield from perform(ConfirmHostLease())
        else:
            return True
    except NoAnswerError:
        raise
    except LeaseError as error:
        yield from _resign(crm, str(error))
        return False
    if not crm.adopted:
        yield from perform(Log("works under this node's host lease"))
        yield from perform(ForgetRepeated())
        crm.joined = crm.begun
    crm.adopted = True
    crm.next_confirmation = crm.begun + CONFIRM
    return True


def _resign(crm: Crm, reason: str) -> Cycle[None]:
    """Stop being manager or candidate because this node has no host lease."""
    if crm.state is not None:
        yield from perform(Log("no longer manager: the host lease is lost"))
    crm.stop_managing()
    # The record of freed leases is valid only under the host lease that was lost.
    crm.freed_leases.recorded = {}
    text = f"without a host lease nothing is decided here: {reason}"
    yield from perform(Log(text, repeated=True))
    if crm.adopted:
        crm.adopted = False
        yield from perform(LeaveHostLease())


def _collect(crm: Crm, observation: Observation, now: float) -> Cycle[None]:
    """Take the fences and power-ons that ended; hold back proofs that do not count yet."""
    ended = yield from perform(TakeEnded())
    crm.fencing = ended.fencing
    crm.powers.extend(ended.powers)
    ends = [*crm.held_back, *ended.fences]
    reports, crm.held_back = sort_ends(ends, observation, crm.settings.timing, now)
    crm.fences.extend(reports)


def _try_for_manager(crm: Crm, observation: Observation) -> Cycle[None]:
    """Acquire the manager lease if it is free; otherwise watch its holder.

    A storage that the other nodes do not use has a free manager lease and a copy of the records.
    Its manager lease must not be acquired.
    """
    if observation.elsewhere:
        yield from _stand_aside(crm, observation.elsewhere)
        return
    last = yield from perform(ReadReadableState())
    if not (yield from _is_eligible(crm, last or ClusterState(), observation)):
        return
    epoch = yield from perform(AcquireManagerLease())
    if epoch is None:
        yield from watch_manager(crm, observation)
        if not crm.fences:
            return
        # This node proved the manager's node off and freed its host lease.  Any other node that
        # became manager now would have to fence that node again.
        epoch = yield from perform(AcquireManagerLease())
    if epoch is None:
        return
    records = yield from crm.records(observation)
    if not (yield from _is_eligible(crm, records.state or ClusterState(), observation)):
        return
    yield from _take_over(crm, records, epoch, observation)


def _take_over(crm: Crm, records: Records, epoch: int, observation: Observation) -> Cycle[None]:
    """Become manager, unless a node has acted on newer records than the storage has."""
    if records.repaired:
        yield from crm.begin_generation(records, epoch)
        return
    waits = not_heard_yet(observation.nodes, crm.settings.timing.suspect_after)
    if records.regressions or waits:
        why = paused(records.regressions) if records.regressions else waits
        yield from crm.pause(why)
        return
    intent = yield from perform(ReadIntent())
    clocks = yield from perform(ReadClocks())
    last, node = records.state or ClusterState(), crm.settings.node
    state = take_over(last, epoch, node, clocks.wall, intent)
    crm.state = yield from eligibility.with_own_membership(node, state, clocks.wall)
    crm.written = None
    crm.pause_reason = ""
    yield from perform(Log(f"manager with epoch {epoch}", epoch=epoch))


def _stand_aside(crm: Crm, why: str) -> Cycle[None]:
    """Be neither manager nor candidate in this turn."""
    yield from perform(Log(f"not managing: {why}", repeated=True))
    crm.pause_reason = why
    crm.drop_ends()
    yield from crm.give_up_lease()


def _is_eligible(crm: Crm, last: ClusterState, observation: Observation) -> Cycle[bool]:
    """Return whether this node may be manager; if not, release the manager lease."""
    why = yield from crm.obstacle(last, observation)
    if why:
        yield from perform(Log(why, repeated=True))
        crm.drop_ends()
        yield from crm.give_up_lease()
    return not why


def _manage(crm: Crm, state: ClusterState, observation: Observation, clocks: Clocks) -> Cycle[None]:
    """Decide, write the decision, and act on it.  *clocks* were read after the observation."""
    keeps = yield from _keeps_managing(crm, state, observation, clocks)
    if keeps is None:
        return
    crm.state = keeps
    inputs = yield from _observe(crm, keeps, observation)
    if inputs is None or crm.state is None:
        return
    start, observed = inputs
    decided = step.step(start, observed, crm.settings.timing)
    crm.changes = decided.changes
    crm.trouble = ""
    if (yield from crm.is_late()):
        return
    # A fence whose node still answers was not accepted as proof, so it does not free the host lease
    # either.
    proofs = [
        one if _is_off(decided.state, one.node) else replace(one, confirmed=False)
        for one in observed.fences
    ]
    yield from _write(crm, decided.state, observed.desired, proofs)
    crm.drop_ends()
    yield from _act(crm, decided)


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


def _observe(
    crm: Crm, state: ClusterState, observation: Observation
) -> Cycle[tuple[ClusterState, ObservedState] | None]:
    """Return the input of the decision, or None if the manager cannot decide in this turn."""
    foreign = eligibility.foreign_hosts(observation, crm.settings.timing.suspect_after)
    if foreign != state.foreign_hosts:
        state = replace(state, foreign_hosts=foreign)
    desired, slot = yield from perform(ReadDesired())
    if desired.generation > state.generation:
        # The lease may have gone back with the records: its version would stay below the epoch.
        text = "the manager lease is given up: the next manager begins with the repaired records"
        yield from perform(Log(text))
        crm.stop_managing()
        crm.drop_ends()
        yield from crm.give_up_lease()
        return None
    older = older_than_reports(state, desired, observed_reports(observation.nodes))
    if older:
        yield from crm.pause(paused(older))
        return None
    clocks = yield from crm.look_at_wall_clock()
    state = yield from _look_at_own_record(crm, state, clocks)
    observed = ObservedState(
        now=clocks.mono,
        wall=clocks.wall,
        desired=desired,
        config_slot=slot,
        nodes=observation.nodes,
        storage_trouble=observation.trouble or crm.trouble,
        held=observation.held,
        fencing=crm.fencing | {end.report.node for end in crm.held_back},
        fences=tuple(crm.fences),
        powers=tuple(crm.powers),
        board_readable=observation.board_readable,
        board_binds=observation.board_binds,
        wall_even=crm.wall_is_even(clocks),
        joined_for=crm.joined_for,
    )
    return state, observed


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


def _write(
    crm: Crm, state: ClusterState, desired: DesiredState, proofs: list[FenceReport]
) -> Cycle[None]:
    """Write the record if it changed, and free the host leases that *proofs* prove dead.

    A failed write may still reach the storage, with command uids that must not be used again.  So
    the manager then reads its record again.
    """
    record = freeing(crm.host_lease_generation, crm.freed_leases.to_record(proofs))
    if state != crm.written:
        before = crm.state
        changes = news(crm.written, crm.written_from, state, desired)
        try:
            yield from perform(WriteState(state, record, changes))
        except (StorageError, LeaseError):
            crm.stop_managing()
            raise
        for event in new_events(before, state):
            yield from perform(_line(event, state.epoch))
        crm.state = crm.written = state
        crm.written_from = desired
        yield from perform(WakeNodes(changes.nodes))
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
    silent = [node for node in nodes if not decided.state.nodes[node].demanded]
    if not (yield from _may_act(crm, nodes, silent)):
        for node in nodes:
            crm.freed_leases.forget(node)
        return
    for node in nodes:
        yield from perform(Fence(node))
    for node in decided.powers:
        yield from perform(PowerOn(node))
    if decided.board is not None:
        yield from perform(SetBoardMaintenance(decided.board))


def _may_act(crm: Crm, fenced: list[str], silent: list[str]) -> Cycle[bool]:
    """Return whether orders may be sent now; *fenced* are to be fenced, *silent* for silence.

    Nothing is read between this and the orders.
    """
    why = (yield from why_not_sent(silent)) if fenced else ""
    if why:
        yield from perform(Log(f"not fenced: {why}"))
        crm.stop_managing()
        return False
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
    """Return whether *node* is confirmed dead in *state*."""
    status = state.nodes.get(node)
    return status is not None and status.state is NodeState.OFF


def new_events(before: ClusterState | None, after: ClusterState) -> list[Event]:
    """Return the events that *after* has beyond *before*, in their order."""
    if before is not None and before.events is after.events:
        return []
    known = set(before.events) if before is not None else set()
    return [event for event in after.events if event not in known]


def _line(event: Event, epoch: int) -> Log:
    """Return the journal line of an event."""
    about = " ".join(part for part in (event.service, event.node) if part)
    return Log(
        f"{event.kind} {about}: {event.text}",
        node=event.node,
        service=event.service,
        epoch=epoch,
        reason=event.text,
    )
