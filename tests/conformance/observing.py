# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a CRM observes of the nodes of a scenario.

Proxmox VE has no heartbeats: a node that is a member of the quorate cluster counts as one with a
fresh heartbeat.  Nobody is asked over the network; that a node was no member for the fence delay
is the answer that it does not answer.  The lock of a node stands for its host lease.  A lock that
is free proves nothing, as an idle LRM has none; it is proof once it was taken to fence the node.
"""

from __future__ import annotations

from collections.abc import Mapping

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.effects import (
    Observation,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (
    Answer,
    LeaseSight,
    ObservedNode,
    Timing,
)
from ansible_collections.holdfast.ha.tests.conformance.storage import Storage, boot_id

FENCE_DELAY = 60
"""Seconds for which a node must be no member before Proxmox VE's HA manager fences it."""

TIMING = Timing(
    # In Proxmox VE each node tries to become manager.
    standbys=1000,
    suspect_after=1.0,
    daemon_grace=float(FENCE_DELAY),
    power_on_after_fence=False,
)


def observe(storage: Storage, last_beat: Mapping[str, int]) -> Observation:
    """Return one look at all nodes; *last_beat* is when each had a heartbeat last."""
    world = storage.world
    nodes = {}
    for name in world.machines:
        report = storage.reports.get(name)
        if has_heartbeat(storage, name):
            nodes[name] = ObservedNode(0.0, report=report)
            continue
        silent = world.now - last_beat[name]
        answer = Answer.NO if silent >= FENCE_DELAY else Answer.UNKNOWN
        age = max(float(silent), TIMING.suspect_after)
        nodes[name] = ObservedNode(age, answer, _lease_sight(storage, name), report)
    changed = {name: float(at) for name, at in last_beat.items()}
    return Observation(nodes, held="", trouble="", took=0.0, changed=changed, answered={})


def has_heartbeat(storage: Storage, name: str) -> bool:
    """Return whether a node is a member and its LRM has written since the machine started."""
    machine, report = storage.world.machines[name], storage.reports.get(name)
    written = report is not None and report.boot == boot_id(machine)
    return storage.world.member(name) and written


def _lease_sight(storage: Storage, name: str) -> LeaseSight:
    if storage.world.is_fenced(name):
        return LeaseSight.DEAD
    return LeaseSight.FAILED if storage.world.is_free(name) else LeaseSight.STALE
