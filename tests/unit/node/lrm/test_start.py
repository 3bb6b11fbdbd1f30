# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An LRM that starts goes on from what the last one left, and waits for its storage."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.jobs import (
    JobKind,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (
    Timing,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    LocalService,
    LocalState,
    Report,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    NodeState,
    NodeStatus,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.states import (
    ServiceState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import (
    FormatError,
    NoAnswerError,
    StorageError,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node import (
    configuration as node_configuration,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.configuration import (
    LRM,
    SANLOCK,
    SanlockSettings,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon import lrm
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.lrm import (
    START_WAIT,
    LocalDaemon,
    storage_with_own_record,
)
from ansible_collections.holdfast.ha.tests.unit.cluster.samples import verified_off
from ansible_collections.holdfast.ha.tests.unit.node.lrm.lrm_daemon import (
    LOST,
    ON_SANLOCK,
    RUNS,
    WEB,
    Daemon,
    WorkersStandIn,
    kinds,
    reports,
)
from ansible_collections.holdfast.ha.tests.unit.node.sample_node import (
    HOST,
    Clock,
    configuration,
    create_storage,
    datagram,
)
from ansible_collections.holdfast.ha.tests.unit.node.stand_ins import (
    StorageStandIn,
)


@pytest.mark.parametrize(
    ("backend", "seconds"),
    [
        ({}, 0),
        ({"backend": SANLOCK, "sanlock": SanlockSettings(watchdog_timeout=10)}, 10),
        ({"backend": SANLOCK, "sanlock": SanlockSettings(watchdog_timeout=0)}, 0),
    ],
    ids=["embedded", "sanlock", "sanlock without a watchdog"],
)
def test_the_first_report_of_an_lrm_says_after_how_long_its_watchdog_acts(
    tmp_path, monkeypatch, backend, seconds
):
    monkeypatch.setattr(node_configuration, "RUN_DIRECTORY", tmp_path / "run")
    daemon = Daemon(tmp_path, last=Report("n1", watchdog_timeout=60), **backend)
    (report,) = reports(daemon.round())
    assert report.watchdog_timeout == seconds


@pytest.mark.parametrize(
    ("status", "stops"),
    [
        (NodeStatus(NodeState.OFF, boot="n1-boot1", proof=verified_off("fenced")), True),
        (NodeStatus(NodeState.FENCE, boot="n1-boot1", proof=verified_off("fenced")), True),
        (NodeStatus(NodeState.FENCE, boot="n1-boot1"), False),
        (NodeStatus(NodeState.SUSPECT, boot="n1-boot1"), False),
        (NodeStatus(NodeState.OFF, boot="n1-boot0", proof=verified_off("fenced")), False),
    ],
)
def test_a_node_whose_present_start_was_proved_dead_stops_all_it_runs(daemon, status, stops):
    daemon.run_web()
    daemon.command(ServiceState.STARTED)
    daemon.round()
    daemon.storage.state = replace(daemon.storage.state, nodes={"n1": status})
    assert ("stop" in kinds(daemon.round())) is stops
    assert ("node dead: fenced" in daemon.daemon._start_obstacle()) is stops


@pytest.mark.parametrize("virtual", ["", "kvm", None])
def test_the_first_report_of_an_lrm_says_whether_its_node_is_a_virtual_machine(
    tmp_path, monkeypatch, virtual
):
    monkeypatch.setattr(lrm, "virtual_machine", lambda configuration: virtual)
    daemon = Daemon(tmp_path, last=Report("n1", virtual="xen"))
    (report,) = reports(daemon.round())
    assert report.virtual == virtual


def test_what_a_predecessor_left_is_probed_before_anything_else_is_done_with_it(tmp_path):
    local = LocalService(WEB, LocalState.RUNNING, "7.1")
    last = Report("n1", "n1-boot1", 7, 1, 3, services={"web": local})
    daemon = Daemon(tmp_path, last)
    daemon.command(ServiceState.REQUEST_STOP, uid="7.2", commands=2)
    assert kinds(daemon.round()) == ["report", JobKind.PROBE.value]
    daemon.workers.end()
    assert kinds(daemon.round()) == ["report", "stop"]


def test_a_report_of_its_own_that_is_damaged_is_not_taken_for_an_empty_one(tmp_path):
    with pytest.raises(FormatError, match="no copy is whole"):
        Daemon(tmp_path, FormatError("no copy is whole"))


def test_services_of_a_predecessor_run_on_while_the_host_lease_cannot_be_looked_at(tmp_path):
    daemon = Daemon(tmp_path, RUNS, NoAnswerError("sanlock hangs"), **ON_SANLOCK)
    assert [daemon.round() for _turn in range(4)] == [[], [], [], []]
    daemon.storage.host_lease = 4
    assert kinds(daemon.round(1.0)) == ["report", "probe"]


def test_services_of_a_predecessor_are_stopped_when_there_is_no_host_lease(tmp_path):
    daemon = Daemon(tmp_path, RUNS, LOST, **ON_SANLOCK)
    assert kinds(daemon.round()) == ["probe"]
    daemon.workers.end()
    assert kinds(daemon.round()) == ["stop"]
    assert daemon.storage.leases.disarmed == 0


@pytest.mark.parametrize(
    ("state", "ran"),
    [
        (LocalState.RUNNING, True),
        (LocalState.UNKNOWN, True),
        (LocalState.STOPPING, True),
        (LocalState.MIGRATING, True),
        (LocalState.BLOCKED, True),
        (LocalState.STARTING, False),
        (LocalState.STOPPED, False),
        (LocalState.FAILED, False),
    ],
)
def test_workers_are_told_what_a_predecessor_saw_running_here(tmp_path, state, ran):
    daemon = Daemon(tmp_path, replace(RUNS, services={"web": LocalService(WEB, state)}))
    assert daemon.daemon._ran_here("web") is ran
    assert not daemon.daemon._ran_here("other")


def test_an_lrm_waits_at_its_start_for_a_storage_that_is_late_and_says_so_once(tmp_path, capfd):
    create_storage(tmp_path)
    node, clock, late = configuration(tmp_path), Clock(), tmp_path / "late"
    node.state_path.rename(late)

    def pause(seconds):
        clock.go(seconds)
        if clock.now >= 1005.0 and late.exists():
            late.rename(node.state_path)

    storage = storage_with_own_record(node, clock, pause)
    assert storage.read_report(node.me.host_id) is None
    assert clock.now == 1005.0
    assert capfd.readouterr().err.count("waits for the storage") == 1
    node.state_path.unlink()
    with pytest.raises(StorageError):
        storage_with_own_record(node, clock, clock.go)
    assert clock.now == 1005.0 + START_WAIT


def test_an_lrm_without_storage_ends_twice_before_its_node_would_be_fenced():
    # With each start systemd tries to mount the storage again.
    assert Timing().daemon_grace > 2 * START_WAIT


def test_a_node_is_answered_for_while_its_lrm_waits_at_its_start_for_the_storage(
    tmp_path, monkeypatch, port, n2
):
    answers = []

    def wait(node, _clock):
        n2.sendto(datagram("ask"), (HOST, node.me.at(LRM)[1]))
        answers.append(n2.recv(512))
        return StorageStandIn()

    monkeypatch.setattr(lrm, "storage_with_own_record", wait)
    daemon = LocalDaemon(configuration(tmp_path, first_port=port - 3), workers=WorkersStandIn([]))
    daemon._network.close()
    assert b'"answer"' in answers[0]


def test_workers_are_told_what_was_left_to_its_operator_here(tmp_path):
    daemon = Daemon(tmp_path, replace(RUNS, services={}, left=("web",)))
    assert daemon.daemon._ran_here("web")
    assert not daemon.daemon._ran_here("other")


def test_the_report_says_what_room_the_node_has(tmp_path, monkeypatch):
    monkeypatch.setattr(lrm, "node_room", lambda: (4.0, 2048.0))
    daemon = Daemon(tmp_path)
    assert [one.room for one in reports(daemon.round())] == [(4.0, 2048.0)]


def test_the_next_lrm_goes_on_from_the_local_copy_where_the_storage_went_back(tmp_path):
    first = Daemon(tmp_path)
    first.run_web()
    kept = first.daemon._lrm.report
    again = Daemon(tmp_path, last=None)
    assert again.daemon._lrm.report.services["web"].uid == kept.services["web"].uid
    assert (again.daemon._lrm.report.epoch, again.daemon._lrm.report.commands) == (7, 1)
    assert again.storage.after >= 1
    damaged = Daemon(tmp_path, last=FormatError("no copy is whole"))
    assert damaged.daemon._lrm.report.services.keys() == {"web"}


def test_without_a_local_copy_a_damaged_record_is_an_error(tmp_path):
    with pytest.raises(FormatError):
        Daemon(tmp_path, last=FormatError("no copy is whole"))


def test_the_agents_that_the_last_lrm_left_are_ended_before_its_report_is_read(
    tmp_path, monkeypatch
):
    done = []
    read_report = StorageStandIn.read_report

    def read(*arguments):
        done.append("report")
        return read_report(*arguments)

    monkeypatch.setattr(lrm, "end_leftover_agents", lambda configuration: done.append("agents"))
    monkeypatch.setattr(StorageStandIn, "read_report", read)
    Daemon(tmp_path)
    assert done[:2] == ["agents", "report"]
