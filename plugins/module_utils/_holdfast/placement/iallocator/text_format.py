# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read and write a cluster in htools' text format (htools, Backend/Text, 3.0.2).

Five sections with an empty line between them, fields separated by ``|``: groups, nodes,
instances, the cluster's tags, policies.  The last fields of a line may be left out.
"""

from __future__ import annotations

from math import isfinite

from ...errors import ClusterDataError
from ..model.assembly import Assembly, TagRules
from ..model.cluster import (
    DISK_TEMPLATES,
    GROUP_POLICIES,
    INSTANCE_STATES,
    NO_NODE,
    Cluster,
    Group,
    Instance,
    Node,
    Policy,
    Spec,
    default_policy,
)
from ..model.show import fixed, quoted_list, show_number
from .json_text import one_of
from .numerals import read_decimal, read_whole

NODE_DEFAULTS = ("1", "", "N", "0", "1", "1.0")
INSTANCE_DEFAULTS = ("1", "-", "N")
ENOUGH_INSTANCE_FIELDS = 10
ENOUGH_NODE_FIELDS = 9

_group_policy = one_of("AllocPolicy", GROUP_POLICIES)
_state = one_of("InstanceStatus", INSTANCE_STATES)
_template = one_of("DiskTemplate", DISK_TEMPLATES)


def read_text(text: str, exclusion: tuple[str, ...] = ()) -> tuple[Cluster, list[str]]:
    """Return the cluster that *text* describes, and what looks wrong in it.

    Tags of instances that start with one of *exclusion* exclude each other as well.

    Raises `ClusterDataError` with htools' words if it is not in the format.
    """
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    sections = _sections(lines)
    if len(sections) < 4:
        hint = "; its lines end in CR LF, expected LF" if "\r\n\r\n" in text else ""
        raise ClusterDataError(
            f"Invalid format of the input file: {len(sections)} sections instead of 4 or more{hint}"
        )
    groups = [_read_group(index, line) for index, line in enumerate(sections[0])]
    numbers = {group.uuid: group.index for group in groups}
    assembly = Assembly(groups)
    nodes = [_read_node(numbers, line) for line in sections[1]]
    places = {node.name: index for index, node in enumerate(nodes)}
    instances = [_read_instance(places, line) for line in sections[2]]
    cluster = assembly.cluster
    cluster.tags = sections[3]
    for line in sections[4] if len(sections) > 4 else []:
        _read_policy_line(cluster, line)
    for node in nodes:
        assembly.add_node(node)
    return cluster, finish(assembly, instances, exclusion)


def finish(
    assembly: Assembly, instances: list[Instance], exclusion: tuple[str, ...] = ()
) -> list[str]:
    """Add *instances* to a cluster whose nodes are there; return what looks wrong."""
    cluster = assembly.cluster
    rules = TagRules(cluster.tags)
    rules.exclusion += exclusion
    assembly.set_rules(rules)

    def read_instance(index: int) -> Instance:
        instance = instances[index]
        return assembly.complete(instance, index, instance.primary, instance.secondary)

    for instance in instances:
        assembly.add(instance)
    cluster.names = [instance.name for instance in instances]
    cluster.read_instance = read_instance
    return assembly.finish()


def _sections(lines: list[str]) -> list[list[str]]:
    """Return the lines between empty ones; nothing at all is no section."""
    if not lines:
        return []
    sections: list[list[str]] = [[]]
    for line in lines:
        if line:
            sections[-1].append(line)
        else:
            sections.append([])
    return sections


def _split(text: str) -> list[str]:
    return text.split(",") if text else []


def _read_group(index: int, line: str) -> Group:
    parts = line.split("|")
    if len(parts) < 4:
        raise ClusterDataError(f"Invalid/incomplete group data: '{quoted_list(parts)}'")
    name, uuid, placing, tags = parts[:4]
    networks = parts[4] if len(parts) > 4 else ""
    policy = default_policy()
    return Group(index, name, uuid, _group_policy(placing), _split(networks), policy, _split(tags))


def _read_node(groups: dict[str, int], line: str) -> Node:
    parts = line.split("|")
    if len(parts) < ENOUGH_NODE_FIELDS:
        raise ClusterDataError(f"Invalid/incomplete node data: '{quoted_list(parts)}'")
    parts += NODE_DEFAULTS[len(parts) - ENOUGH_NODE_FIELDS :]
    name, *numbers = parts[:7]
    state, group, spindles, tags, exclusive, free_spindles, node_cpus, cpu_speed = parts[7:15]
    if group not in groups:
        raise ClusterDataError(f"Unknown group '{group}' for node {name}")
    if "?" in numbers:
        return Node(name, groups[group], [], True, False, 0.0, 0, 0, 0.0, 0, 0.0, 0, 0, 0)
    total_memory = _size(name, numbers[0])
    memory = (total_memory, read_whole(name, numbers[1]), read_whole(name, numbers[2]))
    disk = (_size(name, numbers[3]), read_whole(name, numbers[4]))
    cpus = (read_decimal(name, numbers[5]), read_whole(name, node_cpus))
    all_spindles, speed = read_whole(name, spindles), read_decimal(name, cpu_speed)
    left = read_whole(name, free_spindles)
    if exclusive not in ("Y", "N"):
        raise ClusterDataError(f"Invalid exclusive_storage value for node '{name}': {exclusive}")
    where = (name, groups[group], _split(tags), state == "Y", exclusive == "Y")
    node = Node(*where, *memory, *disk, *cpus, all_spindles, left)
    node.master = state == "M"
    node.cpu_speed = speed
    return node


def _read_instance(nodes: dict[str, int], line: str) -> Instance:
    parts = line.split("|")
    if len(parts) < ENOUGH_INSTANCE_FIELDS:
        raise ClusterDataError(f"Invalid/incomplete instance data: '{quoted_list(parts)}'")
    parts += INSTANCE_DEFAULTS[len(parts) - ENOUGH_INSTANCE_FIELDS :]
    name, memory, disk, vcpus, state, balance, primary, secondary = parts[:8]
    template, tags, use, spindles, forthcoming = parts[8:13]
    for node in (primary, secondary) if secondary else (primary,):
        if node not in nodes:
            raise ClusterDataError(f"Unknown node '{node}' for instance {name}")
    amount, size, cpus = read_whole(name, memory), read_whole(name, disk), read_whole(name, vcpus)
    state = _state(state)
    if balance not in ("Y", "N"):
        raise ClusterDataError(f"Invalid auto_balance value '{balance}' for instance {name}")
    try:
        template = _template(template)
    except ClusterDataError as error:
        raise ClusterDataError(f"Instance {name}: {error}") from None
    used = read_whole(name, use)
    volumes = None if spindles == "-" else read_whole(name, spindles)
    if forthcoming not in ("Y", "N"):
        raise ClusterDataError(f"Invalid forthcoming value '{forthcoming}' for instance {name}")
    if template == "drbd" and primary == secondary:
        raise ClusterDataError(f"Instance {name} has same primary and secondary node - {primary}")
    instance = Instance(
        name,
        amount,
        size,
        [size],
        volumes,
        cpus,
        state,
        _split(tags),
        template,
        used,
        [],
        forthcoming == "Y",
        balance == "Y",
    )
    instance.primary = nodes[primary]
    instance.secondary = nodes[secondary] if secondary else NO_NODE
    return instance


def _read_policy_line(cluster: Cluster, line: str) -> None:
    parts = line.split("|")
    if len(parts) < 6:
        raise ClusterDataError(f"Invalid ipolicy data: '{quoted_list(parts)}'")
    owner, standard, ranges, templates, vcpu_ratio, spindle_ratio = parts[:6]
    typical = _read_spec(f"{owner}/stdspec", standard)
    specs = ranges.split(";") if ranges else []
    if len(specs) % 2:
        raise ClusterDataError(f"Odd number of min/max specs for {owner}")
    pairs = [
        (_read_spec(f"{owner}/minspec", least), _read_spec(f"{owner}/maxspec", most))
        for least, most in zip(specs[::2], specs[1::2])
    ]
    policy = Policy(
        pairs,
        typical,
        [_template(template) for template in _split(templates)],
        read_decimal(f"{owner}/vcpu_ratio", vcpu_ratio),
        read_decimal(f"{owner}/spindle_ratio", spindle_ratio),
    )
    if not owner:
        cluster.policy = policy
        return
    known = [group for group in cluster.groups if owner in (group.name, group.uuid)]
    if len(known) != 1:
        raise ClusterDataError(f"Wrong number of elems found with name {owner}")
    known[0].policy = policy


def _read_spec(owner: str, text: str) -> Spec:
    parts = _split(text)
    if len(parts) < 6:
        raise ClusterDataError(f"Invalid ispec data for {owner}: {quoted_list(parts)}")
    names = ("memsize", "cpucount", "disksize", "diskcount", "niccount", "spindleuse")
    memory, cpus, disk, disks, nics, spindles = [
        read_whole(f"{owner}/{name}", part) for name, part in zip(names, parts)
    ]
    return Spec(memory, cpus, disk, disks, nics, spindles)


def _size(owner: str, text: str) -> float:
    size = read_decimal(owner, text)
    if not isfinite(size):
        raise ClusterDataError(f"{owner}: expected a size in MiB with an end, not '{text}'")
    return size


def write_text(cluster: Cluster) -> str:
    """Return *cluster* in the text format."""
    groups = [
        f"{group.name}|{group.uuid}|{group.placing}|{','.join(group.tags)}|"
        f"{','.join(group.networks)}\n"
        for group in cluster.groups
    ]
    nodes = [_node_line(cluster, node) for node in cluster.nodes]
    names = {node.index: node.name for node in cluster.nodes}
    instances = [_instance_line(names, instance) for instance in cluster.instances()]
    policies = [_policy_line("", cluster.policy)]
    policies += [_policy_line(group.name, group.policy) for group in cluster.groups]
    tags = [f"{tag}\n" for tag in cluster.tags]
    return "\n".join(["".join(part) for part in (groups, nodes, instances, tags, policies)])


def _node_line(cluster: Cluster, node: Node) -> str:
    state = "Y" if node.offline else "M" if node.master else "N"
    return (
        f"{node.name}|{node.total_memory:.0f}|{node.node_memory}|{node.free_memory}|"
        f"{node.total_disk:.0f}|{node.free_disk}|{fixed(node.total_cpus, 0)}|{state}|"
        f"{cluster.groups[node.group].uuid}|{node.total_spindles}|{','.join(node.tags)}|"
        f"{'Y' if node.exclusive else 'N'}|{node.free_spindles}|{node.node_cpus}|"
        f"{show_number(node.cpu_speed)}\n"
    )


def _instance_line(nodes: dict[int, str], instance: Instance) -> str:
    secondary = nodes[instance.secondary] if instance.secondary >= 0 else ""
    return (
        f"{instance.name}|{instance.memory}|{instance.disk}|{instance.vcpus}|{instance.state}|"
        f"{'Y' if instance.auto_balance else 'N'}|{nodes[instance.primary]}|{secondary}|"
        f"{instance.template}|{','.join(instance.tags)}|{instance.spindle_use}|"
        f"{'-' if instance.spindles is None else instance.spindles}|"
        f"{'Y' if instance.forthcoming else 'N'}\n"
    )


def _policy_line(owner: str, policy: Policy) -> str:
    ranges = ";".join([_spec_text(spec) for pair in policy.ranges for spec in pair])
    return (
        f"{owner}|{_spec_text(policy.standard)}|{ranges}|{','.join(policy.templates)}|"
        f"{show_number(policy.vcpu_ratio)}|{show_number(policy.spindle_ratio)}\n"
    )


def _spec_text(spec: Spec) -> str:
    return f"{spec.memory},{spec.cpus},{spec.disk},{spec.disks},{spec.nics},{spec.spindles}"
