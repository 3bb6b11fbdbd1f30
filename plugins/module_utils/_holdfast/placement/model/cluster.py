# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster as plain data: groups, nodes and instances with what placement counts.

Sizes are MiB.  Fields that end in ``_forth`` also count forthcoming instances: planned ones that
do not exist yet.  These are no dataclasses: importing ``dataclasses`` takes longer than the whole
answer for a small cluster, and a node is copied for each placement that is tried.

A node in a cluster is never changed: what changes it returns a copy (`admission`).
"""

from __future__ import annotations

from ...errors import ClusterDataError
from ...hints import Callable, dataclass

NO_NODE = -1
"""The secondary of an instance that has none."""

PREFERRED, LAST_RESORT, UNALLOCABLE = "preferred", "last_resort", "unallocable"
GROUP_POLICIES = (PREFERRED, LAST_RESORT, UNALLOCABLE)
"""The allocation policies of a group, the preferred one first."""

DISK_TEMPLATES = (
    "diskless",
    "file",
    "sharedfile",
    "plain",
    "blockdev",
    "drbd",
    "rbd",
    "ext",
    "gluster",
)
LOCAL_TEMPLATES = frozenset({"drbd", "plain"})
"""The templates whose disks are counted on the node; ``file`` is not one (htools, Instance)."""
EXTERNAL_TEMPLATES = frozenset({"diskless", "sharedfile", "blockdev", "rbd", "ext", "gluster"})
"""The templates that any node of the group can run: their disks, if any, are elsewhere."""
RESTARTED_TEMPLATES = EXTERNAL_TEMPLATES - {"blockdev"}
"""The templates that the N+1 check starts elsewhere; others than ``drbd`` it creates again.

That htools creates ``blockdev`` again was measured on version 3.0.2.
"""

STATE_UP, STATE_DOWN, STATE_OFFLINE = "running", "ADMIN_down", "ADMIN_offline"
RUNNING_STATES = frozenset({STATE_UP, "ERROR_up"})
MEMORY_STATES = RUNNING_STATES | {"ERROR_nodedown", "ERROR_nodeoffline", "ERROR_wrongnode"}
"""The states in which an instance uses memory, also those in which it only should run."""
NOTHING: frozenset[str] = frozenset()
INSTANCE_STATES = (
    STATE_DOWN,
    STATE_OFFLINE,
    "ERROR_down",
    "ERROR_up",
    "ERROR_nodedown",
    "ERROR_nodeoffline",
    STATE_UP,
    "USER_down",
    "ERROR_wrongnode",
)


@dataclass
class Spec:
    """The sizes of an instance that a policy names: the least, the most or the standard ones."""

    memory: int
    cpus: int
    disk: int
    disks: int
    nics: int
    spindles: int


@dataclass
class Policy:
    """The instances allowed in a group, and how far its nodes may be overbooked."""

    ranges: list[tuple[Spec, Spec]]
    standard: Spec
    templates: list[str]
    vcpu_ratio: float
    spindle_ratio: float


def default_policy() -> Policy:
    """Return the policy of a cluster without one (htools, Types)."""
    return Policy(
        [(Spec(128, 1, 1024, 1, 1, 1), Spec(32768, 8, 1048576, 16, 8, 12))],
        Spec(128, 1, 1024, 1, 1, 1),
        list(DISK_TEMPLATES),
        4.0,
        32.0,
    )


@dataclass
class Group:
    """A node group."""

    index: int
    name: str
    uuid: str
    placing: str
    networks: list[str]
    policy: Policy
    tags: list[str]


@dataclass
class Instance:
    """A virtual machine, existing or new; the ``index`` of a new one is -1.

    ``spindles`` is None if a disk does not have a number of them.  ``exclusion`` are its tags
    that no other instance on its node may have, ``desired`` the locations that it desires.

    Derived from these are ``running_memory``, used on its primary now, ``reserved_memory``, kept
    for it on its secondary, ``online``, false if an administrator set it offline, and ``local``,
    true if its disks are counted on its nodes.
    """

    name: str
    memory: int
    disk: int
    disk_sizes: list[int]
    spindles: int | None
    vcpus: int
    state: str
    tags: list[str]
    template: str
    spindle_use: int
    networks: list[str]
    forthcoming: bool
    auto_balance: bool = True

    def __post_init__(self) -> None:
        self.index = -1
        self.online = self.state != STATE_OFFLINE
        uses_memory = self.state in MEMORY_STATES and not self.forthcoming
        self.running_memory = self.memory if uses_memory else 0
        self.reserved_memory = self.memory if self.online and self.auto_balance else 0
        self.local = self.template in LOCAL_TEMPLATES
        self.primary = NO_NODE
        self.secondary = NO_NODE
        self.exclusion: list[str] = []
        self.desired: frozenset[str] = frozenset()
        self.location_score = 0
        self.cpu_load = self.memory_load = self.disk_load = self.net_load = 1.0

    @property
    def nodes(self) -> list[int]:
        """The numbers of its nodes."""
        return [self.primary, self.secondary] if self.template == "drbd" else [self.primary]

    def at(self, primary: int, secondary: int, location_score: int | None = None) -> Instance:
        """Return the same instance on other nodes."""
        moved = Instance.__new__(Instance)
        moved.__dict__ = self.__dict__.copy()
        moved.primary = primary
        moved.secondary = secondary
        if location_score is not None:
            moved.location_score = location_score
        return moved

    def as_drbd(self) -> Instance:
        """Return the same instance with its disks mirrored."""
        mirrored = self.at(self.primary, NO_NODE)
        mirrored.template = "drbd"
        mirrored.local = True
        return mirrored


@dataclass
class Node:
    """A node with its sums; new it has no instances, and the numbers that it reports.

    ``offline`` is also set for a drained node: nothing is placed there.  ``peers`` are the
    primary nodes of its secondary instances, with the memory kept for each; ``reserved`` is the
    most of these, ``idle_peers`` the part that a failover does not need, and ``short`` is set if
    the memory left does not cover ``reserved`` (htools: failN1).  ``others`` are the primary
    instances without a mirror.
    """

    name: str
    group: int
    tags: list[str]
    offline: bool
    exclusive: bool
    total_memory: float
    node_memory: int
    free_memory: int
    total_disk: float
    free_disk: int
    total_cpus: float
    node_cpus: int
    total_spindles: int
    free_spindles: int

    def __post_init__(self) -> None:
        self.index = -1
        self.alias: str
        self.policy: Policy
        self.master = self.short = False
        self.location: frozenset[str]
        self.migration: frozenset[str]
        self.accepts: frozenset[str]
        self.location = self.migration = self.accepts = NOTHING
        self.missing_memory = self.instance_memory = self.unallocated = self.reserved = 0
        self.free_memory_forth = self.free_memory
        self.free_disk_forth = self.free_disk
        self.free_spindles_forth = self.free_spindles
        self.low_disk = self.location_score = 0
        self.cpu_speed = 1.0
        self.used_cpus = self.used_cpus_forth = self.node_cpus
        self.high_spindles: float
        self.used_spindles = self.used_spindles_forth = 0.0
        self.cpu_load: float
        self.memory_load: float
        self.disk_load: float
        self.net_load: float
        self.primaries: list[int] = []
        self.secondaries: list[int] = []
        self.others: list[int] = []
        self.peers: dict[int, int] = {}
        self.idle_peers: dict[int, int] = {}
        self.exclusion: dict[str, int] = {}
        self.spread: dict[tuple[str, str], int] = {}

    def copy(self) -> Node:
        """Return a copy that shares its lists and maps with this node."""
        twin = Node.__new__(Node)
        twin.__dict__ = self.__dict__.copy()
        return twin


class Cluster:
    """Groups, nodes and instances, each list in the order of its numbers.

    ``read_instance`` makes the instance of a number when it is first needed: most answers need
    only sums.  ``numbers`` are the numbers of the nodes by name.
    """

    def __init__(self, groups: list[Group], nodes: list[Node], tags: list[str]) -> None:
        self.groups = groups
        self.nodes = nodes
        self.tags = tags
        self.policy = default_policy()
        self.names: list[str] = []
        self.numbers: dict[str, int] = {}
        self.changed: dict[int, Instance] = {}
        self.read_instance: Callable[[int], Instance] | None = None
        self.plain_failovers = True
        """Every instance with a secondary is ``drbd``, and the other way round."""

    def instance(self, index: int) -> Instance:
        """Return the instance *index* at its current place."""
        found = self.changed.get(index)
        if found is None:
            if self.read_instance is None:
                raise KeyError(index)
            found = self.changed[index] = self.read_instance(index)
        return found

    def instances(self) -> list[Instance]:
        """Return all instances in the order of their numbers."""
        return [self.instance(index) for index in range(len(self.names))]

    def domain(self) -> str:
        """Return the longest common ending of the names of nodes and instances, from a dot on."""
        names = [node.name for node in self.nodes] + self.names
        first = names[0] if names else ""
        start = first.find(".")
        while start >= 0:
            ending = first[start:]
            if all(name.endswith(ending) for name in names):
                return ending
            start = first.find(".", start + 1)
        return ""

    def copy(self) -> Cluster:
        """Return a cluster that can change without changing this one."""
        twin = Cluster.__new__(Cluster)
        twin.__dict__ = self.__dict__.copy()
        twin.nodes = list(self.nodes)
        twin.changed = dict(self.changed)
        return twin

    def with_nodes(self, changed: dict[int, Node], instance: Instance | None = None) -> Cluster:
        """Return the cluster with the *changed* nodes and *instance*; a new one gets a number."""
        twin = self.copy()
        for index, node in changed.items():
            twin.nodes[index] = node
        if instance is not None:
            if instance.index >= 0:
                twin.changed[instance.index] = instance
            else:
                twin._append(instance, changed)
        return twin

    def _append(self, instance: Instance, changed: dict[int, Node]) -> None:
        number = len(self.names)
        self.names = [*self.names, instance.name]
        added = instance.at(instance.primary, instance.secondary)
        added.index = number
        self.changed[number] = added
        for index, node in changed.items():
            fixed = node.copy()
            fixed.primaries = [number if i < 0 else i for i in node.primaries]
            fixed.secondaries = [number if i < 0 else i for i in node.secondaries]
            fixed.others = [number if i < 0 else i for i in node.others]
            self.nodes[index] = fixed


def find_group(cluster: Cluster, name: str) -> int:
    """Return the number of the node group that *name*, or a uuid, names.

    Raises `ClusterDataError` if that is not exactly one.
    """
    known = [group.index for group in cluster.groups if name in (group.name, group.uuid)]
    if len(known) != 1:
        raise ClusterDataError(f"Wrong number of elems found with name {name}")
    return known[0]
