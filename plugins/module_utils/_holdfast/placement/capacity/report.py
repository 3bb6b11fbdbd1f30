# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Report the capacity of a cluster as plain data."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any

from ...errors import InputError
from ..allocate.solution import Options
from ..explain.reasons import oddities_refused
from ..model.cluster import DISK_TEMPLATES, Cluster
from ..model.redundancy import first_stuck
from .capacity import (
    Filled,
    Size,
    by_node,
    by_size,
    fill,
    largest_sizes,
    standard_size,
)
from .drain import plan_drain, plan_standby
from .reboot_groups import reboot_rounds
from .tiered import fill_tiered

FIT, REDUNDANCY, REBOOT, STANDBY = "fit", "redundancy", "reboot", "standby"
PARTS = (FIT, REDUNDANCY, REBOOT, STANDBY)


@dataclass(frozen=True)
class Question:
    """A question about the capacity of a cluster.

    *parts* are some of `PARTS`.  *size* and *template* of the instances to fit are the policy's
    if None; *most* ends the counting.  *drain* are the names of nodes to empty, with
    *secondaries* also of mirrors.  *room* is in standard instances: nodes that stay on keep it.
    """

    parts: tuple[str, ...] = PARTS
    size: Size | None = None
    template: str | None = None
    most: int | None = None
    drain: tuple[str, ...] = ()
    secondaries: bool = True
    offline: bool = False
    room: float = 2.0


def describe_capacity(cluster: Cluster, asked: Question, options: Options) -> dict[str, Any]:
    """Return what is *asked* of *cluster*, a key for each part.

    Raises `InputError` for an unknown node or template, `ClusterDataError` for sizes that are
    too large.
    """
    if asked.template is not None and asked.template not in DISK_TEMPLATES:
        raise InputError("template", asked.template, f"one of {', '.join(DISK_TEMPLATES)}")
    if not isfinite(asked.room):
        raise InputError("room", str(asked.room), "a number of instances")
    found: dict[str, Any] = {}
    with oddities_refused("the cluster"):
        if FIT in asked.parts:
            found["fit"] = _fit(cluster, asked, options)
        if REDUNDANCY in asked.parts:
            found["redundancy"] = _redundancy(cluster)
        if REBOOT in asked.parts:
            found["reboot"] = asdict(reboot_rounds(cluster, asked.offline, True))
        if STANDBY in asked.parts:
            standby = plan_standby(cluster, asked.room)
            steps = [asdict(step) for step in standby.steps]
            found["standby"] = {"nodes": list(standby.nodes), "steps": steps}
        if asked.drain:
            found["drain"] = _drain(cluster, asked)
    return found


def _fit(cluster: Cluster, asked: Question, options: Options) -> dict[str, Any]:
    policy = cluster.policy
    if len(cluster.groups) == 1:
        policy = cluster.groups[0].policy
    template = asked.template or (policy.templates[0] if policy.templates else "plain")
    size = asked.size or standard_size(policy)
    sizes = [asked.size] if asked.size else largest_sizes(policy)
    standard = fill(cluster, size, template, options, asked.most)
    tiered = fill_tiered(cluster, sizes, template, options, asked.most)
    return {"template": template, "standard": _filled(standard), "tiered": _filled(tiered)}


def _filled(filled: Filled) -> dict[str, Any]:
    return {
        "count": len(filled.placed),
        "sizes": [{**asdict(size), "count": count} for size, count in by_size(filled)],
        "nodes": by_node(filled),
        "reason": filled.reason if filled.failures else "",
        "failures": filled.failures,
    }


def _redundancy(cluster: Cluster) -> dict[str, Any]:
    """Return for each group whether any node of it may be lost, and why not."""
    scope = [node.index for node in cluster.nodes]
    groups: dict[str, Any] = {
        group.name: {"survives": True, "cannot_be_lost": []} for group in cluster.groups
    }
    for node in cluster.nodes:
        stuck = first_stuck(cluster, node, scope)
        if stuck is not None:
            entry = groups[cluster.groups[node.group].name]
            entry["survives"] = False
            entry["cannot_be_lost"].append({"node": node.name, "instance": stuck.name})
    return groups


def _drain(cluster: Cluster, asked: Question) -> dict[str, Any]:
    leaving = []
    for name in asked.drain:
        if name not in cluster.numbers:
            raise InputError("drain", name, f"the name of a node ({_some(cluster)})")
        leaving.append(cluster.numbers[name])
    plan = plan_drain(cluster, leaving, asked.secondaries)
    return {
        "possible": not plan.blocked,
        "steps": [asdict(step) for step in plan.steps],
        "blocked": [{"instance": name, "reason": reason} for name, reason in plan.blocked],
        "not_redundant": list(plan.not_redundant),
    }


def _some(cluster: Cluster) -> str:
    names = [node.name for node in cluster.nodes]
    return ", ".join(names[:5]) + (", and others" if len(names) > 5 else "")
