# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading what agents say of themselves, and refusing parameters that they would not understand."""

from __future__ import annotations

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import (
    AgentError,
    InputError,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.ocf.locate import AgentName
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.ocf.metadata import (
    check_parameters,
    load_metadata,
    parse_metadata,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.ocf.values import (
    FALSE_WORDS,
    TRUE_WORDS,
    seconds,
)
from ansible_collections.holdfast.ha.tests.unit.ocf.agent_script import METADATA, write_agent
from hypothesis import given
from hypothesis import strategies as some

THING = parse_metadata(METADATA)
NAME = AgentName("ocf", "test", "thing")
INSTALLED = Path("/usr/lib/ocf/resource.d/heartbeat")
FEW = ("Dummy", "IPaddr2", "Filesystem", "pgsql", "nginx", "Stateful", "VirtualDomain")


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "printed no metadata"),
        ("usage: thing {start|stop}", "printed no metadata"),
        ("<?xml version='1.0'?><html></html>", "printed no metadata"),
        ("<resource-agent><broken></resource-agent>", "not well-formed"),
        ("<resource-agent>&unknown;</resource-agent>", "not well-formed"),
        ("</resource-agent><resource-agent>", "printed no metadata"),
    ],
)
def test_what_is_no_metadata_is_an_error_that_names_the_agent(text, part):
    with pytest.raises(AgentError, match=f"ocf:test:thing.*{part}|{part}.*ocf:test:thing"):
        parse_metadata(text, "ocf:test:thing")


def test_log_lines_around_the_metadata_do_no_harm():
    noisy = f"WARNING: <old> setting in use\n{METADATA}\ndone, 1 < 2\n"
    assert parse_metadata(noisy) == THING


def test_parameters_and_actions_are_read_whole():
    path = THING.parameter("path")
    assert path is not None
    assert (path.type, path.required, path.unique) == ("string", True, True)
    assert path.shortdesc == "Where it is"
    mode = THING.parameter("mode")
    assert mode is not None
    assert mode.options == ("a", "b")
    assert THING.version == "1.1"
    assert [one.depth for one in THING.actions if one.name == "monitor"] == [0, 10]


def test_a_parameter_without_content_is_a_text():
    bare = THING.parameter("bare")
    assert bare is not None
    assert (bare.type, bare.default, bare.required) == ("string", None, False)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("20", 20.0),
        ("20s", 20.0),
        ("2m30s", 150.0),
        ("1h", 3600.0),
        ("1d", 86400.0),
        ("500ms", 0.5),
        (" 10 s ", 10.0),
        ("", None),
        (None, None),
        ("soon", None),
        ("5 apples", None),
        ("-3", None),
    ],
)
def test_durations_are_read_in_all_spellings_in_use(text, value):
    assert seconds(text) == value


@given(some.text())
def test_a_duration_is_a_number_or_nothing_and_never_an_accident(text):
    value = seconds(text)
    assert value is None or value >= 0


def test_the_longest_advised_timeout_counts():
    assert THING.advised_timeout("monitor") == 30.0
    assert THING.advised_timeout("stop") == 90.0
    assert THING.advised_timeout("migrate_to") == 20.0


@pytest.mark.parametrize(
    ("parameters", "part"),
    [
        ({"path": "/x", "cuont": 3}, "did you mean count"),
        ({"path": "/x", "nonsense": 3}, "it has: bare, count"),
        ({}, "also path, which thing requires"),
        ({"path": ""}, "also path"),
        ({"path": None}, "also path"),
        ({"path": "/x", "count": "many"}, "parameters.count.*a whole number"),
        ({"path": "/x", "count": 1.5}, "parameters.count.*a whole number"),
        ({"path": "/x", "loud": "Yes"}, "parameters.loud.*true or false"),
        ({"path": "/x", "wait": "soon"}, "parameters.wait.*a duration"),
        ({"path": "/x", "mode": "c"}, "parameters.mode.*one of a, b"),
        ({"path": ["/x"]}, "parameters.path.*a text, a number or a boolean"),
        ({"path": "a\0b"}, "parameters.path.*NUL"),
    ],
)
def test_a_mistake_in_the_parameters_is_found_before_the_agent_runs(parameters, part):
    with pytest.raises(InputError, match=part):
        check_parameters(THING, parameters)


def test_a_secret_is_not_in_the_error_about_it():
    with pytest.raises(InputError) as caught:
        check_parameters(THING, {"path": "/x", "password": "hunter2"})
    assert "parameters.password" in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_values_are_written_as_agents_read_them():
    given = {"path": "/x", "count": 4, "loud": True, "wait": "2m", "mode": None}
    assert check_parameters(THING, given) == {
        "path": "/x",
        "count": "4",
        "loud": "true",
        "wait": "2m",
    }


def test_a_type_that_the_agents_own_default_does_not_have_is_not_insisted_on():
    assert check_parameters(THING, {"path": "/x", "odd": "ping-1"})["odd"] == "ping-1"


def test_metadata_comes_from_the_agent_with_ocf_root_set(tmp_path):
    path = write_agent(tmp_path, "exit 0")
    assert load_metadata(path, agent=NAME) == THING


@pytest.mark.parametrize(
    ("body", "part"),
    [
        ("exit 2", "exit status 2"),
        ("exit 0", "printed no metadata"),
        ("exec sleep 60", "within 0.3 seconds"),
        ("kill -9 $$", "exit status None"),
    ],
)
def test_an_agent_without_metadata_is_an_error_whatever_its_exit_status(tmp_path, body, part):
    agent = tmp_path / "agent"
    agent.write_text(f"#!/bin/sh\n{body}\n")
    agent.chmod(0o755)
    with pytest.raises(AgentError, match=part):
        load_metadata(str(agent), agent=NAME, deadline=0.3)


def test_booleans_are_what_the_agents_own_shell_function_takes_for_them():
    functions = Path("/usr/lib/ocf/lib/heartbeat/ocf-shellfuncs")
    if not functions.exists():
        pytest.skip("resource-agents is not installed")
    text = functions.read_text()
    start = text.index("ocf_is_true()")
    body = text[start : text.index("\n}", start) + 2]
    for words, wanted in ((TRUE_WORDS, 0), (FALSE_WORDS, 1), (("Yes", "On", "y"), 1)):
        for word in words:
            code = subprocess.run(["sh", "-c", f"{body}\nocf_is_true {word}"], check=False)
            assert code.returncode == wanted, word


def test_installed_agents_are_read():
    if not INSTALLED.is_dir():
        pytest.skip("resource-agents is not installed")
    everyone = os.environ.get("HOLDFAST_ALL_AGENTS") == "1"
    wanted = sorted(
        path
        for path in INSTALLED.iterdir()
        if os.access(path, os.X_OK) and (everyone or path.name in FEW)
    )

    def read(path):
        return load_metadata(str(path), agent=AgentName("ocf", "heartbeat", path.name))

    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(read, wanted))
    assert found
    for metadata in found:
        assert metadata.name
        assert metadata.supports("start")
        assert metadata.supports("monitor")
        assert metadata.advised_timeout("start") > 0
        assert all(one.name and one.type for one in metadata.parameters)
