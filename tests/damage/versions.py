# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The versions that a file of records states, read without the cluster's own rules."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.record_format import (
    Kind,
)
from damage import records_file

MANAGER, CONFIGURATION = "record of the manager", "configuration"

Numbers = tuple[int, ...]
"""Versions that never fall, each by itself, as long as the first one, the generation, stays."""


@dataclass(frozen=True)
class Versions:
    """What a file states: for each subject its generation and its other numbers."""

    numbers: dict[str, Numbers]

    @property
    def manager(self) -> Numbers:
        """Generation, epoch and commands of the newest record of a manager."""
        return self.numbers.get(MANAGER, (0, 0, 0))


def read_versions(path: Path, hosts: Iterable[int]) -> Versions:
    """Return the versions in the newest whole copies, as they are now."""
    numbers: dict[str, Numbers] = {MANAGER: (0, 0, 0), CONFIGURATION: (0, 0)}
    for host_id in hosts:
        state = records_file.document(path, Kind.CRM, host_id)
        if state:
            newest = max(numbers[MANAGER], _numbers(state, "generation", "epoch", "commands"))
            numbers[MANAGER] = newest
        configuration = records_file.document(path, Kind.CONFIGURATION, host_id)
        version = _numbers(configuration, "generation", "version")
        numbers[CONFIGURATION] = max(numbers[CONFIGURATION], version)
        report = records_file.document(path, Kind.LRM, host_id)
        numbers[report_of(host_id)] = _numbers(report, "generation", "epoch", "commands")
    return Versions(numbers)


def report_of(host_id: int) -> str:
    """Return the name under which the report of a node is among the versions."""
    return f"report of host id {host_id}"


def highest(one: Versions, other: Versions) -> Versions:
    """Return for each subject what was ever known of it; a higher generation counts alone."""
    numbers = dict(one.numbers)
    for subject, there in other.numbers.items():
        here = numbers.get(subject, there)
        if here[0] == there[0]:
            numbers[subject] = tuple(map(max, here, there))
        else:
            numbers[subject] = max(here, there)
    return Versions(numbers)


def older(now: Versions, known: Versions) -> dict[str, str]:
    """Return the subjects of which *now* is older than what was *known*, with the numbers."""
    return {
        subject: f"{now.numbers.get(subject)} after {before}"
        for subject, before in known.numbers.items()
        if _is_older(now.numbers.get(subject, (0,) * len(before)), before)
    }


def _is_older(now: Numbers, before: Numbers) -> bool:
    if now[0] != before[0]:
        return now[0] < before[0]
    return any(one < two for one, two in zip(now, before))


def _numbers(document: dict[str, Any], *fields: str) -> Numbers:
    return tuple(int(document.get(one, 0)) for one in fields)
