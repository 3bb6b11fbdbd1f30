# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The inventory plugin as Ansible loads it: groups, variables, constructed options, cache."""

from __future__ import annotations

import json
import sys

import pytest
import yaml
from ansible_collections.holdfast.ha.plugins.inventory import cluster as plugin
from ansible_collections.holdfast.ha.tests.unit.node.sample_status import after_failover
from ansible_collections.holdfast.ha.tests.unit.programs import run_ansible


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
        found = run_ansible(
            "inventory",
            *("-i", str(source), *words),
            folder=tmp_path,
            ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED="true",
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
    assert "n9 does not report the state of the cluster" in said["warnings"]
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
    assert "No node reports the state of the cluster" in inventory(
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


HOSTILE = "{{ lookup('pipe', 'touch ' ~ inventory_dir ~ '/owned') }}"


def hostile_status():
    """Return a status with a template and an escape sequence wherever a text may be."""
    status = after_failover()
    text = f"{HOSTILE}\x1b]0;owned\x07\u202e"
    for node in status["nodes"].values():
        node.update(reason=text, proof=text, problem=text)
        node["maintenance"] = {"reason": text, "owner": text, "since": 1.0, "until": 0.0}
    return status


def test_no_text_of_a_status_is_a_template_in_a_play(inventory, tmp_path):
    inventory.answer.write_text(json.dumps(hostile_status()))
    inventory(
        "--list",
        strict=True,
        compose={"note": "holdfast_reason", "notes": "[holdfast_proof, holdfast_maintenance]"},
        keyed_groups=[{"key": "holdfast_problem", "prefix": "said"}],
    )
    book = tmp_path / "play.yml"
    book.write_text(
        yaml.safe_dump(
            [
                {
                    "hosts": "holdfast_nodes",
                    "gather_facts": False,
                    "connection": "local",
                    "tasks": [
                        {"ansible.builtin.debug": {"msg": "{{ [note, notes, groups, hostvars] }}"}},
                        {"ansible.builtin.set_fact": {"kept": "{{ note }}"}},
                        {"ansible.builtin.debug": {"var": "kept"}},
                    ],
                }
            ]
        )
    )
    found = run_ansible("playbook", "-i", "demo.holdfast.yml", str(book), folder=tmp_path)
    assert found.returncode == 0, found.stdout + found.stderr
    assert "lookup(" in found.stdout
    assert not (tmp_path / "owned").exists()
    for mark in ("\x1b]", "\x07", "\u202e", "u001b", "u202e"):
        assert mark not in found.stdout


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (
            lambda status: status["nodes"].update({"-oProxyCommand=id": status["nodes"]["n1"]}),
            "-oP",
        ),
        (lambda status: status["nodes"].update({"n1,localhost": status["nodes"]["n1"]}), "n1,l"),
        (lambda status: status["nodes"].update({"{{ x }}": status["nodes"]["n1"]}), "x }}"),
        (lambda status: status["nodes"]["n2"].update(address="{{ x }}"), "address"),
        (lambda status: status["nodes"]["n2"].update(host_lease=[]), "host_lease"),
        (lambda status: status["nodes"]["n2"].update(services="web"), "services"),
        (lambda status: status.update(nodes=[]), "nodes"),
        (lambda status: status["manager"].update(node={}), "manager"),
        (lambda status: status["services"].update({"a b": status["services"]["db"]}), "a b"),
    ],
)
def test_a_status_that_is_not_one_makes_no_host(inventory, change, why):
    status = after_failover()
    change(status)
    inventory.answer.write_text(json.dumps(status))
    said = inventory("--list", fails=True)
    assert "a status that is not one" in said
    assert why in said
    assert "Traceback" not in said


@pytest.mark.parametrize("text", ["[" * 5000, '{"cluster": 1e999}', '{"nodes": {}, "nodes": 1}'])
def test_an_answer_that_is_no_status_is_named(inventory, text):
    inventory.answer.write_text(text)
    assert "no status as JSON" in inventory("--list", fails=True)
