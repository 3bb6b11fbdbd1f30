# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""One testbed for all tests here; they run in a lab, which ``testbed run`` makes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from testbed import lab
from testbed.whole import Testbed


@pytest.fixture(scope="session")
def testbed() -> Iterator[Testbed]:
    """Three nodes that are on, freshly installed at the beginning of the session."""
    if lab.folder() is None:
        why = lab.missing() or "it runs in a lab: tests/testbed/testbed run -- python3 -m pytest"
        pytest.skip(why)
    with Testbed() as made:
        yield made


@pytest.fixture(autouse=True)
def mended(request: pytest.FixtureRequest) -> Iterator[None]:
    """End whatever fault a test left behind, and let no node be off after it."""
    yield
    if "testbed" not in request.fixturenames:
        return
    whole = request.getfixturevalue("testbed")
    for node in whole.nodes.values():
        node.storage("ok")
        node.heal_network()
        whole.repair_board(node)
        if node.is_on:
            node.thaw()
        node.switch_on()
    for node in whole.nodes.values():
        node.wait_booted()
