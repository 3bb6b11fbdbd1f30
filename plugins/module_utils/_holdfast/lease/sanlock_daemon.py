# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The contract with this node's sanlock daemon, by either of two clients.

They are its Python binding (``sanlock_binding``), where this Python has one, and the ``sanlock``
command (``sanlock_command``).  Both answer with the same codes and keep a deadline in each call.
"""

from __future__ import annotations

import enum
import os
from dataclasses import dataclass, replace
from typing import Protocol

from ..cluster.model.observed import HostState
from ..errors import LeaseError
from ..storage.device import Place, locate

ANSWER = 5.0
"""Seconds for a question that the daemon answers from memory; it takes milliseconds."""

GLANCE = 1.0
"""Seconds for a question in the middle of a turn that can go without an answer."""

NOT_FOUND = -2
AGAIN = -11
BUSY = -16
EXISTS = -17
INVALID = -22
NO_SPACE = -28
IO_TIMEOUT = -202
LEADER_CODES = range(-229, -219)
HELD_BY_LIVE_HOST = -243
HELD_BY_OTHERS = frozenset(
    # A try that ends here, in one way or another; held here; lost to another's ballot; the owner
    # renews; the owner did not lose it yet; another was faster (sanlock_rv.h; the first was seen
    # on a loaded machine with sanlock 3.8.5).
    {AGAIN, BUSY, EXISTS, -212, -213, HELD_BY_LIVE_HOST, -244, -245}
)
"""Answers to an acquire that only say "not now"."""

_MEANINGS = {
    NOT_FOUND: "there is no such file or lockspace",
    -5: "the storage gave an I/O error",
    -13: "the daemon may not open the file: its user must be able to read and write it",
    BUSY: "it is busy",
    EXISTS: "it exists already",
    -111: "the daemon does not answer: start it (systemctl start sanlock)",
    INVALID: "this does not agree with what it has under that name",
    NO_SPACE: "this node has not joined the lockspace, or has lost it",
    IO_TIMEOUT: "the storage did not answer in time",
    -223: "the storage holds no such lease",
    -226: "the storage holds a lease of another lockspace",
    -227: "the storage holds another lease there",
    -229: "the lease on the storage is damaged",
    -260: "the host lease is another's by now",
    -261: "the host lease was changed by another",
    -262: "another host holds the host id",
}
"""What sanlock_rv.h and errno.h say, as far as an operator meets it."""


@dataclass(frozen=True)
class Lockspace:
    """One node's place in a lockspace, in the form of sanlock; ``offset`` is in bytes."""

    name: str
    host_id: int
    path: str
    offset: int = 0


@dataclass(frozen=True)
class Joined:
    """A lockspace that the daemon has; ``changing`` while it joins or leaves it."""

    lockspace: Lockspace
    changing: bool


@dataclass(frozen=True)
class Resource:
    """A lease in the form of sanlock; ``offset`` is in bytes."""

    lockspace: str
    name: str
    path: str
    offset: int


@dataclass(frozen=True)
class DaemonStatus:
    """What the running daemon says of itself.

    ``watchdog_timeout`` is in seconds, None without a watchdog: then the end of a lease's time
    proves nothing.
    """

    host_name: str
    version: tuple[int, ...]
    watchdog_timeout: int | None


@dataclass(frozen=True)
class HostStatus:
    """The daemon's view of a host; ``state`` is None while it does not know yet."""

    generation: int
    timestamp: int
    state: HostState | None


class Progress(enum.Enum):
    """How far a try for a lease has come."""

    TRYING = "trying"
    HELD = "held"
    ENDED = "ended"


class Holding(Protocol):
    """One try for a lease, and then the lease itself.

    It has its own process or thread, as sanlock blocks for the whole dead time of a holder that
    stopped renewing.
    """

    @property
    def code(self) -> int:
        """sanlock's answer after ``ENDED``; 0 for a lease that was held and is gone again."""

    def wait(self, seconds: float) -> Progress:
        """Return the progress, after at most so many seconds."""

    def end(self) -> None:
        """Release the lease, or end the try: if that succeeds later, it is released at once."""


class SanlockDaemon(Protocol):
    """The sanlock daemon of this node.

    Each method raises ``LeaseError`` when the daemon does not run, and ``NoAnswerError``
    when it does not answer in time.
    """

    def status(self, deadline: float = ANSWER) -> DaemonStatus:
        """Return what the daemon says of itself."""

    def lockspaces(self) -> list[Joined]:
        """Return the lockspaces that the daemon has joined."""

    def add_lockspace(self, lockspace: Lockspace, io_timeout: int, deadline: float) -> None:
        """Join; ``LeaseError`` with the reason if that fails or takes too long."""

    def remove_lockspace(self, lockspace: Lockspace, deadline: float) -> None:
        """Leave; sanlock ends processes that still hold leases in the lockspace."""

    def set_used(self, lockspace: str, used: bool) -> None:
        """Say whether the machine must be reset when the lockspace is lost."""

    def has_lost(self, lockspace: str) -> bool:
        """Return whether the daemon has given the lockspace up, or does not have it.

        While it counts as used, sanlock still renews the host lease of a lockspace that it has
        given up: the storage does not show it.
        """

    def held_for(self, lockspace: str) -> float:
        """Return for how many seconds it has had its host lease, 0.0 where it does not say."""

    def hosts(self, lockspace: str) -> dict[int, HostStatus]:
        """Return the daemon's view of each host in ``GLANCE`` s, {} before its first renewal."""

    def acquire(self, resource: Resource) -> Holding:
        """Begin to try for a lease."""


def daemon_place(path: str) -> Place:
    """Return where sanlock finds the storage file *path*.

    A device keeps the name that it was given: what that leads to changes with each boot.
    """
    place = locate(path)
    return place if place.size is not None else replace(place, path=os.path.realpath(path))


def explained(code: int) -> str:
    """Return what an answer of sanlock means, with its number."""
    meaning = _MEANINGS.get(code, "see sanlock_rv.h or errno.h for what this means")
    return f"{meaning} ({code})"


def not_running(run_directory: str) -> LeaseError:
    """Return the error for a daemon that does not answer."""
    return LeaseError(
        f"the sanlock daemon does not answer in {run_directory or '/run/sanlock'}; start it"
        " (systemctl start sanlock), and run this as root or in the group sanlock."
    )


def refused(what: str, code: int) -> LeaseError:
    """Return the error for something that sanlock was asked to do and did not."""
    return LeaseError(f"sanlock did not {what}: {explained(code)}.")
