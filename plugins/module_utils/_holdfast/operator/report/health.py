# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster's health in one line, for monitoring plugins.

Levels, exit statuses and the line are those of the Monitoring Plugins Development Guidelines
(Plugin Output, Plugin Return Codes): Nagios, Icinga or Zabbix can call ``holdfast check``.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...text import clean
from . import wording
from .wording import Severity, texts


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


def judge_health(status: dict[str, Any]) -> Health:
    """Return the health of the cluster by its conditions; *status* is what ``read_status`` returns.

    An error is critical, a warning a warning, and a note is OK.
    """
    sentences: dict[Severity, list[str]] = {severity: [] for severity in Severity}
    for one in status["conditions"]:
        sentences[Severity(one["severity"])].append(
            f"{clean(one['text'])} Next: {clean(one['next'])}."
        )
    critical, warnings = sentences[Severity.ERROR], sentences[Severity.WARNING]
    level = Level.CRITICAL if critical else Level.WARNING if warnings else Level.OK
    well = (
        f"Cluster {clean(status['cluster'])}: {wording.summary(status)}; {wording.manager(status)}."
    )
    return Health(level, (*critical, *warnings) or (well,), _figures(status))


def unknown(why: str) -> Health:
    """Return the health UNKNOWN with its reason."""
    return Health(Level.UNKNOWN, (clean(why),), {})


def _figures(status: dict[str, Any]) -> dict[str, int]:
    return {
        "problems": len(status["problems"]),
        "warnings": len(texts(status["conditions"], Severity.WARNING)),
        "nodes": len(status["nodes"]),
        "nodes_online": wording.count_online(status),
        "services": len(status["services"]),
        "services_as_wanted": wording.count_as_wanted(status),
    }
