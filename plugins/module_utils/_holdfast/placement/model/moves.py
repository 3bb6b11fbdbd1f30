# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Moves of an existing instance: the nodes after each, or why it is not possible.

The moves and their checks are those of htools (Cluster/Moves, version 3.0.2).  Where the source
is offline the soft limits of the target do not count: anything is better than staying there.
"""

from __future__ import annotations

from ...hints import Any, Sequence, dataclass
from .admission import (
    migration_failure,
    primary_failure,
    secondary_failure,
    with_primary,
    with_secondary,
    without_primary,
    without_secondary,
)
from .cluster import Cluster, Instance, Node

Opcode = dict[str, Any]


class Moved:
    """The result of a move: the nodes that it changes, by number, and the instance after it."""

    __slots__ = ("instance", "nodes")

    def __init__(self, nodes: dict[int, Node], instance: Instance) -> None:
        self.nodes = nodes
        self.instance = instance

    def applied_to(self, nodes: Sequence[Node]) -> list[Node]:
        """Return all *nodes* of the cluster as they are after the move."""
        after = list(nodes)
        for index, node in self.nodes.items():
            after[index] = node
        return after


@dataclass
class Found:
    """A way to move one instance: the cluster after it, and the opcodes that do it."""

    cluster: Cluster
    instance: Instance
    opcodes: list[Opcode]


def common_locations(first: Node, second: Node) -> int:
    """Return how many locations two nodes share: places that fail together."""
    return len(first.location & second.location)


def failover(nodes: Sequence[Node], instance: Instance, force: bool) -> Moved | str:
    """Let the two nodes of *instance* change their roles."""
    old_primary, old_secondary = nodes[instance.primary], nodes[instance.secondary]
    force = force or old_primary.offline
    failure = migration_failure(old_primary, old_secondary)
    if failure is not None:
        return failure
    primary = without_secondary(old_secondary, instance)
    failure = primary_failure(primary, instance, force)
    if failure is not None:
        return failure
    secondary = without_primary(old_primary, instance)
    failure = secondary_failure(
        secondary, instance, instance.secondary, force, ignore_disk=old_primary.offline
    )
    if failure is not None:
        return failure
    changed = {instance.primary: with_secondary(secondary, instance, instance.secondary)}
    if instance.primary != instance.secondary:
        changed[instance.secondary] = with_primary(primary, instance)
    return Moved(changed, instance.at(instance.secondary, instance.primary))


def failover_to(nodes: Sequence[Node], instance: Instance, target: int, force: bool) -> Moved | str:
    """Let the node *target* run *instance*, whose disks every node can reach."""
    old_primary, new_primary = nodes[instance.primary], nodes[target]
    failure = migration_failure(old_primary, new_primary)
    if failure is None:
        failure = primary_failure(new_primary, instance, force or old_primary.offline)
    if failure is not None:
        return failure
    changed = {instance.primary: without_primary(old_primary, instance)}
    changed[target] = with_primary(new_primary, instance)
    return Moved(changed, instance.at(target, instance.secondary))


def replace_secondary(
    nodes: Sequence[Node], instance: Instance, target: int, force: bool
) -> Moved | str:
    """Let the node *target* be the secondary of *instance*."""
    primary, old_secondary = nodes[instance.primary], nodes[instance.secondary]
    failure = secondary_failure(
        nodes[target], instance, instance.primary, force or old_secondary.offline
    )
    if failure is not None:
        return failure
    moved = instance.at(instance.primary, target, common_locations(primary, nodes[target]))
    # The primary takes the instance again, since its location score may be another.
    bare = without_primary(primary, instance)
    failure = primary_failure(bare, moved, True)
    if failure is not None:
        return failure
    changed = {instance.secondary: without_secondary(old_secondary, instance)}
    changed[target] = with_secondary(nodes[target], moved, instance.primary)
    changed[instance.primary] = with_primary(bare, moved)
    return Moved(changed, moved)
