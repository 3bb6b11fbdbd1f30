# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The word check: texts keep to the field's standard terms, by the rules of ``words.yml``.

Checked are Markdown and reStructuredText outside of code blocks, the string constants, docstrings
and comments of Python, and YAML, templates and shell scripts as a whole.  A rule with
``where: user`` leaves out docstrings and comments of Python, and the tests: only people who work
on the code read those.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml  # type: ignore[import-untyped]

ROOT = Path(__file__).resolve().parent.parent
RULES = ROOT / "scripts" / "words.yml"

CODE_BLOCK = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
INLINE_CODE = re.compile(r"(`+)[^`\n]+\1")
AS_A_WHOLE = (".yml", ".yaml", ".j2", ".sh", ".toml", ".svg")


@dataclass(frozen=True)
class Rule:
    """A pattern that texts must not contain.

    *instead* and *why* are for the person who reads the finding; *user* limits the rule to texts
    that users read; *examples* are texts that the pattern has to match.
    """

    pattern: re.Pattern[str]
    instead: str
    why: str
    user: bool
    examples: tuple[str, ...]
    fine: tuple[str, ...]


@dataclass(frozen=True)
class Text:
    """A piece of prose: its first line in the file, and whether only developers read it."""

    line: int
    words: str
    internal: bool


@dataclass(frozen=True)
class Finding:
    """Where a rule matched."""

    path: Path
    line: int
    words: str
    rule: Rule

    def __str__(self) -> str:
        """Return the finding as one line, as compilers print theirs."""
        advice = f"{self.words!r}: {self.rule.instead} ({self.rule.why})"
        return f"{self.path}:{self.line}: {advice}"


def read_rules(path: Path = RULES) -> list[Rule]:
    """Read the rules from the YAML file *path*."""
    return [
        Rule(
            # A line break in a text is a space to its reader, in a comment with the sign before it.
            re.compile(item["pattern"].replace(" ", r"\s+(?:#\s+)?"), re.IGNORECASE | re.MULTILINE),
            item["instead"],
            item["why"],
            item.get("where", "all") == "user",
            tuple(item["examples"]),
            tuple(item.get("fine", ())),
        )
        for item in yaml.safe_load(path.read_text(encoding="utf-8"))
    ]


def texts(path: Path) -> Iterator[Text]:
    """Yield the prose of the file *path*; nothing for a kind of file that has none."""
    if path.suffix in (".md", ".rst"):
        yield Text(1, _without_code(path.read_text(encoding="utf-8")), internal=False)
    elif path.suffix == ".py" or _runs_python(path):
        yield from _of_python(path.read_text(encoding="utf-8"))
    elif path.suffix in AS_A_WHOLE:
        yield Text(1, path.read_text(encoding="utf-8"), internal=False)


def findings(rules: Iterable[Rule], paths: Iterable[Path]) -> Iterator[Finding]:
    """Yield each place in the files *paths* that a rule refuses."""
    rules = tuple(rules)
    for path in paths:
        internal = path.is_relative_to(ROOT / "tests")
        for text in texts(path):
            for rule in rules:
                if rule.user and (internal or text.internal):
                    continue
                for match in rule.pattern.finditer(text.words):
                    line = text.line + text.words.count("\n", 0, match.start())
                    yield Finding(path, line, " ".join(match[0].split()), rule)


def tracked(root: Path = ROOT) -> list[Path]:
    """Return the files that git knows below *root*, or all of them where it is no checkout."""
    listing = subprocess.run(
        ["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        text=True,
        check=False,
    )
    if listing.returncode == 0:
        paths = [root / name for name in listing.stdout.split("\0") if name]
    else:
        paths = [path for path in root.rglob("*") if not path.is_relative_to(root / ".cache")]
    # The changelog is rendered with escapes.
    own = [RULES, root / "LICENSES", root / "COPYING", root / "CHANGELOG.md"]
    own.append(root / "tests" / "unit" / "test_words.py")
    return sorted(
        path
        for path in paths
        if path.is_file() and not any(path.is_relative_to(other) for other in own)
    )


def _without_code(text: str) -> str:
    """Return a text without its code; the number of lines stays the same."""
    without = CODE_BLOCK.sub(lambda block: "\n" * block[0].count("\n"), text)
    return INLINE_CODE.sub("``", without)


def _of_python(text: str) -> Iterator[Text]:
    tree = ast.parse(text)
    docstrings = set()
    for node in ast.walk(tree):
        # A docstring, or the string after an assignment that documents it.
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            docstrings.add(id(node.value))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield Text(node.lineno, _without_code(node.value), internal=id(node) in docstrings)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield Text(token.start[0], token.string, internal=True)


def _runs_python(path: Path) -> bool:
    if path.suffix:
        return False
    with path.open("rb") as file:
        return re.match(rb"#!\S*(bin/env )?python3", file.readline(64)) is not None


def main() -> int:
    """Check the files that are named, or all; print what is refused; return the exit status."""
    parser = argparse.ArgumentParser(description="Check the words of texts.")
    parser.add_argument("paths", nargs="*", type=Path, help="files; all of the checkout if none")
    options = parser.parse_args()
    paths = [path.resolve() for path in options.paths] or tracked()
    count = 0
    for finding in findings(read_rules(), paths):
        print(finding)
        count += 1
    if count:
        print(f"{count} findings; scripts/words.yml has the rules", file=sys.stderr)
    return 1 if count else 0


if __name__ == "__main__":
    raise SystemExit(main())
