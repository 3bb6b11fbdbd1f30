# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbooks about the whole cluster: looked at, held, disarmed, evened out."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
import yaml
from cluster import CHECKOUT, EmbeddedCluster
from playing import Play


def test_status_shows_the_cluster_and_can_fail_on_a_problem(
    cluster: EmbeddedCluster, play: Play, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    shown = play("status", status_page=str(page), status_fail=True)
    assert "Cluster test: healthy" in shown.text
    assert page.read_text().startswith("<!DOCTYPE html>")
    assert shown.changed == 0
    assert {host["ignored"] for host in shown.recap.values()} == {0}, "no error on the way"
    # Neither belongs to the playbook, nor is it one of its own that is misspelt.
    others = {"status_recipients": "{{ nowhere }}", "statuses": 3, "fence_rehearsal_max_age": 90}
    shown = play("status", "--limit", "n3", status_fail=False, **others)
    assert set(shown.recap) == {"n3"}


def test_a_variable_that_is_none_or_has_no_such_value_is_refused(play: Play) -> None:
    assert (
        "node_maintenance_resaon"
        in play("node_maintenance", "--limit", "n1", fails=True, node_maintenance_resaon="x").text
    )
    assert (
        "value of node_maintenance_state must be one of"
        in play(
            "node_maintenance", "--limit", "n1", fails=True, node_maintenance_state="empty"
        ).text
    )
    for name, given in (
        ("backup", "backup_dest"),
        ("export", "export_dest"),
        ("restore", "restore_src"),
        ("rolling_update", "rolling_update_tasks"),
    ):
        refused = play(name, fails=True, **{given: "kept.yml"}).text
        assert f"as an absolute path is expected: {given}=kept.yml" in refused
    assert (
        "Nothing was changed: there is no file /nowhere/update.yml."
        in play("rolling_update", fails=True, rolling_update_tasks="/nowhere/update.yml").text
    )
    assert (
        "missing required arguments: place_resources"
        in play("place", fails=True, place_service="x").text
    )


def test_the_cluster_is_held_with_a_reason_and_let_go(
    cluster: EmbeddedCluster, play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As become by sudo leaves it: the account by which the node is reached.
    monkeypatch.setenv("SUDO_USER", "ansible")
    assert (
        "Give with cluster_maintenance_reason the reason why"
        in play("cluster_maintenance", fails=True).text
    )
    hold = {"cluster_maintenance_reason": "switches", "cluster_maintenance_duration": 3600}
    hold["cluster_maintenance_until"] = ""
    part = play("cluster_maintenance", "--limit", "n3", fails=True, **hold)
    assert "acts on the whole cluster, not on n3 alone" in part.text
    assert cluster.status()["maintenance"] is None
    assert play("cluster_maintenance", "--check", **hold).changed == 1
    assert cluster.status()["maintenance"] is None
    assert play("cluster_maintenance", awx_user_name="grace", **hold).changed == 1
    told = cluster.status()["maintenance"]
    assert (told["reason"], told["until"]) == ("switches", told["since"] + 3600)
    assert told["owner"] == "grace"
    assert play("cluster_maintenance", **hold).changed == 0
    assert play("cluster_maintenance", cluster_maintenance_state="absent").changed == 1
    assert play("cluster_maintenance", cluster_maintenance_state="absent").changed == 0
    assert cluster.status()["maintenance"] is None


def test_the_cluster_is_asked_of_another_node_when_one_has_lost_its_power(
    cluster: EmbeddedCluster, play: Play
) -> None:
    cluster.maintenance("n1", "drained", on="n2")
    cluster.cut("n1")
    hold = {"cluster_maintenance_reason": "test"}
    cluster.wait(
        lambda status: status["nodes"]["n1"]["state"] != "online", 60.0, "aware of the cut"
    )
    held = play("cluster_maintenance", **hold)
    assert re.search(r"\[n1 -> n[23]", held.text)
    play("cluster_maintenance", cluster_maintenance_state="absent")
    play("unfence", "--limit", "n1", unfence_drained=True)
    cluster.wait_settled()


def test_a_host_that_cannot_be_reached_or_hangs_is_passed_over_though_its_node_is_online(
    cluster: EmbeddedCluster, play: Play, tmp_path: Path
) -> None:
    never = tmp_path / "never"
    os.mkfifo(never)
    other = tmp_path / "other.yml"
    for trouble in (
        {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1},
        {"holdfast_config": str(never)},
    ):
        other.write_text(yaml.safe_dump({"all": {"hosts": {"n1": trouble}}}))
        shown = play("status", "-i", str(other), holdfast_ask_timeout=30)
        assert "Cluster test: healthy" in shown.text
        assert "[n1 -> n2" in shown.text
    assert (
        "None of n1 can speak"
        in play(
            "status", "-i", str(other), fails=True, holdfast_ask=["n1"], holdfast_ask_timeout=1
        ).text
    )
    # What still waits for its configuration ends with this.
    os.close(os.open(never, os.O_RDWR))
    assert cluster.status()["nodes"]["n1"]["state"] == "online"


def test_the_cluster_is_disarmed_with_a_reason_and_armed_again(
    cluster: EmbeddedCluster, play: Play
) -> None:
    disarm = {"cluster_maintenance_mode": "freeze", "cluster_maintenance_reason": "new storage"}
    assert play("cluster_maintenance", "--check", **disarm).changed == 1
    assert cluster.status()["disarm"] is None
    over = play("cluster_maintenance", fails=True, cluster_maintenance_duration=60, **disarm)
    assert "only with mode=hold" in over.text
    assert play("cluster_maintenance", **disarm).changed == 1
    disarmed = cluster.status()["disarm"]
    told = {key: disarmed[key] for key in ("state", "mode", "waits_for", "reason")}
    assert told == {
        "state": "disarmed",
        "mode": "freeze",
        "waits_for": "",
        "reason": "new storage",
    }
    assert play("cluster_maintenance", **disarm).changed == 0
    still = play("rebalance", rebalance_threshold=0)
    assert "Nothing would be moved: the cluster is disarmed (freeze)." in still.text
    told = "the cluster is disarmed (new storage; "
    assert f"Nothing is moved now: {told}" in play("evacuate", "--limit", "n1", fails=True).text
    drill = play("drill", "--limit", "n1", fails=True, drill_consent=True)
    assert f"Nothing was cut: {told}" in drill.text
    assert play("cluster_maintenance", cluster_maintenance_state="absent").changed == 1
    assert cluster.status()["disarm"] is None


def test_a_later_step_of_a_plan_is_reported_though_the_cluster_as_it_is_would_refuse_it(
    cluster: EmbeddedCluster, play: Play, tmp_path: Path
) -> None:
    services = cluster.status()["services"]
    left, right = services["left"]["node"], services["right"]["node"]
    assert left != right
    steps = tmp_path / "steps.yml"
    task = {
        "ansible.builtin.include_tasks": str(
            CHECKOUT / "playbooks" / "tasks" / "rebalance_step.yml"
        ),
        "vars": {
            "__holdfast_speaker": "n1",
            "__holdfast_config": str(cluster.config("n1")),
            "__step": {"services": ["left"], "source": left, "target": right},
        },
    }
    steps.write_text(yaml.safe_dump([{"hosts": "n1", "gather_facts": False, "tasks": [task]}]))
    first = play(str(steps), "--check", fails=True, __step_number=0)
    assert "kept apart from" in first.text
    later = play(str(steps), "--check", __step_number=1)
    assert (later.changed, f"left would go from {left} to {right}" in later.text) == (1, True)


def test_the_load_is_evened_out_step_by_step_and_after_a_stop(
    cluster: EmbeddedCluster, play: Play
) -> None:
    full = cluster.status()["services"]["left"]["node"]
    for name in ("web", "pair"):
        if cluster.status()["services"][name]["node"] != full:
            cluster.move(name, full)
    cluster.wait_settled()
    plan = {"rebalance_threshold": 0.2}
    assert play("rebalance", "--check", "--limit", full, **plan).changed == 0
    before = cluster.status()["services"]
    assert play("rebalance", "--check", **plan).changed > 0
    now = cluster.status()["services"]
    assert {key: one["node"] for key, one in now.items()} == {
        key: one["node"] for key, one in before.items()
    }
    cluster.maintain("present")
    held = play("rebalance", fails=True, **plan)
    assert "the cluster is in global maintenance" in held.text
    cluster.maintain("absent")
    assert play("rebalance", rebalance_most=1, **plan).changed == 1
    play("rebalance", **plan)
    placed = [len(one["services"]) for one in cluster.wait_settled()["nodes"].values()]
    assert max(placed) - min(placed) <= 1
    assert play("rebalance", **plan).changed == 0
