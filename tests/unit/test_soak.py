# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A soak ends at the first thing that must never be so, and only then."""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from testbed import soak
from testbed.soak import ALWAYS, Fault, Reach, Soak, Workload, Wrong


class Client(nullcontext):
    """A client that always has just got a confirmation, and waited for one as long as is said."""

    def __init__(self, silent=0.0):
        super().__init__()
        self.silent = silent

    last = property(lambda self: time.monotonic() + 1.0)
    longest = property(lambda self: self.silent, lambda self, _value: None)


class Watcher(nullcontext):
    def __init__(self):
        super().__init__()
        self.looks, self.twice = 1, []


class Cluster:
    """Two nodes, of which those in *fenced* are fenced and those in *restarted* restarted."""

    def __init__(self, fenced=(), restarted=()):
        self.fenced, self.restarted, self.boots = fenced, restarted, 0
        nodes = {name: self._node(name) for name in ("n1", "n2")}
        self.testbed = SimpleNamespace(nodes=nodes)

    def _node(self, name):
        def boot_id():
            self.boots += 1
            return self.boots if name in self.restarted else 1

        return SimpleNamespace(name=name, is_on=True, boot_id=boot_id)

    def wait_whole(self, _timeout=0.0):
        return {}

    def status(self):
        events = [{"kind": "fence", "node": name, "at": time.time()} for name in self.fenced]
        return {"events": events}


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(soak, "REST", (0.0, 0.0))
    monkeypatch.setattr(soak, "hold_still", lambda _seconds: None)
    monkeypatch.setattr(soak, "owners_in_turn", lambda _testbed, _service: True)


def played(cluster=None, fault=None, watcher=None, silent=0.0, lost=(), answers=True):
    """Play one fault, and return what was wrong; "" if nothing was."""
    workload = Workload(Client(silent), lambda: answers, lambda: "1 entry", lambda: list(lost), 5.0)
    one = Soak(
        cluster or Cluster(),
        1,
        [fault or Fault("fault", 10.0, 0.0)],
        [watcher or Watcher()],
        {"alpha": workload},
        0.3,
    )
    try:
        one.run(0.01)
    except Wrong as wrong:
        return str(wrong)
    return ""


def brief(**more):
    """Return a fault that lasts less than it takes to be a reason for a fence."""
    return Fault("fault", 10.0, 0.0, harmless=ALWAYS, **more)


BOTH = ("n1", "n2")


@pytest.mark.parametrize(
    ("cluster", "fault", "wrong"),
    [
        ({}, brief(), ""),
        ({"fenced": BOTH}, Fault("fault", 10.0, 0.0), "to which nothing was done"),
        ({"fenced": BOTH}, brief(), "fenced ['n1', 'n2'], to which nothing was done"),
        ({"fenced": BOTH}, Fault("fault", 10.0, 0.0, reach=Reach.STORAGE), "fenced ['n1', 'n2']"),
        ({"fenced": BOTH}, Fault("fault", 10.0, 0.0, reach=Reach.SITE), ""),
        ({"restarted": BOTH}, brief(), "restarted ['n1', 'n2'], which were well"),
        ({"restarted": BOTH}, Fault("fault", 10.0, 0.0), "which were well"),
        ({"restarted": BOTH}, Fault("fault", 10.0, 0.0, reach=Reach.STORAGE), ""),
        ({"restarted": BOTH}, brief(reach=Reach.STORAGE), "restarted ['n1', 'n2']"),
        ({"restarted": BOTH}, Fault("fault", 10.0, 0.0, reach=Reach.SITE), ""),
    ],
)
def test_only_nodes_to_which_something_was_done_may_be_fenced_or_reset(cluster, fault, wrong):
    found = played(Cluster(**cluster), fault)
    assert wrong in found
    assert bool(wrong) == bool(found)


def test_a_node_that_was_hit_may_be_fenced_and_no_other():
    hit = []
    fault = Fault("fault", 10.0, 0.0, lambda _deployment, node: hit.append(node.name))
    cluster = Cluster()
    cluster.status = lambda: {
        "events": [{"kind": "fence", "node": name, "at": time.time()} for name in hit[-1:]]
    }
    assert played(cluster, fault) == ""


@pytest.mark.parametrize(
    ("fault", "silent", "wrong"),
    [
        (brief(), 14.0, ""),
        (brief(), 16.0, "alpha did not answer for 16.0 s"),
        (brief(smoulders=True), 16.0, "alpha did not answer for 16.0 s"),
    ],
)
def test_a_service_may_be_silent_for_as_long_as_the_fault_explains(fault, silent, wrong):
    found = played(fault=fault, silent=silent)
    assert wrong in found
    assert bool(wrong) == bool(found)


def test_what_smoulders_explains_the_silence_of_the_fault_after_it():
    one = Soak(Cluster(), 1, [brief(smoulders=True)], [], {}, 0.3)
    one._smouldering = [(brief(), time.time() + 60.0)]
    one._workloads = {"alpha": Workload(Client(16.0), lambda: True, str, list)}
    one._judge_answers(brief(), 0.0, time.time(), "fault")


def test_a_service_that_is_seen_twice_or_that_nobody_looked_at_is_wrong():
    twice, blind = Watcher(), Watcher()
    twice.twice = ["alpha on n1 and n2"]
    blind.looks = 0
    assert "active on several nodes at once: alpha on n1 and n2" in played(watcher=twice)
    assert "nobody has looked" in played(watcher=blind)


def test_a_ledger_with_two_owners_at_a_time_is_wrong(monkeypatch):
    monkeypatch.setattr(soak, "owners_in_turn", lambda _testbed, service: service != "beta")
    assert "the ledger of beta had two owners at a time" in played()


def test_what_was_acknowledged_and_is_gone_is_wrong():
    assert played(lost=["entry 7"]) == "alpha lost what it had acknowledged: ['entry 7']"


def test_a_service_that_does_not_come_back_is_wrong():
    assert "not well again: not within 0 s: an answer of alpha" in played(answers=False)


def reinstall(monkeypatch, services=(), status=0):
    """Play the loss of a node's disk, with *services* that it keeps; return what was done."""
    done = []
    cluster = Cluster()
    for node in cluster.testbed.nodes.values():
        for act in ("cut_power", "reinstall", "switch_on", "wait_booted"):
            setattr(node, act, lambda act=act: done.append(act))
    nodes = {name: {"services": services} for name in cluster.testbed.nodes}
    cluster.status = lambda: {"events": [], "nodes": nodes}
    cluster.play = lambda playbook: (
        done.append(playbook) or SimpleNamespace(status=status, said="no")
    )
    monkeypatch.setattr(soak, "install_program", lambda _node: done.append("program"))
    fault = soak.reinstalled(0.1, lambda _deployment, _node: done.append("storage"))
    return played(cluster, fault), done


def test_a_node_with_a_blank_disk_is_deployed_to_once_it_has_no_service(monkeypatch):
    wrong, done = reinstall(monkeypatch)
    assert wrong == ""
    off, on = ["cut_power", "reinstall"], ["switch_on", "wait_booted"]
    assert done[:7] == [*off, *on, "storage", "program", "deploy"]
    wrong, done = reinstall(monkeypatch, services=("alpha",))
    assert "has no service any more" in wrong
    assert done == off


def test_a_node_that_cannot_be_deployed_to_again_is_wrong(monkeypatch):
    wrong, _done = reinstall(monkeypatch, status=2)
    assert "could not be deployed to again: no" in wrong


def test_a_soak_does_only_what_it_is_told_and_says_if_that_is_nothing():
    *faults, path = (Fault(name, 10.0, 0.0) for name in ("power cut", "reset", "one path lost"))
    parser = argparse.ArgumentParser()
    soak.add_options(parser, [*faults, path])
    assert soak.chosen(faults, parser.parse_args([])) == faults
    only = parser.parse_args(["--only", "reset"])
    assert soak.chosen(faults, only) == [faults[1]]
    assert parser.parse_args(soak.given_again(only)) == only
    with pytest.raises(SystemExit, match="one path lost"):
        soak.chosen(faults, parser.parse_args(["--only", "one path lost"]))
