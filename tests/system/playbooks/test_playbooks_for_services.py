# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbooks about services: placed, declared, kept in a file and restored."""

from __future__ import annotations

import re
import stat
from pathlib import Path

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.configuration_file import (
    load,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.operations.export import (  # noqa: E501
    read_configuration,
)
from cluster import PATIENCE, EmbeddedCluster
from playing import Play


def test_a_service_is_placed_where_check_mode_said(cluster: EmbeddedCluster, play: Play) -> None:
    resources = [
        {"name": "r", "agent": "ocf:holdfast:command", "parameters": {"command": "sleep 1000009"}}
    ]
    new = {"place_service": "new", "place_resources": resources, "place_memory": 16}
    part = play("place", "--limit", "n2", fails=True, **new)
    assert "place acts on the whole cluster, not on n2 alone" in part.text
    assert "On which nodes a service may run is said by a rule." in part.text
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
    assert "Name with backup_host the host for the file" in gone.text
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
    strange = tmp_path / "strange.json"
    strange.write_text("{}")
    refused = play("restore", fails=True, restore_src=str(strange))
    assert f"restore_src: '{strange}' is not accepted; expected a backup of" in refused.text
    cluster.declare_rule("more", ["left", "right"], affinity="apart")
    exact = play("restore", "--check", restore_src=str(kept), restore_exact=True)
    assert "removed, as the backup does not have it" in exact.text
    cluster.declare_rule("more", ["left", "right"], state="absent")
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
    """Declare the service ``guarded``, with a password as an earlier version took it."""
    install_guarded(cluster)
    given = {"command": "sleep 1000010", "password": "hunter2"}
    resource = {"name": "r", "agent": "ocf:test:guarded", "parameters": given}
    cluster.declare_as_before("guarded", [resource], wait=True)


def secret_of_one(cluster: EmbeddedCluster) -> str:
    """Return the password of the service ``guarded`` as it is declared."""
    desired = read_configuration(load(cluster.config("n1")))
    return desired.services["guarded"].resources[0].parameters["password"]


def test_an_export_recreates_what_it_is_of_and_drift_is_told(
    cluster: EmbeddedCluster, play: Play, tmp_path: Path
) -> None:
    exported = tmp_path / "exported.yml"
    declare_one_with_a_secret(cluster)
    cluster.policy(shutdown="migrate", max_workers=5)
    assert play("export", "--check", export_dest=str(exported)).changed == 1
    assert not exported.exists()
    gone = play("export", fails=True, export_dest=str(exported), awx_job_id=7)
    assert "Name with export_host the host for the file" in gone.text
    assert play("export", export_dest=str(exported), export_host="localhost", awx_job_id=7).changed
    assert play("export", export_dest=str(exported)).changed == 0
    assert "matches the inventory" in play("drift", "-e", f"@{exported}").text
    assert play("declare", "-e", f"@{exported}").changed == 0
    cluster.declare_rule("sides", ["left", "right"], state="absent")
    cluster.declare_resources("left", None, max_restart=4)
    cluster.policy(shutdown="conditional")
    drift = play("drift", "-e", f"@{exported}", fails=True)
    assert "rule sides differs: declared nowhere in the cluster." in drift.text
    assert "service left differs: max_restart: 4 instead of 1." in drift.text
    assert "policy shutdown differs: 'conditional' instead of 'migrate'." in drift.text
    assert "max_workers" not in drift.text
    assert "max_workers differs: 5 only in the cluster." in play("drift", fails=True).text
    assert play("drift", "-e", f"@{exported}", drift_fail=False).changed == 0
    assert play("declare", "-e", f"@{exported}", "--check").changed > 0
    assert play("declare", "-e", f"@{exported}").changed > 0
    assert "matches the inventory" in play("drift", "-e", f"@{exported}").text
    assert "hunter2" not in exported.read_text()
    assert secret_of_one(cluster) == "hunter2"
    assert cluster.status()["policy"]["shutdown"] == "migrate"
    cluster.policy(shutdown="conditional", max_workers=4)
    cluster.remove("guarded")


def test_services_and_rules_are_declared_together_in_any_order_and_without_their_secrets(
    cluster: EmbeddedCluster, play: Play
) -> None:
    files = {"app.password": "hunter3"}

    def service(name: str, **more: object) -> dict[str, object]:
        given = {"command": "sleep 1000011", "password_file": "app.password"}
        agent = "ocf:test:guarded"
        resources = [{"name": "r", "agent": agent, "parameters": given}]
        return {"name": name, "resources": resources, **more}

    install_guarded(cluster)
    services = [service("app", after=["db"]), service("db")]
    rules = [{"name": "beside", "services": ["app", "db"], "affinity": "apart"}]
    before = cluster.status()["services"]
    all_of_it = {
        "holdfast_services": services,
        "holdfast_rules": rules,
        "holdfast_secret_files": files,
    }
    checked = play("declare", "--check", "--diff", "-vv", **all_of_it)
    secrets = cluster.key.parent / "secrets"
    assert checked.changed > 1
    assert not secrets.exists()
    assert cluster.status()["services"].keys() == before.keys()
    wrong = [*services, service("other", max_restart=-1)]
    refused = play("declare", "-vv", fails=True, holdfast_services=wrong, holdfast_rules=rules)
    assert "services[other].max_restart: -1 is not accepted" in refused.text
    assert cluster.status()["services"].keys() == before.keys()
    assert "hunter3" not in checked.text + refused.text
    done = play("declare", "--diff", "-vv", **all_of_it)
    assert done.changed > 1
    assert "hunter3" not in done.text
    assert (secrets / "app.password").read_text() == "hunter3"
    assert stat.S_IMODE((secrets / "app.password").stat().st_mode) == 0o600
    assert play("declare", **all_of_it).changed == 0
    now = cluster.status()["services"]
    assert now["app"]["state"] == now["db"]["state"] == "started"
    assert now["app"]["node"] != now["db"]["node"]
    misspelt = play("declare", holdfast_service=services)
    assert (misspelt.changed, "there is no holdfast_services, no" in misspelt.text) == (0, True)
    gone = {
        "holdfast_services": [{"name": name, "state": "absent"} for name in ("app", "db")],
        "holdfast_rules": [{"name": "beside", "state": "absent"}],
    }
    assert play("declare", **gone).changed == 1
    assert play("declare", **gone).changed == 0
    cluster.wait(lambda status: status["services"].keys() == before.keys(), PATIENCE, "rid of them")
