# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A soak fails at the first violation, and only then."""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from testbed import fault as faults
from testbed import soak
from testbed.fault import ANY_DURATION, Fault, Reach
from testbed.soak import Soak, Turn, Violation, Workload


class Client(nullcontext):
    """A client with a recent confirmation, after an outage of *outage* seconds."""

    def __init__(self, outage=0.0):
        super().__init__()
        self.outage = outage

    last = property(lambda self: time.monotonic() + 1.0)
    longest = property(lambda self: self.outage, lambda self, _value: None)


class Observer(nullcontext):
    def __init__(self):
        super().__init__()
        self.observations, self.overlaps = 1, []


class Cluster:
    """Two nodes; those in *fenced* get fenced, those in *restarted* restart."""

    def __init__(self, fenced=(), restarted=()):
        self.fenced, self.restarted, self.boots = fenced, restarted, 0
        nodes = {name: self._node(name) for name in ("n1", "n2")}
        self.testbed = SimpleNamespace(nodes=nodes)

    def _node(self, name):
        def boot_id():
            self.boots += 1
            return self.boots if name in self.restarted else 1

        return SimpleNamespace(name=name, is_on=True, boot_id=boot_id)

    def wait_healthy(self, _timeout=0.0):
        return {}

    def status(self):
        events = [{"kind": "fence", "node": name, "at": time.time()} for name in self.fenced]
        return {"events": events}


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(soak, "REST", (0.0, 0.0))
    monkeypatch.setattr(soak, "hold_still", lambda _seconds: None)
    monkeypatch.setattr(soak, "owners_in_turn", lambda _testbed, _service: True)


def violation(cluster=None, fault=None, observer=None, outage=0.0, lost=(), answers=True):
    """Inject one fault, and return the violation; "" if there is none."""
    workload = Workload(Client(outage), lambda: answers, lambda: "1 entry", lambda: list(lost), 5.0)
    one = Soak(
        cluster or Cluster(),
        1,
        [fault or Fault("fault", 10.0, 0.0)],
        [observer or Observer()],
        {"alpha": workload},
        0.3,
    )
    try:
        one.run(0.01)
    except Violation as found:
        return str(found)
    return ""


def harmless(**more):
    """Return a fault that justifies no fence and no reset."""
    return Fault("fault", 10.0, 0.0, harmless_below=ANY_DURATION, **more)


BOTH = ("n1", "n2")


@pytest.mark.parametrize(
    ("cluster", "fault", "wrong"),
    [
        ({}, harmless(), ""),
        ({"fenced": BOTH}, Fault("fault", 10.0, 0.0), "fenced ["),
        ({"fenced": BOTH}, harmless(), "fenced ['n1', 'n2'], although no fault justifies it"),
        ({"fenced": BOTH}, Fault("fault", 10.0, 0.0, reach=Reach.STORAGE), "fenced ['n1', 'n2']"),
        ({"fenced": BOTH}, Fault("fault", 10.0, 0.0, reach=Reach.SITE), ""),
        ({"restarted": BOTH}, harmless(), "restarted ['n1', 'n2'], although no fault justifies it"),
        ({"restarted": BOTH}, Fault("fault", 10.0, 0.0), "although no fault justifies it"),
        ({"restarted": BOTH}, Fault("fault", 10.0, 0.0, reach=Reach.STORAGE), ""),
        ({"restarted": BOTH}, harmless(reach=Reach.STORAGE), "restarted ['n1', 'n2']"),
        ({"restarted": BOTH}, Fault("fault", 10.0, 0.0, reach=Reach.SITE), ""),
    ],
)
def test_only_a_node_that_a_fault_hit_may_be_fenced_or_reset(cluster, fault, wrong):
    found = violation(Cluster(**cluster), fault)
    assert wrong in found
    assert bool(wrong) == bool(found)


def test_a_node_that_was_hit_may_be_fenced_and_no_other():
    hit = []
    fault = Fault("fault", 10.0, 0.0, lambda _deployment, node: hit.append(node.name))
    cluster = Cluster()
    cluster.status = lambda: {
        "events": [{"kind": "fence", "node": name, "at": time.time()} for name in hit[-1:]]
    }
    assert violation(cluster, fault) == ""


def test_a_proof_of_death_that_the_cluster_calls_false_is_a_violation():
    cluster = Cluster()
    cluster.status = lambda: {
        "events": [{"kind": "contradiction", "node": "n2", "at": time.time()}]
    }
    found = violation(cluster, Fault("fault", 10.0, 0.0, reach=Reach.SITE))
    assert "['n2'] said to be alive, although confirmed dead" in found


@pytest.mark.parametrize(
    ("fault", "outage", "wrong"),
    [
        (harmless(), 14.0, ""),
        (harmless(), 16.0, "alpha did not answer for 16.0 s"),
        (harmless(delayed=True), 16.0, "alpha did not answer for 16.0 s"),
    ],
)
def test_an_outage_may_be_as_long_as_the_fault_explains(fault, outage, wrong):
    found = violation(fault=fault, outage=outage)
    assert wrong in found
    assert bool(wrong) == bool(found)


def test_a_delayed_fault_explains_an_outage_during_the_next_one():
    one = Soak(Cluster(), 1, [harmless(delayed=True)], [], {}, 0.3)
    one._delayed = [(harmless(), time.time() + 60.0)]
    one._workloads = {"alpha": Workload(Client(16.0), lambda: True, str, list)}
    one._judge_outages(Turn(2, harmless(), None, 0.0, time.time(), {}))


def test_a_service_on_two_nodes_is_a_violation_and_so_is_a_blind_observer():
    twice, blind = Observer(), Observer()
    twice.overlaps = ["alpha on n1 and n2"]
    blind.observations = 0
    assert "active on several nodes at once: alpha on n1 and n2" in violation(observer=twice)
    assert "has not observed anything" in violation(observer=blind)


def test_a_ledger_with_two_owners_at_a_time_is_a_violation(monkeypatch):
    monkeypatch.setattr(soak, "owners_in_turn", lambda _testbed, service: service != "beta")
    assert "the ledger of beta had two owners at a time" in violation()


def test_a_lost_acknowledged_entry_is_a_violation():
    assert violation(lost=["entry 7"]) == "alpha lost acknowledged entries: ['entry 7']"


def test_a_service_that_does_not_come_back_is_a_violation():
    assert "not healthy again: not within 0 s: an answer of alpha" in violation(answers=False)


def reinstall(monkeypatch, services=(), status=0):
    """Reinstall a node whose services stay *services*; return the violation and the steps."""
    done = []
    cluster = Cluster()
    for node in cluster.testbed.nodes.values():
        for act in ("cut_power", "reinstall", "switch_on", "wait_booted"):
            setattr(node, act, lambda act=act: done.append(act))
    nodes = {name: {"services": services} for name in cluster.testbed.nodes}
    cluster.status = lambda: {"events": [], "nodes": nodes}
    cluster.play = lambda playbook: (
        done.append(playbook) or SimpleNamespace(status=status, output="no")
    )
    monkeypatch.setattr(faults, "install_program", lambda _node: done.append("program"))
    fault = faults.reinstalled(0.1, lambda _deployment, _node: done.append("storage"))
    return violation(cluster, fault), done


def test_a_node_with_a_blank_disk_is_deployed_to_once_it_has_no_service(monkeypatch):
    wrong, done = reinstall(monkeypatch)
    assert wrong == ""
    off, on = ["cut_power", "reinstall"], ["switch_on", "wait_booted"]
    assert done[:7] == [*off, *on, "storage", "program", "deploy"]
    wrong, done = reinstall(monkeypatch, services=("alpha",))
    assert "without a service" in wrong
    assert done == off


def test_a_deploy_that_fails_after_a_reinstallation_is_a_violation(monkeypatch):
    wrong, _done = reinstall(monkeypatch, status=2)
    assert "deploy failed after a reinstallation: no" in wrong


def test_a_soak_injects_only_the_selected_faults_and_refuses_if_there_are_none():
    *possible, path = (Fault(name, 10.0, 0.0) for name in ("power cut", "reset", "one path lost"))
    parser = argparse.ArgumentParser()
    soak.add_options(parser, [*possible, path])
    assert soak.select(possible, parser.parse_args([])) == possible
    only = parser.parse_args(["--only", "reset"])
    assert soak.select(possible, only) == [possible[1]]
    assert parser.parse_args(soak.as_arguments(only)) == only
    with pytest.raises(SystemExit, match="one path lost"):
        soak.select(possible, parser.parse_args(["--only", "one path lost"]))
