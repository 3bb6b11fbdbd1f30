# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Refusing parameters that an agent would not understand, before it runs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import InputError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.ocf.environment import (
    FALSE_WORDS,
    TRUE_WORDS,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.ocf.metadata import (
    check_parameters,
    deprecation_warnings,
    parse_metadata,
)
from ansible_collections.holdfast.ha.tests.unit.ocf.agent_script import METADATA

THING = parse_metadata(METADATA)
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
    for words, wanted in ((TRUE_WORDS, 0), (FALSE_WORDS, 1), (("Yes", "On", "y"), 1)):
        for word in words:
            code = subprocess.run(["sh", "-c", f"{body}\nocf_is_true {word}"], check=False)
            assert code.returncode == wanted, word
