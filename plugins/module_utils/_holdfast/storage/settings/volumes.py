# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Logical volumes under a cluster's storage: only one that maps straight to its LUN is safe.

LVM gives each kind of volume a target of the device mapper (lvmthin(7), lvmraid(7), lvmcache(7)).
All but ``linear`` and ``striped`` keep metadata that each node's kernel writes for itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

STRAIGHT = ("linear", "striped")
"""The targets that only map sectors."""

WHY = {
    "thin": "a thin volume",
    "snapshot": "a snapshot",
    "snapshot-origin": "a volume with a snapshot",
    "raid": "a RAID volume",
    "mirror": "a mirror, or its extents are being moved (pvmove)",
    "cache": "a volume with a cache",
    "writecache": "a volume with a cache",
    "error": "a volume that lacks a physical volume",
}
"""What a target says of a volume, in words."""


def check_volumes(name: str, system: Path, targets: Callable[[str], list[str]]) -> list[str]:
    """Return what is wrong with the logical volumes of which a block device consists.

    *system* is where sysfs is; *targets* returns the kinds of a volume's targets by its name.
    """
    problems = []
    for volume in _volumes_below(name, system):
        wrong = sorted({one for one in targets(volume) if one not in STRAIGHT})
        if wrong:
            kinds = " and ".join(WHY.get(one, f"a volume of kind {one}") for one in wrong)
            problems.append(
                f"{volume} is {kinds}: each node's kernel would write metadata of its own and"
                " damage that of the others; use a volume of kind linear."
            )
    return problems


def targets_in(table: str) -> list[str]:
    """Return the kinds of targets in a table that ``dmsetup table`` printed for one device."""
    rows = (line.split() for line in table.splitlines())
    return [row[2] for row in rows if len(row) > 2]


def _volumes_below(name: str, system: Path) -> Iterator[str]:
    """Give the names of the logical volumes in the layers of a block device, from above."""
    place = system / "class/block" / name
    if (place / "partition").exists():
        yield from _volumes_below(place.resolve().parent.name, system)
        return
    if read_attribute(place / "dm/uuid").startswith("LVM-"):
        yield read_attribute(place / "dm/name") or name
    for part in sorted((place / "slaves").glob("*")):
        yield from _volumes_below(part.name, system)


def read_attribute(path: Path) -> str:
    """Return what a file of sysfs has, "" without one."""
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return ""
