# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nothing is started, and in the end all is stopped, without a host lease that was seen renewed."""

from __future__ import annotations

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.jobs import (
    Sight,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (
    HostState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    LocalState,
    Outcome,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.states import (
    ServiceState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import (
    StorageError,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.configuration import (
    SANLOCK,
)
from ansible_collections.holdfast.ha.tests.unit.node.lrm.lrm_daemon import (
    LOST,
    ON_ONE_COMPUTER,
    ON_SANLOCK,
    UNREADABLE,
    Daemon,
    kinds,
)
from ansible_collections.holdfast.ha.tests.unit.node.stand_ins import (
    lease_view,
)

LEASE_TROUBLE = [
    (lease_view(1, state=HostState.FAIL, unchanged_for=16.0), "was not renewed for 16 s"),
    (lease_view(1, state=HostState.DEAD, unchanged_for=30.0), "was not renewed for 30 s"),
    (lease_view(1, state=HostState.FREE), "is no longer that of this start (generation 4)"),
    (lease_view(1, generation=5), "is no longer that of this start (generation 4)"),
]


@pytest.mark.parametrize(("view", "reason"), LEASE_TROUBLE)
@pytest.mark.parametrize("error", [None, StorageError("no answer")], ids=["writes", "cannot write"])
def test_without_a_host_lease_services_are_stopped_even_if_that_cannot_be_written(
    daemon, view, reason, error
):
    daemon.run_web()
    daemon.storage.leases.views[1] = view
    daemon.storage.write_error = error
    log = daemon.round()
    assert kinds(log) == (["stop"] if error else ["report", "stop"])
    assert reason in daemon.workers.jobs["web"].reason
    daemon.workers.end(Outcome.OK, Sight.STOPPED)
    assert kinds(daemon.round()) == ([] if error else ["report"])
    daemon.storage.write_error = None
    daemon.round()
    (report,) = [daemon.daemon._lrm.written]
    assert (report.services["web"].state, report.lease_lost) == (LocalState.STOPPED, True)


@pytest.mark.parametrize(("view", "reason"), LEASE_TROUBLE)
def test_without_a_host_lease_nothing_is_started(daemon, view, reason):
    daemon.storage.leases.views[1] = view
    daemon.command(ServiceState.REQUEST_START)
    assert not {"start"} & set(kinds(daemon.round() + daemon.round()))
    assert reason in daemon.daemon._start_obstacle()


def test_a_storage_that_cannot_be_read_stops_services_only_after_the_fail_time(daemon):
    daemon.run_web()
    renewed = daemon.clock.now - lease_view(1).unchanged_for
    daemon.storage.leases.views[1] = UNREADABLE
    daemon.storage.state = UNREADABLE
    daemon.storage.write_error = UNREADABLE
    stops = []
    while not stops:
        stops = [row for row in daemon.round() if row[0] == "stop"]
        seconds = daemon.clock.now - renewed
        assert bool(stops) == (seconds >= daemon.storage.leases.fail_seconds)
    assert (
        "was not observed to be renewed for 16 s: the storage is gone"
        in daemon.workers.jobs["web"].reason
    )


def test_a_storage_that_comes_back_in_time_stops_nothing(daemon):
    daemon.run_web()
    for _turn in range(3):
        daemon.storage.leases.views[1] = UNREADABLE
        assert set(kinds(daemon.round(15.0))) <= {"report"}
        daemon.storage.leases.views.clear()
        assert "stop" not in kinds(daemon.round())


def test_workers_may_start_nothing_once_the_lease_was_not_seen_renewed_for_the_fail_time(daemon):
    daemon.storage.leases.views[1] = lease_view(1, unchanged_for=4.0)
    daemon.round()
    assert daemon.daemon._start_obstacle() == ""
    daemon.clock.go(11.9)
    assert daemon.daemon._start_obstacle() == ""
    daemon.clock.go(0.1)
    assert "was not observed to be renewed for 16 s" in daemon.daemon._start_obstacle()
    daemon.round(0.0)
    assert daemon.daemon._start_obstacle() == ""


@pytest.mark.parametrize(
    ("jump", "reason"),
    [
        ({"suspended": 2.0}, "this node was suspended for 2 s"),
        ({"wall_jump": 2.0}, "the wall clock of this node jumped ahead by 2 s"),
        ({"wall_jump": -3600.0}, ""),
    ],
)
def test_workers_start_nothing_after_a_jump_until_lease_and_record_were_read_again(
    daemon, jump, reason
):
    daemon.run_web()
    for name, seconds in jump.items():
        setattr(daemon, name, seconds)
    assert bool(reason) == bool(daemon.daemon._start_obstacle())
    assert reason in daemon.daemon._start_obstacle()
    daemon.storage.state, state = UNREADABLE, daemon.storage.state
    daemon.round()
    assert reason in daemon.daemon._start_obstacle()
    daemon.storage.state = state
    assert "stop" not in kinds(daemon.round())
    assert daemon.daemon._start_obstacle() == ""


def test_a_jump_in_the_middle_of_a_turn_is_known_to_the_workers_until_the_next_one(daemon):
    """The host lease was read before it, so that it may have failed since."""
    daemon.run_web()
    read_orders = daemon.storage.read_orders

    def suspended():
        daemon.suspended += 2.0
        return read_orders()

    daemon.storage.read_orders = suspended
    daemon.round()
    assert "this node was suspended for 2 s" in daemon.daemon._start_obstacle()
    daemon.storage.read_orders = read_orders
    daemon.round()
    assert daemon.daemon._start_obstacle() == ""


def test_a_node_that_was_suspended_for_long_stops_its_services(tmp_path):
    daemon = Daemon(tmp_path, backend=SANLOCK, sanlock=ON_ONE_COMPUTER)
    daemon.run_web()
    daemon.suspended = 16.0
    assert "this node was suspended for 16 s" in daemon.daemon._start_obstacle()
    assert kinds(daemon.round()) == ["report", "stop"]
    assert "this node was suspended for 16 s" in daemon.workers.jobs["web"].reason
    assert "may have failed meanwhile" in daemon.daemon._start_obstacle()


def test_the_watchdog_is_disarmed_only_once_the_last_service_has_stopped(tmp_path):
    daemon = Daemon(tmp_path, **ON_SANLOCK)
    leases = daemon.storage.leases
    daemon.run_web()
    leases.renew_error = daemon.storage.host_lease = LOST
    assert kinds(daemon.round(1.0)) == ["report", "stop"]
    assert "is lost: sanlock has lost lockspace c1" in daemon.workers.jobs["web"].reason
    daemon.round()
    assert leases.disarmed == 0
    daemon.workers.end(Outcome.OK, Sight.STOPPED)
    daemon.round()
    assert leases.disarmed == 1


def test_the_watchdog_stays_armed_over_a_service_that_cannot_be_stopped(tmp_path):
    daemon = Daemon(tmp_path, **ON_SANLOCK)
    daemon.run_web()
    daemon.storage.leases.renew_error = daemon.storage.host_lease = LOST
    daemon.round(1.0)
    daemon.workers.end(Outcome.BLOCKED, Sight.PARTLY, "it does not stop")
    for _turn in range(5):
        daemon.round()
    assert daemon.storage.leases.disarmed == 0


def test_a_node_that_never_had_the_host_lease_writes_into_no_slot(tmp_path):
    """The host id may be another node's by mistake."""
    daemon = Daemon(tmp_path, None, LOST)
    for _turn in range(3):
        daemon.round(1.0)
        assert daemon.storage.log == []
    daemon.storage.host_lease = 4
    daemon.round(1.0)
    assert set(kinds(daemon.storage.log)) == {"block", "report"}


def test_a_lease_whose_next_renewal_is_in_doubt_lets_nothing_new_be_started(daemon):
    daemon.round()
    daemon.storage.leases.views[1] = UNREADABLE
    daemon.round(15.0)
    daemon.command(ServiceState.REQUEST_START)
    assert "start" not in kinds(daemon.round(0.1))
    daemon.storage.leases.views.clear()
    assert "start" in kinds(daemon.round() + daemon.round())


@pytest.mark.parametrize(("unchanged_for", "starts"), [(7.9, True), (8.0, False)])
def test_nothing_new_is_started_from_half_of_the_fail_time_without_a_renewal(
    daemon, unchanged_for, starts
):
    daemon.storage.leases.views[1] = lease_view(1, unchanged_for=unchanged_for)
    daemon.command(ServiceState.REQUEST_START)
    assert ("start" in kinds(daemon.round() + daemon.round())) is starts


def test_before_the_host_lease_is_adopted_it_counts_as_failed_after_eight_io_timeouts(daemon):
    io_timeout = daemon.configuration.sanlock.io_timeout
    assert daemon.daemon._settings().fail_seconds == 8.0 * io_timeout
