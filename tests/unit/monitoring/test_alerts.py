# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The alert rules and the dashboard: they name metrics that there are, load, and fire in time."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.report import (
    exposition,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.report.exposition import (  # noqa: E501
    Kind,
)

MONITORING = Path(__file__).resolve().parents[3] / "extensions" / "monitoring"
ALERTS = MONITORING / "alerts.yml"
COLUMNS = 24
"""How wide a dashboard of Grafana is."""


def rules():
    (group,) = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"]
    return group["rules"]


def dashboard():
    return json.loads((MONITORING / "grafana-dashboard.json").read_text(encoding="utf-8"))


def queries():
    """Return what the dashboard asks, with its variables set."""
    board = dashboard()
    asked = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    asked += [one["expr"] for one in board["annotations"]["list"]]
    return [one.replace("$__rate_interval", "5m").replace("$cluster", "demo") for one in asked]


def series():
    """Return the name of every series that there can be."""
    found = set()
    for metric in exposition.CATALOGUE:
        ends = ("_sum", "_count") if metric.kind is Kind.SUMMARY else ("",)
        found.update(f"{exposition.PREFIX}{metric.name}{end}" for end in ends)
    return found


def promtool(*words):
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("promtool is not installed")
    return subprocess.run(
        [program, *map(str, words)], capture_output=True, text=True, timeout=120, check=False
    )


def test_alerts_and_dashboard_name_metrics_that_there_are():
    asked = [*queries(), *(rule["expr"] for rule in rules())]
    named = {name for text in asked for name in re.findall(r"\bholdfast_[a-z_]+", text)}
    assert len(named) > 20
    assert named <= series()


def test_each_alert_says_what_is_wrong_and_how_bad_it_is():
    for rule in rules():
        assert rule["alert"].startswith("Holdfast")
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert set(rule["annotations"]) == {"summary", "description", "runbook_url"}


def test_each_alert_links_to_its_section_of_the_documentation():
    root = MONITORING.parents[1]
    repository = yaml.safe_load((root / "galaxy.yml").read_text(encoding="utf-8"))["repository"]
    text = (root / "docs" / "troubleshoot.md").read_text(encoding="utf-8")
    headings = re.findall(r"^### (.+)$", text, re.MULTILINE)
    assert headings == [rule["alert"] for rule in rules()]
    for rule in rules():
        page, anchor = rule["annotations"]["runbook_url"].split("#")
        assert page == f"{repository}/blob/main/docs/troubleshoot.md"
        assert anchor == rule["alert"].lower()


def test_the_panels_of_the_dashboard_lie_side_by_side():
    panels = dashboard()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken = set()
    for panel in panels:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= COLUMNS
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells


def test_the_dashboard_asks_only_for_the_cluster_that_was_chosen():
    board = dashboard()
    assert [one["name"] for one in board["templating"]["list"]] == ["datasource", "cluster"]
    for query in queries():
        for selected in re.findall(r"holdfast_[a-z_]+(\{[^}]*\})?", query):
            assert 'cluster="demo"' in selected


def test_prometheus_takes_the_alerts():
    checked = promtool("check", "rules", ALERTS)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_prometheus_takes_what_the_dashboard_asks(tmp_path):
    recorded = [{"record": f"t:q{at}", "expr": query} for at, query in enumerate(queries())]
    path = tmp_path / "rules.yml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": recorded}]}))
    checked = promtool("check", "rules", path)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def of(name, *instances, **labels):
    """Return the name of a series of cluster c as it is told by each of *instances*."""
    more = "".join(f',{key}="{value}"' for key, value in labels.items())
    return [f'holdfast_{name}{{cluster="c",instance="{one}"{more}}}' for one in instances]


def told(values, name, *instances, **labels):
    """Return that each of *instances* tells these values."""
    return dict.fromkeys(of(name, *instances, **labels), values)


NOW = "0+15x40"
"""A time that goes along with the clock of promtool, which begins at 0."""

LONG_AGO = "-3000000x40"
"""More than 30 days before the begin."""

FIRING = {
    "HoldfastNoManager": {
        # A node that wrote nothing for long does not count with what it said.
        **told("0x40", "manager_lease_held", "n1"),
        **told(NOW, "metrics_written_timestamp_seconds", "n1"),
        **told("1x40", "manager_lease_held", "n2"),
        **told("0x40", "metrics_written_timestamp_seconds", "n2"),
    },
    "HoldfastManagerUnknown": {
        **told("1x40", "status_readable", "n2"),
        # What the dead manager's node wrote last does not count.
        **told("1x40", "manager_lease_held", "n1"),
        **told("0x40", "metrics_written_timestamp_seconds", "n1"),
        **told(NOW, "metrics_written_timestamp_seconds", "n2"),
    },
    "HoldfastSilent": told("1x4 stale", "build_info", "n1", "n2", version="1"),
    "HoldfastStorageUnreadable": {'holdfast_status_readable{cluster="c"}': "0x40"},
    "HoldfastLeaseMarginSmall": {
        'holdfast_lease_margin_seconds{cluster="c"}': "5x40",
        'holdfast_lease_age_seconds{cluster="c"}': "11x40",
    },
    "HoldfastLeaseRenewalSlow": {
        'holdfast_heartbeat_write_seconds_sum{cluster="c"}': "0+12x40",
        'holdfast_heartbeat_write_seconds_count{cluster="c"}': "0+15x40",
    },
    "HoldfastDaemonGone": {'holdfast_daemon_up{cluster="c",daemon="lrm"}': "0x40"},
    "HoldfastNodeFenced": {'holdfast_node_state{cluster="c",node="n2",state="off"}': "1x40"},
    "HoldfastErrors": {
        'holdfast_condition{cluster="c",condition="node_not_online",severity="error"}': "1x40"
    },
    "HoldfastWarnings": {
        'holdfast_condition{cluster="c",condition="drain_blocked",severity="warning"}': "1x80"
    },
    "HoldfastFenceUnproved": {'holdfast_node_state{cluster="c",node="n2",state="fence"}': "1x40"},
    "HoldfastFenceFailed": told(
        "0x8 1x40", "fence_attempts_total", "n1", node="n2", result="failed"
    ),
    "HoldfastServiceNotAsWanted": {
        'holdfast_service_as_wanted{cluster="c",instance="n1",service="web"}': "0x40",
        'holdfast_disarmed{cluster="c",instance="n1"}': "0x40",
    },
    "HoldfastFailoverSlow": {
        # It was over half an hour ago.
        **told("7200x40", "failover_last_duration_seconds", "n1", node="n2", phase="total"),
        **told("-9000x40", "failover_last_timestamp_seconds", "n1", node="n2"),
    },
    "HoldfastRehearsalOverdue": {
        **told("100x40", "node_score", "n3", node="n2"),
        **told(LONG_AGO, "fence_rehearsal_timestamp_seconds", "n1", node="n2", manner="asked"),
        **told(LONG_AGO, "fence_rehearsal_timestamp_seconds", "n1", node="n2", manner="switched"),
        **told(LONG_AGO, "fence_rehearsal_timestamp_seconds", "n3", node="n2", manner="asked"),
    },
    "HoldfastRehearsalFails": {
        **told("100x40", "node_score", "n3", node="n2"),
        **told("0x40", "fence_rehearsal_works", "n1", node="n2"),
        **told("-600x40", "fence_rehearsal_timestamp_seconds", "n1", node="n2", manner="asked"),
        **told("1x40", "fence_rehearsal_works", "n3", node="n2"),
        **told("-700x40", "fence_rehearsal_timestamp_seconds", "n3", node="n2", manner="asked"),
    },
    "HoldfastMaintenanceForgotten": {'holdfast_global_maintenance{cluster="c"}': "1x1300"},
    "HoldfastDisarmForgotten": {'holdfast_disarmed{cluster="c"}': "1x1300"},
    "HoldfastNodeRecordDamaged": {'holdfast_node_record_damaged{cluster="c",node="n2"}': "1x40"},
    "HoldfastMetricsStale": {'holdfast_metrics_written_timestamp_seconds{cluster="c"}': "0x40"},
    "HoldfastAllMetricsStale": {
        **told("0x40", "metrics_written_timestamp_seconds", "n1", "n2"),
        # What they wrote last says that the cluster is healthy.
        **told("1x40", "status_readable", "n1", "n2"),
    },
}
"""What makes an alert fire within ten minutes; the values are of every 15 seconds."""

AFTER = {
    "HoldfastMaintenanceForgotten": "5h",
    "HoldfastDisarmForgotten": "5h",
    "HoldfastWarnings": "18m",
}
"""When it is looked, where ten minutes are not enough."""

QUIET = {
    "HoldfastNoManager": {
        **told("1x40", "manager_lease_held", "n1"),
        **told(NOW, "metrics_written_timestamp_seconds", "n1", "n2"),
        **told("0x40", "manager_lease_held", "n2"),
    },
    "HoldfastManagerUnknown": {
        **told("1x40", "status_readable", "n1", "n2"),
        **told("1x40", "manager_lease_held", "n1"),
        **told(NOW, "metrics_written_timestamp_seconds", "n1", "n2"),
    },
    "HoldfastSilent": {
        **told("1x4 stale", "build_info", "n1", version="1"),
        **told("1x40", "build_info", "n2", version="1"),
    },
    "HoldfastFailoverSlow": {
        **told("75x40", "failover_last_duration_seconds", "n1", node="n2", phase="total"),
        **told("-4000x40", "failover_last_timestamp_seconds", "n1", node="n2"),
    },
    "HoldfastRehearsalOverdue": {
        **told("100x40", "node_score", "n3", node="n2"),
        **told(LONG_AGO, "fence_rehearsal_timestamp_seconds", "n1", node="n2", manner="asked"),
        **told("-600x40", "fence_rehearsal_timestamp_seconds", "n3", node="n2", manner="asked"),
    },
    "HoldfastRehearsalFails": {
        **told("100x40", "node_score", "n3", node="n2"),
        **told("0x40", "fence_rehearsal_works", "n1", node="n2"),
        **told("-700x40", "fence_rehearsal_timestamp_seconds", "n1", node="n2", manner="asked"),
        **told("1x40", "fence_rehearsal_works", "n3", node="n2"),
        **told("-600x40", "fence_rehearsal_timestamp_seconds", "n3", node="n2", manner="asked"),
    },
    "HoldfastLeaseMarginSmall": {
        'holdfast_lease_margin_seconds{cluster="c"}': "14x40",
        'holdfast_lease_age_seconds{cluster="c"}': "2x40",
    },
    "HoldfastLeaseRenewalSlow": {
        'holdfast_heartbeat_write_seconds_sum{cluster="c"}': "0+0.2x40",
        'holdfast_heartbeat_write_seconds_count{cluster="c"}': "0+15x40",
    },
    "HoldfastFenceFailed": {
        **told("0x8 1x40", "fence_attempts_total", "n1", node="n2", result="confirmed"),
        **told("0x40", "fence_attempts_total", "n1", node="n2", result="failed"),
    },
    "HoldfastServiceNotAsWanted": {
        'holdfast_service_as_wanted{cluster="c",instance="n1",service="web"}': "0x40",
        'holdfast_disarmed{cluster="c",instance="n1"}': "1x40",
    },
    "HoldfastDisarmForgotten": {'holdfast_disarmed{cluster="c"}': "1x600 0x700"},
    "HoldfastNodeFenced": {'holdfast_node_state{cluster="c",node="n2",state="off"}': "0x40"},
    "HoldfastErrors": {
        'holdfast_condition{cluster="c",condition="node_not_online",severity="error"}': "1 1 1 0x37"
    },
    "HoldfastWarnings": {
        'holdfast_condition{cluster="c",condition="failover",severity="warning"}': "1x40 0x40"
    },
    "HoldfastMetricsStale": {'holdfast_metrics_written_timestamp_seconds{cluster="c"}': "0+15x40"},
    "HoldfastAllMetricsStale": {
        **told("0x40", "metrics_written_timestamp_seconds", "n1"),
        **told(NOW, "metrics_written_timestamp_seconds", "n2"),
    },
}


def fired(tmp_path, alert, values, after=None):
    """Return whether promtool finds the alert firing *after* or ``AFTER`` of these values."""
    rows = [{"series": name, "values": one} for name, one in values.items()]
    test = {
        "interval": "15s",
        "input_series": rows,
        "promql_expr_test": [
            {
                "expr": f'count(ALERTS{{alertname="{alert}",alertstate="firing"}}) > 0',
                "eval_time": after or AFTER.get(alert, "10m"),
                "exp_samples": [],
            }
        ],
    }
    path = tmp_path / "test.yml"
    path.write_text(yaml.safe_dump({"rule_files": [str(ALERTS)], "tests": [test]}))
    checked = promtool("test", "rules", path)
    said = checked.stdout + checked.stderr
    assert checked.returncode == 0 or "got:" in said, said
    return checked.returncode != 0


@pytest.mark.parametrize("alert", FIRING)
def test_an_alert_fires_when_it_is_so(tmp_path, alert):
    assert fired(tmp_path, alert, FIRING[alert])


def test_the_first_failed_fence_fires_also_where_nothing_was_told_before(tmp_path):
    labels = {"node": "n2", "result": "failed"}
    first = told("_x8 1x40", "fence_attempts_total", "n1", **labels)
    assert fired(tmp_path, "HoldfastFenceFailed", first)
    long_ago = told("_x8 1x120", "fence_attempts_total", "n1", **labels)
    assert not fired(tmp_path, "HoldfastFenceFailed", long_ago, "20m")


def test_a_rehearsal_counts_on_while_the_node_with_its_report_is_down(tmp_path):
    there = {
        **told("100x1000", "node_score", "n3", node="n2"),
        # The new manager has no report; what it tells is as long ago here as 0 is in life.
        **told("-3000000x1000", "fence_rehearsal_timestamp_seconds", "n3", node="n2"),
    }
    rehearsed = told(
        "-600x4 stale", "fence_rehearsal_timestamp_seconds", "n1", node="n2", manner="asked"
    )
    fails = told("0x4 stale", "fence_rehearsal_works", "n1", node="n2")
    # Two hours later nothing is left of what the node told but in the past.
    assert not fired(tmp_path, "HoldfastRehearsalOverdue", {**there, **rehearsed}, "2h")
    assert fired(tmp_path, "HoldfastRehearsalFails", {**there, **rehearsed, **fails}, "2h")


@pytest.mark.parametrize("alert", ["HoldfastRehearsalOverdue", "HoldfastRehearsalFails"])
def test_a_node_that_left_the_cluster_needs_no_rehearsal(tmp_path, alert):
    left = {**FIRING[alert], **told("100x4 stale", "node_score", "n3", node="n2")}
    assert not fired(tmp_path, alert, left)


def test_where_the_report_of_a_rehearsal_lies_is_said():
    (rule,) = [one for one in rules() if one["alert"] == "HoldfastRehearsalFails"]
    assert "{{ $labels.instance }}" in rule["annotations"]["description"]


@pytest.mark.parametrize(
    ("title", "counted"), [("Nodes online", 2), ("Services not as configured", 1), ("Problems", 3)]
)
def test_the_dashboard_counts_once_while_each_node_tells_the_whole_cluster(
    tmp_path, title, counted
):
    each = ("n1", "n2", "n3")
    states = {"n1": "1x4", "n2": "1x4", "n3": "0x4"}
    rows = {
        **told("3x4", "problems", *each),
        **told("0x4", "service_as_wanted", *each, service="web"),
        **told("1x4", "service_as_wanted", *each, service="db"),
    }
    for node, values in states.items():
        rows.update(told(values, "node_state", *each, node=node, state="online"))
    (panel,) = [one for one in dashboard()["panels"] if one["title"] == title]
    (target,) = panel["targets"]
    test = {
        "interval": "15s",
        "input_series": [{"series": name, "values": one} for name, one in rows.items()],
        "promql_expr_test": [
            {
                "expr": target["expr"].replace("$cluster", "c"),
                "eval_time": "1m",
                "exp_samples": [{"labels": "{}", "value": counted}],
            }
        ],
    }
    path = tmp_path / "test.yml"
    path.write_text(yaml.safe_dump({"rule_files": [str(ALERTS)], "tests": [test]}))
    checked = promtool("test", "rules", path)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_each_alert_is_seen_to_fire():
    assert set(FIRING) == {rule["alert"] for rule in rules()}


@pytest.mark.parametrize("alert", QUIET)
def test_an_alert_is_quiet_when_it_is_not_so(tmp_path, alert):
    assert not fired(tmp_path, alert, QUIET[alert])
