# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The measurements of the lab's tests, as a table."""

from __future__ import annotations

import os
import statistics


class Figures:
    """Measured times in seconds by name, in the order of their first measurement."""

    def __init__(self) -> None:
        self.rows: dict[str, list[float]] = {}
        self._loads: list[float] = []

    def add(self, what: str, seconds: float) -> None:
        """Record one measurement and the load of the host, and print the measurement."""
        self.rows.setdefault(what, []).append(seconds)
        self._loads.append(os.getloadavg()[0])
        print(f"{what}: {seconds:.1f} s", flush=True)

    def table(self) -> str:
        """Return median and maximum of each measurement, and of the host's load meanwhile.

        The load is the number of processes that run or wait for a processor.  It explains figures
        that are larger than on an idle host.
        """
        width = max(map(len, self.rows))
        lines = [f"{'':{width}} {'runs':>4} {'median':>8} {'maximum':>8}"]
        for what, values in self.rows.items():
            middle, longest = statistics.median(values), max(values)
            lines.append(f"{what:{width}} {len(values):4d} {middle:8.1f} {longest:8.1f}")
        usual, most = statistics.median(self._loads), max(self._loads)
        lines.append(f"load of the host ({os.cpu_count()} cores): {usual:.1f}, at most {most:.1f}")
        return "\n".join(lines)
