# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster's health in one line, for monitoring plugins.

Levels, exit statuses and the line are those of the Monitoring Plugins Development Guidelines
(Plugin Output, Plugin Return Codes): Nagios, Icinga or Zabbix can call ``holdfast check``.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...text import clean
from . import wording

if TYPE_CHECKING:
    # The package fence takes longer to load than the answer takes.
    from ...fence.rehearsal.report import NodeReport

_DAY = 86400.0


class Level(enum.IntEnum):
    """The severity; the number is the exit status."""

    OK = 0
    WARNING = 1
    CRITICAL = 2
    UNKNOWN = 3


@dataclass(frozen=True)
class Health:
    """The worst level, its sentences, and numbers for graphs."""

    level: Level
    sentences: tuple[str, ...]
    figures: Mapping[str, int]

    def line(self) -> str:
        """Return the plugin output: one line."""
        numbers = " ".join(f"{name}={value}" for name, value in self.figures.items())
        # A bar separates the text from the numbers.
        text = " ".join(self.sentences).replace("|", "/")
        return f"HOLDFAST {self.level.name} - {text}" + (f" | {numbers}" if numbers else "")


def judge_health(
    status: dict[str, Any],
    rehearsals: Mapping[str, NodeReport] | None = None,
    max_age: float = 0.0,
    warnings: Sequence[str] = (),
) -> Health:
    """Return the health of the cluster; *status* is what ``read_status`` returns.

    Problems are critical.  Its remarks, maintenance, a disarmed cluster, a failover under way and
    *warnings* are warnings.  With *max_age* in days a failed rehearsal is critical, and an older
    one a warning.
    """
    critical = [clean(one) for one in status["problems"]]
    doubts = [*_warnings(status), *map(clean, warnings)]
    if max_age:
        from ...fence.rehearsal.judge import FAILS
        from ...fence.rehearsal.report import NodeReport

        known = rehearsals or {}
        oldest = status["at"] - max_age * _DAY
        for node in status["nodes"]:
            report = known.get(node, NodeReport())
            if report.verdict == FAILS:
                critical.append(f"The last rehearsal of the fencing of {node} failed.")
            elif max((one.at for one in report.rehearsals), default=0.0) < oldest:
                doubts.append(f"The fencing of {node} was not rehearsed for {max_age:g} days.")
    level = Level.CRITICAL if critical else Level.WARNING if doubts else Level.OK
    well = (
        f"Cluster {clean(status['cluster'])}: {wording.summary(status)}; {wording.manager(status)}."
    )
    return Health(level, (*critical, *doubts) or (well,), _figures(status, len(critical)))


def unknown(why: str) -> Health:
    """Return the health UNKNOWN with its reason."""
    return Health(Level.UNKNOWN, (clean(why),), {})


def _warnings(status: dict[str, Any]) -> list[str]:
    found = [clean(one) for one in status["remarks"]]
    if status["global_maintenance"]:
        found.append(f"{wording.held(status)} {wording.GLOBAL_MAINTENANCE}".strip())
    if status["disarm"] is not None:
        found.append(f"{wording.disarmed(status)} {wording.DISARMED}")
    for name, node in status["nodes"].items():
        if node["maintenance"] is not None:
            found.append(f"Node {clean(name)}: {wording.node_note(node, status['at'])}.")
    for failover in status["failovers"]:
        if not failover["finished"]:
            found.append(f"The failover of node {clean(failover['node'])} is under way.")
    return found


def _figures(status: dict[str, Any], problems: int) -> dict[str, int]:
    return {
        "problems": problems,
        "nodes": len(status["nodes"]),
        "nodes_online": wording.count_online(status),
        "services": len(status["services"]),
        "services_as_wanted": wording.count_as_wanted(status),
    }
