# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node's own membership: what of the fence settings is part of it, and what never is."""

from __future__ import annotations

import copy
import json
import os
from types import SimpleNamespace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.lrm import (
    cycle as lrm_cycle,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.lrm.effects import (
    ReadOwnMembership,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.effects import Log
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.membership import (  # noqa: E501
    with_version,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    Report,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    ClusterState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.own_membership import (  # noqa: E501
    UNREADABLE,
    OwnMembership,
    fence_digest,
    places,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.performing import (
    play,
)
from ansible_collections.holdfast.ha.tests.unit.node.sample_node import configuration

SETTINGS = {
    "devices": {
        "board": {
            "agent": "fence_ipmilan",
            "parameters": {
                "ip": "10.1.0.1",
                "username": "admin",
                "password": "geheim",
                "unheard_of": "geheim",
                "power_wait": 3,
            },
            "timeout": 20,
            "host_map": {"n1": ["1"], "n9": ["9"]},
        },
        "spare": {"agent": "fence_apc", "parameters": {"ip": "10.1.0.2"}},
    },
    "nodes": {
        "n1": {"levels": [[{"device": "board"}]], "delay": 2},
        "n9": {"levels": [[{"device": "spare", "plug": "9"}]]},
    },
}


def digest(tmp_path, change=None):
    settings = copy.deepcopy(SETTINGS)
    if change is not None:
        change(settings)
    path = tmp_path / "fence.json"
    path.write_text(json.dumps(settings))
    return fence_digest(path, places(configuration(tmp_path)))


def board(settings):
    return settings["devices"]["board"]


@pytest.mark.parametrize(
    "change",
    [
        lambda one: board(one)["parameters"].update(ip="10.1.0.9"),
        lambda one: board(one)["parameters"].update(power_wait=4),
        lambda one: board(one)["parameters"].update(more="x"),
        lambda one: board(one).update(agent="fence_redfish"),
        lambda one: board(one).update(timeout=30),
        lambda one: board(one)["host_map"].update(n1=["2"]),
        lambda one: one["nodes"]["n1"].update(delay=3),
        lambda one: one["nodes"]["n1"]["levels"].append([{"device": "spare", "plug": "1"}]),
        lambda one: one["nodes"].pop("n1"),
    ],
)
def test_what_changes_the_digest(tmp_path, change):
    assert digest(tmp_path, change) != digest(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        lambda one: board(one)["parameters"].update(password="other"),
        lambda one: board(one)["parameters"].update(unheard_of="other"),
        lambda one: board(one)["parameters"].update(password=17),
        lambda one: board(one)["host_map"].update(n9=["8"]),
        lambda one: one["nodes"].pop("n9"),
        lambda one: one["devices"].pop("spare"),
    ],
)
def test_no_secret_and_no_other_node_is_part_of_the_digest(tmp_path, change):
    assert digest(tmp_path, change) == digest(tmp_path)


@pytest.mark.parametrize("name", ["ip", "systems_uri"])
def test_a_password_in_an_address_is_not_part_of_the_digest(tmp_path, name):
    found = {
        digest(tmp_path, lambda one, at=at: board(one)["parameters"].update({name: at}))
        for at in ("https://me:one@host", "https://me:two@host")
    }
    assert len(found) == 1


@pytest.mark.parametrize("text", ["{", "[]", '{"nodes": [], "devices": 3}', "\ufeff"])
def test_settings_that_make_no_sense_raise_nothing(tmp_path, text):
    path = tmp_path / "fence.json"
    path.write_text(text)
    assert fence_digest(path, places(configuration(tmp_path)))


def test_settings_that_are_missing_or_cannot_be_read(tmp_path):
    members = places(configuration(tmp_path))
    assert fence_digest(tmp_path / "fence.json", members) == ""
    assert fence_digest(tmp_path, members) == UNREADABLE


def test_a_file_that_is_written_while_the_daemon_runs_is_noticed(tmp_path):
    own = OwnMembership(configuration(tmp_path))
    without = own.get()
    assert own.get() is without
    digest(tmp_path)
    with_settings = own.get()
    assert with_settings.digest != without.digest
    path = tmp_path / "fence.json"
    path.write_text(path.read_text().replace("10.1.0.1", "10.1.0.7"))
    os.utime(path, ns=(1, 1))
    assert own.get().digest not in (without.digest, with_settings.digest)
    path.unlink()
    assert own.get().digest == without.digest


def test_the_report_says_which_membership_it_is_and_how_it_differs(tmp_path):
    own = OwnMembership(configuration(tmp_path))

    def noted(report, state):
        lrm = SimpleNamespace(report=report, state=state)
        performers = {ReadOwnMembership: lambda _effect: own.get(), Log: lambda _effect: None}
        return play(lrm_cycle._with_membership(lrm), performers)

    report = noted(Report("n1"), None)
    assert (report.membership, report.membership_differs) == (own.get().digest, "")
    assert noted(report, ClusterState()) is report
    digest(tmp_path)
    recorded = ClusterState(membership=with_version(own.get(), 3))
    assert noted(report, recorded).membership_differs == ""
    (tmp_path / "fence.json").unlink()
    assert noted(report, recorded).membership_differs == "other fence settings"
