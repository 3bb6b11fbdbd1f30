# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report of a node's LRM, as in its record.

A restarted LRM continues from it, so a command is in it as accepted before it is carried out.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ...documents import (
    fields_of,
    mapping_of,
    number,
    one_of,
    optional,
    pair,
    row,
    values_by_name,
)
from .service import Service, service_document, service_from_options


class LocalState(str, enum.Enum):
    """The state of a service on its own node, as its LRM knows it."""

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
"""Why an LRM ends: it alone restarts, or its node reboots or powers off."""

WRITTEN_AGAIN = 60.0
"""Seconds after which an LRM writes an unchanged report again, which repairs a damaged copy."""

NOT_RUNNING = frozenset({LocalState.STOPPED, LocalState.FAILED})
"""States in which nothing of a service is left on its node.  In all others something may be."""

WORKED_ON = frozenset({LocalState.STARTING, LocalState.STOPPING, LocalState.MIGRATING})


class Mode(str, enum.Enum):
    """What an LRM does besides keeping its services running.

    active: nothing else; maintenance: its node is being emptied; restart: it, or its node, comes
    back soon and its services are left alone; shutdown: its node goes away; disarm: it manages no
    service and needs no watchdog.
    """

    ACTIVE = "active"
    MAINTENANCE = "maintenance"
    RESTART = "restart"
    SHUTDOWN = "shutdown"
    DISARM = "disarm"


class Phase(str, enum.Enum):
    """The state of an LRM: whether its services need the watchdog.

    wait: it runs nothing, and its watchdog may be disarmed; active: it runs services, or will;
    maintenance: its node is being emptied; lost: it has no host lease and may not act.
    """

    WAIT = "wait_for_agent_lock"
    ACTIVE = "active"
    MAINTENANCE = "maintenance"
    LOST = "lost_agent_lock"


class Outcome(str, enum.Enum):
    """How a command ended.

    ok: done; failed: not done, and nothing is left running; blocked: not done, and something may
    still run; interrupted: given up half-way with nothing left running, so it may be given again;
    refused: not begun, because it is out of date.
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
    """A service on this node; *definition* is the one it was started with.

    *restarts* counts its restarts here since it was last *settled*, which means it ran for a while.
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

    *mode* and *phase* are the LRM's own.  *boot* changes with each boot of the node.  *generation*,
    *epoch*, *commands* and *config_version* are the highest that this node has acted on; older ones
    are refused (``versions.py``).  *accepted* maps each command uid that was begun to its service.
    *found* answers the manager's probes by ``probe``: whether the service runs here.  *left* are
    the services that ran here when they became unmanaged; *coming* are those that may be
    live-migrated here.  Both need the watchdog.  *room* is the node's CPUs and MiB of memory, if
    known.  *goes_down* is ``reboot`` or ``poweroff`` while the operator shuts the node down, else
    empty.  *watchdog_timeout* is that of the node's watchdog in seconds, 0 without one, None from
    an older version.  *virtual* is the kind of virtual machine, such as ``kvm``, empty for a
    physical one, None if unknown.  *membership* is the digest of the LRM's membership, empty from
    an older version; *membership_differs* is how it differs from the recorded one.
    *allowed_agents* are the patterns of ``allowed_agents.py``; an older version allows all.
    *secrets* is what is wrong with the node's secret files, by ``SERVICE/RESOURCE/PARAMETER``.
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
    allowed_agents: tuple[str, ...] = ("*",)
    secrets: Mapping[str, str] = field(default_factory=dict)

    def with_membership(self, digest: str, differs: str) -> Report:
        """Return this report with the membership that the LRM runs with."""
        if (self.membership, self.membership_differs) == (digest, differs):
            return self
        return replace(self, membership=digest, membership_differs=differs)

    def with_service(self, service_id: str, service: LocalService) -> Report:
        """Return this report with one service changed."""
        return replace(self, services={**self.services, service_id: service})

    def running(self) -> list[str]:
        """Return the ids of the services that run here or may run."""
        return sorted(key for key, one in self.services.items() if one.state not in NOT_RUNNING)

    def to_be_stopped(self) -> list[str]:
        """Return the services that run here, except those that cannot be stopped."""
        return [one for one in self.running() if self.services[one].state is not LocalState.BLOCKED]

    def has_shut_down(self) -> bool:
        """Return whether this node shuts down, or reboots, in order and runs nothing any more."""
        return bool(self.goes_down) and not self.running() and not self.coming

    def binds_watchdog(self, written: Report | None) -> bool:
        """Return whether the watchdog must reset the node if its host lease is lost.

        That includes formerly managed services, because no one else can say that they ended, and
        services being live-migrated here.  For the former it ends with a disarm that is on storage,
        in the report *written* last: until then the node's host lease counts as a proof.
        """
        if self.running() or self.coming:
            return True
        reported = written is not None and written.mode is self.mode is Mode.DISARM
        return bool(self.left) and not reported

    def at_work(self) -> list[str]:
        """Return the ids of the services that are being started, stopped or moved here."""
        return sorted(key for key, one in self.services.items() if one.state in WORKED_ON)


def stays_up(report: Report) -> bool:
    """Return whether a node cannot shut down because a service there cannot be stopped."""
    return any(one.state is LocalState.BLOCKED for one in report.services.values())


@dataclass(frozen=True)
class Sight:
    """The part of an LRM's record that is shown; it is faster to read."""

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
    secrets: Mapping[str, str] = field(default_factory=dict)


def sight_from_document(document: object) -> Sight:
    """Return the shown part of a report document; raises ``DocumentError`` if it is wrong."""
    return Sight(**_SIGHT.read(document))


def _shown_state(value: object) -> str:
    return _local_state(row(value).get("state")).value


def report_document(report: Report) -> dict[str, Any]:
    """Return the report as plain data for its record."""
    return {
        **values_by_name(report),
        "mode": report.mode.value,
        "phase": report.phase.value,
        "accepted": dict(report.accepted),
        "results": {
            uid: {**values_by_name(result), "outcome": result.outcome.value}
            for uid, result in report.results.items()
        },
        "services": {
            service_id: {
                **values_by_name(service),
                "definition": service_document(service.definition),
                "state": service.state.value,
            }
            for service_id, service in sorted(report.services.items())
        },
        "found": dict(report.found),
        "left": list(report.left),
        "coming": list(report.coming),
        "room": list(report.room) if report.room is not None else None,
        "allowed_agents": list(report.allowed_agents),
        "secrets": dict(report.secrets),
    }


def report_from_document(document: object) -> Report:
    """Return the report of a document; unknown fields are ignored.

    Raises ``DocumentError`` or ``InputError`` if it is wrong.
    """
    return Report(**_REPORT.read(document))


def _result(value: object) -> CommandResult:
    return CommandResult(**_RESULT.read(value))


def _local_service(value: object) -> LocalService:
    return LocalService(**_SERVICE.read(value))


_local_state = one_of(LocalState)

_SIGHT = fields_of(Sight, services=mapping_of(_shown_state))
_RESULT = fields_of(CommandResult, outcome=one_of(Outcome))
_SERVICE = fields_of(LocalService, definition=service_from_options, state=_local_state)
_REPORT = fields_of(
    Report,
    mode=one_of(Mode),
    phase=one_of(Phase),
    results=mapping_of(_result),
    services=mapping_of(_local_service),
    room=optional(pair(number, number)),
)
