# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Block 0 at the CRM's edge, and a wall clock that is believed only while it runs evenly."""

from __future__ import annotations

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm import (
    candidate,
    effects,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.memory import (
    EVEN_FOR,
    CrmSettings,
    WallClock,
    start_crm,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired import (
    DesiredState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.effects import (
    Clocks,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.maintenance import (  # noqa: E501
    Maintenance,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (
    Timing,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    ClusterState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.performing import (
    clocks_and_journal,
    play,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.log import Repeating
from ansible_collections.holdfast.ha.tests.unit.node.sample_node import Clock
from ansible_collections.holdfast.ha.tests.unit.node.stand_ins import StorageStandIn

HELD = "set on the whiteboard"
SHORT = Maintenance("disks", "ada", 500.0, 2000.0)


class Watching:
    """A board whose clocks a test moves; the maintenance is 30 s past its expiry by then."""

    def __init__(self):
        self.clock, self.wall = Clock(100.0), Clock(2030.0 - EVEN_FOR)
        self.storage = StorageStandIn()
        self.storage.state = ClusterState(7, "n1", hold=SHORT, board=True)
        self.storage.desired = DesiredState(3, global_maintenance=SHORT)
        self.crm = start_crm(CrmSettings("n2", {"n1": 1, "n2": 2}, Timing(), 15.0))
        self.crm.wall_clock = WallClock.first_look(self.clocks())
        self.performers = {
            **clocks_and_journal(self.clocks, Repeating(self.clock)),
            effects.ReadManagerRecord: lambda _: self.storage.read_manager(),
            effects.ReadDesired: lambda _: self.storage.read_desired(),
        }

    def clocks(self):
        return Clocks(self.clock.now, self.wall.now, self.clock.now)

    def go(self, seconds, jump=0.0):
        self.clock.go(seconds)
        self.wall.go(seconds + jump)
        return self.crm.wall_is_even(play(self.crm.look_at_wall_clock(), self.performers))

    def held(self, held=HELD, readable=True):
        observation = effects.Observation({}, held, "", 0.0, {}, {}, readable)
        return play(candidate._hold(self.crm, observation), self.performers)


@pytest.fixture
def watching():
    return Watching()


def test_a_clock_counts_as_even_after_a_minute_without_a_jump(watching):
    assert not watching.go(EVEN_FOR - 0.1)
    assert watching.go(0.1)


@pytest.mark.parametrize("jump", [3600.0, -3600.0, 1.5])
def test_a_clock_that_jumped_is_doubted_for_a_minute(watching, jump):
    watching.go(EVEN_FOR)
    assert not watching.go(0.5, jump)
    assert not watching.go(EVEN_FOR - 0.1)
    assert watching.go(0.1)


def test_a_clock_that_is_slewed_is_not_doubted(watching):
    for _round in range(200):
        watching.go(0.5, 0.01)
    assert watching.go(0.5, 0.01)


def test_a_candidate_is_not_held_by_a_maintenance_that_a_hanging_manager_cannot_end(watching):
    assert watching.held() == HELD, "its clock is not known to be even yet"
    watching.go(EVEN_FOR)
    assert watching.held() == ""
    assert watching.held("") == ""


@pytest.mark.parametrize(
    "change",
    [
        {"state": None},
        {"state": ClusterState(7, "n1")},
        {"state": ClusterState(7, "n1", hold=SHORT, hold_from_board=True)},
        {"state": ClusterState(7, "n1", hold=Maintenance("disks", "ada", 500.0))},
        {"state": ClusterState(7, "n1", hold=Maintenance("disks", "ada", 500.0, 3000.0))},
        {"desired": DesiredState(4, global_maintenance=Maintenance("disks", "ada", 500.0, 3000.0))},
        {"desired": DesiredState(4, global_maintenance=Maintenance("disks", "ada", 500.0))},
    ],
)
def test_a_candidate_stays_held_where_the_end_is_in_doubt(watching, change):
    watching.go(EVEN_FOR)
    for name, value in change.items():
        setattr(watching.storage, name, value)
    assert watching.held() == HELD


def test_a_candidate_stays_held_by_a_block_that_cannot_be_read(watching):
    watching.go(EVEN_FOR)
    assert watching.held("damaged", readable=False) == "damaged"
