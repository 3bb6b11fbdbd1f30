# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The metadata of every installed resource agent is read, and nothing in it is lost.

What the agents print is counted by other means, line by line, and compared.
"""

from __future__ import annotations

import html
import re
import shutil
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.ocf.agent import (
    AgentCall,
    AgentName,
    installed_agents,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.ocf.metadata import (
    METADATA_DEADLINE,
    check_parameters,
    load_metadata,
    parse_metadata,
    seconds,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.process.run import run

DEBIAN_12 = "1:4.12.0-"
"""How the version of resource-agents begins to which the fixed numbers belong."""


@pytest.fixture(scope="module")
def agents():
    """Each agent with its metadata, and with what it printed."""
    found = {
        name: path for name, path in installed_agents().items() if name.provider == "heartbeat"
    }
    if not found:
        pytest.skip("resource-agents is not installed")

    def ask(item):
        name, path = item
        environment = AgentCall(name, "meta-data", name.type, METADATA_DEADLINE).environment()
        printed = run([path, "meta-data"], deadline=METADATA_DEADLINE, environment=environment)
        return name, (load_metadata(path, agent=name), printed.stdout)

    with ThreadPoolExecutor(2) as pool:
        return dict(pool.map(ask, found.items()))


def tags(text, tag):
    """Return the attributes of each opening *tag* in *text*, by a pattern and not by a parser."""
    return [
        {
            key: html.unescape(" ".join(double.split()) or " ".join(single.split()))
            for key, double, single in re.findall(
                r"""([\w-]+)\s*=\s*(?:"([^"]*)"|'([^']*)')""", attributes
            )
        }
        for attributes in re.findall(rf"<{tag}(\s[^>]*?)/?>", text)
    ]


def test_every_parameter_of_every_agent_is_there_with_its_type_and_default(agents):
    for name, (metadata, printed) in agents.items():
        written = tags(printed, "parameter")
        assert [one.name for one in metadata.parameters] == [one["name"] for one in written], name
        required = [one["name"] for one in written if one.get("required") == "1"]
        assert [one.name for one in metadata.parameters if one.required] == required, name
        unique = [one["name"] for one in written if one.get("unique") == "1"]
        assert [name for group in metadata.unique_groups().values() for name in group] == unique
        contents = tags(printed, "content")
        assert [one.type for one in metadata.parameters] == [one["type"] for one in contents], name
        defaults = [one.default and " ".join(one.default.split()) for one in metadata.parameters]
        assert defaults == [one.get("default") for one in contents], name
        assert all(one.shortdesc or one.longdesc for one in metadata.parameters), name


def test_every_action_of_every_agent_is_there_with_its_advice(agents):
    for name, (metadata, printed) in agents.items():
        written = tags(printed, "action")
        assert [one.name for one in metadata.actions] == [one["name"] for one in written], name
        for action, one in zip(metadata.actions, written):
            assert action.timeout == seconds(one["timeout"]), name
            assert action.timeout, name
            assert action.interval == seconds(one.get("interval")), name
            assert action.start_delay == seconds(one.get("start-delay")), name
            assert action.depth == int(one.get("depth", "0")), name
            assert action.role == one.get("role", ""), name
        assert metadata.longdesc, name
        for mandatory in ("start", "stop", "monitor", "meta-data"):
            assert metadata.supports(mandatory), name


def test_no_agent_is_refused_its_own_defaults(agents):
    for metadata, _printed in agents.values():
        given = {one.name: one.default for one in metadata.parameters if one.default is not None}
        given.update({one.name: "1" for one in metadata.parameters if one.required})
        assert set(check_parameters(metadata, given)) == set(given)


def test_what_another_program_prints_around_the_metadata_does_no_harm(agents):
    for name, (metadata, printed) in agents.items():
        noisy = f"a warning with < and >\n{printed}\nand <more> of it\n"
        assert parse_metadata(noisy, str(name)) == metadata


def test_all_141_agents_of_debian_12_are_read_whole(agents):
    version = ""
    if shutil.which("dpkg-query"):
        words = ["dpkg-query", "-W", "-f", "${Version}", "resource-agents"]
        version = run(words, deadline=30.0).stdout
    if not version.startswith(DEBIAN_12):
        pytest.skip(f"resource-agents is not that of Debian 12 ({DEBIAN_12}), but {version}")
    everything = [metadata for metadata, _printed in agents.values()]
    parameters = [one for metadata in everything for one in metadata.parameters]
    actions = [one for metadata in everything for one in metadata.actions]
    assert len(everything) == 141
    assert len(parameters) == 1047
    assert Counter(one.type for one in parameters) == {
        "string": 826,
        "boolean": 121,
        "integer": 100,
    }
    assert sum(one.required for one in parameters) == 133
    assert sum(bool(one.unique_group) for one in parameters) == 125
    assert sum(bool(metadata.unique_groups()) for metadata in everything) == 65
    assert sum(one.default == "" for one in parameters) == 336
    assert len(actions) == 865
    supported = Counter(
        action
        for metadata in everything
        for action in ("promote", "reload", "migrate_to", "validate-all", "reload-agent")
        if metadata.supports(action)
    )
    assert supported == {"promote": 12, "reload": 12, "migrate_to": 8, "validate-all": 136}
    deep = {name.type for name in agents for one in agents[name][0].actions if one.depth}
    assert deep == {"nginx", "proftpd", "sybaseASE"}
    pgsql = agents[AgentName("ocf", "heartbeat", "pgsql")][0]
    assert len(pgsql.parameters) == 32
