# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster on the lab's nodes, deployed with the collection's playbooks on one backend."""

from __future__ import annotations

import json
import subprocess
import time
from typing import Any

from testbed.deployment import Deployment, NoStatusError, PlaybookRun
from vmlab import storage
from vmlab.node import Machine
from vmlab.whole import VmLab

TIMES = {
    2: {"io_timeout": 2, "watchdog_timeout": 10},
    10: {"io_timeout": 10, "watchdog_timeout": 60},
}
"""Values of ``holdfast_times`` by I/O timeout, in seconds."""

TIMING = {"suspect_after": 10.0}
"""Seconds; machines on a busy host may be silent for longer than the default of 3."""

CONFIGURATION = "/etc/holdfast/node.json"
ATTEMPTS = 2
ANSWER, STATUS = 60.0, 40.0
"""Seconds until some node has to show the status, and for one node to do so."""

JOINING = 400.0
"""Seconds until a cluster on this machine has to be healthy."""


class VmDeployment(Deployment):
    """The cluster in the lab, on the storage of its backend."""

    testbed: VmLab
    # With all nodes busy a board took 13 s to answer, and a rehearsal asks it twice.
    fence_timeout = 60.0

    def __init__(self, lab: VmLab, *, fencing: bool = True, io_timeout: int = 2) -> None:
        nodes = list(lab.nodes.values())
        if not lab.reused:
            lab.backend.attach(nodes)
        path = _storage(lab, lab.backend.path)
        self.times = TIMES[io_timeout]
        more = {"storage_max_hosts": storage.MAX_HOSTS, "holdfast_times": self.times}
        super().__init__(lab, fencing=fencing, timing=TIMING, storage=path, more=more)

    def is_deployed(self) -> bool:
        """Return whether the nodes were deployed before."""
        nodes = self.testbed.nodes.values()
        present = [node.run("test", "-e", CONFIGURATION, check=False) for node in nodes]
        return all(done.returncode == 0 for done in present)

    def deploy_first(self) -> None:
        """Deploy to machines that were just installed.

        On a busy host systemd of a machine may not answer in time.  An operator runs the playbook
        again then, and so does this.
        """
        for _turn in range(ATTEMPTS):
            self.first_run = self.play("deploy")
            if self.first_run.status == 0:
                break
            print(self.first_run.output[-1500:], flush=True)
        assert self.first_run.status == 0, self.first_run.output[-4000:]

    def look(self, node: str, path: str) -> PlaybookRun:
        """Check a storage path on one node with the role storage, as ``deploy`` does first."""
        role = {"name": "holdfast.ha.storage", "tasks_from": "look"}
        given = {"storage_cluster": "test", "storage_path": path}
        return self.play_tasks(
            "look", node, [{"ansible.builtin.include_role": role, "vars": given}]
        )

    def status(self) -> dict[str, Any]:
        """Return the status from the first node that answers; on a busy host that takes a while."""
        until = time.monotonic() + ANSWER
        while True:
            for node in self.testbed.nodes.values():
                shown = self._status_of(node) if node.answers() else ""
                if shown:
                    document: dict[str, Any] = json.loads(shown)
                    return document
            if time.monotonic() > until:
                raise NoStatusError("no node shows the status")

    def _status_of(self, node: Machine) -> str:
        words = ("holdfast", "status", "--json")
        try:
            return node.run(*words, check=False, timeout=STATUS).stdout
        except (ProcessLookupError, subprocess.TimeoutExpired):
            return ""

    def other_storage(self) -> str:
        """Return an unused storage of the same kind that all nodes have attached."""
        return _storage(self.testbed, self.testbed.backend.other)

    def fences(self, since: float) -> list[dict[str, Any]]:
        """Return the fence events since a time, in seconds since 1970."""
        events = self.status()["events"]
        return [one for one in events if one["at"] >= since and one["kind"] == "fence"]

    def wait_healthy(self, timeout: float = JOINING) -> dict[str, Any]:
        """Wait until all nodes are online and all services are as configured."""
        return super().wait_healthy(timeout)


def _storage(lab: VmLab, path: str) -> str:
    """Return the value of ``holdfast_storage`` for a backend's *path*; "" is the cluster's LUN."""
    return path or storage.multipath_device(lab.nodes["n1"], 0)
