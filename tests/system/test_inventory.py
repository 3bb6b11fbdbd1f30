# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The inventory of a running cluster: before and after the node that is asked loses its power."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml
from cluster import PATIENCE, EmbeddedCluster
from playing import ansible_environment


def inventory(cluster: EmbeddedCluster, folder: Path) -> dict[str, Any]:
    """Return what ansible-inventory makes of the cluster, asking n1 first."""
    source = folder / "holdfast.yml"
    library = str(cluster.folder / "lib" / "holdfast.pyz")
    command = [sys.executable, "-I", library, "status", "--json"]
    asked = {
        "nodes": ["n1", "n2", "n3"],
        "command": [*command, "--config", f"{cluster.nodes}/{{node}}/node.json"],
    }
    source.write_text(yaml.safe_dump({"plugin": "holdfast.ha.cluster", **asked}))
    found = subprocess.run(
        [sys.executable, "-m", "ansible.cli.inventory", "-i", str(source), "--list"],
        env=ansible_environment(folder, ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED="true"),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    said: dict[str, Any] = json.loads(found.stdout)
    return {
        name.removeprefix("holdfast_"): group["hosts"]
        for name, group in said.items()
        if "hosts" in group and name.startswith("holdfast_")
    }


def test_the_groups_follow_the_cluster_through_a_drain_and_a_power_cut(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    groups = inventory(cluster, tmp_path)
    status = cluster.status()
    assert groups["online"] == ["n1", "n2", "n3"]
    assert groups["manager"] == [status["manager"]["node"]]
    assert groups["runs_web"] == [status["services"]["web"]["node"]]
    assert not {"fenced", "stale", "maintenance"} & set(groups)

    cluster.maintenance("n2", "drained", on="n3")
    assert inventory(cluster, tmp_path)["maintenance"] == ["n2"]
    cluster.maintenance("n2", "active", on="n3")

    cluster.give_a_service("n1")
    since = cluster.status()["at"]
    agent = cluster.folder / "bin" / "fence_holdfast_machine"
    away = agent.with_name("away")
    # Without it nobody fences n1, nor switches it on again before we have looked.
    agent.rename(away)
    try:
        cluster.cut("n1")
        cluster.wait(lambda status: status["nodes"]["n1"]["state"] != "online", PATIENCE, "missed")
        # The node that is asked first is this very one.
        assert "n1" in inventory(cluster, tmp_path)["stale"]
    finally:
        away.rename(agent)
    cluster.wait_failover("n1", since, 120.0)
    cluster.wait_settled()
    assert inventory(cluster, tmp_path)["online"] == ["n1", "n2", "n3"]
