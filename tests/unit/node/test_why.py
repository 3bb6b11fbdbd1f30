# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a service or a node is as it is: each question has an answer, and nothing is cut short."""

from __future__ import annotations

import json

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired import (
    MOVE,
    Request,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.maintenance import (  # noqa: E501
    Maintenance,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.rules import (
    NodeRule,
    ServiceRule,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    Event,
    NodeState,
    NodeStatus,
    Power,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.states import (
    ServiceState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.cli.main import main
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.report.why import (
    render_why,
    why_node,
    why_service,
)
from ansible_collections.holdfast.ha.tests.unit.cluster.samples import (
    desired,
    observed,
    observed_node,
    service,
    started,
    state,
    verified_off,
)
from ansible_collections.holdfast.ha.tests.unit.node.sample_node import (
    create_storage,
    document,
)

REJECTED = (("n1", "its start failed there"), ("n3", "it is in maintenance"))
EVENTS = (
    Event(900.0, "start", "n1", "web", "it was there last"),
    Event(910.0, "failed", "n1", "web", "r: exit 1"),
    Event(910.0, "start", "n2", "web", "the only node that can take it", REJECTED),
    Event(920.0, "online", "n1", "", "back after a new start"),
    Event(930.0, "start", "n1", "db", "it was there last"),
)
RUNS = started("n2", since=911.0, reason="the only node that can take it", failed_nodes=("n1",))


def of_service(status=RUNS, desired_=None, **changes):
    cluster = state({"web": status}, events=EVENTS, **changes)
    return why_service("web", cluster, observed(desired_ or desired(service())), 1000.0)


def test_the_last_choice_is_told_with_those_that_were_rejected():
    why = of_service()
    assert why["choice"]["node"] == "n2"
    assert why["choice"]["rejected"] == [list(one) for one in REJECTED]
    assert [one["kind"] for one in why["history"]] == ["start", "failed", "start"]
    text = render_why(why)
    assert "web is started on n2, for 1m 29s" in text
    for part in ("n1: its start failed there", "n3: it is in maintenance", "failed on    n1"):
        assert part in text


OFF = NodeStatus(NodeState.OFF, 950.0, "fenced", proof=verified_off("plug n1 is off"))


@pytest.mark.parametrize(
    ("status", "changes", "now", "others"),
    [
        (
            started("n2", reason="the only node that can take it (n1: it is off)"),
            {},
            "it stays: no other node is preferred",
            {"n1": "", "n3": ""},
        ),
        (
            started("n2", reason="of n1, n2 it has the fewest services (0)"),
            {"nodes": {"n1": OFF}},
            "it stays: no other node is preferred",
            {"n1": "it is off", "n3": ""},
        ),
        (
            started("n2", state=ServiceState.RECOVERY),
            {"nodes": {"n1": OFF, "n2": OFF, "n3": OFF}},
            "no node can take it (n1: it is off; n2: it is off; n3: it is off)",
            {"n1": "it is off", "n3": "it is off"},
        ),
        (started("n2", state=ServiceState.ERROR, reason="no image"), {}, "no image", None),
        (
            started("n2"),
            {"hold": Maintenance("new switches", "ada", 5.0)},
            "it is left as it is: the cluster is in global maintenance (by ada: new switches)",
            None,
        ),
    ],
)
def test_the_reason_is_that_of_now_and_the_decision_is_history(status, changes, now, others):
    nodes = changes.pop("nodes", {})
    cluster = state({"web": status}, nodes, events=EVENTS, **changes)
    why = why_service("web", cluster, observed(desired(service())), 1000.0)
    assert why["now"] == now
    assert others is None or why["others"] == others
    text = " ".join(render_why(why, 400).split())
    assert f"why {now}" in text
    assert f"last change {status.why}" in text


def test_a_drained_node_makes_the_service_leave_or_says_why_it_cannot():
    drained = desired(service(), maintenance={"n2": Maintenance("disk", "ada", 5.0)})
    cluster = state({"web": started("n2")})
    moves = why_service("web", cluster, observed(drained), 1000.0)
    assert moves["now"].startswith("it is to move to n1: n2 is in maintenance; ")
    bound = {"n1": observed_node("n1", report=None), "n3": observed_node("n3", report=None)}
    stuck = why_service("web", cluster, observed(drained, bound), 1000.0)
    assert stuck["now"].startswith("should leave n2 (n2 is in maintenance), but no node can take")


def test_all_that_binds_a_service_is_told():
    asked = desired(
        service(after=("db",)),
        service("db"),
        node_rules={"where": NodeRule("where", ("web",), {"n1": 1, "n2": 2}, strict=True)},
        service_rules={"pair": ServiceRule("pair", ("web", "db"), "apart")},
        requests={"web": Request(MOVE, 50.0, "n3")},
    )
    waiting = started("", state=ServiceState.STOPPED, crashes=4, not_before=1020.0)
    text = render_why(of_service(waiting, asked))
    for part in (
        "where: only on n2 (2), n1 (1)",
        "pair: apart: web, db",
        "after        db",
        "20s more, after 4 failures in a row",
        "requested    move n3, not answered yet",
    ):
        assert part in text


@pytest.mark.parametrize(
    ("before", "told"),
    [
        (ServiceState.STARTED, "waits until the fencing of n2 is confirmed"),
        (ServiceState.ERROR, "waits until the fencing of n2 is confirmed: its stop hangs"),
    ],
)
def test_a_service_whose_node_is_being_fenced_says_what_it_waits_for(before, told):
    """Its reason is still that of its last start, unless it could not be stopped."""
    waits = started("n2", state=ServiceState.FENCE, reason="its stop hangs", before=before.value)
    assert of_service(waits)["reason"] == told


def test_a_service_that_nobody_looked_at_yet_says_so():
    why = why_service("web", state({}), observed(desired(service())), 1000.0)
    assert why["reason"] == "not looked at by a manager yet"
    assert why["choice"] is None
    assert "web is probe" in render_why(why)


def test_that_nothing_is_done_at_all_is_told_with_its_reason():
    held = of_service(hold=Maintenance("new switches", "ada", 5.0))
    assert "global maintenance (by ada: new switches)" in render_why(held)
    assert "disarmed (freeze)" in render_why(of_service(disarm="disarmed", disarm_mode="freeze"))
    by = desired(service(), disarm="freeze", disarmed_by=Maintenance("new storage", "ada", 5.0))
    asked = of_service(desired_=by, disarm="disarmed", disarm_mode="freeze")
    assert "disarmed (freeze: by ada: new storage)" in render_why(asked)
    waits = of_service(disarm="disarming", disarm_mode="ignore", disarm_waits="n2: it is offline")
    assert "disarming (ignore); waits for n2: it is offline" in render_why(waits)


def test_a_cluster_without_a_manager_says_that_its_reasons_are_old():
    cluster = state({"web": RUNS}, disarm="disarmed", disarm_mode="freeze")
    for managed, told in (
        (False, "no node holds the manager lease: this is what the last manager wrote; nothing is"),
        (None, "it is not known on this node whether a node holds the manager lease"),
    ):
        for why in (
            why_service("web", cluster, observed(desired(service())), 1000.0, managed=managed),
            why_node("n2", cluster, desired(service()), 1000.0, managed=managed),
        ):
            assert why["cluster"].startswith(told)
            assert "disarmed (freeze)" in why["cluster"]


def test_a_node_is_told_with_its_proof_and_what_it_has():
    dead = NodeStatus(
        NodeState.OFF,
        950.0,
        "fenced",
        proof=verified_off("plug n1 is off"),
        fenced=(940.0,),
        power=Power.LEFT_OFF,
    )
    cluster = state({"web": started("n1", reason="so it is")}, {"n1": dead}, events=EVENTS)
    drained = desired(service(), maintenance={"n1": Maintenance("kernel", "ada", 5.0)})
    why = why_node("n1", cluster, drained, 1000.0)
    assert [one["kind"] for one in why["history"]] == ["online"]
    text = render_why(why)
    for part in ("n1 is off, for 50s", "plug n1 is off", "left off", "by ada: kernel"):
        assert part in text
    assert "web (started): so it is" in text


@pytest.mark.parametrize(
    ("drained", "line"),
    [
        (Maintenance("kernel", "ada", 5.0, 7200.0), ", by ada: kernel; until 1970-01-01T02:00:00Z"),
        (Maintenance("", "root", 5.0), ", by root"),
        (Maintenance("", "", 5.0), ", no reason given"),
    ],
)
def test_a_drained_node_is_told_with_the_end_of_that_and_with_no_colon_before_nothing(
    drained, line
):
    cluster = state({}, {"n1": NodeStatus(NodeState.ONLINE, 950.0)})
    text = render_why(why_node("n1", cluster, desired(maintenance={"n1": drained}), 1000.0))
    assert f"drained  since 1970-01-01T00:00:05Z{line}\n" in text


def test_a_reason_drives_no_terminal_and_is_never_cut_short():
    nasty = RUNS.reason + " \x1b[31m\n" + "x" * 300
    text = render_why(of_service(started("n2", reason=nasty)), width=60)
    assert "\x1b" not in text
    assert text.replace(" ", "").replace("\n", "").count("x" * 300) == 1


@pytest.fixture
def config(tmp_path):
    create_storage(tmp_path)
    path = tmp_path / "node.json"
    path.write_text(json.dumps(document(tmp_path)))
    return str(path)


def test_the_command_answers_for_nodes_and_names_what_it_does_not_know(config, capsys):
    assert main(["why", "n1", "--config", config]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "n1 is unknown why no manager has seen a heartbeat of it yet" in said
    assert "nothing speaks against it" not in said
    assert main(["why", "n1", "--json", "--config", config]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["kind"] == "node"
    assert told["cluster"].startswith("no node holds the manager lease"), "nobody ever was manager"
    assert [one["id"] for one in told["conditions"]] == ["node_not_online"]
    assert main(["why", "n4", "--config", config]) == 2
    assert "'n4' is not accepted; expected the id of a service or the name" in (
        capsys.readouterr().err
    )


def test_what_an_operator_or_another_service_keeps_it_for_is_told():
    front = service("front", after=("web",))
    stops = {
        "web": started("n1", state=ServiceState.RELOCATE, target="n2", reason="n1 is drained"),
        "front": started("n3", front, state=ServiceState.REQUEST_STOP),
    }
    declared = desired(service(), front, pins={"web": "n2"})
    why = why_service("web", state(stops), observed(declared), 1000.0)
    assert (why["pinned"], why["stops_after"]) == ("n2", ["front"])
    text = render_why(why)
    assert "waits        for front to stop or leave first" in text
    assert "pinned       to n2, until 'holdfast move web --unpin'" in text
    plain = why_service("front", state(stops), observed(desired(front)), 1000.0)
    assert (plain["pinned"], plain["stops_after"]) == ("", [])
