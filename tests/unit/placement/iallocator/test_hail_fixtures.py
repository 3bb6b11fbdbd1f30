# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""hail's own fixtures, which are outside data: read where they exist."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.cli.htools import hail

SHARED = Path(__file__).resolve().parents[5] / "shared"
FOLDER = SHARED / "corpus" / "ganeti"
TABLE = SHARED / "tools" / "hail_oracle.py"


def expected():
    """Return the table of fixtures and what each answer must match, if it is here."""
    if not TABLE.exists() or not FOLDER.exists():
        return [], None
    spec = importlib.util.spec_from_file_location("hail_oracle", TABLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.FIX, module.transform


CASES, transform = expected()
needs_fixtures = pytest.mark.skipif(not CASES, reason="the fixtures of hail are not here")


@needs_fixtures
@pytest.mark.parametrize(
    "case", CASES, ids=[f"{case[0]} {case[2] or ''} {' '.join(case[1])}" for case in CASES]
)
def test_a_fixture_is_answered_as_hails_own_tests_expect(case, tmp_path, capsys):
    name, options, how, desired, well = case
    path = tmp_path / name
    path.write_text(transform((FOLDER / name).read_text(), how))
    options = [str(FOLDER / o) if o.endswith(".data") else o for o in options]
    status = hail.main([*options, str(path)])
    printed = capsys.readouterr()
    assert (status == 0) == well
    assert re.search(desired, printed.out + printed.err), printed
    if well:
        assert set(json.loads(printed.out)) == {"success", "info", "result"}
