# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node tells Prometheus of itself, of its daemons, and, if it is to, of the cluster."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.maintenance import (  # noqa: E501
    Maintenance,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.rehearsal.report import (
    NodeReport,
    Rehearsal,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.telemetry import (
    Measured,
    Span,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.report import (
    exposition,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.report.exposition import (  # noqa: E501
    render_metrics,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.report.metrics import (
    LATE,
    Known,
    node_metrics,
    samples,
)
from ansible_collections.holdfast.ha.tests.unit.node.sample_node import configuration
from ansible_collections.holdfast.ha.tests.unit.node.sample_status import (
    AT,
    after_failover,
    disarmed,
    healthy,
    in_trouble,
    on_hold,
)

parser = pytest.importorskip(
    "prometheus_client.parser", reason="prometheus_client is not installed"
)

LRM = Measured(
    99.0,
    {("lease_renewed_at", ()): 98.0, ("lease_fail_seconds", ()): 16.0, ("workers_busy", ()): 2.0},
    {
        ("heartbeat_write", ()): Span(10, 0.5, 0.04),
        ("job", (("kind", "start"), ("outcome", "ok"))): Span(3, 6.0, 2.0),
    },
)
CRM = Measured(
    98.0,
    {("fences_under_way", ()): 1.0, ("rounds_thrown_away", ()): 4.0},
    {
        ("fence", (("node", "n2"), ("result", "failed"))): Span(2, 41.0, 20.5),
        ("fence", (("node", "n2"), ("result", "confirmed"))): Span(1, 1.5, 1.5),
        ("round", ()): Span(100, 2.0, 0.02),
    },
)
MACHINE = Measured(99.5, {}, {("lease_renewal", ()): Span(50, 1.0, 0.02)})
REHEARSALS = {
    "n2": NodeReport(
        (
            Rehearsal(AT - 60, "asked", "fails", ("no answer",)),
            Rehearsal(AT - 90, "asked", "works", ()),
            Rehearsal(AT - 900, "switched", "works", ()),
        )
    ),
    "n3": NodeReport(),
}


def known(status, node="n1", now=100.0, **measured):
    daemons = {"lrm": LRM, "crm": CRM, "machine": MACHINE, **measured}
    return Known(node, status, daemons, REHEARSALS, now, AT)


def text(found, **more):
    rows = samples(found, **more)
    return render_metrics(exposition.PREFIX, exposition.CATALOGUE, rows, {"cluster": "demo"})


def read(found, **more):
    """Return each number by its name and the values of its labels, the cluster's aside."""
    numbers = {}
    for family in parser.text_string_to_metric_families(text(found, **more)):
        assert family.documentation and family.type in ("gauge", "counter", "summary")
        for sample in family.samples:
            labels = dict(sample.labels)
            assert labels.pop("cluster") == "demo"
            key = (sample.name.removeprefix("holdfast_"), *labels.values())
            assert key not in numbers, "each series stands once"
            numbers[key] = sample.value
    return numbers


def test_a_healthy_cluster_tells_that_it_is():
    told = read(known(healthy()))
    assert told[("problems",)] == 0
    assert told[("manager_lease_held",)] == 1
    assert told[("is_manager",)] == 1
    assert told[("node_state", "n2", "online")] == 1
    assert told[("node_state", "n2", "off")] == 0
    assert told[("services", "started")] == 3
    assert told[("service_as_wanted", "vm:100")] == 1
    assert told[("service_info", "vm:100", "n2", "started", "started")] == 1
    assert told[("global_maintenance",)] == 0
    assert told[("failovers_under_way",)] == 0


def test_a_lease_that_was_measured_a_moment_ago_is_as_old_as_it_was_then():
    told = read(known(healthy(), now=103.0))
    assert told[("lease_age_seconds",)] == 1.0
    assert told[("lease_margin_seconds",)] == 15.0


def test_the_lease_of_an_lrm_that_hangs_is_as_old_as_it_is_now():
    told = read(known(healthy(), now=106.5))
    assert told[("lease_age_seconds",)] == 8.5
    assert told[("lease_margin_seconds",)] == 7.5


def test_a_daemon_that_hangs_is_down_and_its_lease_grows_old():
    told = read(known(healthy(), now=99.0 + LATE + 1))
    assert told[("daemon_up", "lrm")] == 0
    assert told[("lease_margin_seconds",)] < 0
    gone = read(known(healthy(), crm=None))
    assert gone[("daemon_up", "crm")] == 0
    assert gone[("daemon_up", "lrm")] == 1
    assert ("fences_under_way",) not in gone


def test_fences_are_told_by_node_and_result():
    told = read(known(healthy()))
    assert told[("fence_attempts_total", "n2", "failed")] == 2
    assert told[("fence_seconds_sum", "n2", "failed")] == 41.0
    assert told[("fence_attempts_total", "n2", "confirmed")] == 1
    assert told[("fences_under_way",)] == 1


def test_a_first_failed_fence_is_an_increase_as_none_is_told_before():
    told = read(known(healthy()))
    assert told[("fence_attempts_total", "n1", "failed")] == 0
    assert told[("fence_attempts_total", "n3", "confirmed")] == 0
    assert ("fence_attempts_total", "n1", "failed") not in read(known(healthy(), crm=None))
    other = read(known(healthy(), node="n2"))
    assert ("fence_attempts_total", "n1", "failed") not in other
    assert other[("fence_attempts_total", "n2", "failed")] == 2


def test_what_the_daemons_measured_is_told():
    told = read(known(healthy()))
    assert told[("worker_queue_services",)] == 2
    assert told[("worker_job_seconds_count", "start", "ok")] == 3
    assert told[("heartbeat_write_seconds_sum",)] == 0.5
    assert told[("lease_renewal_last_seconds",)] == 0.02
    assert told[("crm_rounds_thrown_away_total",)] == 4


def test_rehearsals_are_told_by_the_newest_of_each_manner():
    told = read(known(healthy()))
    assert told[("fence_rehearsal_timestamp_seconds", "n2", "asked")] == AT - 60
    assert told[("fence_rehearsal_timestamp_seconds", "n2", "switched")] == AT - 900
    assert told[("fence_rehearsal_works", "n2")] == 0
    assert ("fence_rehearsal_works", "n3") not in told


def test_nodes_that_were_never_rehearsed_are_told_as_such_by_who_tells_the_cluster():
    told = read(known(healthy()))
    for node in ("n1", "n3"):
        assert told[("fence_rehearsal_timestamp_seconds", node)] == 0
    other = read(known(healthy(), node="n2"))
    assert ("fence_rehearsal_timestamp_seconds", "n1") not in other
    assert other[("fence_rehearsal_timestamp_seconds", "n2", "asked")] == AT - 60


def test_a_failover_is_told_with_its_phases():
    told = read(known(after_failover()))
    assert told[("failover_last_duration_seconds", "n2", "detect")] == pytest.approx(3.21)
    assert told[("failover_last_duration_seconds", "n2", "fence")] == pytest.approx(1.64)
    assert told[("failover_last_duration_seconds", "n2", "start")] == pytest.approx(1.6)
    assert told[("failover_last_duration_seconds", "n2", "total")] == pytest.approx(6.45)
    assert told[("failover_last_services", "n2")] == 2
    assert told[("node_host_lease", "n2", "free")] == 1


def test_trouble_is_told():
    told = read(known(in_trouble()))
    assert told[("problems",)] == len(in_trouble()["problems"]) > 0
    assert told[("node_state", "n2", "fence")] == 1
    assert told[("service_as_wanted", "mail")] == 0
    assert told[("service_as_wanted", "old")] == 1
    assert told[("node_maintenance", "n3")] == 1
    assert told[("failovers_under_way",)] == 1


def test_maintenance_is_told_with_its_expiry():
    told = read(known(on_hold(Maintenance("work", "ada", AT - 5, AT + 3600))))
    assert told[("global_maintenance",)] == 1
    assert told[("global_maintenance_until_timestamp_seconds",)] == AT + 3600


def test_a_disarmed_cluster_is_told_beside_its_services_that_are_left_alone():
    told = read(known(disarmed()))
    assert told[("disarmed",)] == 1
    assert told[("service_as_wanted", "web")] == 0
    assert read(known(healthy()))[("disarmed",)] == 0


def test_the_cluster_is_told_by_the_manager_alone():
    other = read(known(healthy(), node="n2"))
    assert other[("is_manager",)] == 0
    assert ("problems",) not in other
    assert ("problems",) in read(known(healthy(), node="n2"), whole_cluster=True)


def test_the_cluster_is_told_by_each_while_there_is_no_manager():
    status = healthy()
    status["manager"]["active"] = False
    told = read(known(status, node="n2"))
    assert told[("manager_lease_held",)] == 0
    assert ("node_state", "n1", "online") in told


def test_a_manager_lease_of_which_nobody_can_tell_is_not_told():
    status = healthy()
    status["manager"]["active"] = None
    assert ("manager_lease_held",) not in read(known(status, node="n2"))


def test_a_storage_that_cannot_be_read_is_told_with_what_is_known_without_it(tmp_path):
    node = configuration(tmp_path)
    found = {
        sample.name: sample.value
        for family in parser.text_string_to_metric_families(node_metrics(node, tmp_path / "none"))
        for sample in family.samples
    }
    assert found["holdfast_status_readable"] == 0
    assert "holdfast_daemon_up" in found
    assert "holdfast_problems" not in found


def test_a_report_that_is_none_does_not_keep_the_rest_from_being_told(tmp_path):
    (tmp_path / "report.json").write_text("{")
    assert "holdfast_build_info" in node_metrics(configuration(tmp_path), tmp_path / "report.json")


def test_names_keep_to_what_prometheus_asks_for():
    for metric in exposition.CATALOGUE:
        assert re.fullmatch("[a-z][a-z0-9_]*", metric.name)
        assert metric.help.endswith(".")
        assert (metric.kind.value == "counter") is metric.name.endswith("_total")
    names = [metric.name for metric in exposition.CATALOGUE]
    assert len(set(names)) == len(names)


def test_the_documentation_has_each_metric_with_its_help():
    text = (Path(__file__).resolve().parents[3] / "docs" / "metrics.md").read_text()
    for metric in exposition.CATALOGUE:
        row = f"| `{exposition.PREFIX}{metric.name}` | {metric.kind.value} | {metric.help} |"
        assert text.count(row) == 1


def test_promtool_has_nothing_against_it():
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed")
    for status in (healthy(), after_failover(), in_trouble()):
        checked = subprocess.run(
            [promtool, "check", "metrics"],
            input=text(known(status)),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert checked.returncode == 0, checked.stdout + checked.stderr
