# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node has room for, as a few numbers: never less than `admission` allows."""

from __future__ import annotations

from math import inf

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..model.cluster import Instance, Node

ROUNDING = 1e-6
"""How far a sum of ratios may be off; what is let through is checked in full."""


class Room:
    """What a node has room for: never less than the checks of `admission` allow."""

    __slots__ = ("cpus", "disk", "disk_forth", "kept", "memory", "memory_forth", "spindles")

    def __init__(self, node: Node, force: bool) -> None:
        soft = not force
        low = node.low_disk if soft else 0
        self.memory = node.unallocated - (node.reserved if soft and not node.short else 0)
        self.kept = node.unallocated if soft else inf
        self.disk = min(node.free_disk - 1, node.free_disk - low)
        self.memory_forth = node.free_memory_forth if soft else inf
        self.disk_forth = min(node.free_disk_forth - 1, node.free_disk_forth - low) if soft else inf
        self.spindles = self.cpus = inf
        if soft:
            used = max(node.used_spindles, node.used_spindles_forth)
            self.spindles = node.high_spindles - used + ROUNDING
        ratio = node.policy.vcpu_ratio
        if soft and ratio >= 0 and node.total_cpus > 0:
            cpus = max(node.used_cpus, node.used_cpus_forth)
            self.cpus = ratio * node.total_cpus - cpus + ROUNDING

    def for_primary(self, instance: Instance) -> bool:
        """Return whether *instance* may have its primary here."""
        if instance.forthcoming:
            return True
        return (
            instance.running_memory < self.memory
            and instance.memory < self.memory_forth
            and (instance.vcpus <= self.cpus or not instance.online)
            and (
                not instance.local
                or (
                    instance.disk <= self.disk
                    and instance.disk <= self.disk_forth
                    and instance.spindle_use <= self.spindles
                )
            )
        )

    def for_secondary(self, instance: Instance) -> bool:
        """Return whether *instance* may have its secondary here."""
        if instance.forthcoming:
            return True
        return (
            instance.disk <= self.disk
            and instance.disk <= self.disk_forth
            and instance.spindle_use <= self.spindles
            and instance.reserved_memory < self.kept
            and instance.reserved_memory < self.memory_forth
        )
