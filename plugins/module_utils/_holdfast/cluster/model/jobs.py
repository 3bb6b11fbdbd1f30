# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The jobs that an LRM gives to its workers, and how they end: plain data."""

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
    """What a probe or a monitor found: all resources, none, or neither of the two."""

    RUNNING = "running"
    STOPPED = "stopped"
    PARTLY = "partly"


class Purpose(enum.Enum):
    """What a stop is for, and so what its end means.

    COMMAND: the manager asked; CLEAN_UP: the service failed and is to be clean;
    AWAY: this node may not run it; INTERRUPTED: it was begun by a daemon that died.
    """

    COMMAND = "command"
    CLEAN_UP = "clean_up"
    AWAY = "away"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class Job:
    """One piece of work; *uid* is the command that it carries out, if any.

    *other* is the node that a service migrates to, or for a start the one that it
    migrates from.  *timeout* is that of a stop which was asked for with one, in seconds.
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

    *sight* is what a probe or monitor found, *outcome* how a start, stop or
    restart ended.
    """

    job: Job
    outcome: Outcome = Outcome.OK
    sight: Sight = Sight.STOPPED
    text: str = ""
    at: float = 0.0
    took: float = 0.0
