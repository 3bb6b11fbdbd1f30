# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The option by which a run of the tests plays only a share of them, see ``scripts/share.py``."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))

from share import WHOLE, Share


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--share``."""
    text = "run only one of so many shares of the tests, such as 2/4"
    parser.addoption("--share", type=Share.parse, default=WHOLE, metavar="NUMBER/COUNT", help=text)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the tests of the other shares out; pytest says how many."""
    kept = config.getoption("share").among(items)
    left_out = set(items) - set(kept)
    if left_out:
        config.hook.pytest_deselected(items=[item for item in items if item in left_out])
        items[:] = kept
