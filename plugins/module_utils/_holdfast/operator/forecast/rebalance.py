# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Planning how the load of the services would be evened out: ``rebalance_info``, the status page.

The manager's own moves are played one after the other, each on the cluster that the one before
leaves, until none is worth it.  The manager itself makes at most one while nothing else moves.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from ...cluster.crm.rebalance import next_move
from ...cluster.crm.round import Round
from ...cluster.model.observed import Seen, Timing
from ...cluster.model.policy import Policy
from ...cluster.model.state import ClusterState
from ...errors import InputError
from ...node.configuration import load
from ...result import Result
from .moves import checked_nodes, look


@dataclass(frozen=True)
class Step:
    """Services that move together, as they are kept together, and the imbalance that is left."""

    services: tuple[str, ...]
    source: str
    target: str
    imbalance: float


def rebalance_info(options: Mapping[str, Any], check: bool) -> Result:
    """Return the steps that would even the load out, as the module was asked.

    Raises ``InputError`` for a node that is none, or a threshold below 0.
    """
    from ...cluster.crm.global_maintenance import why_held

    configuration = load(Path(options["config"]))
    nodes = checked_nodes(options["nodes"] or sorted(configuration.members), configuration)
    state, seen = look(configuration)
    threshold = options["threshold"]
    if threshold is None:
        threshold = seen.wanted.policy.rebalance_threshold
    if threshold < 0:
        raise InputError("threshold", threshold, "an imbalance of 0 or more")
    policy, most = seen.wanted.policy, options["most"]
    before, plan = plan_rebalance(state, seen, nodes, threshold, most)
    reason = why_held(state)
    if not reason and not plan and most != 0:
        reason = why_no_step(before, threshold, policy)
    values = {
        "nodes": nodes,
        "steps": [{**asdict(one), "services": list(one.services)} for one in plan],
        "imbalance_before": before,
        "imbalance_after": plan[-1].imbalance if plan else before,
        "reason": f"Nothing would be moved: {reason}." if reason else "",
    }
    return Result(values=values)


def plan_rebalance(
    state: ClusterState, seen: Seen, nodes: Sequence[str], threshold: float, most: int
) -> tuple[float, list[Step]]:
    """Return the imbalance of *nodes* and at most *most* steps among them; below 0: no limit."""
    found = steps(state, seen, nodes, threshold)
    return imbalance_now(state, seen, nodes), list(islice(found, most if most >= 0 else None))


def why_no_step(before: float, threshold: float, policy: Policy) -> str:
    """Return why there is no step where the imbalance is *before*."""
    if before <= threshold:
        return f"the imbalance is {before:.2f}, and only above {threshold:.2f} a move is sought"
    return (
        f"the imbalance is {before:.2f}, but no move that rules and room allow takes away"
        f" {policy.rebalance_margin:.0%} of it"
    )


def imbalance_now(state: ClusterState, seen: Seen, nodes: Sequence[str]) -> float:
    """Return the imbalance of *nodes* as it is."""
    return next_move(Round(state, _among(nodes, seen), Timing()), math.inf)[0]


def steps(
    state: ClusterState, seen: Seen, nodes: Sequence[str], threshold: float
) -> Iterator[Step]:
    """Seek one step after the other among *nodes*, each when it is asked for, while it is worth it.

    Each costs about as much as a round in which the manager balances by itself.
    """
    seen = _among(nodes, seen)
    while True:
        _before, move = next_move(Round(state, seen, Timing()), threshold)
        if move is None:
            return
        for service_id in move.services:
            status = replace(state.services[service_id], node=move.target, target="")
            state = state.with_service(service_id, status)
        yield Step(move.services, move.source, move.target, move.imbalance)


def _among(nodes: Sequence[str], seen: Seen) -> Seen:
    wished = set(nodes)
    return replace(seen, nodes={name: one for name, one in seen.nodes.items() if name in wished})
