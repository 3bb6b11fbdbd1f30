# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The N+1 rule of a plan: after each move every node that could be lost still can be.

The check is that of `redundancy` for existing instances: mirrored instances by arithmetic on
the nodes that changed, others by sums of what is free (`_Needs`), and by trying it out where
these do not decide.  hbal makes no such check.  An instance with a node that is out of service may
move whatever that takes from others: that node is lost already.
"""

from __future__ import annotations

from math import inf

from ...hints import TYPE_CHECKING, Iterable, Sequence
from ..model.admission import policy_failure
from ..model.cluster import RESTARTED_TEMPLATES, Instance, Node
from ..model.moves import Moved

if TYPE_CHECKING:
    from .state import State


KNOWN = 4096
"""For how many lists of instances it is remembered what they need."""


class Guard:
    """Whether a move of a *search* leaves every node as losable as it was.

    Unless it *keeps_n1*, it refuses nothing.
    """

    def __init__(self, search: State, keeps_n1: bool = True) -> None:
        self._search = search
        self._keeps_n1 = keeps_n1
        self._known: dict[int, tuple[list[int], _Needs]] = {}
        nodes = search.nodes
        self._bound = any(nodes[index].migration for index in search.scope)
        self._others = [index for index in search.scope if nodes[index].others]
        self.lost_before = {
            index for index in self._others if not self._others_have_room(nodes, index, {})
        }
        for index in search.scope:
            for peer in nodes[index].peers:
                if not nodes[peer].migration <= nodes[index].accepts:
                    self.lost_before.add(peer)

    def refuses(self, _index: int, moved: Moved) -> bool:
        """Return whether some node could not be lost any more once *moved* was made."""
        return self._keeps_n1 and self.broken_by(moved) is not None

    def broken_by(self, moved: Moved) -> int | None:
        """Return a node that could not be lost any more once *moved* was made, if any."""
        search = self._search
        if any(search.nodes[index].offline for index in moved.nodes):
            return None
        for index, node in moved.nodes.items():
            before = search.nodes[index]
            for peer, kept in node.peers.items():
                running = kept - node.idle_peers.get(peer, 0)
                if node.unallocated > running and (node.free_disk > 0 or before.free_disk <= 0):
                    continue
                held = before.peers.get(peer, 0) - before.idle_peers.get(peer, 0)
                if not before.peers or before.unallocated > held:
                    return peer
        if self._bound and moved.instance.template == "drbd":
            source, target = (
                moved.nodes.get(place, search.nodes[place])
                for place in (moved.instance.primary, moved.instance.secondary)
            )
            if not source.migration <= target.accepts and source.index not in self.lost_before:
                return source.index
        if not self._others and moved.instance.template == "drbd":
            return None
        return self._others_lost(moved)

    def _others_lost(self, moved: Moved) -> int | None:
        nodes = moved.applied_to(self._search.nodes)
        placed = {moved.instance.index: moved.instance}
        for index in self._search.scope:
            if not nodes[index].others or index in self.lost_before:
                continue
            if not self._others_have_room(nodes, index, placed):
                return index
        return None

    def _others_have_room(
        self, nodes: Sequence[Node], index: int, placed: dict[int, Instance]
    ) -> bool:
        """Return whether all on the node *index* that is not mirrored finds another node."""
        search, lost = self._search, nodes[index]
        needs = self._needs(lost.others, placed)
        if needs.fit_however_placed(nodes, lost, search.scope):
            return True
        # Imported here: most clusters are balanced without.
        from ..model.redundancy import can_evacuate, surely_stuck

        cluster = search.cluster_with(nodes, placed)
        return not surely_stuck(cluster, lost, search.scope) and can_evacuate(
            cluster, lost, search.scope
        )

    def _needs(self, others: list[int], placed: dict[int, Instance]) -> _Needs:
        """Return what the instances *others* need together; of those *placed* only their size.

        A move does not change sizes, so it is summed up once for each list.
        """
        key = id(others)
        known = self._known.get(key)
        if known is None or known[0] is not others:
            if len(self._known) >= KNOWN:
                self._known.clear()
            instances = [placed.get(i) or self._search.instance(i) for i in others]
            known = self._known[key] = (others, _Needs(instances))
        return known[1]


class _Needs:
    """The memory and disk of instances that have to be started or created elsewhere."""

    __slots__ = ("_disk", "_lasting", "_memory", "_most_disk", "_most_memory", "_restarts")

    def __init__(self, instances: Sequence[Instance]) -> None:
        memory = [instance.running_memory for instance in instances]
        disk = [instance.disk for instance in instances if instance.local]
        self._memory, self._most_memory = sum(memory), max(memory, default=0)
        self._disk, self._most_disk = sum(disk), max(disk, default=0)
        self._lasting = [each for each in instances if each.template not in RESTARTED_TEMPLATES]
        self._restarts = len(self._lasting) < len(instances)

    def fit_however_placed(self, nodes: Sequence[Node], lost: Node, scope: Sequence[int]) -> bool:
        """Return whether the nodes *scope* but *lost* take all, in whatever way they are spread.

        An instance finds no place only if every node is too full for it.  To be that, a node
        has to take its free memory (or disk) but for the greatest instance.  The nodes cannot
        all do that if this comes to more than there is to place: once the memory, or, with
        disks, each once.
        """
        memory, disk = self._memory, self._disk
        budget, blocked = (2.0 if disk else 1.0), 0.0
        for place in scope:
            node = nodes[place]
            if node.group != lost.group or node.exclusive or node is lost:
                continue
            if self._restarts and not lost.migration <= node.accepts:
                continue
            left = node.unallocated - node.peers.get(lost.index, 0)
            if left <= self._most_memory or (disk and node.free_disk <= self._most_disk):
                continue
            if any(policy_failure(each, node.policy, False) for each in self._lasting):
                continue
            if left > memory and (not disk or node.free_disk > disk):
                return True
            share = (left - self._most_memory) / memory if memory else budget
            if disk:
                share = min(share, (node.free_disk - self._most_disk) / disk)
            blocked += share
            if blocked > budget + ROUNDING:
                return True
        return False


ROUNDING = 1e-6
"""How far a sum of ratios may be off; what is let through is checked in full."""


class FreeSpace:
    """What still fits on a node: never less than the checks of `admission` allow."""

    __slots__ = ("cpus", "disk", "disk_forth", "kept", "memory", "memory_forth", "spindles")

    def __init__(self, node: Node, force: bool) -> None:
        soft = not force
        low = node.low_disk if soft else 0
        self.memory = node.unallocated - (node.reserved if soft and not node.short else 0)
        self.kept = node.unallocated if soft else inf
        self.disk = min(node.free_disk - 1, node.free_disk - low)
        self.memory_forth = node.free_memory_forth if soft else inf
        self.disk_forth = min(node.free_disk_forth - 1, node.free_disk_forth - low) if soft else inf
        self.spindles: float = inf
        self.cpus = inf
        if node.exclusive:
            self.spindles = node.free_spindles
            if soft:
                self.spindles = min(self.spindles, node.free_spindles_forth)
        elif soft:
            used = max(node.used_spindles, node.used_spindles_forth)
            self.spindles = node.high_spindles - used + ROUNDING
        ratio = node.policy.vcpu_ratio
        if soft and ratio >= 0 and node.total_cpus > 0:
            cpus = max(node.used_cpus, node.used_cpus_forth)
            self.cpus = ratio * node.total_cpus - cpus + ROUNDING

    def for_primaries(self, needs: Sequence[tuple[float, ...]]) -> list[bool]:
        """Return for each of `primary_needs` whether the instance may have its primary here."""
        memory, forth, cpus, spindles = self.memory, self.memory_forth, self.cpus, self.spindles
        disk = min(self.disk, self.disk_forth)
        return [
            need[0] < memory
            and need[1] < forth
            and need[2] <= cpus
            and need[3] <= disk
            and need[4] <= spindles
            for need in needs
        ]

    def for_secondaries(self, needs: Sequence[tuple[float, ...]]) -> list[bool]:
        """Return for each of `secondary_needs` whether the instance may have its secondary here."""
        disk, spindles = min(self.disk, self.disk_forth), self.spindles
        memory = min(self.kept, self.memory_forth)
        return [need[0] <= disk and need[1] <= spindles and need[2] < memory for need in needs]


def primary_needs(instance: Instance, storages: Iterable[bool]) -> tuple[float, ...]:
    """Return what *instance* needs of its primary, as `FreeSpace` compares it."""
    if instance.forthcoming:
        return (-inf,) * 5
    return (
        instance.running_memory,
        instance.memory,
        instance.vcpus if instance.online else -inf,
        instance.disk if instance.local else -inf,
        _spindles(instance, storages) if instance.local else -inf,
    )


def secondary_needs(instance: Instance, storages: Iterable[bool]) -> tuple[float, ...]:
    """Return what *instance* needs of its secondary, as `FreeSpace` compares it."""
    if instance.template != "drbd":
        return (inf,) * 3
    if instance.forthcoming:
        return (-inf,) * 3
    return (instance.disk, _spindles(instance, storages), instance.reserved_memory)


def _spindles(instance: Instance, storages: Iterable[bool]) -> float:
    """Return the fewest spindles that *instance* takes on a node.

    *storages* says of all nodes whether their storage is exclusive: both if they differ.
    """
    return min(
        [(instance.spindles or 0) if one else instance.spindle_use for one in storages], default=0
    )
