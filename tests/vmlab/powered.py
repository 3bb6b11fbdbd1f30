# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the programs share that are a machine while it has power."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from testbed.lab import CGROUP, folder


@contextmanager
def powered() -> Iterator[tuple[Path, int]]:
    """Give the folder and the number of the machine that this program is; it is off after that."""
    number = int(sys.argv[1])
    lab = folder()
    if lab is None:
        raise SystemExit("A machine runs in a lab only.")
    here = lab / f"n{number}"
    print(f"machine {here.name}: on", flush=True)
    yield here, number
    # What is left, itself too.
    (CGROUP / here.name / "cgroup.kill").write_text("1")


def count_boot(here: Path) -> None:
    """Count one more start of a machine's kernel."""
    boots = here / "boots"
    new = here / "boots.new"
    new.write_text(str(int(boots.read_text()) + 1))
    new.rename(boots)
