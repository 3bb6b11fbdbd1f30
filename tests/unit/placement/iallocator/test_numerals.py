# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Numbers in text, which htools reads as Haskell's ``reads`` does."""

from __future__ import annotations

import math

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import ClusterDataError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.cli.htools.hbal import (  # noqa: E501
    OPTIONS,
    HbalOptions,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.cli.htools.options import (  # noqa: E501
    CommandLine,
    read_command_line,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.iallocator.numerals import (  # noqa: E501
    read_decimal,
    read_truth,
    read_whole,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.iallocator.text_format import (  # noqa: E501
    read_text,
)
from ansible_collections.holdfast.ha.tests.unit.placement.random_clusters import uneven_cluster


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("5", 5),
        ("-5", -5),
        (" 5", 5),
        ("- 5", -5),
        ("0x1F", 31),
        ("-0o17", -15),
        ("007", 7),
        ("( ( -\t5 ) )", -5),
        ("9" * 30, int("9" * 30)),
    ],
)
def test_a_whole_number_may_be_hexadecimal_in_brackets_or_after_blanks(text, number):
    assert read_whole("x", text) == number
    assert read_decimal("x", text) == float(number)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1.5", 1.5),
        ("-1.5e-3", -0.0015),
        ("2E+2", 200.0),
        ("(1e400)", math.inf),
        ("-Infinity", -math.inf),
        ("0x" + "f" * 400, math.inf),
        ("9" * 5000, math.inf),
    ],
)
def test_a_number_may_have_a_fraction_or_no_end(text, number):
    assert read_decimal("x", text) == number


@pytest.mark.parametrize("text", ["True", " True", "(True)", "( ( True ) )"])
def test_a_truth_may_be_in_brackets_or_after_blanks(text):
    assert read_truth("x", text) is True
    assert read_truth("x", text.replace("True", "False")) is False


@pytest.mark.parametrize("text", ["", "()", "true", "Truex", "True'", "(True", "-True", "1"])
def test_what_starts_with_no_truth_is_none(text):
    with pytest.raises(ClusterDataError) as caught:
        read_truth("x", text)
    assert str(caught.value) == f"x: cannot parse string '{text}'"


@pytest.mark.parametrize(
    ("text", "rest"), [("True ", " "), ("(False)x", "x"), ("True.", "."), ("False(", "(")]
)
def test_what_follows_a_truth_is_named(text, rest):
    with pytest.raises(ClusterDataError) as caught:
        read_truth("x", text)
    assert str(caught.value) == f"x: leftover characters when parsing '{text}': '{rest}'"


def test_a_number_may_be_none():
    assert math.isnan(read_decimal("x", " (- NaN)"))


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("5x", "x"),
        ("1_0", "_0"),
        ("5 ", " "),
        ("5\r", "\r"),
        ("5.", "."),
        ("(5)x", "x"),
        ("0x", "x"),
        ("0b1", "b1"),
        ("1e", "e"),
        ("5'", "'"),
        ("5 6", " 6"),
    ],
)
def test_what_follows_a_number_is_named(text, rest):
    for read in (read_whole, read_decimal):
        with pytest.raises(ClusterDataError) as caught:
            read("x", text)
        assert str(caught.value) == f"x: leftover characters when parsing '{text}': '{rest}'"


@pytest.mark.parametrize(
    "text", ["", " ", "-", "+1", ".5", "-.5", "--5", "-(5)", "(5", "(5,6)", "nan", "NaN5", "True"]
)
def test_what_starts_with_no_number_is_none(text):
    for read in (read_whole, read_decimal):
        with pytest.raises(ClusterDataError) as caught:
            read("x", text)
        assert str(caught.value) == f"x: cannot parse string '{text}'"


@pytest.mark.parametrize("text", ["1.0", "1e3", "NaN", "Infinity", "1.5e-", "9" * 5000])
def test_a_fraction_is_no_whole_number(text):
    with pytest.raises(ClusterDataError, match="x: cannot parse string"):
        read_whole("x", text)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["-lx", "-l3"], "max solution length: cannot parse string 'x'"),
        (["-l3", "-ex", "-gy", "-ly"], "min score: cannot parse string 'x'"),
        (["--max-cpu=0", "--max-cpu=3"], "Invalid value of the max-cpu ratio"),
        (["--min-disk=NaN"], "min free disk space: expected a share, not 'NaN'"),
        (["--most-copied=NaN"], "Invalid value nan of most-copied"),
        (["--gain-per-gib=NaN"], "Invalid value nan of gain-per-gib"),
    ],
)
def test_of_wrong_values_the_first_is_said_even_if_a_good_one_follows(options, error):
    with pytest.raises(CommandLine, match=error):
        HbalOptions(read_command_line(OPTIONS, options))


def test_lines_that_end_as_on_another_system_are_named():
    with pytest.raises(ClusterDataError, match="its lines end in CR LF, expected LF"):
        read_text(uneven_cluster(1).replace("\n", "\r\n"))


@pytest.mark.parametrize("size", ["NaN", "Infinity", "1e400"])
@pytest.mark.parametrize("field", [1, 4])
def test_a_node_whose_size_has_no_end_is_named(size, field):
    parts = uneven_cluster(1).split("\n\n")
    fields = parts[1].split("|")
    fields[field] = size
    parts[1] = "|".join(fields)
    with pytest.raises(ClusterDataError, match=f"{fields[0]}: expected a size in MiB with an end"):
        read_text("\n\n".join(parts))
