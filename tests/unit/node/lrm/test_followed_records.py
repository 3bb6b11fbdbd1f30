# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A record of the manager is followed only if nothing newer was acted on."""

from __future__ import annotations

from dataclasses import replace

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired import (
    DesiredState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (
    HostState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.states import (
    ServiceState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import (
    FormatError,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.heartbeat import (
    trouble_told,
)
from ansible_collections.holdfast.ha.tests.unit.node.lrm.lrm_daemon import (
    UNREADABLE,
    WEB,
    kinds,
    reports,
)
from ansible_collections.holdfast.ha.tests.unit.node.stand_ins import (
    lease_view,
)


def test_a_managers_record_that_cannot_be_read_changes_nothing_here(daemon, capsys):
    daemon.run_web()
    for error in (UNREADABLE, FormatError("no copy is whole")):
        daemon.storage.state = error
        assert daemon.round() == []
        assert f"the manager's record cannot be read: {error}" in capsys.readouterr().err


def test_what_the_last_record_said_is_not_begun_while_the_next_cannot_be_read(daemon):
    daemon.storage.leases.views[1] = lease_view(1, state=HostState.FAIL, unchanged_for=20.0)
    daemon.command(ServiceState.REQUEST_START)
    daemon.round()
    daemon.storage.leases.views.clear()
    daemon.storage.state, state = FormatError("no copy is whole"), daemon.storage.state
    assert "start" not in kinds([*daemon.round(), *daemon.round()])
    daemon.storage.state = state
    assert "start" in kinds([*daemon.round(), *daemon.round()])


def test_a_configuration_older_than_the_managers_record_starts_nothing(daemon):
    daemon.storage.desired = DesiredState(2, {"web": WEB})
    daemon.command(ServiceState.REQUEST_START)
    assert "start" not in kinds(daemon.round())
    daemon.storage.desired = DesiredState(3, {"web": WEB})
    assert "start" in kinds(daemon.round())


def test_the_configuration_is_read_once_for_all_records_that_the_manager_made_from_it(daemon):
    daemon.run_web()
    for _round in range(3):
        daemon.round()
    assert daemon.storage.asked_for_desired == [2]
    daemon.storage.desired = DesiredState(4, {})
    daemon.storage.state = replace(daemon.storage.state, config_version=4, config_slot=1)
    daemon.round()
    assert daemon.storage.asked_for_desired == [2, 1]


def test_a_new_managers_record_that_knows_less_than_was_acted_on_is_not_followed(daemon):
    daemon.run_web()
    running = daemon.daemon._lrm.report.services["web"]
    daemon.command(ServiceState.REQUEST_STOP, uid="8.1", epoch=8, commands=9)
    daemon.storage.state = replace(daemon.storage.state, base=0)
    for _turn in range(30):
        daemon.round()
    assert daemon.daemon._lrm.report.services["web"].uid == running.uid
    assert daemon.workers.jobs == {}
    told = [row[1] for row in daemon.storage.log if row[0] == "block"]
    assert "older than what n1 acted on" in trouble_told(told[-1])
    daemon.storage.state = replace(daemon.storage.state, base=1)
    daemon.round()
    assert daemon.workers.jobs["web"].kind.value == "stop"


def test_a_record_after_a_repair_is_followed_and_lowers_the_floors(daemon):
    daemon.run_web()
    daemon.command(ServiceState.REQUEST_STOP, uid="2.1", epoch=2, commands=1)
    daemon.storage.state = replace(daemon.storage.state, base=0, generation=1, config_version=1)
    daemon.storage.desired = replace(daemon.storage.desired, version=1, generation=1)
    (report, *_rest) = reports(daemon.round())
    acted_on = (report.generation, report.epoch, report.commands, report.config_version)
    assert acted_on == (1, 2, 1, 1)


def test_a_managers_record_is_not_followed_while_a_newer_one_may_be_damaged(daemon):
    daemon.command(ServiceState.REQUEST_START)
    state, daemon.storage.state = daemon.storage.state, FormatError("a newer record is damaged")
    daemon.storage.readable_manager = lambda: (state, "a newer record is damaged")
    assert "start" not in kinds([*daemon.round(), *daemon.round()])
