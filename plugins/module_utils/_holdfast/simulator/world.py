# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The true state of a cluster in virtual time: its machines, its storage, and their changes.

What daemons believe is elsewhere; checks compare it with this state.  A change that another node
could see goes through ``changing``: before it, skipped looks are computed, and after it, daemons
look again.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from ..cluster.crm.effects import HostLease
from ..cluster.model import lease_freeing
from ..cluster.model.membership import Place, make_membership
from .checks import Checks
from .machine import Machine
from .settings import ROUNDING, Settings
from .shared_storage import SharedStorage, Slot, StaleView
from .timeline import Timeline

LATE_FREE_LOOK = 1.0
"""Seconds between two looks whether an earlier host lease is still being freed."""


class World:
    """Machines and storage, with the clock, the chances and the trace."""

    def __init__(
        self, names: Sequence[str], settings: Settings, seed: int, *, running: bool = True
    ) -> None:
        """Build a cluster; *seed* decides all chances, *running* whether its machines are on."""
        self.random = random.Random(seed)
        self.settings = settings
        self.timeline = Timeline()
        places = {name: Place(number) for number, name in enumerate(names, 1)}
        self.membership = make_membership(places, "")
        self.machines = {
            name: Machine(name, place.host_id, settings, self.membership, on=running)
            for name, place in places.items()
        }
        self.clones: dict[str, list[Machine]] = {}
        self.storage = SharedStorage(
            reports={name: Slot() for name in names}, states={name: Slot() for name in names}
        )
        self.trace: list[tuple[float, str]] = []
        self.checks = Checks()
        self.stale: dict[str, StaleView] = {}
        self.lease_proof: dict[str, bool | None] = {}
        self.before_change: Callable[[Machine | None], None] = lambda machine: None
        self.after_change: Callable[[Machine | None], None] = lambda machine: None
        self.on_machine_gone: Callable[[Machine], None] = lambda machine: None
        self.on_boot: Callable[[Machine], None] = lambda machine: None
        self.on_renewals_end: Callable[[Machine], None] = lambda _machine: None
        self.boots = dict.fromkeys(names, 1)
        self.generations = dict.fromkeys(names, 1)
        for machine in self.machines.values():
            machine.refresh(0.0)

    @property
    def now(self) -> float:
        """The true time."""
        return self.timeline.now

    def chance(self, probability: float) -> bool:
        """Return True with a probability."""
        return self.random.random() < probability

    def say(self, text: str) -> None:
        """Add a line to the trace."""
        self.trace.append((self.timeline.now, text))

    def later(self, seconds: float, act: Callable[..., object], *arguments: object) -> None:
        """Let something happen after *seconds*."""
        self.timeline.later(seconds, act, *arguments)

    @contextmanager
    def changing(self, machine: Machine | None = None) -> Iterator[None]:
        """Change something that others see: of one machine, or of all (None)."""
        self.before_change(machine)
        yield
        now = self.timeline.now
        for one in [machine] if machine is not None else list(self.machines.values()):
            was = one.renewals.goes
            one.refresh(now)
            if was and not one.renewals.goes:
                self.arm_watchdog(one)
                self.on_renewals_end(one)
        self.after_change(machine)

    def power_off(self, machine: Machine, why: str) -> None:
        """Take a machine's power: all that ran on it is gone, and its coming up is at an end."""
        machine.powered += 1
        if not machine.on:
            return
        self.say(f"{machine.name} is off: {why}")
        if not machine.left:
            machine.kept.lose(self.now)
        with self.changing(machine):
            machine.on = machine.frozen = machine.beats_in = machine.frees = False
            machine.sends_in = False
            machine.clock.go_on(self.now)
            machine.active.clear()
            machine.starting.clear()
            if self.storage.holder == machine.name and not self.settings.watchdogs:
                # The kernel of an embedded cluster frees what a process had.
                self.storage.holder = ""
            self.on_machine_gone(machine)

    def power_on(self, machine: Machine) -> None:
        """Give a machine its power back; a while later it is up with another boot."""
        if not machine.on:
            machine.cut = False
            self.later(self.settings.boot, self._boot, machine, machine.powered)

    def set_storage(self, machine: Machine, works: bool, part: str = "") -> None:
        """Let a machine lose or regain its storage, or only *part*: ``reads`` or ``writes``."""
        self.say(f"{machine.name} {'has' if works else 'loses'} its storage {part}".rstrip())
        with self.changing(machine):
            if part != "writes":
                machine.reads = works
            if part != "reads":
                machine.writes = works
        if works:
            machine.writes_since = self.now

    def set_network(self, machine: Machine, works: bool) -> None:
        """Let a machine lose or regain its network."""
        self.say(f"{machine.name} {'has' if works else 'loses'} its network")
        with self.changing(machine):
            machine.network = works

    def machine(self, name: str) -> Machine:
        """Return the machine that works, or worked last, under a node's host id."""
        return self.machines[name]

    def waits_for_late_free(self, machine: Machine) -> bool:
        """Return whether a node may still be freeing the host lease that *machine* would join."""
        records = self.storage.freeing
        if not records:
            return False
        name = machine.name
        return bool(lease_freeing.awaited_writers(name, 0, records, self._has_lease_ended))

    def joins(self, machine: Machine) -> None:
        """Give *machine* a host lease of the next generation."""
        self.generations[machine.name] += 1
        machine.generation = self.generations[machine.name]
        machine.joined_in = machine.boot
        machine.freed = machine.left = machine.given_up = False
        machine.lost_at = math.inf
        machine.renewals.restart(self.now, self.now, machine.renewals.period)

    def lease_ended(self, holder: str, is_dead: Callable[[str], bool]) -> bool:
        """Return whether the manager lease of *holder* can be had.

        It can if the host lease under which it was taken was freed or has given way to another
        one, or if the node is dead to the sanlock of the one that tries, by *is_dead*.
        """
        machine = self.machines[holder]
        if machine.freed or machine.left or machine.generation != self.storage.holder_generation:
            return True
        return self.settings.watchdogs and is_dead(holder)

    def host_lease(self, name: str, view: StaleView | None) -> HostLease:
        """Return a node's host lease as it is read, by a view that may be old."""
        machine = self.machines[name]
        free = name in view.free if view is not None else machine.freed or machine.left
        read = machine.renewals.last(self.now if view is None else min(self.now, view.since))
        return HostLease(machine.host_id, machine.generation, int(max(read, 0.0) * 1000), free)

    def where(self, service_id: str) -> list[Machine]:
        """Return the machines on which a service is active, wholly or partly."""
        found = [one for one in self.machines.values() if service_id in one.active]
        if self.clones:
            for others in self.clones.values():
                found += [one for one in others if service_id in one.active]
        return found

    def _boot(self, machine: Machine, powered: int) -> None:
        if machine.on or machine.cut or machine.powered != powered:
            return
        present = self.machines[machine.name]
        if present is not machine and not self._gives_way(present):
            self.later(1.0, self._boot, machine, powered)
            return
        if self.waits_for_late_free(machine):
            self.later(LATE_FREE_LOOK, self._boot, machine, powered)
            return
        with self.changing(None):
            if present is not machine:
                self.clones[machine.name].remove(machine)
                self.clones[machine.name].append(present)
                self.machines[machine.name] = machine
            machine.on = True
            self.boots[machine.name] += 1
            machine.boot = self.boots[machine.name]
            machine.boot_name = ""
            if machine.storage or not self.settings.watchdogs:
                self.joins(machine)
            else:
                # Nobody joins a lockspace that cannot be read: its LRM does so later.
                machine.given_up = True
                machine.freed, machine.left = machine.freed or machine.left, False
            self.say(f"{machine.name} is up, boot {machine.boot}")
            self.on_boot(machine)

    def _gives_way(self, present: Machine) -> bool:
        """Return whether the host lease of a machine can be had by another one.

        Behind a watchdog when it counts as dead; else the kernel has it freed with its holder.
        """
        if present.on:
            return False
        if present.freed or present.left or not self.settings.watchdogs:
            return True
        return present.lease_age(self.now) > self.settings.lease_dead

    def _has_lease_ended(self, name: str, generation: int) -> bool:
        """Return whether a node no longer has its host lease of *generation*."""
        machine = self.machines[name]
        if machine.generation != generation or machine.freed or machine.left:
            return True
        if not self.settings.watchdogs:
            return not machine.on
        return machine.lease_age(self.now) > self.settings.lease_dead

    def arm_watchdog(self, machine: Machine) -> None:
        """Its host lease is no longer renewed: if that stays so it will be reset."""
        if not self.settings.watchdogs or not machine.on:
            return
        renewed = machine.renewals.last(self.now)
        after = self.settings.watchdog_fires + machine.watchdog_late
        left = (after - machine.clock.elapsed(renewed, self.now)) / machine.clock.rate
        self.later(max(0.0, left), self._watchdog, machine, renewed, after)

    def _watchdog(self, machine: Machine, renewed: float, after: float) -> None:
        """Reset a machine whose watchdog ran for so long; while it is paused, that stands still."""
        clock = machine.clock
        if clock.stopped or clock.elapsed(renewed, self.now) < after - ROUNDING:
            # It was armed again when the machine went on.
            return
        if (
            machine.on
            and not machine.left
            and not machine.given_up
            and machine.renewals.last(self.now) == renewed
        ):
            self.power_off(machine, "its watchdog fired")
            self.later(self.settings.boot, self._boot, machine, machine.powered)
