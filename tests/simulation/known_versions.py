# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""S14: no node and no manager acts on older records than before.

The versions that each node acted on are kept here, whatever its daemons and the storage remember.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    Report,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    ClusterState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.simulator.machine import Machine

READ_BY_THEN = 6.0
"""Seconds after which a manager has read what a node acted on, also if its record was lost: the
node writes that again after 5 s."""

Broken = Callable[[str, str], None]


class Versions(NamedTuple):
    """The versions that a node acted on, and when, in virtual seconds."""

    generation: int = 0
    epoch: int = 0
    commands: int = 0
    config_version: int = 0
    at: float = 0.0


def _versions(report: Report, at: float) -> Versions:
    return Versions(report.generation, report.epoch, report.commands, report.config_version, at)


class KnownVersions:
    """What each node acted on, over all its starts."""

    def __init__(self, broken: Broken) -> None:
        """Call *broken* with the rule that is broken, and how."""
        self._broken = broken
        self._acted: dict[str, Versions] = {}
        self._boots: dict[str, int] = {}
        self._forgot: dict[str, int] = {}
        self._idle: set[str] = set()
        """Nodes that did not act on anything yet since their power was cut."""

    def forgot(self, name: str, boot: int) -> bool:
        """Return whether a machine lost all that it wrote in that boot, or in an earlier one."""
        return boot <= self._forgot.get(name, 0)

    def generation(self) -> int:
        """Return the highest generation of the records that a node acted on."""
        return max((one.generation for one in self._acted.values()), default=0)

    def resumes(
        self, machine: Machine, stored: Report | None, written: Report | None, now: float
    ) -> None:
        """Note that an LRM begins: after a power cut it knows what its disk or the storage has.

        *written* is what the one before it wrote last.
        """
        name = machine.name
        if self._boots.get(name, machine.boot) != machine.boot:
            self._idle.add(name)
        if name in self._idle:
            _number, kept = machine.kept.read()
            known = [_versions(one, now) for one in (kept, stored) if one is not None]
            last = self._acted.get(name, Versions())
            # What was kept may be newer: it was never acted on.
            self._acted[name] = min(last, max(known, default=Versions()))
            lost = written is not None and written is not stored and written is not kept
            if lost and self._boots[name] != machine.boot:
                self._forgot[name] = self._boots[name]
        self._boots[name] = machine.boot

    def follows(
        self, machine: Machine, report: Report, state: ClusterState | None, now: float
    ) -> None:
        """Check what a node acts on from now on: *report* is its own, *state* the manager's."""
        self._idle.discard(machine.name)
        last = self._acted.get(machine.name, Versions())
        if (
            report.commands == last.commands
            and report.epoch == last.epoch
            and report.config_version == last.config_version
            and report.generation == last.generation
        ):
            return
        new = _versions(report, now)
        self._acted[machine.name] = new
        if new.generation > last.generation:
            return
        if new.generation < last.generation:
            self._broken("S14", f"{machine.name} goes back to generation {new.generation}")
        if new.epoch < last.epoch:
            self._broken("S6", f"{machine.name} goes back to an older epoch")
        if new.commands < last.commands or new.config_version < last.config_version:
            self._broken("S14", f"{machine.name} goes back from {last} to {new}")
        followed = state is not None and state.epoch == new.epoch
        base = state.base if followed and state is not None else None
        if new.epoch > last.epoch and base is not None and base < last.commands:
            self._broken(
                "S14",
                f"{machine.name} follows a manager that knew of {base} commands, and acted on"
                f" {last.commands}",
            )

    def manages(self, by: str, state: ClusterState, machines: list[Machine], begun: float) -> None:
        """Check the record by which a manager gives a command, decided in a round *begun* then."""
        for machine in machines:
            last = self._acted.get(machine.name)
            if last is None or last.at > begun - READ_BY_THEN or last.generation < state.generation:
                continue
            if not machine.beats.goes or machine.writes_since > begun - READ_BY_THEN:
                continue
            known = state.commands
            if last.epoch < state.epoch and state.base is not None:
                known = state.base
            if (
                last.generation > state.generation
                or last.epoch > state.epoch
                or last.commands > known
                or last.config_version > state.config_version
            ):
                self._broken(
                    "S14",
                    f"{by} manages by a record of generation {state.generation}, epoch"
                    f" {state.epoch}, {known} commands and configuration {state.config_version};"
                    f" {machine.name} acted on {last}",
                )
