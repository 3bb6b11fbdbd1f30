# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prepare a cluster for balancing: its group, loads, limits and the instances that may move.

The options and their meaning are hbal's (htools 3.0.2).  The functions change the cluster in
place.
"""

from __future__ import annotations

from ...errors import ClusterDataError
from ...hints import Callable, Sequence
from ..iallocator.numerals import read_decimal
from ..model.cluster import Cluster, Policy
from ..model.show import quoted_list


def take_offline(cluster: Cluster, names: Sequence[str]) -> None:
    """Count the nodes *names*, in full or short, as out of service."""
    domain = cluster.domain()
    known = {}
    for node in cluster.nodes:
        known[node.name] = known[node.name[: len(node.name) - len(domain)]] = node
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ClusterDataError(f"wrong node name(s) set as offline: {','.join(unknown)}\n")
    for name in names:
        known[name].offline = True


def set_most_cpus(cluster: Cluster, ratio: float) -> None:
    """Let the policy of every group allow *ratio* virtual cores for each real one."""
    for group in cluster.groups:
        old = group.policy
        group.policy = Policy(old.ranges, old.standard, old.templates, ratio, old.spindle_ratio)
    for node in cluster.nodes:
        node.policy = cluster.groups[node.group].policy


def set_least_disk(cluster: Cluster, share: float) -> None:
    """Keep *share* of each node's disk free."""
    for node in cluster.nodes:
        node.low_disk = int(share * node.total_disk)


def read_loads(text: str) -> dict[str, tuple[float, float, float, float]]:
    """Return the loads by instance that *text* names: of processor, memory, disk, network.

    Between two of them stands one blank.
    """
    loads = {}
    for line in text.split("\n")[: -1 if text.endswith("\n") or not text else None]:
        words = line.split(" ")
        if len(words) != 5:
            raise ClusterDataError(f"can't parse utilisation data: Cannot parse line {line}")
        what = f"can't parse utilisation data: {words[0]}"
        values = [read_decimal(what, word) for word in words[1:]]
        loads[words[0]] = (values[0], values[1], values[2], values[3])
    return loads


def set_loads(cluster: Cluster, loads: dict[str, tuple[float, float, float, float]] | None) -> None:
    """Let instances have *loads*; those not named have 1 of each, without any all have 0."""
    for node in cluster.nodes:
        node.cpu_load = node.memory_load = node.disk_load = node.net_load = 0.0
    for instance in cluster.instances():
        cpu, memory, disk, net = 0.0, 0.0, 0.0, 0.0
        if loads is not None:
            cpu, memory, disk, net = loads.get(instance.name, (1.0, 1.0, 1.0, 1.0))
        instance.cpu_load, instance.memory_load = cpu, memory
        instance.disk_load, instance.net_load = disk, net
        if instance.forthcoming:
            continue
        node = cluster.nodes[instance.primary]
        node.cpu_load += cpu
        node.memory_load += memory
        node.disk_load += disk
        node.net_load += net
        if instance.secondary >= 0:
            cluster.nodes[instance.secondary].disk_load += disk


def set_processor_loads(cluster: Cluster, loads: dict[str, float]) -> None:
    """Let each node have the load of *loads*, shared by its instances by their virtual cores."""
    for node in cluster.nodes:
        node.cpu_load = loads[node.name]
        for index in node.primaries:
            instance = cluster.instance(index)
            share = instance.vcpus / node.used_cpus if node.used_cpus else 0.0
            instance.cpu_load = node.cpu_load * share


def choose_group(cluster: Cluster, desired: str | None) -> int:
    """Return the number of the one group, or of that with the name or uuid *desired*."""
    used = sorted({node.group for node in cluster.nodes})
    if desired is None:
        if len(used) == 1:
            return used[0]
        names = "".join([f"  {cluster.groups[index].name}\n" for index in used])
        raise ClusterDataError(f"Found multiple node groups:\n{names}Error: Aborting.")
    for group in cluster.groups:
        if desired in (group.name, group.uuid):
            return group.index
    names = "".join([f"  {group.name}\n" for group in cluster.groups])
    raise ClusterDataError(
        f"Node group {desired} not found. Node group list is:\n{names}Error: Aborting."
    )


def choose_instances(
    cluster: Cluster, selected: Sequence[str], excluded: Sequence[str]
) -> Callable[[str], bool]:
    """Return whether the instance of a name may move: of *selected*, if any, not *excluded*.

    Names may be cut short at a dot.
    """
    known = {name: _find(cluster, name) for name in (*selected, *excluded)}
    unknown = [name for name in (*selected, *excluded) if not known[name]]
    if unknown:
        raise ClusterDataError(
            f"failed to load data, aborting: Unknown instance(s): {quoted_list(unknown)}"
        )
    desired = frozenset([found for name in selected for found in known[name]])
    unwanted = frozenset([found for name in excluded for found in known[name]])
    return lambda name: (not selected or name in desired) and name not in unwanted


def _find(cluster: Cluster, name: str) -> list[str]:
    """Return the instance that *name* names in full, or those of which it is the beginning."""
    if name in cluster.names:
        return [name]
    found = [each for each in cluster.names if each.startswith(name + ".")]
    return found if len(found) == 1 else []


def settled(cluster: Cluster) -> Cluster:
    """Return *cluster* with the free memory that its nodes would report as it is now.

    A description with it can be read again; hbal saves what was reported before.
    """
    twin = cluster.copy()
    for index, node in enumerate(cluster.nodes):
        free = int(node.total_memory) - node.node_memory - node.instance_memory
        if node.missing_memory > 0 or free != node.free_memory:
            fresh = node.copy()
            fresh.free_memory = free - node.missing_memory
            twin.nodes[index] = fresh
    return twin
