# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which files of variables a distribution needs, and which packages have a fence agent.

PRIVATE to the collection.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

PACKAGE_OF_AGENT = {
    "fence_drac": "drac",
    "fence_idrac": "ipmilan",
    "fence_ilo": "ilo2",
    "fence_ilo3": "ipmilan",
    "fence_ilo3_ssh": "ilo-ssh",
    "fence_ilo4": "ipmilan",
    "fence_ilo4_ssh": "ilo-ssh",
    "fence_ilo5": "ipmilan",
    "fence_ilo5_ssh": "ilo-ssh",
    "fence_imm": "ipmilan",
    "fence_ipmilanplus": "ipmilan",
    "fence_tripplite_snmp": "apc-snmp",
}
"""Agents whose package has another name than they (fence-agents.spec and Debian's control file,
4.16): the part after ``fence-agents-``."""

OF_VIRTUAL_MACHINES = frozenset({"fence_virt", "fence_xvm"})
"""Agents of the package ``fence-virt``, which is never part of one with all agents."""


def platform(facts: Mapping[str, Any], supported: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the files of variables for a system, the least exact first, or why it has none.

    *facts* are what Ansible found out about the node.  Each entry of *supported* has ``names``,
    what Ansible calls the distributions and what people call them, and their ``releases``.  The
    result has ``files``, some of which may not exist, and ``refusal``, empty for a supported
    system.
    """
    supported = tuple(supported)
    distribution = str(facts.get("distribution", ""))
    version = str(facts.get("distribution_version", ""))
    major = str(facts.get("distribution_major_version", ""))
    family = str(facts.get("os_family", ""))
    for entry in supported:
        if distribution in entry["names"] and {version, major} & set(entry["releases"]):
            exact = (*_files("family", family, major), *_files("distribution", distribution, major))
            return {"files": ["any.yml", *exact], "refusal": ""}
    system = f"{distribution} {version}".strip() or "an unknown system"
    known = "; ".join(_in_words(entry) for entry in supported)
    return {"files": [], "refusal": f"The node runs {system}; supported are {known}."}


def fence_packages(agents: Iterable[str], together: Sequence[str]) -> list[str]:
    """Return the packages that have the fence agents *agents*, sorted where each has its own.

    *together* are packages that have all agents; empty where each agent has a package of its own.
    """
    agents = frozenset(agents)
    virtual = ["fence-virt"] if agents & OF_VIRTUAL_MACHINES else []
    if not agents:
        return []
    if together:
        return [*together, *virtual]
    return sorted({*virtual, *(_package(one) for one in agents - OF_VIRTUAL_MACHINES)})


def _package(agent: str) -> str:
    """Return the package of one fence agent."""
    own = agent.removeprefix("fence_").replace("_", "-")
    return f"fence-agents-{PACKAGE_OF_AGENT.get(agent, own)}"


def _files(folder: str, name: str, major: str) -> tuple[str, str]:
    """Return the file of all releases of *name*, and that of one release."""
    return (f"{folder}/{name}.yml", f"{folder}/{name}-{major}.yml")


def _in_words(entry: Mapping[str, Any]) -> str:
    """Return systems with their releases, such as ``Debian 12 and 13``."""
    names, releases = list(entry["names"].values()), list(entry["releases"])
    return f"{_enumerated(names)} {_enumerated(releases)}"


def _enumerated(words: Sequence[str]) -> str:
    """Return words as a list in a sentence."""
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))
