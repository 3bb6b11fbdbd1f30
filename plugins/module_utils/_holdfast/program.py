# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The holdfast command: what ``python3 -I holdfast.pyz`` runs."""

from __future__ import annotations

import os
import sys


def library_instead(loader: object) -> str:
    """Return the path of the library if its compiled archive is out of date, else "".

    The archive, which *loader* knows, is beside the library and has a note of its source
    (``operator/cli/install.py``).  If either cannot be read, it is out of date.
    """
    archive: str = getattr(loader, "archive", "")
    if not archive.endswith("c"):
        return ""
    library = archive[:-1]
    try:
        note: bytes = loader.get_data(f"{archive}/holdfast/made_of.json")  # type: ignore[attr-defined]
        # Not by pathlib, whose import would be half of the start.
        seen = os.stat(library)  # noqa: PTH116
    except OSError:
        return library
    made_of = f'"size": {seen.st_size}, "mtime": {seen.st_mtime_ns}, "inode": {seen.st_ino},'
    return "" if made_of.encode() in note else library


def main() -> None:
    """Run the command with the words of this process; it ends the process."""
    other = library_instead(globals().get("__loader__"))
    if other:
        # Isolated: neither the working directory nor PYTHONPATH is searched for modules.
        os.execv(sys.executable, [sys.executable, "-I", other, *sys.argv[1:]])
    if sys.argv[1:2] == ["iallocator"]:
        # One process for each request: nothing is imported that it does not need.
        from .operator.cli.htools.hail import main_and_exit as answer_and_exit

        answer_and_exit(sys.argv[2:])
    if sys.argv[1:2] == ["balance"]:
        from .operator.cli.htools.hbal import main_and_exit as balance_and_exit

        balance_and_exit(sys.argv[2:])
    if sys.argv[1:2] == ["keepalive"]:
        # A child of the LRM, whose memory is locked: it has only what it needs.
        from .node.daemon.keepalive_process import main as send_keepalives

        send_keepalives(sys.argv[2:])
        return
    from .operator.cli.main import main_and_exit

    main_and_exit(sys.argv[1:])


if __name__ == "__main__":
    main()
