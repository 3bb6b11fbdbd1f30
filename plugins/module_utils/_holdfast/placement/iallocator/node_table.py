# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of nodes, and the cluster after an answer as hail prints and saves it (htools 3.0.2).

A single new instance has the number -1 there and is before all others.  Where a group was named,
or all storage is exclusive, only the nodes of the chosen group are left.
"""

from __future__ import annotations

from ...hints import TYPE_CHECKING, Callable
from ..allocate.solution import Options
from ..model.admission import divide
from ..model.cluster import NO_NODE, Cluster, Node
from ..model.score import disk_values
from ..model.show import fixed, show_number, table
from .answer import Answer, dedicated

if TYPE_CHECKING:
    from .query import Request

DEFAULT = (
    "status,name,tmem,nmem,imem,xmem,fmem,umem,rmem,tdsk,fdsk,tcpu,ucpu,pcnt,scnt,"
    "pfmem,pfdsk,rcpu,cload,mload,dload,nload"
)
UNKNOWN = "<unknown field>"


def _peers(node: Node) -> str:
    # Of equals the one that changed last comes first.
    pairs = list(node.peers.items())[::-1]
    pairs.sort(key=lambda pair: -pair[1])
    return "[" + ",".join([f"({peer},{memory})" for peer, memory in pairs]) + "]"


def _rounded(value: float, width: int, places: int) -> str:
    return fixed(value, places).rjust(width)


def _indexes(indexes: list[int]) -> str:
    return "[" + ",".join([str(index) for index in indexes]) + "]"


COLUMNS: dict[str, tuple[str, bool, Callable[[Node], str]]] = {
    "idx": ("Index", True, lambda node: f"{node.index:4d}"),
    "name": ("Name", False, lambda node: node.alias),
    "fqdn": ("Name", False, lambda node: node.name),
    "status": ("F", False, lambda node: "-" if node.offline else "*" if node.short else " "),
    "tmem": ("t_mem", True, lambda node: f"{node.total_memory:5.0f}"),
    "nmem": ("n_mem", True, lambda node: f"{node.node_memory:5d}"),
    "xmem": ("x_mem", True, lambda node: f"{node.missing_memory:5d}"),
    "fmem": ("f_mem", True, lambda node: f"{node.free_memory:5d}"),
    "umem": ("u_mem", True, lambda node: f"{node.unallocated:5d}"),
    "amem": ("a_mem", True, lambda node: f"{max(0, node.unallocated - node.reserved):5d}"),
    "imem": ("i_mem", True, lambda node: f"{node.instance_memory:5d}"),
    "rmem": ("r_mem", True, lambda node: f"{node.reserved:5d}"),
    "tdsk": ("t_dsk", True, lambda node: f"{node.total_disk / 1024:5.0f}"),
    "fdsk": ("f_dsk", True, lambda node: f"{node.free_disk // 1024:5d}"),
    "tcpu": ("pcpu", True, lambda node: _rounded(node.total_cpus, 4, 0)),
    "ucpu": ("vcpu", True, lambda node: f"{node.used_cpus:4d}"),
    "pcnt": ("pcnt", True, lambda node: f"{len(node.primaries):3d}"),
    "scnt": ("scnt", True, lambda node: f"{len(node.secondaries):3d}"),
    "plist": ("primaries", True, lambda node: _indexes(node.primaries)),
    "slist": ("secondaries", True, lambda node: _indexes(node.secondaries)),
    "pfmem": (
        "p_fmem",
        True,
        lambda node: _rounded(divide(node.unallocated, node.total_memory), 6, 4),
    ),
    "pfdsk": ("p_fdsk", True, lambda node: _rounded(disk_values(node)[0], 6, 4)),
    "rcpu": ("r_cpu", True, lambda node: _rounded(divide(node.used_cpus, node.total_cpus), 5, 2)),
    "cload": ("lCpu", True, lambda node: _rounded(node.cpu_load, 5, 3)),
    "mload": ("lMem", True, lambda node: _rounded(node.memory_load, 5, 3)),
    "dload": ("lDsk", True, lambda node: _rounded(node.disk_load, 5, 3)),
    "nload": ("lNet", True, lambda node: _rounded(node.net_load, 5, 3)),
    "ptags": (
        "PrimaryTags",
        False,
        lambda node: ",".join([f"{tag}={times}" for tag, times in sorted(node.exclusion.items())]),
    ),
    "peermap": ("PeerMap", False, _peers),
    "spindle_count": ("NodeSpindles", True, lambda node: str(node.total_spindles)),
    "hi_spindles": ("MaxSpindles", True, lambda node: show_number(node.high_spindles)),
    "inst_spindles": ("InstSpindles", True, lambda node: show_number(node.used_spindles)),
}
"""Each field's heading, whether it is a number (to the right), and its text."""


def chosen_fields(text: str) -> list[str]:
    """Return the fields that *text* names: separated by commas, after a ``+`` besides the usual.

    An empty name among others is a field that is not known.
    """
    more = text.startswith("+")
    names = text[1:] if more else text
    return (["+"] if more else []) + (names.split(",") if names else [])


def node_table(cluster: Cluster, fields: list[str], domain: str) -> str:
    """Return the nodes of *cluster* with the columns *fields*; none are the usual ones.

    A first field ``+`` adds the others to the usual ones.  Names are shown without *domain*.
    """
    if not fields:
        fields = DEFAULT.split(",")
    elif fields[0] == "+":
        fields = DEFAULT.split(",") + fields[1:]
    rows = [[COLUMNS[field][0] if field in COLUMNS else UNKNOWN for field in fields]]
    for node in cluster.nodes:
        node.alias = node.name[: len(node.name) - len(domain)]
        rows.append([COLUMNS[f][2](node) if f in COLUMNS else UNKNOWN for f in fields])
    return table(rows, [field in COLUMNS and COLUMNS[field][1] for field in fields])


NEW = -1
"""The number that hail shows for a single new instance."""


def as_left(answer: Answer, request: Request, cluster: Cluster, options: Options) -> Cluster:
    """Return the cluster after *answer* to *request* about *cluster*.

    It is to be shown only: its numbers may have gaps.
    """
    names = _chosen_nodes(answer, request)
    if not names:
        return answer.cluster
    shown = answer.cluster.copy()
    # hail has only the nodes of one group in the end.
    one_group = request.placements[0].group is not None or dedicated(cluster, request)
    one_group = one_group and not (options.better and request.kind == "multi-allocate")
    if one_group:
        group = shown.nodes[shown.numbers[names[0]]].group
        shown.nodes = [node for node in shown.nodes if node.group == group]
    if request.kind == "allocate":
        new = len(shown.names) - 1
        for place, node in enumerate(shown.nodes):
            if node.name in names:
                shown.nodes[place] = node = node.copy()
                node.primaries = [NEW if index == new else index for index in node.primaries]
                node.secondaries = [NEW if index == new else index for index in node.secondaries]
        _order(shown, [new, *range(new)])
    if one_group:
        there = {NO_NODE, *[node.index for node in shown.nodes]}
        all_there = enumerate(shown.instances())
        _order(shown, [n for n, each in all_there if {each.primary, each.secondary} <= there])
    return shown


def _chosen_nodes(answer: Answer, request: Request) -> list[str]:
    """Return the nodes of the first new instance that has a place, none if there is none."""
    if not answer.success:
        return []
    if request.kind == "allocate":
        return list(answer.result)
    if request.kind == "multi-allocate" and answer.result[0]:
        _name, nodes = answer.result[0][0]
        return list(nodes)
    return []


def _order(cluster: Cluster, numbers: list[int]) -> None:
    """Let *cluster* have its instances *numbers* only, in that order."""
    before = cluster.copy()
    cluster.names = [before.names[number] for number in numbers]
    cluster.changed = {}
    cluster.read_instance = lambda place: before.instance(numbers[place])
