# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the request itself: its kind, and the instances to place or move (doc/iallocator.rst)."""

from __future__ import annotations

from ...errors import ClusterDataError
from ...hints import TYPE_CHECKING, Any, Callable, TypeVar, dataclass
from ..model.cluster import (
    DISK_TEMPLATES,
    STATE_DOWN,
    STATE_OFFLINE,
    STATE_UP,
    Cluster,
    Instance,
    find_group,
)
from . import json_text
from .json_text import encode

if TYPE_CHECKING:
    from ..model.assembly import TagRules

Record = dict[str, Any]


STATES = {"down": STATE_DOWN, "offline": STATE_OFFLINE}
NIC_MODES = frozenset({"bridged", "routed", "openvswitch", "ext", None})


def read_instance(name: str, data: Record) -> Instance:
    """Return what describes an instance, there or to be placed, in the order of htools."""
    owner = f"invalid data for instance '{name}'"
    disk = json_text.required(owner, data, "disk_space_total", json_text.whole)
    volumes = _objects(json_text.required(owner, data, "disks", lambda value: value))
    sizes = [json_text.required(owner, volume, "size", json_text.whole) for volume in volumes]
    each = [json_text.optional(owner, volume, "spindles", json_text.whole) for volume in volumes]
    known = [spindles for spindles in each if spindles is not None]
    memory = json_text.required(owner, data, "memory", json_text.whole)
    vcpus = json_text.required(owner, data, "vcpus", json_text.whole)
    tags = json_text.required(owner, data, "tags", json_text.texts)
    template = json_text.required(
        owner, data, "disk_template", json_text.one_of("DiskTemplate", DISK_TEMPLATES)
    )
    use = json_text.required(owner, data, "spindle_use", json_text.whole)
    nics = _objects(json_text.required(owner, data, "nics", lambda value: value))
    state = data.get("admin_state")
    return Instance(
        name,
        memory,
        disk,
        sizes,
        sum(known) if len(known) == len(each) else None,
        vcpus,
        STATES.get(state, STATE_UP) if isinstance(state, str) else STATE_UP,
        tags,
        template,
        use,
        [network for nic in nics for network in _read_network(name, nic)],
        data.get("forthcoming") is True,
    )


def _objects(value: Any) -> list[Record]:
    if not isinstance(value, list):
        raise ClusterDataError(f"Invalid input, expected array but got {encode(value)}")
    return [json_text.some_object(item) for item in value]


def _read_network(instance: str, nic: Record) -> list[str]:
    """Return the network of an interface, if it names one."""
    json_text.optional("", nic, "mac", json_text.text)
    json_text.optional("", nic, "ip", json_text.text)
    if json_text.optional("", nic, "mode", json_text.text) not in NIC_MODES:
        raise ClusterDataError(f"invalid NIC mode in instance {instance}")
    json_text.optional("", nic, "link", json_text.text)
    json_text.optional("", nic, "bridge", json_text.text)
    network = json_text.optional("", nic, "network", json_text.text)
    return [] if network is None else [network]


Value = TypeVar("Value")
OWNER = "invalid request dict"
EVACUATION_MODES = ("primary-only", "secondary-only", "all")


@dataclass
class Placement:
    """One instance to be placed: on how many nodes, and in which group if one is named.

    ``own_group`` is the group that the instance itself names in a request for several,
    which htools does not read.
    """

    instance: Instance
    count: int
    group: str | None
    own_group: str | None = None


class Request:
    """What is asked; which fields are set depends on ``kind``."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.placements: list[Placement] = []
        """allocate, multi-allocate"""
        self.restrict: list[str] | None = None
        """allocate: the names of the only nodes that may be chosen"""
        self.instances: list[int] = []
        """relocate, node-evacuate, change-group, allocate-secondary"""
        self.count = 1
        """relocate: how many nodes are asked for"""
        self.leave: list[int] = []
        """relocate: the nodes to leave"""
        self.mode = ""
        """node-evacuate"""
        self.groups: list[int] = []
        """change-group: the target groups"""


class _Reader:
    """Reads a request into ``request``; there is a method for each kind."""

    def __init__(self, asked: Record, cluster: Cluster, rules: TagRules) -> None:
        self._asked, self._cluster, self._rules = asked, cluster, rules
        self.request = Request(self._field("type", json_text.text))

    def _field(self, key: str, read: Callable[[Any], Value]) -> Value:
        return json_text.required(OWNER, self._asked, key, read)

    def allocate(self) -> None:
        name = self._field("name", json_text.text)
        group = json_text.optional("", self._asked, "group_name", json_text.text)
        restrict = json_text.optional("", self._asked, "restrict-to-nodes", json_text.texts)
        count = self._field("required_nodes", json_text.whole)
        instance = self._rules.apply_to(read_instance(name, self._asked))
        self.request.restrict = restrict
        self.request.placements = [Placement(instance, count, group)]

    def multi_allocate(self) -> None:
        for data in self._field("instances", json_text.list_of(json_text.record)):
            name = json_text.required(OWNER, data, "name", json_text.text)
            group = json_text.optional("", self._asked, "group_name", json_text.text)
            count = json_text.required(OWNER, data, "required_nodes", json_text.whole)
            instance = self._rules.apply_to(read_instance(name, data))
            own = data.get("group_name")
            own_group = own if isinstance(own, str) else None
            self.request.placements.append(Placement(instance, count, group, own_group))

    def relocate(self) -> None:
        self.one_instance()
        self.request.count = self._field("required_nodes", json_text.whole)
        leave = self._field("relocate_from", json_text.texts)
        names = [node.name for node in self._cluster.nodes]
        self.request.leave = _find(self._cluster, names, leave)

    def change_group(self) -> None:
        self._several_instances()
        groups = self._field("target_groups", json_text.texts)
        self.request.groups = [find_group(self._cluster, group) for group in groups]

    def evacuate(self) -> None:
        self._several_instances()
        mode = json_text.one_of("EvacMode", EVACUATION_MODES)
        self.request.mode = self._field("evac_mode", mode)

    def one_instance(self) -> None:
        name = self._field("name", json_text.text)
        if name not in self._cluster.names:
            raise ClusterDataError(f"Unknown instance '{name}'")
        self.request.instances = [self._cluster.names.index(name)]

    def _several_instances(self) -> None:
        names = self._field("instances", json_text.texts)
        self.request.instances = _find(self._cluster, self._cluster.names, names)


_READERS: dict[str, Callable[[_Reader], None]] = {
    "allocate": _Reader.allocate,
    "multi-allocate": _Reader.multi_allocate,
    "relocate": _Reader.relocate,
    "change-group": _Reader.change_group,
    "node-evacuate": _Reader.evacuate,
    "allocate-secondary": _Reader.one_instance,
}


def read_asked(asked: Record, cluster: Cluster, rules: TagRules) -> Request:
    """Return the request that is *asked* about *cluster*."""
    reader = _Reader(asked, cluster, rules)
    if reader.request.kind not in _READERS:
        raise ClusterDataError(f"Invalid request type '{reader.request.kind}'")
    _READERS[reader.request.kind](reader)
    return reader.request


def _find(cluster: Cluster, known: list[str], desired: list[str]) -> list[int]:
    """Return the numbers that the names *desired*, of nodes or of instances, have in *known*.

    A name may leave out the domain that all names of the cluster share.  Raises
    `ClusterDataError` for a name that is not exactly one's.
    """
    if not desired:
        return []
    domain = cluster.domain()
    numbers = dict(zip(known, range(len(known))))
    found: list[int] = []
    for name in desired:
        full = {numbers[each] for each in (name, name + domain) if each in numbers}
        if len(full) != 1:
            raise ClusterDataError(f"Wrong number of elems found with name {name}")
        found += full
    return found
