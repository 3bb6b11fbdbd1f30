# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether an instance may be on a node, and the node with it or without it.

The checks and their order are those of htools (Node and Instance, version 3.0.2).
Hard limits hold always: memory, disk and spindles that do not exist.  Soft ones (a
policy's ratios, the memory kept for failovers, exclusion tags) can be ignored.

Each check is written as a row of limits that are compared in turn, so that the same
rows say which limit was broken and by how much (`primary_limits`).
"""

from __future__ import annotations

from math import copysign, inf, nan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .cluster import Instance, Node, Policy, Spec

MEMORY = "FailMem"
DISK = "FailDisk"
CPU = "FailCPU"
N1 = "FailN1"
TAGS = "FailTags"
MIGRATION = "FailMig"
DISK_COUNT = "FailDiskCount"
SPINDLES = "FailSpindles"
INTERNAL = "FailInternal"

FAILURES = (MEMORY, DISK, CPU, N1, TAGS, MIGRATION, DISK_COUNT, SPINDLES, INTERNAL)
"""All kinds of failure, in the order in which they are reported."""


def divide(part: float, whole: float) -> float:
    """Return *part* / *whole* as floating point numbers have it, 0 in *whole* included."""
    if whole:
        return part / whole
    if not part:
        return nan
    # A negative ratio of nothing is a zero with a sign.
    return copysign(inf, part) * copysign(1.0, whole)


def policy_failure(instance: Instance, policy: Policy, exclusive: bool) -> str | None:
    """Return how *instance* breaks the *policy* of a group, None if it does not.

    One of the policy's ranges must fit; if none does, the failure is the first one's.
    """
    failure = None
    for least, most in reversed(policy.ranges):
        failure = _beyond(instance, least, exclusive, -1) or _beyond(instance, most, exclusive, 1)
        if failure is None:
            break
    if failure is not None:
        return failure
    return None if instance.template in policy.templates else DISK


def _beyond(instance: Instance, spec: Spec, exclusive: bool, side: int) -> str | None:
    """Return what of *instance* is below (*side* -1) or above (1) *spec*."""
    if (instance.memory - spec.memory) * side > 0:
        return MEMORY
    if any((size - spec.disk) * side > 0 for size in instance.disk_sizes):
        return DISK
    if (instance.vcpus - spec.cpus) * side > 0:
        return CPU
    spindles = instance.spindles if exclusive else instance.spindle_use
    if spindles is None or (spindles - spec.spindles) * side > 0:
        return SPINDLES
    if instance.template != "diskless" and (len(instance.disk_sizes) - spec.disks) * side > 0:
        return DISK_COUNT
    return None


def free_spindles_with(node: Node, free: int, instance: Instance) -> int:
    """Return what is left of *free* spindles of *node* once *instance* is there."""
    if not node.exclusive:
        return 0
    return -1 if instance.spindles is None else free - instance.spindles


def primary_failure(node: Node, instance: Instance, force: bool) -> str | None:
    """Return why *instance* cannot have *node* as its primary, None if it can.

    With *force* only the hard limits count.
    """
    if instance.forthcoming:
        return None if force else _primary_forthcoming_failure(node, instance)
    free_memory = node.unallocated - instance.running_memory
    local = instance.local
    if free_memory <= 0:
        return MEMORY
    if local:
        if node.free_disk - instance.disk <= 0:
            return DISK
        if not force and node.free_disk - instance.disk < node.low_disk:
            return DISK
        if node.exclusive and free_spindles_with(node, node.free_spindles, instance) < 0:
            return SPINDLES
    if force:
        return None
    if local and spindles_with(node, node.used_spindles, instance) > node.high_spindles:
        return DISK
    if free_memory <= node.reserved and not node.short:
        return MEMORY
    ratio = node.policy.vcpu_ratio
    used = node.used_cpus + (instance.vcpus if instance.online else 0)
    if ratio >= 0 and ratio < divide(used, node.total_cpus):
        return CPU
    if instance.exclusion and any(tag in node.exclusion for tag in instance.exclusion):
        return TAGS
    return _primary_forthcoming_failure(node, instance)


def spindles_with(node: Node, used: float, instance: Instance) -> float:
    """Return the spindles in use on *node*, now *used*, once *instance* is there."""
    if node.exclusive:
        return 0.0
    return used + instance.spindle_use if instance.local else used


def _primary_forthcoming_failure(node: Node, instance: Instance) -> str | None:
    """Return the failure if planned instances are counted as well."""
    if node.free_memory_forth - instance.memory <= 0:
        return MEMORY
    if instance.local:
        free_disk = node.free_disk_forth - instance.disk
        if free_disk <= 0 or free_disk < node.low_disk:
            return DISK
        if node.exclusive and free_spindles_with(node, node.free_spindles_forth, instance) < 0:
            return SPINDLES
        if spindles_with(node, node.used_spindles_forth, instance) > node.high_spindles:
            return DISK
    ratio = node.policy.vcpu_ratio
    used = node.used_cpus_forth + (instance.vcpus if instance.online else 0)
    if ratio >= 0 and ratio < divide(used, node.total_cpus):
        return CPU
    return None


def secondary_failure(
    node: Node, instance: Instance, primary: int, force: bool, ignore_disk: bool = False
) -> str | None:
    """Return why *instance*, with its primary on *primary*, cannot have *node* as secondary.

    With *force* only the hard limits count, with *ignore_disk* not even free disk.
    """
    if not instance.forthcoming:
        failure = secondary_failure_anyhow(node, instance, force, ignore_disk)
        if failure is not None or force:
            return failure
        if not covers_failover(node, node.peers.get(primary, 0) + instance.reserved_memory):
            return MEMORY
    elif force:
        return None
    return secondary_forthcoming_failure(node, instance)


def secondary_failure_anyhow(
    node: Node, instance: Instance, force: bool, ignore_disk: bool
) -> str | None:
    """Return why *node* cannot be secondary wherever the primary is; the first checks."""
    if instance.template != "drbd":
        return DISK
    free_disk = node.free_disk - instance.disk
    if free_disk <= 0 and not ignore_disk:
        return DISK
    if free_disk < node.low_disk and not force:
        return DISK
    if node.exclusive and free_spindles_with(node, node.free_spindles, instance) < 0:
        return SPINDLES
    if force:
        return None
    if spindles_with(node, node.used_spindles, instance) > node.high_spindles:
        return DISK
    return MEMORY if instance.reserved_memory >= node.unallocated else None


def covers_failover(node: Node, needed: int) -> bool:
    """Return whether *node* can keep *needed* memory for one peer, or could not even before."""
    return node.short or node.unallocated > max(node.reserved, needed)


def secondary_forthcoming_failure(node: Node, instance: Instance) -> str | None:
    """Return why *node* cannot be secondary if planned instances are counted as well."""
    free_disk = node.free_disk_forth - instance.disk
    if instance.template != "drbd" or free_disk <= 0 or free_disk < node.low_disk:
        return DISK
    if node.exclusive and free_spindles_with(node, node.free_spindles_forth, instance) < 0:
        return SPINDLES
    if spindles_with(node, node.used_spindles_forth, instance) > node.high_spindles:
        return DISK
    if instance.reserved_memory >= node.free_memory_forth:
        return MEMORY
    return None


def migration_failure(source: Node, target: Node) -> str | None:
    """Return `MIGRATION` if instances may not move from *source* to *target*."""
    if source.migration and not source.migration <= target.accepts:
        return MIGRATION
    return None


def with_primary(node: Node, instance: Instance) -> Node:
    """Return *node* with *instance* as one of its primaries."""
    after = node.copy()
    after.free_memory_forth -= instance.memory
    if instance.local:
        after.free_disk_forth -= instance.disk
    after.free_spindles_forth = free_spindles_with(node, node.free_spindles_forth, instance)
    after.used_spindles_forth = spindles_with(node, node.used_spindles_forth, instance)
    if instance.online:
        after.used_cpus_forth += instance.vcpus
    if instance.exclusion:
        after.exclusion = _added(node.exclusion, instance.exclusion)
    if instance.forthcoming:
        return after
    after.primaries = [instance.index, *node.primaries]
    if instance.template != "drbd":
        after.others = [instance.index, *node.others]
    used = instance.running_memory
    after.instance_memory += used
    after.unallocated -= used
    after.short = after.unallocated <= node.reserved
    if instance.local:
        after.free_disk -= instance.disk
    after.free_spindles = free_spindles_with(node, node.free_spindles, instance)
    after.used_spindles = spindles_with(node, node.used_spindles, instance)
    if instance.online:
        after.used_cpus += instance.vcpus
    after.cpu_load += instance.cpu_load
    after.memory_load += instance.memory_load
    after.disk_load += instance.disk_load
    after.net_load += instance.net_load
    after.location_score += instance.location_score + len(instance.desired - node.location)
    if instance.exclusion and node.location:
        after.spread = _added(node.spread, _spread_pairs(node, instance))
    return after


def with_secondary(node: Node, instance: Instance, primary: int) -> Node:
    """Return *node* as the secondary of *instance*, whose primary is the node *primary*."""
    after = node.copy()
    after.free_disk_forth -= instance.disk
    after.free_spindles_forth = free_spindles_with(node, node.free_spindles_forth, instance)
    after.used_spindles_forth = spindles_with(node, node.used_spindles_forth, instance)
    if instance.forthcoming:
        return after
    after.secondaries = [instance.index, *node.secondaries]
    after.free_disk -= instance.disk
    after.free_spindles = free_spindles_with(node, node.free_spindles, instance)
    after.used_spindles = spindles_with(node, node.used_spindles, instance)
    after.disk_load += instance.disk_load
    kept = instance.reserved_memory
    after.peers = dict(node.peers)
    # What changed last stands last, see the table of nodes.
    peer = after.peers[primary] = after.peers.pop(primary, 0) + kept
    idle = kept - instance.running_memory
    if idle:
        after.idle_peers = {**node.idle_peers, primary: node.idle_peers.get(primary, 0) + idle}
    after.reserved = max(node.reserved, peer)
    after.short = node.unallocated <= after.reserved
    return after


def without_primary(node: Node, instance: Instance) -> Node:
    """Return *node* without *instance* among its primaries."""
    after = node.copy()
    after.free_memory_forth += instance.memory
    if instance.local:
        after.free_disk_forth += instance.disk
    after.free_spindles_forth = _free_spindles_without(node, node.free_spindles_forth, instance)
    after.used_spindles_forth = _spindles_without(node, node.used_spindles_forth, instance)
    if instance.online:
        after.used_cpus_forth -= instance.vcpus
    if instance.exclusion:
        after.exclusion = _removed(node.exclusion, instance.exclusion)
    if instance.forthcoming:
        return after
    after.primaries = _without(node.primaries, instance.index)
    if instance.template != "drbd":
        after.others = _without(node.others, instance.index)
    used = instance.running_memory
    after.instance_memory -= used
    after.unallocated += used
    after.short = after.unallocated <= node.reserved
    if instance.local:
        after.free_disk += instance.disk
    after.free_spindles = _free_spindles_without(node, node.free_spindles, instance)
    after.used_spindles = _spindles_without(node, node.used_spindles, instance)
    if instance.online:
        after.used_cpus -= instance.vcpus
    after.cpu_load -= instance.cpu_load
    after.memory_load -= instance.memory_load
    after.disk_load -= instance.disk_load
    after.net_load -= instance.net_load
    after.location_score -= instance.location_score + len(instance.desired - node.location)
    if instance.exclusion and node.location:
        after.spread = _removed(node.spread, _spread_pairs(node, instance))
    return after


def without_secondary(node: Node, instance: Instance) -> Node:
    """Return *node* no longer the secondary of *instance*."""
    after = node.copy()
    if instance.local:
        after.free_disk_forth += instance.disk
    after.free_spindles_forth = _free_spindles_without(node, node.free_spindles_forth, instance)
    after.used_spindles_forth = _spindles_without(node, node.used_spindles_forth, instance)
    if instance.forthcoming:
        return after
    after.secondaries = _without(node.secondaries, instance.index)
    if instance.local:
        after.free_disk += instance.disk
    after.free_spindles = _free_spindles_without(node, node.free_spindles, instance)
    after.used_spindles = _spindles_without(node, node.used_spindles, instance)
    after.disk_load -= instance.disk_load
    primary = instance.primary
    before = node.peers.get(primary, 0)
    kept = instance.reserved_memory
    peers = dict(node.peers)
    peers.pop(primary, None)
    if before - kept > 0:
        peers[primary] = before - kept
    after.peers = peers
    idle = kept - instance.running_memory
    if idle:
        after.idle_peers = {**node.idle_peers, primary: node.idle_peers.get(primary, 0) - idle}
    if before >= node.reserved:
        after.reserved = max(peers.values()) if peers else 0
    after.short = node.unallocated <= after.reserved
    return after


def _without(indexes: list[int], index: int) -> list[int]:
    """Return *indexes* without the first *index*."""
    left = list(indexes)
    if index in left:
        left.remove(index)
    return left


def _spread_pairs(node: Node, instance: Instance) -> list[tuple[str, str]]:
    """Return the pairs of a location of *node* and an exclusion tag of *instance*."""
    return [(place, tag) for place in node.location for tag in instance.exclusion]


def _free_spindles_without(node: Node, free: int, instance: Instance) -> int:
    if not node.exclusive:
        return 0
    return free if instance.spindles is None else free + instance.spindles


def _spindles_without(node: Node, used: float, instance: Instance) -> float:
    if node.exclusive:
        return 0.0
    return used - instance.spindle_use if instance.local else used


def _added(counts: dict, keys: list) -> dict:  # type: ignore[type-arg]
    counts = dict(counts)
    for key in keys:
        counts[key] = counts.get(key, 0) + 1
    return counts


def _removed(counts: dict, keys: list) -> dict:  # type: ignore[type-arg]
    counts = dict(counts)
    for key in keys:
        left = counts.get(key, 0) - 1
        if left > 0:
            counts[key] = left
        else:
            counts.pop(key, None)
    return counts
