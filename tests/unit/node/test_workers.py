# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The workers: a hung agent takes one of them at most, and no end of a job is lost."""

from __future__ import annotations

import threading

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.jobs import (
    Job,
    JobEnd,
    JobKind,
    Sight,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    Outcome,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.service import (
    Resource,
    Service,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.agent_work import (
    Workers,
)

WAIT = 30.0


def job(kind, name):
    return Job(kind, Service(name, (Resource("r", "ocf:test:thing"),)))


class Bench:
    """Workers whose jobs wait until a test lets them end."""

    def __init__(self, number):
        self.begun = []
        self.begins = threading.Semaphore(0)
        self.wakes = threading.Semaphore(0)
        self.gates = {}
        self.workers = Workers(self.carry_out, self.wakes.release, number)

    def carry_out(self, job_):
        self.begun.append((job_.kind, job_.service.id))
        self.begins.release()
        gate = self.gates.get(job_.service.id)
        if gate is not None and not gate.wait(WAIT):
            raise RuntimeError("nobody let it end")
        if job_.service.id == "bad":
            raise RuntimeError("it broke")
        return JobEnd(job_, text="done")

    def hang(self, name):
        """Let jobs of this service hang until ``gates[name].set()``."""
        self.gates[name] = threading.Event()

    def wait_begun(self):
        assert self.begins.acquire(timeout=WAIT)

    def wait_ended(self, number=1):
        for _turn in range(number):
            assert self.wakes.acquire(timeout=WAIT)


@pytest.fixture
def bench():
    made = []

    def make(number):
        made.append(Bench(number))
        return made[-1]

    yield make
    for one in made:
        for gate in one.gates.values():
            gate.set()


def test_a_worker_that_fails_blocks_its_service_and_goes_on(bench):
    found = bench(1)
    found.workers.begin(job(JobKind.START, "bad"))
    found.workers.begin(job(JobKind.START, "good"))
    found.wait_ended(2)
    bad, good = found.workers.take_ended()
    assert (bad.outcome, bad.sight) == (Outcome.BLOCKED, Sight.PARTLY)
    assert bad.text == "the worker failed: RuntimeError('it broke')"
    assert (good.outcome, good.text) == (Outcome.OK, "done")


def test_a_hung_agent_holds_up_no_other_service(bench):
    found = bench(2)
    found.hang("hung")
    found.workers.begin(job(JobKind.START, "hung"))
    found.wait_begun()
    for name in ("a", "b", "c"):
        found.workers.begin(job(JobKind.START, name))
    found.wait_ended(3)
    assert {end.job.service.id for end in found.workers.take_ended()} == {"a", "b", "c"}
    assert found.workers.busy() == {"hung"}


def test_starts_and_stops_go_before_monitors_and_probes_and_otherwise_in_order(bench):
    found = bench(1)
    found.hang("first")
    found.workers.begin(job(JobKind.MONITOR, "first"))
    found.wait_begun()
    later = [
        (JobKind.MONITOR, "m"),
        (JobKind.PROBE, "p"),
        (JobKind.START, "s"),
        (JobKind.STOP, "t"),
        (JobKind.RESTART, "r"),
    ]
    for kind, name in later:
        found.workers.begin(job(kind, name))
    found.gates["first"].set()
    found.wait_ended(6)
    assert found.begun[1:] == [later[2], later[3], later[4], later[0], later[1]]


def test_a_service_is_busy_until_the_end_of_its_job_was_taken(bench):
    found = bench(1)
    assert found.workers.busy() == frozenset()
    found.hang("a")
    found.workers.begin(job(JobKind.START, "a"))
    assert found.workers.busy() == {"a"}
    found.wait_begun()
    assert found.workers.take_ended() == []
    found.gates["a"].set()
    found.wait_ended()
    assert found.workers.busy() == {"a"}
    assert [end.text for end in found.workers.take_ended()] == ["done"]
    assert found.workers.busy() == frozenset()
    assert found.workers.take_ended() == []


def test_more_workers_begin_at_once_and_too_many_end_after_what_they_have_in_hand(bench):
    found = bench(1)
    for name in ("a", "b", "c"):
        found.hang(name)
        found.workers.begin(job(JobKind.START, name))
    found.wait_begun()
    found.workers.resize(3)
    found.wait_begun()
    found.wait_begun()
    found.workers.resize(1)
    for name in ("a", "b", "c"):
        found.gates[name].set()
    found.wait_ended(3)
    found.hang("d")
    found.workers.begin(job(JobKind.START, "d"))
    found.wait_begun()
    found.workers.begin(job(JobKind.START, "e"))
    assert not found.begins.acquire(timeout=0.2)
    found.gates["d"].set()
    found.wait_ended(2)
