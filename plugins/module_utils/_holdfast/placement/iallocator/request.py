# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read an allocator's request, as Ganeti writes it: the cluster and the request itself.

The format is Ganeti's (doc/iallocator.rst).  The keys, their order and the error texts are those
of htools 3.0.2.  Regular data takes a quick way; anything else is read again, field by field, to
report the error.
"""

from __future__ import annotations

from math import isfinite

from ...errors import ClusterDataError
from ...hints import Any
from ..model.assembly import Assembly, TagRules
from ..model.cluster import (
    DISK_TEMPLATES,
    GROUP_POLICIES,
    STATE_UP,
    Cluster,
    Group,
    Instance,
    Node,
    Policy,
    Spec,
)
from . import json_text
from .json_text import parse
from .query import NIC_MODES, STATES, Request, read_asked, read_instance

Record = dict[str, Any]

HYPERVISORS = ("kvm", "xen-pvm", "chroot", "xen-hvm", "lxc", "fake")
OWNER = "invalid iallocator message"
TEXT_OR_NOTHING = frozenset({str, type(None)})
TEMPLATES = frozenset(DISK_TEMPLATES)
NODE_SIZES = (
    *("total_memory", "reserved_memory", "free_memory", "total_disk", "free_disk"),
    *("total_cpus", "reserved_cpus", "free_spindles"),
)


def read_request(text: str, static_node_memory: int) -> tuple[Cluster, Request, list[str]]:
    """Return the cluster and the request in the JSON *text*, and what looks wrong in it.

    *static_node_memory* (MiB) stands for what the hypervisor reports of a node's own
    memory where that is KVM, unless it is 0.  Raises `ClusterDataError` with the text
    of htools if anything needed is missing or of the wrong type.
    """
    message = _message(text)
    asked = json_text.required(OWNER, message, "request", json_text.record)
    cluster, rules, warnings = _read_cluster(message, static_node_memory)
    return cluster, read_asked(asked, cluster, rules), warnings


def read_described_cluster(text: str, static_node_memory: int) -> tuple[Cluster, list[str]]:
    """Return the cluster in the JSON *text*, whatever is asked there, and what looks wrong."""
    cluster, _rules, warnings = _read_cluster(_message(text), static_node_memory)
    return cluster, warnings


def _message(text: str) -> Record:
    message = parse(text, "Parsing input IAllocator message")
    if not isinstance(message, dict):
        raise ClusterDataError("Parsing input IAllocator message: Unable to read JSObject")
    return message


def _read_cluster(message: Record, static_node_memory: int) -> tuple[Cluster, TagRules, list[str]]:
    owner = OWNER
    groups = _read_groups(json_text.required(owner, message, "nodegroups", json_text.record))
    nodes = json_text.required(owner, message, "nodes", json_text.record)
    assembly = Assembly(groups)
    group_numbers = {group.uuid: group.index for group in groups}
    for name, data in nodes.items():
        try:
            values = _quick_node(data, group_numbers)
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError):
            values = _careful_node(name, data, group_numbers)
        assembly.add_node(Node(name, *values))
    instances = json_text.required(owner, message, "instances", json_text.record)
    # The tags are wanted to sum up instances, and are wrong only after them.
    tags = message.get("cluster_tags")
    usable = isinstance(tags, list) and all(isinstance(tag, str) for tag in tags)
    rules = TagRules(tags if usable and tags is not None else [])
    assembly.set_rules(rules)
    _add_instances(assembly, instances)
    assembly.cluster.tags = json_text.required(owner, message, "cluster_tags", json_text.texts)
    read_hypervisors = json_text.list_of(json_text.one_of("Hypervisor", HYPERVISORS))
    hypervisors = json_text.required(owner, message, "enabled_hypervisors", read_hypervisors)
    if hypervisors[:1] == ["kvm"] and static_node_memory > 0:
        assembly.set_node_memory(static_node_memory)
    warnings = assembly.finish()
    return assembly.cluster, rules, warnings


def _read_groups(raw: Record) -> list[Group]:
    groups: list[Group] = []
    for uuid, value in raw.items():
        data = json_text.some_object(value)
        owner = f"invalid data for group '{uuid}'"
        name = json_text.required(owner, data, "name", json_text.text)
        placing = json_text.required(
            owner, data, "alloc_policy", json_text.one_of("AllocPolicy", GROUP_POLICIES)
        )
        networks = json_text.required(owner, data, "networks", json_text.texts)
        policy = json_text.required(owner, data, "ipolicy", _read_policy)
        tags = json_text.required(owner, data, "tags", json_text.texts)
        groups.append(Group(len(groups), name, uuid, placing, networks, policy, tags))
    return groups


def _read_policy(value: Any) -> Policy:
    data = json_text.record(value)
    ranges = json_text.part(data, "minmax", json_text.list_of(_read_range))
    standard = json_text.part(data, "std", _read_spec)
    template = json_text.one_of("DiskTemplate", DISK_TEMPLATES)
    templates = json_text.part(data, "disk-templates", json_text.list_of(template))
    vcpu_ratio = json_text.part(data, "vcpu-ratio", json_text.number)
    spindle_ratio = json_text.part(data, "spindle-ratio", json_text.number)
    known = ("disk-templates", "minmax", "spindle-ratio", "std", "vcpu-ratio")
    json_text.no_others(data, known)
    return Policy(ranges, standard, templates, vcpu_ratio, spindle_ratio)


def _read_range(value: Any) -> tuple[Spec, Spec]:
    data = json_text.record(value)
    least = json_text.part(data, "min", _read_spec)
    most = json_text.part(data, "max", _read_spec)
    json_text.no_others(data, ("max", "min"))
    return least, most


def _read_spec(value: Any) -> Spec:
    data = json_text.record(value)
    keys = ("memory-size", "cpu-count", "disk-size", "disk-count", "nic-count", "spindle-use")
    memory, cpus, disk, disks, nics, spindles = [
        json_text.part(data, key, json_text.whole) for key in keys
    ]
    json_text.no_others(data, tuple(sorted(keys)))
    return Spec(memory, cpus, disk, disks, nics, spindles)


def _quick_node(data: Any, groups: dict[str, int]) -> tuple[Any, ...]:
    """Return the values of a node that is as Ganeti writes it, or raise anything."""
    offline, drained = data["offline"], data["drained"]
    group = groups[data["group"]]
    parameters = data["ndparams"]
    exclusive = parameters["exclusive_storage"]
    tags = data.get("tags")
    if (
        data.get("vm_capable", True) is not True
        or not (offline.__class__ is drained.__class__ is exclusive.__class__ is bool)
        or tags.__class__ is not list
    ):
        raise ValueError
    for tag in tags:
        if tag.__class__ is not str:
            raise ValueError
    if offline:
        total = 0 if exclusive else parameters["spindle_count"]
        if total.__class__ is not int:
            raise ValueError
        return (group, tags, True, exclusive, 0.0, 0, 0, 0.0, 0, 0.0, 0, total, 0)
    spindles = data["total_spindles"] if exclusive else parameters["spindle_count"]
    sizes = [data[key] for key in NODE_SIZES]
    if {spindles.__class__, *map(type, sizes)} != {int}:
        raise ValueError
    memory, reserved, free_memory, disk, free_disk, cpus, own_cpus, free_spindles = sizes
    memories = (float(memory), reserved, free_memory)
    rest = (float(disk), free_disk, float(cpus), own_cpus, spindles, free_spindles)
    return (group, tags, drained, exclusive, *memories, *rest)


def _careful_node(name: str, value: Any, groups: dict[str, int]) -> tuple[Any, ...]:
    """Return the values of a node, or say what is wrong with it."""
    data = json_text.some_object(value)
    owner = f"invalid data for node '{name}'"
    offline = json_text.required(owner, data, "offline", json_text.truth)
    drained = json_text.required(owner, data, "drained", json_text.truth)
    group = json_text.required(owner, data, "group", json_text.text)
    capable = json_text.optional(owner, data, "vm_capable", json_text.truth)
    if group not in groups:
        raise ClusterDataError(f"Unknown group '{group}' for node {name}")
    parameters = json_text.some_object(json_text.required(owner, data, "ndparams", lambda v: v))
    tags = json_text.optional("", data, "tags", json_text.texts) or []
    exclusive = json_text.required(owner, parameters, "exclusive_storage", json_text.truth)
    live = not offline and capable is not False

    def whole(key: str) -> int:
        return json_text.required(owner, data, key, json_text.whole) if live else 0

    def number(key: str) -> float:
        return json_text.required(owner, data, key, json_text.number) if live else 0.0

    def size(key: str) -> float:
        value = number(key)
        if not isfinite(value):
            raise ClusterDataError(f"{owner}: key '{key}': expected a size in MiB with an end")
        return value

    if exclusive:
        spindles = whole("total_spindles")
    else:
        spindles = json_text.required(owner, parameters, "spindle_count", json_text.whole)
    free_spindles = whole("free_spindles")
    memory = (size("total_memory"), whole("reserved_memory"), whole("free_memory"))
    disk = (size("total_disk"), whole("free_disk"))
    cpus = (number("total_cpus"), whole("reserved_cpus"))
    where = (groups[group], tags, not live or drained, exclusive)
    return (*where, *memory, *disk, *cpus, spindles, free_spindles)


def _add_instances(assembly: Assembly, raw: Record) -> None:
    """Sum all instances up on their nodes, and keep what each is made of."""
    numbers = assembly.cluster.numbers
    places = []
    sources = list(raw.items())
    add = assembly.add_instance
    for name, data in sources:
        try:
            values = _quick_instance(data, numbers)
        except (LookupError, TypeError, ValueError, AttributeError):
            found = _careful_instance(name, data, numbers)
            places.append((found.primary, found.secondary))
            assembly.add(found)
        else:
            places.append((values[0], values[1]))
            add(*values)

    def make(index: int) -> Instance:
        name, data = sources[index]
        instance = read_instance(name, data)
        return assembly.complete(instance, index, *places[index])

    assembly.cluster.names = list(raw)
    assembly.cluster.read_instance = make


def _quick_instance(data: Any, numbers: dict[str, int]) -> tuple[Any, ...]:
    """Return what counts of an instance that is as Ganeti writes it, or raise anything."""
    memory, disk, vcpus = data["memory"], data["disk_space_total"], data["vcpus"]
    use, tags, template = data["spindle_use"], data["tags"], data["disk_template"]
    nodes, disks, nics = data["nodes"], data["disks"], data["nics"]
    if (
        not (memory.__class__ is disk.__class__ is vcpus.__class__ is use.__class__ is int)
        or not (tags.__class__ is nodes.__class__ is disks.__class__ is nics.__class__ is list)
        or template not in TEMPLATES
    ):
        raise ValueError
    for tag in tags:
        if tag.__class__ is not str:
            raise ValueError
    for volume in disks:
        spindles = volume.get("spindles")
        if volume["size"].__class__ is not int or (
            spindles is not None and spindles.__class__ is not int
        ):
            raise ValueError
    for nic in nics:
        if not TEXT_OR_NOTHING.issuperset(map(type, nic.values())):
            raise ValueError
        if nic.get("mode") not in NIC_MODES:
            raise ValueError
    state = data.get("admin_state")
    return (
        numbers[nodes[0]],
        numbers[nodes[1]] if len(nodes) > 1 else -1,
        memory,
        disk,
        vcpus,
        STATE_UP if state == "up" else STATES.get(state, STATE_UP),
        template,
        use,
        tags,
        data.get("forthcoming") is True,
    )


def _careful_instance(name: str, value: Any, numbers: dict[str, int]) -> Instance:
    """Return an instance in its place, or say what is wrong with it."""
    data = json_text.some_object(value)
    instance = read_instance(name, data)
    nodes = json_text.required("", data, "nodes", json_text.items)
    if not nodes:
        raise ClusterDataError(f"empty node list for instance {name}")
    places = []
    for node in nodes[:2]:
        if not isinstance(node, str):
            raise ClusterDataError("Wrong JSON type")
        if node not in numbers:
            raise ClusterDataError(f"Unknown node '{node}' for instance {name}")
        places.append(numbers[node])
    return instance.at(places[0], places[1] if len(places) > 1 else -1)
