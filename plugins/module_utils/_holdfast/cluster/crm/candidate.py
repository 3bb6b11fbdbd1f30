# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The candidate's part of a turn: fence the manager's node when it is silent, in this node's turn.

A candidate announces its fence on the storage before it sends it, so that the next manager knows
of it.  Its proof counts when this node has become manager.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ...errors import LeaseError, StorageError
from ..model.desired import Wanted
from ..model.effects import Cycle, Log, ReadClocks, perform
from ..model.lease_freeing import freeing
from ..model.maintenance import told
from ..model.observed import FenceReport, NodeSeen, Timing
from ..model.state import ClusterState, Intent
from ..model.versions import paused
from .effects import (
    Fence,
    LeaseHolder,
    Observation,
    ReadDesired,
    ReadManagerLease,
    ReadManagerRecord,
    WriteIntent,
)
from .freeze import DISARMED
from .global_maintenance import in_force
from .health import Verdict, judge
from .memory import Crm
from .observing import just_answered


def watch_manager(crm: Crm, observation: Observation) -> Cycle[None]:
    """Fence the node that has the manager lease if it is silent and it is this node's turn."""
    lease = yield from perform(ReadManagerLease())
    hold = yield from _hold(crm, observation)
    candidacy = consider(
        crm.settings.node,
        lease.node,
        observation.nodes,
        crm.settings.host_ids,
        observation.trouble or crm.trouble,
        hold,
        crm.settings.timing,
    )
    crm.trouble = ""
    clocks = yield from crm.look_at_wall_clock()
    if crm.fences:
        yield from _sort_own_fences(crm, lease.version, observation, clocks.mono)
        # To free a host lease may have taken long.
        clocks = yield from perform(ReadClocks())
    if not candidacy.fence or clocks.mono < crm.fence_not_before or crm.is_fencing(lease.node):
        return
    obstacle = yield from _obstacle(crm, observation)
    if obstacle:
        text = f"{candidacy.reason}; not fenced: {obstacle}"
        yield from perform(Log(text, repeated=True, node=lease.node))
        return
    if (yield from crm.is_late()):
        return
    crm.fence_not_before = clocks.mono + crm.settings.timing.fence_retry
    yield from _fence(crm, lease, candidacy.reason, observation)


def _fence(crm: Crm, lease: LeaseHolder, reason: str, observation: Observation) -> Cycle[None]:
    """Announce the fence of the manager's node, and send it if the manager is still the same."""
    node = lease.node
    clocks = yield from crm.look_at_wall_clock()
    age = observation.nodes[node].heartbeat_age
    intent = Intent(node, reason, clocks.wall - age, clocks.wall, lease.version)
    yield from crm.freed_leases.fence_begins(node, crm.settings.host_ids[node])
    record = freeing(crm.host_lease_generation, crm.freed_leases.to_record_with(node))
    try:
        yield from perform(WriteIntent(intent, record))
    except (StorageError, LeaseError):
        crm.freed_leases.forget(node)
        raise
    crm.freed_leases.recorded = record.leases
    holder = yield from perform(ReadManagerLease())
    # A new manager may have looked for intents before this one was written.  It would leave a node
    # powered off that it does not know to be fenced.  And if this process was held up in the write,
    # or in the read, the node may have been started again meanwhile.
    if holder.version != lease.version or (yield from crm.is_late()):
        crm.freed_leases.forget(node)
        return
    crm.fenced_epoch = lease.version
    text = f"fence {node}: {reason}"
    yield from perform(Log(text, node=node, epoch=lease.version, reason=reason))
    yield from perform(Fence(node))


def _hold(crm: Crm, observation: Observation) -> Cycle[str]:
    """Return why a candidate may not fence a silent manager, empty if it may.

    A maintenance whose expiry is over does not stop a candidate: a manager that hangs could never
    end it.  The expiry counts only as the manager recorded it and as the configuration still
    has it; the whiteboard alone has no expiry.
    """
    if not observation.held or not observation.board_readable:
        return observation.held
    clocks = yield from crm.look_at_wall_clock()
    if not crm.wall_is_even(clocks):
        return observation.held
    state = yield from perform(ReadManagerRecord())
    hold = state.hold if state is not None and not state.hold_from_board else None
    if hold is None or not hold.expired(clocks.wall):
        return observation.held
    desired, _slot = yield from perform(ReadDesired())
    declared = desired.global_maintenance
    return "" if declared is None or declared.expired(clocks.wall) else observation.held


def _obstacle(crm: Crm, observation: Observation) -> Cycle[str]:
    """Return what in the records keeps a candidate from fencing, empty if nothing does."""
    records = yield from crm.records(observation)
    if records.regressions:
        return paused(records.regressions)
    clocks = yield from crm.look_at_wall_clock()
    last = yield from perform(ReadManagerRecord())
    desired, _slot = yield from perform(ReadDesired())
    even = crm.wall_is_even(clocks)
    return kept_from_fencing(last, desired, clocks.wall, wall_even=even)


def _sort_own_fences(crm: Crm, epoch: int, observation: Observation, now: float) -> Cycle[None]:
    """Of this candidate's fences keep a proof against the manager of *epoch*; drop the others.

    The proof counts once this node is manager.  It frees the host lease at once, as the manager
    lease may wait for that.
    """
    proofs: list[FenceReport] = []
    for fence in crm.fences:
        if not (fence.confirmed and fence.quiet) or just_answered(observation, fence.node, now):
            yield from perform(Log(f"fence of {fence.node} failed: {fence.text}"))
            crm.freed_leases.forget(fence.node)
        elif epoch == crm.fenced_epoch:
            proofs.append(fence)
        else:
            crm.freed_leases.forget(fence.node)
    crm.fences = proofs
    for fence in proofs:
        yield from crm.freed_leases.fence_ended(fence, now)


@dataclass(frozen=True)
class Candidacy:
    """What a candidate does about the manager: *fence* its node now, or wait, and why."""

    fence: bool
    reason: str


def consider(
    own: str,
    holder: str,
    nodes: Mapping[str, NodeSeen],
    host_ids: Mapping[str, int],
    storage_trouble: str,
    held: str,
    timing: Timing,
) -> Candidacy:
    """Return whether *own* fences *holder*, the node that has the manager lease.

    Each further healthy node, by host id, waits ``candidate_delay`` longer, so
    that normally only the first one acts.
    """
    if holder == own or holder not in nodes:
        return Candidacy(False, "")
    seen = nodes[holder]
    judgement = judge(seen, storage_trouble, timing)
    if judgement.verdict in (Verdict.HEALTHY, Verdict.WATCH):
        return Candidacy(False, "")
    reason = f"{holder} is the manager: {judgement.reason}"
    if held:
        return Candidacy(False, f"{reason}; not fenced: global maintenance ({held})")
    if judgement.verdict is not Verdict.FENCE:
        return Candidacy(False, reason)
    delay = _rank(own, holder, nodes, host_ids, timing) * timing.candidate_delay
    later = replace(timing, suspect_after=timing.suspect_after + delay)
    if judge(seen, storage_trouble, later).verdict is not Verdict.FENCE:
        return Candidacy(False, f"{reason}; nodes with a lower host id go first")
    return Candidacy(True, reason)


def kept_from_fencing(
    last: ClusterState | None, wanted: Wanted, wall: float, *, wall_even: bool
) -> str:
    """Return why a candidate may not fence the silent manager's node, empty if it may.

    It may have gone silent before it could write a maintenance that was declared on the
    whiteboard, and whether the cluster is disarmed stands in its record (*last*) alone.
    What is taken back in the configuration does not count, nor a maintenance that is over.
    """
    state = last or ClusterState()
    hold = in_force(wanted, state.ended).global_maintenance
    if hold is not None and not (wall_even and hold.expired(wall)):
        return f"global maintenance ({told(hold)})"
    if state.disarm == DISARMED and wanted.disarm == state.disarm_mode:
        return f"the cluster is disarmed ({state.disarm_mode})"
    return ""


def _rank(
    own: str,
    holder: str,
    nodes: Mapping[str, NodeSeen],
    host_ids: Mapping[str, int],
    timing: Timing,
) -> int:
    """Return how many healthy nodes come before *own* by host id."""
    return sum(
        1
        for name, seen in nodes.items()
        if name not in (own, holder)
        and seen.beats
        and seen.heartbeat_age < timing.suspect_after
        and host_ids[name] < host_ids[own]
    )
