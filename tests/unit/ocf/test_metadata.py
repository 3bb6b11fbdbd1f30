# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading what agents say of themselves, and refusing parameters that they would not understand."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import (
    AgentError,
    InputError,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.ocf.agent import AgentName
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.ocf.metadata import (
    FALSE_WORDS,
    TRUE_WORDS,
    Action,
    check_parameters,
    deprecation_warnings,
    load_metadata,
    parse_metadata,
    require_api,
    seconds,
)
from ansible_collections.holdfast.ha.tests.unit.ocf.agent_script import METADATA, write_agent
from hypothesis import given
from hypothesis import strategies as some

THING = parse_metadata(METADATA)
NAME = AgentName("ocf", "test", "thing")


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
    assert (path.type, path.required, path.unique_group) == ("string", True, "path")
    assert path.longdesc == "Where."
    assert path.shortdesc == "Where it is"
    mode = THING.parameter("mode")
    assert mode is not None
    assert mode.options == ("a", "b")
    assert THING.version == "1.1"
    assert [one.depth for one in THING.actions if one.name == "monitor"] == [0, 10]


@pytest.mark.parametrize(
    ("version", "usable"),
    [
        *(("<version>1.0</version>", True), ("<version> 1.1\n</version>", True), ("", True)),
        *(("<version>1</version>", True), ("<version>1.7</version>", True)),
        # Not versions of the API but the agents' own (SAPHana).
        *(("<version>0.154.0</version>", True), ("<version>2024-06</version>", True)),
        *(("<version>2.0</version>", False), ("<version>2</version>", False)),
        *(("<version>0.9</version>", False), ("<version>10.1</version>", False)),
    ],
)
def test_an_agent_of_another_major_version_of_the_api_is_refused(version, usable):
    metadata = parse_metadata(METADATA.replace("<version>1.1</version>", version))
    if usable:
        require_api(metadata, "ocf:test:thing")
        return
    with pytest.raises(AgentError) as told:
        require_api(metadata, "ocf:test:thing")
    assert f"ocf:test:thing follows version {metadata.api_version} of the OCF" in str(told.value)
    assert "only version 1.x is supported" in str(told.value)


def test_the_version_of_an_agent_itself_is_not_that_of_the_api():
    text = METADATA.replace("<version>1.1</version>", "").replace(
        'version="1.0">', 'version="2.0">'
    )
    metadata = parse_metadata(text)
    assert (metadata.version, metadata.api_version) == ("2.0", "")
    require_api(metadata, "ocf:test:thing")


def test_what_only_the_newer_schema_has_is_read_too():
    text = """<resource-agent name="new" version="7.x"><version>1.1</version>
        <shortdesc lang="de">Neu</shortdesc><shortdesc lang="en">New\n  thing</shortdesc>
        <longdesc lang="en">One <b>bold</b> word.</longdesc>
        <parameters>
        <parameter name="ip" unique-group="address" reloadable="1"/>
        <parameter name="port" unique-group="address"/>
        <parameter name="id" unique="1"/>
        <parameter name="addr"><deprecated><replaced-with name="ip"/><replaced-with name="port"/>
        <desc lang="en">Too vague.</desc></deprecated></parameter>
        </parameters>
        <actions><action name="monitor" timeout="10" interval="1m" start-delay="5s" depth=" 10 "/>
        <action name="monitor" depth="deep"/></actions></resource-agent>"""
    found = parse_metadata(text)
    assert (found.shortdesc, found.longdesc) == ("New thing", "One bold word.")
    assert found.unique_groups() == {"address": ["ip", "port"], "id": ["id"]}
    ip, _port, _id, old = found.parameters
    assert (ip.reloadable, ip.deprecated, ip.replaced_with) == (True, False, ())
    assert (old.deprecated, old.replaced_with) == (True, ("ip", "port"))
    first, second = found.actions
    assert first == Action("monitor", 10.0, 60.0, 5.0, 10)
    assert second == Action("monitor")


def test_metadata_itself_can_always_be_asked_for():
    found = parse_metadata("<resource-agent name='x'></resource-agent>")
    assert found.supports("meta-data")
    assert not found.supports("start")
    assert (found.version, found.parameters, found.actions) == ("", (), ())


@given(some.text(alphabet="<>/&;!-[]= \"'resource-agntpvACDTY\n\0", max_size=200))
def test_any_garbage_is_metadata_or_an_error_with_the_agents_name(text):
    for whole in (text, f"<resource-agent>{text}</resource-agent>"):
        try:
            parse_metadata(whole, "ocf:test:thing")
        except AgentError as error:
            assert "ocf:test:thing" in str(error)


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


def test_metadata_comes_from_the_agent_with_ocf_root_set(tmp_path):
    path = write_agent(tmp_path, "exit 0")
    assert load_metadata(path, agent=NAME) == THING


@pytest.mark.parametrize(
    ("body", "deadline", "part"),
    [
        ("exit 2", 30.0, "exit status 2"),
        ("yes '<parameter>'", 1.5, "within 1.5 seconds"),
        ("head -c 3000000 /dev/zero; exit 0", 30.0, "printed no metadata"),
        ("exit 0", 30.0, "printed no metadata"),
        ("exec sleep 60", 1.5, "within 1.5 seconds"),
        ("kill -9 $$", 30.0, "exit status None"),
    ],
)
def test_an_agent_without_metadata_is_an_error_whatever_its_exit_status(
    tmp_path, body, deadline, part
):
    agent = tmp_path / "agent"
    agent.write_text(f"#!/bin/sh\n{body}\n")
    agent.chmod(0o755)
    with pytest.raises(AgentError, match=part):
        load_metadata(str(agent), agent=NAME, deadline=deadline)


RENAMED = parse_metadata(
    """<resource-agent name="renamed"><parameters>
    <parameter name="ip" required="1"/>
    <parameter name="addr"><deprecated><replaced-with name="ip"/></deprecated></parameter>
    <parameter name="gone"><deprecated/></parameter>
    <parameter name="tries" required="1"><content type="integer" default=""/></parameter>
    <parameter name="wait"><content type="integer" default=".%F"/></parameter>
    </parameters></resource-agent>"""
)


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


def test_an_old_name_and_the_new_one_stand_for_each_other():
    for name in ("ip", "addr"):
        assert check_parameters(RENAMED, {name: "::1", "tries": 3})[name] == "::1"
    with pytest.raises(InputError, match="also ip or addr, which renamed requires"):
        check_parameters(RENAMED, {"tries": 3})


def test_what_an_agent_gives_up_is_warned_of():
    warnings = deprecation_warnings(RENAMED, ["addr", "gone", "ip"])
    assert warnings == (
        "The parameter addr of renamed is deprecated; use ip in its place.",
        "The parameter gone of renamed is deprecated.",
    )


def test_an_empty_default_satisfies_no_requirement_and_an_odd_one_may_be_given():
    with pytest.raises(InputError, match="also tries"):
        check_parameters(RENAMED, {"ip": "::1"})
    given = {"ip": "::1", "tries": "3", "wait": ".%F"}
    assert check_parameters(RENAMED, given) == given


def test_booleans_are_what_the_agents_own_shell_function_takes_for_them():
    functions = Path("/usr/lib/ocf/lib/heartbeat/ocf-shellfuncs")
    if not functions.exists():
        pytest.skip("resource-agents is not installed")
    text = functions.read_text()
    start = text.index("ocf_is_true()")
    body = text[start : text.index("\n}", start) + 2]
    for words, desired in ((TRUE_WORDS, 0), (FALSE_WORDS, 1), (("Yes", "On", "y"), 1)):
        for word in words:
            code = subprocess.run(["sh", "-c", f"{body}\nocf_is_true {word}"], check=False)
            assert code.returncode == desired, word
