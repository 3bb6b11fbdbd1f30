# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""List the limits that an instance would break on a node, and by how much.

`admission` returns the first limit only, and one word for several of them (``FailDisk`` is the
disk, its reserve, the spindles or the template).  Here each broken limit has its name, what is
needed, what there is, and the difference.  Sizes are MiB.
"""

from __future__ import annotations

from ...hints import Any
from .admission import divide, free_spindles_with, spindles_with
from .cluster import Instance, Node, Policy, Spec

Limit = dict[str, Any]


def policy_limits(instance: Instance, policy: Policy, exclusive: bool) -> list[Limit]:
    """Return what of *instance* the ranges and templates of *policy* do not allow."""
    broken: list[Limit] = []
    ranges = [_beyond_range(instance, least, most, exclusive) for least, most in policy.ranges]
    if all(ranges):
        for number, limits in enumerate(ranges):
            broken += [{**limit, "range": number} for limit in limits]
    if instance.template not in policy.templates:
        broken.append(
            {
                "limit": "policy: disk templates",
                "needed": instance.template,
                "available": list(policy.templates),
            }
        )
    return broken


def _beyond_range(instance: Instance, least: Spec, most: Spec, exclusive: bool) -> list[Limit]:
    spindles = instance.spindles if exclusive else instance.spindle_use
    values: list[tuple[str, int | None, int, int]] = [
        ("memory", instance.memory, least.memory, most.memory),
        ("cpus", instance.vcpus, least.cpus, most.cpus),
        ("spindles", spindles, least.spindles, most.spindles),
    ]
    values += [("disk size", size, least.disk, most.disk) for size in instance.disk_sizes]
    if instance.template != "diskless":
        values.append(("number of disks", len(instance.disk_sizes), least.disks, most.disks))
    broken: list[Limit] = []
    for what, value, low, high in values:
        if value is None:
            broken.append({"limit": f"policy: {what}", "needed": low, "available": None})
        elif value < low:
            broken.append(_limit(f"policy: least {what}", low, value))
        elif value > high:
            broken.append(_limit(f"policy: most {what}", value, high))
    return broken


def _limit(what: str, needed: float, available: float) -> Limit:
    """Return a limit that is broken because *needed* is more than *available*."""
    return {
        "limit": what,
        "needed": needed,
        "available": available,
        "short_by": needed - available,
    }


def primary_limits(node: Node, instance: Instance, force: bool) -> list[Limit]:
    """Return the limits that *instance* breaks with *node* as its primary.

    With *force* only the hard ones.  A limit that must not even be reached is one MiB
    short when it is.
    """
    broken: list[Limit] = []
    if not instance.forthcoming:
        needed = instance.running_memory
        if node.unallocated - needed <= 0:
            broken.append(_limit("free memory", needed + 1, node.unallocated))
        broken += _disk_limits(node, instance, node.free_disk, node.free_spindles, force)
    if force:
        return broken
    if not instance.forthcoming:
        kept = needed + node.reserved + 1
        if node.unallocated < kept and not node.short and node.unallocated > needed:
            broken.append(_limit("memory kept for failovers", kept, node.unallocated))
        broken += _ratio_limits(node, instance, node.used_spindles, node.used_cpus)
        taken = [tag for tag in instance.exclusion if tag in node.exclusion]
        if taken:
            broken.append({"limit": "exclusion tags", "needed": taken, "available": []})
    planned: list[Limit] = []
    if node.free_memory_forth - instance.memory <= 0:
        planned.append(_limit("free memory", instance.memory + 1, node.free_memory_forth))
    planned += _disk_limits(node, instance, node.free_disk_forth, node.free_spindles_forth, False)
    planned += _ratio_limits(node, instance, node.used_spindles_forth, node.used_cpus_forth)
    return _with_planned(broken, planned)


def _with_planned(broken: list[Limit], planned: list[Limit]) -> list[Limit]:
    """Return the *broken* limits, and those broken only if *planned* instances are counted."""
    known = {limit["limit"] for limit in broken}
    return broken + [
        {**limit, "limit": limit["limit"] + " with planned instances"}
        for limit in planned
        if limit["limit"] not in known
    ]


def _disk_limits(
    node: Node, instance: Instance, free: int, free_spindles: int, force: bool
) -> list[Limit]:
    if not instance.local:
        return []
    broken: list[Limit] = []
    if free - instance.disk <= 0:
        broken.append(_limit("free disk", instance.disk + 1, free))
    elif free - instance.disk < node.low_disk and not force:
        broken.append(_limit("disk kept free", instance.disk + node.low_disk, free))
    if node.exclusive and free_spindles_with(node, free_spindles, instance) < 0:
        if instance.spindles is None:
            broken.append({"limit": "spindles of each disk", "needed": None, "available": None})
        else:
            broken.append(_limit("free spindles", instance.spindles, free_spindles))
    return broken


def _ratio_limits(node: Node, instance: Instance, spindles: float, cpus: int) -> list[Limit]:
    broken: list[Limit] = []
    used = spindles_with(node, spindles, instance)
    if instance.local and used > node.high_spindles:
        broken.append(_limit("policy: spindle ratio", used, node.high_spindles))
    ratio = node.policy.vcpu_ratio
    vcpus = cpus + (instance.vcpus if instance.online else 0)
    if ratio >= 0 and ratio < divide(vcpus, node.total_cpus):
        broken.append(_limit("policy: vcpu ratio", vcpus, ratio * node.total_cpus))
    return broken


def secondary_limits(node: Node, instance: Instance, force: bool) -> list[Limit]:
    """Return the limits that *instance* breaks with *node* as its secondary."""
    if instance.template != "drbd":
        return [{"limit": "disk template", "needed": "drbd", "available": instance.template}]
    broken = _disk_limits(node, instance, node.free_disk, node.free_spindles, force)
    if force:
        return broken
    used = spindles_with(node, node.used_spindles, instance)
    if used > node.high_spindles:
        broken.append(_limit("policy: spindle ratio", used, node.high_spindles))
    needed = instance.reserved_memory
    if node.unallocated <= needed:
        broken.append(_limit("free memory", needed + 1, node.unallocated))
    else:
        kept = max(node.reserved, node.peers.get(instance.primary, 0) + needed) + 1
        if node.unallocated < kept and not node.short:
            broken.append(_limit("memory kept for failovers", kept, node.unallocated))
    planned = _disk_limits(node, instance, node.free_disk_forth, node.free_spindles_forth, False)
    used = spindles_with(node, node.used_spindles_forth, instance)
    if used > node.high_spindles:
        planned.append(_limit("policy: spindle ratio", used, node.high_spindles))
    if needed >= node.free_memory_forth:
        planned.append(_limit("free memory", needed + 1, node.free_memory_forth))
    return _with_planned(broken, planned)
