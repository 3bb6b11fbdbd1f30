# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Declaring, draining, failing and removing services on a cluster that runs."""

from __future__ import annotations

import os
import signal

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import (
    HoldfastError,
    InputError,
)
from cluster import PATIENCE, EmbeddedCluster


def test_a_drained_node_has_no_service_and_gets_its_own_back(cluster: EmbeddedCluster) -> None:
    node = cluster.status()["services"]["pair"]["node"]
    drained = cluster.maintenance(node, "drained")
    assert "pair" in drained.values["moved"]
    assert node not in drained.values["moved"].values()
    assert not cluster.lasting_processes(node)
    cluster.maintenance(node, "active")
    cluster.wait_settled()


def test_services_kept_apart_stay_apart_while_a_node_is_drained(cluster: EmbeddedCluster) -> None:
    for node in ("n1", "n2", "n3"):
        cluster.maintenance(node, "drained")
        where = cluster.running()
        assert where["left"] != where["right"]
        cluster.maintenance(node, "active")
        cluster.wait_settled()


def test_a_service_that_dies_is_started_again_where_it_was(cluster: EmbeddedCluster) -> None:
    status = cluster.status()
    node = status["services"]["left"]["node"]
    killed = cluster.command_process(node, cluster.witness("left"))
    assert killed
    os.kill(killed, signal.SIGKILL)
    cluster.wait(
        lambda _: cluster.command_process(node, cluster.witness("left")) not in (0, killed),
        PATIENCE,
        "started again",
    )
    assert cluster.wait_settled()["services"]["left"]["node"] == node


def test_a_service_whose_start_fails_everywhere_ends_in_an_error_that_names_why(
    cluster: EmbeddedCluster,
) -> None:
    cluster.declare("broken", "/bin/false", max_restart=0)
    status = cluster.wait(
        lambda status: status["services"].get("broken", {}).get("state") == "error",
        PATIENCE,
        "an error",
    )
    assert "r0" in status["services"]["broken"]["reason"]
    assert "tried on" in status["services"]["broken"]["reason"]
    cluster.declare("broken", "sleep 1000005", max_restart=0)
    cluster.wait_settled()
    cluster.remove("broken")
    assert "broken" not in cluster.running()


def test_a_removed_service_is_stopped_and_forgotten(cluster: EmbeddedCluster) -> None:
    cluster.declare("passing", "sleep 1000006")
    cluster.wait_settled()
    cluster.remove("passing")
    assert "passing" not in cluster.status()["services"]
    assert not any(cluster.command_process(node, "sleep 1000006") for node in ("n1", "n2", "n3"))


def test_a_changed_definition_restarts_the_service_with_the_new_one(
    cluster: EmbeddedCluster,
) -> None:
    cluster.declare("changing", "sleep 1000007")
    cluster.wait_settled()
    cluster.declare("changing", "sleep 1000008")
    cluster.wait(
        lambda status: any(
            cluster.command_process(node, "sleep 1000008") for node in ("n1", "n2", "n3")
        ),
        PATIENCE,
        "the new one",
    )
    assert not any(cluster.command_process(node, "sleep 1000007") for node in ("n1", "n2", "n3"))
    cluster.wait_settled()
    cluster.remove("changing")


def test_declaring_the_same_again_changes_nothing(cluster: EmbeddedCluster) -> None:
    version = cluster.status()["config_version"]
    again = cluster.declare_resources("pair", None)
    assert not again.changed
    assert cluster.status()["config_version"] == version


@pytest.mark.parametrize(
    ("resources", "said"),
    [
        ([{"name": "a", "agent": "ocf:holdfast:missing"}], "not installed"),
        ([{"name": "a", "agent": "holdfast-command"}], "resources.agent"),
        ([{"name": "a", "agent": "ocf:holdfast:command", "parameters": {"comand": "x"}}], "comand"),
        ([{"name": "a", "agent": "ocf:holdfast:command", "parameters": {}}], "command"),
    ],
    ids=["agent not installed", "agent misnamed", "unknown parameter", "missing parameter"],
)
def test_a_service_that_cannot_work_is_refused_and_not_written(
    cluster: EmbeddedCluster, resources: list[dict[str, object]], said: str
) -> None:
    with pytest.raises(HoldfastError, match=said):
        cluster.declare_resources("wrong", resources)
    assert "wrong" not in cluster.status()["services"]


def test_a_rule_about_an_unknown_service_is_refused(cluster: EmbeddedCluster) -> None:
    with pytest.raises(InputError, match="nobody"):
        cluster.declare_rule("wrong", ["pair", "nobody"], affinity="together")
    assert [rule["name"] for rule in cluster.status()["rules"]] == ["sides"]


def test_a_service_that_a_rule_names_cannot_be_removed(cluster: EmbeddedCluster) -> None:
    with pytest.raises(InputError, match="sides"):
        cluster.declare_resources("left", None, state="absent")
