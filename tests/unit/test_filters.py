# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filters of the playbooks: who speaks for the cluster, surveys for AWX, answers read."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.holdfast.ha.plugins.filter import given as given_file
from ansible_collections.holdfast.ha.plugins.filter import own as own_file
from ansible_collections.holdfast.ha.plugins.filter import speaker as speaker_file
from ansible_collections.holdfast.ha.plugins.filter import survey as survey_file

speaker = speaker_file.FilterModule().filters()["speaker"]
survey = survey_file.FilterModule().filters()["survey"]
given = given_file.FilterModule().filters()["given"]
own = own_file.FilterModule().filters()["own"]

HOSTS = ["n1", "n2", "n3"]
NOBODY = "None of no host can speak for the cluster: none is left."


SILENT = {"failed": True, "msg": "no such file"}


def answer(item, **states):
    return {"item": item, "nodes": {name: {"state": state} for name, state in states.items()}}


def silent(item):
    return {"item": item, **SILENT}


def test_hosts_are_asked_in_turn_until_one_that_answers_is_online():
    assert speaker([], HOSTS) == {"host": "", "ask": "n1", "why": NOBODY}
    assert speaker([], HOSTS, ["n1"])["ask"] == "n2"
    assert speaker([], HOSTS, [], ["n3"])["ask"] == "n3"
    assert speaker([silent("n3")], HOSTS, [], ["n3"])["ask"] == ""
    assert speaker([silent("n1")], HOSTS)["ask"] == "n2"
    told = answer("n2", n1="off", n2="online", n3="online")
    assert speaker([silent("n1"), told], HOSTS) == {"host": "n2", "ask": "", "why": ""}


def test_a_host_that_gave_no_answer_never_speaks_though_its_node_counts_as_online():
    told = answer("n2", n1="online", n2="online", n3="online")
    assert speaker([silent("n1"), told], HOSTS)["host"] == "n2"
    drained = answer("n2", n1="online", n2="offline", n3="online")
    asked = [silent("n1"), drained]
    assert (speaker(asked, HOSTS)["host"], speaker(asked, HOSTS)["ask"]) == ("", "n3")
    assert speaker([*asked, silent("n3")], HOSTS)["host"] == ""
    assert speaker([*asked, answer("n3", n3="online")], HOSTS)["host"] == "n3"


def test_only_who_reads_may_go_by_a_host_whose_node_is_not_online():
    told = answer("n2", n1="offline", n2="offline", n3="offline")
    refused = speaker([silent("n1"), told], HOSTS)
    assert (refused["host"], refused["ask"]) == ("", "")
    assert refused["why"].endswith("no such file; none that may is online.")
    assert speaker([silent("n1"), told], HOSTS, [], HOSTS, True)["host"] == "n2"


def test_a_host_that_is_to_lose_its_power_does_not_speak():
    told = answer("n1", n1="online", n2="online", n3="online")
    assert speaker([told], HOSTS, ["n1"])["ask"] == "n2"
    assert speaker([told], HOSTS, HOSTS) == {
        "host": "",
        "ask": "",
        "why": "None of n1 can speak for the cluster: none that may is online.",
    }


def test_no_more_than_20_are_asked_but_all_that_are_named():
    many = [f"n{number}" for number in range(1, 31)]
    assert speaker(list(map(silent, many[:19])), many)["ask"] == "n20"
    assert speaker(list(map(silent, many[:20])), many)["ask"] == ""
    assert speaker(list(map(silent, many[:20])), many, [], many)["ask"] == "n21"


def test_it_is_said_why_nobody_can_speak_each_reason_once():
    answers = [
        {"item": "n1", "unreachable": True, "msg": "no route"},
        {"item": "n2", "failed": True, "msg": "no route"},
        {"item": "n3", "failed": True},
    ]
    why = speaker(answers, HOSTS)["why"]
    expected = "None of n1, n2, n3 can speak for the cluster: no route; it gave no reason."
    assert why == expected


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


@pytest.mark.parametrize("kind", ["str", "path", "list", "dict"])
def test_a_text_that_nobody_answered_is_none_to_the_playbook(kind):
    (question,) = survey({"x": {"type": kind, "description": "?"}})["spec"]
    # AWX gives the playbook the default, were it one that may be answered.
    assert len(question["default"]) < question["min"]


def test_what_is_required_has_to_be_answered():
    (question,) = survey({"x": {"type": "bool", "required": True, "description": "?"}})["spec"]
    assert (question["required"], question["choices"]) == (True, ["true", "false"])


def test_a_list_that_came_as_text_is_read_and_nothing_else():
    spec = {"a": {"type": "list"}, "b": {"type": "str"}, "c": {"type": "dict"}}
    values = {"a": "[1, {x: y}]", "b": "[1]", "c": {"x": 1}, "d": "[1]"}
    assert given(values, spec) == {"a": [1, {"x": "y"}], "b": "[1]", "c": {"x": 1}, "d": "[1]"}
    with pytest.raises(AnsibleFilterError, match="a: not accepted; expected YAML"):
        given({"a": "[1"}, spec)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("backup_dest", True),
        ("backup_dst", True),
        ("backup_hots", True),
        ("backup_dir", False),
        ("backup_path", False),
        ("backup_retention", False),
        ("backup_schedule", False),
        ("restore_dest", False),
    ],
)
def test_a_variable_that_only_begins_like_those_of_a_playbook_is_not_meant_for_it(name, meant):
    assert own([name], {"backup_dest": {}, "backup_host": {}}, "backup") == [name] * meant
