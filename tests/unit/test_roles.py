# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each role says the same of its variables in its argument spec, its defaults and its README."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import jinja2
import jinja2.nativetypes
import pytest
import yaml
from ansible.plugins.filter import core as core_filters
from ansible.plugins.filter import mathstuff as list_filters
from ansible.plugins.test.core import match, search

ROOT = Path(__file__).resolve().parents[2]
ROLES = sorted(path.name for path in (ROOT / "roles").iterdir() if path.is_dir())
REQUIRED = "required"


def load(role, name):
    return yaml.safe_load((ROOT / "roles" / role / name).read_text(encoding="utf-8")) or {}


def specification(role):
    return load(role, "meta/argument_specs.yml")["argument_specs"]["main"]


def options_of(role):
    """Return the options of all entry points of a role."""
    entries = load(role, "meta/argument_specs.yml")["argument_specs"].values()
    return {name: option for entry in entries for name, option in entry["options"].items()}


def table(role):
    """Return the rows of the README's table by variable: type, default and meaning."""
    text = (ROOT / "roles" / role / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (.+?) \| (.+) \|$", text, re.MULTILINE)
    return {name: (kind, default, meaning) for name, kind, default, meaning in rows}


def plain(description):
    """Return a description as the README has it, with its markup as Markdown."""
    sentences = [description] if isinstance(description, str) else description
    return re.sub(r"[CO]\((.*?)\)", r"`\1`", " ".join(sentences))


def written(option):
    if option.get("required"):
        return REQUIRED
    default = option["default"]
    return f"`{default}`"


def evaluated(role, *names, **variables):
    """Return the value of the last of a role's own variables *names*; each may use those before."""
    surroundings = jinja2.nativetypes.NativeEnvironment()
    surroundings.filters.update(core_filters.FilterModule().filters())
    surroundings.filters.update(list_filters.FilterModule().filters())
    surroundings.tests.update(match=match, search=search)
    own = load(role, "vars/main.yml")
    known = {**own, **variables}
    for name in names:
        known[name] = surroundings.from_string(own[name]).render(known)
    return known[names[-1]]


@pytest.mark.parametrize(
    ("unit", "file"),
    [
        (
            "ExecStart=/usr/sbin/holdfast metrics --write /var/a/x.prom --every 15\n",
            "/var/a/x.prom",
        ),
        ("ExecStart=/bin/true\n", ""),
        (None, ""),
    ],
)
def test_the_file_of_metrics_that_is_removed_is_the_one_that_the_unit_wrote(unit, file):
    read = {} if unit is None else {"content": base64.b64encode(unit.encode()).decode()}
    found = evaluated("node", "__node_metrics_former", __node_metrics_unit_now=read)
    assert found == file


PATHS = {
    **{"node_storage": "/srv/ha-1/rack_1", "node_folder": "/var/lib/holdfast"},
    **{"node_config": "/etc/holdfast/node.json", "node_library": "/usr/lib/holdfast.pyz"},
    "node_command": "/usr/sbin/holdfast",
}


@pytest.mark.parametrize(
    "path",
    ["/srv/my ha", "/srv/ha\n", "/srv/%h", "/srv/$a", "/srv/'a'", '/srv/"', "/srv/\\x", "ha"],
)
def test_a_path_that_systemd_would_not_take_as_it_is_is_refused(path):
    assert evaluated("node", "__node_not_for_units", **PATHS) == []
    for name in PATHS:
        assert evaluated("node", "__node_not_for_units", **{**PATHS, name: path}) == [path]


@pytest.mark.parametrize(
    ("path", "refused"),
    [
        *((f"{place}/ha", True) for place in ("/home", "/root", "/tmp", "/var/tmp", "//home")),
        *((place, True) for place in ("/tmp", "/usr/ha")),
        *((place, False) for place in ("/srv/ha", "/homes/ha", "/mnt/tmp", "/var/lib/ha", "/ha")),
    ],
)
def test_the_storage_is_not_where_the_units_cannot_write(path, refused):
    pattern = load("node", "vars/main.yml")["__node_not_for_storage"]
    assert match(path, pattern) is refused
    first = load("node", "tasks/present.yml")[0]
    assert "not (node_storage is match(__node_not_for_storage))" in str(first)
    assert first["when"] == "node_units | bool"


@pytest.mark.parametrize("role", ROLES)
def test_the_readme_lists_the_variables_of_the_argument_spec(role):
    options = options_of(role)
    assert table(role) == {
        name: (option["type"], written(option), plain(option["description"]))
        for name, option in options.items()
    }
    assert list(table(role)) == list(options)


@pytest.mark.parametrize("role", ROLES)
def test_the_defaults_are_those_of_the_argument_spec(role):
    options = options_of(role)
    assert load(role, "defaults/main.yml") == {
        name: option["default"] for name, option in options.items() if not option.get("required")
    }


@pytest.mark.parametrize("role", ROLES)
def test_variables_begin_with_the_name_of_their_role(role):
    assert [name for name in table(role) if not name.startswith(f"{role}_")] == []


@pytest.mark.parametrize("role", ROLES)
def test_a_role_describes_itself_the_same_everywhere(role):
    described = specification(role)["short_description"]
    assert load(role, "meta/main.yml")["galaxy_info"]["description"] == described


def test_the_readme_of_the_collection_links_each_role():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"\]\(roles/(\w+)/README\.md\)", text)) == ROLES


@pytest.mark.parametrize(
    ("answer", "joined"),
    [
        ({"rc": 0, "stdout": "daemon 1.n1\np -1 helper\ns c1:1:/srv/c1.lockspace:0"}, "True"),
        ({"rc": 0, "stdout": "daemon 1.n1\np -1 helper\np -1 status"}, "False"),
        ({"rc": 1, "stdout": ""}, "False"),
        ({"rc": 124, "stdout": ""}, "True"),
    ],
    ids=["in a lockspace", "in none", "does not run", "does not answer"],
)
@pytest.mark.parametrize("now", ["", "_now"], ids=["before", "in the handler"])
def test_sanlock_is_left_alone_unless_it_says_that_it_is_in_no_lockspace(answer, joined, now):
    surroundings = jinja2.Environment()
    surroundings.tests["search"] = search
    template = load("leases", "vars/main.yml")[f"__leases_joined{now}"]
    said = surroundings.from_string(template).render({f"__leases_status{now}": answer})
    assert said.strip() == joined


SETTINGS = """\
# {comment}
our_host_name = n1
use_watchdog = 1
io_timeout = {io_timeout}
"""


@pytest.mark.parametrize(
    ("present", "same"),
    [
        (SETTINGS.format(comment="by ada on the first controller", io_timeout=2), True),
        (SETTINGS.format(comment="by ada on the first controller", io_timeout=10), False),
        ("", False),
    ],
    ids=["another comment", "another time", "none"],
)
def test_who_wrote_them_is_no_setting_of_sanlock(present, same):
    read = {"content": base64.b64encode(present.encode()).decode()}
    desired = SETTINGS.format(comment="by bob on another", io_timeout=2)
    known = {"__leases_present": read, "lookup": lambda *_asked: desired}
    assert (
        evaluated("leases", "__leases_set", **known)
        == evaluated("leases", "__leases_wanted", **known)
    ) is same


def test_no_file_on_a_node_tells_who_ran_ansible_and_where():
    for path in (ROOT / "roles").glob("*/templates/*.j2"):
        assert "ansible_managed" not in path.read_text(encoding="utf-8"), path


@pytest.mark.parametrize(
    ("agents", "missing"),
    [
        (["fence_put_there", "fence_sbd"], ["fence_sbd"]),
        (["fence_put_there", "/opt/site/fence_rack"], []),
        (["fence_sbd", "fence_ipmilan", "fence_sbd"], ["fence_ipmilan", "fence_sbd"]),
    ],
)
def test_only_agents_of_the_distribution_that_are_not_there_need_a_package(agents, missing):
    named = sorted({agent for agent in agents if not agent.startswith("/")})
    there = [{"item": one, "stat": {"exists": one == "fence_put_there"}} for one in named]
    devices = {f"device{at}": {"agent": agent} for at, agent in enumerate(agents)}
    known = {"fencing_devices": devices, "__fencing_there": {"results": there}}
    assert evaluated("fencing", "__fencing_agents", **known) == named
    assert evaluated("fencing", "__fencing_missing", **known) == missing


def test_an_interrupted_removal_leaves_no_configuration_to_a_node_without_its_command():
    given = {
        **{"node_config": "/etc/holdfast/node.json", "node_library": "/usr/lib/holdfast.pyz"},
        **{"node_command": "/usr/sbin/holdfast", "node_folder": "/var/lib/holdfast"},
    }
    own = load("node", "vars/main.yml")
    given["__node_units"] = own["__node_units"]
    assert evaluated("node", "__node_installed", **given)[0] == given["node_config"]


@pytest.mark.parametrize(
    ("text", "own"),
    [("# by hand\nuse_watchdog = 0\n", False), ("", False), (None, True)],
    ids=["of somebody else", "none", "of the role"],
)
def test_settings_of_sanlock_that_the_role_did_not_write_are_kept(text, own):
    if text is None:
        template = ROOT / "roles" / "leases" / "templates" / "sanlock.conf.j2"
        text = template.read_text(encoding="utf-8")
    read = {"content": base64.b64encode(text.encode()).decode()}
    assert evaluated("leases", "__leases_own", **{"__leases_present": read}) is own


NOWAYOUT = "/sys/class/watchdog/watchdog{}/nowayout"


@pytest.mark.parametrize(
    ("lines", "stuck"),
    [
        ([f"{NOWAYOUT.format(0)}:0", f"{NOWAYOUT.format(1)}:1"], ""),
        ([f"{NOWAYOUT.format(0)}:1", f"{NOWAYOUT.format(1)}:0"], NOWAYOUT.format(0)),
        ([], ""),
    ],
    ids=["the second", "the first", "none"],
)
def test_the_watchdog_that_wdmd_takes_is_refused_if_it_cannot_be_released(lines, stuck):
    names = ("__leases_first_watchdog", "__leases_stuck_watchdog")
    found = evaluated("leases", *names, __leases_watchdogs={"stdout_lines": lines})
    assert (found or "") == stuck


@pytest.mark.parametrize("role", ROLES)
def test_a_boolean_that_is_given_on_the_command_line_as_a_text_is_a_condition_all_the_same(role):
    booleans = [name for name, option in options_of(role).items() if option["type"] == "bool"]
    for path in (ROOT / "roles" / role).rglob("*.yml"):
        if path.parent.name in ("tasks", "handlers"):
            text = path.read_text(encoding="utf-8")
            for name in booleans:
                assert not re.findall(rf"\b{name}\b(?! \| bool)", text), path
