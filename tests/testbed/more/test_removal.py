# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Removal leaves nothing of a deployment, but is refused while a service runs."""

from __future__ import annotations

from testbed.deployment import METRICS
from testbed.node import wait_until
from testbed.services import SERVICES

UNITS = "/etc/systemd/system"
NEEDRESTART = "/etc/needrestart/conf.d/holdfast.conf"
TRACES = (
    *("/etc/holdfast", "/etc/sanlock", NEEDRESTART),
    *("/usr/lib/holdfast.pyz", "/usr/lib/holdfast.pyzc", "/usr/sbin/holdfast", "/var/lib/holdfast"),
    METRICS,
    *(f"{UNITS}/holdfast-{name}.service" for name in ("leave", "lrm", "crm", "metrics")),
    *(f"{UNITS}/sanlock.service.d/holdfast.conf", f"{UNITS}/wdmd.service.d"),
    *("/usr/lib/ocf/resource.d/holdfast", "/usr/sbin/fence_holdfast_machine"),
)
"""The files of the roles on a node.  The testbed has a drop-in of its own for sanlock, and no node
has needrestart."""

DROP_IN = f"{UNITS}/holdfast-leave.service.d"


def traces(node):
    return [path for path in TRACES if node.run("test", "-e", path, check=False).returncode == 0]


def test_removal_is_refused_while_services_run_and_leaves_nothing_when_they_do_not(cluster):
    nodes = list(cluster.testbed.nodes.values())
    refused = cluster.play("remove")
    assert refused.status != 0
    assert "still runs" in refused.output
    assert all(node.unit_state("holdfast-lrm") == "active" for node in nodes)
    cluster.module("rule", {"name": "sides", "state": "absent"})
    for service in SERVICES[1:]:
        cluster.remove(service)
    ignored = {"name": SERVICES[0], "ignored": True}
    cluster.module("service", ignored)
    refused = cluster.play("remove")
    assert refused.status != 0
    assert f"ran {SERVICES[0]} when it became unmanaged" in refused.output
    cluster.module("service", {**ignored, "ignored": False})
    wait_until(lambda: cluster.node_of(SERVICES[0]), 60.0, "the service to be found")
    cluster.remove(SERVICES[0])
    checked = cluster.play("remove", "--check", "-e", "holdfast_remove_storage=true")
    assert checked.status == 0, checked.output[-3000:]
    assert all({*traces(node), NEEDRESTART} == {*TRACES} for node in nodes)
    # On one node the unit does not leave at its end.
    nodes[0].run("mkdir", "-p", DROP_IN)
    nodes[0].run("sh", "-c", f"printf '[Service]\\nExecStop=\\n' >{DROP_IN}/stays.conf")
    nodes[0].run("systemctl", "daemon-reload")
    done = cluster.play("remove", "-e", "holdfast_remove_storage=true")
    assert done.status == 0, done.output[-3000:]
    assert {name: count > 0 for name, count in checked.changed.items()} == {
        name: count > 0 for name, count in done.changed.items()
    }
    assert {node.name: traces(node) for node in nodes} == {node.name: [] for node in nodes}
    drop_ins = nodes[1].run("systemctl", "show", "--property=DropInPaths", "sanlock.service").stdout
    assert "holdfast.conf" not in drop_ins, "systemd has forgotten it"
    nodes[0].run("rm", "-r", DROP_IN)
    again = cluster.play("remove")
    assert (again.status, set(again.changed.values())) == (0, {0}), again.output[-3000:]
    assert cluster.play("deploy").status == 0, "and it can be deployed again"
