# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""AWX is set up by one playbook: checked, run, run again, and after a failure half-way."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from cluster import CHECKOUT
from playing import ansible_environment

sys.path.insert(0, str(Path(__file__).resolve().parent))

from stand_in import TOKEN, Server, StandIn

COLLECTION = os.environ.get("HOLDFAST_AWX_COLLECTION", "")
PLAYBOOKS = CHECKOUT / "playbooks"

pytestmark = pytest.mark.skipif(
    not COLLECTION, reason="HOLDFAST_AWX_COLLECTION does not say where the collection awx.awx is"
)

SETTINGS = {
    "awx_project_url": "https://git.example/holdfast.git",
    "awx_inventory_url": "https://git.example/site.git",
    "awx_inventory_path": "inventory/hosts.yml",
    "awx_execution_environment": "registry.example/holdfast-ee:1",
    "awx_credentials": ["ssh"],
    "awx_fence_devices": ["boards", "pdu"],
    "awx_notification_type": "webhook",
    "awx_notification_configuration": {"url": "https://hook.example", "http_method": "POST"},
}


def playbooks_that_awx_lists(folder: Path) -> frozenset[str]:
    """Return the playbooks of a project as AWX finds them (``awx/main/utils/ansible.py``)."""
    found = set()
    for path in folder.rglob("*.y*ml"):
        place = path.relative_to(folder)
        hidden = any(part.startswith(".") for part in place.parts)
        apart = {"roles", "tasks", "group_vars", "host_vars", "tests"} & set(place.parts[:-1])
        text = path.read_text(encoding="utf-8")
        if (
            not hidden
            and not apart
            and re.search(r"^\s*-?\s*(hosts|.*import_playbook):", text, re.M)
        ):
            found.add(str(place))
    return frozenset(found)


@pytest.fixture
def server() -> Iterator[Server]:
    """An AWX with an organization and a credential, and nothing else."""
    with Server(StandIn(playbooks_that_awx_lists(CHECKOUT))) as server:
        yield server


def set_up(server: Server, tmp_path: Path, *words: str, fails: bool = False, **more: object) -> str:
    """Run the playbook; return what it said."""
    found = subprocess.run(
        [
            *(sys.executable, "-m", "ansible.cli.playbook", "holdfast.ha.awx"),
            *("-e", json.dumps({**SETTINGS, **more}), *words),
        ],
        env=ansible_environment(
            tmp_path,
            ANSIBLE_COLLECTIONS_PATH=f"{CHECKOUT / '.collections'}:{COLLECTION}",
            ANSIBLE_LOCALHOST_WARNING="false",
            ANSIBLE_INVENTORY_UNPARSED_WARNING="false",
            CONTROLLER_HOST=server.address,
            CONTROLLER_OAUTH_TOKEN=TOKEN,
        ),
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert (found.returncode != 0) is fails, found.stdout[-6000:] + found.stderr
    return found.stdout + found.stderr


def changed(text: str) -> int:
    return int(re.findall(r"changed=(\d+)", text)[-1])


def templates() -> tuple[list[str], list[str]]:
    found = yaml.safe_load((PLAYBOOKS / "vars" / "awx_templates.yml").read_text(encoding="utf-8"))
    return found["__awx_surveyed"], found["__awx_plain"]


def test_awx_is_set_up_once_and_check_mode_changes_nothing(server: Server, tmp_path: Path) -> None:
    awx = server.awx
    said = set_up(server, tmp_path, "--check")
    assert awx.changes == []
    assert "Nothing can be looked at that belongs to a project" in said
    said = set_up(server, tmp_path)
    assert TOKEN not in said
    surveyed, plain = templates()
    assert {one["name"] for one in awx.objects["job_templates"].values()} == {
        f"holdfast {name}" for name in (*surveyed, *plain)
    }
    for name in surveyed:
        template = awx.named("job_templates", f"holdfast {name}")
        asked = awx.surveys["job_templates", template["id"]]["spec"]
        taken = yaml.safe_load((PLAYBOOKS / "vars" / f"{name}.yml").read_text())["__variables"]
        assert [one["variable"] for one in asked] == list(taken)
        assert template["ask_limit_on_launch"] and template["ask_job_type_on_launch"]
        assert template["inventory"] == awx.named("inventories", "holdfast")["id"]
        assert len(awx.linked("job_templates", template["id"], "credentials")) == 1
    for name in plain:
        template = awx.named("job_templates", f"holdfast {name}")
        assert template["ask_limit_on_launch"] and template["ask_job_type_on_launch"]
    source = awx.named("inventory_sources", "holdfast")
    assert source["source_project"] == awx.named("projects", "holdfast inventory")["id"]
    types = awx.objects["credential_types"].values()
    assert {one["name"].rpartition(" ")[2] for one in types} == {"boards", "pdu"}
    for one in types:
        device = one["name"].rpartition(" ")[2]
        assert one["injectors"]["extra_vars"] == {
            f"holdfast_fence_{device}_user": "{{ user }}",
            f"holdfast_fence_{device}_password": "{{ password }}",
        }
        assert {row["id"] for row in one["inputs"]["fields"] if row.get("secret")} == {"password"}
    assert len(awx.objects["schedules"]) == 3
    assert steps_of_the_workflow(awx) == [
        ("drain", {"node_maintenance_state": "drained"}),
        ("approve", None),
        ("update", None),
        ("return", {"node_maintenance_state": "active"}),
    ]
    before = len(awx.changes)
    assert changed(set_up(server, tmp_path)) == 0
    assert len(awx.changes) == before
    assert changed(set_up(server, tmp_path, "--check", awx_approval_timeout=60)) == 1
    assert len(awx.changes) == before


def steps_of_the_workflow(awx: StandIn) -> list[tuple[str, object]]:
    """Return the steps as they follow one another, from the only one that follows none."""
    nodes = awx.objects["workflow_job_template_nodes"]
    after = {
        number: awx.linked("workflow_job_template_nodes", number, "success_nodes")
        for number in nodes
    }
    followers = [one for row in after.values() for one in row]
    (at,) = [number for number in nodes if number not in followers]
    steps = []
    while True:
        steps.append((nodes[at]["identifier"], nodes[at].get("extra_data")))
        if not after[at]:
            return steps
        (at,) = after[at]


def credentials(awx: StandIn, playbook: str) -> set[str]:
    """Return the names of the credentials that a job template has."""
    template = awx.named("job_templates", f"holdfast {playbook}")["id"]
    linked = awx.linked("job_templates", template, "credentials")
    return {awx.objects["credentials"][one]["name"] for one in linked}


def test_deploy_keeps_the_credentials_of_fence_devices_when_awx_is_set_up_again(
    server: Server, tmp_path: Path
) -> None:
    awx = server.awx
    awx.create("credentials", {"name": "boards", "organization": 1})
    set_up(server, tmp_path, awx_deploy_credentials=["boards"])
    assert credentials(awx, "deploy") == {"ssh", "boards"}
    assert credentials(awx, "remove") == credentials(awx, "status") == {"ssh"}
    set_up(server, tmp_path, awx_credentials=[])
    assert credentials(awx, "deploy") == {"ssh", "boards"}, "nothing was said of them"
    assert credentials(awx, "status") == {"ssh"}


def test_a_run_that_failed_half_way_is_taken_up(server: Server, tmp_path: Path) -> None:
    server.awx.unwanted = "holdfast evacuate"
    assert "no holdfast evacuate today" in set_up(server, tmp_path, fails=True)
    assert not server.awx.objects["workflow_job_templates"]
    server.awx.unwanted = ""
    set_up(server, tmp_path)
    assert len(steps_of_the_workflow(server.awx)) == 4
    names = [one["name"] for one in server.awx.objects["job_templates"].values()]
    assert len(names) == len(set(names))


def test_a_variable_that_there_is_not_is_refused_before_anything_is_made(
    server: Server, tmp_path: Path
) -> None:
    assert "awx_projct_url" in set_up(server, tmp_path, fails=True, awx_projct_url="x")
    assert server.awx.changes == []
