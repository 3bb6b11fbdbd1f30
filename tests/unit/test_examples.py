# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The examples of the modules and of the pages use what there is, with values that fit.

Each task is held against the options of its module, a role's variables against its argument
spec, other variables against what the playbooks check or document.  A template fits everywhere.
"""

from __future__ import annotations

import copy
import importlib
import re
import shlex
from pathlib import Path

import pytest
import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.parsing.splitter import parse_kv
from ansible.playbook.block import Block
from ansible.playbook.play import Play
from ansible.playbook.task import Task
from ansible_collections.holdfast.ha.plugins.module_utils._declarations import (
    CONFIGURATION,
    NODE_PROPERTIES,
    POLICY,
    RULE,
    SERVICE,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import HoldfastError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.topology import (
    parse_fence_configuration,
)
from ansible_collections.holdfast.ha.plugins.module_utils._module import Options

ROOT = Path(__file__).resolve().parents[2]
PLUGINS = "ansible_collections.holdfast.ha.plugins"
OWN = "holdfast.ha."
BUILTIN = "ansible.builtin."
MODULES = sorted(path.stem for path in (ROOT / "plugins" / "modules").glob("[!_]*.py"))
PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("roles/*/README.md")])
BLOCK = re.compile(
    r"^(?P<indent> *)```(?P<kind>\w*)[^\n]*\n(?P<text>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
TEMPLATE = re.compile(r"\{\{|\{%")

ANYTHING = ("ansible.builtin.set_fact",)
"""Modules whose options are names of the user's own."""

ROLE_TASKS = ("ansible.builtin.include_role", "ansible.builtin.import_role")

FACTS = ("type", "elements", "choices", "required", "aliases")
"""What documentation says of an option that a value can break."""

FITTING = {
    **{"str": "x", "path": "/x", "list": [], "dict": {}, "bool": True, "int": 1, "float": 1.0},
    "raw": "x",
}
"""For each type of an option a value in place of a template."""

PLAYBOOK_VARIABLES = {
    path.stem: yaml.safe_load(path.read_text(encoding="utf-8"))["__variables"]
    for path in sorted((ROOT / "playbooks" / "vars").glob("*.yml"))
    if path.stem not in ("awx_templates", "quickstart")
}


def blocks(page, *kinds):
    """Return the texts of a page's blocks of some kinds."""
    found = BLOCK.finditer(page.read_text(encoding="utf-8"))
    return [
        re.sub(f"^{one['indent']}", "", one["text"], flags=re.MULTILINE)
        for one in found
        if one["kind"] in kinds
    ]


def as_spec(documented):
    """Return documented options as an argument spec."""
    spec = {}
    for name, option in documented.items():
        spec[name] = {key: option[key] for key in FACTS if key in option}
        if "choices" in option:
            spec[name]["choices"] = list(option["choices"])
        inner = option.get("suboptions", option.get("options"))
        if inner:
            spec[name]["options"] = as_spec(inner)
    return spec


def fragment(name):
    """Return the options of a documentation fragment, of Ansible's or of this collection."""
    folder, parts = "ansible.plugins.doc_fragments", name.split(".")
    if name.startswith(OWN):
        folder, parts = f"{PLUGINS}.doc_fragments", name[len(OWN) :].split(".")
    fragments = importlib.import_module(f"{folder}.{parts[0]}").ModuleDocFragment
    text = getattr(fragments, parts[1].upper() if len(parts) > 1 else "DOCUMENTATION")
    return yaml.safe_load(text).get("options") or {}


def options_of(name):
    """Return what a module takes; None where there is no such module."""
    folder = f"{PLUGINS}.modules" if name.startswith(OWN) else "ansible.modules"
    if not name.startswith((OWN, BUILTIN)):
        return None
    try:
        module = importlib.import_module(f"{folder}.{name.rpartition('.')[2]}")
    except ImportError:
        return None
    if hasattr(module, "OPTIONS"):
        return module.OPTIONS
    text = yaml.safe_load(module.DOCUMENTATION)
    documented = {}
    named = text.get("extends_documentation_fragment") or []
    for one in [named] if isinstance(named, str) else named:
        documented.update(fragment(one))
    return Options(argument_spec=as_spec({**documented, **(text.get("options") or {})}))


def role_options(name, entry="main"):
    path = ROOT / "roles" / name / "meta" / "argument_specs.yml"
    text = yaml.safe_load(path.read_text(encoding="utf-8"))
    return Options(argument_spec=as_spec(text["argument_specs"][entry]["options"]))


def variables_of(playbook):
    """Return the variables that a playbook checks; an example need not have all of them."""
    spec = as_spec(PLAYBOOK_VARIABLES[playbook])
    return Options({key: {**option, "required": False} for key, option in spec.items()})


def documented_variables():
    """Return the names in the tables of variables: those of deploy, and of each run."""
    text = (ROOT / "docs" / "playbooks.md").read_text(encoding="utf-8")
    cells = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|", text, re.MULTILINE)
    names = {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}
    for path in sorted(ROOT.glob("extensions/eda/rulebooks/*.yml")):
        names |= set(re.findall(r"\{\{ (\w+)", path.read_text(encoding="utf-8")))
    return names


def filled(value, option):
    """Return a value with what fits in place of each template."""
    kind = option.get("type", "str")
    if isinstance(value, str) and TEMPLATE.search(value):
        return option["choices"][0] if "choices" in option else FITTING[kind]
    if isinstance(value, dict) and "options" in option:
        inner = option["options"]
        return {key: filled(one, inner.get(key, {})) for key, one in value.items()}
    if isinstance(value, list):
        element = {**option, "type": option.get("elements", "raw")}
        return [filled(one, element) for one in value]
    return value


def unlike(place, value, option):
    """Return where a value is turned into what nobody meant, such as off into False."""
    kind = option.get("type", "str")
    if isinstance(value, list) and kind == "list":
        element = {**option, "type": option.get("elements", "raw")}
        return [one for row in value for one in unlike(place, row, element)]
    if isinstance(value, dict) and kind == "dict":
        inner = option.get("options", {})
        return [
            one
            for key, row in value.items()
            if key in inner
            for one in unlike(f"{place}.{key}", row, inner[key])
        ]
    texts = kind in ("str", "path") and isinstance(value, (bool, list, dict))
    numbers = kind in ("int", "float") and isinstance(value, bool)
    return [f"{place}: {value!r} is no {kind}"] if texts or numbers else []


def mistakes(place, values, options):
    """Return what is wrong with *values* for *options*."""
    spec = {name: dict(option) for name, option in options.argument_spec.items()}
    validator = ArgumentSpecValidator(
        copy.deepcopy(spec),
        mutually_exclusive=[list(row) for row in options.mutually_exclusive],
        required_together=[list(row) for row in options.required_together],
        required_one_of=[list(row) for row in options.required_one_of],
        required_if=[list(row) for row in options.required_if],
        required_by={name: list(row) for name, row in options.required_by.items()},
    )
    result = validator.validate(
        {key: filled(one, spec.get(key, {})) for key, one in values.items()}
    )
    found = [f"{place}: {message}" for message in result.error_messages]
    for name, value in values.items():
        found += unlike(f"{place}.{name}", value, spec.get(name, {"type": "raw"}))
    return found


def declared_mistakes(place, values, prefix=""):
    """Return what is wrong with services, rules and policy, whose options *values* only hold."""
    found = []
    kinds = {"services": SERVICE, "rules": RULE, "node_properties": NODE_PROPERTIES}
    for kind, options in kinds.items():
        rows = values.get(f"{prefix}{kind}")
        for row in rows if isinstance(rows, list) else ():
            found += mistakes(f"{place}.{kind}", row, options)
    policy = values.get(f"{prefix}policy")
    return found + (mistakes(f"{place}.policy", policy, POLICY) if isinstance(policy, dict) else [])


def fencing_mistakes(place, values, prefix=""):
    """Return what is wrong with fence devices and the nodes that they switch."""
    devices, nodes = (values.get(f"{prefix}{key}") for key in ("devices", "nodes"))
    if not isinstance(devices, dict):
        return []
    try:
        parse_fence_configuration({"devices": devices, "nodes": nodes or {}})
    except HoldfastError as error:
        return [f"{place}: {error}"]
    return []


def role_mistakes(place, role, values, entry="main"):
    name = role[len(OWN) :] if role.startswith(OWN) else ""
    if not (ROOT / "roles" / name / "meta").is_dir():
        return [f"{place}: there is no role {role}"]
    found = mistakes(f"{place} {name}", values, role_options(name, entry))
    return found + fencing_mistakes(f"{place} {name}", values, "fencing_")


def task_mistakes(place, task):
    """Return what is wrong with a task, or with those of a block."""
    inner = [one for key in ("block", "rescue", "always") for one in task.get(key, ())]
    if inner:
        found = [f"{place}: a block has no {key}" for key in set(task) - set(Block.fattributes)]
        return found + [one for row in inner for one in task_mistakes(place, row)]
    modules = [key for key in task if key.count(".") >= 2]
    words = set(task) - set(modules) - set(Task.fattributes)
    found = [f"{place}: a task has no {key}" for key in sorted(words)]
    if len(modules) != 1:
        return [*found, f"{place}: one module by its full name is expected, not {modules}"]
    (name,) = modules
    options, values = options_of(name), task[name] or {}
    told = f"{place} {name}"
    if options is None:
        return [*found, f"{told}: there is no such module"]
    if name in ANYTHING or isinstance(values, str):
        return found
    found += mistakes(told, values, options)
    if name in (f"{OWN}configuration", f"{OWN}configuration_info"):
        found += declared_mistakes(told, values)
    if name == f"{OWN}fence_config":
        found += fencing_mistakes(told, values)
    if name in ROLE_TASKS:
        found += role_mistakes(
            place, values["name"], task.get("vars", {}), values.get("tasks_from", "main")
        )
    return found


def play_mistakes(place, play):
    words = set(play) - set(Play.fattributes) - {"hosts"}
    found = [f"{place}: a play has no {key}" for key in sorted(words)]
    for key in ("pre_tasks", "tasks", "post_tasks", "handlers"):
        found += [one for task in play.get(key, ()) for one in task_mistakes(place, task)]
    for role in play.get("roles", ()):
        found += role_mistakes(place, role["role"], role.get("vars", {}))
    return found


def variable_mistakes(place, values):
    """Return what is wrong with variables of the inventory or of a run."""
    known = {key for one in PLAYBOOK_VARIABLES.values() for key in one}
    known |= documented_variables() | {f"holdfast_{kind}" for kind in CONFIGURATION.argument_spec}
    strange = [key for key in values if key not in known and not key.startswith("ansible_")]
    found = [f"{place}: no page has the variable {key}" for key in strange]
    for playbook, variables in PLAYBOOK_VARIABLES.items():
        given = {key: value for key, value in values.items() if key in variables}
        found += mistakes(place, given, variables_of(playbook))
    found += declared_mistakes(place, values, "holdfast_")
    return found + fencing_mistakes(place, values, "holdfast_fence_")


def group_mistakes(place, group):
    """Return what is wrong with the variables of a group of an inventory and of its hosts."""
    found = variable_mistakes(place, group.get("vars") or {})
    for values in (group.get("hosts") or {}).values():
        found += variable_mistakes(place, values or {})
    for child in (group.get("children") or {}).values():
        found += group_mistakes(place, child or {})
    return found


def document_mistakes(place, document):
    """Return what is wrong with plays, tasks, an inventory or variables."""
    if isinstance(document, list):
        of = play_mistakes if any("hosts" in one for one in document) else task_mistakes
        return [one for row in document for one in of(place, row)]
    if all(isinstance(one, dict) and {"hosts", "children"} & set(one) for one in document.values()):
        return [one for group in document.values() for one in group_mistakes(place, group)]
    return variable_mistakes(place, document)


SHELLS = ("ansible.builtin.command", "ansible.builtin.shell")


def command_mistakes(place, line):
    """Return what is wrong with the variables or options of a command of Ansible."""
    words = shlex.split(line, comments=True)
    following = list(zip(words, [*words[1:], ""]))
    if words[:1] == ["ansible"]:
        told = dict(following)
        if "-m" not in told:
            # What follows is a command of the node.
            return []
        name, given = told["-m"], parse_kv(told.get("-a", ""))
        if name in SHELLS:
            # What follows is a command of a shell.
            return []
        options = options_of(name)
        if options is None:
            return [f"{place}: there is no module {name}"]
        return mistakes(f"{place} {name}", given, options)
    books = [word[len(OWN) :] for word in words if word.startswith(OWN)]
    given = {}
    for word, after in following:
        if word == "-e" and "=" in after:
            given.update(parse_kv(after))
    found = [
        f"{place}: there is no playbook {book}"
        for book in books
        if not (ROOT / "playbooks" / f"{book}.yml").exists()
    ]
    strange = {
        key
        for key in given
        for book in books
        if key in {one for other in PLAYBOOK_VARIABLES.values() for one in other}
        and key not in PLAYBOOK_VARIABLES.get(book, ())
    }
    found += [f"{place}: {key} is not for {', '.join(books)}" for key in sorted(strange)]
    return found + variable_mistakes(f"{place} {line}", given)


def commands(text):
    """Return the commands of Ansible in a text for a shell, each in one line."""
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    return [line for line in lines if re.match(r"ansible(-playbook)? ", line)]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_use_options_that_there_are(name):
    module = importlib.import_module(f"{PLUGINS}.modules.{name}")
    assert document_mistakes(name, yaml.safe_load(module.EXAMPLES)) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_examples_of_a_page_use_options_and_variables_that_there_are(page):
    place = str(page.relative_to(ROOT))
    found = []
    for text in blocks(page, "yaml"):
        found += [one for row in yaml.safe_load_all(text) for one in document_mistakes(place, row)]
    for text in blocks(page, "sh", "console", ""):
        found += [one for line in commands(text) for one in command_mistakes(place, line)]
    assert found == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- holdfast.ha.rule: {name: a, servises: [b], affinity: apart}", "servises"),
        ("- holdfast.ha.rule: {name: a, services: [b], affinity: near}", "value of affinity"),
        (
            "- holdfast.ha.rule: {services: [b], affinity: apart}",
            "missing required arguments: name",
        ),
        ("- holdfast.ha.rule: {name: a, services: [b]}", "any of the following are missing: nodes"),
        ("- holdfast.ha.rules: {name: a}", "no such module"),
        ("- holdfast.ha.cluster_info: {until: now}\n  registers: x", "a task has no registers"),
        ("- holdfast.ha.fence: {nodes: [a], state: off}", "state: False is no str"),
        ("- holdfast.ha.cluster_policy: {max_workers: many}", "max_workers"),
        ("- holdfast.ha.configuration: {policy: {wait: true}}", "policy: wait"),
        ("- holdfast.ha.configuration: {services: [{name: a, max_restrat: 1}]}", "max_restrat"),
        ("- holdfast.ha.service: {name: a, resources: [{name: r, agent: x, ip: 1}]}", "ip"),
        ("- ansible.builtin.package: {name: a, status: latest}", "status"),
        ("- block: [{holdfast.ha.rule: {nam: a}}]", "nam"),
        ("- hosts: all\n  roles: [{role: holdfast.ha.leases}]", "leases_node"),
        ("- hosts: all\n  roles: [{role: holdfast.ha.lease}]", "there is no role"),
        ("- hosts: all\n  task: []", "a play has no task"),
        ("fence_owner: true", "True is no str"),
        ("rolling_update_reboot: maybe", "value of rolling_update_reboot"),
        ("rolling_update_rebot: never", "no page has the variable rolling_update_rebot"),
        ("holdfast_policy: {shutdown: halt}", "value of shutdown"),
        ("g: {hosts: {a: {holdfast_hostid: 1}}}", "no page has the variable holdfast_hostid"),
        ("g: {hosts: {}, vars: {holdfast_fence_devices: {d: {agnet: x}}}}", "agnet"),
    ],
)
def test_what_is_wrong_in_an_example_is_found(text, said):
    (found,) = [document_mistakes("page", yaml.safe_load(text))]
    assert said in " ".join(found)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("ansible-playbook -i h.yml holdfast.ha.fense -e fence_consent=true", "no playbook fense"),
        ("ansible-playbook -i h.yml holdfast.ha.fence -e fence_consents=true", "fence_consents"),
        ("ansible-playbook -i h.yml holdfast.ha.fence -e drill_consent=true", "is not for fence"),
        ("ansible-playbook -i h.yml holdfast.ha.fence -e fence_timeout=long", "fence_timeout"),
        ('ansible-playbook -i h.yml holdfast.ha.fence -e fence_reason="a disk"', "_raw_params"),
        ("ansible n1 -m holdfast.ha.ocf_info -a agents=x", "agents"),
    ],
)
def test_what_is_wrong_in_a_command_is_found(line, said):
    assert said in " ".join(command_mistakes("page", line))
