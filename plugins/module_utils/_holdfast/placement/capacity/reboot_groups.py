# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Group nodes that can be rebooted together, in as few rounds as can be found.

Two nodes conflict if an instance is mirrored between them, or if both would fail over to a third
(htools, Program/Hroller and Node, version 3.0.2).  Four simple rules colour this graph, and the
colouring with the fewest colours is taken.  In a round, instances without a mirror move to nodes
that stay up; where they cannot, the round is split.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...hints import Callable, Sequence
from ..model.admission import primary_failure, with_primary, without_primary
from ..model.cluster import NO_NODE, Cluster, Node
from ..model.score import Score

Graph = dict[int, set[int]]
Cleared = tuple[list[int], tuple[tuple[str, str], ...]]


@dataclass(frozen=True)
class Round:
    """Nodes that are rebooted together, and what has to move before, as (instance, node)."""

    nodes: tuple[str, ...]
    moves: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Rounds:
    """All rounds, the largest first and the master's last; *stuck* fit in none, with why."""

    rounds: tuple[Round, ...]
    stuck: tuple[tuple[str, str], ...]


def reboot_rounds(cluster: Cluster, offline: bool) -> Rounds:
    """Return the rounds in which all nodes in service can be rebooted.

    With *offline* all instances are shut down meanwhile.
    """
    online = [node.index for node in cluster.nodes if not node.offline]
    graph = conflicts(cluster, online, offline)
    outcomes = []
    for colouring in colourings(graph):
        colours: dict[int, list[int]] = {}
        for index in online:
            colours.setdefault(colouring[index], []).append(index)
        for spare in (True, False):
            for even in (True, False):
                split = _split(cluster, list(colours.values()), not offline, spare, even)
                outcomes.append(split)
    found, stuck = min(outcomes, key=lambda outcome: (len(outcome[1]), len(outcome[0])))
    found.sort(key=lambda each: -len(each[0]))
    found.sort(key=lambda each: any(cluster.nodes[index].master for index in each[0]))
    rounds = [
        Round(tuple([node.name for node in sorted(nodes, key=_master_last)]), moves)
        for nodes, moves in (([cluster.nodes[i] for i in group], moves) for group, moves in found)
    ]
    return Rounds(tuple(rounds), tuple(stuck))


def _split(
    cluster: Cluster, colours: list[list[int]], move: bool, spare: bool, even: bool
) -> tuple[list[Cleared], list[tuple[str, str]]]:
    """Return each colour's nodes as one round, or as several where that is too many at once."""
    found: list[Cleared] = []
    stuck: list[tuple[str, str]] = []
    for colour in colours:
        members = colour
        while members:
            if not move:
                found.append((members, ()))
                break
            cleared, moves, reasons = _clear(cluster, members, spare, even)
            if not cleared:
                stuck += [(cluster.nodes[index].name, reasons[index]) for index in members]
                break
            found.append((cleared, moves))
            members = [index for index in members if index not in cleared]
    return found, stuck


def _master_last(node: Node) -> tuple[bool, int]:
    return node.master, node.index


def conflicts(cluster: Cluster, nodes: Sequence[int], offline: bool) -> Graph:
    """Return for each of *nodes* those that must not be down at the same time."""
    graph: Graph = {index: set() for index in nodes}
    inside = set(nodes)
    for node in cluster.nodes:
        peers = {
            instance.primary
            for instance in (cluster.instance(index) for index in node.secondaries)
            if instance.template == "drbd"
        }
        for peer in peers & inside:
            if node.index in inside:
                graph[peer].add(node.index)
                graph[node.index].add(peer)
            if not offline:
                graph[peer] |= (peers & inside) - {peer}
    return graph


def colourings(graph: Graph) -> list[dict[int, int]]:
    """Return the colours of the nodes by each rule, with the first or the last of equals first."""
    rules = (by_degree, by_saturation, by_coloured, by_independence)
    backwards = {-index: {-peer for peer in peers} for index, peers in graph.items()}
    last_first = [rule(backwards) for rule in rules]
    return [rule(graph) for rule in rules] + [
        {index: colours[-index] for index in graph} for colours in last_first
    ]


def by_degree(graph: Graph) -> dict[int, int]:
    """Colour the nodes with most neighbours first."""
    colours: dict[int, int] = {}
    for index in sorted(graph, key=lambda each: (-len(graph[each]), each)):
        colours[index] = _first_free(graph, colours, index)
    return colours


def by_saturation(graph: Graph) -> dict[int, int]:
    """Colour next the node whose neighbours have most different colours."""
    return _greedily(graph, lambda neighbours: len(set(neighbours)))


def by_coloured(graph: Graph) -> dict[int, int]:
    """Colour next the node with most neighbours that have a colour."""
    return _greedily(graph, len)


def _greedily(graph: Graph, rank: Callable[[list[int]], int]) -> dict[int, int]:
    """Colour next the node with the highest *rank* of the colours of its neighbours."""
    colours: dict[int, int] = {}
    ranks = dict.fromkeys(graph, 0)
    while ranks:
        index = max(ranks, key=lambda each: (ranks[each], len(graph[each]), -each))
        del ranks[index]
        colours[index] = _first_free(graph, colours, index)
        for peer in graph[index]:
            if peer in ranks:
                ranks[peer] = rank([colours[each] for each in graph[peer] if each in colours])
    return colours


def by_independence(graph: Graph) -> dict[int, int]:
    """Fill one colour after the other, each time with what shares most barred neighbours."""
    colours: dict[int, int] = {}
    left = set(graph)
    colour = 0
    while left:
        usable = set(left)
        barred: set[int] = set()
        while usable:
            index = max(
                usable,
                key=lambda each: (len(graph[each] & barred), len(graph[each] & left), -each),
            )
            colours[index] = colour
            usable.discard(index)
            left.discard(index)
            barred |= graph[index] & usable
            usable -= graph[index]
        colour += 1
    return colours


def _first_free(graph: Graph, colours: dict[int, int], index: int) -> int:
    taken = {colours[peer] for peer in graph[index] if peer in colours}
    colour = 0
    while colour in taken:
        colour += 1
    return colour


def _clear(
    cluster: Cluster, members: Sequence[int], spare: bool, even: bool
) -> tuple[list[int], tuple[tuple[str, str], ...], dict[int, str]]:
    """Return which of *members* can be emptied of what has no mirror, the moves, and why not.

    With *spare* nothing moves to another of *members* while there is a node besides.
    """
    cleared: list[int] = []
    moves: dict[str, str] = {}
    reasons: dict[int, str] = {}
    now = cluster
    for index in members:
        emptied = _emptied(now, index, [*cleared, index], members if spare else (), even)
        if isinstance(emptied, str):
            reasons[index] = f"no other node can take {emptied}"
            continue
        now, moved = emptied
        # What moved to a node that goes down as well has moved on with it.
        moves.update(moved)
        cleared.append(index)
    return cleared, tuple(moves.items()), reasons


def _emptied(
    cluster: Cluster, index: int, down: Sequence[int], late: Sequence[int], even: bool
) -> tuple[Cluster, list[tuple[str, str]]] | str:
    """Return the cluster once *index* holds only mirrors, and the moves; or what is stuck there.

    Nothing moves to the nodes *down*, and to those of *late* only where no other has room.
    Instances are spread *even*, or go to the first node that has room.
    """
    moves: list[tuple[str, str]] = []
    now = cluster
    for number in list(cluster.nodes[index].others):
        instance = now.instance(number)
        group = now.nodes[index].group
        targets = [
            node
            for node in now.nodes
            if node.group == group and not node.offline and node.index not in down
            if primary_failure(node, instance, True) is None
        ]
        if not targets:
            return instance.name
        early = [node for node in targets if node.index not in late] or targets
        source = now.nodes[index]
        score = Score([node for node in now.nodes if node.group == group])
        best = early[0]
        if even:
            best = min(
                early,
                key=lambda node: score.value_with([(node, with_primary(node, instance))]),
            )
        changed = {
            index: without_primary(source, instance),
            best.index: with_primary(best, instance),
        }
        now = now.with_nodes(changed, instance.at(best.index, NO_NODE))
        moves.append((instance.name, best.name))
    return now, moves
