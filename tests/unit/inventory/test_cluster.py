# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The inventory plugin as Ansible loads it: groups, variables, constructed options, cache."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from ansible_collections.holdfast.ha.plugins.inventory import cluster as plugin
from ansible_collections.holdfast.ha.tests.unit.node.sample_status import after_failover

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def inventory(tmp_path):
    """Return a function that runs ansible-inventory on a status and returns what it says."""
    answer = tmp_path / "n1.json"
    answer.write_text(json.dumps(after_failover()))
    source = tmp_path / "demo.holdfast.yml"

    def run(*words, fails=False, **options):
        command = [sys.executable, "-c", "import sys; print(open(sys.argv[1]).read())"]
        asked = {"nodes": ["n9", "n1"], "command": [*command, f"{tmp_path}/{{node}}.json"]}
        source.write_text(
            yaml.safe_dump({"plugin": plugin.InventoryModule.NAME, **asked, **options})
        )
        found = subprocess.run(
            [sys.executable, "-m", "ansible.cli.inventory", "-i", str(source), *words],
            env={
                **os.environ,
                "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".collections"),
                "ANSIBLE_HOME": str(tmp_path / "home"),
                "ANSIBLE_LOCAL_TEMP": str(tmp_path / "home" / "tmp"),
                "ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "true",
                "LC_ALL": "C.UTF-8",
            },
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        if fails:
            assert found.returncode != 0
            return " ".join(found.stderr.split())
        assert found.returncode == 0, found.stderr
        said = json.loads(found.stdout, object_hook=_plain)
        said["warnings"] = " ".join(found.stderr.split())
        return said

    run.answer = answer
    return run


def _plain(found):
    """Return a text that Ansible shows as no template as the text that it is."""
    return found.get("__ansible_unsafe", found)


def test_a_node_that_is_down_is_passed_over_and_the_groups_are_there(inventory):
    said = inventory("--list")
    assert "n9 does not say how the cluster is" in said["warnings"]
    assert said["holdfast_manager"]["hosts"] == ["n1"]
    assert said["holdfast_fenced"]["hosts"] == ["n2"]
    assert said["holdfast_runs_vm_100"]["hosts"] == ["n3"]
    assert set(said["holdfast_nodes"]["children"]) >= {"holdfast_online", "holdfast_stale"}
    assert said["_meta"]["hostvars"]["n2"]["holdfast_state"] == "off"


def test_constructed_options_make_variables_and_groups(inventory):
    said = inventory(
        "--list",
        strict=True,
        group_prefix="ha_",
        compose={"ansible_host": "ha_address", "load": "ha_runs | length"},
        groups={"loaded": "load | int > 1"},
        keyed_groups=[{"key": "ha_host_lease", "prefix": "lease"}],
    )
    assert said["_meta"]["hostvars"]["n3"]["ansible_host"] == "10.0.0.13"
    assert said["loaded"]["hosts"] == ["n1"]
    assert said["lease_free"]["hosts"] == ["n2"]
    assert said["ha_fenced"]["hosts"] == ["n2"]


def test_what_an_agent_printed_is_no_template(inventory):
    status = after_failover()
    status["nodes"]["n2"]["reason"] = "{{ lookup('pipe', 'touch owned') }}"
    inventory.answer.write_text(json.dumps(status))
    said = inventory("--host", "n2")
    assert "lookup" in str(said["holdfast_reason"])
    assert not (inventory.answer.parent / "owned").exists()
    assert not (inventory.answer.parent / "home" / "owned").exists()


def test_a_cached_answer_is_used_while_nobody_answers(inventory, tmp_path):
    cached = {
        "cache": True,
        "cache_plugin": "ansible.builtin.jsonfile",
        "cache_connection": str(tmp_path / "cache"),
        "cache_timeout": 3600,
    }
    first = inventory("--list", **cached)
    inventory.answer.unlink()
    again = inventory("--list", **cached)
    assert again["_meta"] == first["_meta"]
    assert again["holdfast_fenced"] == first["holdfast_fenced"]
    assert "Nobody says how the cluster is" in inventory(
        "--list", "--flush-cache", fails=True, **cached
    )


def test_when_nobody_answers_each_node_is_named(inventory):
    inventory.answer.unlink()
    said = inventory("--list", fails=True)
    assert "n9: " in said
    assert "n1: " in said


def test_a_prefix_that_no_group_can_have_is_refused(inventory):
    assert "group_prefix: 'a-' is not accepted" in inventory(
        "--list", fails=True, group_prefix="a-"
    )


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("holdfast.yml", True),
        ("rack1.holdfast.yaml", True),
        ("myholdfast.yml", False),
        ("hosts.yml", False),
    ],
)
def test_only_files_that_are_called_so_are_taken(tmp_path, name, ours):
    path = tmp_path / name
    path.write_text("plugin: holdfast.ha.cluster\n")
    assert plugin.InventoryModule().verify_file(str(path)) is ours
