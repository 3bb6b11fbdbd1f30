# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What both kinds of machines share while they have power."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from testbed.lab import CGROUP, folder


@contextmanager
def powered() -> Iterator[tuple[Path, int]]:
    """Yield folder and number of the machine that this process runs; switch it off at the end."""
    number = int(sys.argv[1])
    lab = folder()
    if lab is None:
        raise SystemExit("A machine runs in a lab only.")
    here = lab / f"n{number}"
    print(f"machine {here.name}: on", flush=True)
    yield here, number
    # All processes of the machine, this one included.
    (CGROUP / here.name / "cgroup.kill").write_text("1")


def count_boot(here: Path) -> None:
    """Increment the number of kernel starts of a machine."""
    boots = here / "boots"
    new = here / "boots.new"
    new.write_text(str(int(boots.read_text()) + 1))
    new.rename(boots)
