# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A service stops before the one after which it starts, and nothing waits for longer than that."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.lrm.round import (
    Memory,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.lrm.step import (
    LocalObservation,
    step,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.jobs import (
    JobKind,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.policy import (
    Policy,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    CommandResult,
    LocalService,
    LocalState,
    Mode,
    Outcome,
    Report,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    NodeState,
    NodeStatus,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.states import (
    ServiceState,
)
from ansible_collections.holdfast.ha.tests.unit.cluster.samples import (
    desired,
    service,
    started,
    state,
)

STOP, MOVE = ServiceState.REQUEST_STOP, ServiceState.RELOCATE

BASE = service("base")
MIDDLE = service("middle", after=("base",))
FRONT = service("front", after=("middle",))
DECLARED = desired(BASE, MIDDLE, FRONT, service("other"))


def runs(*services, **changes):
    """Return the report of n1, on which these services run."""
    local = {one.id: LocalService(one, LocalState.RUNNING, "7.1") for one in services}
    return Report("n1", "n1-boot1", services=local, **changes)


def stopped(report, record, desired=DECLARED, **observed):
    """Return the services whose stop begins in one turn of the LRM of n1."""
    look = LocalObservation(now=50.0, wall=1000.0, state=record, desired=desired, **observed)
    taken = step(report, Memory(), look)
    return sorted(job.service.id for job in taken.jobs if job.kind is JobKind.STOP)


def has(states, nodes=None, node="n1"):
    """Return a record; *states* has the state, or state and node, of each service."""
    services = {}
    for number, (key, value) in enumerate(states.items()):
        what, where = value if isinstance(value, tuple) else (value, node)
        services[key] = started(where, service(key), state=what, uid=f"8.{number}")
    return state(services, nodes)


@pytest.mark.parametrize("how", [STOP, MOVE])
@pytest.mark.parametrize(
    ("states", "waits"),
    [
        ({"front": STOP}, True),
        ({"front": MOVE}, True),
        ({"middle": (STOP, "n2")}, True),
        ({"front": ServiceState.MIGRATE}, True),
        ({"front": STOP, "middle": ServiceState.STARTED}, True),
        # These do not stop, or nobody knows when they do.
        ({"front": ServiceState.STARTED}, False),
        ({"front": ServiceState.STOPPED}, False),
        ({"front": ServiceState.ERROR}, False),
        ({"front": ServiceState.FREEZE}, False),
        ({"front": ServiceState.REQUEST_START}, False),
        ({"front": (STOP, "n3")}, False),
        ({"front": (ServiceState.FENCE, "n2")}, False),
        ({"front": (ServiceState.RECOVERY, "n2")}, False),
        ({"other": STOP}, False),
    ],
)
def test_a_stop_waits_for_what_starts_after_the_service_and_stops_too(how, states, waits):
    record = has({"base": how, **states}, {"n3": NodeStatus(NodeState.SUSPECT)})
    assert ("base" not in stopped(runs(BASE), record)) == waits


def test_a_result_of_the_own_node_ends_the_wait_before_the_manager_reads_it():
    record = has({"base": STOP, "front": STOP})
    report = runs(BASE, results={"8.1": CommandResult("front", Outcome.OK, "stopped")})
    assert stopped(report, record) == ["base"]


def test_a_live_migration_and_a_start_wait_for_nothing():
    record = has({"base": ServiceState.MIGRATE, "front": STOP})
    moving = replace(record.services["base"], target="n2", expected=True)
    look = LocalObservation(50.0, 1000.0, record.with_service("base", moving), DECLARED)
    jobs = [(job.kind, job.service.id) for job in step(runs(BASE), Memory(), look).jobs]
    assert (JobKind.MIGRATE, "base") in jobs


def test_services_of_a_circle_do_not_wait_for_each_other():
    """No module declares one, but a repaired record may have it."""
    circle = desired(service("base", after=("front",)), MIDDLE, FRONT)
    record = has({"base": STOP, "front": STOP})
    assert stopped(runs(BASE, FRONT), record, circle) == ["base", "front"]


def shut_down(report, **changes):
    record = state({key: started("n1", one.definition) for key, one in report.services.items()})
    desired = replace(DECLARED, policy=Policy(shutdown="failover"))
    return stopped(report, record, desired, shutdown="poweroff", **changes)


def test_a_node_that_shuts_down_stops_its_services_in_order():
    every = runs(BASE, MIDDLE, FRONT, service("other"), mode=Mode.SHUTDOWN)
    assert shut_down(every) == ["front", "other"]
    assert shut_down(runs(BASE, MIDDLE, mode=Mode.SHUTDOWN)) == ["middle"]
    # The one between them is elsewhere.
    assert shut_down(runs(BASE, FRONT, mode=Mode.SHUTDOWN)) == ["front"]


def test_what_cannot_be_stopped_keeps_up_nothing_else_on_a_node_that_shuts_down():
    report = runs(BASE, mode=Mode.SHUTDOWN)
    stuck = LocalService(FRONT, LocalState.BLOCKED, "7.1")
    assert shut_down(report.with_service("front", stuck)) == ["base"]


def test_a_node_without_its_host_lease_stops_all_at_once():
    """Another node takes over soon, whether they have stopped or not."""
    report = runs(BASE, MIDDLE, FRONT, mode=Mode.SHUTDOWN)
    assert shut_down(report, lease_trouble="was not renewed") == ["base", "front", "middle"]
