# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The observation that a manager's decision starts from.

All ages are seconds by the observer's monotonic clock since its last observed change.  Clocks of
two machines are never compared.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from .desired import DesiredState
from .report import Report


class Answer(enum.Enum):
    """Whether a node answers on the network; UNKNOWN if it was not asked for long enough."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


class LeaseSight(enum.Enum):
    """The state of a node's host lease as observed.

    RENEWED: it changes; STALE: it has not changed for a while; FAILED: not for the fail time, so
    its owner must no longer act; DEAD: not for host-dead time behind a watchdog, so its owner is
    dead; FREE: no one has it.
    """

    RENEWED = "renewed"
    STALE = "stale"
    FAILED = "failed"
    DEAD = "dead"
    FREE = "free"


class HostState(enum.Enum):
    """The state of a host lease as one read of it shows.

    FREE: never held, left cleanly, or freed after a proof; LIVE: renewed within the fail time, as
    far as the reader could see; FAIL: not renewed for the fail time, so the holder must stop its
    services; DEAD: not renewed for so long that the holder's watchdog must have reset it.
    """

    FREE = "free"
    LIVE = "live"
    FAIL = "fail"
    DEAD = "dead"


@dataclass(frozen=True)
class ObservedKeepalive:
    """A keepalive of a node that came *at* a monotonic second.

    *works* is False if it says that the node's LRM makes no turn, or ends.
    """

    at: float
    works: bool = True


@dataclass(frozen=True)
class ObservedNode:
    """One node as observed in this turn.

    *heartbeat_age* counts from the observer's start if no change was seen; *beats* says whether one
    was, because an old block is no sign of life.  *report* is the LRM's record, None if there is
    none or it cannot be trusted.  *problem* is what is wrong with block or report on storage.
    *report_lost*: its report is damaged or older than its heartbeat shows.  *lease_note* is
    why an expired host lease is no proof of death, empty if it is one or is not expired.
    *short_limit* is the age of its heartbeat at which it is a suspect as its keepalives have
    stopped too, 0 where only ``suspect_after`` counts.
    """

    heartbeat_age: float
    answer: Answer = Answer.UNKNOWN
    lease: LeaseSight = LeaseSight.RENEWED
    report: Report | None = None
    problem: str = ""
    beats: bool = True
    report_lost: bool = False
    lease_note: str = ""
    short_limit: float = 0.0

    def is_fresh(self, timing: Timing) -> bool:
        """Return whether the node's silence is too short for a suspicion."""
        return self.heartbeat_age < (self.short_limit or timing.suspect_after)


@dataclass(frozen=True)
class HostView:
    """What an observer sees of one host id.

    *name* is the node name in its record or block.  *age* is seconds since its heartbeat was seen
    to change, or since the observer began; *beats* says whether it changed.  *digest* is the
    membership that its LRM reports.
    """

    name: str = ""
    age: float = 0.0
    beats: bool = False
    lease: LeaseSight = LeaseSight.RENEWED
    digest: str = ""


@dataclass(frozen=True)
class FenceReport:
    """How a fence ended; *confirmed* only if it proves the node dead.

    *sent* and *ended* are seconds since 1970.  *quiet* says that the node wrote nothing after the
    confirmation and does not answer.  *verified* is False if the operator's statement about the
    watchdog replaces a device.
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
    """How a power-on ended."""

    node: str
    ok: bool
    text: str


@dataclass(frozen=True)
class Figures:
    """What nodes have and services use: CPUs, and MiB of memory."""

    nodes: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    services: Mapping[str, tuple[float, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class ObservedState:
    """Everything that the manager observed in this turn.

    *now* is monotonic seconds, *wall* seconds since 1970.  *storage_trouble* is why the manager
    cannot trust its reads of the storage, or empty.  *held* is why the whiteboard pauses the
    cluster, or empty; *board_readable* is False if its global block is damaged, and *board_binds*
    if the block only shows what holds.  *wall_even* says that the wall clock has not jumped for a
    while.  *joined_for* is for how many seconds the manager has worked under its host lease.
    """

    now: float
    wall: float
    desired: DesiredState
    config_slot: int = 0
    nodes: Mapping[str, ObservedNode] = field(default_factory=dict)
    storage_trouble: str = ""
    held: str = ""
    fencing: frozenset[str] = frozenset()
    fences: tuple[FenceReport, ...] = ()
    powers: tuple[PowerReport, ...] = ()
    board_readable: bool = True
    board_binds: bool = True
    wall_even: bool = True
    joined_for: float = math.inf

    def nodes_that_run(self, probe: str) -> list[str]:
        """Return the nodes that answered that a probed service runs there."""
        return [
            name
            for name, node in self.nodes.items()
            if node.report is not None and node.report.found.get(probe)
        ]


@dataclass(frozen=True)
class Timing:
    """The cluster's times in seconds and its limits, the same on all nodes.

    suspect_after: a node with an older heartbeat is a suspect.
    suspect_soonest: the least silence of heartbeats and keepalives that makes a node a suspect.
    heartbeat, keepalive, look: between two heartbeats of a node, two keepalives of a node (0 for
    none), and two looks of a CRM at all nodes.
    daemon_grace: how long a live node may be without its LRM.
    candidate_delay: how much later each further node acts when the manager died.
    fence_retry: the wait after a failed fence, doubled each time up to 60 s.
    fence_window, fence_limit: a node fenced this often for one cause within the window stays off.
    concurrent_fences: the largest number of fences at a time.
    standbys: how many nodes beside the manager observe all nodes.
    """

    suspect_after: float = 2.0
    suspect_soonest: float = 0.8
    heartbeat: float = 0.5
    keepalive: float = 0.0
    look: float = 0.5
    daemon_grace: float = 30.0
    candidate_delay: float = 2.0
    fence_retry: float = 5.0
    fence_window: float = 900.0
    fence_limit: int = 3
    concurrent_fences: int = 2
    standbys: int = 2
    power_on_after_fence: bool = True
