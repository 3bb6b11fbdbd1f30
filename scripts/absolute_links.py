# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make the links of a README absolute, for the archive that goes to Galaxy.

Galaxy shows the README as it is, below an address of its own: relative links lead nowhere there.
In the repository and on the site they have to stay relative.  So only the copy of the README that
is put into the archive gets absolute links, to the files of the same version in the repository
that ``galaxy.yml`` names: ``python3 scripts/absolute_links.py FOLDER``, before
``ansible-galaxy collection build FOLDER``.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?!https?:|mailto:|#)(?P<path>[^)\s]+)\)")
CODE_BLOCK = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


def absolute(text: str, repository: str, version: str) -> str:
    """Return Markdown with absolute links; images lead to the files themselves."""

    def link(match: re.Match[str]) -> str:
        view = "raw" if match["image"] else "blob"
        address = f"{repository.rstrip('/')}/{view}/{version}/{match['path']}"
        return f"{match['image']}[{match['text']}]({address})"

    parts = CODE_BLOCK.split(text)
    return "".join(part if part.startswith("```") else LINK.sub(link, part) for part in parts)


def rewrite(folder: Path) -> None:
    """Rewrite the README of the collection in *folder*, by its ``galaxy.yml``."""
    galaxy = (folder / "galaxy.yml").read_text(encoding="utf-8")
    found = dict(re.findall(r"^(repository|version): *(\S+)$", galaxy, re.MULTILINE))
    readme = folder / "README.md"
    text = readme.read_text(encoding="utf-8")
    readme.write_text(absolute(text, found["repository"], found["version"]), encoding="utf-8")


if __name__ == "__main__":
    rewrite(Path(sys.argv[1]))
