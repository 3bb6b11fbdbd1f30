# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The event source: what lasts is told once, what ends is told, and silence is no health."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest
import yaml
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.rehearsal.report import (
    NodeReport,
    Rehearsal,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.telemetry import (
    Measured,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.report import (
    exposition,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.report.exposition import (  # noqa: E501
    render_metrics,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.report.metrics import (
    Known,
    samples,
)
from ansible_collections.holdfast.ha.tests.unit.node.sample_status import (
    AT,
    after_failover,
    healthy,
)
from ansible_collections.holdfast.ha.tests.unit.programs import run_ansible

EDA = Path(__file__).resolve().parents[2] / "extensions" / "eda"
SOURCE = EDA / "plugins" / "event_source" / "cluster_events.py"
specification = importlib.util.spec_from_file_location("cluster_events", SOURCE)
source = importlib.util.module_from_spec(specification)
specification.loader.exec_module(source)


def metrics(status, margin=15.0, rehearsed=None, node="n1"):
    values = {("lease_renewed_at", ()): margin - 16.0, ("lease_fail_seconds", ()): 16.0}
    reports = {
        node: NodeReport((Rehearsal(at, "asked", "works", ()),))
        for node, at in (rehearsed or {}).items()
    }
    found = Known(node, status, {"lrm": Measured(0.0, values, {})}, reports, 0.0, AT)
    return render_metrics(
        exposition.PREFIX, exposition.CATALOGUE, samples(found), {"cluster": "demo"}
    )


def kinds(events):
    return [(event["kind"], event.get("node", "")) for event in events]


def test_a_healthy_cluster_tells_nothing():
    cluster = source.Cluster()
    assert cluster.look(healthy()) == []


def test_a_fenced_node_is_told_once_and_its_return_too():
    cluster = source.Cluster()
    cluster.look(healthy())
    dead = after_failover()
    assert kinds(cluster.look(dead)) == [
        ("node_fenced", "n2"),
        ("problem", ""),
        ("failover_finished", "n2"),
    ]
    assert cluster.look(dead) == []
    back = {**healthy(), "failovers": dead["failovers"]}
    assert kinds(cluster.look(back)) == [
        ("node_back", "n2"),
        ("problem_gone", ""),
    ]


def test_a_node_that_was_fenced_and_is_back_before_the_next_look_is_told():
    cluster = source.Cluster()
    cluster.look(healthy())
    back = {**healthy(), "failovers": after_failover()["failovers"]}
    assert kinds(cluster.look(back)) == [
        ("node_fenced", "n2"),
        ("node_back", "n2"),
        ("failover_finished", "n2"),
    ]
    assert cluster.look(back) == []


def test_a_node_whose_power_was_cut_by_hand_is_told_with_who_and_why():
    cluster = source.Cluster()
    cluster.look(healthy())
    cut, kept = healthy(), {"reason": "fenced: smoke", "owner": "ann", "since": 9.0, "until": 0.0}
    why = (
        "its operator switches it off by hand (by ann: fenced: smoke): nothing to recover,"
        " not fenced"
    )
    cut["nodes"]["n2"].update(state="suspect", maintenance=kept)
    assert kinds(cluster.look(cut)) == []
    cut["nodes"]["n2"].update(state="offline", reason=why)
    assert kinds(cluster.look(cut)) == []
    cut["nodes"]["n2"]["host_lease"]["state"] = "dead"
    assert [one["text"] for one in cluster.look(cut)] == [why]
    assert kinds(cluster.look(healthy())) == [("node_back", "n2")]


def test_a_node_is_not_told_to_be_fenced_before_there_is_proof():
    cluster = source.Cluster()
    cluster.look(healthy())
    failover = after_failover()["failovers"][0]
    seconds = {key: failover["seconds"][key] for key in ("suspected", "recorded", "fence_sent")}
    fencing = {**healthy(), "failovers": [{**failover, "seconds": seconds, "finished": 0.0}]}
    assert cluster.look(fencing) == []


def test_a_problem_of_which_only_numbers_change_is_told_once_and_once_when_it_is_gone():
    cluster = source.Cluster()
    told = []
    failing = "Node n2 is to be fenced: attempt {} failed; next in {} s."
    other = "Node n3 is to be fenced: attempt {} failed; next in {} s."
    looks = (
        [failing.format(3, 20)],
        [other.format(3, 20), failing.format(4, 40.5)],
        [other.format(4, 40), failing.format(5, 60)],
        [other.format(5, 60)],
        [other.format(5, 60), failing.format(1, 2)],
    )
    for problems in looks:
        status = {**healthy(), "problems": problems}
        events = cluster.look(status)
        told.append([(event["kind"], event["text"]) for event in events])
    assert told == [
        [("problem", failing.format(3, 20))],
        [("problem", other.format(3, 20))],
        [],
        [("problem_gone", failing.format(5, 60))],
        [("problem", failing.format(1, 2))],
    ]


def test_problems_that_differ_in_numbers_alone_are_each_told():
    cluster = source.Cluster()
    two = ["Service web is error: exit 1.", "Service web is error: exit 2."]
    told = []
    for problems in (two, two[1:], two):
        status = {**healthy(), "problems": problems}
        events = cluster.look(status)
        told.append([(event["kind"], event["text"]) for event in events])
    assert told == [
        [("problem", two[0]), ("problem", two[1])],
        [("problem_gone", two[0])],
        [("problem", two[0])],
    ]


def test_a_failover_from_before_the_first_look_is_no_news():
    cluster = source.Cluster()
    old = {**healthy(), "failovers": after_failover()["failovers"]}
    assert cluster.look(old) == []


def test_a_cluster_without_a_manager_is_told_and_one_of_which_nobody_can_tell_is_not():
    status = healthy()
    status["manager"]["active"] = False
    assert kinds(source.Cluster().look(status)) == [("no_manager", "")]
    status["manager"]["active"] = None
    assert source.Cluster().look(status) == []


@pytest.mark.parametrize(("margin", "told"), [(8.1, []), (7.9, [("lease_margin_small", "n1")])])
def test_a_lease_is_told_when_half_of_its_time_is_gone(margin, told):
    assert (
        kinds(source.Measures(source.checked({})).look({"n1": metrics(healthy(), margin)})) == told
    )


def test_a_lease_is_told_of_whichever_node_it_is_and_once():
    measures = source.Measures(source.checked({}))
    small = metrics(None, 3.0, node="n2")
    both = {"n1": metrics(healthy()), "n2": small}
    (event,) = measures.look(both)
    assert (event["kind"], event["node"], event["cluster"]) == ("lease_margin_small", "n2", "demo")
    assert event["text"] == "3.0 s are left until n2 has to stop its services."
    assert measures.look(both) == []
    # It does not answer for a moment; that is no end of it.
    assert measures.look({"n1": metrics(healthy())}) == []
    assert measures.look(both) == []
    assert measures.look({"n2": metrics(None, node="n2")}) == []
    assert kinds(measures.look(both)) == [("lease_margin_small", "n2")]


def test_nodes_whose_fencing_was_not_rehearsed_are_told_one_by_one():
    measures = source.Measures(source.checked({"rehearsal_days": 30}), wall=lambda: AT)
    text = metrics(healthy(), rehearsed={"n1": AT - 86400, "n2": AT - 31 * 86400})
    assert kinds(measures.look({"n1": text})) == [
        ("rehearsal_overdue", "n2"),
        ("rehearsal_overdue", "n3"),
    ]


def test_a_rehearsal_counts_on_whichever_node_its_report_is_and_while_that_is_down():
    measures = source.Measures(source.checked({"rehearsal_days": 30}), wall=lambda: AT)
    rehearsed = dict.fromkeys(("n1", "n2", "n3"), AT - 86400)
    reporter = metrics(healthy(), rehearsed=rehearsed, node="n3")
    assert measures.look({"n1": metrics(healthy()), "n3": reporter}) == []
    assert measures.look({"n1": metrics(healthy())}) == []
    assert measures.look({}) == []


EXPECTED = """
holdfast_services:
- name: db
- {name: web, state: absent}
- name: new
"""


@pytest.mark.parametrize("written", [EXPECTED, json.dumps(yaml.safe_load(EXPECTED))])
def test_what_is_declared_otherwise_than_expected_is_told(tmp_path, written):
    path = tmp_path / "expected.yml"
    path.write_text(written)
    cluster = source.Cluster()
    found = cluster.look(healthy(), source.drift(healthy(), str(path)))
    assert [(event["kind"], event["text"]) for event in found] == [
        ("drift", "new of holdfast_services is declared nowhere in the cluster."),
        ("drift", "vm:100 of holdfast_services is only in the cluster."),
        ("drift", "web of holdfast_services is only in the cluster."),
    ]
    assert cluster.look(healthy(), source.drift(healthy(), str(path))) == []


def test_without_a_file_nothing_is_expected():
    assert source.drift(healthy(), "") == []
    assert source.drift(healthy(), None) == []


@pytest.mark.parametrize(
    ("written", "why"),
    [
        (None, "cannot be read: No such file or directory."),
        ("holdfast_services: [", "is no YAML: while parsing a flow node"),
        ("- web", "is not accepted; expected are the variables holdfast_services and"),
        ("holdfast_services: {web: {}}", "is not accepted; "),
        ("holdfast_rules: [apart]", "is not accepted; "),
        ("", "is not accepted; "),
        ("services: [{name: web}]", "is not accepted; "),
    ],
)
def test_an_expectation_that_cannot_be_read_is_one_event_of_one_sentence(tmp_path, written, why):
    path = tmp_path / "expected.yml"
    if written is not None:
        path.write_text(written)
    cluster = source.Cluster()
    (event,) = cluster.look(healthy(), source.drift(healthy(), str(path)))
    assert (event["kind"], event["cluster"]) == ("expected_unreadable", "demo")
    assert event["text"].startswith(f"The file {path} of expected {why}")
    assert "\n" not in event["text"]
    assert cluster.look(healthy(), source.drift(healthy(), str(path))) == []


def test_silence_is_told_once_and_so_is_its_end():
    cluster = source.Cluster()
    cluster.look(healthy())
    (silent,) = cluster.silent("n1: no answer in time")
    assert (silent["kind"], silent["cluster"]) == ("unreachable", "demo")
    assert cluster.silent("n1: no answer in time") == []
    (back,) = cluster.look(healthy())
    assert (back["kind"], back["cluster"]) == ("reachable", "demo")


def test_the_end_of_a_silence_from_the_first_look_on_names_the_cluster():
    cluster = source.Cluster()
    assert cluster.silent("n1: no answer in time")[0]["cluster"] == ""
    (back,) = cluster.look(healthy())
    assert (back["kind"], back["cluster"]) == ("reachable", "demo")


HOLDFAST = """
import json, pathlib, subprocess, sys, time
node, word = pathlib.Path(sys.argv[1]), sys.argv[2]
if not node.exists():
    sys.exit("No route to host")
if node.read_text() == "hangs":
    time.sleep(600)
if node.read_text().startswith("hands"):
    away = node.read_text() == "hands its output away"
    sleeps = [sys.executable, "-c", "import time; time.sleep(600)"]
    child = subprocess.Popen(sleeps, start_new_session=away)
    pathlib.Path(f"{node}.pid").write_text(str(child.pid))
    time.sleep(600)
told = pathlib.Path(f"{node}.metrics")
if word == "status":
    print(node.read_text())
elif told.exists():
    print(told.read_text(), *sys.argv[3:])
sys.exit(1)
"""


@pytest.fixture
def arguments(tmp_path):
    (tmp_path / "holdfast.py").write_text(HOLDFAST)
    command = [sys.executable, str(tmp_path / "holdfast.py"), f"{tmp_path}/{{node}}"]
    return source.checked(
        {"nodes": ["n1", "n2", "n3"], "command": command, "timeout": 5.0, "delay": 0.1}
    )


def test_a_node_that_is_down_or_hangs_is_passed_over(arguments, tmp_path):
    (tmp_path / "n2").write_text("hangs")
    (tmp_path / "n3").write_text(json.dumps(healthy()))
    status = asyncio.run(source.ask({**arguments, "timeout": 4.0}))
    assert status["cluster"] == "demo"


def test_each_node_is_asked_for_its_metrics_and_none_waits_for_one_that_hangs(arguments, tmp_path):
    (tmp_path / "n1").write_text("hangs")
    for node in ("n2", "n3"):
        (tmp_path / node).write_text("{}")
        (tmp_path / f"{node}.metrics").write_text(f"of {node}")
    began = time.monotonic()
    asked = source.checked({**arguments, "nodes": ["n2", "n1", "n3", "n4", "n2"]})
    found = asyncio.run(source.ask_metrics(asked))
    # The first tells of the whole cluster too, in case that the manager's node is not asked.
    assert found == {"n2": "of n2 --whole-cluster\n", "n3": "of n3\n"}
    assert time.monotonic() - began < 20.0


@pytest.mark.parametrize("hands", ["hands its output on", "hands its output away"])
def test_a_node_whose_answer_hangs_below_the_command_is_passed_over_too(arguments, tmp_path, hands):
    (tmp_path / "n1").write_text(hands)
    (tmp_path / "n3").write_text(json.dumps(healthy()))

    async def ask():
        return await asyncio.wait_for(source.ask({**arguments, "timeout": 4.0}), 60)

    try:
        status = asyncio.run(ask())
    finally:
        child = tmp_path / "n1.pid"
        if child.exists():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(child.read_text()), signal.SIGKILL)
    assert status["cluster"] == "demo"


def test_a_node_that_says_nothing_in_time_is_told_as_such(arguments, tmp_path):
    (tmp_path / "n1").write_text("hangs")
    with pytest.raises(OSError, match=r"n1: no answer in time"):
        asyncio.run(source.ask({**arguments, "nodes": ["n1"], "timeout": 1.0}))


def test_when_nobody_answers_each_node_is_named(arguments):
    with pytest.raises(OSError, match=r"n1: No route to host; n2: No route .*; n3: No route"):
        asyncio.run(source.ask(arguments))


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"nodes": ["-oProxyCommand=reboot"]}, "nodes: '-oProxyCommand=reboot' is not accepted"),
        ({"nodes": "n1"}, "nodes: 'n1' is not accepted; expected a list of texts"),
        ({"nodes": [None]}, r"nodes: \[None\] is not accepted"),
        ({"command": "/usr/sbin/holdfast"}, "command: '/usr/sbin/holdfast' is not accepted"),
        ({"command": []}, r"command: \[\] is not accepted"),
        ({"delay": 0}, "delay: 0 is not accepted; expected seconds from 0.1 to 86400"),
        ({"delay": "x"}, "delay: 'x' is not accepted; expected seconds"),
        ({"timeout": True}, "timeout: True is not accepted"),
        ({"margin": 2}, "margin: 2 is not accepted; expected a share from 0 to 1"),
        ({"margin": float("nan")}, "margin: nan is not accepted"),
        ({"rehearsal_days": -1}, "rehearsal_days: -1 is not accepted"),
        ({"expected": ["a"]}, r"expected: \['a'\] is not accepted"),
        ({"rehearsal_day": 30}, "rehearsal_day is no option .* did you mean rehearsal_days"),
    ],
)
def test_an_option_that_cannot_be_is_refused_before_anything_is_run(arguments, wrong, sentence):
    with pytest.raises(ValueError, match=sentence):
        asyncio.run(source.main(asyncio.Queue(), {**arguments, **wrong}))


def test_options_are_taken_as_ansible_rulebook_gives_them():
    given = {"delay": "10", "nodes": [], "expected": None, "eda_feedback_queue": object()}
    assert source.checked(given) == source.checked({})
    documented = yaml.safe_load(source.DOCUMENTATION)["options"]
    defaults = {name: spec.get("default") for name, spec in documented.items()}
    assert {**source.checked({}), "nodes": None, "expected": None} == defaults


def test_the_source_puts_what_is_new_into_the_queue(arguments, tmp_path):
    (tmp_path / "n1").write_text(json.dumps(after_failover()))

    async def first():
        queue = asyncio.Queue()
        task = asyncio.create_task(source.main(queue, arguments))
        found = await asyncio.wait_for(queue.get(), 60)
        task.cancel()
        return found

    assert asyncio.run(first())["holdfast"]["kind"] == "node_fenced"


def test_a_fence_is_told_while_metrics_are_waited_for(arguments, tmp_path):
    (tmp_path / "n1").write_text(json.dumps(after_failover()))
    (tmp_path / "n2").write_text("hangs")
    (tmp_path / "n1.metrics").write_text(metrics(healthy(), 3.0))

    async def told():
        queue = asyncio.Queue()
        task = asyncio.create_task(source.main(queue, arguments))
        found = []
        while not found or found[-1]["kind"] != "lease_margin_small":
            found.append((await asyncio.wait_for(queue.get(), 60))["holdfast"])
        task.cancel()
        return found

    found = kinds(asyncio.run(told()))
    assert found[0] == ("node_fenced", "n2")
    assert found[-1] == ("lease_margin_small", "n1")


LOOKUP = "{{ lookup('pipe', 'touch owned') }}"
HOSTILE = f"{LOOKUP}{{% raw %}}#jinja2: x\x1b]0;owned\x07\x9b31m\u202e\r\n\0"


def hostile_status():
    """Return a status with a template and control characters wherever a text may be."""
    status = after_failover()
    for node in status["nodes"].values():
        node["reason"] = HOSTILE
    for failover in status["failovers"]:
        failover.update(reason=HOSTILE, proof=HOSTILE)
    return {**status, "problems": [HOSTILE, *[f"{HOSTILE} {one}" for one in range(5000)]]}


def test_what_an_agent_printed_is_no_template_and_controls_no_terminal(tmp_path):
    cluster = source.Cluster()
    cluster.look(source.read_status(json.dumps(healthy())))
    events = cluster.look(source.read_status(json.dumps(hostile_status())))
    assert {event["kind"] for event in events} == {"node_fenced", "problem", "failover_finished"}
    for event in events:
        for one in event.values():
            assert not isinstance(one, str) or one.isprintable()
    assert len(events) < 1100
    event = {"ansible_eda": {"event": {"holdfast": events[0]}}}
    (tmp_path / "event.json").write_text(json.dumps(event))
    text = "{{ ansible_eda.event.holdfast.text }}"
    tasks = [{"ansible.builtin.debug": {"msg": text}}]
    play = {"hosts": "localhost", "gather_facts": False, "tasks": tasks}
    (tmp_path / "play.yml").write_text(yaml.safe_dump([play]))
    found = run_ansible("playbook", "-e", "@event.json", "play.yml", folder=tmp_path)
    assert found.returncode == 0, found.stdout + found.stderr
    assert "lookup('pipe'" in found.stdout
    assert not (tmp_path / "owned").exists()


@pytest.mark.parametrize(
    "change",
    [
        {"nodes": []},
        {"nodes": {"n1": []}},
        {"nodes": {"-oProxyCommand=id": healthy()["nodes"]["n1"]}},
        {"nodes": {"{{ x }}": healthy()["nodes"]["n1"]}},
        {"manager": None},
        {"problems": "all"},
        {"problems": None},
        {"failovers": [{}]},
        {"failovers": [{"node": "n1", "recorded": [], "finished": 0, "seconds": {}}]},
        {"cluster": {}},
        {"cluster": "a\x1bb"},
        {"rules": [1]},
    ],
)
def test_a_status_that_is_none_is_passed_over_like_no_answer(arguments, tmp_path, change):
    (tmp_path / "n1").write_text(json.dumps({**healthy(), **change}))
    (tmp_path / "n2").write_text(json.dumps({**healthy(), "cluster": "second"}))
    assert asyncio.run(source.ask(arguments))["cluster"] == "second"


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"a":' * 100_000,
        '{"cluster": 1e999}',
        '{"cluster": ' + "9" * 100_000 + "}",
        "NaN",
        "{}",
        "null",
        '"nodes"',
    ],
)
def test_no_answer_ends_the_source(arguments, tmp_path, text):
    for node in ("n1", "n2", "n3"):
        (tmp_path / node).write_text(text)

    async def first():
        queue = asyncio.Queue()
        task = asyncio.create_task(source.main(queue, arguments))
        found = await asyncio.wait_for(queue.get(), 60)
        for node in ("n1", "n2", "n3"):
            (tmp_path / node).write_text(json.dumps(healthy()))
        after = await asyncio.wait_for(queue.get(), 60)
        task.cancel()
        return found["holdfast"]["kind"], after["holdfast"]["kind"]

    assert asyncio.run(first()) == ("unreachable", "reachable")


def test_an_answer_without_end_is_ended(arguments, monkeypatch):
    monkeypatch.setattr(source, "MOST_BYTES", 1 << 16)
    command = [sys.executable, "-c", "while True: print('{node}' * 1000)"]
    began = time.monotonic()
    with pytest.raises(OSError, match="longer than 65536 bytes"):
        asyncio.run(source.ask({**arguments, "command": command, "nodes": ["n1"]}))
    assert time.monotonic() - began < 45.0


@pytest.mark.parametrize(
    "line",
    [
        'holdfast_node_score{cluster="demo",node="n2"} many',
        'holdfast_node_score{cluster="demo",node="n2"} 1e999',
        'holdfast_node_score{cluster="demo",node="n2"} nan',
        'holdfast_node_score{cluster="demo",node="{{ x }}"} 1',
        "holdfast_node_score{" + "a" * 1_000_000 + "} 1",
        "holdfast_node_score{" + 'a="\\"' * 200_000 + "} 1",
    ],
)
def test_a_line_of_metrics_that_is_none_is_passed_over(line):
    measures = source.Measures(source.checked({}))
    good = metrics(healthy(), 3.0)
    assert kinds(measures.look({"n1": f"{line}\n{good}"})) == [("lease_margin_small", "n1")]
    assert measures.look({"n2": 'holdfast_node_score{} 1\nholdfast_x{a="b"} 2'}) == []


def test_an_expected_file_that_is_nested_too_deep_is_told_as_such(tmp_path):
    path = tmp_path / "expected.yml"
    path.write_text("holdfast_services: " + "[" * 5000)
    events = source.drift(healthy(), str(path))
    assert kinds(events) == [("expected_unreadable", "")]
