# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keep the files of a real cluster of this version, which every later version has to read.

Three nodes run, declare services and rules, drain a node, and lose one.  Then they are switched
off, and their files are packed into ``tests/kept/VERSION.tar.gz``, beside ``VERSION.json`` with
what they mean.  To be run once for each version that is released: a set is never made again.

Use: tests/kept/record.py
"""

from __future__ import annotations

import json
import shutil
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.configuration_file import (  # noqa: E402
    load,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.operations.export import (  # noqa: E402, E501
    back_up,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.version import (  # noqa: E402
    VERSION,
)
from cluster import EmbeddedCluster  # noqa: E402
from meaning import meaning  # noqa: E402

BACKUP = "backup.json"


def live(cluster: EmbeddedCluster) -> None:
    """Let the cluster have something in each of its records."""
    for name in ("web", "mail", "data"):
        cluster.declare(name, "sleep 1000", "sleep 1001", priority=len(name))
    cluster.declare_rule("apart", ["web", "mail"], affinity="apart")
    cluster.policy(rebalance_on_start=True)
    cluster.wait_settled()
    cluster.maintenance("n3", "drained", reason="a new disk", owner="who keeps the files")
    status = cluster.wait_settled()
    lost = next(one for one in ("n1", "n2") if one != status["manager"]["node"])
    since = time.time()
    cluster.cut(lost)
    cluster.wait_failover(lost, since)


def pack(cluster: EmbeddedCluster, target: Path) -> None:
    """Pack the storage and the nodes' own files, with what is zero left to the packer."""
    with tarfile.open(target, "w:gz") as archive:
        for path in sorted((cluster.folder / "storage").iterdir()):
            archive.add(path, f"storage/{path.name}")
        for path in sorted(cluster.nodes.glob("*/node.json")):
            archive.add(path, f"nodes/{path.parent.name}/node.json")
        archive.add(load(cluster.config("n1")).fence_configuration, "fence.json")
        archive.add(cluster.key, "cluster.key")
        archive.add(cluster.folder / BACKUP, BACKUP)


def main() -> int:
    """Run the cluster, and write the two files; refuse to replace those of a version."""
    archive = HERE / f"{VERSION}.tar.gz"
    if archive.exists():
        sys.stderr.write(f"{archive} is kept already.\n")
        return 1
    folder = Path(tempfile.mkdtemp(prefix="holdfast."))
    try:
        with EmbeddedCluster(folder, authentication="enforce") as cluster:
            live(cluster)
            options: dict[str, Any] = {
                "config": str(cluster.config("n1")),
                "path": str(folder / BACKUP),
            }
            back_up(options, False)
        pack(cluster, archive)
        found = meaning(cluster.folder)
        text = json.dumps(found, indent=1, sort_keys=True)
        archive.with_name(f"{VERSION}.json").write_text(text + "\n", encoding="utf-8")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
