# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How far the loads' terms lie above their chords, for loads of one.

Without measured loads each instance has one of every load.  Then there are few ways to
move it: from a node with so many to one with so many more.  For each the gap is known
exactly, and most of what a chord gives away is saved.
"""

from __future__ import annotations

from ..model.score import CPU_LOAD, DISK_LOAD
from .chords import LOADS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..model.cluster import Instance
    from ..model.score import Score
    from .chords import Chords


class LoadGaps:
    """The gaps for one *score*, worked out when they are asked for.

    *of_disks* and *of_others* are the gaps whatever moves from where to where.
    """

    def __init__(
        self,
        chords: Chords,
        score: Score,
        targets: Sequence[int],
        of_disks: float,
        of_others: float,
    ) -> None:
        self._chords = chords
        self._score = score
        self._rows = [score.rows[index] for index in targets]
        self._any = {True: of_disks, False: of_others}
        self._leaving: dict[tuple[bool, float], float] = {}
        self._beyond: dict[tuple[bool, float], float] = {}
        self._arriving: dict[tuple[float | None, float], list[float]] = {}
        self._levels = {
            True: sorted({row[DISK_LOAD] for row in self._rows}),
            False: sorted({row[CPU_LOAD] for row in self._rows}),
        }

    def leaving(self, disks: bool, index: int) -> float:
        """Return the gap when disks, or what runs, leave the node *index* for any target."""
        row = self._score.rows.get(index)
        if row is None:
            return self._any[disks]
        level = row[DISK_LOAD if disks else CPU_LOAD]
        key = (disks, level)
        if key not in self._leaving:
            levels = self._levels[disks]
            self._leaving[key] = min([self._gap(disks, each - level) for each in levels])
        return self._leaving[key]

    def arriving(self, load: float | None, disk_load: float) -> list[float]:
        """Return the gap for each target when disks come from a node with *disk_load*.

        With *load* the instance runs there as well, and has left a node with that load.
        """
        key = (load, disk_load)
        if key not in self._arriving:
            found = [self._gap(True, row[DISK_LOAD] - disk_load) for row in self._rows]
            if load is not None:
                found = [
                    each + self._gap(False, row[CPU_LOAD] - load)
                    for each, row in zip(found, self._rows)
                ]
            self._arriving[key] = found
        return self._arriving[key]

    def between(self, instance: Instance) -> float:
        """Return the gap when *instance* runs on its secondary then."""
        rows = self._score.rows
        one, other = rows.get(instance.primary), rows.get(instance.secondary)
        if one is None or other is None:
            return self._any[False]
        return self._gap(False, other[CPU_LOAD] - one[CPU_LOAD])

    def _gap(self, disks: bool, further: float) -> float:
        key = (disks, further)
        if key not in self._beyond:
            places = (DISK_LOAD,) if disks else LOADS
            self._beyond[key] = self._chords.load_beyond(self._score, places, further)
        return self._beyond[key]
