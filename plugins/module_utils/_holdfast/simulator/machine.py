# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""One node as it really is: its power, its clock, its ways to the others, what runs on it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from ..cluster.model.membership import Membership
from ..cluster.model.report import Report
from .settings import Settings
from .timeline import Cadence

EPOCH = 1_700_000_000.0
"""What a right wall clock says at the beginning."""


class Clock:
    """A machine's clocks: a monotonic one that may run fast or slow, a wall clock that jumps."""

    __slots__ = ("_lost", "_pauses", "_stopped", "offset", "rate")

    def __init__(self, rate: float = 1.0, offset: float = 0.0) -> None:
        """Set how fast they run and by how much the wall clock is wrong."""
        self.rate, self.offset = rate, offset
        self._stopped, self._lost = math.inf, 0.0
        self._pauses: list[tuple[float, float]] = []

    @property
    def stopped(self) -> bool:
        """Whether both stand still."""
        return self._stopped < math.inf

    def stop(self, now: float) -> None:
        """Let both stand still, as those of a virtual machine that is paused."""
        self._stopped = min(self._stopped, now)

    def go_on(self, now: float) -> None:
        """Let both go on from where they stood."""
        if self.stopped:
            seconds = now - self._stopped
            self._pauses.append((self._stopped, seconds))
            self._lost += seconds
            self._stopped = math.inf

    def mono(self, now: float) -> float:
        """Return the monotonic seconds at the true time *now*, not before the last pause."""
        return (min(now, self._stopped) - self._lost) * self.rate

    def wall(self, now: float) -> float:
        """Return what the wall clock says, in seconds since 1970."""
        return self.wall_at(self.mono(now))

    def wall_at(self, mono: float) -> float:
        """Return the same at that monotonic second."""
        return EPOCH + self.offset + mono

    def elapsed(self, since: float, now: float) -> float:
        """Return the monotonic seconds between two true times."""
        if not self._pauses and not self.stopped:
            return (now - since) * self.rate
        lost = sum(
            max(0.0, min(begun + seconds, now) - max(begun, since))
            for begun, seconds in self._pauses
        )
        if now > self._stopped:
            lost += now - max(self._stopped, since)
        return (now - since - lost) * self.rate


NOT_SYNCED = 5.0
"""Seconds for which a power cut takes back what was written to the local disk."""


class KeptReport:
    """The copy of a node's last report on its own disk: see ``node/daemon/record_guard.py``."""

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        """Begin with none."""
        self._kept: list[tuple[float, int, Report]] = []

    def read(self) -> tuple[int, Report | None]:
        """Return the number of the report and itself; 0 and None if there is none."""
        if not self._kept:
            return 0, None
        _at, number, report = self._kept[-1]
        return number, report

    def write(self, now: float, number: int, report: Report) -> None:
        """Keep *report*, and of those before it what a power cut would bring back."""
        kept = self._kept
        while len(kept) > 1 and kept[1][0] <= now - NOT_SYNCED:
            del kept[0]
        kept.append((now, number, report))

    def lose(self, now: float) -> None:
        """Lose what was written in the last seconds, as the power is cut."""
        self._kept = [one for one in self._kept if one[0] <= now - NOT_SYNCED]


@dataclass
class Device:
    """The fence device of one node, and how well it does what it is asked.

    *mode*: ``works``; ``fails`` (does nothing and says so); ``hides`` (does it and reports
    a failure); ``hangs`` (no answer until its timeout); ``lies`` (does nothing and says
    off); ``wrong`` (switches *other* off and says off); ``back`` (does it, and the machine
    comes back by itself).  *with_node*: it has no power when its node has none.
    *stays_off*: its node never comes up again, whatever is asked of it.
    """

    mode: str = "works"
    seconds: float = 0.0
    other: str = ""
    with_node: bool = False
    stays_off: bool = False


NO_MEMBERSHIP = Membership(0, "")


@dataclass(eq=False)
class Machine:
    """One node as it really is; *active* maps services to ``partly`` or ``running``.

    *cut* is without power until that is given back.  Its host lease: *left* says that it was
    given back, *freed* that it was taken away by proof, *given_up* that it was lost and that
    the node stopped its services and disarmed its watchdog.  *lost_at* is when it was renewed
    again although it had failed: sanlock has lost it, infinity if it has not.  *beats_in* says
    that an LRM is there to write heartbeats, *sends_in* that one is there whose sender sends
    keepalives.  A datagram to or from it is lost with the chance *loss*, and takes up to *jitter*
    seconds.  *cut_from* are the nodes that it does not hear.  *generation* is that of its host
    lease, *joined_in* the boot in which it got that; *frees* says that a write of its which frees
    another's hangs.  *virtual* is the kind of virtual machine that it is, empty for a
    physical one: only the former are paused.
    *kept* is what its local disk has, also after its next start.  *membership* is the one that it
    is configured with, *room* what it has of CPUs and MiB of memory, and *joins_at* when a join
    that is under way can be done.
    """

    name: str
    host_id: int
    settings: Settings
    membership: Membership = NO_MEMBERSHIP
    clock: Clock = field(default_factory=Clock)
    device: Device = field(default_factory=Device)
    on: bool = True
    cut: bool = False
    frozen: bool = False
    reads: bool = True
    writes: bool = True
    network: bool = True
    slow: float = 0.0
    watchdog_late: float = 0.0
    boot: int = 1
    generation: int = 1
    joined_in: int = 1
    frees: bool = False
    powered: int = 0
    boot_name: str = ""
    virtual: str = ""
    room: tuple[float, float] | None = None
    freed: bool = False
    left: bool = False
    joins_at: float = math.inf
    given_up: bool = False
    beats_in: bool = False
    sends_in: bool = False
    loss: float = 0.0
    jitter: float = 0.0
    lies_until: float = 0.0
    answers_until: float = 0.0
    writes_since: float = 0.0
    cut_from: set[str] = field(default_factory=set)
    active: dict[str, str] = field(default_factory=dict)
    starting: set[str] = field(default_factory=set)
    lost_at: float = math.inf
    renewals: Cadence = field(init=False)
    beats: Cadence = field(init=False)
    sends: Cadence = field(init=False)
    kept: KeptReport = field(default_factory=KeptReport)

    def __post_init__(self) -> None:
        """Begin at the pace of the cluster; its daemons set their own when they begin."""
        self.renewals = Cadence(0.0, self.settings.renewal)
        self.beats = Cadence(0.0, self.settings.timing.heartbeat)
        self.sends = Cadence(0.0, self.settings.timing.heartbeat)

    @property
    def boot_id(self) -> str:
        """What its LRM reports as this start of it; *boot_name* if that was given from outside."""
        return self.boot_name or f"boot{self.boot}"

    @property
    def awake(self) -> bool:
        """Whether its processes make progress."""
        return self.on and not self.frozen

    @property
    def storage(self) -> bool:
        """Whether it can read and write."""
        return self.reads and self.writes

    def hears(self, other: Machine) -> bool:
        """Return whether a question to *other* and the answer to it arrive."""
        return other.awake and self.is_linked(other)

    def is_linked(self, other: Machine) -> bool:
        """Return whether the network carries datagrams to *other* and back."""
        return (
            self.network
            and other.network
            and other.name not in self.cut_from
            and self.name not in other.cut_from
        )

    def lease_age(self, now: float) -> float:
        """Return the seconds since its host lease was really renewed."""
        return now - self.renewals.last(now)

    def own_lease_age(self, now: float) -> float:
        """Return the same by its own clock, which stands still while it is paused."""
        return self.clock.elapsed(self.renewals.last(now), now)

    def refresh(self, now: float) -> None:
        """Let what goes on at a steady pace go on or stop, as things stand now."""
        storage = self.awake and self.storage
        renews = storage and not (self.freed or self.left or self.given_up)
        resumes = renews and not self.renewals.goes and self.settings.watchdogs
        if resumes and self.settings.lease_fails <= self.own_lease_age(now) < math.inf:
            self.lost_at = min(self.lost_at, now)
        self.renewals.go(now, renews)
        self.beats.go(now, storage and self.beats_in)
        keepalives = self.settings.timing.keepalive > 0.0
        self.sends.go(now, keepalives and self.awake and self.sends_in)
