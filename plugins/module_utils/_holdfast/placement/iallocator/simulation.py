# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make an empty cluster from a description, as htools' ``--simulate`` does.

Each group is ``policy,nodes,disk,memory,cpus[,spindles[,exclusive]]``
(htools, Backend/Simu, version 3.0.2).
"""

from __future__ import annotations

from ...errors import ClusterDataError
from ..model.assembly import Assembly
from ..model.cluster import GROUP_POLICIES, Cluster, Group, Node, default_policy
from ..model.show import quoted
from .numerals import read_truth, read_whole, start_of_whole
from .text_format import finish

ABBREVIATIONS = {"p": "preferred", "a": "last_resort", "u": "unallocable"}
DECIMAL = (1000 / 1024) ** 2
UNITS = {
    "": 1.0,
    "m": 1.0,
    "MIB": 1.0,
    "g": 1024.0,
    "GIB": 1024.0,
    "t": 1048576.0,
    "TIB": 1048576.0,
    "M": DECIMAL,
    "MB": DECIMAL,
    "G": DECIMAL * 1000,
    "GB": DECIMAL * 1000,
    "T": DECIMAL * 1000000,
    "TB": DECIMAL * 1000000,
}
"""MiB of each unit: small letters and -iB are powers of 1024, the others of 1000."""

MOST_NODES = 100_000
"""Each takes some 3 kB; htools has no limit, and takes all memory for a number with many digits."""


def simulate(descriptions: list[str]) -> tuple[Cluster, list[str]]:
    """Return the cluster that *descriptions* name, one for each group.

    Raises `ClusterDataError` with htools' words if one cannot be read, and for more nodes than
    can be simulated.
    """
    groups: list[Group] = []
    nodes: list[Node] = []
    # As in htools, the one that was given last is the first group.
    for number, description in enumerate(reversed(descriptions), 1):
        placing, count, disk_text, memory_text, cpus_text, spindles_text, exclusive = _sections(
            description
        )
        count_of_nodes = read_whole("node count", count)
        if len(nodes) + count_of_nodes > MOST_NODES:
            raise ClusterDataError(f"node count: expected at most {MOST_NODES} nodes in all")
        disk, memory = _size("disk size", disk_text), _size("memory size", memory_text)
        cpus, spindles = read_whole("cpu count", cpus_text), read_whole("spindles", spindles_text)
        own_storage = read_truth("exclusive storage", exclusive)
        name, uuid = f"group-{number:02d}", f"fake-uuid-{number:02d}"
        placing = ABBREVIATIONS.get(placing, placing)
        groups.append(Group(len(groups), name, uuid, placing, [], default_policy(), []))
        sizes = (float(memory), 0, memory, float(disk), disk, float(cpus), 1, spindles, 0)
        nodes += [
            Node(f"node-{number:02d}-{each:03d}", number - 1, [], False, own_storage, *sizes)
            for each in range(1, count_of_nodes + 1)
        ]
    assembly = Assembly(groups)
    for node in nodes:
        assembly.add_node(node)
    return assembly.cluster, finish(assembly, [])


def _sections(description: str) -> list[str]:
    """Return the seven sections of a group's description; the last two may be left out."""
    parts = description.split(",") if description else []
    if not 5 <= len(parts) <= 7:
        raise ClusterDataError(
            "Invalid cluster specification, expected 6 comma-separated sections "
            "(allocation policy, node count, disk size, memory size, number of CPUs, "
            f"spindles) but got {len(parts)}: '{description}'"
        )
    parts += ("1", "False")[len(parts) - 5 :]
    placing = parts[0]
    if ABBREVIATIONS.get(placing, placing) not in GROUP_POLICIES:
        raise ClusterDataError(
            f"Invalid string value for type AllocPolicy: {quoted(placing)}; "
            f"Cannot parse AllocPolicy abbreviation '{placing}'"
        )
    return parts


def _size(what: str, text: str) -> int:
    """Return the MiB that *text* names: a whole number and a unit."""
    found = start_of_whole(text)
    if found is None:
        raise ClusterDataError(f"{what}: Can't parse string '{text}'")
    number, rest = found
    unit = rest.lstrip(" ")
    scale = UNITS.get(unit, UNITS.get(unit.upper()) if len(unit) > 1 else None)
    if scale is None:
        raise ClusterDataError(f"{what}: Unknown unit '{unit}'")
    return int(number * scale)
