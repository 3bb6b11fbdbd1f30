# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster on the testbed's nodes, deployed with the collection's playbooks over ssh."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hardware.management_board import ManagementBoard
from module_archives import shared_in
from testbed.bases import base
from testbed.machine import STORAGE
from testbed.node import Node, wait_until
from testbed.whole import Testbed

CHECKOUT = Path(__file__).resolve().parents[2]
CLUSTER = "test"
FENCE = "/etc/holdfast/fence.json"
FOLDER = f"{STORAGE}/{CLUSTER}"
SSH = (
    "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR"
    " -o ConnectTimeout=10"
)
"""Options of ssh for nodes whose host keys change with each testbed."""

TIMES = {"13": {"io_timeout": 2, "watchdog_timeout": 10}, "12": {"io_timeout": 2}}
"""Values of ``holdfast_times`` by release of Debian: sanlock 3.8 has a fixed watchdog time."""

METRICS = "/var/lib/prometheus/node-exporter/holdfast.prom"

SET_LEASE_PROOF = """
import json, pathlib, sys
path = pathlib.Path("/etc/holdfast/node.json")
document = json.loads(path.read_text())
for member in document["members"]:
    if member["name"] == sys.argv[1]:
        member["lease_proof"] = sys.argv[2] == "True"
path.write_text(json.dumps(document))
"""

RECAP = re.compile(r"^(?P<node>n\d+) +: ok=\d+ +changed=(?P<changed>\d+) .*failed=(?P<failed>\d+)")


@dataclass(frozen=True)
class PlaybookRun:
    """The result of a playbook: exit status, number of changed tasks by node, output."""

    status: int
    changed: Mapping[str, int]
    output: str


def board_parameters(board: ManagementBoard) -> dict[str, Any]:
    """Return the parameters of ``fence_ipmilan`` for a board of the lab."""
    return {**board.parameters, "lanplus": True, "cipher": 3}


class NoStatusError(Exception):
    """No node shows the status: none is up with storage."""


class Deployment:
    """A cluster on a testbed, with fence devices if *fencing* is true.

    *storage* is the folder or block device of the cluster, *timing* the value of
    ``holdfast_timing``, *more* are further variables of the inventory.  *checkout* has the version
    of the collection to use.
    """

    fence_timeout = 20.0
    """Timeout of a fence device, in seconds."""

    def __init__(
        self,
        testbed: Testbed,
        *,
        fencing: bool = True,
        timing: Any = None,
        storage: str = FOLDER,
        more: Mapping[str, Any] | None = None,
        checkout: Path = CHECKOUT,
    ) -> None:
        self.testbed = testbed
        self.checkout = checkout
        self.storage = storage
        self.more = more or {}
        self.folder = testbed.folder / "ansible"
        self.folder.mkdir(exist_ok=True)
        # Not in the lab's folder, as a testbed may be reused after the code has changed.
        self._archives = tempfile.TemporaryDirectory(prefix="holdfast-archives-")
        self.timing = {"fence_limit": 1000, **(timing or {})}
        self.first_check: PlaybookRun | None = None
        self.first_run: PlaybookRun | None = None
        self._write_inventory(fencing)

    def _write_inventory(self, fencing: bool) -> None:
        boards = self.testbed.boards if fencing else {}
        devices = {
            f"board-{name}": {
                "agent": "fence_ipmilan",
                "parameters": board_parameters(board),
                "timeout": self.fence_timeout,
            }
            for name, board in boards.items()
        }
        levels = {name: {"levels": [[{"device": f"board-{name}"}]]} for name in boards}
        variables = {
            "ansible_user": "root",
            "ansible_become": False,
            "ansible_ssh_private_key_file": self.testbed.key,
            "ansible_ssh_common_args": SSH,
            "ansible_python_interpreter": "/usr/bin/python3",
            "holdfast_cluster": CLUSTER,
            "holdfast_storage": self.storage,
            "holdfast_storage_group": "sanlock",
            "holdfast_times": TIMES[self.testbed.release],
            "holdfast_timing": self.timing,
            "holdfast_allowed_agents": ["*"],
            "holdfast_metrics": METRICS,
            # The watchdog of a node resets it from outside, also while it is paused; a container
            # on a virtual machine reports that machine.
            "holdfast_lease_proof": True,
            "holdfast_fence_devices": devices,
            "holdfast_fence_nodes": levels,
            **self.more,
        }
        hosts = {
            node.name: {"ansible_host": node.address, "holdfast_host_id": node.number}
            for node in self.testbed.nodes.values()
        }
        document = {"holdfast": {"hosts": hosts, "vars": variables}}
        (self.folder / "inventory.json").write_text(json.dumps(document, indent=1))

    def play(self, playbook: str, *options: str, checkout: Path | None = None) -> PlaybookRun:
        """Run a playbook of the collection, or of the one in *checkout*, and return its result."""
        used = checkout or self.checkout
        return self._run_playbook(used / "playbooks" / f"{playbook}.yml", options, used)

    def play_tasks(self, name: str, host: str, tasks: Sequence[Mapping[str, Any]]) -> PlaybookRun:
        """Run *tasks* on one host from a file *name*.yml, and return the result."""
        book = self.folder / f"{name}.yml"
        book.write_text(json.dumps([{"hosts": host, "gather_facts": False, "tasks": list(tasks)}]))
        return self._run_playbook(book, (), CHECKOUT)

    def _run_playbook(self, path: Path, options: Sequence[str], checkout: Path) -> PlaybookRun:
        inventory = self.folder / "inventory.json"
        done = subprocess.run(
            [
                *(sys.executable, "-m", "ansible", "playbook", "-i", str(inventory), "--diff"),
                *options,
                str(path),
            ],
            cwd=checkout,
            env={
                **{k: v for k, v in os.environ.items() if not k.startswith("ANSIBLE_")},
                "ANSIBLE_CONFIG": str(checkout / "ansible.cfg"),
                "ANSIBLE_COLLECTIONS_PATH": str(checkout / ".collections"),
                "ANSIBLE_HOME": str(self.folder / "home"),
                "ANSIBLE_PIPELINING": "1",
                "ANSIBLE_NOCOLOR": "1",
                # A Unix socket's path has at most 107 bytes.
                "ANSIBLE_SSH_CONTROL_PATH_DIR": "/run/lock",
                **(self._shared_archives() if checkout == CHECKOUT else {}),
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=self.testbed.play_seconds,
            check=False,
        )
        recap = [match for line in done.stdout.splitlines() if (match := RECAP.match(line))]
        changed = {match["node"]: int(match["changed"]) for match in recap}
        return PlaybookRun(done.returncode, changed, done.stdout)

    def _shared_archives(self) -> dict[str, str]:
        """Return environment variables that let all runs share their module archives."""
        *_layers, root = base(self.testbed.release)
        return shared_in(Path(self._archives.name), f"chroot {shlex.quote(str(root))} python3")

    def deploy_first(self) -> None:
        """Deploy to freshly installed machines, after a run in check mode."""
        self.first_check = self.play("deploy", "--check")
        self.first_run = self.play("deploy")
        assert self.first_run.status == 0, self.first_run.output[-4000:]

    @contextmanager
    def no_fence_devices(self) -> Iterator[None]:
        """Run the cluster without fence devices: their file is moved away on all nodes."""
        for node in self.testbed.nodes.values():
            node.run("mv", FENCE, f"{FENCE}.away")
        try:
            yield
        finally:
            for node in self.testbed.nodes.values():
                node.switch_on()
                node.wait_booted()
                node.run("mv", f"{FENCE}.away", FENCE)

    @contextmanager
    def lease_proof(self, node: Node, value: bool) -> Iterator[None]:
        """Configure on all nodes whether an expired host lease of *node* is a proof."""
        self._set_lease_proof(node, value)
        try:
            yield
        finally:
            self._set_lease_proof(node, True)

    def _set_lease_proof(self, node: Node, value: bool) -> None:
        for one in self.testbed.nodes.values():
            one.switch_on()
            one.wait_booted()
            one.run("python3", "-c", SET_LEASE_PROOF, node.name, str(value))
            one.run("systemctl", "restart", "holdfast-crm")

    def status(self) -> dict[str, Any]:
        """Return the status from the first node that shows it."""
        for node in self.testbed.nodes.values():
            try:
                answer = node.run("holdfast", "status", "--json", check=False, timeout=20.0)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                continue
            if answer.stdout:
                return json.loads(answer.stdout)
        raise NoStatusError("no node shows the status")

    def wait_healthy(self, timeout: float = 300.0) -> dict[str, Any]:
        """Wait until all nodes are online, there is a manager, and all services are as configured.

        The heartbeat of each node has to change: a node that was reset just now may still count as
        online.  Fencing is rehearsed again, as the status advises, if a device did not answer.
        """
        first: dict[str, int] = {}

        def healthy_status() -> dict[str, Any] | None:
            try:
                status = self.status()
            except NoStatusError:
                return None
            online = all(
                one["state"] == "online"
                and not one["lease_lost"]
                and one["heartbeat"] != first.setdefault(name, one["heartbeat"])
                for name, one in status["nodes"].items()
            )
            if online and status["manager"]["active"]:
                self._rehearse_again(status)
            healthy = online and status["manager"]["active"] and not status["problems"]
            return status if healthy and not status["under_way"] else None

        try:
            return wait_until(healthy_status, timeout, "a healthy cluster")
        except TimeoutError as error:
            raise AssertionError(f"{error}: {json.dumps(self.status()['problems'])}") from error

    def _rehearse_again(self, status: Mapping[str, Any]) -> None:
        """Rehearse the fencing that failed last time; a node itself repeats it after ten minutes.

        The rehearsal runs on the node that showed *status*, as the report is that node's own.
        """
        failed = [
            name
            for name in self.testbed.nodes
            if any(f"Fencing of {name} would fail" in one for one in status["problems"])
        ]
        read_on = self.testbed.nodes[status["membership"]["read_on"]]
        if failed:
            with suppress(ProcessLookupError, subprocess.TimeoutExpired):
                read_on.run("holdfast", "rehearse", *failed, check=False)

    def module(self, name: str, options: Mapping[str, Any]) -> None:
        """Call a module of the collection on the first node that is on."""
        on = next(node for node in self.testbed.nodes.values() if node.is_on)
        task = [{"name": "Call it", f"holdfast.ha.{name}": dict(options)}]
        book = [{"hosts": on.name, "gather_facts": False, "tasks": task}]
        (self.folder / "call.yml").write_text(json.dumps(book))
        played = self._run_playbook(self.folder / "call.yml", (), self.checkout)
        assert played.status == 0, played.output[-3000:]

    def remove(self, service: str) -> None:
        """Remove a service, and wait until it is gone."""
        self.module("service", {"name": service, "state": "absent", "wait": True})

    def node_of(self, service: str) -> Node | None:
        """Return the node on which a service is started by the status, None if on none."""
        found = self.status()["services"].get(service)
        if not found or found["state"] != "started":
            return None
        return self.testbed.nodes[found["node"]]
