# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Records that are older than they were are not acted on: storage went back in time.

The storage is a snapshot that was restored, a replica that lagged behind, or a disk that lost
or damaged a write.  Real daemons run on it.  No service may run twice, none may be stopped or
forgotten, the status has to name the regression, and the repair has to end it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.record_format import (
    Kind,
)
from cluster import NODES, PATIENCE, EmbeddedCluster

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ansible_collections.holdfast.ha.tests.system.leases.lease_backends import needs_sanlock
from damage import records_file
from damage.regression import problems, regressions, repair, wait_named
from witness import STARTED, read_ledgers

SLOW_STOP = 8.0
"""Seconds that a stop of the service takes: long enough for another instance to start."""

BACKENDS = ["embedded", pytest.param("sanlock", marks=needs_sanlock)]
WAYS_OUT = ["running", "file"]


@pytest.fixture
def backend(request: pytest.FixtureRequest) -> str:
    """The kind of leases, embedded unless the test has it as a parameter."""
    return str(getattr(request, "param", "embedded"))


@pytest.fixture
def cluster(tmp_path: Path, backend: str) -> Iterator[EmbeddedCluster]:
    """A cluster of its own for each test, with a service that is slow to stop and another."""
    with EmbeddedCluster(tmp_path / "cluster", backend=backend) as made:
        made.wait(_is_whole, PATIENCE, "a cluster of three members with a manager")
        made.declare_witness("other")
        made.declare_witness("slow", SLOW_STOP)
        made.wait_settled()
        yield made


def _is_whole(status: dict[str, Any]) -> bool:
    return bool(
        status["manager"]["active"]
        and all(one["state"] == "online" for one in status["nodes"].values())
    )


def where(cluster: EmbeddedCluster, service: str = "slow") -> str:
    return str(cluster.status()["services"][service]["node"])


def other_than(*nodes: str) -> str:
    return next(name for name in NODES if name not in nodes)


def starts(cluster: EmbeddedCluster) -> dict[str, int]:
    """Return how often each service was started."""
    return {
        service: sum(line.word == STARTED for line in lines)
        for service, lines in read_ledgers(cluster.ledgers).items()
    }


def end_manager(cluster: EmbeddedCluster) -> str:
    """Kill the manager's CRM and return the node."""
    manager = str(cluster.status()["manager"]["node"])
    cluster.kill_daemon(manager, "crm")
    return manager


def let_another_manage(cluster: EmbeddedCluster) -> str:
    """Have another node's CRM become manager, and return that node."""
    before = str(cluster.status()["manager"]["node"])
    until = time.monotonic() + PATIENCE
    while (manager := str(cluster.status()["manager"]["node"])) in ("", before):
        assert time.monotonic() < until, f"{before} stays manager"
        if manager:
            cluster.kill_daemon(manager, "crm")
        cluster.hold_still(1.0)
    cluster.wait_settled()
    return manager


def nothing_happens(cluster: EmbeddedCluster, before: dict[str, list[str]], seconds: float) -> None:
    """Watch the services for some seconds: every one of them stays where it was."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        assert not cluster.violations(), cluster.show_ledgers()
        assert cluster.witnesses() == before, cluster.show_ledgers()
        time.sleep(0.1)


def is_repaired(cluster: EmbeddedCluster, keep: str) -> None:
    """Run the repair as an operator does: every service runs again, on one node."""
    ran = starts(cluster)
    tried = repair(cluster, keep, "--dry-run")
    assert tried.returncode in (0, 1), tried.stderr
    assert regressions(cluster), "a dry run changes nothing"
    done = repair(cluster, keep, "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    status = cluster.wait_settled()
    assert set(status["services"]) == {"other", "slow"}
    assert not cluster.violations(), cluster.show_ledgers()
    alive = cluster.witnesses()
    assert {service: len(nodes) for service, nodes in alive.items()} == {"other": 1, "slow": 1}
    for service, nodes in alive.items():
        assert status["services"][service]["state"] == "started"
        assert nodes == [status["services"][service]["node"]]
    if keep == "running":
        assert starts(cluster) == ran, "what ran was left alone"
    # From here on the cluster works as any other.
    target = other_than(where(cluster, "other"))
    cluster.move("other", target)
    assert cluster.witnesses()["other"] == [target]
    assert not cluster.violations(), cluster.show_ledgers()


@pytest.mark.parametrize("keep", WAYS_OUT)
@pytest.mark.parametrize("backend", BACKENDS, indirect=True)
def test_all_records_of_before_a_move_let_no_service_run_twice(
    cluster: EmbeddedCluster, keep: str
) -> None:
    first = where(cluster)
    taken = records_file.take(cluster.state_file, records_file.places(cluster.state_file))
    second = other_than(first)
    cluster.move("slow", second)
    cluster.wait_settled()
    before = cluster.witnesses()
    assert before["slow"] == [second]

    records_file.restore(cluster.state_file, taken)
    end_manager(cluster)

    nothing_happens(cluster, before, SLOW_STOP + 2.0)
    wait_named(cluster)
    assert cluster.witnesses() == before
    is_repaired(cluster, keep)


@pytest.mark.parametrize("keep", WAYS_OUT)
def test_a_manager_record_that_was_zeroed_lets_none_of_an_earlier_manager_count(
    cluster: EmbeddedCluster, keep: str
) -> None:
    manager = let_another_manage(cluster)
    cluster.move("slow", other_than(where(cluster)))
    cluster.wait_settled()
    assert cluster.status()["manager"]["node"] == manager
    before = cluster.witnesses()

    host_id = NODES.index(manager) + 1
    for place in records_file.places(cluster.state_file, [Kind.CRM], [host_id]):
        records_file.zero(cluster.state_file, place)
    end_manager(cluster)

    nothing_happens(cluster, before, SLOW_STOP + 2.0)
    wait_named(cluster)
    is_repaired(cluster, keep)


def test_a_flipped_bit_in_the_newest_configuration_lets_no_service_be_forgotten(
    cluster: EmbeddedCluster,
) -> None:
    before = cluster.witnesses()
    place = records_file.newest(cluster.state_file, Kind.CONFIGURATION, 1)
    assert place is not None
    assert records_file.flip_bit(cluster.state_file, place, 800, payload=True)
    end_manager(cluster)

    nothing_happens(cluster, before, SLOW_STOP + 2.0)
    wait_named(cluster)
    assert set(cluster.status()["services"]) == {"other", "slow"}
    is_repaired(cluster, "running")


@pytest.mark.parametrize("keep", WAYS_OUT)
def test_a_configuration_of_which_no_copy_is_whole_lets_no_service_be_forgotten(
    cluster: EmbeddedCluster, keep: str
) -> None:
    before = cluster.witnesses()
    for place in records_file.places(cluster.state_file, [Kind.CONFIGURATION], [1]):
        assert records_file.flip_bit(cluster.state_file, place, 800, payload=True)
    end_manager(cluster)

    nothing_happens(cluster, before, SLOW_STOP + 2.0)
    wait_named(cluster)
    assert set(cluster.status()["services"]) == {"other", "slow"}
    if keep == "running":
        is_repaired(cluster, keep)
        return
    # No service is declared in what is left of the file.
    done = repair(cluster, keep, "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    cluster.wait(
        lambda status: not status["problems"] and not any(cluster.witnesses().values()),
        PATIENCE,
        "without a problem and without services",
    )
    assert not cluster.violations(), cluster.show_ledgers()


@pytest.mark.parametrize("keep", WAYS_OUT)
def test_an_older_configuration_that_is_whole_is_not_taken_for_the_newest(
    cluster: EmbeddedCluster, keep: str
) -> None:
    taken = records_file.take(cluster.state_file, records_file.places(cluster.state_file))
    cluster.declare_resources("other", None, max_restart=4)
    cluster.declare_resources("slow", None, max_restart=4)
    cluster.wait_settled()
    before = cluster.witnesses()
    assert records_file.write_late(cluster.state_file, taken, Kind.CONFIGURATION, 1)
    # A slot has two copies; the other one may say what the newest was.
    records_file.write_late(cluster.state_file, taken, Kind.CONFIGURATION, 1)
    end_manager(cluster)

    nothing_happens(cluster, before, SLOW_STOP + 2.0)
    wait_named(cluster)
    is_repaired(cluster, keep)


def test_a_repair_at_once_keeps_what_only_the_reports_that_went_back_knew_of(
    cluster: EmbeddedCluster,
) -> None:
    taken = records_file.take(cluster.state_file, records_file.places(cluster.state_file))
    cluster.declare_witness("late")
    cluster.wait_settled()
    before, ran = cluster.witnesses(), starts(cluster)

    records_file.restore(cluster.state_file, taken)
    end_manager(cluster)
    wait_named(cluster)
    done = repair(cluster, "running", "--yes")
    assert done.returncode == 0, done.stdout + done.stderr

    status = cluster.wait_settled()
    assert set(status["services"]) == set(before)
    assert (cluster.witnesses(), starts(cluster)) == (before, ran), cluster.show_ledgers()
    assert not cluster.violations(), cluster.show_ledgers()


def test_a_report_that_went_back_is_written_again_or_named(cluster: EmbeddedCluster) -> None:
    node = where(cluster)
    host_id = NODES.index(node) + 1
    slot = records_file.places(cluster.state_file, [Kind.LRM], [host_id])
    taken = records_file.take(cluster.state_file, slot)
    second = other_than(node)
    cluster.move("slow", second)
    cluster.wait_settled()
    before = cluster.witnesses()

    records_file.restore(cluster.state_file, taken)
    cluster.kill_daemon(node, "lrm")
    end_manager(cluster)

    nothing_happens(cluster, before, SLOW_STOP + 2.0)
    cluster.wait(
        lambda _status: not problems(cluster) or regressions(cluster), PATIENCE, "named or healed"
    )
    if regressions(cluster):
        is_repaired(cluster, "running")
    cluster.wait_settled()
    assert cluster.witnesses() == before
