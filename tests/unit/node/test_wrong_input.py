# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values that cannot be are refused by one rule: the value, what is allowed, what to do next."""

from __future__ import annotations

import json
import math

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import InputError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.numbers import (
    NUMBERS,
    check_numbers,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.cli.main import main
from ansible_collections.holdfast.ha.tests.unit.node.sample_node import create_storage, document


@pytest.fixture
def refused(tmp_path, capsys):
    """Run the command, which is refused; return its one line of error."""
    create_storage(tmp_path)
    path = tmp_path / "node.json"
    path.write_text(json.dumps(document(tmp_path)))

    def run(*words):
        more = [] if words[0].startswith("-") else ["--config", str(path)]
        assert main([*words, *more]) == 2
        said = capsys.readouterr()
        assert said.out == ""
        assert said.err.startswith("holdfast: ")
        assert said.err.count("\n") == 1
        return said.err.strip()

    return run


@pytest.mark.parametrize(
    ("words", "option", "value", "allowed"),
    [
        (
            ("what-if", "--dies", "n1", "--within", "-4"),
            "--within",
            "-4",
            "seconds from 1 to 86400",
        ),
        (("service", "move", "web", "n2", "--timeout", "-3"), "--timeout", "-3", "from 0 to 86400"),
        (("service", "stop", "web", "--within", "0"), "--within", "0", "from 1 to 86400"),
        (("maintenance", "drain", "n1", "--timeout", "soon"), "--timeout", "soon", "seconds from"),
        (("maintenance", "end", "--timeout", "nan"), "--timeout", "nan", "seconds from"),
        (("unfence", "n2", "--timeout", "inf"), "--timeout", "inf", "seconds from"),
        (("watch", "--every", "0"), "--every", "0", "from 0.2"),
        (("watch", "--times", "1.5"), "--times", "1.5", "a number of times from 0"),
        (("history", "--last", "-1"), "--last", "-1", "a number of events from 0"),
        (("metrics", "--every", "-1"), "--every", "-1", "from 0.2"),
        (("records", "repair", "--keep", "file", "--timeout", "x"), "--timeout", "x", "from 0"),
    ],
)
def test_a_number_out_of_its_range_is_refused_with_the_range(
    refused, words, option, value, allowed
):
    said = refused(*words)
    assert said.startswith(f"holdfast: {option}: '{value}' is not accepted; expected ")
    assert allowed in said
    assert ", such as " in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("stauts",), "'stauts' is not a subcommand of holdfast; did you mean status?"),
        (("xyzzy",), "'xyzzy' is not a subcommand of holdfast."),
        (("service", "mvoe", "web", "n2"), "did you mean move? See holdfast service --help."),
        (
            ("status", "--jsno"),
            "'--jsno' is not an option of holdfast status; did you mean --json?",
        ),
        (("why",), "the following arguments are required: SERVICE|NODE; see holdfast why --help."),
        (("why", "n11"), "did you mean n1?"),
        (("maintenance", "drain", "n22", "--reason", "x", "--yes"), "did you mean n2?"),
        (("fence", "n33", "--reason", "x"), "did you mean n3?"),
        (("history", "--node", "n21"), "did you mean n2?"),
        (("history", "--kind", "fenc"), "did you mean fence?"),
        (("service", "stop", "web"), "'web' is not accepted; expected the id of a declared"),
    ],
)
def test_a_misspelt_word_is_named_with_the_one_that_was_meant(refused, words, said):
    assert said in refused(*words)


@pytest.mark.parametrize("option", sorted(NUMBERS))
def test_modules_and_command_refuse_the_same_values(option):
    row = NUMBERS[option]
    for value in (row.least - 1, row.most * 2 + 1, math.nan, math.inf, "x"):
        with pytest.raises(InputError, match=f"^{option}: .* is not accepted; expected "):
            check_numbers({option: value})
    for value in (None, row.least, row.most, row.example):
        check_numbers({option: value})


def test_a_whole_number_stays_one_and_a_list_is_another_option():
    assert repr(NUMBERS["host_id"].check("host_id", "7")) == "7"
    with pytest.raises(InputError):
        check_numbers({"at_once": 1.5})
    check_numbers({"host_id": [1, 2]})
