# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rulebook on a running cluster: ansible-rulebook tells of a fence and of the recovery."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cluster import NODES, EmbeddedCluster
from playing import ansible_environment


def program() -> str:
    """Return ansible-rulebook, beside the Python that runs this or on the path."""
    beside = Path(sys.executable).parent / "ansible-rulebook"
    found = str(beside) if beside.exists() else shutil.which("ansible-rulebook")
    if found is None:
        pytest.skip("ansible-rulebook is not installed")
    if shutil.which("java") is None:
        pytest.skip("java, which ansible-rulebook needs, is not installed")
    return found


def test_the_rulebook_tells_of_a_fence_and_of_the_recovery(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    rulebook = program()
    (tmp_path / "hosts.yml").write_text("all: {hosts: {localhost: {ansible_connection: local}}}\n")
    (tmp_path / "holdfast").write_text(
        "#!/bin/sh\nnode=$1\nshift\n"
        f"export HOLDFAST_CONFIG='{cluster.nodes}'/$node/node.json\n"
        f"exec '{sys.executable}' -I '{cluster.folder}/lib/holdfast.pyz' \"$@\"\n"
    )
    (tmp_path / "holdfast").chmod(0o755)
    settings = {
        "holdfast_nodes": list(NODES),
        "holdfast_command": [str(tmp_path / "holdfast"), "{node}"],
        "holdfast_delay": 0.5,
        "holdfast_expected": str(tmp_path / "expected.yml"),
    }
    (tmp_path / "expected.yml").write_text("holdfast_services:\n- name: expected\n")
    (tmp_path / "settings.yml").write_text(json.dumps(settings))
    said = tmp_path / "said"
    programs = [str(Path(sys.executable).parent), str(Path(rulebook).parent), os.environ["PATH"]]
    with said.open("wb") as output:
        running = subprocess.Popen(
            [
                *(rulebook, "--rulebook", "holdfast.ha.cluster"),
                *("--inventory", "hosts.yml", "--vars", "settings.yml", "--print-events"),
            ],
            env=ansible_environment(tmp_path, HOME=str(tmp_path), PATH=os.pathsep.join(programs)),
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        wait_for(said, "rehearsal_overdue", running)
        wait_for(said, "expected of holdfast_services is declared nowhere in the cluster", running)
        node = next(one for one in NODES if one != cluster.status()["manager"]["node"])
        cluster.give_a_service(node)
        cluster.cut(node)
        wait_for(said, "node_fenced", running)
        wait_for(said, "failover_finished", running)
        wait_for(said, f"Failover of {node}: no heartbeat for", running)
    finally:
        os.killpg(running.pid, signal.SIGTERM)
        try:
            running.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
            running.wait(20)
    cluster.wait_settled()


def wait_for(said: Path, what: str, running: subprocess.Popen[bytes]) -> None:
    """Return once *what* is among all that was said."""
    until = time.monotonic() + 120.0
    while True:
        text = said.read_text(encoding="utf-8", errors="replace")
        if what in text:
            return
        assert running.poll() is None and time.monotonic() < until, text[-4000:]
        time.sleep(0.2)
