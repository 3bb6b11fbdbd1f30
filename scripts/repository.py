# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The address of the project, in every file that has it.

``galaxy.yml`` names the repository.  Until the project has a public address, that is a name that
belongs to nobody (RFC 2606).  Files that cannot read it have it as a text: units, alerts, links
for docs.ansible.com.  ``python3 scripts/repository.py ADDRESS`` replaces it in all of them.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable
from pathlib import Path

import words


def address(root: Path) -> str:
    """Return the address of the repository, as the ``galaxy.yml`` in *root* has it."""
    text = (root / "galaxy.yml").read_text(encoding="utf-8")
    found = re.search(r"^repository: *(\S+)$", text, re.MULTILINE)
    if found is None:
        raise SystemExit(f"{root / 'galaxy.yml'} has no repository; expected repository: ADDRESS")
    return found[1].rstrip("/")


def having(text: str, paths: Iterable[Path]) -> list[Path]:
    """Return those of the files *paths* that contain *text*."""
    return [path for path in paths if text.encode() in path.read_bytes()]


def replace(root: Path, new: str) -> list[Path]:
    """Replace the address of the repository in all files below *root*; return those changed."""
    old = address(root)
    changed = having(old, words.tracked(root))
    for path in changed:
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace(old, new.rstrip("/")), encoding="utf-8")
    return changed


def main() -> None:
    """Replace the address, and print which files changed."""
    parser = argparse.ArgumentParser(description="Replace the project's address in every file.")
    parser.add_argument("address", help="such as https://git.example.org/team/holdfast.ha")
    options = parser.parse_args()
    if not re.fullmatch(r"https://[^\s/]+/\S+", options.address):
        parser.error(f"'{options.address}' is not an address; expected https://HOST/PATH")
    for path in replace(words.ROOT, options.address):
        print(path.relative_to(words.ROOT))


if __name__ == "__main__":
    main()
