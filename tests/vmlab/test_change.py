# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook storage_change moves the cluster to another storage; services keep running."""

from __future__ import annotations

import time

from testbed.services import SERVICES, Client, mark

PAUSE = 20.0
"""The longest pause of a client, in seconds, on a busy host."""


def test_services_keep_running_while_the_cluster_moves_to_another_storage_and_back(
    cluster, observer, figures
):
    nodes = list(cluster.testbed.nodes.values())
    boots = [node.boot_id() for node in nodes]
    with Client("alpha") as client:
        for storage in (cluster.other_storage(), cluster.storage):
            begun = time.monotonic()
            done = cluster.play("storage_change", "-e", f"holdfast_storage={storage}")
            assert done.status == 0, done.output[-4000:]
            figures.add("move to another storage or back", time.monotonic() - begun)
            cluster.wait_healthy()
            for node in nodes:
                assert f":{storage}" in node.run("sanlock", "client", "status").stdout
    figures.add("move to another storage and back: longest pause of writes", client.longest)
    assert [len(observer.owners[mark(service)]) for service in SERVICES] == [1, 1]
    assert [node.boot_id() for node in nodes] == boots
    assert client.lost(cluster.testbed) == []
    assert client.longest < PAUSE
