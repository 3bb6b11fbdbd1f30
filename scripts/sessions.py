# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The checks that antsibull-nox has, by ``antsibull-nox.toml``, with tools of locked versions.

nox makes a virtual environment for each session and installs into it what is newest.  Here each
session gets one that is there already, with versions and hashes from ``requirements/``: nox takes
an environment that it finds in its folder, and installs nothing into it (``-R``).
"""

from __future__ import annotations

import shutil
from pathlib import Path

import workplace
from running import Run

WITHOUT_TOOLS = frozenset({"antsibull-nox-config", "extra-checks"})
"""Sessions that need nothing besides antsibull-nox itself."""

IMPORT = "build-import-check"
"""The session whose tools do not go with the others."""


def sessions(run: Run, *names: str) -> None:
    """Run sessions in one call of nox.

    They work on a copy of the checkout, as some leave files there.
    """
    nox = workplace.tools("nox", workplace.requirements("nox.txt"))
    environments = run.scratch / "nox"
    for name in names:
        if name == IMPORT:
            tools = workplace.tools("importer", workplace.requirements("importer.txt"))
            _lend(tools, environments / name)
        elif name not in WITHOUT_TOOLS:
            _lend(workplace.CACHE / "venv", environments / name)
    run.command(
        *(nox / "bin" / "nox", "-R", "--default-venv-backend", "venv", "--envdir", environments),
        *("--sessions", *names),
        folder=_copy(run),
        # Elsewhere than in CI, antsibull-nox would reformat the files instead of checking them.
        CI="true",
        # The cache would lie among the files that are checked.
        RUFF_NO_CACHE="true",
    )


def _copy(run: Run) -> Path:
    """Return a copy of the checkout without the link for the checkout itself."""
    place = workplace.collection(run.scratch / "sessions")
    if not place.exists():
        workplace.copy(run.scratch / "sessions")
        shutil.rmtree(place / ".collections")
    return place


def _lend(tools: Path, place: Path) -> None:
    """Make *place* an environment with the programs and packages of *tools*.

    Sessions write into the folder of their environment, so it is no link to that of *tools*.
    """
    if place.exists():
        return
    place.mkdir(parents=True)
    for name in ("bin", "lib"):
        (place / name).symlink_to(tools / name)
    shutil.copy2(tools / "pyvenv.cfg", place)
