# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each playbook for operators, on a running cluster: checked, run, and run again."""

from __future__ import annotations

import json
import os
import re
import stat
import sys
import threading
from pathlib import Path

import pytest
import yaml
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.configuration import load
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.export_configuration import (  # noqa: E501
    read_configuration,
)
from cluster import CHECKOUT, NODES, PATIENCE, EmbeddedCluster
from playing import Play, player


@pytest.fixture
def play(cluster: EmbeddedCluster, tmp_path: Path) -> Play:
    """Return how a playbook is run on the cluster; its name is not the only word of it."""
    return player(cluster, tmp_path)


def test_status_shows_the_cluster_and_can_fail_on_a_problem(
    cluster: EmbeddedCluster, play: Play, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    shown = play("status", status_page=str(page), status_fail=True)
    assert "Cluster test: all is well" in shown.text
    assert page.read_text().startswith("<!DOCTYPE html>")
    assert shown.changed == 0
    shown = play("status", "--limit", "n3", status_fail=False)
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


def test_the_cluster_is_held_with_a_reason_and_let_go(cluster: EmbeddedCluster, play: Play) -> None:
    assert "Say with cluster_maintenance_reason why" in play("cluster_maintenance", fails=True).text
    hold = {"cluster_maintenance_reason": "switches", "cluster_maintenance_duration": 3600}
    hold["cluster_maintenance_until"] = ""
    part = play("cluster_maintenance", "--limit", "n3", fails=True, **hold)
    assert "acts on the whole cluster, not on n3 alone" in part.text
    assert cluster.status()["maintenance"] is None
    assert play("cluster_maintenance", "--check", **hold).changed == 1
    assert cluster.status()["maintenance"] is None
    assert play("cluster_maintenance", **hold).changed == 1
    told = cluster.status()["maintenance"]
    assert (told["reason"], told["until"]) == ("switches", told["since"] + 3600)
    assert play("cluster_maintenance", **hold).changed == 0
    assert play("cluster_maintenance", cluster_maintenance_state="absent").changed == 1
    assert play("cluster_maintenance", cluster_maintenance_state="absent").changed == 0
    assert cluster.status()["maintenance"] is None


def test_a_node_is_drained_by_limit_and_used_again(cluster: EmbeddedCluster, play: Play) -> None:
    cluster.give_a_service("n2")
    drain = {"node_maintenance_reason": "kernel", "node_maintenance_owner": "ada"}
    drain["node_maintenance_until"] = ""
    assert "Say with --limit which nodes" in play("node_maintenance", fails=True, **drain).text
    checked = play("node_maintenance", "--limit", "n2", "--check", "--diff", **drain)
    assert checked.changed == 1
    assert '"reason": "kernel"' in checked.text
    assert cluster.status()["nodes"]["n2"]["maintenance"] is None
    drained = play("node_maintenance", "--limit", "n2", **drain)
    assert set(drained.recap) == {"n2"}
    status = cluster.status()
    assert status["nodes"]["n2"]["services"] == []
    assert status["nodes"]["n2"]["maintenance"]["owner"] == "ada"
    assert play("node_maintenance", "--limit", "n2", **drain).changed == 0
    back = play("node_maintenance", "--limit", "n2", node_maintenance_state="active")
    assert back.changed == 1
    node = cluster.status()["nodes"]["n2"]
    assert (node["maintenance"], node["mode"]) == (None, "")


def test_a_look_at_the_cluster_that_fails_does_not_end_the_wait_for_a_node(
    cluster: EmbeddedCluster, play: Play, tmp_path: Path
) -> None:
    later = tmp_path / "later.json"
    book = tmp_path / "wait.yml"
    task = {
        "ansible.builtin.include_tasks": str(
            CHECKOUT / "playbooks" / "tasks" / "wait_for_node.yml"
        ),
        "vars": {"__holdfast_speaker": "n1", "__holdfast_config": str(later)},
    }
    book.write_text(yaml.safe_dump([{"hosts": "n2", "gather_facts": False, "tasks": [task]}]))
    wait = {"__wait_drained": False}
    vain = play(str(book), fails=True, __wait_seconds=3, **wait)
    assert "Whether n2 is online could not be told within 3 s: config:" in vain.text
    # By then the first looks have been in vain.
    come = threading.Timer(8.0, lambda: later.symlink_to(cluster.config("n1")))
    come.start()
    play(str(book), __wait_seconds=60, **wait)
    come.join()


def test_a_node_whose_services_have_nowhere_to_go_is_not_drained(
    cluster: EmbeddedCluster, play: Play
) -> None:
    node = cluster.status()["services"]["web"]["node"]
    cluster.declare_rule("home", ["web"], nodes={node: 1}, strict=True)
    try:
        cluster.wait_settled()
        refused = play(
            "node_maintenance", "--limit", node, fails=True, node_maintenance_reason="kernel"
        )
        assert "not everything can leave" in refused.text
        assert "rule 'home' does not allow it" in refused.text
        assert cluster.status()["nodes"][node]["maintenance"] is None
    finally:
        cluster.declare_rule("home", ["web"], state="absent")


def test_nodes_are_emptied_and_stay_in_use(cluster: EmbeddedCluster, play: Play) -> None:
    cluster.give_a_service("n1")
    assert "Say with --limit which nodes" in play("evacuate", fails=True).text
    checked = play("evacuate", "--limit", "n1", "--check")
    assert checked.changed == 1
    assert cluster.status()["nodes"]["n1"]["services"] != []
    moved = play("evacuate", "--limit", "n1")
    assert moved.changed == 1
    status = cluster.wait_settled()
    assert status["nodes"]["n1"]["services"] == []
    assert status["nodes"]["n1"]["maintenance"] is None
    assert play("evacuate", "--limit", "n1").changed == 0


def test_a_node_is_fenced_with_consent_and_its_reason_stands_in_the_cluster(
    cluster: EmbeddedCluster, play: Play
) -> None:
    cluster.give_a_service("n3")
    why = {"fence_reason": "smoke", "fence_owner": "ada"}
    assert "missing required arguments" in play("fence", "--limit", "n3", fails=True).text
    assert (
        "fence_consent=true"
        in play("fence", "--limit", "n3", fails=True, fence_consent=False, **why).text
    )
    assert (
        "Say with --limit which one node"
        in play("fence", fails=True, fence_consent=True, **why).text
    )
    assert play("fence", "--limit", "n3", "--check", fence_consent=True, **why).changed == 2
    cluster.maintain("present")
    held = play("fence", "--limit", "n3", fails=True, fence_consent=True, **why)
    assert "Nothing was cut: the cluster is held or disarmed" in held.text
    cluster.maintain("absent")
    assert cluster.status()["nodes"]["n3"]["state"] == "online"
    assert play("fence", "--limit", "n3", fence_consent=True, **why).changed >= 1
    status = cluster.status()
    assert status["nodes"]["n3"]["state"] in ("off", "offline")
    assert status["nodes"]["n3"]["maintenance"]["reason"] == "fenced: smoke"
    assert status["nodes"]["n3"]["services"] == []
    assert not cluster.service_processes("n3")
    assert play("fence", "--limit", "n3", fence_consent=True, **why).changed == 0
    assert "Say with --limit which nodes" in play("unfence", fails=True).text
    assert play("unfence", "--limit", "n3").changed >= 1
    status = cluster.wait_settled(60.0)
    assert status["nodes"]["n3"]["state"] == "online"
    assert status["nodes"]["n3"]["maintenance"] is None
    assert play("unfence", "--limit", "n3").changed == 0


def test_fencing_is_rehearsed_and_for_real_only_with_consent(
    cluster: EmbeddedCluster, play: Play, tmp_path: Path
) -> None:
    report = {"fence_rehearsal_report": str(tmp_path / "report.json")}
    checked = play("fence_rehearsal", "--check", **report)
    assert "status of n1" in checked.text
    asked = play("fence_rehearsal", **report)
    assert all(f"{node}: works" in asked.text for node in NODES)
    limited = play("fence_rehearsal", "--limit", "n2", **report)
    assert "n2: works" in limited.text and "n1: works" not in limited.text
    node = next(name for name in NODES if name != cluster.status()["manager"]["node"])
    cluster.give_a_service(node)
    consent = {"fence_rehearsal_consent": True, **report}
    refused = play("fence_rehearsal", "--limit", node, fails=True, **consent)
    assert "Drain it first, or allow it with services." in refused.text
    cluster.maintenance(node, "drained", on=next(one for one in NODES if one != node))
    play("fence_rehearsal", "--limit", node, **consent)
    kept = json.loads((tmp_path / "report.json").read_text())["nodes"][node]
    assert [one["manner"] for one in kept["rehearsals"]][:2] == ["switched", "asked"]
    play("unfence", "--limit", node)
    cluster.wait_settled(60.0)


def test_a_service_is_placed_where_check_mode_said(cluster: EmbeddedCluster, play: Play) -> None:
    resources = [
        {"name": "r", "agent": "ocf:holdfast:command", "parameters": {"command": "sleep 1000009"}}
    ]
    new = {"place_service": "new", "place_resources": resources, "place_memory": 16}
    checked = play("place", "--check", **new)
    (node,) = set(re.findall(r"new goes to (n\d):", checked.text))
    assert "new" not in cluster.status()["services"]
    try:
        assert play("place", **new).changed == 1
        assert cluster.status()["services"]["new"]["node"] == node
        assert play("place", **new).changed == 0
        before = cluster.status()["services"]["web"]
        refused = play("place", fails=True, place_service="web", place_resources=resources)
        assert "it is declared, and differs in resources" in refused.text
        assert cluster.status()["services"]["web"] == before
    finally:
        cluster.remove("new")


def test_a_backup_is_private_and_restores_what_was_lost(
    cluster: EmbeddedCluster, play: Play, tmp_path: Path
) -> None:
    kept = tmp_path / "kept.json"
    assert play("backup", "--check", backup_dest=str(kept)).changed == 1
    assert not kept.exists()
    gone = play("backup", fails=True, backup_dest=str(kept), awx_job_id=7)
    assert "Say with backup_host which host gets the file" in gone.text
    assert play("backup", backup_dest=str(kept), backup_host="n2", awx_job_id=7).changed == 1
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert play("backup", backup_dest=str(kept)).changed == 0
    before = {one["name"] for one in cluster.status()["rules"]}
    cluster.declare_rule("sides", ["left", "right"], state="absent")
    checked = play("restore", "--check", "--diff", restore_src=str(kept))
    assert checked.changed == 1
    assert "sides" in checked.text
    assert "sides" not in {one["name"] for one in cluster.status()["rules"]}
    lost = play("restore", fails=True, restore_src=str(tmp_path / "lost.json"))
    assert "lost.json is no file on localhost" in lost.text
    assert play("restore", restore_src=str(kept), restore_host="n3").changed == 1
    assert {one["name"] for one in cluster.status()["rules"]} == before
    assert play("restore", restore_src=str(kept), restore_exact=True).changed == 0
    assert not list(tmp_path.glob("holdfast.*"))


def install_guarded(cluster: EmbeddedCluster) -> None:
    """Install the agent ``ocf:test:guarded``, which takes a password."""
    folder = cluster.folder / "ocf" / "resource.d"
    agent = folder / "test" / "guarded"
    agent.parent.mkdir(exist_ok=True)
    parameters = '<parameters>\n<parameter name="password"><content type="string"/></parameter>'
    text = (folder / "holdfast" / "command").read_text().replace("<parameters>", parameters)
    agent.write_text(text)
    agent.chmod(0o755)


def declare_one_with_a_secret(cluster: EmbeddedCluster) -> None:
    """Declare the service ``guarded``, whose agent takes a password."""
    install_guarded(cluster)
    given = {"command": "sleep 1000010", "password": "hunter2"}
    resource = {"name": "r", "agent": "ocf:test:guarded", "parameters": given}
    cluster.declare_resources("guarded", [resource], wait=True)


def secret_of_one(cluster: EmbeddedCluster) -> str:
    """Return the password of the service ``guarded`` as it is declared."""
    wanted = read_configuration(load(cluster.config("n1")))
    return wanted.services["guarded"].resources[0].parameters["password"]


def test_an_export_recreates_what_it_is_of_and_drift_is_told(
    cluster: EmbeddedCluster, play: Play, tmp_path: Path
) -> None:
    exported = tmp_path / "exported.yml"
    declare_one_with_a_secret(cluster)
    assert play("export", "--check", export_dest=str(exported)).changed == 1
    assert not exported.exists()
    gone = play("export", fails=True, export_dest=str(exported), awx_job_id=7)
    assert "Say with export_host which host gets the file" in gone.text
    assert play("export", export_dest=str(exported), export_host="localhost", awx_job_id=7).changed
    assert play("export", export_dest=str(exported)).changed == 0
    assert "does what the inventory says" in play("drift", "-e", f"@{exported}").text
    assert play("declare", "-e", f"@{exported}").changed == 0
    cluster.declare_rule("sides", ["left", "right"], state="absent")
    cluster.declare_resources("left", None, max_restart=4)
    drift = play("drift", "-e", f"@{exported}", fails=True)
    assert "rule sides differs: declared nowhere in the cluster." in drift.text
    assert "service left differs: max_restart: 4 instead of 1." in drift.text
    assert play("drift", "-e", f"@{exported}", drift_fail=False).changed == 0
    assert play("declare", "-e", f"@{exported}", "--check").changed > 0
    assert play("declare", "-e", f"@{exported}").changed > 0
    assert "does what the inventory says" in play("drift", "-e", f"@{exported}").text
    assert "hunter2" not in exported.read_text()
    assert secret_of_one(cluster) == "hunter2"
    cluster.remove("guarded")


def test_services_and_rules_are_declared_together_in_any_order_and_without_their_secrets(
    cluster: EmbeddedCluster, play: Play
) -> None:
    def service(name: str, **more: object) -> dict[str, object]:
        given = {"command": "sleep 1000011", "password": "hunter3"}
        agent = "ocf:test:guarded"
        resources = [{"name": "r", "agent": agent, "parameters": given}]
        return {"name": name, "resources": resources, **more}

    install_guarded(cluster)
    services = [service("app", after=["db"]), service("db")]
    rules = [{"name": "beside", "services": ["app", "db"], "affinity": "apart"}]
    before = cluster.status()["services"]
    checked = play(
        "declare", "--check", "--diff", "-vv", holdfast_services=services, holdfast_rules=rules
    )
    assert checked.changed == 1
    assert cluster.status()["services"].keys() == before.keys()
    wrong = [*services, service("other", max_restart=-1)]
    refused = play("declare", "-vv", fails=True, holdfast_services=wrong, holdfast_rules=rules)
    assert "services[other].max_restart: -1 is not accepted" in refused.text
    assert cluster.status()["services"].keys() == before.keys()
    assert "hunter3" not in checked.text + refused.text
    assert play("declare", holdfast_services=services, holdfast_rules=rules).changed == 1
    now = cluster.status()["services"]
    assert now["app"]["state"] == now["db"]["state"] == "started"
    assert now["app"]["node"] != now["db"]["node"]
    gone = {
        "holdfast_services": [{"name": name, "state": "absent"} for name in ("app", "db")],
        "holdfast_rules": [{"name": "beside", "state": "absent"}],
    }
    assert play("declare", **gone).changed == 1
    assert play("declare", **gone).changed == 0
    cluster.wait(lambda status: status["services"].keys() == before.keys(), PATIENCE, "rid of them")


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
    play("unfence", "--limit", "n1")
    cluster.wait_settled(60.0)


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
        shown = play("status", "-i", str(other), holdfast_ask_timeout=10)
        assert "Cluster test: all is well" in shown.text
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
    assert play("cluster_maintenance", cluster_maintenance_state="absent").changed == 1
    assert cluster.status()["disarm"] is None


@pytest.fixture
def update(cluster: EmbeddedCluster, tmp_path: Path) -> dict[str, object]:
    """Variables of a rolling update that reboots machines; it fails on one in ``broken``."""
    marks = tmp_path / "updated"
    marks.mkdir()
    needed = tmp_path / "needed.yml"
    own = tmp_path / "update.yml"
    mark = f"{marks}/{{{{ inventory_hostname }}}}"
    needed.write_text(
        yaml.safe_dump(
            [
                {"ansible.builtin.stat": {"path": mark}, "register": "mark"},
                {
                    "ansible.builtin.set_fact": {
                        "__rolling_update_needed": "{{ not mark.stat.exists }}"
                    }
                },
            ]
        )
    )
    library = cluster.folder / "lib" / "holdfast.pyz"
    python = ["env", f"PYTHONPATH={library}", sys.executable, "-m", "holdfast"]
    reboot = [*python, "machine", "reboot", "{{ holdfast_config }}"]
    broken = f"{tmp_path}/broken/{{{{ inventory_hostname }}}}"
    own.write_text(
        yaml.safe_dump(
            [
                {
                    "ansible.builtin.stat": {"path": broken},
                    "register": "broken",
                    "failed_when": "broken.stat.exists",
                },
                {"ansible.builtin.command": {"argv": reboot}},
                {"ansible.builtin.file": {"path": mark, "state": "touch", "mode": "0600"}},
            ]
        )
    )
    return {"rolling_update_needed": str(needed), "rolling_update_tasks": str(own)}


def test_nodes_are_updated_in_turn_and_a_run_that_failed_is_taken_up(
    cluster: EmbeddedCluster, play: Play, update: dict[str, object], tmp_path: Path
) -> None:
    refused = play("rolling_update", fails=True, **update)
    assert "Nothing was changed." in refused.text
    assert "could not be lost meanwhile" in refused.text
    bare = {**update, "rolling_update_redundant": False}
    checked = play("rolling_update", "--check", "--diff", **bare)
    turns = re.findall(r'"nodes": \[ "(n\d)" \]', checked.text)
    assert sorted(turns) == sorted(NODES)
    assert turns[-1] == cluster.status()["manager"]["node"]
    assert all(one["maintenance"] is None for one in cluster.status()["nodes"].values())

    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / turns[1]).touch()
    play("rolling_update", fails=True, **bare)
    status = cluster.status(turns[0])
    assert status["nodes"][turns[0]]["maintenance"] is None
    assert status["nodes"][turns[1]]["maintenance"]["owner"] == "the playbook rolling_update"
    assert status["nodes"][turns[2]]["maintenance"] is None
    assert [one.name for one in (tmp_path / "updated").iterdir()] == [turns[0]]

    # Its packages are there, so that nothing of it is left to do but to use it again.
    (tmp_path / "updated" / turns[1]).touch()
    (tmp_path / "broken" / turns[1]).unlink()
    before = (tmp_path / "updated" / turns[0]).stat().st_mtime
    play("rolling_update", **bare)
    status = cluster.wait_settled(60.0)
    assert all(one["maintenance"] is None for one in status["nodes"].values())
    assert sorted(one.name for one in (tmp_path / "updated").iterdir()) == sorted(NODES)
    assert (tmp_path / "updated" / turns[0]).stat().st_mtime == before
    assert not status["failovers"] or status["failovers"][-1]["finished"]
    again = play("rolling_update", **bare)
    assert (again.changed, "There is nothing to do on any node." in again.text) == (0, True)


def test_an_update_keeps_to_the_limit_and_to_the_maintenance_of_others(
    cluster: EmbeddedCluster, play: Play, update: dict[str, object], tmp_path: Path
) -> None:
    cluster.maintenance("n2", "drained", on="n1")
    play("rolling_update", "--limit", "n2", rolling_update_redundant=False, **update)
    assert [one.name for one in (tmp_path / "updated").iterdir()] == ["n2"]
    assert cluster.status()["nodes"]["n2"]["maintenance"]["owner"] == "test"
    cluster.maintenance("n2", "active", on="n1")


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


def test_a_drill_cuts_a_node_with_consent_and_reports_the_failover(
    cluster: EmbeddedCluster, play: Play
) -> None:
    node = cluster.status()["services"]["web"]["node"]
    assert "missing required arguments" in play("drill", "--limit", node, fails=True).text
    refused = play("drill", fails=True, drill_consent=True)
    assert "Say with --limit which one node" in refused.text
    checked = play("drill", "--limit", node, "--check", drill_consent=True)
    assert "web: on n" in checked.text and checked.changed == 1
    assert cluster.status()["nodes"][node]["state"] == "online"
    slow = play("drill", "--limit", node, fails=True, drill_consent=True, drill_within=0.001)
    assert f"Failover of {node}: services run again after" in slow.text
    assert "until all services ran again, more than 0.001 s" in slow.text
    status = cluster.wait_settled(60.0)
    assert status["nodes"][node]["state"] == "online"
    node = status["services"]["web"]["node"]
    done = play("drill", "--limit", node, drill_consent=True, drill_within=60)
    assert "until all services ran again." in done.text
    cluster.wait_settled(60.0)


def test_a_drill_that_would_cost_a_service_is_refused(cluster: EmbeddedCluster, play: Play) -> None:
    node = cluster.status()["services"]["web"]["node"]
    cluster.declare_rule("home", ["web"], nodes={node: 1}, strict=True)
    try:
        cluster.wait_settled()
        refused = play("drill", "--limit", node, fails=True, drill_consent=True)
        assert f"Nothing was cut: web would not run until {node} is back" in refused.text
        assert cluster.status()["nodes"][node]["state"] == "online"
    finally:
        cluster.declare_rule("home", ["web"], state="absent")
