# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module fence_config: a mistake never gets into the file, and a password never out of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ansible.module_utils.basic import AnsibleModule
from ansible_collections.holdfast.ha.tests.unit.fence.device_script import write_device
from ansible_collections.holdfast.ha.tests.unit.module_runner import run_failing, run_module, run_ok

LEVELS = {"n1": {"levels": [[{"device": "d", "plug": "1"}]]}}


@pytest.fixture
def options(tmp_path, agent):
    return given(tmp_path, agent, password="hunter2")


def given(folder, agent, nodes=None, **parameters):
    device = {"agent": agent, "parameters": {"ip": "192.0.2.1", **parameters}, "timeout": 3}
    path = str(folder / "etc" / "fence.json")
    return {"path": path, "devices": {"d": device}, "nodes": nodes or LEVELS}


@pytest.mark.parametrize(
    ("nodes", "parameters", "part"),
    [
        ({"n1": {"levels": []}}, {}, "a list with at least one level"),
        ({"n1": {"levels": [[{"device": "x"}]]}}, {}, "one of the fence devices: d"),
        ({**LEVELS, "n2": LEVELS["n1"]}, {}, "the node n1 is on it too"),
        ({"a b": LEVELS["n1"]}, {}, "a node name of letters"),
        (None, {"action": "off"}, "every call sets its own"),
        (None, {"speed": "high"}, "speed"),
        ({"n1": {"levels": [[{"device": "d"}]]}}, {}, "plug"),
    ],
)
def test_a_mistake_fails_the_task_and_leaves_the_file_as_it_was(
    tmp_path, agent, options, nodes, parameters, part
):
    run_ok("fence_config", options)
    before = Path(options["path"]).read_bytes()
    wrong = given(tmp_path, agent, nodes, password="hunter3", **parameters)
    message = run_failing("fence_config", wrong)
    assert part in message
    assert "hunter" not in message
    assert Path(options["path"]).read_bytes() == before


def test_check_then_apply_then_again(options):
    path = Path(options["path"])
    told = run_ok("fence_config", options, check=True, diff=True)
    assert (told["changed"], path.exists()) == (True, False)
    done = run_ok("fence_config", options, diff=True)
    # Ansible adds owner and mode of a file that is there.
    assert {key: done[key] for key in told} == told
    written = json.loads(path.read_text())
    assert written == {"format": 1, "devices": options["devices"], "nodes": options["nodes"]}
    assert path.stat().st_mode & 0o777 == 0o600
    for check in (True, False):
        assert not run_ok("fence_config", options, check)["changed"]


@pytest.mark.parametrize(
    ("name", "fields", "warned"),
    [
        ("fence_test", {}, False),
        ("fence_sbd", {}, True),
        ("fence_sbd", {"assumed_after": 30}, False),
        ("fence_kdump", {}, True),
        ("fence_dummy", {}, True),
    ],
)
def test_a_node_that_nothing_ever_proves_off_is_warned_of(
    tmp_path, monkeypatch, name, fields, warned
):
    warnings = []
    monkeypatch.setattr(AnsibleModule, "warn", lambda _module, text: warnings.append(text))
    desired = given(tmp_path, write_device(tmp_path / "b", name=name))
    desired["devices"]["d"].update(fields)
    run_ok("fence_config", desired)
    told = [one for one in warnings if "No device of the node n1 ever proves" in one]
    assert bool(told) == warned


def test_a_password_can_stay_in_a_file_of_its_own(tmp_path, agent):
    secret = tmp_path / "secret"
    secret.write_text("hunter2\n")
    desired = given(tmp_path, agent, password_file=str(secret))
    secret.chmod(0o644)
    assert "make it 0600" in run_failing("fence_config", desired)
    secret.chmod(0o600)
    done = run_ok("fence_config", desired, diff=True)
    assert str(secret) in done["diff"]["after"]
    assert "hunter2" not in Path(desired["path"]).read_text()
    secret.unlink()
    assert not run_ok("fence_config", desired, check=True)["changed"]
    assert "No such file" in run_failing("fence_config", desired)


def test_all_that_a_device_and_a_node_can_have_is_kept(tmp_path, agent):
    desired = given(
        tmp_path,
        agent,
        password="hunter2",
        nodes={
            "n1": {"levels": [[{"device": "d"}]], "delay": 2, "random_delay": 1.5},
            "n2": {"levels": [[{"device": "d"}]]},
        },
    )
    desired["devices"]["d"].update(
        {"host_map": "n1:1,2;n2:3", "retries": 2, "actions": {"status": {"timeout": 5}}}
    )
    run_ok("fence_config", desired)
    written = json.loads(Path(desired["path"]).read_text())
    assert written == {"format": 1, "devices": desired["devices"], "nodes": desired["nodes"]}
    assert not run_ok("fence_config", desired)["changed"]
    desired["nodes"]["n2"]["levels"] = [[{"device": "d", "plug": "2"}]]
    assert "a plug that is not n1's on d" in run_failing("fence_config", desired)


def test_a_file_that_others_can_read_is_closed_again(options):
    run_ok("fence_config", options)
    path = Path(options["path"])
    path.chmod(0o644)
    assert run_ok("fence_config", options, check=True)["changed"]
    assert path.stat().st_mode & 0o777 == 0o644
    assert run_ok("fence_config", options)["changed"]
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("check", [True, False], ids=["check mode", "for real"])
def test_neither_the_new_nor_the_old_password_is_in_any_result_diff_or_log(
    tmp_path, agent, options, check, monkeypatch
):
    logged = []
    monkeypatch.setattr(AnsibleModule, "log", lambda self, text, **_more: logged.append(text))
    run_ok("fence_config", options)
    changed = given(tmp_path, agent, password="correct horse")
    result = run_module("fence_config", changed, check, diff=True)
    assert result["changed"], "another password is a change, even if it is not shown"
    assert "********" in result["diff"]["after"]
    for text in (json.dumps(result), "".join(logged)):
        assert "hunter2" not in text
        assert "correct horse" not in text


@pytest.mark.parametrize(
    "wrong",
    [
        {"devices": "hunter2"},
        {"devices": {"d": {"agent": "", "parameters": {"password": "hunter2"}}}},
        {"devices": {"d": {"agent": "x", "parameters": {"password": ["hunter2"]}}}},
        {"devices": {"d": {"agent": "x", "parameters": {"password": {"is": "hunter2"}}}}},
        {"nodes": None},
    ],
)
def test_a_password_is_in_no_failure_either(options, wrong):
    result = run_module("fence_config", {**options, **wrong}, diff=True)
    assert result["failed"]
    assert "hunter2" not in json.dumps(result)
