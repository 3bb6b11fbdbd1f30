# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The CRM's cycle: observe, decide, write the record, confirm the manager lease, act.

Each node's CRM runs one turn every half second under the host lease of its node.  Without a host
lease it is neither manager nor candidate.  ``manager.py`` is the manager's part of a turn,
``candidate.py`` the candidate's.
"""

from __future__ import annotations

from ...errors import LeaseError, NoAnswerError, StorageError
from ..model.effects import Cycle, ForgetRepeated, Log, ReadClocks, perform
from ..model.lease_freeing import Freeing, freeing
from ..model.state import ClusterState
from ..model.versions import not_heard_yet, paused
from . import eligibility, step
from .candidate import watch_manager
from .effects import (
    AcquireManagerLease,
    AdoptHostLease,
    AwaitPredecessor,
    ConfirmHostLease,
    HoldsManagerLease,
    LeaveHostLease,
    Look,
    Observation,
    ReadIntent,
    ReadReadableState,
    ShowTrouble,
    TakeEnded,
)
from .manager import manage
from .memory import Crm, WallClock
from .observing import sort_ends
from .repair_plan import Records

CONFIRM = 1.0
"""Seconds between two confirmations of this node's host lease."""


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
        yield from manage(crm, crm.state, observation, clocks)


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
    suspect_after = crm.settings.timing.suspect_after
    reports, crm.held_back = sort_ends(ends, observation, suspect_after, now)
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
    state = step.take_over(last, epoch, node, clocks.wall, intent)
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
