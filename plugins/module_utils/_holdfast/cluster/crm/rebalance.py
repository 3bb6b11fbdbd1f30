# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Moves that balance the load, one at a time and only if the imbalance lasts.

A node's load is the mean of its shares of CPU and memory in use, or its number of services if no
node reports its size.  The imbalance is the coefficient of variation of all loads, as in Proxmox
VE's HA manager.  Services kept together move as one.  Each move must reduce the imbalance by a
share that is worth it, so that balancing ends.  If no move does, two nodes may exchange services,
which move at the same time; both have room for all of them until the exchange has ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import sqrt

from ..model.service import STARTED
from ..model.states import MOVING, ServiceState
from . import commands, selection
from .load import NOTHING
from .locations import location_cost, location_refusal
from .round import Round

ROUND_SECONDS = 10.0
"""Seconds of one round of the hold, as in Proxmox VE's HA manager."""

NODES_LOOKED_AT = 16
"""The number of fullest nodes to move from and emptiest nodes to move to."""

NODES_EXCHANGED, GROUPS_EXCHANGED, NEAREST = 4, 32, 4
"""An exchange is searched between so many of the fullest and of the emptiest nodes, with so many
groups of each, and for each group so many others whose difference is nearest to the best one."""


@dataclass(frozen=True)
class Move:
    """Services that move together from *source* to *target*, and the *imbalance* afterwards."""

    services: tuple[str, ...]
    source: str
    target: str
    imbalance: float


def imbalance(loads: Iterable[float]) -> float:
    """Return the coefficient of variation of *loads*; 0 without load."""
    values = list(loads)
    total = sum(values)
    if not values or total <= 0:
        return 0.0
    mean = total / len(values)
    return sqrt(sum((value - mean) ** 2 for value in values) / len(values)) / mean


def rebalance(round_: Round) -> None:
    """Begin the best move if the imbalance has lasted long enough and nothing else moves."""
    policy = round_.observed.desired.policy
    loads = _loads(round_)
    before = imbalance(loads.values())
    if before <= policy.rebalance_threshold:
        if round_.state.uneven:
            round_.state = replace(round_.state, uneven=0.0)
        return
    now = round_.observed.wall
    since = round_.state.uneven
    if not since or since > now:
        round_.state = replace(round_.state, uneven=now)
        since = now
    if now - since < (policy.rebalance_hold - 1) * ROUND_SECONDS or _anything_moves(round_):
        return
    for move in _worthwhile(round_, loads, before):
        _begin(round_, move, before)


def next_moves(round_: Round, threshold: float) -> tuple[float, tuple[Move, ...]]:
    """Return the imbalance, and the best moves if it exceeds *threshold* and they are worth it.

    These are none, one, or the two of an exchange.  Nothing is begun: this is for forecasts.
    """
    loads = _loads(round_)
    before = imbalance(loads.values())
    return before, _worthwhile(round_, loads, before) if before > threshold else ()


def _worthwhile(round_: Round, loads: dict[str, float], before: float) -> tuple[Move, ...]:
    """Return the best move, or else the best exchange, if it reduces the imbalance enough."""
    most = before - round_.observed.desired.policy.rebalance_margin * before
    best = _best_move(round_, loads)
    if best is not None and best.imbalance <= most:
        return (best,)
    return _best_exchange(round_, loads, most)


def _begin(round_: Round, best: Move, before: float) -> None:
    text = f"evens the load out: imbalance from {before:.2f} to {best.imbalance:.2f}"
    for service_id in best.services:
        status = round_.state.services[service_id]
        desired = round_.observed.desired.services[service_id]
        round_.say("balance", text, service=service_id, node=best.target)
        commands.move(round_, service_id, status, desired, selection.Choice(best.target, text))
    round_.state = replace(round_.state, uneven=0.0)


def _loads(round_: Round) -> dict[str, float]:
    """Return the load of each node that can run services."""
    load = round_.load
    loads = {}
    for node in round_.observed.nodes:
        if selection.unusable(node, round_.state, round_.observed):
            continue
        if load.figures is None:
            loads[node] = float(load.counts.get(node, 0))
        else:
            loads[node] = _share(load.used.get(node, NOTHING), load.figures.nodes.get(node))
    return loads


def _share(used: Sequence[float], room: Sequence[float] | None) -> float:
    """Return the mean of the shares of CPU and memory in use."""
    if room is None:
        return 0.0
    shares = [one / most if most > 0 else 0.0 for one, most in zip(used, room)]
    return sum(shares) / len(shares)


def _anything_moves(round_: Round) -> bool:
    under_way = (ServiceState.RECOVERY, ServiceState.FENCE, ServiceState.REQUEST_START)
    return any(
        one.state in MOVING or one.state in under_way for one in round_.state.services.values()
    )


def _best_move(round_: Round, loads: dict[str, float]) -> Move | None:
    """Return the move that leaves the least imbalance; by names where two are equal."""
    order = sorted(loads, key=lambda node: (-loads[node], node))
    sources = set(order[:NODES_LOOKED_AT])
    targets = order[::-1][:NODES_LOOKED_AT]
    total = sum(loads.values())
    squares = sum(value * value for value in loads.values())
    best: Move | None = None
    for group in _groups(round_, sources):
        source = round_.state.services[group[0]].node
        for target in targets:
            if target == source:
                continue
            off, on = _weight(round_, group, source), _weight(round_, group, target)
            left, full = loads[source] - off, loads[target] + on
            sum_ = total - off + on
            square = squares - loads[source] ** 2 - loads[target] ** 2 + left**2 + full**2
            value = _variation(sum_, square, len(loads))
            if best is not None and value >= best.imbalance - 1e-12:
                continue
            if _stays_within(round_, group, source, target) and all(
                _may_go(round_, one, target) for one in group
            ):
                best = Move(group, source, target, value)
    return best


def _best_exchange(round_: Round, loads: dict[str, float], most: float) -> tuple[Move, ...]:
    """Return the exchange that leaves the least imbalance, at most *most*; empty if there is none.

    Both nodes have room for all services that are exchanged.
    """
    order = sorted(loads, key=lambda node: (-loads[node], node))
    fullest, emptiest = order[:NODES_EXCHANGED], order[::-1][:NODES_EXCHANGED]
    total = sum(loads.values())
    squares = sum(value * value for value in loads.values())
    groups = _by_node(round_, {*fullest, *emptiest})
    best: tuple[Move, ...] = ()
    least = most + 1e-12
    for source, target in product(fullest, emptiest):
        if loads[source] <= loads[target]:
            continue
        for off, group in groups[source]:
            # Half of the difference has to go.
            wished = off - (loads[source] - loads[target]) / 2
            near = sorted(groups[target], key=lambda row: (abs(row[0] - wished), row[1]))[:NEAREST]
            for back, other in near:
                left = loads[source] - off + _weight(round_, other, source)
                full = loads[target] - back + _weight(round_, group, target)
                sum_ = total - loads[source] - loads[target] + left + full
                square = squares - loads[source] ** 2 - loads[target] ** 2 + left**2 + full**2
                value = _variation(sum_, square, len(loads))
                if value < least - 1e-12 and _may_exchange(round_, group, source, other, target):
                    least = value
                    best = (
                        Move(group, source, target, value),
                        Move(other, target, source, value),
                    )
    return best


def _by_node(round_: Round, nodes: set[str]) -> dict[str, list[tuple[float, tuple[str, ...]]]]:
    """Return for each node the heaviest groups that can move, with their loads there."""
    found: dict[str, list[tuple[float, tuple[str, ...]]]] = {node: [] for node in nodes}
    for group in _groups(round_, nodes):
        node = round_.state.services[group[0]].node
        found[node].append((_weight(round_, group, node), group))
    return {
        node: sorted(rows, key=lambda row: (-row[0], row[1]))[:GROUPS_EXCHANGED]
        for node, rows in found.items()
    }


def _may_exchange(
    round_: Round, group: Sequence[str], source: str, other: Sequence[str], target: str
) -> bool:
    """Return whether both groups may go at the same time; none waits for the other to leave."""
    desired = round_.observed.desired
    rules = [
        {rule.name for one in members for rule in desired.location_rules_of(one)}
        for members in (group, other)
    ]
    if rules[0] & rules[1]:
        # What one of them gains could be lost by the other.
        return False
    return (
        _stays_within(round_, group, source, target)
        and _stays_within(round_, other, target, source)
        and all(_may_go(round_, one, target) for one in group)
        and all(_may_go(round_, one, source) for one in other)
    )


def _variation(total: float, squares: float, count: int) -> float:
    """Return the coefficient of variation from a sum and a sum of squares."""
    if total <= 0:
        return 0.0
    mean = total / count
    return sqrt(max(squares / count - mean * mean, 0.0)) / mean


def _groups(round_: Round, sources: set[str]) -> list[tuple[str, ...]]:
    """Return the services on *sources* that can move, those kept together as one."""
    groups: list[tuple[str, ...]] = []
    for service_id, status in sorted(round_.state.services.items()):
        if status.state is not ServiceState.STARTED or status.node not in sources:
            continue
        partners = round_.observed.desired.partners(service_id, "together")
        group = tuple(sorted({service_id, *partners}))
        if group[0] != service_id or not all(_movable(round_, one, status.node) for one in group):
            continue
        groups.append(group)
    return groups


def _movable(round_: Round, service_id: str, node: str) -> bool:
    status = round_.state.services.get(service_id)
    desired = round_.observed.desired.services.get(service_id)
    if status is None or desired is None or desired.state != STARTED:
        return False
    if selection.waits_for_probe(service_id, round_.state, round_.observed):
        return False
    return status.state is ServiceState.STARTED and status.node == node


def _weight(round_: Round, group: Sequence[str], node: str) -> float:
    """Return the load that a group adds to *node*."""
    figures = round_.load.figures
    if figures is None:
        return float(len(group))
    rows = [figures.services.get(one, NOTHING) for one in group]
    used = (sum(row[0] for row in rows), sum(row[1] for row in rows))
    return _share(used, figures.nodes.get(node))


def _may_go(round_: Round, service_id: str, target: str) -> bool:
    """Return whether the rules allow a service to move to *target* and stay there."""
    status = round_.state.services[service_id]
    if target in status.failed_nodes or target in status.no_failback:
        return False
    rule = round_.observed.desired.node_rule_for(service_id)
    if rule is not None and rule.strict and target not in rule.nodes:
        # Its operator may have moved it against its rule.
        return False
    if rule is not None and rule.nodes.get(target, -1) < rule.nodes.get(status.node, -1):
        return False
    if round_.load.refusals([target], service_id, status):
        return False
    desired = round_.observed.desired
    if location_refusal(service_id, target, round_.state, desired):
        return False
    if desired.location_rules_of(service_id):
        costs = [
            location_cost(service_id, one, round_.state, desired) for one in (target, status.node)
        ]
        if costs[0] > costs[1]:
            return False
    return not selection.refusal(service_id, target, round_.state, round_.observed, round_.load)


def _stays_within(round_: Round, group: Sequence[str], source: str, target: str) -> bool:
    """Return whether a move exceeds no safety capacity more than now."""
    taken = round_.load.reservations
    return taken is None or taken.excess(group, target) <= taken.excess(group, source)
