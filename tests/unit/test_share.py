# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Shares of what takes long: each part is in exactly one, so that in turn nothing is left out."""

import argparse
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

# tests/conftest.py has it in the path.
from share import MOST_SHARES, Share

ROOT = Path(__file__).resolve().parents[2]
COUNTS = st.integers(min_value=1, max_value=MOST_SHARES)
AMOUNTS = st.integers(min_value=0, max_value=300)


def shares(count):
    return [Share(number, count) for number in range(1, count + 1)]


@given(COUNTS, AMOUNTS)
def test_each_thing_is_in_one_share(count, amount):
    things = range(amount)
    parts = [one.among(things) for one in shares(count)]
    assert sorted(thing for part in parts for thing in part) == list(things)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


@given(COUNTS, AMOUNTS)
def test_each_seed_is_in_one_share(count, amount):
    parts = [one.seeds(amount) for one in shares(count)]
    assert [seed for part in parts for seed in part] == list(range(amount))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


@given(COUNTS.flatmap(lambda count: st.sampled_from(shares(count))))
def test_its_text_names_a_share(one):
    assert Share.parse(str(one)) == one


@pytest.mark.parametrize(
    "text", ["", "2", "0/4", "5/4", "-1/4", "1/0", "1/21", "1/4 ", "1/4/2", "a/b", "1/\u0664"]
)
def test_what_names_no_share_is_refused_with_an_example(text):
    with pytest.raises(argparse.ArgumentTypeError, match="such as 2/4"):
        Share.parse(text)


def collected(*words):
    """Return the tests of this file that pytest would play, and all that it says."""
    options = ("--collect-only", "-q", "-p", "no:cacheprovider", "tests/unit/test_share.py")
    said = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    ).stdout
    return re.findall(r"^tests/unit/test_share\.py::(.*)$", said, re.MULTILINE), said


def test_pytest_plays_a_share_and_says_how_many_it_left_out():
    whole, said = collected()
    assert "deselected" not in said
    names, said = collected("--share", "2/3")
    assert names == Share(2, 3).among(whole)
    assert (
        f"{len(names)}/{len(whole)} tests collected ({len(whole) - len(names)} deselected)" in said
    )
