# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A CRM pauses, and orders nothing, where nodes have acted on more than the records say."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.cycle import (
    OWN_LOOK,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired import (
    DesiredState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (
    ObservedNode,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    Report,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    NodeState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.states import (
    ServiceState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import (
    FormatError,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.record_guard import (  # noqa: E501
    KeptReport,
)
from ansible_collections.holdfast.ha.tests.unit.node.crm.crm_daemon import (
    EPOCH,
    Daemon,
    acted_on,
    kinds,
    observed,
    silent,
)
from ansible_collections.holdfast.ha.tests.unit.node.sample_node import configuration


@pytest.mark.parametrize(
    ("versions", "named"),
    [
        ({"commands": 12}, "the manager's record is older (command 0)"),
        ({"epoch": EPOCH + 1}, f"the manager's record is older (epoch {EPOCH - 1})"),
        ({"epoch": EPOCH - 1, "config_version": 4}, "the configuration is older (version 3)"),
        ({"generation": 1}, "the manager's record is older (generation 0)"),
    ],
)
def test_who_would_be_manager_pauses_while_a_node_has_acted_on_more(
    daemon, capsys, versions, named
):
    known = {"epoch": EPOCH - 1, **versions}
    daemon.observer.nodes["n2"] = acted_on("n2", **known)
    daemon.observer.nodes["n3"] = silent("n3")
    for _turn in range(5):
        assert daemon.round() == [], "nothing is written, fenced or started"
    assert daemon.storage.leases.held("manager"), "nobody else could know better"
    assert named in capsys.readouterr().err
    daemon.observer.nodes["n2"] = observed("n2")
    assert kinds(daemon.round())[0] == "state", "the pause ends with its reason"


def test_a_manager_pauses_when_a_node_turns_out_to_have_acted_on_more(manager):
    manager.observer.nodes["n2"] = acted_on("n2", epoch=EPOCH, commands=99)
    manager.observer.nodes["n3"] = silent("n3")
    for _turn in range(5):
        assert manager.round() == []


def test_a_manager_pauses_when_the_configuration_goes_back(manager):
    manager.storage.desired = DesiredState(2, {})
    for _turn in range(5):
        assert manager.round() == [], "web is neither stopped nor forgotten"


@pytest.mark.parametrize(
    "unheard",
    [
        ObservedNode(0.5, report=Report("n2"), beats=False),
        ObservedNode(0.5, report_lost=True, problem="its report on storage is older"),
    ],
    ids=["not watched yet", "its report is not what it wrote"],
)
def test_who_would_be_manager_hears_every_node_that_is_alive_first(daemon, unheard):
    daemon.observer.nodes["n2"] = unheard
    assert daemon.round() == []
    daemon.observer.nodes["n2"] = observed("n2")
    assert kinds(daemon.round()) == ["state"]


def test_what_this_node_acted_on_by_its_local_disk_is_a_floor(tmp_path):
    configuration_ = configuration(tmp_path)
    KeptReport(configuration_.folder, configuration_.cluster).write(
        9, Report("n1", epoch=EPOCH - 1, commands=12)
    )
    assert Daemon(tmp_path).round() == []


@pytest.mark.parametrize("when", ["paused", "managing"])
def test_a_repair_is_taken_up_and_believes_nothing_of_the_old_record(daemon, when):
    if when == "paused":
        daemon.observer.nodes["n2"] = acted_on("n2", epoch=EPOCH - 1, commands=12)
    daemon.round()
    daemon.storage.desired = replace(daemon.storage.desired, version=5, generation=1)
    log = [*daemon.round(), *daemon.round()]
    state = [content for kind, content in log if kind == "state"][-1]
    assert state.generation == 1
    assert state.services["web"].state is ServiceState.PROBE
    assert state.commands > (12 if when == "paused" else 0)


def test_a_fence_that_ended_during_the_pause_proves_nothing_after_it(manager):
    manager.observer.nodes["n3"] = silent("n3")
    assert "fence" in kinds(manager.round())
    manager.observer.nodes["n2"] = acted_on("n2", epoch=EPOCH, commands=99)
    manager.end_fence()
    manager.observer.changed["n3"] = manager.clock.now - 60.0
    assert manager.round(4.0) == []
    manager.storage.desired = replace(manager.storage.desired, version=5, generation=1)
    manager.round()
    assert manager.written().nodes["n3"].state is not NodeState.OFF


def test_a_managers_record_that_is_not_as_it_was_written_is_written_again(manager):
    assert manager.round(OWN_LOOK) == []
    manager.storage.stands = False
    assert kinds(manager.round(OWN_LOOK)) == ["state"]
    assert manager.written().events[-1].kind == "record_restored"
    manager.storage.stands = True
    assert manager.round(OWN_LOOK) == []


def test_a_manager_that_does_not_read_back_what_it_wrote_fences_nobody(manager, capsys):
    manager.observer.nodes["n3"] = silent("n3")
    manager.storage.stands = False
    for _turn in range(5):
        assert "fence" not in kinds(manager.round())
    assert "what it reads may be old" in capsys.readouterr().err
    manager.storage.stands = True
    assert "fence" in kinds([row for _turn in range(3) for row in manager.round()])


@pytest.mark.parametrize("record", ["manager", "configuration"])
def test_who_would_be_manager_pauses_where_a_newer_record_may_be_damaged(daemon, record):
    storage = daemon.storage
    if record == "manager":
        storage.readable_manager = lambda: (storage.state, "a newer record is damaged")
    else:
        desired, storage.desired = storage.desired, FormatError("a newer record is damaged")
        storage.readable_desired = lambda: (desired, 1)
    assert daemon.round() == []
    assert "a newer record is damaged" in daemon.daemon._crm.pause_reason
