# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Report the capacity of a cluster as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from math import isfinite
from typing import Any

from ...errors import InputError
from ..allocate.solution import Options
from ..explain.reasons import as_cluster_data_errors
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


def describe_capacity(cluster: Cluster, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what *options*, those of the module ``capacity_info``, ask of *cluster*.

    There is a key for each of ``parts``, which are some of `PARTS`.  Raises `InputError` for an
    unknown node or template, `ClusterDataError` for sizes that are too large.
    """
    template, room, parts = options["template"], options["room"], options["parts"]
    if template is not None and template not in DISK_TEMPLATES:
        raise InputError("template", template, f"one of {', '.join(DISK_TEMPLATES)}")
    if not isfinite(room):
        raise InputError("room", str(room), "a number of instances")
    found: dict[str, Any] = {}
    with as_cluster_data_errors("the cluster"):
        if FIT in parts:
            found["fit"] = _fit(cluster, options)
        if REDUNDANCY in parts:
            found["redundancy"] = _redundancy(cluster)
        if REBOOT in parts:
            found["reboot"] = asdict(reboot_rounds(cluster, options["offline"]))
        if STANDBY in parts:
            standby = plan_standby(cluster, room)
            steps = [asdict(step) for step in standby.steps]
            found["standby"] = {"nodes": list(standby.nodes), "steps": steps}
        if options["drain"]:
            found["drain"] = _drain(cluster, options["drain"], options["secondaries"])
    return found


def _fit(cluster: Cluster, asked: Mapping[str, Any]) -> dict[str, Any]:
    policy = cluster.policy
    if len(cluster.groups) == 1:
        policy = cluster.groups[0].policy
    template = asked["template"] or (policy.templates[0] if policy.templates else "plain")
    size = None if asked["size"] is None else Size(**asked["size"])
    options = Options(capacity_checks=asked["capacity_checks"])
    standard = fill(cluster, size or standard_size(policy), template, options, asked["most"])
    sizes = [size] if size else largest_sizes(policy)
    tiered = fill_tiered(cluster, sizes, template, options, asked["most"])
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


def _drain(cluster: Cluster, names: Sequence[str], secondaries: bool) -> dict[str, Any]:
    for name in names:
        if name not in cluster.numbers:
            some = [node.name for node in cluster.nodes[:5]]
            shown = ", ".join(some) + (", and others" if len(cluster.nodes) > 5 else "")
            raise InputError("drain", name, f"the name of a node ({shown})")
    plan = plan_drain(cluster, [cluster.numbers[name] for name in names], secondaries)
    return {
        "possible": not plan.blocked,
        "steps": [asdict(step) for step in plan.steps],
        "blocked": [{"instance": name, "reason": reason} for name, reason in plan.blocked],
        "not_redundant": list(plan.not_redundant),
    }
