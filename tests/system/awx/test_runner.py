# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each job template as AWX runs it: by ansible-runner, from the checkout, as check and run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from cluster import CHECKOUT, EmbeddedCluster
from playing import write_inventory

pytest.importorskip("ansible_runner", reason="ansible-runner is not installed")

TEMPLATES = yaml.safe_load(
    (CHECKOUT / "playbooks" / "vars" / "awx_templates.yml").read_text(encoding="utf-8")
)["__awx_surveyed"]

RESOURCES = "[{name: r, agent: 'ocf:holdfast:command', parameters: {command: sleep 1000010}}]"


def answers(name: str, folder: Path) -> tuple[dict[str, Any], str]:
    """Return what a survey was answered, all as text where AWX gives text, and the limit.

    A text that was not answered is there as an empty one, which nobody may trip over.
    """
    given, limit = some_answers(name, folder)
    file = CHECKOUT / "playbooks" / "vars" / f"{name}.yml"
    variables = yaml.safe_load(file.read_text(encoding="utf-8"))["__variables"]
    empty = {
        one: ""
        for one, spec in variables.items()
        if spec["type"] in ("str", "path") and not {"choices", "default", "required"} & set(spec)
    }
    return {**empty, **given}, limit


def some_answers(name: str, folder: Path) -> tuple[dict[str, Any], str]:
    """Return what was answered by an operator who leaves out what can be."""
    return {
        "backup": ({"backup_dest": str(folder / "kept.json"), "backup_host": "n2"}, ""),
        "cluster_maintenance": (
            {"cluster_maintenance_reason": "test", "cluster_maintenance_duration": 600.0},
            "",
        ),
        "declare": ({"declare_timeout": 60.0}, ""),
        "drift": ({"drift_fail": "false"}, ""),
        "drill": ({"drill_consent": "true", "drill_within": 100.0}, "n2"),
        "evacuate": ({"evacuate_partial": "false"}, "n2"),
        "export": ({"export_dest": str(folder / "exported.yml"), "export_host": "n2"}, ""),
        "fence": ({"fence_consent": "true", "fence_reason": "test"}, "n2"),
        "fence_rehearsal": ({"fence_rehearsal_report": str(folder / "report.json")}, "n2"),
        "node_maintenance": ({"node_maintenance_reason": "test"}, "n2"),
        "place": ({"place_service": "new", "place_resources": RESOURCES}, ""),
        "rebalance": ({"rebalance_threshold": 0.2}, ""),
        "restore": ({"restore_src": str(folder / "kept.json"), "restore_host": "n2"}, ""),
        "rolling_update": (
            {
                "rolling_update_needed": str(folder / "needed.yml"),
                "rolling_update_tasks": str(folder / "update.yml"),
                "rolling_update_redundant": "false",
            },
            "n2",
        ),
        "status": ({"status_fail": "true", "status_page": str(folder / "page.html")}, ""),
        "unfence": ({}, "n2"),
    }[name]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What git gives AWX of this repository: its files, and no more."""
    project = tmp_path_factory.mktemp("runner") / "project"
    project.mkdir()
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=CHECKOUT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        if (CHECKOUT / name).is_symlink() or (CHECKOUT / name).exists():
            shutil.copy2(CHECKOUT / name, project / name, follow_symlinks=False)
    return project


Job = Callable[..., str]


@pytest.fixture
def job(cluster: EmbeddedCluster, project: Path, tmp_path: Path) -> Job:
    """Return how a job is run: the template's name, whether it is a check, its answers and limit.

    The place of the collections is set as AWX sets it: what the project's ansible.cfg says,
    after the folder of what ``collections/requirements.yml`` asks for (awx/main/tasks/jobs.py).
    """

    def run(name: str, check: bool, variables: dict[str, Any], limit: str) -> str:
        data = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=tmp_path))
        for folder in ("env", "inventory"):
            (data / folder).mkdir(parents=True)
        write_inventory(cluster, data / "inventory" / "hosts.yml")
        (data / "env" / "extravars").write_text(json.dumps({**variables, "awx_job_id": 7}))
        (data / "env" / "settings").write_text(json.dumps({"suppress_ansible_output": False}))
        places = f"/runner/requirements_collections:{project}/.collections"
        (data / "env" / "envvars").write_text(
            json.dumps(
                {
                    "ANSIBLE_COLLECTIONS_PATH": places,
                    "ANSIBLE_HOME": str(tmp_path / "home"),
                    "ANSIBLE_REMOTE_TEMP": str(tmp_path / "remote"),
                    "LC_ALL": "C.UTF-8",
                }
            )
        )
        words = ["--limit", limit] if limit else []
        found = subprocess.run(
            [
                *(sys.executable, "-m", "ansible_runner", "run", str(data)),
                *("--project-dir", str(project), "-p", f"playbooks/{name}.yml", *words),
                *(("--cmdline", "--check --diff") if check else ()),
            ],
            env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert found.returncode == 0, found.stdout[-6000:] + found.stderr
        return found.stdout

    return run


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_job_template_is_checked_and_run(
    name: str, cluster: EmbeddedCluster, job: Job, tmp_path: Path
) -> None:
    mark = tmp_path / "updated"
    needed = {"ansible.builtin.set_fact": {"__rolling_update_needed": True}}
    touch = {"ansible.builtin.file": {"path": str(mark), "state": "touch", "mode": "0600"}}
    (tmp_path / "needed.yml").write_text(yaml.safe_dump([needed]))
    (tmp_path / "update.yml").write_text(yaml.safe_dump([touch]))
    if name == "restore":
        job("backup", False, answers("backup", tmp_path)[0], "")
    if name in ("drill", "fence", "evacuate", "node_maintenance"):
        cluster.give_a_service("n2")
    before = cluster.status()
    try:
        job(name, True, *answers(name, tmp_path))
        assert what_is_wanted(cluster.status()) == what_is_wanted(before)
        assert not mark.exists() and not (tmp_path / "page.html").exists()
        job(name, False, *answers(name, tmp_path))
    finally:
        put_back(name, cluster, job)
    cluster.wait_settled()


def what_is_wanted(status: dict[str, Any]) -> dict[str, Any]:
    """Return what no check may change."""
    return {
        "version": status["config_version"],
        "nodes": {key: (one["state"], one["maintenance"]) for key, one in status["nodes"].items()},
        "services": {key: one["node"] for key, one in status["services"].items()},
    }


def put_back(name: str, cluster: EmbeddedCluster, job: Job) -> None:
    """Leave the cluster as the next test wants it."""
    if name == "cluster_maintenance":
        job(name, False, {"cluster_maintenance_state": "absent"}, "")
    if name == "fence":
        job("unfence", False, {}, "n2")
    if name == "node_maintenance":
        cluster.maintenance("n2", "active", on="n1")
    if name == "place":
        cluster.remove("new")
