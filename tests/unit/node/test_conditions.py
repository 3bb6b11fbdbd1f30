# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each condition is shown with one severity by the status, check, the page, metrics and alerts."""

from __future__ import annotations

import copy
import html
import re
from pathlib import Path

import pytest
import yaml
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.cli.commands import (
    make_parser,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.report import (
    exposition,
    metrics,
    page,
    text,
    wording,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.report.conditions import (  # noqa: E501
    CONDITIONS,
    REHEARSED_WITHIN,
    STOPPING_LONG,
    add_conditions,
    unsettled,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.report.health import (
    Level,
    judge_health,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.report.why import (
    render_why,
    why_node,
    why_service,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.report.wording import (
    Severity,
    Tone,
)
from ansible_collections.holdfast.ha.tests.unit.cluster.samples import desired, observed, state
from ansible_collections.holdfast.ha.tests.unit.node.sample_status import AT, healthy

ALERTS = Path(__file__).resolve().parents[3] / "extensions" / "monitoring" / "alerts.yml"
LEVELS = {Severity.ERROR: Level.CRITICAL, Severity.WARNING: Level.WARNING, Severity.NOTE: Level.OK}
ALERT_SEVERITY = {Severity.ERROR: "critical", Severity.WARNING: "warning"}
KEPT = {"reason": "new disk", "owner": "ada", "since": AT - 60, "until": 0.0}


def rehearsals(verdict="works", age=60.0):
    works = {"verdict": "works", "at": AT - 60, "problems": []}
    last = {"verdict": verdict, "at": AT - age, "problems": ["n2: the password is wrong."]}
    return {"rehearsals": {"n1": works, "n2": last, "n3": works}, "problem": ""}


def disarm(waits=""):
    return {
        "state": "disarmed",
        "mode": "freeze",
        "waits_for": waits,
        "reason": "",
        "owner": "",
        "since": 0.0,
    }


def failover():
    return {
        "node": "n2",
        "finished": 0.0,
        "reason": "silent",
        "proof": "",
        "last_heartbeat": AT - 5,
        "suspected": AT - 2,
        "recorded": AT - 1,
        "fence_sent": 0.0,
        "confirmed": 0.0,
        "services": [],
        "started": {},
        "seconds": {"suspected": 3.0},
    }


HOLDS = {
    "record_regression": [("regressions", ["the state is older than what n1 acted on"])],
    "record_copy_damaged": [("damaged_copies", ["copy 1 of the CRM record of n1 is damaged"])],
    "not_authentic": [("authentication.not_authentic", ["the block of n2 was not written by n2"])],
    "cluster_key": [("authentication.key_problem", "/etc/holdfast/key cannot be read.")],
    "manager_missing": [("manager.active", False)],
    "manager_late": [("manager.epoch", 1000)],
    "foreign_host": [("membership.foreign_hosts", {"9": "n9"})],
    "membership_differs": [("membership.differs", "it lacks n4")],
    "node_problem": [("nodes.n2.problem", "its block is damaged")],
    "node_not_online": [("nodes.n2.state", "off"), ("nodes.n2.reason", "fenced")],
    "fence_unconfirmed": [("nodes.n2.maintenance", {**KEPT, "reason": "smoke (not proved off)"})],
    "secret_wrong": [("nodes.n2.secrets", {"web/db/password": "the file is missing"})],
    "service_state": [("services.web.state", "error"), ("services.web.reason", "no image")],
    "service_twice": [("services.web.running_on", ["n1", "n2"])],
    "fencing_fails": [("fencing", rehearsals("fails"))],
    "manager_unknown": [("manager.active", None)],
    "global_maintenance": [("global_maintenance", True), ("maintenance", KEPT)],
    "disarmed": [("disarm", disarm())],
    "maintenance": [("nodes.n2.maintenance", KEPT)],
    "drain_blocked": [("nodes.n2.blocked", {"web": "no other node may run it"})],
    "fencing_degraded": [("fencing", rehearsals("degraded"))],
    "fencing_not_rehearsed": [("fencing", {"rehearsals": {}, "problem": ""})],
    "fencing_rehearsal_old": [("fencing", rehearsals(age=REHEARSED_WITHIN + 1))],
    "fencing_unknown": [("fencing", {"rehearsals": {}, "problem": "The report is damaged."})],
    "secret_inline": [("services.web.inline_secrets", ["db.password"])],
    "lease_lost": [("nodes.n2.lease_lost", True)],
    "stopping_long": [
        ("nodes.n2.mode", "restart"),
        ("nodes.n2.mode_since", AT - STOPPING_LONG - 1),
    ],
    "unmanaged": [("nodes.n2.left", ["web"])],
    "node_unreachable": [("unanswered", {"n2": 40.0})],
    "failover": [("failovers", [failover()])],
    "service_changing": [("services.web.state", "request_start")],
    "configuration_pending": [("config_version", 1000)],
    "node_returning": [("nodes.n2.mode", "restart")],
    "disarming": [("disarm", disarm("n2: it is suspect"))],
    "lease_being_freed": [("leases_being_freed", ["Node n1 may be freeing host lease 3 of n2."])],
}
"""What makes each condition hold in a healthy cluster: values of the status by their place."""


def status_with(condition):
    status = copy.deepcopy(healthy())
    for place, value in HOLDS[condition]:
        *outer, last = place.split(".")
        part = status
        for key in outer:
            part = part[key]
        part[last] = value
    add_conditions(status)
    return status


def test_each_row_of_the_table_is_tried_here():
    assert set(HOLDS) == {row.id for row in CONDITIONS}
    assert len(CONDITIONS) == len(HOLDS)


def test_a_cluster_without_a_condition_is_healthy_in_all_views():
    status = healthy()
    assert status["conditions"] == []
    assert wording.verdict(status) == (Tone.GOOD, "healthy")
    assert judge_health(status).level is Level.OK
    assert sum(one.value for one in samples(status)) == 0


def samples(status):
    found = metrics.cluster_samples(status)
    return [one for one in found if one.metric is exposition.CONDITIONS]


def test_a_node_that_cannot_come_back_as_nobody_stops_what_runs_there_says_so():
    status = healthy()
    status["nodes"]["n2"].update(lease_lost=True, left=["web"])
    add_conditions(status)
    (found,) = [one["text"] for one in status["conditions"] if one["id"] == "lease_lost"]
    assert found == (
        "Node n2 lost its host lease and does not join again while web, left to the operator, may"
        " run there: reboot the node."
    )


@pytest.mark.parametrize("row", CONDITIONS, ids=lambda row: row.id)
def test_the_five_views_agree_on_a_condition(row):
    status = status_with(row.id)
    (found, *more) = [one for one in status["conditions"] if one["id"] == row.id]
    assert more == []
    assert found["severity"] == row.severity.value
    worst = min(list(Severity).index(Severity(one["severity"])) for one in status["conditions"])
    level = LEVELS[list(Severity)[worst]]

    shown = " ".join(text.render_text(status, colour=False, width=100).split())
    assert found["text"] in shown
    line = judge_health(status)
    assert line.level is level
    written = html.unescape(re.sub(r"<[^>]*>", "", page.render_page(status)))
    assert found["text"] in " ".join(written.split())
    if row.severity is not Severity.NOTE:
        assert f"next: {found['next']}" in shown
        assert f"{found['text']} Next: {found['next']}." in line.line()
        assert f"Next: {found['next']}" in written
        assert "healthy" not in wording.verdict(status)[1]
    (sample,) = [one for one in samples(status) if one.labels["condition"] == row.id]
    assert (sample.value, sample.labels["severity"]) == (1, row.severity.value)
    assert alert_for(row.severity) == ALERT_SEVERITY.get(row.severity)


def alert_for(severity):
    """The severity of the alert that fires for each condition of a severity; None without one."""
    (group,) = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"]
    selected = f'holdfast_condition{{severity="{severity.value}"}}'
    found = [one for one in group["rules"] if selected in one["expr"]]
    return found[0]["labels"]["severity"] if found else None


@pytest.mark.parametrize("row", CONDITIONS, ids=lambda row: row.id)
def test_the_next_command_is_one_that_there_is(row):
    (found,) = [one for one in status_with(row.id)["conditions"] if one["id"] == row.id]
    program, *words = found["next"].split()
    if program != "holdfast":
        assert program in ("systemctl", "journalctl", "ping")
        return
    words += ["--reason", "x"] if words[0] == "fence" else []
    make_parser().parse_args(words)


@pytest.mark.parametrize(
    "row", [row for row in CONDITIONS if row.next == "holdfast why {}"], ids=lambda row: row.id
)
def test_the_command_that_is_to_tell_more_tells_at_least_the_condition(row):
    conditions = [one for one in status_with(row.id)["conditions"] if one["id"] == row.id]
    subject = conditions[0]["subject"]
    for why in (
        why_node(subject, state({}), desired(), AT, conditions=conditions),
        why_service(subject, state({}), observed(desired()), AT, conditions=conditions),
    ):
        assert conditions[0]["text"] in " ".join(render_why(why).split())


def test_the_documentation_has_each_condition():
    document = (ALERTS.parents[2] / "docs" / "status.md").read_text(encoding="utf-8")
    for row in CONDITIONS:
        assert f"| `{row.id}` | {row.severity.value} | " in document
        assert f"| `{row.next.format('NAME')}` |" in document


@pytest.mark.parametrize(
    ("condition", "waited"),
    [
        ("node_not_online", True),
        ("manager_unknown", True),
        ("service_changing", True),
        ("fencing_fails", False),
        ("maintenance", False),
        ("node_unreachable", False),
    ],
)
def test_a_wait_ends_although_something_besides_the_services_is_wrong(condition, waited):
    assert bool(unsettled(status_with(condition))) is waited


@pytest.mark.parametrize(
    ("condition", "current"),
    [("maintenance", True), ("manager_unknown", False), ("manager_missing", False)],
)
def test_states_that_no_manager_keeps_are_called_the_last_known(condition, current):
    status = status_with(condition)
    for shown in (text.render_text(status, colour=False), page.render_page(status)):
        assert ("last known" in shown.lower()) is not current
