# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Unit tests run with one deliberate mistake, each time in a process of its own.

Run as a program it reads requests, a JSON document on each line of standard input: the name of
the mistake, none for an empty name, and the tests.  It answers with a line for each: how each
test ended, as pairs of an end and the id of a test.  pytest and the library are imported once;
a fork makes the mistake and imports the tests, so that none of them has what it replaces.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import sys
from collections.abc import Generator, Sequence
from typing import Any

import pytest
from ansible_collections.holdfast.ha.tests.mutation.tested_mutations import TESTED

# Takes longer to import than most of the tests take.
importlib.import_module("hypothesis")

WORDS = ("-q", "-p", "no:cacheprovider", "--assert=plain", "--tb=native")

PASSED, FOUND, BROKEN = "passed", "found", "broken"
"""A test passed; it failed by what it asserts; or it, or what it needs, raised something else."""


class Ends:
    """A plugin of pytest that notes how each test ended."""

    def __init__(self) -> None:
        self.noted: list[tuple[str, str]] = []

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, None, None]:
        yield
        if call.excinfo is not None:
            asserted = (AssertionError, pytest.fail.Exception)
            said = call.when == "call" and isinstance(call.excinfo.value, asserted)
            self.noted.append((FOUND if said else BROKEN, item.nodeid))
        elif call.when == "call":
            self.noted.append((PASSED, item.nodeid))


def ends_of(mistake: str, tests: Sequence[str]) -> dict[str, Any]:
    """Make the mistake for good, run the tests, and return their ends and what pytest said."""
    if mistake:
        known = {one.mutation.name: one.mutation for one in TESTED}
        known[mistake].made().__enter__()
    ends, said = Ends(), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        pytest.main([*WORDS, *tests], plugins=[ends])
    return {"ends": ends.noted, "said": said.getvalue()}


def answer_in_fork(request: dict[str, Any]) -> None:
    """Write the answer to a request from a fork, and wait for its end."""
    pid = os.fork()
    if pid == 0:
        try:
            answer = ends_of(str(request["mistake"]), list(request["tests"]))
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()
        finally:
            os._exit(0)
    os.waitpid(pid, 0)


def main() -> None:
    """Answer each request until standard input ends."""
    for line in sys.stdin:
        answer_in_fork(json.loads(line))


if __name__ == "__main__":
    main()
