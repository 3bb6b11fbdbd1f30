# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The candidate's part of a turn: fence the silent manager's node when it is this node's turn.

A candidate announces its fence on the storage before it sends it, so that the next manager knows
it.  The proof counts once this node is manager.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ...errors import LeaseError, StorageError
from ..model.desired import DesiredState
from ..model.effects import Cycle, Log, perform
from ..model.lease_freeing import freeing
from ..model.maintenance import maintenance_text
from ..model.observed import FenceReport, ObservedNode
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
from .health import Verdict, judge, just_answered
from .last_look import why_not_sent
from .memory import Crm, CrmSettings
from .pausing import DISARMED


def watch_manager(crm: Crm, observation: Observation) -> Cycle[None]:
    """Fence the node that holds the manager lease if it is silent and it is this node's turn."""
    lease = yield from perform(ReadManagerLease())
    hold = yield from _hold(crm, observation)
    trouble = observation.trouble or crm.trouble
    candidacy = consider(crm.settings, lease.node, observation.nodes, trouble, hold, crm.joined_for)
    crm.trouble = ""
    clocks = yield from crm.look_at_wall_clock()
    if crm.fences:
        yield from _sort_own_fences(crm, lease.version, observation, clocks.mono)
    if crm.fences:
        # The holder is proved off: it is not fenced again.
        return
    if not candidacy.fence or clocks.mono < crm.fence_not_before or crm.is_fencing(lease.node):
        return
    obstacle = yield from _record_obstacle(crm, observation)
    if obstacle:
        text = f"{candidacy.reason}; not fenced: {obstacle}"
        yield from perform(Log(text, repeated=True, node=lease.node))
        return
    if (yield from crm.is_late()):
        return
    crm.fence_not_before = clocks.mono + crm.settings.timing.fence_retry
    yield from _fence(crm, lease, candidacy.reason, observation)


def _fence(crm: Crm, lease: LeaseHolder, reason: str, observation: Observation) -> Cycle[None]:
    """Announce the fence of the manager's node; send it if the manager has not changed."""
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
    # The manager may have recorded something since.
    obstacle = yield from why_not_sent([node])
    obstacle = obstacle or (yield from _record_obstacle(crm, observation))
    if obstacle:
        crm.freed_leases.forget(node)
        yield from perform(Log(f"{reason}; not fenced: {obstacle}", repeated=True, node=node))
        return
    holder = yield from perform(ReadManagerLease())
    # A new manager may have read the intents before this one was written.  It would leave the node
    # powered off, because it does not know this fence.  If this process was delayed in the write or
    # the read, the node may have booted again.
    if holder.version != lease.version or (yield from crm.is_late()):
        crm.freed_leases.forget(node)
        return
    crm.fenced_epoch = lease.version
    text = f"fence {node}: {reason}"
    yield from perform(Log(text, node=node, epoch=lease.version, reason=reason))
    yield from perform(Fence(node))


def _hold(crm: Crm, observation: Observation) -> Cycle[str]:
    """Return why maintenance forbids fencing a silent manager; empty if it does not.

    An expired maintenance does not stop a candidate, because a hung manager could never end it.
    The expiry must be in the manager's record and in the configuration.  A maintenance set on the
    whiteboard alone has no expiry.
    """
    if not observation.board_binds:
        return ""
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


def _record_obstacle(crm: Crm, observation: Observation) -> Cycle[str]:
    """Return why the records forbid this candidate to fence; empty if they do not."""
    records = yield from crm.records(observation)
    if records.regressions:
        return paused(records.regressions)
    clocks = yield from crm.look_at_wall_clock()
    last = yield from perform(ReadManagerRecord())
    desired, _slot = yield from perform(ReadDesired())
    even = crm.wall_is_even(clocks)
    return kept_from_fencing(last, desired, clocks.wall, wall_even=even)


def _sort_own_fences(crm: Crm, epoch: int, observation: Observation, now: float) -> Cycle[None]:
    """Keep this candidate's proof against the manager of *epoch*; drop its other fences.

    The proof counts once this node is manager.  Its host lease is freed at once, because the
    manager lease may depend on it.
    """
    proofs: list[FenceReport] = []
    timing = crm.settings.timing
    for fence in crm.fences:
        answers = just_answered(observation, fence.node, now, timing)
        if not (fence.confirmed and fence.quiet) or answers:
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
    """Whether a candidate fences the manager's node now, and why."""

    fence: bool
    reason: str


def consider(
    settings: CrmSettings,
    holder: str,
    nodes: Mapping[str, ObservedNode],
    storage_trouble: str,
    held: str,
    joined_for: float,
) -> Candidacy:
    """Return whether this node fences *holder*, the node with the manager lease.

    This node has worked under its host lease for *joined_for* seconds.

    Each further healthy node, by host id, waits ``candidate_delay`` longer, so that normally only
    the first one fences.
    """
    if holder == settings.node or holder not in nodes:
        return Candidacy(False, "")
    observed, timing = nodes[holder], settings.timing
    judgement = judge(observed, storage_trouble, timing, joined_for)
    if judgement.verdict in (Verdict.HEALTHY, Verdict.WATCH):
        return Candidacy(False, "")
    reason = f"{holder} is the manager: {judgement.reason}"
    if held:
        return Candidacy(False, f"{reason}; not fenced: global maintenance ({held})")
    if judgement.verdict is not Verdict.FENCE:
        return Candidacy(False, reason)
    delay = _rank(settings, holder, nodes) * timing.candidate_delay
    later = replace(timing, suspect_after=timing.suspect_after + delay)
    if observed.short_limit:
        observed = replace(observed, short_limit=observed.short_limit + delay)
    if judge(observed, storage_trouble, later, joined_for).verdict is not Verdict.FENCE:
        return Candidacy(False, f"{reason}; nodes with a lower host id go first")
    return Candidacy(True, reason)


def kept_from_fencing(
    last: ClusterState | None, desired: DesiredState, wall: float, *, wall_even: bool
) -> str:
    """Return why a candidate may not fence the silent manager's node; empty if it may.

    The manager may have failed before it recorded a declared maintenance.  Whether the cluster is
    disarmed is only in the manager's record (*last*).  A maintenance that was removed or has
    expired does not count.
    """
    state = last or ClusterState()
    hold = desired.in_force(state.ended).global_maintenance
    if hold is not None and not (wall_even and hold.expired(wall)):
        return f"global maintenance ({maintenance_text(hold)})"
    if state.disarm == DISARMED and desired.disarm == state.disarm_mode:
        return f"the cluster is disarmed ({state.disarm_mode})"
    return ""


def _rank(settings: CrmSettings, holder: str, nodes: Mapping[str, ObservedNode]) -> int:
    """Return the number of healthy nodes with a lower host id than this node."""
    own, host_ids = settings.node, settings.host_ids
    return sum(
        observed.beats and observed.is_fresh(settings.timing) and host_ids[name] < host_ids[own]
        for name, observed in nodes.items()
        if name not in (own, holder)
    )
