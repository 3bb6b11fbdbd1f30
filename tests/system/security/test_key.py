# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster key is exchanged, and authentication brought in, while services run."""

from __future__ import annotations

import shlex
import shutil
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
import yaml
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import InputError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.cluster_key import (
    keys_text,
    make_key,
    read_keys,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.configuration_file import (
    load,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.operations import (
    cluster_key,
)
from ansible_collections.holdfast.ha.plugins.plugin_utils._cluster_keys import cluster_key_steps
from cluster import NODES, PATIENCE, EmbeddedCluster
from playing import player_of, write_inventory

LONGEST = 30.0
"""Seconds for which a client may go without an answer on a busy machine; nothing is stopped, as
what the services record of their lives says."""


class Client:
    """Asks the web service all the time; *longest* is how long it went without an answer."""

    def __init__(self, url: str) -> None:
        self.longest = 0.0
        self._url, self._end = url, Event()
        self._thread = Thread(target=self._ask, daemon=True)

    def __enter__(self) -> Client:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._end.set()
        self._thread.join()

    def _ask(self) -> None:
        answered = time.monotonic()
        while not self._end.wait(0.1):
            try:
                with urllib.request.urlopen(self._url, timeout=1.0):
                    now = time.monotonic()
            except OSError:
                now = None
            self.longest = max(self.longest, time.monotonic() - answered)
            answered = now or answered


@pytest.fixture
def cluster(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(tmp_path, authentication=request.param) as cluster:
        declare_services(cluster)
        yield cluster
        assert not cluster.violations(), cluster.show_ledgers()


def declare_services(cluster: EmbeddedCluster) -> None:
    cluster.declare_web()
    cluster.declare("one", cluster.witness("one"))
    cluster.wait_settled()


def client_of(cluster: EmbeddedCluster) -> Client:
    return Client(f"http://127.0.0.1:{cluster.web_port}/")


def wait_until_signed(cluster: EmbeddedCluster) -> None:
    """Wait until the first key has signed all, as the playbook does."""
    for node in NODES:
        cluster_key.sign_configuration(load(cluster.config(node)))
    until = time.monotonic() + PATIENCE
    configuration = load(cluster.config("n1"))
    while True:
        shown = cluster_key.key_document(configuration)
        if not shown["not_signed"] and not shown["not_authentic"]:
            return
        assert time.monotonic() < until, shown
        time.sleep(0.5)


def all_runs(status: dict[str, Any]) -> bool:
    """Return whether a manager is there, all nodes are online and all services run."""
    return (
        bool(status["manager"]["active"])
        and all(node["state"] == "online" for node in status["nodes"].values())
        and all(one["state"] == "started" for one in status["services"].values())
    )


@pytest.mark.parametrize("cluster", ["enforce"], indirect=True)
def test_the_key_is_exchanged_and_no_client_notices(cluster: EmbeddedCluster) -> None:
    fences, lives, old = cluster.fences(), cluster.lives(), read_keys(cluster.key)
    daemons = {
        (node, kind): cluster.daemon(node, kind) for node in NODES for kind in ("lrm", "crm")
    }
    new = make_key()
    steps = cluster_key_steps([keys_text(old)] * len(NODES), new.hex())
    with client_of(cluster) as client:
        for keys in steps:
            cluster_key.declare_key({"path": str(cluster.key), "keys": keys}, False)
            wait_until_signed(cluster)
    assert read_keys(cluster.key) == (new,)
    status = cluster.wait_settled()
    assert not status["problems"]
    assert client.longest < LONGEST
    assert (cluster.fences(), cluster.lives()) == (fences, lives)
    for (node, kind), pid in daemons.items():
        assert cluster.daemon(node, kind) == pid, "nothing is restarted"


@pytest.fixture
def with_own_keys(tmp_path: Path) -> Iterator[EmbeddedCluster]:
    """A cluster whose machines have a file of the cluster key each, as nodes have."""
    cluster = EmbeddedCluster(tmp_path / "cluster", authentication="enforce")
    for node in NODES:
        shutil.copy(cluster.key, key_of(cluster, node))
        path = cluster.config(node)
        path.write_text(path.read_text().replace(str(cluster.key), str(key_of(cluster, node))))
    with cluster:
        declare_services(cluster)
        yield cluster


def key_of(cluster: EmbeddedCluster, node: str) -> Path:
    return cluster.folder / f"{node}.key"


def inventory_with_keys(cluster: EmbeddedCluster, folder: Path) -> Path:
    """Return an inventory that also says where each node's key is, and its command."""
    path = folder / "hosts.yml"
    write_inventory(cluster, path)
    content = yaml.safe_load(path.read_text())
    library = cluster.folder / "lib" / "holdfast.pyz"
    for node, values in content["holdfast"]["hosts"].items():
        command = folder / f"holdfast-{node}"
        run = shlex.join([sys.executable, "-I", str(library)])
        config = shlex.quote(str(cluster.config(node)))
        command.write_text(f'#!/bin/sh\nexport HOLDFAST_CONFIG={config}\nexec {run} "$@"\n')
        command.chmod(0o755)
        values.update(
            ansible_become=False,
            node_command=str(command),
            node_cluster_key=str(key_of(cluster, node)),
        )
    path.write_text(yaml.safe_dump(content))
    return path


def test_the_playbook_exchanges_the_key_and_ends_what_was_interrupted(
    with_own_keys: EmbeddedCluster, tmp_path: Path
) -> None:
    cluster = with_own_keys
    play = player_of(inventory_with_keys(cluster, tmp_path), tmp_path)
    fences, lives, (old,) = cluster.fences(), cluster.lives(), read_keys(cluster.key)
    new, later = make_key(), make_key()
    # Interrupted: the first node has the new key beside the old one.
    key_of(cluster, "n1").write_text(keys_text([old, new]))
    with client_of(cluster) as client:
        done = play("cluster_key", holdfast_next_cluster_key=later.hex())
        assert play("cluster_key", "--check", holdfast_next_cluster_key=later.hex()).changed == 0
    for node in NODES:
        assert read_keys(key_of(cluster, node)) == (later,)
    assert not {old.hex(), new.hex(), later.hex()} & set(done.text.split())
    assert not cluster.wait_settled()["problems"]
    assert client.longest < LONGEST
    assert (cluster.fences(), cluster.lives()) == (fences, lives)


def test_the_playbook_says_what_is_wrong_with_the_keys(
    with_own_keys: EmbeddedCluster, tmp_path: Path
) -> None:
    cluster = with_own_keys
    play = player_of(inventory_with_keys(cluster, tmp_path), tmp_path)
    assert (
        "n3 cannot be reached or are not in the limit"
        in play("cluster_key", "--limit", "n1,n2", fails=True).text
    )
    cluster.maintain("present")
    saved = key_of(cluster, "n2").read_text()
    key_of(cluster, "n2").unlink()
    assert "n2 has no cluster key in" in play("cluster_key", fails=True).text
    key_of(cluster, "n2").write_text(saved)
    key_of(cluster, "n2").chmod(0o600)
    cluster.maintain("absent")
    refused = play("cluster_key", holdfast_next_cluster_key="short", fails=True).text
    assert "holdfast_next_cluster_key holds no cluster key" in refused


@pytest.mark.parametrize("cluster", ["off"], indirect=True)
def test_a_running_cluster_is_moved_to_authentication_and_back(cluster: EmbeddedCluster) -> None:
    fences, lives = cluster.fences(), cluster.lives()
    with pytest.raises(InputError, match="'warn' on all nodes first"):
        cluster.configure("n1", "enforce")
    with client_of(cluster) as client:
        for policy in ("warn", "enforce", "warn", "off"):
            for node in NODES:
                cluster.configure(node, policy)
                for daemon in ("lrm", "crm"):
                    old = cluster.kill_daemon(node, daemon)
                    assert cluster.daemon(node, daemon) != old
                # What others have not signed yet is named meanwhile.
                cluster.wait(all_runs, PATIENCE, "all runs")
            wait_until_signed(cluster)
            status = cluster.wait(lambda status: not status["problems"], PATIENCE, "well")
            assert status["authentication"]["policy"] == policy
    assert client.longest < LONGEST
    assert (cluster.fences(), cluster.lives()) == (fences, lives)


@pytest.mark.parametrize("cluster", ["enforce"], indirect=True)
def test_a_node_with_another_key_fences_nobody(cluster: EmbeddedCluster) -> None:
    """It gets one of its own by mistake; the others recover what ran there."""
    status = cluster.wait_settled()
    node = next(name for name in NODES if name != status["manager"]["node"])
    own = cluster.folder / "another.key"
    own.write_text(keys_text([make_key()]))
    own.chmod(0o600)
    path = cluster.config(node)
    path.write_text(path.read_text().replace(str(cluster.key), str(own)))
    since = time.time()
    for daemon in ("crm", "lrm"):
        cluster.kill_daemon(node, daemon)
    others = [name for name in NODES if name != node]
    if cluster.status(others[0])["nodes"][node]["services"]:
        cluster.wait_failover(node, since)
    cluster.hold_still(10.0)
    fenced = {one["node"] for one in cluster.status(others[0])["failovers"] if one["fence_sent"]}
    assert not fenced & set(others)
