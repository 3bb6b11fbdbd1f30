# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster on the lab's nodes, deployed by the collection's playbooks on one of the backends."""

from __future__ import annotations

import json
import subprocess
import time
from typing import Any

from testbed.deployment import Deployment, NoStatusError, Played
from vmlab import storage
from vmlab.node import Machine
from vmlab.whole import VmLab

TIMES = {
    2: {"io_timeout": 2, "watchdog_timeout": 10},
    10: {"io_timeout": 10, "watchdog_timeout": 60},
}
"""Profiles by I/O timeout of the host leases, in seconds."""

TIMING = {"suspect_after": 10.0}
"""Seconds; machines of a busy host may be silent for longer than the default of 3."""

CONFIGURATION = "/etc/holdfast/node.json"
ATTEMPTS = 2
ANSWER, STATUS = 60.0, 40.0
"""Seconds until any node has to show the status, and for one of them to do so."""

JOINING = 400.0
"""Seconds for a cluster on this machine to be as configured."""


class VmDeployment(Deployment):
    """What is deployed in the lab, on the storage of its backend."""

    testbed: VmLab
    # With all nodes busy an answer took 13 s; with two of them in 20 s a rehearsal fails.
    fence_timeout = 60.0

    def __init__(self, lab: VmLab, *, fencing: bool = True, io_timeout: int = 2) -> None:
        nodes = list(lab.nodes.values())
        if not lab.stood_before:
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
        """Deploy on machines that were only installed.

        On a busy host a machine may be so slow that its systemd does not answer in time.  Then it
        is done as an operator does it: run again.
        """
        for _turn in range(ATTEMPTS):
            self.first_run = self.play("deploy")
            if self.first_run.status == 0:
                break
            print(self.first_run.said[-1500:], flush=True)
        assert self.first_run.status == 0, self.first_run.said[-4000:]

    def look(self, node: str, path: str) -> Played:
        """Have the role storage look at a path on one node, as ``deploy`` does first."""
        role = {"name": "holdfast.ha.storage", "tasks_from": "look"}
        given = {"storage_cluster": "test", "storage_path": path}
        return self.play_tasks(
            "look", node, [{"ansible.builtin.include_role": role, "vars": given}]
        )

    def status(self) -> dict[str, Any]:
        """Return the status as the first node that answers sees it; on a busy host, in a while."""
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
        """Return another storage of the same kind, which all nodes have and nothing uses."""
        return _storage(self.testbed, self.testbed.backend.other)

    def fences(self, since: float) -> list[dict[str, Any]]:
        """Return the events of fences since a time, in seconds since 1970."""
        events = self.status()["events"]
        return [one for one in events if one["at"] >= since and one["kind"] == "fence"]

    def wait_whole(self, timeout: float = JOINING) -> dict[str, Any]:
        """Wait until all nodes are members, and all services are as configured."""
        return super().wait_whole(timeout)


def _storage(lab: VmLab, path: str) -> str:
    """Return a path of a backend as ``holdfast_storage`` has it; "" is the cluster's LUN."""
    return path or storage.multipath_device(lab.nodes["n1"], 0)
