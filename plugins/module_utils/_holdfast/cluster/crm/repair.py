# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Beginning a new generation: the state of a manager after an operator repaired the records.

What the record says about places and proofs may be out of date, so none of it is used: every
node is observed again, and every service is looked for on every node before anything is done
with it.  A node that cannot answer has to be confirmed off; its expired lease is not enough.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..model.desired import Wanted
from ..model.maintenance import told
from ..model.observed import Seen, Timing
from ..model.state import ClusterState, NodeState, NodeStatus, ServiceState, ServiceStatus
from ..model.versions import Floor
from .round import Round

REASON = "asking where it runs after the records were repaired"


def repaired(
    last: ClusterState,
    wanted: Wanted,
    floors: Iterable[Floor],
    epoch: int,
    manager: str,
    wall: float,
) -> ClusterState:
    """Return the state with which *manager* begins the generation of *wanted*.

    *last* is the newest record that can be read; *floors* are the versions that are known: the
    numbers of commands go on above all of them, so that no uid is given twice.
    """
    commands = max([last.commands, *(floor.commands for floor in floors)]) + 1
    state = ClusterState(
        epoch=epoch,
        manager=manager,
        commands=commands,
        nodes={name: _observed_again(status, wall) for name, status in last.nodes.items()},
        ignored=last.ignored,
        ignored_since=last.ignored_since,
        failovers=tuple(one for one in last.failovers if one.finished),
        events=last.events,
        hold=last.hold,
        hold_from_board=last.hold_from_board,
        board=last.board,
        board_pending=last.board_pending,
        ended=last.ended,
        membership=last.membership,
        generation=wanted.generation,
        base=commands,
    )
    round_ = Round(state, Seen(0.0, wall, wanted), Timing())
    for service_id, service in sorted(wanted.services.items()):
        if service.ignored:
            continue
        before = last.services.get(service_id)
        place = (before.node or before.last_node) if before is not None else service.node
        asking = ServiceStatus(
            ServiceState.PROBE,
            reason=REASON,
            last_node=place,
            request=before.request if before is not None else 0.0,
            left_since=commands,
        )
        round_.command(service_id, asking, ServiceState.PROBE)
    by = f", {told(wanted.repaired_by)}" if wanted.repaired_by is not None else ""
    round_.say("repaired", f"the records were repaired{by}: generation {wanted.generation} begins")
    probes = tuple(sorted(round_.state.services))
    return replace(round_.state, probes=probes)


def record_restored(state: ClusterState, wall: float) -> ClusterState:
    """Return *state* with a note that its record on storage was not as the manager wrote it.

    The manager knows what it wrote, so that nothing is lost; it writes it again.
    """
    round_ = Round(state, Seen(0.0, wall, Wanted()), Timing())
    text = "its record on storage was damaged or older than what it wrote: written again"
    round_.say("record_restored", text, node=state.manager)
    return round_.state


def _observed_again(status: NodeStatus, wall: float) -> NodeStatus:
    """Return a node as one of which nothing is known but the fences that may still arrive."""
    return NodeStatus(
        NodeState.UNKNOWN,
        since=wall,
        fenced=status.fenced,
        fence_sent=status.fence_sent,
        inherited_fence=max(status.inherited_fence, status.fence_sent),
        slower_fence=status.slower_fence,
        kept=status.kept,
    )
