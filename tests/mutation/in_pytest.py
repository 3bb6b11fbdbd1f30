# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plugin of pytest that makes one mistake before the tests are imported, and says what failed.

It is loaded with ``-p``.  The environment names the mistake, none for an empty name, and the file
that gets a line for each test: how it ended, and its id.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.holdfast.ha.tests.mutation.tested_mutations import TESTED

NAME = "HOLDFAST_MUTATION"
ENDS = "HOLDFAST_MUTATION_ENDS"

PASSED, FOUND, BROKEN = "passed", "found", "broken"
"""A test passed; it failed by what it asserts; or it, or what it needs, raised something else."""


class OneMistake:
    """Makes a mistake for as long as pytest runs."""

    def __init__(self, mistake: AbstractContextManager[Any] | None, ends: Path) -> None:
        self._ends = ends
        self._mistake = mistake
        if mistake is not None:
            mistake.__enter__()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, None, None]:
        yield
        if call.excinfo is not None:
            asserted = (AssertionError, pytest.fail.Exception)
            said = call.when == "call" and isinstance(call.excinfo.value, asserted)
            end = FOUND if said else BROKEN
        elif call.when == "call":
            end = PASSED
        else:
            return
        with self._ends.open("a", encoding="utf-8") as file:
            file.write(f"{end} {item.nodeid}\n")

    def pytest_unconfigure(self) -> None:
        if self._mistake is not None:
            self._mistake.__exit__(None, None, None)


def pytest_configure(config: pytest.Config) -> None:
    """Make the mistake that the environment names."""
    name = os.environ[NAME]
    known = {one.mutation.name: one.mutation for one in TESTED}
    made = known[name].made() if name else None
    config.pluginmanager.register(OneMistake(made, Path(os.environ[ENDS])))
