# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who writes the storage, but has no key, neither keeps a dead node alive nor holds the cluster."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.eligibility import (
    other_key,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.configuration import (
    SANLOCK,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.observer import (
    Observer,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.authentication import (
    Policy,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.whiteboard.block import (  # noqa: E501
    GlobalBlock,
    HostBlock,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.whiteboard.board import (  # noqa: E501
    Board,
)
from ansible_collections.holdfast.ha.tests.unit.node.sample_node import Clock, configuration
from ansible_collections.holdfast.ha.tests.unit.node.stand_ins import (
    NetworkStandIn,
    StorageStandIn,
)


class Network(NetworkStandIn):
    """Nodes answer with another key."""

    def __init__(self) -> None:
        super().__init__()
        self.others: set[str] = set()

    def answering_with_other_keys(self) -> set[str]:
        return self.others


class Watching:
    """An observer on n1 of three nodes, under a policy."""

    def __init__(self, folder: Path, policy: Policy) -> None:
        self.clock, self.storage, self.network = Clock(), StorageStandIn(), Network()
        node = replace(configuration(folder), backend=SANLOCK, authentication=policy)
        self.observer = Observer(node, self.storage, self.network, self.clock)
        self.blocks = dict.fromkeys((1, 2, 3), (100, 7))

    def look(self, seconds: float = 0.0, *beating: int, **changes: Any) -> Any:
        """Look after some time, in which some nodes wrote their block."""
        self.clock.go(seconds)
        for number in beating:
            timestamp, report = self.blocks[number]
            self.blocks[number] = timestamp + 1, report
        hosts = {
            number: HostBlock(number, timestamp, 3400, f"n{number}", {"report": report})
            for number, (timestamp, report) in self.blocks.items()
            if number not in changes.get("forged", ())
        }
        self.storage.board.board = Board(4, hosts=hosts, **changes)
        return self.observer.look()


@pytest.fixture
def watching(tmp_path: Path) -> Watching:
    found = Watching(tmp_path, Policy.ENFORCE)
    found.look()
    found.look(1.0, 1, 2, 3)
    return found


def test_an_older_block_of_a_dead_node_is_no_sign_of_life(watching: Watching) -> None:
    for timestamp, report in ((100, 7), (100, 6), (10**9, 6), (100, 7)):
        watching.blocks[2] = timestamp, report
        observed = watching.look(1.0, 1, 3)
        assert not watching.observer.has_new_heartbeat("n2"), "it holds no fence back"
    assert observed.nodes["n2"].heartbeat_age == 4.0
    assert "older than one that was read before" in observed.nodes["n2"].problem
    watching.blocks[2] = 101, 7
    observed = watching.look(1.0, 1, 3)
    assert observed.nodes["n2"].heartbeat_age == 5.0
    assert not observed.nodes["n2"].problem, "the newest block is there again"


def test_without_authentication_any_change_is_a_sign_of_life(tmp_path: Path) -> None:
    watching = Watching(tmp_path, Policy.WARN)
    watching.look()
    watching.look(1.0, 1, 2, 3)
    watching.blocks[2] = 50, 7
    assert watching.look(1.0, 1, 3).nodes["n2"].heartbeat_age == 0.0


def test_a_node_that_starts_anew_is_alive_though_its_clock_begins_again(
    watching: Watching,
) -> None:
    watching.blocks[2] = 3, 8
    assert watching.look(1.0, 1, 3).nodes["n2"].heartbeat_age == 0.0
    assert watching.look(1.0, 1, 2, 3).nodes["n2"].heartbeat_age == 0.0
    assert not watching.look(1.0, 1, 2, 3).nodes["n2"].problem


def test_a_forged_block_is_silence(watching: Watching) -> None:
    for _look in range(4):
        observed = watching.look(1.0, 1, 3, forged=frozenset({2}))
    assert observed.nodes["n2"].heartbeat_age == 4.0
    assert not observed.trouble


def test_a_node_with_another_key_than_all_others_judges_nobody(watching: Watching) -> None:
    forged = frozenset({2, 3})
    assert not watching.look(1.0, 1, forged=forged).trouble, "who writes the storage can do that"
    watching.network.others = {"n3"}
    observed = watching.look(1.0, 1, forged=forged)
    assert "another cluster key" in observed.trouble
    assert observed.elsewhere == observed.trouble
    assert not watching.look(1.0, 1, 3, forged=frozenset({2})).trouble


@pytest.mark.parametrize(
    ("forged", "present", "answering", "differs"),
    [
        ({"n2", "n3"}, {"n2", "n3"}, {"n2"}, True),
        ({"n2"}, {"n2"}, {"n2"}, True),
        ({"n2", "n3"}, {"n2", "n3"}, set(), False),
        ({"n2"}, {"n2", "n3"}, {"n2"}, False),
        (set(), {"n2"}, {"n2"}, False),
        (set(), set(), {"n2"}, False),
    ],
)
def test_another_key_shows_in_all_blocks_and_in_an_answer(
    forged: set[str], present: set[str], answering: set[str], differs: bool
) -> None:
    assert bool(other_key(forged, present, answering)) is differs


@pytest.mark.parametrize("policy", Policy)
@pytest.mark.parametrize("block", [GlobalBlock(True), None])
def test_the_global_block_binds_only_where_it_need_not_be_authentic(
    tmp_path: Path, policy: Policy, block: GlobalBlock | None
) -> None:
    observed = Watching(tmp_path, policy).look(global_block=block)
    assert observed.board_binds is (policy is not Policy.ENFORCE)
