# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Floors: what is older than what was acted on is named, and not acted on."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired import (
    DesiredState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (
    Answer,
    LeaseSight,
    ObservedNode,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    Report,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    ClusterState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.versions import (
    Floor,
    LeaseVersion,
    floor_of_report,
    not_heard_yet,
    paused,
    regressions,
    why_not_followed,
)

REPORT = Report("n2", generation=1, epoch=5, commands=12, config_version=4)


def state(generation=1, epoch=5, commands=12, base=None, **changes):
    return ClusterState(
        epoch=epoch,
        manager="n1",
        commands=commands,
        generation=generation,
        base=base,
        config_version=4,
        **changes,
    )


@pytest.mark.parametrize(
    ("record", "older"),
    [
        (state(), ""),
        (state(commands=13), ""),
        (state(commands=11), "command 11; acted on command 12"),
        (state(epoch=4, commands=20), "epoch 4; acted on epoch 5"),
        (state(epoch=6, base=12), ""),
        (state(epoch=6, commands=40, base=12), ""),
        (state(epoch=6, commands=10, base=10), "command 10; acted on command 12"),
        (state(epoch=6, commands=40, base=10), "command 10; acted on command 12"),
        (state(epoch=6, commands=12), ""),
        (state(epoch=6, commands=11), "command 11; acted on command 12"),
        (state(generation=0, epoch=9, commands=90, base=90), "generation 0; acted on generation 1"),
        (state(generation=2, epoch=1, commands=1, base=1), ""),
    ],
    ids=[
        "the same",
        "a further command",
        "fewer commands in the same epoch",
        "an older epoch with more commands",
        "a new manager that knew all",
        "a new manager that knew all and went on",
        "a new manager that knew less",
        "a new manager that knew less and went on",
        "a new manager of a version without base",
        "one of those that knew less",
        "before the repair",
        "after a repair that lowered everything",
    ],
)
def test_an_lrm_follows_a_record_that_knows_all_it_has_acted_on(record, older):
    assert older in why_not_followed(REPORT, record)
    assert bool(why_not_followed(REPORT, record)) is bool(older)


WELL = {
    "state": state(),
    "desired": DesiredState(4, generation=1),
    "floors": [floor_of_report(REPORT, "n2")],
    "manager_lease": LeaseVersion(5, "n1"),
    "configuration_lease": 4,
}


def found(**changes):
    return regressions(**{**WELL, **changes})


def test_nothing_is_older_while_all_is_well():
    assert found() == ()
    assert found(floors=[]) == ()
    assert found(manager_lease=LeaseVersion(6, "n3"), configuration_lease=9) == ()


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"state": state(commands=10)},
            "the manager's record is older (command 10) than what n2 acted on (command 12)",
        ),
        (
            {"state": state(epoch=6, commands=40, base=10), "manager_lease": LeaseVersion(6, "n1")},
            "the manager's record is older (command 10) than what n2 acted on (command 12)",
        ),
        (
            {"state": state(epoch=4, commands=30)},
            "the manager's record is older (epoch 4) than what n2 acted on (epoch 5)",
        ),
        (
            {"state": state(generation=0)},
            "the manager's record is older (generation 0) than what n2 acted on (generation 1)",
        ),
        (
            {"state": None},
            "the manager's record is older (generation 0) than what n2 acted on (generation 1)",
        ),
        (
            {"desired": DesiredState(3, generation=1)},
            "the configuration is older (version 3) than what n2 acted on (version 4)",
        ),
        (
            {"desired": DesiredState(3, generation=1), "floors": []},
            "the configuration is older (version 3) than the one that n1 worked from (version 4)",
        ),
        (
            {"manager_lease": LeaseVersion(4, "n3")},
            "the manager lease is older (version 4) than the manager's record (epoch 5)",
        ),
        (
            {"manager_lease": LeaseVersion(5, "n3")},
            "the manager lease is older than the manager's record: n3 has it with version 5,"
            " an epoch in which n1 was manager",
        ),
        (
            {"configuration_lease": 3},
            "the configuration lease is older (version 3) than the configuration (version 4)",
        ),
    ],
)
def test_each_version_that_went_back_is_named_with_what_is_known(changes, sentence):
    assert sentence in found(**changes)


def test_one_sentence_names_all_nodes_that_know_the_same():
    floors = [Floor(name, 1, 5, 12, 4) for name in ("n1", "n2")]
    kept = Floor("n3", 1, 5, 12, 4, kept=True)
    (sentence,) = found(state=state(commands=10), floors=[*floors, kept])
    assert "what n1, n2, n3 (its local disk) acted on" in sentence


def test_floors_from_before_a_repair_do_not_count():
    floor = Floor("n2", generation=0, epoch=900, commands=10**12, config_version=10**9)
    assert found(floors=[floor]) == ()


def test_the_text_of_a_pause_names_the_way_out():
    text = paused(found(state=state(commands=10)))
    assert text.startswith("paused: the manager's record is older")
    assert "holdfast records repair" in text


HEARD = ObservedNode(0.5, report=Report("n2"))
SILENT = ObservedNode(9.0, Answer.NO, report_lost=True)


@pytest.mark.parametrize(
    ("observed", "waits"),
    [
        (HEARD, ""),
        (replace(HEARD, beats=False), "waiting until n2 has been watched for 3 s"),
        (replace(HEARD, beats=False, heartbeat_age=3.0, answer=Answer.NO), ""),
        (replace(HEARD, beats=False, heartbeat_age=3.0, answer=Answer.YES), ""),
        (replace(HEARD, beats=False, heartbeat_age=3.0), "waiting until n2 has answered"),
        (replace(HEARD, report=None, report_lost=True), "the report of n2 on storage is damaged"),
        (replace(SILENT, lease=LeaseSight.STALE), "n2 is silent and may be alive"),
        (replace(SILENT, lease=LeaseSight.FAILED), "n2 is silent and may be alive"),
        (replace(SILENT, lease=LeaseSight.DEAD), ""),
        (replace(SILENT, lease=LeaseSight.FREE), ""),
        (replace(HEARD, report=None), ""),
    ],
    ids=[
        "heard",
        "not watched",
        "silent",
        "silent but answers",
        "silent and being asked",
        "lost report",
        "lost report of a silent node",
        "lost report of a node that stops its services",
        "lost report of a node that was reset",
        "lost report of a node that is off",
        "new",
    ],
)
def test_a_new_manager_hears_every_node_that_is_alive_first(observed, waits):
    said = not_heard_yet({"n1": HEARD, "n2": observed}, 3.0)
    assert waits in said
    assert bool(said) is bool(waits)
