# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who becomes manager when the manager's node is silent.

Whoever gets the manager lease is manager; this file only decides when a node
that does not hold it may fence the one that does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ..model.desired import Wanted
from ..model.maintenance import told
from ..model.observed import NodeSeen, Timing
from ..model.state import ClusterState
from .freeze import DISARMED
from .global_maintenance import in_force
from .health import Verdict, judge


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
