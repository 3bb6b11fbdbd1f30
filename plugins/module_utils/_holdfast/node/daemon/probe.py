# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What really runs on this node, by the word of the agents alone."""

from __future__ import annotations

from ...cluster.model.jobs import Job, JobKind, Sight
from ..cluster_storage import ClusterStorage
from ..configuration import NodeConfiguration
from .agent_work import AgentWork


def probe_services(configuration: NodeConfiguration) -> dict[str, str]:
    """Return for each declared service ``running``, ``partly`` or ``stopped`` on this node.

    No daemon and no record is asked but the wanted configuration.
    """
    storage = ClusterStorage(configuration)
    try:
        wanted, _slot = storage.read_wanted()
    finally:
        storage.close()
    work = AgentWork(configuration)
    sights: dict[str, Sight] = {}
    for service_id, service in sorted(wanted.services.items()):
        sights[service_id] = work.carry_out(Job(JobKind.PROBE, service)).sight
    return {service_id: sight.value for service_id, sight in sights.items()}
