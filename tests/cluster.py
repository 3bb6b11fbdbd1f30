# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real cluster of machines in a folder, for tests and benchmarks, without Ansible.

It is built through the library calls behind the modules, with the collection's
own agents as the roles install them.  Its leases are the embedded ones, or those of a
real sanlock for each machine.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any
from unittest.mock import patch

CHECKOUT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(CHECKOUT / ".collections"))
sys.path.insert(0, str(CHECKOUT / "tests" / "unit" / "agents"))
sys.path.insert(0, str(CHECKOUT / "tests"))

import witness  # noqa: E402
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.maintenance import (  # noqa: E402, E501
    Maintenance,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.lease.interface import (  # noqa: E402
    Leases,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.lease.sanlock_command import (  # noqa: E402
    await_daemon,
    start_daemon,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.cluster_storage import (  # noqa: E402
    make_leases,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.configuration_file import (  # noqa: E402
    load,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.agent_work import (  # noqa: E402
    probe_services,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.machine import power  # noqa: E402
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.cli.install import (  # noqa: E402
    compiled,
    library_archive,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.operations import (  # noqa: E402  # noqa: E402
    agent_checks,
    cluster_key,
    disarm,
    node_files,
    policy,
    repair_records,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.operations import (  # noqa: E402
    maintenance as operations_maintenance,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.operations import (  # noqa: E402
    move as operations_move,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.operations import (  # noqa: E402
    service as operations_service,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.report.status import (  # noqa: E402
    read_status,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.process.family import (  # noqa: E402
    carries,
    process_table,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.process.own_program import (  # noqa: E402
    own_program,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.device import (  # noqa: E402
    is_device,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.provision import (  # noqa: E402
    device as provision_device,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.provision import (  # noqa: E402
    lockspace as provision_lockspace,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.provision import (  # noqa: E402
    metadata as provision_metadata,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.whole_file import (  # noqa: E402
    cluster_paths,
)
from installed_agents import install_command, install_fence_agent  # noqa: E402

NAME = "test"
NODES = ("n1", "n2", "n3")

PATIENCE = 180.0
"""Seconds for what a cluster does in a few; the machine may be slow."""

PATIENT: Mapping[str, Any] = MappingProxyType({"fence_limit": 1000, "suspect_after": 6.0})
"""The timing of a cluster whose tests are not about how soon a node is suspected: on a busy machine
a daemon that was killed needs longer than the default of 2 s to be heard of again."""

MONITOR_INTERVAL = 5.0
"""Seconds between two monitors of a resource.  Each starts a Python: once a second, those of one
cluster took an eighth of a core all the time.  Tests that let 6 s pass see one of each."""

LOOKS = 4
"""How often processes are looked for, half a second apart, to tell which of them last."""


class EmbeddedCluster:
    """Three machines on this computer; leaving it switches them off."""

    def __init__(
        self,
        folder: Path,
        timing: Mapping[str, Any] = PATIENT,
        backend: str = "embedded",
        further_members: int = 0,
        authentication: str = "warn",
        allowed_agents: Sequence[str] = ("*",),
        device: str = "",
    ) -> None:
        """Lay everything out in *folder*; nothing runs yet.

        So many *further_members* are configured beside the three machines, and never run.  With
        the *authentication* ``warn`` all is signed, and the global block of the whiteboard, by
        which tests hold the cluster, is believed.  *allowed_agents* is what the nodes may run.
        The storage is a folder, or the block *device*.
        """
        self._allowed_agents = list(allowed_agents)
        self._timing = dict(timing)
        self.folder = folder.resolve()
        self.storage = device or str(self.folder / "storage")
        self.backend = backend
        # Elsewhere, as the path of a Unix socket has at most 107 bytes.
        self.sanlock = Path(tempfile.mkdtemp(prefix="hf-")) if backend == "sanlock" else None
        self._started: list[subprocess.Popen[bytes]] = []
        self.nodes = self.folder / "nodes"
        self.ledgers = self.folder / "ledgers"
        first = free_ports(3 * len(NODES) + 1)
        self.web_port = first + 3 * len(NODES)
        self._members = [
            {"name": name, "host_id": number, "address": "127.0.0.1", "port": first + 3 * index}
            for index, (number, name) in enumerate(enumerate(NODES, start=1))
        ]
        self._members += [
            {
                "name": f"m{number}",
                "host_id": number,
                "address": f"127.1.{number // 250}.{number % 250}",
                "port": first,
            }
            for number in range(len(NODES) + 1, len(NODES) + 1 + further_members)
        ]
        self._install()
        self.create_storage()
        self._declare_fence()
        cluster_key.declare_key({"path": str(self.key), "keys": []}, False)
        for name in NODES:
            self.configure(name, authentication)

    def __enter__(self) -> EmbeddedCluster:
        """Switch all machines on."""
        for name in NODES:
            power.power_on(self.nodes, name, 30.0)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Switch all machines off, and keep them from recovering each other meanwhile."""
        self.global_maintenance(True)
        for _turn in range(2):
            for name in NODES:
                power.power_off(self.nodes, name, 30.0)
        for child in self._started:
            child.wait(timeout=30)
        if self.sanlock is not None:
            shutil.rmtree(self.sanlock)

    def config(self, node: str) -> Path:
        """Return the path of a node's configuration file."""
        return self.nodes / node / "node.json"

    def declare(self, name: str, *commands: str, port: int | None = None, **more: Any) -> None:
        """Declare a service with one resource for each command."""
        resources = []
        for index, command in enumerate(commands):
            parameters = {"command": command}
            if port is not None and index == len(commands) - 1:
                parameters["port"] = str(port)
            resources.append(
                {
                    "name": f"r{index}",
                    "agent": "ocf:holdfast:command",
                    "parameters": parameters,
                    "monitor_interval": MONITOR_INTERVAL,
                }
            )
        self.declare_resources(name, resources, **more)

    def witness(self, name: str, stop: float = 0.0) -> str:
        """Return the command of a service that records its life and takes *stop* s to end."""
        return shlex.join(
            [sys.executable, "-S", witness.__file__, str(self.ledgers), name, str(stop)]
        )

    def declare_witness(self, name: str, stop: float = 0.0, **more: Any) -> Any:
        """Declare a service that records its life and takes *stop* s to end."""
        parameters = {"command": self.witness(name, stop), "stop_timeout": "20"}
        resource = {
            "name": "r0",
            "agent": "ocf:holdfast:command",
            "parameters": parameters,
            "monitor_interval": MONITOR_INTERVAL,
        }
        return self.declare_resources(name, [resource], **more)

    def violations(self) -> list[str]:
        """Return a sentence for everything in the ledgers that says that a service ran twice."""
        return witness.violations(self.ledgers)

    def lives(self) -> dict[str, list[witness.Line]]:
        """Return all that the services recorded: their processes, and when they started."""
        return dict(witness.read_ledgers(self.ledgers))

    def witnesses(self) -> dict[str, list[str]]:
        """Return the nodes on which each service that records its life is alive."""
        return witness.running(self.ledgers)

    def show_ledgers(self) -> str:
        """Return all ledgers for people."""
        return "\n".join(
            f"{service}: {witness.show_line(line)}"
            for service, lines in witness.read_ledgers(self.ledgers).items()
            for line in lines
        )

    @property
    def state_file(self) -> Path:
        """The file with the records of all daemons."""
        return Path(self.storage) / f"{NAME}.state"

    def holdfast(self, *words: str, on: str = "n1") -> subprocess.CompletedProcess[str]:
        """Run the command of an operator on a node; the caller judges its exit status."""
        return subprocess.run(
            own_program(*words, "--config", str(self.config(on))),
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )

    def declare_resources(
        self, name: str, resources: list[dict[str, Any]] | None, **more: Any
    ) -> Any:
        """Declare a service as the module does; *more* are further options."""
        options = {
            "config": str(self.config("n1")),
            "name": name,
            "state": "started",
            "resources": resources,
            "max_restart": None,
            "max_relocate": None,
            "failback": None,
            "wait": False,
            "timeout": PATIENCE,
            **more,
        }
        return operations_service.declare_service(options, False)

    def declare_as_before(self, name: str, resources: list[dict[str, Any]], **more: Any) -> Any:
        """Declare a service as a version did that took secrets in a declaration."""
        with patch.object(agent_checks, "has_secret", lambda *_arguments: False):
            return self.declare_resources(name, resources, **more)

    def declare_web(self) -> None:
        """Declare a service that answers over HTTP on ``web_port``."""
        script = CHECKOUT / "playbooks" / "files" / "quickstart_web.py"
        self.declare(
            "web", f"{sys.executable} '{script}' 127.0.0.1 {self.web_port}", port=self.web_port
        )

    def declare_rule(self, name: str, services: list[str], **more: Any) -> Any:
        """Declare a rule as the module does."""
        options = {
            "config": str(self.config("n1")),
            "name": name,
            "state": "present",
            "services": services,
            "nodes": None,
            "strict": False,
            "affinity": None,
            **more,
        }
        return policy.declare_rule(options, False)

    def maintenance(self, node: str, state: str, on: str = "", **more: Any) -> Any:
        """Drain a node or use it again, declared there or *on* another; wait until it is done."""
        options = {
            "config": str(self.config(on or node)),
            "node": node,
            "state": state,
            "reason": "test",
            "owner": "test",
            "until": None,
            "duration": None,
            "wait": True,
            "timeout": PATIENCE,
            **more,
        }
        return operations_maintenance.declare_maintenance(options, False)

    def move(self, name: str, node: str, **more: Any) -> Any:
        """Move a service as the module does, and wait until it is there."""
        options = {"config": str(self.config("n1")), "name": name, "node": node, "live": True}
        asked = {**options, "wait": True, "timeout": PATIENCE, **more}
        return operations_move.declare_move(asked, False)

    def policy(self, **changes: Any) -> Any:
        """Change the cluster's policy as the module does, and wait until it is in force."""
        options = {"config": str(self._an_on()), "wait": True, "timeout": PATIENCE}
        return policy.declare_policy({**options, **changes}, False)

    def maintain(self, state: str, **more: Any) -> Any:
        """Hold, disarm or arm the whole cluster as the module does, and wait until it is so."""
        options = {
            **{"config": str(self._an_on()), "state": state, "mode": "hold", "reason": "test"},
            **{"owner": "test", "until": None, "duration": None, "wait": True},
            "timeout": PATIENCE,
        }
        return disarm.declare_cluster_maintenance({**options, **more}, False)

    def _an_on(self) -> Path:
        """Return the configuration of a node that is on."""
        return self.config(next(node for node in NODES if power.is_on(self.nodes, node)))

    def remove(self, name: str) -> None:
        """Declare that a service is gone, and wait until it is."""
        self.declare_resources(name, None, state="absent", wait=True)

    def repair_records(self, keep: str, node: str = "n1") -> repair_records.Repair:
        """Repair the records as the command does on *node*, and wait until that is taken up."""
        by = Maintenance("test", "test", time.time())
        return repair_records.repair_records(
            load(self.config(node)),
            repair_records.Keep(keep),
            by,
            check=False,
            timeout=PATIENCE,
        )

    def global_maintenance(self, desired: bool) -> None:
        """Set or end global maintenance on the whiteboard."""
        paths = cluster_paths(self.storage, NAME)
        options = provision_metadata.DesiredMetadata(NAME, maintenance=desired)
        found = provision_metadata.look_metadata(paths)
        plan = provision_metadata.plan_metadata(options, found, paths)
        provision_metadata.apply_metadata(plan, options, paths)

    def give_a_service(self, node: str) -> None:
        """Make sure that a node runs a service: move one there if it has none.

        What returns from a maintenance just now is no service that stays.
        """
        status = self.wait_settled()
        if not status["nodes"][node]["services"]:
            self.move(min(status["services"]), node)
            self.wait_settled()

    def lasting_processes(self, node: str) -> list[int]:
        """Return the service processes of a node that are there in each of several looks.

        What an agent calls for a moment, and what its look left behind, is in one of them.
        """
        found = set(self.service_processes(node))
        for _look in range(LOOKS):
            time.sleep(0.5)
            found &= set(self.service_processes(node))
        return sorted(found)

    def service_processes(self, node: str) -> list[int]:
        """Return the processes of a node that are neither its machine nor a daemon or agent.

        sanlock, and what holds a lease for a daemon, are known by sanlock's own variable.
        Agents look at any moment: what one of them calls for it is none either, and a process
        without words has ended since it was found.  Nor are the fence agents that a manager runs.
        """
        words = {pid: _command_line(pid) for pid in power.processes(self.nodes / node)}
        looking = {pid for pid, line in words.items() if "monitor" in line}
        fence_agents = str(self.folder / "bin")
        sanlock = f"SANLOCK_RUN_DIR={self._run_directory(node)}".encode()
        of_sanlock = {pid for pid in words if carries(pid, sanlock)}
        # Last: of what has ended by now nothing could be told above.
        table = process_table()
        return [
            pid
            for pid, line in words.items()
            if any(line)
            and pid in table
            and table[pid].alive
            and not looking & {pid, table[pid].parent}
            and str(self.config(node)) not in line
            and not any(fence_agents in word for word in line)
            and pid not in of_sanlock
        ]

    def command_process(self, node: str, command: str) -> int:
        """Return the process of a node that runs a command, 0 if there is none."""
        words = shlex.split(command)
        for pid in power.processes(self.nodes / node):
            if _command_line(pid)[:-1] == words:
                return pid
        return 0

    @staticmethod
    def hold_still(seconds: float) -> None:
        """Let time pass in which something must not happen."""
        time.sleep(seconds)

    def fences(self) -> list[dict[str, Any]]:
        """Return the failovers for which a fence was ordered.

        The others are of nodes that were heard of again before that, or that left by themselves.
        """
        return [one for one in self.status()["failovers"] if one["fence_sent"]]

    def cut(self, node: str) -> None:
        """Cut a machine's power."""
        power.power_off(self.nodes, node, 30.0)

    def switch_on(self, node: str) -> None:
        """Switch a machine on, and wait until its daemons run."""
        power.power_on(self.nodes, node, 30.0)

    def shut_down(self, node: str, timeout: float = PATIENCE) -> None:
        """Switch a machine off in an orderly way, and wait until nothing of it is left."""
        os.kill(int((self.nodes / node / "machine.pid").read_text()), signal.SIGTERM)
        until = time.monotonic() + timeout
        while power.is_on(self.nodes, node):
            assert time.monotonic() < until, f"{node} does not end"
            time.sleep(0.1)

    def leases(self, node: str) -> Leases:
        """Return the leases as a node that only looks has them; to be closed."""
        return make_leases(load(self.config(node)))

    def kill_sanlock(self, node: str) -> None:
        """Kill the sanlock of a machine and nothing else."""
        for pid in power.processes(self.nodes / node):
            words = _command_line(pid)
            if "daemon" in words and Path(words[0]).name == "sanlock":
                os.kill(pid, signal.SIGKILL)

    def start_sanlock(self, node: str) -> None:
        """Start the sanlock of a machine that is on, as an operator would."""
        os.environ[power.MARK] = str(self.nodes / node)
        try:
            self._started.append(start_daemon(self._run_directory(node), node))
        finally:
            del os.environ[power.MARK]
        await_daemon(self._run_directory(node))

    def freeze(self, node: str) -> None:
        """Let a machine hang."""
        power.freeze(self.nodes, node)

    def thaw(self, node: str) -> None:
        """Let a machine that hangs go on."""
        power.thaw(self.nodes, node)

    def kill_daemon(self, node: str, daemon: str) -> int:
        """Kill one daemon of a node and nothing else; return its process id once it is gone."""
        pid = self.daemon(node, daemon)
        os.kill(pid, signal.SIGKILL)
        until = time.monotonic() + 30.0
        while is_alive(pid) and time.monotonic() < until:
            time.sleep(0.01)
        return pid

    def daemon(self, node: str, daemon: str, timeout: float = 30.0) -> int:
        """Return the process id of a node's ``lrm`` or ``crm`` once it runs."""
        until = time.monotonic() + timeout
        while time.monotonic() < until:
            for pid in power.processes(self.nodes / node):
                words = _command_line(pid)
                if daemon in words and str(self.config(node)) in words:
                    return pid
            time.sleep(0.05)
        raise AssertionError(f"{daemon} of {node} does not run")

    def status(self, node: str = "n1") -> dict[str, Any]:
        """Return the status as seen from a node."""
        return read_status(load(self.config(node)))

    def running(self) -> dict[str, list[str]]:
        """Return for each service the nodes on which its agents find it running.

        All nodes are asked at once: one after the other, what moves meanwhile would be found twice.
        """
        with ThreadPoolExecutor(len(NODES)) as pool:
            sights = list(pool.map(lambda node: probe_services(load(self.config(node))), NODES))
        found: dict[str, list[str]] = {}
        for node, observed in zip(NODES, sights):
            for service, sight in observed.items():
                if sight != "stopped":
                    found.setdefault(service, []).append(node)
        return found

    def wait(self, done: Any, timeout: float, what: str) -> dict[str, Any]:
        """Wait until *done* of the status is true, and return that status."""
        until = time.monotonic() + timeout
        while True:
            status = self.status()
            if done(status):
                return status
            if time.monotonic() > until:
                raise AssertionError(
                    f"not {what} after {timeout} s: {json.dumps(status['problems'], indent=1)}"
                )
            time.sleep(0.2)

    def wait_settled(self, timeout: float = PATIENCE) -> dict[str, Any]:
        """Wait until all is as configured."""
        return self.wait(
            lambda status: (
                not status["problems"] and status["services"] and not status["under_way"]
            ),
            timeout,
            "settled",
        )

    def wait_failover(self, node: str, since: float, timeout: float = PATIENCE) -> dict[str, Any]:
        """Wait until a failover of *node* that began after *since* is finished; return it."""

        def finished(status: dict[str, Any]) -> list[dict[str, Any]]:
            return [
                one
                for one in status["failovers"]
                if one["node"] == node and one["finished"] and one["recorded"] >= since
            ]

        status = self.wait(finished, timeout, f"a failover of {node}")
        return finished(status)[-1]

    def _install(self) -> None:
        for name in ("bin", "lib", "storage", "nodes"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        install_command(self.folder / "ocf")
        install_fence_agent(self.folder / "bin")
        library = self.folder / "lib" / "holdfast.pyz"
        # With bytecode, as the units of a node run it: each start of a machine takes half the time.
        library.write_bytes(compiled(library_archive(), {}))

    def create_storage(self) -> None:
        """Create what is not there yet of the cluster's files, as the role does."""
        paths = cluster_paths(self.storage, NAME)
        max_hosts = max(8, len(self._members))
        if is_device(self.storage):
            desired = provision_device.DesiredDevice(NAME, self.storage, max_hosts=max_hosts)
            device = provision_device.look_device(self.storage, NAME)
            provision_device.apply_device(provision_device.plan_device(desired, device), desired)
        lockspace = provision_lockspace.DesiredLockspace(NAME)
        found = provision_lockspace.look_lockspace(paths)
        plan = provision_lockspace.plan_lockspace(lockspace, found, paths)
        provision_lockspace.apply_lockspace(plan, lockspace, paths)
        metadata = provision_metadata.DesiredMetadata(NAME, max_hosts=max_hosts)
        present = provision_metadata.look_metadata(paths)
        metadata_plan = provision_metadata.plan_metadata(metadata, present, paths)
        provision_metadata.apply_metadata(metadata_plan, metadata, paths)

    @property
    def key(self) -> Path:
        """The file of the cluster key, which the machines share."""
        return self.folder / "cluster.key"

    def configure(self, name: str, authentication: str) -> None:
        """Write a node's configuration, which its daemons read when they start."""
        own = {"watchdog_timeout": 0, "run_directory": self._run_directory(name)}
        node_files.declare_node(
            {
                "config": str(self.config(name)),
                "cluster": NAME,
                "node": name,
                "storage": self.storage,
                "folder": str(self.nodes / name),
                "members": self._members,
                "backend": self.backend,
                "sanlock": own if self.sanlock is not None else {},
                "agent_directories": [str(self.folder / "ocf"), "/usr/lib/ocf"],
                "allowed_agents": self._allowed_agents,
                "fence_configuration": str(self.folder / "fence.json"),
                "authentication": authentication,
                "cluster_key": str(self.key),
                "timing": self._timing,
            },
            False,
        )

    def _declare_fence(self) -> None:
        fence = self.folder / "fence.json"
        device = {
            "agent": str(self.folder / "bin" / "fence_holdfast_machine"),
            "parameters": {"folder": str(self.nodes)},
            "timeout": 20,
        }
        levels = {name: {"levels": [[{"device": "machines", "plug": name}]]} for name in NODES}
        node_files.declare_fence(
            {"path": str(fence), "devices": {"machines": device}, "nodes": levels}, False
        )

    def _run_directory(self, node: str) -> str:
        return str(self.sanlock / node) if self.sanlock is not None else ""


def is_alive(pid: int) -> bool:
    """Return whether a process is there and no zombie, which nobody may have collected yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def free_ports(number: int) -> int:
    """Return the first of *number* ports in a row that are free on loopback just now.

    Tests that run at once do not look at the same ones: of a machine that is switched off they
    are free, too, and it comes back.  Nor may they be of those that the kernel gives to
    whoever calls somebody (ip_local_port_range).
    """
    for first in range(20000 + os.getpid() % 60 * 200, 32000, number):
        if all(_is_free(port) for port in range(first, first + number)):
            return first
    raise AssertionError("no free ports")


def _is_free(port: int) -> bool:
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        with socket.socket(socket.AF_INET, kind) as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                return False
    return True


def _command_line(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
    except OSError:
        return []
