# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The storage of a cluster on which a test declares things, and its manager's record."""

from __future__ import annotations

import json
from dataclasses import replace
from unittest.mock import patch

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    ClusterState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.cluster_storage import (
    MANAGER_LEASE,
    ClusterStorage,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.operations import (
    policy,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.operations import (
    service as operations_service,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.operations.maintenance import (  # noqa: E501
    declare_maintenance,
)
from ansible_collections.holdfast.ha.tests.unit.node.sample_node import (
    configuration,
    create_storage,
    document,
    join,
)
from ansible_collections.holdfast.ha.tests.unit.ocf.agent_script import SHARED, write_agent

RESOURCE = {"name": "r", "agent": "ocf:test:thing", "parameters": {"path": "/srv/x"}}


class Cluster:
    """The storage of a cluster of which n1 is on, and its manager's record."""

    def __init__(self, folder):
        self.folder = folder
        create_storage(folder)
        write_agent(folder / "ocf", "exit 0", metadata=SHARED)
        self.configuration = configuration(folder)
        self.path = self.configuration.folder / "node.json"
        self.path.write_text(json.dumps(document(folder)))
        self.host = join(self.configuration)
        self.storage = ClusterStorage(self.configuration)
        self.storage.adopt_host_lease()
        self.epoch = self.storage.leases.acquire(MANAGER_LEASE)
        self._says = None
        self._write_only = ClusterStorage.write_desired

        def write_desired(*arguments):
            return self._write_desired(*arguments)

        self._taken_up = patch.object(ClusterStorage, "write_desired", write_desired)
        self._taken_up.start()

    def manager_says(self, version, services=None, nodes=None, **more):
        """Write the manager's record, made from *version* of the configuration once there is one.

        No manager works from a configuration that was not written yet.
        """
        state = ClusterState(self.epoch, "n1", version, 1, 1, services or {}, nodes or {}, **more)
        self._says = state
        self._manager_writes()

    def _manager_writes(self):
        if self._says is not None:
            made_from = min(self._says.config_version, self.storage.readable_desired()[0].version)
            self.storage.write_manager(replace(self._says, config_version=made_from))

    def _write_desired(self, storage, desired):
        self._write_only(storage, desired)
        self._manager_writes()

    def desired(self):
        return self.storage.read_desired()[0]

    def service(self, name="web", check=False, **changes):
        options = {
            "config": str(self.path),
            "name": name,
            "state": "started",
            "resources": None,
            "max_restart": None,
            "max_relocate": None,
            "failback": None,
            "wait": False,
            "timeout": 0.3,
        }
        return operations_service.declare_service({**options, **changes}, check)

    def rule(self, name="sides", check=False, **changes):
        options = {
            "config": str(self.path),
            "name": name,
            "state": "present",
            "services": ["web"],
            "nodes": None,
            "strict": False,
            "affinity": None,
        }
        return policy.declare_rule({**options, **changes}, check)

    def maintenance(self, state="drained", check=False, **changes):
        options = {
            "config": str(self.path),
            "node": "n2",
            "state": state,
            "reason": "disks",
            "owner": "ada",
            "until": None,
            "duration": None,
            "wait": False,
            "timeout": 0.3,
        }
        return declare_maintenance({**options, **changes}, check)

    def close(self):
        self._taken_up.stop()
        self.storage.close()
        self.host.close()
