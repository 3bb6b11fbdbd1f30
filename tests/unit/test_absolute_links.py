# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The README in the archive for Galaxy has absolute links; nothing else in it changes."""

import importlib.util
import re
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "absolute_links.py"

if not SCRIPT.exists():
    pytest.skip("only a checkout has the script", allow_module_level=True)

spec = importlib.util.spec_from_file_location("holdfast_absolute_links", SCRIPT)
links = importlib.util.module_from_spec(spec)
spec.loader.exec_module(links)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[a](docs/a.md)", "[a](https://x.example/r/blob/1.2.3/docs/a.md)"),
        ("[a](docs/a.md#part)", "[a](https://x.example/r/blob/1.2.3/docs/a.md#part)"),
        ("![p](docs/p.png)", "![p](https://x.example/r/raw/1.2.3/docs/p.png)"),
        ("[a](https://y.example/a)", "[a](https://y.example/a)"),
        ("[a](#part)", "[a](#part)"),
        ("```\n[a](docs/a.md)\n```", "```\n[a](docs/a.md)\n```"),
    ],
)
def test_a_link_becomes_absolute_unless_it_is_or_is_an_example(text, expected):
    assert links.absolute(text, "https://x.example/r", "1.2.3") == expected


def test_the_readme_of_an_archive_has_no_relative_link(tmp_path):
    for name in ("README.md", "galaxy.yml"):
        shutil.copy(ROOT / name, tmp_path / name)
    links.rewrite(tmp_path)
    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"\]\((?!https?:)", text) == []
    assert "/blob/" in text and "/raw/" in text
