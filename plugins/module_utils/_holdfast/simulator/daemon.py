# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A simulated process that plays turns of a shipped cycle: the driver of the simulator.

It performs in virtual time the effects that the cycle yields.  ``tests/simulation`` has a subclass
that delays or kills the process at any of them.

A turn that would change nothing is skipped until one of its inputs changes, or until a time comes
on which it depends.  To find that time the daemon plays the turn on a copy of its state, with
numbers that move with time (``moving.py``), until the turn would act.  With ``every_round`` each
turn is played, with the same result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ..cluster.model.desired import DesiredState
from ..cluster.model.effects import Clocks, Cycle, Effect, ForgetRepeated, Log, ReadClocks
from ..cluster.model.state import ClusterState
from ..errors import FormatError, HoldfastError, LeaseError, StorageError
from ..lease.sanlock_membership import SETTLED
from .machine import Machine
from .moving import Horizon, Moving
from .settings import ROUND
from .timeline import Cadence

if TYPE_CHECKING:
    from .fleet import Fleet

SLACK = 1e-3
"""A time that was computed to be near may be so much earlier: rounding."""

STARTED_AGAIN = 3.0
"""A machine starts a daemon that died again within so many seconds."""


class Acts(Exception):
    """A turn that is foreseen would act."""


class Daemon:
    """An LRM or a CRM."""

    kind = ""
    acts: frozenset[type]
    """Effects by which a turn changes something that others see."""

    def __init__(self, fleet: Fleet, machine: Machine, pace: float = ROUND) -> None:
        """Play turns from now on, *pace* seconds apart."""
        self.fleet, self.world, self.machine = fleet, fleet.world, machine
        self.storage = self.world.storage
        self.clock = machine.clock
        self.alive = True
        self.horizon: Horizon | None = None
        """Set while a turn is foreseen."""
        self.begun = self.world.now
        """The true time at which the last turn began."""
        self.read_at = self.world.now
        """When that turn last did what may take long; a delay sets it, see ``tests/simulation``."""
        chance = self.world.random
        period = pace * chance.uniform(1.0, 1.04) / self.clock.rate
        self.rounds = Cadence(self.world.now + chance.uniform(0.01, 0.2), period)
        self.rounds.go(self.world.now)
        self.turns = Cadence(self.rounds.origin, period)
        """The rounds in which this process made progress."""
        self.turns.go(self.world.now)
        self.performs: Mapping[type, Callable[[Any], Any]] = {}
        self._cycle: Cycle[None] | None = None
        self._planned = math.inf
        self._number = 0
        self._news = False
        self._clocks: Clocks | None = None
        self._clocks_read = 0.0
        self._clocks_for: Horizon | None = None
        self.wake()

    def wake(self, *, news: bool = True) -> None:
        """Play a turn at the next time that comes, as something has changed.

        *news* says that it surely concerns this daemon, so that the turn need not be foreseen.
        """
        if self.alive:
            self._news |= news
            self._plan(self.rounds.next_after(self.world.now))

    def end(self) -> None:
        """End for good, as the machine goes down."""
        if not self.alive:
            return
        world, machine = self.world, self.machine
        world.before_change(machine)
        self.alive = False
        self._cycle = None
        self.gone()
        machine.refresh(world.now)
        world.after_change(machine)

    def kill(self, restart_after: float | None = None) -> None:
        """End at once; the machine starts another one."""
        if not self.alive:
            return
        self.end()
        world, machine = self.world, self.machine
        if machine.on:
            world.say(f"{self.kind} of {machine.name} is killed")
            if restart_after is None:
                restart_after = world.random.uniform(0.3, STARTED_AGAIN)
            world.later(restart_after, self.fleet.start_again, self.kind, machine, machine.boot)

    def goes(self) -> bool:
        """Return whether this process makes progress."""
        return self.alive and self.machine.awake

    def gone(self) -> None:
        """Do what the kernel does when this process is gone."""

    def catch_up(self, now: float) -> None:
        """Take note of what the turns that were not played have seen before *now*."""

    def refresh(self, now: float) -> None:
        """Let what this daemon does at a steady pace go on or stop."""
        self.turns.go(now, self.goes())
        self._clocks = None

    def turn(self) -> Cycle[None]:
        """Return the turn to play."""
        raise NotImplementedError

    def foresee(self, now: float) -> float | None:
        """Return for how many seconds turns would change nothing, None if the next one may."""
        raise NotImplementedError

    def turned(self) -> None:
        """Take note that a turn has ended."""

    def say(self, text: str) -> None:
        """Add a line about this daemon to the trace."""
        self.world.say(f"{self.machine.name}: {text}")

    def clocks_and_log(self) -> dict[type, Callable[[Any], Any]]:
        """Return what performs the effects that all cycles have."""
        return {ReadClocks: self.clocks, Log: self._log, ForgetRepeated: lambda _: None}

    def clocks(self, _effect: object = None) -> Clocks:
        """Return the machine's clocks; numbers that move while a turn is foreseen."""
        now, horizon = self.world.now, self.horizon
        if self._clocks is None or self._clocks_read != now or self._clocks_for is not horizon:
            mono = self.clock.mono(now)
            wall = self.clock.wall_at(mono)
            if horizon is not None:
                mono = Moving(mono, self.clock.rate, horizon)
                wall = Moving(wall, self.clock.rate, horizon)
            self._clocks = Clocks(mono, wall, mono)
            self._clocks_read, self._clocks_for = now, horizon
        return self._clocks

    def last_skipped(self, now: float) -> float:
        """Return when the last turn before *now* was due, if it was skipped; else -inf."""
        last = self.turns.last(now - SLACK)
        return last if last > self.begun else -math.inf

    def next_due(self, due: float, every: float, now: float) -> float:
        """Return when what is done each so many seconds is due after the turns until *now*.

        It was *due* at a monotonic second before them, and is done in the first turn from then on.
        The turn at *now* is one of them.
        """
        mono, period = self.clock.mono(now), self.rounds.period * self.clock.rate
        if mono < due:
            return due
        turns = int((mono - due) / period)
        first, steps = mono - turns * period, math.ceil(every / period)
        return first + turns // steps * steps * period + every

    def moving(self, value: float) -> float:
        """Return *value*, which grows with time; as a moving number while a turn is foreseen."""
        horizon = self.horizon
        return value if horizon is None else Moving(value, self.clock.rate, horizon)

    def foresee_turn(self, cycle: Cycle[None]) -> float | None:
        """Play *cycle* until it would act; return for how long it comes to the same end.

        None if it acts.
        """
        self.horizon = horizon = Horizon()
        performs, acts = self.performs, self.acts
        try:
            effect = next(cycle)
            while type(effect) not in acts:
                try:
                    result = performs[type(effect)](effect)
                except HoldfastError as error:
                    effect = cycle.throw(error)
                else:
                    effect = cycle.send(result)
            cycle.close()
        except StopIteration:
            return horizon.seconds
        except Acts:
            cycle.close()
        finally:
            self.horizon = None
        return None

    def record(self, put: Callable[[], None]) -> None:
        """Write a record; raises ``StorageError`` if that fails."""
        if not self.machine.writes:
            raise StorageError("the write failed")
        put()

    def need_reads(self) -> None:
        """Raise ``StorageError`` unless this machine can read the storage."""
        if not self.machine.reads:
            raise StorageError("the storage cannot be read")

    def need_host_lease(self) -> None:
        """Raise ``LeaseError`` if nobody holds this machine's host lease."""
        machine = self.machine
        if machine.freed or machine.left or machine.given_up:
            raise LeaseError("nobody holds the host lease")

    def need_keeper(self) -> None:
        """Raise ``LeaseError`` unless the keeper of this machine's host lease still has it.

        It tells of a loss once it has seen that, and needs no storage for its answer.
        """
        self.need_host_lease()
        machine = self.machine
        if machine.clock.elapsed(machine.lost_at, self.world.now) >= SETTLED:
            raise LeaseError("sanlock has lost the lockspace")

    def newest_manager(self) -> tuple[ClusterState | None, bool]:
        """Return the newest record of a manager, and whether a newer one may be damaged."""
        self.need_reads()
        view = self.world.stale.get(self.machine.name)
        return (view.state, False) if view is not None else self.storage.newest_manager()

    def read_manager_record(self) -> ClusterState | None:
        """Return the newest record of a manager; ``FormatError`` if it is damaged."""
        state, damaged = self.newest_manager()
        if damaged:
            raise FormatError("the manager's record is damaged")
        return state

    def newest_desired(self) -> tuple[DesiredState, bool]:
        """Return the newest configuration, and whether no newer one can be damaged."""
        self.need_reads()
        view = self.world.stale.get(self.machine.name)
        if view is not None:
            return view.desired, True
        return self.storage.desired, self.storage.desired_readable

    def read_desired(self) -> DesiredState:
        """Return the newest configuration; ``FormatError`` if it is damaged."""
        desired, whole = self.newest_desired()
        if not whole:
            raise FormatError("the configuration is damaged")
        return desired

    def perform_from(self, cycle: Cycle[None], effect: Effect[Any] | None, *, late: bool) -> None:
        """Perform *effect*, None for the first one, and all that follow until the cycle waits.

        *late* says that this process was held up at *effect* already.
        """
        performs = self.performs
        hindered = self.is_hindered()
        try:
            if effect is None:
                effect = next(cycle)
            while True:
                if hindered and not late and self.is_held_up(cycle, effect):
                    return
                late = False
                try:
                    result = performs[type(effect)](effect)
                except HoldfastError as error:
                    if self.is_dead_by_now():
                        return
                    effect = cycle.throw(error)
                else:
                    if self.is_dead_by_now():
                        return
                    effect = cycle.send(result)
        except StopIteration:
            self._cycle = None
            self.turned()
        except HoldfastError as error:
            # As with any error that a daemon does not expect, the machine starts another one.
            self.say(f"{self.kind} ends: {error}")
            self.kill()

    def is_hindered(self) -> bool:
        """Return whether anything may stop this process at an effect of this turn."""
        return False

    def is_to_be_interrupted(self) -> bool:
        """Return whether this process is to be stopped at one of its next effects."""
        return False

    def is_held_up(self, cycle: Cycle[None], effect: Effect[Any]) -> bool:
        """Return whether this process does not get to *effect*, or only later."""
        return False

    def is_dead_by_now(self) -> bool:
        """Return whether the effect that was just performed was the last one of this process."""
        return not self.alive

    def _log(self, line: Log) -> None:
        """Add a line of the journal to the trace; what is repeated would fill it."""
        if self.horizon is None and not line.repeated:
            self.say(line.text)

    def _plan(self, at: float) -> None:
        if at < self._planned:
            self._planned = at
            self._number += 1
            self.world.timeline.at(at, self._play, self._number)

    def _play(self, number: int) -> None:
        """Play a turn, unless it would change nothing."""
        if not self.alive or number != self._number:
            return
        self._planned = math.inf
        if not self.goes():
            return
        now = self.world.now
        self.fleet.rounds += 1
        self.catch_up(now)
        # What has changed is news to most of those that hear of it.
        news, self._news = self._news or self.fleet.every_round or bool(self.machine.slow), False
        again = None if news else self.foresee(now)
        if again is None:
            self.begun = self.read_at = now
            self._cycle = self.turn()
            self.perform_from(self._cycle, None, late=False)
            if self.alive:
                self._plan(self.rounds.next_after(now))
        elif again < math.inf:
            after = max(now + again - SLACK, now)
            at = self.rounds.first_from(after)
            self._plan(at if at > now else self.rounds.next_after(now))
