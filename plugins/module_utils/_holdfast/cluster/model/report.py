# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the LRM of a node knows and publishes: its report, as it stands in its record.

The report is also what a daemon that was started again takes up from, so a
command is in it as accepted before it is carried out.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from .service import Service, service_document, service_from_options
from .state_codec import known


class LocalState(str, enum.Enum):
    """What a node's LRM knows of a service on its own node."""

    UNKNOWN = "unknown"
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    MIGRATING = "migrating"
    STOPPED = "stopped"
    FAILED = "failed"
    BLOCKED = "blocked"


RESTART = "restart"
REBOOT = "reboot"
POWEROFF = "poweroff"
"""What ends an LRM: it alone is to be started anew, or its node is to be."""

WRITTEN_AGAIN = 60.0
"""Seconds after which an LRM writes its report once more though nothing changed: what was damaged
on the storage is whole again by that, also where nobody could tell this node what to do."""

NOT_RUNNING = frozenset({LocalState.STOPPED, LocalState.FAILED})
"""States in which nothing of a service is left on its node; in all others something may be."""

WORKED_ON = frozenset({LocalState.STARTING, LocalState.STOPPING, LocalState.MIGRATING})


class Mode(str, enum.Enum):
    """What an LRM is about, beyond keeping its services.

    active: nothing else; maintenance: its node is being emptied; restart: it, or its
    node, comes back soon and its services are to be left alone; shutdown: its node goes
    away; disarm: it keeps no service and needs no watchdog.
    """

    ACTIVE = "active"
    MAINTENANCE = "maintenance"
    RESTART = "restart"
    SHUTDOWN = "shutdown"
    DISARM = "disarm"


class Phase(str, enum.Enum):
    """An LRM's own state: whether it is bound to the watchdog by what it runs.

    wait: it runs nothing, and its watchdog may be closed; active: it runs services, or is
    to; maintenance: it empties its node; lost: its host lease is gone and it may not act.
    """

    WAIT = "wait_for_agent_lock"
    ACTIVE = "active"
    MAINTENANCE = "maintenance"
    LOST = "lost_agent_lock"


class Outcome(str, enum.Enum):
    """How a command ended.

    ok: done; failed: not done, and nothing of it is left running; blocked: not
    done, and something may still run; interrupted: given up half-way with nothing
    left running, and the command may be given anew; refused: not begun, as the
    command is out of date.
    """

    OK = "ok"
    FAILED = "failed"
    BLOCKED = "blocked"
    INTERRUPTED = "interrupted"
    REFUSED = "refused"


@dataclass(frozen=True)
class CommandResult:
    """The result of one command uid; *at* is seconds since 1970, *took* seconds."""

    service: str
    outcome: Outcome
    text: str = ""
    at: float = 0.0
    took: float = 0.0


@dataclass(frozen=True)
class LocalService:
    """A service on this node; *definition* is what was started, to stop it by.

    *restarts* counts how often it was restarted here since it last was
    *settled*, that is, ran for a good while.
    """

    definition: Service
    state: LocalState = LocalState.UNKNOWN
    uid: str = ""
    since: float = 0.0
    reason: str = ""
    restarts: int = 0
    settled: bool = False


@dataclass(frozen=True)
class Report:
    """An LRM's record.

    *mode* and *phase* are the LRM's own; *boot* changes when the node was started
    anew; *generation*, *epoch*, *commands* and *config_version* are the highest that this node
    has acted on, older ones are refused (``versions.py``); *accepted* maps each command uid
    that was begun to its service; *found* answers the manager's probes, each under its
    ``probe``, with whether the service runs here; *left* are the services that ran here when
    they were left to their operator, and still bind this start of the node to its watchdog.  So
    do those *coming* here while they run: they may be here before the LRM has to do with them.
    *room* is what the node has of CPUs and MiB of memory, if it is known.  *goes_down* is
    ``reboot`` or ``poweroff`` while the node goes down by the will of its operator, else empty.
    *watchdog_timeout* is after how many seconds the node's own watchdog resets it, 0 without
    one; None is of an LRM of a version that did not say so.  *virtual* is the kind of virtual
    machine that the node is, such as ``kvm``, empty for a physical one, None if not known.
    *membership* is the digest of the membership that the LRM runs with, empty from a version that
    does not report one; *membership_differs* is how it differs from the recorded one, in words.
    """

    node: str = ""
    boot: str = ""
    epoch: int = 0
    commands: int = 0
    config_version: int = 0
    lease_lost: bool = False
    mode: Mode = Mode.ACTIVE
    phase: Phase = Phase.WAIT
    accepted: Mapping[str, str] = field(default_factory=dict)
    results: Mapping[str, CommandResult] = field(default_factory=dict)
    services: Mapping[str, LocalService] = field(default_factory=dict)
    found: Mapping[str, bool] = field(default_factory=dict)
    left: tuple[str, ...] = ()
    coming: tuple[str, ...] = ()
    room: tuple[float, float] | None = None
    goes_down: str = ""
    watchdog_timeout: int | None = None
    generation: int = 0
    virtual: str | None = None
    membership: str = ""
    membership_differs: str = ""

    def with_membership(self, digest: str, differs: str) -> Report:
        """Return this report with the membership that the LRM runs with."""
        if (self.membership, self.membership_differs) == (digest, differs):
            return self
        return replace(self, membership=digest, membership_differs=differs)

    def with_service(self, service_id: str, service: LocalService) -> Report:
        """Return this report with one service changed."""
        return replace(self, services={**self.services, service_id: service})

    def running(self) -> list[str]:
        """Return the ids of the services that run here, or may."""
        return sorted(key for key, one in self.services.items() if one.state not in NOT_RUNNING)

    def to_be_stopped(self) -> list[str]:
        """Return what runs here, but for what cannot be stopped."""
        return [one for one in self.running() if self.services[one].state is not LocalState.BLOCKED]

    def binds_watchdog(self, written: Report | None) -> bool:
        """Return whether the node's watchdog is to act if its host lease is lost.

        It does so for what was left to its operator too, as nobody else can say that it ended,
        and for what migrates here, as its source may bring it here at any moment.  The former
        ends with a disarm that stands on the storage, in what was *written* last: of a node
        that has not said so the host lease counts as a proof.
        """
        if self.running() or self.coming:
            return True
        told = written is not None and written.mode is self.mode is Mode.DISARM
        return bool(self.left) and not told

    def at_work(self) -> list[str]:
        """Return the ids of the services that are being started, stopped or moved here."""
        return sorted(key for key, one in self.services.items() if one.state in WORKED_ON)


def stays_up(report: Report) -> bool:
    """Return whether a node that is shut down stays up, as a service there cannot be stopped."""
    return any(one.state is LocalState.BLOCKED for one in report.services.values())


@dataclass(frozen=True)
class Sight:
    """What is shown of an LRM's record: far less than is in it, and read in less time."""

    lease_lost: bool = False
    services: Mapping[str, str] = field(default_factory=dict)
    left: tuple[str, ...] = ()
    generation: int = 0
    epoch: int = 0
    commands: int = 0
    config_version: int = 0
    node: str = ""
    membership: str = ""
    membership_differs: str = ""


def sight_from_document(document: Mapping[str, Any]) -> Sight:
    """Return what is shown of what ``report_document`` made: each service's local state."""
    services = document.get("services", {})
    return Sight(
        bool(document.get("lease_lost", False)),
        {key: LocalState(row["state"]).value for key, row in services.items()},
        tuple(document.get("left", ())),
        generation=int(document.get("generation", 0)),
        epoch=int(document.get("epoch", 0)),
        commands=int(document.get("commands", 0)),
        config_version=int(document.get("config_version", 0)),
        node=str(document.get("node", "")),
        membership=str(document.get("membership", "")),
        membership_differs=str(document.get("membership_differs", "")),
    )


def report_document(report: Report) -> dict[str, Any]:
    """Return the report as plain data for its record."""
    return {
        **_row(report),
        "mode": report.mode.value,
        "phase": report.phase.value,
        "accepted": dict(report.accepted),
        "results": {
            uid: {**_row(result), "outcome": result.outcome.value}
            for uid, result in report.results.items()
        },
        "services": {
            service_id: {
                **_row(service),
                "definition": service_document(service.definition),
                "state": service.state.value,
            }
            for service_id, service in sorted(report.services.items())
        },
        "found": dict(report.found),
        "left": list(report.left),
        "coming": list(report.coming),
        "room": list(report.room) if report.room is not None else None,
    }


def _row(record: Report | CommandResult | LocalService) -> dict[str, Any]:
    """Return each field of *record* with its value as it is."""
    return {item.name: getattr(record, item.name) for item in fields(record)}


def report_from_document(document: Mapping[str, Any]) -> Report:
    """Read back what ``report_document`` made; unknown fields are passed over."""
    values = known(Report, document)
    values["mode"] = Mode(values.get("mode", Mode.ACTIVE.value))
    values["phase"] = Phase(values.get("phase", Phase.WAIT.value))
    values["left"] = tuple(values.get("left", ()))
    values["coming"] = tuple(values.get("coming", ()))
    room = values.get("room")
    values["room"] = (float(room[0]), float(room[1])) if room is not None else None
    values["results"] = {uid: _result(row) for uid, row in document.get("results", {}).items()}
    values["services"] = {
        service_id: _local_service(row) for service_id, row in document.get("services", {}).items()
    }
    return Report(**values)


def _result(row: Mapping[str, Any]) -> CommandResult:
    values = known(CommandResult, row)
    values["outcome"] = Outcome(values["outcome"])
    return CommandResult(**values)


def _local_service(row: Mapping[str, Any]) -> LocalService:
    values = known(LocalService, row)
    values["definition"] = service_from_options(values["definition"])
    values["state"] = LocalState(values["state"])
    return LocalService(**values)
