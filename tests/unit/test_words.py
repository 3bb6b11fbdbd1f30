# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The word check: each rule finds its examples in each kind of text, and no look-alikes."""

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "words.py"

if not SCRIPT.exists():
    pytest.skip("only a checkout has the word check", allow_module_level=True)

spec = importlib.util.spec_from_file_location("holdfast_words", SCRIPT)
words = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = words
spec.loader.exec_module(words)

RULES = words.read_rules()


def found(path, text):
    path.write_text(text, encoding="utf-8")
    return [(finding.line, finding.words) for finding in words.findings(RULES, [path])]


@pytest.mark.parametrize(
    ("rule", "example"), [(rule, text) for rule in RULES for text in rule.examples]
)
def test_each_rule_finds_its_examples(rule, example):
    assert rule.pattern.search(words.INLINE_CODE.sub("``", example))


@pytest.mark.parametrize(("rule", "text"), [(rule, text) for rule in RULES for text in rule.fine])
def test_a_rule_leaves_what_is_only_like_it(rule, text):
    assert not rule.pattern.search(text)


@pytest.mark.parametrize(
    ("name", "text", "places"),
    [
        ("a.md", "It was\nmended.\n", [(2, "mended")]),
        ("a.md", "Run `mend`:\n\n```\nmend\n```\n", []),
        ("a.yml", "- name: Started\n# of\n# which one\n", [(2, "of # which")]),
        ("a.py", 'mended = "mend it"\n', [(1, "mend")]),
        ("a.py", '"""Mended anew."""\n', [(1, "Mended"), (1, "anew")]),
        ("a.py", "x = 1  # mended\n", [(1, "mended")]),
        ("a.py", '"""What is proved dead."""\n', []),
        ("a.py", 'raise ValueError(f"{node} is proved dead")\n', [(1, "proved dead")]),
        ("a.sh", "echo 'mend this'\n", [(1, "mend")]),
        ("a.png", "mend", []),
    ],
)
def test_prose_is_checked_and_code_is_not(tmp_path, name, text, places):
    assert found(tmp_path / name, text) == places


def test_a_finding_names_the_place_the_words_and_what_to_write(tmp_path):
    path = tmp_path / "page.md"
    path.write_text("Healthy.\nAll is well.\n", encoding="utf-8")
    (finding,) = words.findings(RULES, [path])
    assert str(finding).startswith(f"{path}:2: 'All is well': write \"healthy\" (")
