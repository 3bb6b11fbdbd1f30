# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""One playbook run makes a cluster of installed machines, a second one changes nothing."""

from __future__ import annotations

import pytest
from testbed.deployment import METRICS
from testbed.node import wait_until

SECRET = "secret-of-board"


def test_check_mode_said_before_what_the_first_run_then_did(deployment):
    if deployment.testbed.stood_before:
        pytest.skip("the testbed that is up was deployed before")
    said, done = deployment.first_check, deployment.first_run
    assert said.status == done.status == 0
    assert SECRET not in said.said + done.said
    assert set(said.changed) == set(done.changed) == set(deployment.testbed.nodes)
    assert all(count > 0 for count in said.changed.values())
    # What is created in a folder that is not there yet is told as one.
    assert {name: done.changed[name] - said.changed[name] for name in done.changed} == {
        name: 1 if name == "n1" else 0 for name in done.changed
    }


def test_a_second_run_changes_nothing(deployment):
    nothing = dict.fromkeys(deployment.testbed.nodes, 0)
    done = deployment.play("deploy")
    assert (done.status, done.changed) == (0, nothing), done.said[-3000:]
    assert SECRET not in done.said


def test_the_daemons_are_units_that_start_at_boot(deployment):
    for node in deployment.testbed.nodes.values():
        for unit in ("holdfast-lrm", "holdfast-crm", "sanlock", "wdmd"):
            assert node.unit_state(unit) == "active"
            assert node.run("systemctl", "is-enabled", unit).stdout.strip() == "enabled"


def test_each_node_writes_its_metrics_for_the_node_exporter(deployment):
    for node in deployment.testbed.nodes.values():
        assert node.unit_state("holdfast-metrics") == "active"
        written = wait_until(
            lambda node=node: node.run("cat", METRICS, check=False).stdout, 30.0, "metrics"
        )
        assert 'holdfast_status_readable{cluster="' in written
        assert "holdfast_lease_margin_seconds" in written


def test_the_secrets_of_fence_devices_are_read_by_root_alone_and_shown_nowhere(deployment):
    for node in deployment.testbed.nodes.values():
        mode = node.run("stat", "-c", "%a %U", "/etc/holdfast/fence.json").stdout.split()
        assert mode == ["600", "root"]
        assert SECRET in node.run("cat", "/etc/holdfast/fence.json").stdout
        assert SECRET not in node.journal()
        assert SECRET not in node.run("systemctl", "cat", "holdfast-lrm", "holdfast-crm").stdout


def test_messages_are_found_in_the_journal_by_service_and_command(cluster):
    node = cluster.node_of("alpha")
    found = node.run(
        *("journalctl", "--no-pager", "-o", "json", "HOLDFAST_SERVICE=alpha"),
        *("SYSLOG_IDENTIFIER=holdfast-lrm", "--output-fields=HOLDFAST_UID,HOLDFAST_EPOCH"),
    ).stdout
    assert '"HOLDFAST_UID"' in found
    assert '"HOLDFAST_EPOCH"' in found
