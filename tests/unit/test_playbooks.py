# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The variables of each playbook are those that it checks, uses and documents."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from ansible_collections.holdfast.ha.plugins.filter import own as own_file
from ansible_collections.holdfast.ha.plugins.module_utils._declarations import (
    CONFIGURATION,
    NODE_PROPERTIES,
    POLICY,
    RULE,
    SERVICE,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired import (
    DesiredState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.maintenance import (  # noqa: E501
    FENCE_REASON,
    NOT_PROVED,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.policy import (
    Policy,
    policy_document,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.resources import (
    PROPERTY_KEYS,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.rules import (
    LocationRule,
    NodeRule,
    ServiceRule,
    rule_document,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.operations.export import (  # noqa: E501
    exported,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.operations.service import (  # noqa: E501
    SERVICE_KEYS,
)

ROOT = Path(__file__).resolve().parents[2]
PLAYBOOKS = ROOT / "playbooks"
OTHERS = ("deploy", "remove", "storage_change", "cluster_key", "quickstart", "quickstart_remove")
"""Those that make a cluster, take it away or change all nodes: their variables are of the group."""

AWX = "awx"
"""Sets AWX up: it speaks to no cluster."""

OPERATORS = sorted(path.stem for path in PLAYBOOKS.glob("*.yml") if path.stem not in (*OTHERS, AWX))


def variables(name):
    found = yaml.safe_load((PLAYBOOKS / "vars" / f"{name}.yml").read_text(encoding="utf-8"))
    assert found["__playbook"] == name
    return found["__variables"]


def text_of(name):
    return (PLAYBOOKS / f"{name}.yml").read_text(encoding="utf-8")


def whole_text_of(name):
    """Return the playbook with its own files of tasks, without the names of those."""
    files = sorted((PLAYBOOKS / "tasks").glob(f"{name}_*.yml"))
    text = text_of(name) + "".join(path.read_text(encoding="utf-8") for path in files)
    return re.sub(rf"(tasks/)?{name}_\w+\.yml", "", text)


@pytest.mark.parametrize("name", OPERATORS)
def test_a_playbook_uses_the_variables_that_it_checks_and_no_others(name):
    used = set(re.findall(rf"(?<![\w.]){name}_\w+", whole_text_of(name)))
    modules = set(re.findall(rf"holdfast\.ha\.({name}_\w+)", whole_text_of(name)))
    assert used - modules == set(variables(name))


@pytest.mark.parametrize("name", OPERATORS)
def test_the_default_that_is_documented_is_the_one_that_is_used(name):
    for variable, spec in variables(name).items():
        used = re.findall(rf"{variable} \| default\(([^()]*)\)", whole_text_of(name))
        told = {one for one in used if one not in ("omit", "omit, true", "''")}
        if "default" in spec and told:
            value = spec["default"]
            plain = str(value).lower() if isinstance(value, bool) else repr(value)
            assert told == {plain}, variable
        if spec.get("required"):
            assert not used, variable


@pytest.mark.parametrize("name", OPERATORS)
def test_a_text_that_was_left_empty_counts_as_none(name):
    for variable, spec in variables(name).items():
        if spec["type"] in ("str", "path"):
            assert f"{variable} | default(omit) " not in whole_text_of(name)


@pytest.mark.parametrize("name", [*OPERATORS, AWX])
def test_each_variable_stands_in_the_documentation(name):
    text = (ROOT / "docs" / "playbooks.md").read_text(encoding="utf-8")
    section = text.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
    about = yaml.safe_load((PLAYBOOKS / "vars" / f"{name}.yml").read_text())["__about"]
    assert section.replace("`", "").strip().startswith(about)
    rows = dict(re.findall(r"^\| `(\w+)` \| .* \| (.*) \|$", section, re.MULTILINE))
    assert rows == {key: spec["description"] for key, spec in variables(name).items()}


@pytest.mark.parametrize("name", OPERATORS)
def test_no_variable_of_another_playbook_is_taken_for_a_misspelt_one(name):
    own = own_file.FilterModule().filters()["own"]
    others = [key for other in OPERATORS if other != name for key in variables(other)]
    assert own(others, variables(name), name) == []
    for variable in variables(name):
        twisted = variable[:-2] + variable[-1] + variable[-2]
        assert own([variable, twisted], variables(name), name) == [variable, twisted]


def test_only_playbooks_that_read_may_go_by_a_node_that_is_not_online():
    reading = [name for name in OPERATORS if "__holdfast_reads: true" in text_of(name)]
    assert reading == ["backup", "drift", "export", "status"]
    for name in reading:
        changing = r"holdfast\.ha\.(?!(cluster|configuration)_info|configuration_backup)\w+:"
        assert not re.search(changing, text_of(name))


@pytest.mark.parametrize("name", ["deploy", "remove"])
def test_the_files_on_the_storage_are_looked_after_by_one_node_of_any_limit(name):
    plays = yaml.safe_load(text_of(name))
    assert all(play["hosts"] == "holdfast" and play["any_errors_fatal"] for play in plays)
    roles = [
        (task["ansible.builtin.include_role"]["name"], task.get("run_once", False))
        for play in plays
        for task in play["tasks"]
        if "ansible.builtin.include_role" in task
        # Each node looks what it sees, and changes nothing.
        and task["ansible.builtin.include_role"].get("tasks_from") != "look"
    ]
    assert {role for role, once in roles if once} == {"holdfast.ha.storage"}
    assert ("holdfast.ha.storage", False) not in roles


def test_deploy_takes_a_host_id_for_too_high_only_where_the_files_have_no_room_for_it():
    role = ROOT / "roles" / "storage" / "defaults" / "main.yml"
    default = yaml.safe_load(role.read_text(encoding="utf-8"))["storage_max_hosts"]
    assert re.findall(r"storage_max_hosts \| default\((\d+)\)", text_of("deploy")) == [str(default)]


@pytest.mark.parametrize("name", OPERATORS)
def test_each_playbook_begins_with_the_checks_and_is_tested(name):
    play = yaml.safe_load(text_of(name))[0]
    assert play["tasks"][0]["ansible.builtin.import_tasks"] == "tasks/begin.yml"
    assert play["vars_files"] == f"vars/{name}.yml"
    assert play["gather_facts"] is False
    files = (ROOT / "tests" / "system" / "playbooks").glob("test_*.py")
    tests = "".join(path.read_text(encoding="utf-8") for path in files)
    assert f'play("{name}"' in tests or f'play(\n        "{name}"' in tests


def test_a_fenced_node_is_kept_drained_without_an_end_whatever_an_earlier_drain_had():
    (play,) = yaml.safe_load(text_of("fence"))
    module = "holdfast.ha.node_maintenance"
    (drain,) = [task[module] for task in play["tasks"] if module in task]
    assert drain["duration"] == 0


def test_a_fence_by_hand_has_the_same_mark_in_the_playbooks_as_in_the_command():
    begin = text_of("tasks/begin")
    assert begin.count(f'__holdfast_fenced: "{FENCE_REASON}"\n') == 1
    files = [path for path in PLAYBOOKS.rglob("*.yml") if path.name != "begin.yml"]
    assert not [path.name for path in files if FENCE_REASON in path.read_text(encoding="utf-8")]
    for name in ("fence", "unfence", "node_maintenance"):
        assert "__holdfast_fenced" in text_of(name)
    assert f'fence_reason }}}}{NOT_PROVED}"' in text_of("fence")


@pytest.mark.parametrize("name", ["node_maintenance", "unfence"])
def test_whether_a_node_was_fenced_by_hand_is_looked_at_before_it_is_used_again(name):
    (play,) = yaml.safe_load(text_of(name))
    [look] = [row for row, task in enumerate(play["tasks"]) if "__holdfast_fenced" in str(task)]
    acts = {"holdfast.ha.fence", "holdfast.ha.node_maintenance"}
    assert look < min(row for row, task in enumerate(play["tasks"]) if acts & set(task))


DECLARED = {"services": "[]", "rules": "[]", "node_properties": "[]", "policy": "{}"}
"""What can be declared, each as a variable holdfast_KIND, and what that is if it is not there."""


@pytest.mark.parametrize(
    ("name", "module"), [("declare", "configuration"), ("drift", "configuration_info")]
)
def test_what_is_exported_is_what_is_declared_and_compared(name, module):
    (play,) = yaml.safe_load(text_of(name))
    (task,) = [task for task in play["tasks"] if f"holdfast.ha.{module}" in task]
    options = {
        key: value for key, value in task[f"holdfast.ha.{module}"].items() if key != "config"
    }
    assert options == {
        kind: f"{{{{ holdfast_{kind} | default({none}) }}}}" for kind, none in DECLARED.items()
    }
    assert set(DECLARED) == set(exported(DesiredState())) == set(CONFIGURATION.argument_spec)
    for kind in DECLARED:
        assert f"'holdfast_{kind}': __exported.{kind}" in text_of("export")


def test_everything_that_can_be_declared_of_a_service_rule_or_policy_can_be_by_the_playbook():
    assert set(policy_document(Policy())) == set(POLICY.argument_spec)
    # Whether it is checked is no part of what is declared.
    assert {*SERVICE_KEYS, "name", "validate"} == set(SERVICE.argument_spec)
    for rule in (
        NodeRule("a", ("b",), {"n1": 1}),
        ServiceRule("a", ("b", "c"), "apart"),
        LocationRule("a", ("b", "c"), "apart", "site", 2),
    ):
        assert set(rule_document(rule)) <= set(RULE.argument_spec)
    assert {*PROPERTY_KEYS, "name", "state"} == set(NODE_PROPERTIES.argument_spec)


def test_the_playbook_awx_uses_the_variables_that_it_checks():
    text = "".join(
        path.read_text(encoding="utf-8")
        for path in (PLAYBOOKS / "awx.yml", *sorted((PLAYBOOKS / "tasks").glob("awx_*.yml")))
    )
    used = set(re.findall(r"(?<![\w.\]])(?<!__)awx_\w+", text)) | set(
        re.findall(r"__awx_given\.(awx_\w+)", text)
    )
    files = {"awx_ground", "awx_templates"}
    assert used - files == set(variables(AWX))


def test_each_playbook_is_a_job_template_but_those_that_need_no_cluster():
    file = yaml.safe_load((PLAYBOOKS / "vars" / "awx_templates.yml").read_text(encoding="utf-8"))
    assert file["__awx_surveyed"] == OPERATORS
    assert file["__awx_plain"] == ["deploy", "remove"]


def test_a_host_that_hangs_is_waited_for_no_longer_than_its_time_and_the_next_one_asked():
    tasks = yaml.safe_load(text_of("tasks/begin_ask"))
    [asking] = [task for task in tasks if "holdfast.ha.cluster_info" in task]
    assert "holdfast_ask_timeout" in asking["timeout"]
    assert (asking["ignore_errors"], asking["ignore_unreachable"]) == (True, True)


def every_task(tasks):
    """Return the tasks with those in their blocks."""
    found = []
    for task in tasks:
        inner = [one for key in ("block", "rescue", "always") for one in task.get(key, ())]
        found += every_task(inner) if inner else [task]
    return found


def tasks_of_the_speaker(path):
    """Return module, options and deadline of the tasks that are run on the speaker."""
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    plays = [row["tasks"] for row in document if "hosts" in row and "tasks" in row]
    tasks = every_task([task for play in plays for task in play] or document)
    for task in tasks:
        if task.get("delegate_to") == "{{ __holdfast_speaker }}":
            (module,) = [key for key in task if key.count(".") == 2]
            yield module, task[module], task.get("timeout")


def test_a_speaker_that_dies_is_not_waited_for_without_an_end():
    # How long devices take for a fence is said by their configuration.
    endless = {"holdfast.ha.fence", "holdfast.ha.fence_rehearsal"}
    files = [PLAYBOOKS / f"{name}.yml" for name in OPERATORS]
    files += [PLAYBOOKS / "tasks" / f"{name}.yml" for name in ("wait_for_node", "not_while_paused")]
    files += [PLAYBOOKS / "tasks" / "rebalance_step.yml"]
    asked = [(path.name, *task) for path in files for task in tasks_of_the_speaker(path)]
    assert len(asked) > 40
    for name, module, options, deadline in asked:
        if module in endless:
            assert deadline is None, name
        elif "timeout" in options:
            own = options["timeout"].removesuffix(" }}")
            assert deadline == f"{own} | int + 60 }}}}", (name, module)
        else:
            assert isinstance(deadline, int), (name, module)


@pytest.mark.parametrize("name", ["drill", "evacuate", "node_maintenance", "rolling_update"])
def test_nothing_is_changed_before_a_paused_cluster_is_refused(name):
    begins = {f"holdfast.ha.{module}" for module in ("evacuate", "fence", "node_maintenance")}
    for play in yaml.safe_load(text_of(name)):
        kinds = [
            "look" if "tasks/not_while_paused.yml" in task.values() else "act"
            for task in play["tasks"]
            if "tasks/not_while_paused.yml" in task.values() or begins & set(task)
        ]
        assert kinds[0] == "look"


@pytest.mark.parametrize("name", ["cluster_maintenance", "fence", "node_maintenance"])
def test_who_asks_is_the_operator_and_not_the_user_as_whom_the_module_runs(name):
    (play,) = yaml.safe_load(text_of(name))
    modules = {"holdfast.ha.cluster_maintenance", "holdfast.ha.node_maintenance"}
    (asking,) = [task for task in play["tasks"] if modules & set(task)]
    assert asking["environment"] == "{{ __holdfast_by }}"


def test_that_a_node_can_be_fenced_is_known_before_it_is_drained():
    (play,) = yaml.safe_load(text_of("fence"))
    order = [key for task in play["tasks"] for key in task if key.startswith("holdfast.ha.")]
    assert order.index("holdfast.ha.fence_info") < order.index("holdfast.ha.node_maintenance")
