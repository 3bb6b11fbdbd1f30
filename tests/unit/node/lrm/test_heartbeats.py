# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A heartbeat tells the truth of its node, in time, and never beside the last boot's report."""

from __future__ import annotations

import itertools
from dataclasses import replace
from types import SimpleNamespace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.lrm.cycle import (
    OWN_LOOK,
    REPORT_FIRST,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.lrm.round import (
    HINDERED,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.lrm.step import (
    FREEZE_WAIT,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired import (
    DesiredState,
    Maintenance,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.jobs import (
    Sight,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (
    Timing,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    Report,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.states import (
    ServiceState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import (
    StorageError,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon import lrm
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.heartbeat import (
    FULL_SCORE,
    beat_of,
    report_number,
    trouble_told,
)
from ansible_collections.holdfast.ha.tests.unit.node.lrm.lrm_daemon import (
    LOST,
    UNREADABLE,
    WEB,
    Daemon,
    blocks,
    kinds,
)


def test_a_report_is_spoken_of_on_the_whiteboard_before_the_manager_is_told_to_look(daemon):
    daemon.round()
    daemon.command(ServiceState.REQUEST_START)
    hints = len(daemon.network.hints)
    daemon.round(0.1)
    assert kinds(daemon.storage.log)[:2] == ["report", "block"]
    assert report_number(daemon.storage.log[1][1]) == 1
    assert len(daemon.network.hints) > hints


def test_a_turn_on_slow_storage_shows_life_between_its_steps(tmp_path):
    """Else the supervisor ends the LRM, or the manager takes it for gone and fences the node."""
    heard = []
    supervision = SimpleNamespace(alive=lambda _bound: heard.append(daemon.clock.now))
    daemon = Daemon(tmp_path, supervision=supervision)
    daemon.round()
    del heard[:]
    for name in ("read_orders", "own_record_stands"):
        daemon.slow_down(name, 5.0)
    daemon.round(OWN_LOOK)
    beats = [beat_of(one) for one in blocks(daemon)]
    assert [later - beat for beat, later in itertools.pairwise(beats)] == [5.0, 5.0]
    assert heard[:2] == beats[1:]


def test_a_first_turn_on_slow_storage_has_no_heartbeat_before_its_report(daemon):
    daemon.slow_down("read_orders", 2 * REPORT_FIRST)
    daemon.round()
    assert kinds(daemon.storage.log) == ["report", "block"]


def test_a_node_that_can_write_no_record_says_so_on_the_whiteboard(daemon):
    daemon.round()
    daemon.command(ServiceState.REQUEST_START)
    daemon.storage.write_error = StorageError('"n1" has no room | 1 MiB')
    for seconds in (1.0, 5.0):
        daemon.round(seconds)
        assert [trouble_told(one) for one in blocks(daemon)] == [""]
    daemon.round(HINDERED)
    (block,) = blocks(daemon)
    assert trouble_told(block).endswith("as its record is not written: 'n1' has no room ' 1 MiB")
    assert block.score == 0
    daemon.storage.write_error = None
    daemon.round(1.0)
    assert trouble_told(blocks(daemon)[-1]) == ""


def test_a_node_that_cannot_read_what_it_is_told_says_so_on_the_whiteboard(daemon):
    daemon.round()
    daemon.storage.state = UNREADABLE
    for seconds in (1.0, HINDERED - 1.0):
        daemon.round(seconds)
        assert trouble_told(blocks(daemon)[-1]) == ""
    daemon.round(1.0)
    daemon.round(1.0)
    told = "its LRM does nothing, as what the manager wrote cannot be read: the storage is gone"
    assert trouble_told(blocks(daemon)[-1]) == told
    daemon.storage.state = None
    daemon.round(1.0)
    daemon.round(1.0)
    assert trouble_told(blocks(daemon)[-1]) == ""


def test_the_heartbeat_goes_on_while_all_else_on_the_storage_fails(daemon):
    daemon.round()
    first = beat_of(blocks(daemon)[-1])
    daemon.storage.write_error = daemon.storage.state = UNREADABLE
    daemon.storage.leases.views[1] = UNREADABLE
    written = []
    for _turn in range(8):
        daemon.round(Timing().heartbeat / 2)
        written += [beat_of(block) - first for block in blocks(daemon)]
    assert written == [0.5, 1.0, 1.5, 2.0]


def test_a_heartbeat_that_cannot_be_written_holds_up_nothing_and_is_tried_again(daemon, capsys):
    daemon.command(ServiceState.REQUEST_START)
    daemon.storage.board.error = StorageError("no answer")
    assert kinds(daemon.round()) == ["report", "start"]
    assert "heartbeat not written: no answer" in capsys.readouterr().err
    daemon.storage.board.error = None
    daemon.round(1.0)
    assert len(blocks(daemon)) == 1


def test_the_heartbeat_says_what_runs_here_and_whether_the_node_is_drained(daemon):
    daemon.round()
    *_first, idle = blocks(daemon)
    assert (idle.host_id, idle.host_name, idle.score) == (1, "n1", FULL_SCORE)
    health = {"vm": "down", "health": "bad", "detail": "0 services", "report": 1, "part": 25}
    assert idle.health == health
    assert (idle.maintenance, idle.stopped) == (False, False)
    daemon.run_web()
    daemon.storage.desired = DesiredState(4, {"web": WEB}, maintenance={"n1": Maintenance("disks")})
    daemon.storage.state = replace(daemon.storage.state, config_version=4)
    daemon.round(1.0)
    daemon.round(1.0)
    *_earlier, busy = blocks(daemon)
    detail = {"vm": "up", "health": "good", "detail": "1 services"}
    assert {key: busy.health[key] for key in detail} == detail
    assert (busy.score, busy.maintenance) == (0, True)


@pytest.mark.parametrize("why", ["poweroff", "reboot"])
def test_the_last_block_of_a_node_that_shuts_down_in_order_says_that_it_stopped(
    daemon, monkeypatch, why
):
    monkeypatch.setattr(lrm, "why_ending", lambda *_rest: why)
    daemon.run_web()
    daemon.daemon._on_term()
    for _turn in range(int(FREEZE_WAIT) + 2):
        daemon.round(1.0)
    assert not any(one.stopped for one in blocks(daemon))
    daemon.workers.end(sight=Sight.STOPPED)
    daemon.round()
    assert daemon.daemon._lrm.ends
    *_earlier, last = blocks(daemon)
    assert (last.stopped, last.score) == (True, 0)


def test_only_a_heartbeat_that_was_written_is_named_in_answers(daemon):
    daemon.round()
    named = list(daemon.network.written)
    assert named
    assert named[-1] == int(daemon.clock.now)
    daemon.storage.board.error = UNREADABLE
    daemon.round(2.0)
    assert daemon.network.written == named


@pytest.mark.parametrize(("boot", "beats"), [("n1-boot1", True), ("n1-boot0", False)])
def test_after_a_boot_the_report_comes_before_the_first_heartbeat(tmp_path, boot, beats):
    daemon = Daemon(tmp_path, last=Report("n1", boot=boot))
    daemon.storage.write_error = UNREADABLE
    daemon.round()
    assert bool(blocks(daemon)) is beats
    daemon.round(REPORT_FIRST)
    assert blocks(daemon)


def test_after_a_boot_whose_join_takes_long_the_report_still_comes_before_the_first_heartbeat(
    tmp_path,
):
    """Else the manager takes the node for one that was confirmed dead and goes on writing."""
    daemon = Daemon(tmp_path, last=Report("n1", boot="n1-boot0"), host_lease=LOST)
    daemon.round(2 * REPORT_FIRST)
    daemon.storage.host_lease = 4
    daemon.round()
    assert kinds(daemon.storage.log) == ["report", "block"]
