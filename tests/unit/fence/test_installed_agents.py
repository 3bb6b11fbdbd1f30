# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every installed fence agent is understood: each parameter, alias pair and action, counted.

What is counted is compared with a reading of the same text that knows nothing of XML,
and where the installed version is the one whose figures are known, with those.
"""

from __future__ import annotations

import functools
import re
import subprocess
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import AgentError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.call import fence_request
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.known_agents import (
    REFUSE_ABSENT_PLUGS,
    SWITCH_ONE_MACHINE,
    TAKE_ABSENT_PLUGS_FOR_OFF,
    fence_environment,
    installed_fence_agents,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.metadata import (
    evidence_of,
    kind_by_name,
    kind_of,
    load_fence_metadata,
    parse_fence_metadata,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.secrets import is_secret_name

WITHOUT_METADATA = "fence_ack_manual"
"""It asks a person for a confirmation instead of answering."""

OF_OTHER_PACKAGES = ("fence_virt", "fence_xvm")
"""They come with the package fence-virt, and are not among the figures."""

KNOWN_VERSION = "4.12.1"
KNOWN = {
    "agents": 83,
    "parameters": 2902,
    "alias pairs": 501,
    "types": {"string": 1539, "boolean": 557, "second": 500, "integer": 229, "select": 77},
    "actions": {
        "metadata": 83,
        "monitor": 83,
        "validate-all": 83,
        "off": 82,
        "on": 81,
        "status": 79,
        "reboot": 75,
        "list": 55,
        "diag": 8,
    },
    "plug": {"plug": 79, None: 4},
}
"""Counted in the agents of Debian 12 by another program."""


def ask(path):
    """Return the metadata as text; the agent gets the same standard input as from the library."""
    done = subprocess.run(
        [path],
        input=b"action=metadata\n",
        capture_output=True,
        env=fence_environment(),
        timeout=60,
        check=False,
    )
    return done.stdout.decode("utf-8", "replace")


@pytest.fixture(scope="module")
def texts():
    paths = installed_fence_agents()
    if not any(path.endswith("/fence_ipmilan") for path in paths):
        pytest.skip("fence-agents is not installed")
    with ThreadPoolExecutor(3) as pool:
        return dict(zip(paths, pool.map(ask, paths)))


@pytest.fixture(scope="module")
def agents(texts):
    return {
        path: parse_fence_metadata(text, path)
        for path, text in texts.items()
        if not path.endswith(WITHOUT_METADATA)
    }


@functools.cache
def installed_version():
    return subprocess.run(
        ["/usr/sbin/fence_ipmilan", "-V"], capture_output=True, text=True, timeout=60, check=False
    ).stdout.strip()


def attribute(tag, name):
    match = re.search(rf'\b{name}="([^"]*)"', tag)
    return match.group(1) if match else ""


def test_the_one_without_metadata_is_refused_with_a_reason(texts):
    paths = [path for path in texts if path.endswith(WITHOUT_METADATA)]
    for path in paths:
        with pytest.raises(AgentError, match=r"failed to print its metadata|printed no metadata"):
            load_fence_metadata(path)


def test_every_parameter_alias_pair_and_action_is_read(texts, agents):
    for path, metadata in agents.items():
        tags = re.findall(r"<parameter [^>]*>", texts[path])
        assert [one.name for one in metadata.parameters] == [attribute(tag, "name") for tag in tags]
        required = [one.name for one in metadata.parameters if one.required]
        assert required == [attribute(tag, "name") for tag in tags if 'required="1"' in tag], path
        pairs = [(attribute(tag, "name"), attribute(tag, "obsoletes")) for tag in tags]
        assert list(metadata.alias_pairs) == [pair for pair in pairs if pair[1]], path
        types = re.findall(r'<content type="(\w+)"', texts[path])
        assert [one.type for one in metadata.parameters] == types, path
        options = re.findall(r'<option value="([^"]*)"', texts[path])
        assert [one for each in metadata.parameters for one in each.options] == options, path
        actions = re.findall(r"<action [^>]*>", texts[path])
        assert [one.name for one in metadata.actions] == [attribute(tag, "name") for tag in actions]
        on_target = [one.name for one in metadata.actions if one.on_target]
        assert on_target == [attribute(tag, "name") for tag in actions if "on_target" in tag], path


def test_the_figures_are_those_that_are_known_for_this_version(texts, agents):
    version = installed_version()
    own = [path for path in texts if not path.endswith(OF_OTHER_PACKAGES)]
    if version != KNOWN_VERSION or len(own) != KNOWN["agents"] + 1:
        pytest.skip(f"the figures are for {KNOWN_VERSION} in full, this is {version}")
    counted = [agents[path] for path in own if path in agents]
    parameters = [one for metadata in counted for one in metadata.parameters]
    actions = Counter(one.name for metadata in counted for one in metadata.actions)
    found = {
        "agents": len(counted),
        "parameters": len(parameters),
        "alias pairs": sum(len(metadata.alias_pairs) for metadata in counted),
        "types": dict(Counter(one.type for one in parameters)),
        "actions": {name: actions[name] for name in KNOWN["actions"]},
        "plug": dict(Counter(metadata.host_argument for metadata in counted)),
    }
    assert found == KNOWN


def test_the_old_name_of_a_pair_is_a_parameter_too_and_means_the_same(agents):
    for path, metadata in agents.items():
        for new, old in metadata.alias_pairs:
            assert metadata.parameter(old).deprecated, (path, old)
            assert {new, old} <= metadata.spellings(old) & metadata.spellings(new), path


def test_every_parameter_that_is_said_to_be_a_secret_is_one_by_its_name(agents):
    """What Ansible logs of a task is hidden by names alone, before any agent is asked."""
    told = re.compile(r"passw|passphrase|secret|token|credential|api ?key", re.IGNORECASE)
    for path, metadata in agents.items():
        for one in metadata.parameters:
            if one.type == "string" and (one.secret or told.search(one.shortdesc + one.name)):
                is_place = re.search(r"_script$|_file$", one.name)
                assert is_place or is_secret_name(one.name), (path, one.name, one.shortdesc)


def test_every_agent_has_a_kind_and_its_word_a_worth(agents):
    kinds = Counter(kind_of(path, metadata) for path, metadata in agents.items())
    assert set(kinds) <= {"power", "fabric", "watchdog", "gate", "stand-in"}
    assert kinds["power"] > len(agents) / 2
    for path, metadata in agents.items():
        verified = evidence_of(path, metadata) == "device-verified"
        assert not verified or (metadata.supports("off") and metadata.supports("status")), path
        assert not (verified and metadata.unfences), path


def test_of_every_power_agent_it_is_known_what_it_says_of_a_plug_that_does_not_exist(agents):
    """An agent of another version may be a new one: its list is asked for then."""
    groups = (REFUSE_ABSENT_PLUGS, TAKE_ABSENT_PLUGS_FOR_OFF, SWITCH_ONE_MACHINE)
    power = [path for path, metadata in agents.items() if kind_of(path, metadata) == "power"]
    if installed_version() != KNOWN_VERSION:
        power = [path for path in power if kind_by_name(path) == "power"]
    for path in power:
        name = path.rsplit("/", 1)[-1]
        assert [name in names for names in groups].count(True) == 1, name
        assert kind_by_name(path) == "power", name
        assert (name in SWITCH_ONE_MACHINE) is not agents[path].supports("list"), name


def test_what_cuts_access_is_known_by_its_name_alone(agents):
    for path, metadata in agents.items():
        if kind_by_name(path) != "none":
            assert (kind_by_name(path) == "fabric") is (kind_of(path, metadata) == "fabric"), path
        if kind_by_name(path) in ("power", "none") and installed_version() == KNOWN_VERSION:
            assert not metadata.unfences, path


def test_an_off_can_be_put_together_for_every_agent_that_has_one(agents):
    """With all that is required given by its old name, where it has one."""
    for path, metadata in agents.items():
        if not metadata.supports("off"):
            continue
        old = dict(metadata.alias_pairs)
        given = {
            old.get(one.name, one.name): "1"
            for one in metadata.parameters
            if one.required and not one.deprecated and one.name not in ("action", "plug", "port")
        }
        plug = None if metadata.host_argument is None else "1"
        lines = fence_request(metadata, "off", given, plug).decode().splitlines()
        assert lines[0] == "action=off", path
        assert len(lines) >= 1 + bool(plug), path
