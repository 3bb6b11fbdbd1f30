# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node is bound to its LRM while services run there, and only where the bond outlives the LRM."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (
    Timing,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import LeaseError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.configuration import (
    SANLOCK,
    SanlockSettings,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.supervision import (
    Notifier,
    Supervision,
    _bond_of,
)
from ansible_collections.holdfast.ha.tests.unit.node.sample_node import Clock, configuration


class BondStandIn:
    def __init__(self):
        self.calls = []
        self.error = None

    def hold(self):
        self._call("hold")

    def let_go(self):
        self._call("let go")

    def _call(self, name):
        self.calls.append(name)
        if self.error is not None:
            raise self.error


@pytest.fixture
def real_node(tmp_path):
    """A node on sanlock with a watchdog, as it is in earnest."""
    return replace(
        configuration(tmp_path), backend=SANLOCK, sanlock=SanlockSettings(2, 10), folder=tmp_path
    )


def test_the_bond_is_held_while_services_run_and_let_go_when_none_does(real_node):
    bond = BondStandIn()
    supervision = Supervision(real_node, Notifier(""), Clock(0.0), bond)
    for bound in (False, True, True, False):
        supervision.alive(bound)
    assert bond.calls == ["let go", "hold", "hold", "let go"]


def test_a_watchdog_daemon_that_fails_is_told_once_and_keeps_nothing_from_being_done(
    real_node, capfd
):
    bond = BondStandIn()
    supervision = Supervision(real_node, Notifier(""), Clock(0.0), bond)
    bond.error = LeaseError("wdmd is gone")
    for _turn in range(3):
        supervision.alive(True)
    assert capfd.readouterr().err.count("wdmd is gone") == 1
    assert len(bond.calls) == 3


@pytest.mark.parametrize(
    ("change", "address", "bound"),
    [
        ({}, "@systemd", True),
        ({}, "", False),
        ({"sanlock": SanlockSettings(2, 0)}, "@systemd", False),
        ({"backend": "embedded"}, "@systemd", False),
    ],
    ids=["under systemd", "without systemd", "without a watchdog", "in an embedded cluster"],
)
def test_only_a_real_node_under_systemd_with_a_watchdog_is_bound(real_node, change, address, bound):
    found = _bond_of(replace(real_node, **change), Notifier(address), Clock(0.0))
    assert (found is not None) == bound


@pytest.mark.parametrize(("grace", "seconds"), [(5.0, 25.0), (25.0, 25.0), (30.0, 30.0)])
def test_no_timing_of_a_cluster_has_the_watchdog_reset_a_node_that_is_well(
    real_node, grace, seconds
):
    node = replace(real_node, timing=Timing(daemon_grace=grace))
    bond = _bond_of(node, Notifier("@systemd"), Clock(0.0))
    assert bond is not None
    assert bond.seconds == seconds
