# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check whether an instance may be on a node, and return the node with it or without it.

The checks and their order are those of htools (Node and Instance, version 3.0.2).  Hard limits
always hold: memory, disk and spindles that do not exist.  Soft ones (a policy's ratios, the
memory kept for failovers, exclusion tags) can be ignored.

`limits` names the same limits with what each needs and what there is.
"""

from __future__ import annotations

from math import copysign, inf, nan

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


def new_primary_failure(node: Node, instance: Instance, force: bool) -> str | None:
    """Return why a new *instance* cannot be placed on *node*: its policy, or `primary_failure`."""
    failure = policy_failure(instance, node.policy, node.exclusive)
    return failure or primary_failure(node, instance, force)


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
    # An evacuation asks this thousands of times: as `spindles_with`, without a call.
    if (0.0 if node.exclusive else node.used_spindles + instance.spindle_use) > node.high_spindles:
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
    used = 0.0 if node.exclusive else node.used_spindles_forth + instance.spindle_use
    if used > node.high_spindles:
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
    return _with_primaries(node, instance, 1)


def without_primary(node: Node, instance: Instance) -> Node:
    """Return *node* without *instance* among its primaries."""
    return _with_primaries(node, instance, -1)


def _with_primaries(node: Node, instance: Instance, sign: int) -> Node:
    """Return *node* with one primary more (*sign* 1) or less (-1)."""
    after = node.copy()
    after.free_memory_forth -= sign * instance.memory
    if instance.local:
        after.free_disk_forth -= sign * instance.disk
    _count_spindles(after, node, instance, sign)
    if instance.online:
        after.used_cpus_forth += sign * instance.vcpus
    if instance.exclusion:
        after.exclusion = _counted(node.exclusion, instance.exclusion, sign)
    if instance.forthcoming:
        return after
    after.primaries = _listed(node.primaries, instance.index, sign)
    if instance.template != "drbd":
        after.others = _listed(node.others, instance.index, sign)
    used = sign * instance.running_memory
    after.instance_memory += used
    after.unallocated -= used
    after.short = after.unallocated <= node.reserved
    if instance.local:
        after.free_disk -= sign * instance.disk
    if instance.online:
        after.used_cpus += sign * instance.vcpus
    after.cpu_load += sign * instance.cpu_load
    after.memory_load += sign * instance.memory_load
    after.disk_load += sign * instance.disk_load
    after.net_load += sign * instance.net_load
    undesired = len(instance.desired - node.location)
    after.location_score += sign * (instance.location_score + undesired)
    if instance.exclusion and node.location:
        pairs = [(place, tag) for place in node.location for tag in instance.exclusion]
        after.spread = _counted(node.spread, pairs, sign)
    return after


def with_secondary(node: Node, instance: Instance, primary: int) -> Node:
    """Return *node* as the secondary of *instance*, whose primary is the node *primary*."""
    after = _with_secondaries(node, instance, 1)
    if instance.forthcoming:
        return after
    kept = instance.reserved_memory
    after.peers = dict(node.peers)
    # Peers are in the order of their last change: the table of nodes shows it.
    peer = after.peers[primary] = after.peers.pop(primary, 0) + kept
    idle = kept - instance.running_memory
    if idle:
        after.idle_peers = {**node.idle_peers, primary: node.idle_peers.get(primary, 0) + idle}
    after.reserved = max(node.reserved, peer)
    after.short = node.unallocated <= after.reserved
    return after


def without_secondary(node: Node, instance: Instance) -> Node:
    """Return *node* no longer the secondary of *instance*."""
    after = _with_secondaries(node, instance, -1)
    if instance.forthcoming:
        return after
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


def _with_secondaries(node: Node, instance: Instance, sign: int) -> Node:
    """Return *node* with one secondary more (*sign* 1) or less (-1), but for memory kept."""
    after = node.copy()
    disk = sign * instance.disk if instance.local else 0
    after.free_disk_forth -= disk
    _count_spindles(after, node, instance, sign)
    if instance.forthcoming:
        return after
    after.secondaries = _listed(node.secondaries, instance.index, sign)
    after.free_disk -= disk
    after.disk_load += sign * instance.disk_load
    return after


def _count_spindles(after: Node, node: Node, instance: Instance, sign: int) -> None:
    """Set the spindles of *after*, which is *node* with *instance* (*sign* 1) or without (-1)."""
    free, forth = node.free_spindles, node.free_spindles_forth
    used, used_forth = node.used_spindles, node.used_spindles_forth
    if node.exclusive:
        used = used_forth = 0.0
        if instance.spindles is not None:
            free -= sign * instance.spindles
            forth -= sign * instance.spindles
        elif sign > 0:
            free = forth = -1
    else:
        free = forth = 0
        if instance.local:
            used += sign * instance.spindle_use
            used_forth += sign * instance.spindle_use
    after.free_spindles_forth, after.used_spindles_forth = forth, used_forth
    if not instance.forthcoming:
        after.free_spindles, after.used_spindles = free, used


def _listed(indexes: list[int], index: int, sign: int) -> list[int]:
    """Return *indexes* with *index* before the others (*sign* 1), or without the first one (-1)."""
    if sign > 0:
        return [index, *indexes]
    left = list(indexes)
    if index in left:
        left.remove(index)
    return left


def _counted(counts: dict, keys: list, sign: int) -> dict:  # type: ignore[type-arg]
    """Return *counts* with one more (*sign* 1) or less (-1) of each of *keys*, without zeros."""
    counts = dict(counts)
    for key in keys:
        left = counts.get(key, 0) + sign
        if left > 0:
            counts[key] = left
        else:
            counts.pop(key, None)
    return counts
