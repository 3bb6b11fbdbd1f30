# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A process that goes round: it looks, decides, writes, and only then acts.

A round that changed and ordered nothing is not repeated before one of its inputs changed
or a time came on which it depends (``moving.py``); with ``every_round`` each one is gone
through all the same, and comes to the same end.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from .machine import Machine
from .scenario import ROUND
from .timeline import Cadence

if TYPE_CHECKING:
    from .fleet import Fleet

SLACK = 1e-3
"""A time that was computed to be near may be so much earlier: rounding."""

BEFORE, TORN, AFTER, ACTING, PAUSED = "before", "torn", "after", "acting", "paused"
"""Where a daemon can be struck at a write: before it, in it, after it, between its acts; or
it is held up there."""

STARTED_AGAIN = 3.0
"""A machine starts a daemon that died anew within so many seconds."""


class Daemon:
    """An LRM or a CRM."""

    kind = ""

    def __init__(self, fleet: Fleet, machine: Machine) -> None:
        """Go round from now on."""
        self.fleet, self.world, self.machine = fleet, fleet.world, machine
        self.storage = self.world.storage
        self.clock = machine.clock
        self.alive = True
        self.hung = False
        self.paused = False
        chance = self.world.random
        period = ROUND * chance.uniform(1.0, 1.04) / self.clock.rate
        self.rounds = Cadence(self.world.now + chance.uniform(0.01, 0.2), period)
        self.rounds.go(self.world.now)
        self._planned = math.inf
        self._number = 0
        self.wake()

    def wake(self) -> None:
        """Go round at the next time that comes, as something has changed."""
        if self.alive:
            self._plan(self.rounds.next_after(self.world.now))

    def end(self) -> None:
        """End for good, as the machine goes down."""
        if not self.alive:
            return
        world, machine = self.world, self.machine
        world.before_change(machine)
        self.alive = False
        self.gone()
        machine.refresh(world.now)
        world.after_change(machine)

    def kill(self, restart_after: float | None = None) -> None:
        """End without a last word; the machine starts another one."""
        if not self.alive:
            return
        self.end()
        world, machine = self.world, self.machine
        if machine.on:
            world.say(f"{self.kind} of {machine.name} is killed")
            if restart_after is None:
                restart_after = world.random.uniform(0.3, STARTED_AGAIN)
            world.later(restart_after, self.fleet.start_again, self.kind, machine, machine.boot)

    def hang(self, seconds: float) -> None:
        """Make no progress for a while; what is hung for long is killed and started anew."""
        if not self.alive or self.hung:
            return
        self.world.say(f"{self.kind} of {self.machine.name} hangs")
        with self.world.changing(self.machine):
            self._set_hung(True)
        self.world.later(seconds, self._goes_on)

    def goes(self) -> bool:
        """Return whether this process makes progress."""
        return self.alive and self.machine.awake and not self.hung and not self.paused

    def round_number(self, now: float) -> int:
        """Return how many times for a round there were until *now*."""
        return round((now - self.rounds.origin) / self.rounds.period)

    def gone(self) -> None:
        """Do what the kernel does when this process is gone."""

    def catch_up(self, now: float) -> None:
        """Take note of what the rounds that were not gone through have seen until *now*."""

    def refresh(self, now: float) -> None:
        """Let what this daemon does at a steady pace go on or stop."""

    def round(self) -> float | None:
        """Look, decide, write, act: once.

        Return after how many seconds it would come to another end though nothing changes,
        None if it is to go round again at once.
        """
        raise NotImplementedError

    def killed_between(self) -> bool:
        """Return whether this process is killed right here, between two of its acts."""
        world = self.world
        if world.killed_between and world.random.random() < world.killed_between:
            self.kill()
        return not self.alive

    def write(
        self, put: Callable[[], None], torn: Callable[[], None], then: Callable[[bool], None]
    ) -> None:
        """Write a record; *then* hears whether that succeeded, unless the process died of it.

        A write that failed may have been done all the same.  *torn* writes a part of it.
        """
        blow = self.fleet.blow(self.kind, self.machine.name)
        if blow is not None and blow.stage == BEFORE:
            self.kill(blow.seconds or None)
            return
        if blow is not None and blow.stage == TORN:
            torn()
            self.kill(blow.seconds or None)
            return
        held_up = self.machine.slow
        if blow is not None and blow.stage == PAUSED:
            held_up += blow.seconds
            self.world.say(f"{self.kind} of {self.machine.name} is held up at a write")
        if held_up:
            self.catch_up(self.world.now)
            self.paused = True
            self.refresh(self.world.now)
            self.world.later(held_up, self._resume, put, then)
            return
        self._write_now(put, then)
        if blow is not None and blow.stage == AFTER and self.alive:
            self.kill(blow.seconds or None)

    def _write_now(self, put: Callable[[], None], then: Callable[[bool], None]) -> None:
        world, machine = self.world, self.machine
        chance = world.write_fails.get(machine.name, 0.0) if world.write_fails else 0.0
        fails = not machine.writes or (chance > 0.0 and world.random.random() < chance)
        if not fails or (machine.writes and world.random.random() < 0.5):
            put()
        then(not fails)

    def _resume(self, put: Callable[[], None], then: Callable[[bool], None]) -> None:
        if not self.alive:
            return
        if not self.machine.awake or self.hung:
            self.world.later(0.5, self._resume, put, then)
            return
        self.paused = False
        self.refresh(self.world.now)
        self._write_now(put, then)
        self.wake()

    def _goes_on(self) -> None:
        if self.alive and self.hung:
            with self.world.changing(self.machine):
                self._set_hung(False)

    def _set_hung(self, hung: bool) -> None:
        self.hung = hung

    def _plan(self, at: float) -> None:
        if at < self._planned:
            self._planned = at
            self._number += 1
            self.world.timeline.at(at, self._turn, self._number)

    def _turn(self, number: int) -> None:
        if not self.alive or number != self._number:
            return
        self._planned = math.inf
        if not self.goes():
            return
        now = self.world.now
        again = self.round()
        self.fleet.rounds += 1
        if not self.alive:
            return
        if again is None or self.fleet.every_round:
            self._plan(self.rounds.next_after(now))
        elif again < math.inf:
            after = max(now + again - SLACK, now)
            at = self.rounds.first_from(after)
            self._plan(at if at > now else self.rounds.next_after(now))
