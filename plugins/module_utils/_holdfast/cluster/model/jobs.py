# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The jobs that an LRM gives to its workers, and how they end."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from .report import Outcome
from .service import Service


class JobKind(enum.Enum):
    """What a worker does with all resources of one service."""

    PROBE = "probe"
    START = "start"
    STOP = "stop"
    MONITOR = "monitor"
    RESTART = "restart"
    MIGRATE = "migrate"


class Sight(enum.Enum):
    """What a probe or a monitor found: all resources, none, or some."""

    RUNNING = "running"
    STOPPED = "stopped"
    PARTLY = "partly"


class Purpose(enum.Enum):
    """The purpose of a stop, which decides what its end means.

    COMMAND: the manager ordered it; CLEAN_UP: the service failed and must leave nothing behind;
    AWAY: this node must not run it; INTERRUPTED: its start was begun by a daemon that died.
    """

    COMMAND = "command"
    CLEAN_UP = "clean_up"
    AWAY = "away"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class Job:
    """One job; *uid* is the command that it carries out, if any.

    *other* is the target of a live migration, or for a start its source.  *timeout* is that of a
    requested stop, in seconds.
    """

    kind: JobKind
    service: Service
    uid: str = ""
    purpose: Purpose = Purpose.COMMAND
    reason: str = ""
    other: str = ""
    timeout: float | None = None


@dataclass(frozen=True)
class JobEnd:
    """How a job ended; *at* is seconds since 1970, *took* seconds.

    *sight* is the result of a probe or monitor, *outcome* that of other jobs.
    """

    job: Job
    outcome: Outcome = Outcome.OK
    sight: Sight = Sight.STOPPED
    text: str = ""
    at: float = 0.0
    took: float = 0.0
