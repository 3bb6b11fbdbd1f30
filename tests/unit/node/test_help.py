# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The help: verbs that people type, an example of each, and nothing of the plumbing."""

from __future__ import annotations

import json
import shlex

import pytest
import yaml
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.cli.commands import (
    EXAMPLES,
    HIDDEN,
    make_parser,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.cli.main import main
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.cli.places import (
    places,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.cli.yaml_text import (
    yaml_text,
)
from ansible_collections.holdfast.ha.tests.unit.node.sample_node import create_storage, document


def listed():
    """The subcommands that the help lists, without groups."""
    return {" ".join(place.words) for place in places(make_parser()) if not place.commands}


def test_each_subcommand_of_the_help_has_one_example():
    assert set(EXAMPLES) == listed()


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_the_example_in_the_help_of_a_subcommand_is_understood(name, capsys):
    with pytest.raises(SystemExit) as ended:
        main([*name.split(), "--help"])
    assert ended.value.code == 0
    assert f"example:\n  {EXAMPLES[name]}\n" in capsys.readouterr().out
    words = shlex.split(EXAMPLES[name].removeprefix("source <(").removesuffix(")"))
    assert " ".join(words[1:]).startswith(name)
    make_parser().parse_args(words[1:])


def test_daemons_and_plumbing_are_hidden_and_work_all_the_same(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert not {line[0] for line in lines if line} & set(HIDDEN)
    for words in (
        "lrm node.json",
        "leave",
        "watch --times 1",
        "maintenance return n1",
        "service move web n2",
    ):
        make_parser().parse_args(words.split())


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("move web n2 --pin", "service move web n2 --pin"),
        ("stop web --within 9", "service stop web --within 9"),
        ("drain n1 --reason x --for 2h", "maintenance drain n1 --reason x --for 2h"),
        ("undrain n1 --yes", "maintenance return n1 --yes"),
        ("pause --reason x", "maintenance hold --reason x"),
        ("disarm --reason x --mode ignore", "maintenance disarm --reason x --mode ignore"),
        ("resume", "maintenance end"),
    ],
)
def test_a_verb_does_what_its_earlier_spelling_does(new, old):
    found = [vars(make_parser().parse_args(words.split())) for words in (new, old)]
    # Each parser of 'stop' has a function of its own, which does the same.
    acts = [one.pop("act") for one in found]
    assert found[0] == found[1]
    assert acts[0].__code__ is acts[1].__code__


@pytest.fixture
def config(tmp_path):
    create_storage(tmp_path)
    path = tmp_path / "node.json"
    path.write_text(json.dumps(document(tmp_path)))
    return str(path)


def test_the_status_is_written_in_the_format_that_was_asked_for(config, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    found = {}
    for words in (["--json"], ["-o", "json"], ["-o", "yaml"], ["-o", "wide"], []):
        assert main(["status", "--config", config, *words]) == 1
        found[" ".join(words)] = capsys.readouterr().out
    ages = ("at",)
    read = [json.loads(found["--json"]), json.loads(found["-o json"])]
    read.append(yaml.safe_load(found["-o yaml"]))
    for one in read:
        for key in ages:
            one.pop(key)
    assert read[0] == read[1] == read[2]
    assert max(map(len, found["-o wide"].splitlines())) > 100
    assert max(map(len, found[""].splitlines())) <= 100


def test_watching_the_status_is_watching_the_cluster(config, capsys):
    assert main(["status", "--watch", "--times", "1", "--config", config]) == 0
    assert "cluster c1: 4 errors; last known: " in capsys.readouterr().out


@pytest.mark.parametrize(
    "document",
    [
        {},
        [],
        {"a": {}, "b": [], "c": None, "d": True, "e": 1.5},
        {"yes": "no", "1": "2: x", "q": 'a "b" \\ # c\n\x01é', "": "-"},
        [[1, [2]], {"a": [{"b": 1, "c": {"d": [None]}}]}],
        {"key \U0001f427": "\\ud83d\\udc27 \U0001f427\x7f\u2028", "f": [1e-05, -2e16, 1.5e300]},
        "text",
    ],
)
def test_yaml_reads_as_what_was_written(document):
    assert yaml.safe_load(yaml_text(document)) == document
