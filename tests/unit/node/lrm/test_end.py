# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An LRM that is told to end says why first, and ends once its services have."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.lrm.step import (
    FREEZE_WAIT,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.jobs import (
    Sight,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    Mode,
    Report,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon import lrm
from ansible_collections.holdfast.ha.tests.unit.node.lrm.lrm_daemon import (
    Daemon,
    blocks,
    kinds,
    reports,
)


@pytest.mark.parametrize(("services", "coming", "bound"), [({}, (), False), ({}, ("web",), True)])
def test_a_node_is_bound_to_its_lrm_while_a_service_comes_to_it_live(
    tmp_path, services, coming, bound
):
    told = []
    supervision = SimpleNamespace(ready=lambda: None, alive=told.append)
    last = Report("n1", boot="n1-boot1", services=services, coming=coming)
    daemon = Daemon(tmp_path, last=last, supervision=supervision)
    daemon.network.listen = lambda seconds: (True, daemon.daemon._on_term() or set())
    daemon.daemon._on_term()
    daemon.daemon.run()
    assert told == [bound]


@pytest.mark.parametrize("why", ["reboot", "poweroff", "restart"])
def test_an_lrm_that_is_told_to_end_says_so_before_it_does_anything_else(daemon, monkeypatch, why):
    monkeypatch.setattr(lrm, "why_ending", lambda *_rest: why)
    daemon.run_web()
    daemon.daemon._on_term()
    (said,) = reports(daemon.round())
    assert said.mode is {"poweroff": Mode.SHUTDOWN}.get(why, Mode.RESTART)
    assert ("stop" in kinds(daemon.round())) == (why != "restart")
    assert not daemon.daemon._lrm.ends


def test_an_lrm_ends_once_its_services_have_stopped_or_when_it_is_told_twice(daemon, monkeypatch):
    monkeypatch.setattr(lrm, "why_ending", lambda *_rest: "poweroff")
    daemon.run_web()
    daemon.daemon._on_term()
    daemon.round()
    daemon.round()
    daemon.workers.end(sight=Sight.STOPPED)
    daemon.round()
    assert daemon.daemon._lrm.ends
    daemon.daemon._lrm.ends = False
    daemon.daemon._on_term()
    daemon.round()
    assert daemon.daemon._lrm.ends


def test_a_node_whose_daemons_alone_are_restarted_has_not_stopped(daemon, monkeypatch):
    monkeypatch.setattr(lrm, "why_ending", lambda *_rest: "restart")
    daemon.round()
    daemon.daemon._on_term()
    daemon.round(1.0)
    assert daemon.daemon._lrm.ends
    assert not any(one.stopped for one in blocks(daemon))


def test_an_lrm_that_alone_is_started_anew_waits_for_a_manager_only_for_a_while(
    daemon, monkeypatch
):
    monkeypatch.setattr(lrm, "why_ending", lambda *_rest: "restart")
    daemon.run_web()
    daemon.daemon._on_term()
    daemon.round()
    daemon.round(FREEZE_WAIT - 2.0)
    assert not daemon.daemon._lrm.ends
    daemon.round(2.0)
    assert daemon.daemon._lrm.ends
    assert "stop" not in kinds(daemon.storage.log)


def test_an_lrm_asks_again_why_it_is_to_end_while_nobody_says(daemon, monkeypatch):
    answers = ["", "", "poweroff"]
    monkeypatch.setattr(lrm, "why_ending", lambda _configuration, tried: answers[tried - 1])
    daemon.run_web()
    daemon.daemon._on_term()
    said = []
    for _turn in range(4):
        said += [one.mode for one in reports(daemon.round())]
    assert (said[:1], daemon.daemon._lrm.ends) == ([Mode.SHUTDOWN], False)
