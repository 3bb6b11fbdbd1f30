# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the collection says of its modules is what they are: documentation, groups, tests."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest
import yaml
from ansible_collections.holdfast.ha.plugins.module_utils._module import NODE_OPTIONS

ROOT = Path(__file__).resolve().parents[2]
PLUGINS = "ansible_collections.holdfast.ha.plugins"
MODULES = sorted(path.stem for path in (ROOT / "plugins" / "modules").glob("[!_]*.py"))
INVENTORIES = sorted(path.stem for path in (ROOT / "plugins" / "inventory").glob("[!_]*.py"))
ACTIONS = sorted(path.stem for path in (ROOT / "plugins" / "action").glob("[!_]*.py"))
NODE_GROUP = "holdfast.ha.node"

DOCUMENTED = ("type", "elements", "choices", "default", "required")
"""What documentation and argument spec both say of an option."""


def module(name):
    return importlib.import_module(f"{PLUGINS}.modules.{name}")


def fragment(name, part="options"):
    """Return the options, or another part, of a documentation fragment of this collection."""
    parts = name.removeprefix("holdfast.ha.").split(".")
    fragments = importlib.import_module(f"{PLUGINS}.doc_fragments.{parts[0]}").ModuleDocFragment
    text = getattr(fragments, parts[1].upper() if len(parts) > 1 else "DOCUMENTATION")
    return yaml.safe_load(text).get(part) or {}


def documentation(name):
    return yaml.safe_load(module(name).DOCUMENTATION)


def documented_options(name):
    text = documentation(name)
    options = {}
    for one in text.get("extends_documentation_fragment", ()):
        if one.startswith("holdfast.ha."):
            options.update(fragment(one))
    return {**options, **(text.get("options") or {})}


def facts_of_options(options):
    """Return what is to be the same: for each option its facts, its suboptions likewise."""
    found = {}
    for name, option in options.items():
        facts = {key: option[key] for key in DOCUMENTED if option.get(key) not in (None, False)}
        # That an option is false unless given is said where it is documented.
        if option.get("default") is False:
            facts["default"] = False
        inner = option.get("suboptions", option.get("options"))
        found[name] = (facts, facts_of_options(inner)) if inner else (facts,)
    return found


def uses_a_node_configuration(name):
    """Whether the module acts through the configuration that stands on the node already."""
    if name in ACTIONS or name == "node_config":
        return False
    return set(NODE_OPTIONS.argument_spec) <= set(module(name).OPTIONS.argument_spec) and (
        "holdfast.ha.node" in documentation(name)["extends_documentation_fragment"]
    )


@pytest.mark.parametrize("name", [name for name in MODULES if name not in ACTIONS])
def test_the_documented_options_are_those_that_the_module_takes(name):
    taken = module(name).OPTIONS.argument_spec
    assert facts_of_options(documented_options(name)) == facts_of_options(taken)


@pytest.mark.parametrize("name", ACTIONS)
def test_the_documented_options_are_those_that_the_action_takes(name):
    action = importlib.import_module(f"{PLUGINS}.action.{name}").ActionModule
    assert set(documented_options(name)) == set(action._VALID_ARGS)


@pytest.mark.parametrize("name", MODULES)
def test_a_module_is_documented_under_its_own_name(name):
    assert documentation(name)["module"] == name
    examples = yaml.safe_load(module(name).EXAMPLES)
    assert any(f"holdfast.ha.{name}" in task for task in examples)
    assert yaml.safe_load(module(name).RETURN)


def test_an_option_that_several_modules_have_is_documented_once():
    """Neither two modules nor a module and a fragment have the same text for an option."""
    places = {}
    for name in MODULES:
        for option, text in (documentation(name).get("options") or {}).items():
            places.setdefault((option, yaml.safe_dump(text)), []).append(name)
    for path in sorted((ROOT / "plugins" / "doc_fragments").glob("[!_]*.py")):
        found = importlib.import_module(f"{PLUGINS}.doc_fragments.{path.stem}").ModuleDocFragment
        for part in (key for key in vars(found) if key.isupper()):
            for option, text in (yaml.safe_load(getattr(found, part))["options"] or {}).items():
                places.setdefault((option, yaml.safe_dump(text)), []).append(path.stem)
    repeated = {option: names for (option, _text), names in places.items() if len(names) > 1}
    assert repeated == {}


@pytest.mark.parametrize("name", INVENTORIES)
def test_an_inventory_plugin_is_documented_named_in_the_readme_and_tested(name):
    plugin = importlib.import_module(f"{PLUGINS}.inventory.{name}")
    text = yaml.safe_load(plugin.DOCUMENTATION)
    assert (text["name"], plugin.InventoryModule.NAME) == (name, f"holdfast.ha.{name}")
    assert text["options"]["plugin"]["choices"] == [f"holdfast.ha.{name}"]
    for example in yaml.safe_load_all(plugin.EXAMPLES):
        assert example["plugin"] == f"holdfast.ha.{name}"
    assert f"inventory plugin `holdfast.ha.{name}`" in (ROOT / "README.md").read_text()
    targets = ROOT / "tests" / "integration" / "targets"
    assert (targets / "running_cluster" / "tasks" / "inventory.yml").exists()


def test_the_readme_names_each_module_once():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`holdfast\.ha\..*?) \|", text, re.MULTILINE)
    named = [name for row in rows for name in re.findall(r"`(?:holdfast\.ha\.)?(\w+)`", row)]
    assert sorted(named) == MODULES


@pytest.mark.parametrize("name", MODULES)
def test_a_module_states_its_attributes(name):
    """The stage ``lint`` compares the group with ``meta/runtime.yml``."""
    text = documentation(name)
    stated = {**(text.get("attributes") or {})}
    for one in text["extends_documentation_fragment"]:
        stated = {**fragment(one, "attributes"), **stated}
    expected = {"action_group", "check_mode", "diff_mode", "idempotent", "platform"}
    assert expected <= set(stated)
    in_group = stated["action_group"].get("membership") == [NODE_GROUP]
    assert in_group is uses_a_node_configuration(name)


@pytest.mark.parametrize("name", MODULES)
def test_each_module_has_an_integration_target(name):
    targets = ROOT / "tests" / "integration" / "targets"
    own = targets / name / "tasks" / "main.yml"
    shared = targets / "running_cluster" / "tasks" / f"{name}.yml"
    assert own.exists() or shared.exists()


def test_the_execution_environment_admits_each_ansible_core_that_is_tested():
    stages = (ROOT / "scripts" / "stages.py").read_text(encoding="utf-8")
    series = re.findall(r"\d+\.(\d+)\.\d+", re.search(r"^CORES = \((.*)\)", stages, re.M)[1])
    image = yaml.safe_load((ROOT / "execution-environment.yml").read_text(encoding="utf-8"))
    allowed = image["dependencies"]["ansible_core"]["package_pip"]
    oldest, end = re.fullmatch(r"ansible-core>=2\.(\d+),<2\.(\d+)", allowed).groups()
    assert [int(oldest), int(end) - 1] == [int(series[0]), int(series[-1])]
    runtime = yaml.safe_load((ROOT / "meta" / "runtime.yml").read_text(encoding="utf-8"))
    assert runtime["requires_ansible"] == f">=2.{oldest}.0"
