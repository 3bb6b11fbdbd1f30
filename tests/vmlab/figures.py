# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the tests of the lab measure, as a table."""

from __future__ import annotations

import statistics


class Figures:
    """Seconds by what they are of, in the order in which they were measured first."""

    def __init__(self) -> None:
        self.rows: dict[str, list[float]] = {}

    def add(self, what: str, seconds: float) -> None:
        """Record one measurement, and print it."""
        self.rows.setdefault(what, []).append(seconds)
        print(f"{what}: {seconds:.1f} s", flush=True)

    def table(self) -> str:
        """Return median and maximum of all that was measured."""
        width = max(map(len, self.rows))
        lines = [f"{'':{width}} {'runs':>4} {'median':>8} {'maximum':>8}"]
        for what, values in self.rows.items():
            middle, longest = statistics.median(values), max(values)
            lines.append(f"{what:{width}} {len(values):4d} {middle:8.1f} {longest:8.1f}")
        return "\n".join(lines)
