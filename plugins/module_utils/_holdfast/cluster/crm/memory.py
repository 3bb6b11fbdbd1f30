# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What one CRM keeps between two turns, shared by the manager's and the candidate's part."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from ...errors import LeaseError, StorageError
from ..model.desired import DesiredState
from ..model.effects import Clocks, Cycle, Log, ReadClocks, perform, shallow_copy
from ..model.lease_freeing import Freeing
from ..model.observed import FenceReport, PowerReport, Timing
from ..model.state import ClusterState
from ..model.versions import observed_reports
from . import eligibility
from .effects import (
    FenceEnd,
    Observation,
    ReadOwnFreeing,
    ReadRecords,
    ReleaseManagerLease,
    WriteFreeing,
)
from .freed_leases import FreedLeases
from .repair_plan import Records, compare_stored
from .round import Change
from .takeover import repaired

LATE = 1.5
"""Seconds: a turn that took longer decides nothing, because what it read may be out of date."""


EVEN_FOR = 60.0
"""Seconds without a jump before an expiry is trusted."""

JUMP = 1.0
"""Seconds: a larger change of the offset between the clocks is a jump."""


@dataclass(frozen=True)
class CrmSettings:
    """The configuration of a CRM.

    *node* is its own name, *host_ids* those of all members.  After *lease_silence* seconds without
    a renewal, a node that is confirmed off has no renewal under way.  *even_for* is how many
    seconds the wall clock must not have jumped.
    """

    node: str
    host_ids: Mapping[str, int]
    timing: Timing
    lease_silence: float
    even_for: float = EVEN_FOR


@dataclass(frozen=True)
class WallClock:
    """The offset of wall minus monotonic time in seconds, even since *even_since* (monotonic).

    The expiry of a maintenance is in wall clock time.  A forward jump would end it early, so a
    clock that jumped is not trusted for a while.  *jumped_by* is not 0 after a jump.
    """

    even_since: float
    offset: float
    jumped_by: float = 0.0

    @classmethod
    def first_look(cls, clocks: Clocks) -> WallClock:
        """Return the wall clock of a starting process, which is not trusted at first."""
        return cls(clocks.mono, clocks.wall - clocks.mono)

    def look_again(self, clocks: Clocks) -> WallClock:
        """Return the wall clock after another reading."""
        offset = clocks.wall - clocks.mono
        jumped_by = offset - self.offset
        if abs(jumped_by) > JUMP:
            return WallClock(clocks.mono, offset, jumped_by)
        return WallClock(self.even_since, offset)


@dataclass(frozen=True)
class Reserve:
    """What a CRM knows of the manager while it leaves the observation of the nodes to others.

    *before* is how many reserves come before this one, as it *ranked* then.  *beat* is the newest
    heartbeat of the manager of *epoch*: the number of its node's report and the timestamp of its
    block, *observed* then.  *watched* is when this CRM last looked at the manager.  All are in
    monotonic seconds.  It *observes* all nodes once the manager is silent for too long.
    """

    epoch: int
    before: int
    ranked: float
    beat: tuple[int, float] | None = None
    observed: float | None = None
    watched: float = -math.inf
    observes: bool = False


@dataclass
class Crm:
    """The CRM of one node.

    *state* is the manager's state, None while this node is not manager.  *written* is the last
    written state, None if unknown, made from the configuration *written_from*.  *pause_reason* is
    why this CRM does not manage although it holds the manager lease or could.  *changes* are the
    steps of the last decision in order.  *begun* is when the turn began, in monotonic seconds.
    *joined* is when this CRM began to work under the node's host lease, in monotonic seconds.
    *reserve* is set while this node is neither manager nor standby.  *late_turns* counts the turns
    that were too late to decide anything.
    """

    settings: CrmSettings
    freed_leases: FreedLeases
    wall_clock: WallClock | None = None
    state: ClusterState | None = None
    written: ClusterState | None = None
    written_from: DesiredState | None = None
    pause_reason: str = ""
    changes: tuple[Change, ...] = ()
    fences: list[FenceReport] = field(default_factory=list)
    powers: list[PowerReport] = field(default_factory=list)
    held_back: list[FenceEnd] = field(default_factory=list)
    fencing: frozenset[str] = frozenset()
    fence_not_before: float = 0.0
    fenced_epoch: int = 0
    trouble: str = ""
    begun: float = 0.0
    host_lease_generation: int = 0
    adopted: bool = False
    joined: float = -math.inf
    next_confirmation: float = 0.0
    next_own_look: float = 0.0
    membership_differs_since: float | None = None
    late_turns: int = 0
    reserve: Reserve | None = None

    @property
    def joined_for(self) -> float:
        """Seconds from when this CRM began to work under its host lease to this turn."""
        return self.begun - self.joined

    @property
    def is_reserve(self) -> bool:
        """Whether this CRM leaves the observation of the nodes to others."""
        return self.reserve is not None and not self.reserve.observes

    def copy(self) -> Crm:
        """Return a copy that can change independently."""
        after = shallow_copy(self)
        after.freed_leases = self.freed_leases.copy()
        after.fences, after.powers = list(self.fences), list(self.powers)
        after.held_back = list(self.held_back)
        return after

    def is_fencing(self, node: str) -> bool:
        """Return whether a fence of *node* is under way or its proof is held back."""
        return node in self.fencing or any(end.report.node == node for end in self.held_back)

    def is_busy(self) -> bool:
        """Return whether fences, power-ons or freed host leases of this node are not over."""
        return bool(
            self.fences
            or self.powers
            or self.held_back
            or self.fencing
            or self.freed_leases.is_busy()
        )

    def is_late(self) -> Cycle[bool]:
        """Return whether this turn took so long that its observation may be out of date."""
        clocks = yield from perform(ReadClocks())
        if clocks.mono - self.begun <= LATE:
            return False
        self.late_turns += 1
        self.trouble = "this node was held up in the middle of a round"
        text = f"{self.trouble}; the round is thrown away"
        yield from perform(Log(text, repeated=True))
        return True

    def look_at_wall_clock(self) -> Cycle[Clocks]:
        """Read the clocks and record whether the wall clock jumped."""
        clocks = yield from perform(ReadClocks())
        self.wall_clock = (self.wall_clock or WallClock.first_look(clocks)).look_again(clocks)
        if self.wall_clock.jumped_by:
            seconds = self.wall_clock.jumped_by
            text = f"the wall clock jumped by {seconds:.0f} s; no expiry is believed"
            yield from perform(Log(text))
        return clocks

    def wall_is_even(self, clocks: Clocks) -> bool:
        """Return whether the wall clock has not jumped for long enough."""
        clock = self.wall_clock
        return clock is not None and clocks.mono - clock.even_since >= self.settings.even_for

    def records(self, observation: Observation) -> Cycle[Records]:
        """Read the newest records and compare them with what each node has acted on."""
        stored = yield from perform(ReadRecords())
        return compare_stored(stored, observed_reports(observation.nodes), self.settings.node)

    def stop_managing(self) -> None:
        """Forget the manager's state.  It is read again before the next decision."""
        self.state = self.written = None

    def drop_ends(self) -> None:
        """Forget the fences that ended under a state that is not continued.

        Their host leases are not freed, so that their nodes need not wait to join.
        """
        for fence in self.fences:
            self.freed_leases.forget(fence.node)
        self.fences.clear()
        self.powers.clear()

    def pause(self, why: str) -> Cycle[None]:
        """Keep the manager lease and do nothing, because a newer record existed.

        The lease is not released: no other node has newer records.
        """
        if why != self.pause_reason:
            yield from perform(Log(f"not managing: {why}"))
        self.pause_reason = why
        self.stop_managing()
        self.drop_ends()

    def begin_generation(self, records: Records, epoch: int) -> Cycle[None]:
        """Begin the generation of a repair: manage from a state in which all nodes are unknown."""
        clocks = yield from perform(ReadClocks())
        last, node = records.state or ClusterState(), self.settings.node
        state = repaired(last, records.desired, records.floors, epoch, node, clocks.wall)
        self.state = yield from eligibility.with_own_membership(node, state, clocks.wall)
        self.written = None
        self.drop_ends()
        self.pause_reason = ""
        text = f"manager with epoch {epoch}; the records were repaired"
        yield from perform(Log(text, epoch=epoch))

    def obstacle(self, state: ClusterState, observation: Observation) -> Cycle[str]:
        """Return why this node's membership forbids it to be manager after *state*."""
        settings = self.settings
        why = yield from eligibility.obstacle(
            settings.node, settings.host_ids, settings.timing.suspect_after, state, observation
        )
        if not why:
            self.membership_differs_since = None
        return why

    def record_freeing(self, record: Freeing) -> Cycle[None]:
        """Write which host leases this node is about to free, if that changed."""
        if record != (yield from perform(ReadOwnFreeing())):
            yield from perform(WriteFreeing(record))
        self.freed_leases.recorded = record.leases

    def give_up_lease(self) -> Cycle[None]:
        """Release the manager lease or cancel the attempt to acquire it."""
        try:
            yield from perform(ReleaseManagerLease())
        except (StorageError, LeaseError) as error:
            text = f"the manager lease is not observed to be released: {error}"
            yield from perform(Log(text, repeated=True))


def start_crm(settings: CrmSettings) -> Crm:
    """Return the CRM of a starting process."""
    return Crm(settings, FreedLeases(settings.lease_silence))
