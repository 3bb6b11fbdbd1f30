# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a manager's step is given: everything that was observed this round.

All ages are seconds by the observer's own monotonic clock since it last saw a
change; nothing in here compares two machines' clocks.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from .desired import Wanted
from .report import Report


class Answer(enum.Enum):
    """Whether a node answers on the network: not asked long enough is UNKNOWN."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


class LeaseSight(enum.Enum):
    """What the observer sees of a node's host lease.

    RENEWED: it changes; STALE: it has not changed for a while; FAILED: not for
    the time after which its owner may no longer act; DEAD: host-dead has passed
    behind a watchdog, so its owner is dead; FREE: nobody has it.
    """

    RENEWED = "renewed"
    STALE = "stale"
    FAILED = "failed"
    DEAD = "dead"
    FREE = "free"


class HostState(enum.Enum):
    """What a reader may conclude from a host lease."""

    FREE = "free"
    """Never held, left cleanly, or set free after a proof."""

    LIVE = "live"
    """Renewed within the fail time, as far as the reader could see."""

    FAIL = "fail"
    """Not renewed for the fail time: the holder has to stop what it runs."""

    DEAD = "dead"
    """Not renewed for so long that the holder's watchdog must have reset it."""


@dataclass(frozen=True)
class NodeSeen:
    """One node this round.

    *heartbeat_age* counts from the observer's own start where no change was seen
    yet; *beats* says whether one was, as an old block alone is no sign of life;
    *report* is the node's LRM record, None if there is none that can be trusted;
    *problem* says what is wrong with either on storage; *report_lost* that it wrote a report
    which is damaged on storage, or older there than its heartbeat says.  *lease_note* says why a
    host lease that ran out behind a watchdog is no proof of this node's death, empty if it is or
    did not run out.
    """

    heartbeat_age: float
    answer: Answer = Answer.UNKNOWN
    lease: LeaseSight = LeaseSight.RENEWED
    report: Report | None = None
    problem: str = ""
    beats: bool = True
    report_lost: bool = False
    lease_note: str = ""


@dataclass(frozen=True)
class FenceReport:
    """How a fence ended: *confirmed* only if it is proof that the node is dead.

    *sent* and *ended* are seconds since 1970; *quiet* says that the node wrote
    nothing after it was confirmed, and does not answer on the network.  *verified* is
    False where no device said so, and the operator's word for the node's watchdog counts.
    """

    node: str
    confirmed: bool
    text: str
    sent: float
    ended: float
    quiet: bool = True
    verified: bool = True


@dataclass(frozen=True)
class PowerReport:
    """How switching a node on again ended."""

    node: str
    ok: bool
    text: str


@dataclass(frozen=True)
class Figures:
    """What nodes report to have and services declare to take of it: CPUs, and MiB of memory."""

    nodes: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    services: Mapping[str, tuple[float, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Seen:
    """Everything the manager saw this round.

    *now* is monotonic seconds, *wall* seconds since 1970; *storage_trouble* is
    empty, or says why the manager's own way to the storage is not to be
    trusted; *held* says what the whiteboard's global block holds the cluster for, and
    is empty if that says no maintenance; *board_readable* is False where it is damaged.
    *wall_even* says that the wall clock did not jump for a while.
    """

    now: float
    wall: float
    wanted: Wanted
    config_slot: int = 0
    nodes: Mapping[str, NodeSeen] = field(default_factory=dict)
    storage_trouble: str = ""
    held: str = ""
    fencing: frozenset[str] = frozenset()
    fences: tuple[FenceReport, ...] = ()
    powers: tuple[PowerReport, ...] = ()
    board_readable: bool = True
    wall_even: bool = True


@dataclass(frozen=True)
class Timing:
    """The cluster's times in seconds, and its limits; the same on all nodes.

    suspect_after: a heartbeat older than this makes its node a suspect.
    daemon_grace: how long a node that lives may be without its LRM.
    candidate_delay: how much later each further node acts when the manager died.
    fence_retry: wait after a failed fence, doubled each time up to 60 s.
    fence_window, fence_limit: a node fenced this often within the window stays off.
    concurrent_fences: at most so many fences at a time.
    """

    suspect_after: float = 3.0
    daemon_grace: float = 30.0
    candidate_delay: float = 2.0
    fence_retry: float = 5.0
    fence_window: float = 900.0
    fence_limit: int = 3
    concurrent_fences: int = 2
    power_on_after_fence: bool = True
