# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A compromised service gets no further than its own process, whatever it says or tries."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.tests.system.security import hostile_service
from cluster import NODES, PATIENCE, EmbeddedCluster

FLOOD = 32 * 1024 * 1024
"""Bytes that each monitor prints to its output, and as many to its errors."""

MOST_MEMORY = 128 * 1024
"""KiB of memory that a daemon may have at most: it must not keep all that agents print."""

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can run a service as another")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that every user can look into, unlike pytest's own."""
    made = Path(tempfile.mkdtemp(prefix="hf-service-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


@pytest.fixture
def cluster(folder: Path) -> Iterator[EmbeddedCluster]:
    home = folder / "cluster"
    with EmbeddedCluster(home, authentication="enforce") as cluster:
        cluster.declare("other", cluster.witness("other"))
        cluster.wait_settled()
        yield cluster
        assert not cluster.violations(), cluster.show_ledgers()


def install(cluster: EmbeddedCluster, done: Path) -> None:
    """Install the agent of the service, and make the file for what it could do."""
    done.touch()
    done.chmod(0o666)
    agent = cluster.folder / "ocf" / "resource.d" / "test" / "hostile"
    agent.parent.mkdir()
    text = hostile_service.AGENT.format(
        python=sys.executable,
        program=hostile_service.__file__,
        folder=cluster.folder,
        done=done,
        flood=FLOOD,
        words=hostile_service.WORDS.format(folder=cluster.folder),
    )
    agent.write_text(text)
    agent.chmod(0o755)


def memory(pid: int) -> int:
    """Return the KiB of memory that a process has had at most."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")))


def test_a_compromised_service_reaches_nothing_and_holds_nothing_up(
    cluster: EmbeddedCluster, folder: Path
) -> None:
    before, done = cluster.status(), folder / "done"
    install(cluster, done)
    resource = {"name": "r0", "agent": "ocf:test:hostile", "monitor_interval": 1.0}
    cluster.declare_resources("hostile", [resource], max_restart=0)
    cluster.wait(
        lambda _: done.read_text().count("tried everything") > 2, PATIENCE, "the service tried"
    )
    lines = set(done.read_text().splitlines()) - {"begun", "tried everything"}
    assert not lines

    # It fails, with what it says as the reason.
    (cluster.folder / "fail").touch()
    cluster.wait(
        lambda one: "lookup" in str(one["events"]) or "lookup" in str(one["services"]),
        PATIENCE,
        "the failure is known",
    )
    for words in (["status"], ["why", "hostile"], ["history"]):
        said = cluster.holdfast(*words).stdout
        assert not [one for one in said if not one.isprintable() and one not in "\n"]
    assert not (cluster.folder / "owned").exists()

    after = cluster.status()
    assert after["manager"] == before["manager"]
    assert after["services"]["other"]["since"] == before["services"]["other"]["since"]
    assert not cluster.fences()
    for node in NODES:
        for daemon in ("lrm", "crm"):
            assert memory(cluster.daemon(node, daemon)) < MOST_MEMORY
