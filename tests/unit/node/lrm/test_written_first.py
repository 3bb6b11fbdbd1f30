# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an LRM begins stands on the storage first, and is begun once, whatever fails meanwhile."""

from __future__ import annotations

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.lrm.cycle import (
    OWN_LOOK,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.jobs import (
    Sight,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    WRITTEN_AGAIN,
    LocalState,
    Outcome,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.states import (
    ServiceState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import (
    LeaseError,
    StorageError,
)
from ansible_collections.holdfast.ha.tests.unit.node.lrm.lrm_daemon import (
    UNREADABLE,
    kinds,
    reports,
)


@pytest.mark.parametrize("error", [StorageError("no answer"), LeaseError("a later epoch")])
def test_nothing_is_begun_that_could_not_be_written(daemon, error):
    daemon.command(ServiceState.REQUEST_START)
    daemon.storage.write_error = error
    assert [daemon.round(), daemon.round()] == [[], []]
    daemon.storage.write_error = None
    log = daemon.round()
    assert kinds(log) == ["report", "start"]
    assert log[0][1].accepted == {"7.1": "web"}


def test_a_command_is_begun_once(daemon):
    daemon.run_web()
    assert daemon.workers.jobs == {}
    assert [daemon.round() for _turn in range(3)] == [[], [], []]


def test_a_service_is_not_looked_at_again_while_a_look_at_it_is_under_way(daemon):
    daemon.run_web()
    daemon.command(ServiceState.STARTED)
    assert ("monitor", "web") in daemon.round(1001.0)
    assert ("monitor", "web") not in daemon.round(1001.0)
    daemon.workers.end()
    assert ("monitor", "web") not in daemon.round()
    assert ("monitor", "web") in daemon.round(1001.0)


def test_the_end_of_a_job_is_not_lost_while_it_cannot_be_written(daemon):
    daemon.command(ServiceState.REQUEST_START)
    daemon.round()
    daemon.workers.end(Outcome.FAILED, text="the port is taken")
    daemon.storage.write_error = StorageError("no answer")
    assert [daemon.round(), daemon.round()] == [[], []]
    daemon.storage.write_error = None
    (report,) = reports(daemon.round())
    assert report.results["7.1"].outcome is Outcome.FAILED
    assert report.results["7.1"].text == "the port is taken"


def test_the_end_of_a_job_counts_once(daemon):
    daemon.run_web()
    daemon.command(ServiceState.REQUEST_STOP, uid="7.2", commands=2)
    assert kinds(daemon.round()) == ["report", "stop"]
    assert [daemon.round(), daemon.round()] == [[], []]
    assert daemon.daemon._lrm.report.services["web"].state is LocalState.STOPPING


def test_a_report_is_written_only_when_it_changed_and_the_manager_is_told_then(daemon):
    daemon.command(ServiceState.REQUEST_STOP)
    daemon.run_web()
    manager = daemon.configuration.members["n2"]
    assert set(daemon.network.hints) == {(manager.address, manager.port + 2)}
    told = len(daemon.network.hints)
    assert daemon.round() == []
    assert len(daemon.network.hints) == told


def test_a_report_that_nothing_changes_is_written_again_now_and_then_as_it_may_be_damaged(daemon):
    (written,) = reports(daemon.round())
    assert daemon.round(WRITTEN_AGAIN - 1.0) == []
    assert daemon.round(1.0) == [("report", written)]
    assert daemon.round(1.0) == []


def test_looks_at_a_service_that_runs_well_are_not_logged_and_those_that_find_it_failed_are(
    daemon, capsys
):
    daemon.run_web()
    capsys.readouterr()
    daemon.round(seconds=1000.0)
    daemon.workers.end(sight=Sight.RUNNING)
    daemon.round()
    assert "monitor web" not in capsys.readouterr().err
    daemon.round(seconds=1000.0)
    daemon.workers.end(sight=Sight.STOPPED, text="r: 7 (not running)")
    daemon.round()
    assert "monitor web 7.1: ok, r: 7 (not running)" in capsys.readouterr().err


def test_an_own_record_that_is_not_as_it_was_written_is_written_again(daemon):
    daemon.round()
    assert reports(daemon.round(OWN_LOOK + 1)) == []
    daemon.storage.stands = False
    assert len(reports(daemon.round(OWN_LOOK + 1))) == 1
    daemon.storage.stands = UNREADABLE
    assert reports(daemon.round(OWN_LOOK + 1)) == []


def test_a_full_local_disk_keeps_no_node_from_its_work(daemon, monkeypatch):
    def full(*_arguments):
        raise StorageError("no space is left")

    monkeypatch.setattr(daemon.daemon._kept, "write", full)
    daemon.command(ServiceState.REQUEST_START)
    daemon.round()
    assert daemon.workers.jobs.keys() == {"web"}
