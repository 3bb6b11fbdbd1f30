# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Balancing as hbal does it: one best move after the other, until nothing gains enough.

The rule is that of htools (Cluster, tryBalance, version 3.0.2): of all moves of all
instances the one with the lowest score, of equal ones the first; its score is added up
anew for it, as there, so that even what differs in the last digit only is decided alike.
"""

from __future__ import annotations

from ..model.score import Score
from .moves import MOVED_TEMPLATES, Choice, MoveLimits
from .search import Search
from .steps import Made, Plan, made_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..model.cluster import Cluster


class StopRule:
    """When a run ends: hbal's options ``-g``, ``--min-gain-limit``, ``-e`` and ``-l``."""

    __slots__ = ("least_gain", "least_gain_below", "least_score", "most_moves")

    def __init__(
        self,
        least_gain: float = 0.01,
        least_gain_below: float = 0.1,
        least_score: float = 1e-9,
        most_moves: int = -1,
    ) -> None:
        self.least_gain = least_gain
        self.least_gain_below = least_gain_below
        self.least_score = least_score
        self.most_moves = most_moves


def movable(
    cluster: Cluster, scope: Iterable[int], limits: MoveLimits, only: Callable[[str], bool]
) -> list[int]:
    """Return the instances on the nodes *scope* that may move, in order of their numbers.

    *only* tells by its name whether the operator lets one move.
    """
    nodes = cluster.nodes
    inside = set(scope)
    found = []
    for instance in cluster.instances():
        if instance.primary not in inside or instance.template not in MOVED_TEMPLATES:
            continue
        if not instance.auto_balance or not only(instance.name):
            continue
        if instance.template == "drbd" and instance.secondary not in inside:
            continue
        if limits.evacuate and not any(nodes[i].offline for i in instance.nodes):
            continue
        found.append(instance.index)
    return found


def optimal_score(cluster: Cluster, scope: Iterable[int]) -> float:
    """Return what reserving memory for failovers costs at least (htools, optimalCVScore)."""
    nodes = [cluster.nodes[index] for index in scope]
    if len(nodes) < 2:
        return 0.0
    total = sum(node.total_memory for node in nodes)
    most = max(node.total_memory for node in nodes)
    kept = float(sum(sum(node.peers.values()) for node in nodes))
    if total <= most or not total:
        return 0.0
    return 0.25 * (kept / (total - most) - kept / total)


def score_of(cluster: Cluster, scope: Iterable[int]) -> float:
    """Return the score of the nodes *scope*; 0 if none is in service, as hbal has it."""
    nodes = [cluster.nodes[index] for index in scope]
    return 0.0 if all(node.offline for node in nodes) else Score(nodes).value()


def run_as_hbal(
    cluster: Cluster,
    scope: list[int],
    limits: MoveLimits,
    stop: StopRule,
    only: Callable[[str], bool],
    say: Callable[[Made], None] | None = None,
) -> Plan:
    """Balance the nodes *scope* of *cluster* as hbal does, and return its moves.

    *say* is told each move as it is found.
    """
    enough = optimal_score(cluster, scope) + stop.least_score
    start = score = score_of(cluster, scope)
    search = Search(cluster, scope, movable(cluster, scope, limits, only), limits)
    moves: list[Made] = []
    while score > enough and (stop.most_moves < 0 or len(moves) < stop.most_moves):
        best = first_best(search, score, search.best())
        if best is None:
            break
        if score <= stop.least_gain_below and score - best.score < stop.least_gain:
            break
        made = made_of(search.instances[best.instance], best, best.score)
        score = best.score
        search.put(best.moved)
        moves.append(made)
        if say is not None:
            say(made)
        if limits.evacuate and not any(search.nodes[i].offline for i in made.after.nodes):
            search.leave_out(best.instance)
    return Plan(moves, start, score, search.cluster())


def first_best(search: Search, score: float, choices: Iterable[Choice]) -> Choice | None:
    """Return the first of the best of *choices*, by a score that is added up anew."""
    best: Choice | None = None
    for choice in choices:
        nodes = list(search.nodes)
        for index, node in choice.moved.nodes.items():
            nodes[index] = node
        value = Score([nodes[index] for index in search.scope]).value()
        if value < (score if best is None else best.score):
            choice.score = value
            best = choice
    return best
