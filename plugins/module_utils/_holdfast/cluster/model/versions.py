# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Floors: the lowest versions of the records that may be acted on.

Storage can go back in time: a snapshot is reverted, an asynchronous replica takes over, a write
lands late, a copy is damaged.  So a version that was once acted on is a floor for everything later.
Within one *generation* three versions never fall: the epoch of the manager lease, the number of
commands, and the version of the configuration.  Only an operator's repair begins a new generation
and so lowers a floor.

A record below a floor is a *regression*.  An LRM does not follow it, and a manager starts, stops
and fences nothing while there is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Optional

from .desired import DesiredState
from .observed import Answer, LeaseSight, ObservedNode
from .report import Report, Sight
from .state import ClusterState

WAY_OUT = "see 'holdfast records repair --keep running --dry-run'"


@dataclass(frozen=True)
class Floor:
    """The versions that *node* has acted on: a minimum for all others.

    *kept* says that they come from the node's local disk.
    """

    node: str
    generation: int = 0
    epoch: int = 0
    commands: int = 0
    config_version: int = 0
    kept: bool = False


@dataclass(frozen=True)
class LeaseVersion:
    """The version of a lease and its last holder *node*, empty if that is no member."""

    version: int
    node: str = ""


def floor_of_report(report: Report | Sight, node: str, *, kept: bool = False) -> Floor:
    """Return what *node* has acted on by its report; *kept* if that is the local copy."""
    return Floor(
        node,
        report.generation,
        report.epoch,
        report.commands,
        report.config_version,
        kept,
    )


def known_floors(
    reports: Mapping[str, Report | Sight], node: str, kept: Report | None
) -> list[Floor]:
    """Return what each node has acted on by its report, and *node* by its local copy *kept*."""
    floors = [floor_of_report(report, name) for name, report in sorted(reports.items())]
    if kept is not None:
        floors.append(floor_of_report(kept, node, kept=True))
    return floors


def why_not_followed(report: Report, state: ClusterState) -> str:
    """Return why the LRM of *report* must not follow *state*; empty if it may.

    If this node acted on more commands than the manager knew when it took over, that manager does
    not know what runs here, however many commands it gives later.
    """
    below = _below(state, floor_of_report(report, report.node))
    if below is None:
        return ""
    name, has, needs = below
    older = f"the manager's record is older than what {report.node} acted on"
    return f"{older} ({name} {has}; acted on {name} {needs})"


def known_commands(state: ClusterState, epoch: int) -> int:
    """Return how many commands until *epoch* the manager of *state* knew.

    For earlier epochs that is its ``base``.  Records of versions without ``base`` are judged by
    their number of commands.
    """
    if state.epoch > epoch and state.base is not None:
        return state.base
    return state.commands


def regressions(
    state: ClusterState | None,
    desired: DesiredState,
    floors: Iterable[Floor],
    manager_lease: LeaseVersion,
    configuration_lease: int,
) -> tuple[str, ...]:
    """Return a sentence for each version that went back; empty if all are current.

    *state* is the newest manager's record, None if none was written.  *desired* is the newest
    configuration.  *floors* are known from elsewhere.  The lease versions are those on storage.
    """
    state = state or ClusterState()
    floors = list(floors)
    found = [
        *_grouped("the manager's record", ((floor, _below(state, floor)) for floor in floors)),
        *_grouped(
            "the configuration", ((floor, _configuration_below(desired, floor)) for floor in floors)
        ),
    ]
    if not desired.at_least(state.generation, state.config_version):
        found.append(
            f"the configuration is older (version {desired.version}) than the one that"
            f" {state.manager or 'the manager'} worked from (version {state.config_version})"
        )
    if manager_lease.version < state.epoch:
        found.append(
            f"the manager lease is older (version {manager_lease.version}) than the manager's"
            f" record (epoch {state.epoch})"
        )
    elif manager_lease.version == state.epoch and manager_lease.node not in ("", state.manager):
        found.append(
            f"the manager lease is older than the manager's record: {manager_lease.node} has it"
            f" with version {manager_lease.version}, an epoch in which {state.manager} was manager"
        )
    if configuration_lease < desired.version:
        found.append(
            f"the configuration lease is older (version {configuration_lease}) than the"
            f" configuration (version {desired.version})"
        )
    return tuple(found)


Below = Optional[tuple[str, int, int]]
"""What of a record is below a floor: the name of the version, its value, and its floor."""


def _below(state: ClusterState, floor: Floor) -> Below:
    """Return what of the manager's record is below *floor*, the most important version first."""
    if floor.generation > state.generation:
        return "generation", state.generation, floor.generation
    if floor.generation < state.generation:
        return None
    if floor.epoch > state.epoch:
        return "epoch", state.epoch, floor.epoch
    known = known_commands(state, floor.epoch)
    if floor.commands > known:
        return "command", known, floor.commands
    return None


def _configuration_below(desired: DesiredState, floor: Floor) -> Below:
    """Return what of the configuration is below *floor*."""
    if desired.at_least(floor.generation, floor.config_version):
        return None
    if desired.generation < floor.generation:
        return "generation", desired.generation, floor.generation
    return "version", desired.version, floor.config_version


def _grouped(record: str, found: Iterable[tuple[Floor, Below]]) -> list[str]:
    """Return a sentence for each difference, with all nodes that know it."""
    nodes: dict[tuple[str, int, int], list[str]] = {}
    for floor, below in found:
        if below is None:
            continue
        names = nodes.setdefault(below, [])
        if floor.node not in names:
            names.append(f"{floor.node} (its local disk)" if floor.kept else floor.node)
    return [
        f"{record} is older ({name} {has}) than what {', '.join(known)} acted on ({name} {needs})"
        for (name, has, needs), known in sorted(nodes.items())
    ]


def observed_reports(nodes: Mapping[str, ObservedNode]) -> dict[str, Report]:
    """Return the reports that exist and can be trusted."""
    return {
        name: observed.report for name, observed in nodes.items() if observed.report is not None
    }


def older_than_reports(
    state: ClusterState, desired: DesiredState, reports: Mapping[str, Report]
) -> tuple[str, ...]:
    """Return what of a manager's own state and configuration is older than a report.

    This runs in each turn and reads nothing.  The leases are compared at the take-over.
    """
    floors = [
        floor_of_report(report, name)
        for name, report in reports.items()
        if not _is_current(report, state, desired)
    ]
    lease = LeaseVersion(state.epoch, state.manager)
    return regressions(state, desired, floors, lease, desired.version)


def _is_current(report: Report, state: ClusterState, desired: DesiredState) -> bool:
    """Return whether a report is of this manager and names nothing newer, as nearly all do."""
    return (
        (report.generation, report.epoch) == (state.generation, state.epoch)
        and report.commands <= state.commands
        and desired.at_least(report.generation, report.config_version)
    )


def newer_report(
    stored_number: int, stored: Report | None, kept_number: int, kept: Report | None
) -> Report | None:
    """Return the newer of the reports on shared storage and on the local disk.

    What a node acted on never falls, so it is compared before the number: a node that lost both
    copies counts from the beginning again.  With equal numbers the one on storage wins, because a
    power cut may have lost the last local one.
    """
    if kept is None or stored is None:
        return stored or kept
    return kept if _age(kept, kept_number) > _age(stored, stored_number) else stored


def _age(report: Report, number: int) -> tuple[int, int, int, int, int]:
    """Return the sort key of the reports of one node: the highest is the newest."""
    return report.generation, report.epoch, report.commands, report.config_version, number


def not_heard_yet(nodes: Mapping[str, ObservedNode], suspect_after: float) -> str:
    """Return what a new manager has to hear before it takes over; empty if nothing.

    A node may have acted on more than the record on storage has, and only its own current report
    shows that.  So every node that is alive must have been heard and its report be readable, also
    that of a silent node whose host lease does not prove it stopped.  A silent node must have had
    the time to answer on the network, because it may use another storage.
    """
    for name, observed in sorted(nodes.items()):
        if observed.heartbeat_age >= suspect_after:
            if observed.report_lost and observed.lease not in (LeaseSight.FREE, LeaseSight.DEAD):
                return (
                    f"{name} is silent and may be alive, and its report on storage is damaged or"
                    " older than its heartbeat shows: restore its storage or restart it"
                )
            if observed.answer is Answer.UNKNOWN:
                return f"waiting until {name} has answered on the network, or has not"
            continue
        if not observed.beats:
            return f"waiting until {name} has been watched for {suspect_after:g} s"
        if observed.report_lost:
            return f"the report of {name} on storage is damaged or older than its heartbeat shows"
    return ""


def paused(sentences: Iterable[str]) -> str:
    """Return a text with what went back, what is paused, and how to resolve it."""
    return f"paused: {'; '.join(sentences)}; nothing is started, stopped or fenced; {WAY_OUT}"
