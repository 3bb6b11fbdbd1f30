# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""One playbook run makes a cluster of installed machines; a second run changes nothing."""

from __future__ import annotations

import pytest
from testbed.deployment import METRICS
from testbed.node import wait_until

SECRET = "secret-of-board"


def test_check_mode_shows_what_the_first_run_changes(deployment):
    if deployment.testbed.reused:
        pytest.skip("the testbed that is up was deployed before")
    checked, done = deployment.first_check, deployment.first_run
    assert checked.status == done.status == 0
    assert SECRET not in checked.output + done.output
    assert set(checked.changed) == set(done.changed) == set(deployment.testbed.nodes)
    assert all(count > 0 for count in checked.changed.values())
    # Check mode counts a file in a missing folder together with the folder.
    assert {name: done.changed[name] - checked.changed[name] for name in done.changed} == {
        name: 1 if name == "n1" else 0 for name in done.changed
    }


def test_a_second_run_changes_nothing(deployment):
    unchanged = dict.fromkeys(deployment.testbed.nodes, 0)
    done = deployment.play("deploy")
    assert (done.status, done.changed) == (0, unchanged), done.output[-3000:]
    assert SECRET not in done.output


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


def test_only_root_can_read_the_secrets_of_fence_devices_and_no_log_has_them(deployment):
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
