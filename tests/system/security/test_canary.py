# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""No secret leaves its place in a whole session of an operator, however much agents repeat it.

There is one secret for each way in which one is given.  Files, command lines and all that was
printed are searched for each of them afterwards.
"""

from __future__ import annotations

import json
import secrets as random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.cluster_key import (
    read_keys,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.operations import (
    node_files,
)
from ansible_collections.holdfast.ha.tests.system.playing import Played, player_of, write_inventory
from ansible_collections.holdfast.ha.tests.system.security import canary_agents
from ansible_collections.holdfast.ha.tests.system.security.canary_agents import (
    CommandLines,
    files_below,
    leaks,
)
from cluster import NODES, PATIENCE, EmbeddedCluster

AGENT = "ocf:test:canary"

INLINE = ("inline password", "inline named", "inline URL", "inline option")
"""Secrets that an earlier version took in a declaration: they are on the storage until removed."""

WRITTEN_TWICE = 150.0
"""Seconds in which an LRM has written both copies of its record again."""


class Session:
    """A cluster with a secret for each path, and all that its operator saw."""

    def __init__(self, folder: Path) -> None:
        """Lay the cluster out, with agents that repeat what they get."""
        self.folder = folder
        self.cluster = EmbeddedCluster(folder / "cluster", authentication="warn")
        names = ("fence inline", "fence file", "fence script", "file", "script", "named", *INLINE)
        self.secrets = {name: f"canary{random.token_hex(12)}" for name in names}
        self.secrets["cluster key"] = read_keys(self.cluster.key)[0].hex()
        self.said: list[tuple[str, bytes]] = []
        self.vault, self.backup = folder / "vault.yml", folder / "backup.json"
        self._install()
        inventory = folder / "hosts.yml"
        write_inventory(self.cluster, inventory)
        self._play = player_of(inventory, folder)

    @property
    def private(self) -> tuple[Path, ...]:
        """Where secrets are, for root only."""
        folder = self.cluster.folder
        return (
            self.vault,
            self.cluster.key,
            folder / "secrets",
            folder / "fence.json",
            folder / "fence-secrets",
        )

    def holdfast(self, *words: str, on: str = "n1") -> None:
        """Run a command, and keep what it prints."""
        done = self.cluster.holdfast(*words, on=on)
        said = (done.stdout + done.stderr).encode()
        self.said.append((f"the output of holdfast {' '.join(words)}", said))

    def play(self, name: str, *words: str, **variables: Any) -> Played:
        """Run a playbook as verbosely as it can be, and keep what it prints."""
        vault = ("-e", f"@{self.vault}")
        done = self._play(name, "-vvv", "--diff", *vault, *words, **variables)
        self.said.append((f"the output of {name}", done.text.encode()))
        return done

    def module(self, name: str, options: dict[str, Any], *words: str) -> None:
        """Run a module on the first node and print its whole result."""
        book = self.folder / "book.yml"
        tasks: list[dict[str, Any]] = [
            {f"holdfast.ha.{name}": options, "register": "done"},
            {"ansible.builtin.debug": {"var": "done"}},
        ]
        play = {"hosts": "n1", "gather_facts": False, "tasks": tasks}
        book.write_text(yaml.safe_dump([play]))
        self.play(str(book), *words)

    def _install(self) -> None:
        cluster, secrets = self.cluster, self.secrets
        folder = cluster.folder
        agent = canary_agents.RESOURCE_AGENT.replace("FOLDER", str(folder))
        canary_agents.install(folder / "ocf" / "resource.d" / "test" / "canary", agent)
        path = folder / "bin" / "fence_canary"
        machines = f"{sys.executable} {folder}/bin/fence_holdfast_machine"
        canary_agents.install(path, canary_agents.FENCE_AGENT.replace("AGENT", machines))
        private = folder / "fence-secrets"
        private.mkdir(0o700)
        (private / "file").write_text(secrets["fence file"])
        (private / "file").chmod(0o600)
        canary_agents.install(private / "script", f"#!/bin/sh\necho {secrets['fence script']}\n")
        ways = {
            "inline": {"password": secrets["fence inline"]},
            "file": {"password_file": str(private / "file")},
            "script": {"password_script": str(private / "script")},
        }
        self.devices = {
            name: {
                "agent": str(path),
                "parameters": {"folder": str(cluster.nodes), **way},
                "timeout": 20,
            }
            for name, way in ways.items()
        }
        self.levels = {
            node: {"levels": [[{"device": one, "plug": node} for one in ways]]} for node in NODES
        }
        fence = {"path": str(folder / "fence.json"), "devices": self.devices, "nodes": self.levels}
        node_files.declare_fence(fence, False)
        files = {
            "new.password": secrets["file"],
            "new.token": f"#!/bin/sh\necho {secrets['script']}\n",
            "new.motd": secrets["named"],
        }
        sources = {
            "password_file": "new.password",
            "token_script": "new.token",
            "motd_file": "new.motd",
        }
        self.new = {"name": "new", "resources": [resource(sources, secrets=["motd"])]}
        inline = {
            "password": secrets["inline password"],
            "motd": secrets["inline named"],
            "url": f"http://ada:{secrets['inline URL']}@localhost/",
            "opts": f"-e DB_PASSWORD={secrets['inline option']} -p 80:80",
        }
        self.old = {"name": "old", "resources": [resource(inline, secrets=["motd"])]}
        known = {
            "holdfast_secret_files": files,
            "holdfast_services": [self.new, self.old],
            "vault_old": self.old,
            "vault_devices": self.devices,
        }
        self.vault.write_text(yaml.safe_dump(known))
        self.vault.chmod(0o600)


def resource(parameters: dict[str, str], **more: Any) -> dict[str, Any]:
    return {
        "name": "r0",
        "agent": AGENT,
        "parameters": parameters,
        "monitor_interval": 1.0,
        **more,
    }


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    session = Session(tmp_path)
    with session.cluster:
        yield session


def operate(session: Session) -> None:
    """Do all that an operator does, and look at everything meanwhile."""
    cluster = session.cluster
    cluster.declare_as_before("old", session.old["resources"])
    # In check mode the folder for the secrets is not there yet.
    session.play("declare", "--check")
    session.play("declare")
    assert session.play("declare").changed == session.play("declare", "--check").changed == 0
    cluster.wait_settled()
    config = {"config": str(cluster.config("n1"))}
    session.module("service", {**config, "name": "old", "max_restart": 3})
    session.module("configuration_info", config)
    session.module("cluster_info", {**config, "page": str(session.folder / "page.html")})
    session.module("configuration_backup", {**config, "path": str(session.backup)})
    fence = {"path": str(cluster.folder / "fence.json"), "nodes": session.levels}
    session.module("fence_config", {**fence, "devices": "{{ vault_devices }}"})
    session.play("export", export_dest=str(session.folder / "export.yml"))
    session.play("fence_rehearsal")
    session.play("drift", drift_fail=False)
    session.play("status")
    for service in ("old", "new"):
        target = next(one for one in NODES if one != cluster.status()["services"][service]["node"])
        session.holdfast("service", "move", service, target)
        cluster.wait_settled()
    # A failure of both, with everything in its reason.
    (cluster.folder / "fail").touch()
    session.module("service", {**config, "name": "new", "clear_error": True})
    cluster.wait(
        lambda one: any(row["failed_nodes"] for row in one["services"].values()), PATIENCE, "failed"
    )
    look(session)
    (cluster.folder / "fail").unlink()
    for service in ("old", "new"):
        session.module("service", {**config, "name": service, "clear_error": True})
    cluster.wait_settled()
    manager = cluster.status()["manager"]["node"]
    node = next(one for one in NODES if one not in (manager, "n1"))
    cluster.give_a_service(node)
    since = time.time()
    cluster.cut(node)
    cluster.wait_failover(node, since)
    session.holdfast("rehearse")
    cluster.switch_on(node)
    cluster.wait_settled()
    look(session)


def look(session: Session) -> None:
    """Ask the cluster all that the command can be asked."""
    for words in (
        ["status"],
        ["status", "--json"],
        ["status", "--html", str(session.folder / "status.html")],
        ["check"],
        ["why", "old"],
        ["why", "new"],
        ["history"],
        ["history", "--json"],
        ["metrics", "--whole-cluster"],
        ["lint"],
        ["board", "dump"],
        ["membership", "show"],
        ["key", "show"],
        ["probe"],
        ["what-if", "--dies", "n2"],
    ):
        session.holdfast(*words)


def environments(cluster: EmbeddedCluster) -> Iterator[tuple[str, bytes]]:
    """Return the environments of the daemons."""
    for node in NODES:
        for daemon in ("lrm", "crm"):
            path = Path(f"/proc/{cluster.daemon(node, daemon)}/environ")
            yield f"the environment of the {daemon} of {node}", path.read_bytes()


def test_no_secret_leaves_its_place(session: Session) -> None:
    cluster = session.cluster
    with CommandLines() as observed:
        operate(session)
    shown = [*session.said, *observed.texts(), *environments(cluster)]
    assert leaks(session.secrets, shown) == []
    # What was declared by an earlier version is on the storage, and in a node's copy of its report.
    out_of_place = {name: one for name, one in session.secrets.items() if name not in INLINE}
    assert leaks(out_of_place, files_below(session.folder, session.private)) == []
    status = cluster.status()
    assert len(status["services"]["old"]["inline_secrets"]) == 4
    assert "Service old has" in cluster.holdfast("check").stdout
    assert "Service old has" in (session.folder / "status.html").read_text()
    assert session.backup.stat().st_mode & 0o077 == 0

    # Once it is removed there is no trace of it.
    inline = {name: session.secrets[name] for name in INLINE}
    assert leaks(inline, files_below(cluster.folder / "storage"))
    cluster.declare_resources("old", [resource({})], wait=True)
    cluster.wait_settled()
    until = time.monotonic() + WRITTEN_TWICE
    private = (*session.private, session.backup)
    while leaks(inline, files_below(session.folder, private)) and time.monotonic() < until:
        time.sleep(1.0)
    assert leaks(session.secrets, files_below(session.folder, private)) == []
    session.backup.unlink()


@pytest.mark.parametrize("spelling", [str, json.dumps, lambda one: f"x{one}y"])
def test_a_planted_leak_is_found(tmp_path: Path, spelling: Any) -> None:
    secrets = {"planted": f"canary{random.token_hex(12)}"}
    (tmp_path / "log").write_text(f"some text {spelling(secrets['planted'])} and more")
    (told,) = leaks(secrets, files_below(tmp_path))
    assert "'planted' is in the file" in told
    assert leaks(secrets, files_below(tmp_path, [tmp_path / "log"])) == []
    with CommandLines() as observed:
        subprocess.run(["sh", "-c", "sleep 0.5", spelling(secrets["planted"])], check=True)
    (told,) = leaks(secrets, observed.texts())
    assert "the command line sh" in told
