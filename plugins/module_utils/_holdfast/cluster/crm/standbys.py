# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which CRMs observe all nodes: the manager, its standbys, and more of them while it is silent.

If every CRM read every block, the traffic on the storage would grow with the square of the nodes.
All others are reserves: they read only the manager's lease and heartbeat, and now and then its
record.  A reserve is neither manager nor candidate.  It begins to observe when the manager has been
silent so long that the nodes before it should have acted, and ``Watch`` then counts silence from
that moment on.

The number of observers doubles with each ``candidate_delay`` of silence: the manager and all
standbys may have failed at once, with a hundred reserves of a rack, and nobody may know which.
"""

from __future__ import annotations

from dataclasses import replace

from ..model.effects import Cycle, ReadClocks, perform
from ..model.state import ClusterState, NodeState
from .effects import ReadHeartbeat, ReadManagerLease, ReadReadableState
from .memory import Crm, CrmSettings, Reserve

WATCH = 0.9
"""Seconds between two looks of a reserve at the manager, at least: every second turn."""

RANK = 5.0
"""Seconds between two reads of the record for a reserve's rank, which changes with the nodes."""


def stands_back(crm: Crm) -> Cycle[bool]:
    """Return whether this CRM leaves the observation of the nodes to others in this turn.

    Whatever it cannot tell makes it observe: no readable record, a manager that is no member, or
    fences of its own that are not over.
    """
    if crm.state is not None or crm.is_busy():
        crm.reserve = None
        return False
    known = crm.reserve
    if known is None or known.observes or crm.begun >= known.watched + WATCH:
        crm.reserve = yield from _look(crm, known)
    return crm.is_reserve


def _look(crm: Crm, known: Reserve | None) -> Cycle[Reserve | None]:
    """Look at the manager; return what this reserve knows then, None if it is none."""
    lease = yield from perform(ReadManagerLease())
    if lease.node in ("", crm.settings.node):
        # Nobody is known to manage, or this node is about to, or pauses the cluster.
        return None
    if known is None or known.epoch != lease.version or crm.begun >= known.ranked + RANK:
        record = yield from perform(ReadReadableState())
        if record is None or record.epoch > lease.version:
            return None
        before = reserves_before(crm.settings, record, lease.node)
        if before is None:
            return None
        if known is None or known.epoch != lease.version:
            known = Reserve(lease.version, before, crm.begun)
        else:
            known = replace(known, before=before, ranked=crm.begun)
    beat = yield from perform(ReadHeartbeat(lease.node))
    now = (yield from perform(ReadClocks())).mono
    # A heartbeat of its node is no sign of a manager that has given the lease back.
    lives = lease.active is not False and beat is not None and beat > (known.beat or (0, 0.0))
    if known.observed is None or lives:
        known = replace(known, beat=beat, observed=now)
    timing = crm.settings.timing
    patience = timing.suspect_after + known.before.bit_length() * timing.candidate_delay
    observes = known.observed is not None and now - known.observed > patience
    return replace(known, watched=crm.begun, observes=observes)


def reserves_before(settings: CrmSettings, record: ClusterState, manager: str) -> int | None:
    """Return how many reserves have a lower host id than this node; None for a standby.

    The *record* may be that of the manager before, so that not all nodes turn to the board at once
    when the manager changes.
    """
    own = settings.host_ids[settings.node]
    before = sum(
        host_id < own and name != manager and _is_online(record, name)
        for name, host_id in settings.host_ids.items()
    )
    return before - settings.timing.standbys if before >= settings.timing.standbys else None


def _is_online(record: ClusterState, node: str) -> bool:
    status = record.nodes.get(node)
    return status is not None and status.state is NodeState.ONLINE
