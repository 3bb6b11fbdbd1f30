# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filters of the playbooks: who speaks for the cluster, surveys for AWX, answers read."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.holdfast.ha.plugins.filter import given as given_file
from ansible_collections.holdfast.ha.plugins.filter import speaker as speaker_file
from ansible_collections.holdfast.ha.plugins.filter import survey as survey_file

speaker = speaker_file.FilterModule().filters()["speaker"]
survey = survey_file.FilterModule().filters()["survey"]
given = given_file.FilterModule().filters()["given"]

HOSTS = ["n1", "n2", "n3"]


def answer(item, **states):
    return {"item": item, "nodes": {name: {"state": state} for name, state in states.items()}}


def test_the_first_host_that_is_online_by_the_first_answer_speaks():
    failed = {"item": "n1", "failed": True, "msg": "no such file"}
    told = answer("n2", n1="off", n2="online", n3="online")
    assert speaker([failed, told], HOSTS) == {"host": "n2", "why": ""}
    later = answer("n3", n1="online")
    assert speaker([told, later], HOSTS)["host"] == "n2"


def test_a_host_that_is_to_lose_its_power_does_not_speak():
    told = answer("n1", n1="online", n2="online", n3="online")
    assert speaker([told], HOSTS, ["n1"])["host"] == "n2"
    assert speaker([told], HOSTS, HOSTS) == {
        "host": "",
        "why": "None of n1 can speak for the cluster: none that may is online.",
    }


def test_it_is_said_why_nobody_can_speak_each_reason_once():
    answers = [
        {"item": "n1", "unreachable": True, "msg": "no route"},
        {"item": "n2", "failed": True, "msg": "no route"},
        {"item": "n3", "failed": True},
    ]
    why = speaker(answers, HOSTS)["why"]
    expected = "None of n1, n2, n3 can speak for the cluster: no route; it gave no reason."
    assert why == expected
    assert speaker([], HOSTS)["why"].startswith("None of no host can speak")


@pytest.mark.parametrize(
    ("spec", "kind", "default"),
    [
        ({"type": "str"}, "text", ""),
        ({"type": "path", "default": "/x"}, "text", "/x"),
        ({"type": "int", "default": 300}, "integer", 300),
        ({"type": "float", "default": 300}, "float", 300.0),
        ({"type": "bool", "default": False}, "multiplechoice", "false"),
        ({"type": "str", "choices": ["a", "b"], "default": "b"}, "multiplechoice", "b"),
        ({"type": "list", "elements": "dict"}, "textarea", ""),
    ],
)
def test_each_variable_becomes_a_question_of_its_kind(spec, kind, default):
    made = survey({"x_y": {**spec, "description": "What for?"}}, "x")
    (question,) = made["spec"]
    assert made["name"] == "x"
    assert (question["variable"], question["type"]) == ("x_y", kind)
    assert question["default"] == default
    assert type(question["default"]).__name__ == type(default).__name__
    assert question["question_description"] == "What for?"
    assert question["required"] is False


def test_what_is_required_has_to_be_answered():
    (question,) = survey({"x": {"type": "bool", "required": True, "description": "?"}})["spec"]
    assert (question["required"], question["choices"]) == (True, ["true", "false"])


def test_a_list_that_came_as_text_is_read_and_nothing_else():
    spec = {"a": {"type": "list"}, "b": {"type": "str"}, "c": {"type": "dict"}}
    values = {"a": "[1, {x: y}]", "b": "[1]", "c": {"x": 1}, "d": "[1]"}
    assert given(values, spec) == {"a": [1, {"x": "y"}], "b": "[1]", "c": {"x": 1}, "d": "[1]"}
    with pytest.raises(AnsibleFilterError, match="a: not accepted; expected YAML"):
        given({"a": "[1"}, spec)
