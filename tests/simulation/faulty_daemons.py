# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Simulated daemons that can be interrupted at any effect, and that are checked.

At each effect of a turn a daemon may be delayed or killed.  A write may fail, be done although it
failed, or be torn.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm import (
    effects as crm_effects,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.repair_plan import (
    StoredRecords,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.lrm import (
    effects as lrm_effects,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.lrm.cycle import Lrm
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired import (
    IGNORE,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.effects import (
    Cycle,
    Effect,
    Log,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.jobs import (
    JobKind,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    LocalState,
    Report,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    Intent,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import StorageError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.simulator.crm import CrmDaemon
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.simulator.daemon import Daemon
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.simulator.lrm import LrmDaemon
from ansible_collections.holdfast.ha.tests.simulation.read_back import read_report, read_state
from ansible_collections.holdfast.ha.tests.simulation.rules import stops_after
from ansible_collections.holdfast.ha.tests.simulation.torn import torn_report, torn_state

if TYPE_CHECKING:
    from ansible_collections.holdfast.ha.tests.simulation.faulty_fleet import FaultyFleet

WAKES_AGAIN = 0.5
"""Seconds between two looks whether a process that was delayed makes progress again."""

WATCHED = 10.0
"""Seconds without progress after which a machine kills a CRM."""


class Stage(str, enum.Enum):
    """Where a daemon is interrupted: at a write, between two of its acts, in a look, or anywhere.

    BEFORE, TORN and AFTER kill it before, in or after a write, ACTING after the first of several
    acts, KILLED before any effect.  PAUSED delays it at a write, LOOKING between two reads of a
    look, HELD before any effect.
    """

    BEFORE = "before"
    TORN = "torn"
    AFTER = "after"
    ACTING = "acting"
    PAUSED = "paused"
    LOOKING = "looking"
    HELD = "held"
    KILLED = "killed"


class Place(enum.Enum):
    """The kinds of effect at which a daemon can be interrupted, with the stages of each."""

    WRITE = frozenset({Stage.BEFORE, Stage.TORN, Stage.AFTER, Stage.PAUSED})
    ACT = frozenset({Stage.ACTING})
    LOOK = frozenset({Stage.LOOKING})
    ANY = frozenset({Stage.HELD, Stage.KILLED})


@dataclass
class Interruption:
    """A daemon is to be interrupted at one of its next effects: *stage* is where.

    *count* counts them down.  *seconds* is how long the daemon is delayed or away, 0 for a random
    time.
    """

    stage: Stage
    count: int = 1
    seconds: float = 0.0


class FaultyDaemon(Daemon):
    """An LRM or a CRM that can hang, and be delayed or killed at an effect."""

    fleet: FaultyFleet
    orders: frozenset[type]
    """Effects between which a daemon may be killed by chance."""
    writes: frozenset[type]
    """Writes of a record."""
    reads: frozenset[type]
    """Effects that read the storage and take as long as that does."""
    ordering: frozenset[type]
    """Effects after the last look at the clock: the daemon does not notice a delay there."""
    hung = False
    paused = False
    _interrupted: Interruption | None = None

    def hang(self, seconds: float) -> None:
        """Make no progress for a while."""
        if not self.alive or self.hung:
            return
        self.world.say(f"{self.kind} of {self.machine.name} hangs")
        with self.world.changing(self.machine):
            self.set_hung(True)
        self.world.later(seconds, self._unhang)

    def set_hung(self, hung: bool) -> None:
        """Stop, or go on."""
        self.hung = hung

    def goes(self) -> bool:
        return self.alive and self.machine.awake and not self.hung and not self.paused

    def tear(self, effect: Any) -> None:
        """Write a part of what *effect* is to write."""
        raise NotImplementedError

    def begin(self, effect: Any) -> None:
        """Do the part of *effect* that comes before this process is delayed in it."""

    def is_order(self, effect: Any) -> bool:
        """Return whether *effect* changes anything outside of this process."""
        return True

    def record(self, put: Callable[[], None]) -> None:
        """Write a record; raises ``StorageError`` if that fails, although it may be written."""
        world, machine, failing = self.world, self.machine, self.fleet.write_fails
        chance = failing.get(machine.name, 0.0) if failing else 0.0
        fails = not machine.writes or (chance > 0.0 and world.random.random() < chance)
        if not fails or (machine.writes and world.random.random() < 0.5):
            put()
        if fails:
            raise StorageError("the write failed")

    def is_hindered(self) -> bool:
        fleet = self.fleet
        return bool(self.machine.slow or fleet.killed_between or self.is_to_be_interrupted())

    def is_to_be_interrupted(self) -> bool:
        return self.fleet.is_to_interrupt(self)

    def is_dead_by_now(self) -> bool:
        """Kill this process if it is to end after its last effect; return whether it is dead."""
        if self._interrupted is not None:
            interruption, self._interrupted = self._interrupted, None
            self.kill(interruption.seconds or None)
        return not self.alive

    def is_held_up(self, cycle: Cycle[None], effect: Effect[Any]) -> bool:
        """Return whether this process is killed before *effect*, or delayed there."""
        kind, chance = type(effect), self.fleet.killed_between
        if chance and kind in self.orders and self.is_order(effect) and self.world.chance(chance):
            self.kill()
            return True
        seconds = self.machine.slow if kind in self.reads or kind in self.writes else 0.0
        seconds += self.interrupt(effect, kind) if self.is_to_be_interrupted() else 0.0
        if not self.alive:
            return True
        if seconds:
            self.begin(effect)
            self._wait(cycle, effect, seconds)
        return bool(seconds)

    def interrupt(self, effect: Effect[Any], kind: type) -> float:
        """Return for how many seconds an interruption delays this process; it may kill it."""
        fleet = self.fleet
        found = fleet.take_interruption(self, Place.ANY)
        if found is None and kind in self.writes:
            found = fleet.take_interruption(self, Place.WRITE)
        elif found is None and kind in self.reads:
            found = fleet.take_interruption(self, Place.LOOK)
        elif found is None and kind in self.orders and self.is_order(effect):
            found = fleet.take_interruption(self, Place.ACT)
        if found is None:
            return 0.0
        if found.stage in (Stage.AFTER, Stage.ACTING):
            self._interrupted = found
            return 0.0
        if found.stage in (Stage.PAUSED, Stage.LOOKING, Stage.HELD):
            self.world.say(f"{self.kind} of {self.machine.name} is held up at {kind.__name__}")
            return found.seconds
        if found.stage is Stage.TORN:
            self.tear(effect)
        self.kill(found.seconds or None)
        return 0.0

    def _wait(self, cycle: Cycle[None], effect: Effect[Any], seconds: float) -> None:
        """Delay this process before *effect*."""
        self.catch_up(self.world.now)
        self.paused = True
        self.refresh(self.world.now)
        self.world.later(seconds, self._resume, cycle, effect)

    def _resume(self, cycle: Cycle[None], effect: Effect[Any]) -> None:
        """Go on with a turn at the effect before which this process was delayed."""
        if not self.alive or cycle is not self._cycle:
            return
        if not self.machine.awake or self.hung:
            self.world.later(WAKES_AGAIN, self._resume, cycle, effect)
            return
        self.paused = False
        self.refresh(self.world.now)
        if type(effect) not in self.ordering:
            self.read_at = self.world.now
        self.perform_from(cycle, effect, late=True)
        self.wake()

    def _unhang(self) -> None:
        if self.alive and self.hung:
            with self.world.changing(self.machine):
                self.set_hung(False)


class FaultyCrm(FaultyDaemon, CrmDaemon):
    """A CRM that can be interrupted."""

    orders = frozenset({crm_effects.Fence, crm_effects.PowerOn, crm_effects.SetBoardMaintenance})
    writes = frozenset({crm_effects.WriteState, crm_effects.WriteIntent})
    reads = frozenset({crm_effects.Look})
    ordering = orders | {Log}

    def read_records(self) -> StoredRecords:
        records, rules = super().read_records(), self.fleet.rules
        state, kept = read_state(rules, records.state), read_report(rules, records.kept)
        return replace(records, state=state, kept=kept)

    def read_intent(self) -> Intent | None:
        if self.horizon is None:
            self.fleet.rules.becomes_manager(self)
        return super().read_intent()

    def begin(self, effect: Any) -> None:
        """Read the whiteboard before this process is delayed inside a look."""
        if isinstance(effect, crm_effects.Look) and self.machine.reads:
            self.look_begun = self.world.now
            self.observer.look(self.world.now)

    def interrupt(self, effect: Any, kind: type) -> float:
        """Let a write that frees a host lease hang; it arrives whatever becomes of this process."""
        own = self.machine
        if kind is not crm_effects.FreeHostLease or own.name not in self.fleet.late_frees:
            return super().interrupt(effect, kind)
        node = self.node_names[effect.lease.host_id]
        seconds = self.fleet.late_frees.pop(own.name)
        self.say(f"hangs in the write that frees the host lease of {node}")
        own.frees = True
        self.world.later(seconds, self._free_arrives, node, effect.lease.generation, own.boot)
        if seconds > WATCHED:
            self.world.later(WATCHED, self.kill)
        return seconds

    def _free_arrives(self, node: str, generation: int, boot: int) -> None:
        """Let a write that hung arrive; it is gone if its machine has lost power since."""
        own, world = self.machine, self.world
        if not own.on or own.boot != boot:
            return
        if own.frozen:
            world.later(WAKES_AGAIN, self._free_arrives, node, generation, boot)
            return
        own.frees = False
        machine = world.machines[node]
        world.say(f"{own.name} frees host lease {generation} of {node}")
        works = machine.on and not (machine.freed or machine.left or machine.given_up)
        if works and machine.generation != generation:
            self.fleet.rules.broken(
                "S2", f"the host lease of {node}, which is back, is overwritten by {own.name}"
            )
        if not machine.on:
            with world.changing(machine):
                machine.freed = True

    def tear(self, effect: Any) -> None:
        if not isinstance(effect, crm_effects.WriteState):
            return
        torn_state(self.world, self.machine.name, effect.state)
        read = self.slot.value
        if read is not None:
            self.fleet.rules.stands(read)
        self.fleet.wake_lrms()


class FaultyLrm(FaultyDaemon, LrmDaemon):
    """An LRM that can be interrupted, and whose acts are checked."""

    orders = frozenset({lrm_effects.BeginJob})
    writes = frozenset({lrm_effects.WriteReport})
    reads = frozenset({lrm_effects.ReadManagerRecord})
    ordering = frozenset()
    _followed: Report | None = None

    def read_kept_report(self) -> lrm_effects.NumberedReport:
        return self._read_back(super().read_kept_report())

    def read_own_report(self) -> lrm_effects.NumberedReport:
        return self._read_back(super().read_own_report())

    def _read_back(self, read: lrm_effects.NumberedReport) -> lrm_effects.NumberedReport:
        return replace(read, report=read_report(self.fleet.rules, read.report))

    def set_hung(self, hung: bool) -> None:
        self.hung = hung
        self.machine.beats_in = not hung
        if not hung:
            # A heartbeat that is due is written at once.
            beats, now = self.machine.beats, self.world.now
            beats.restart(now, now, beats.period)
            self.machine.writes_since = self.world.now

    def tear(self, effect: Any) -> None:
        torn_report(self.world, self.machine.name, effect.report, self.last_number())

    def is_order(self, effect: Any) -> bool:
        """Return whether it is more than a monitor: whoever dies before one changed nothing."""
        return bool(effect.job.kind is not JobKind.MONITOR)

    def resume(self) -> Cycle[None]:
        self.fleet.rules.resumes(self.machine)
        yield from super().resume()

    def begin_job(self, effect: lrm_effects.BeginJob) -> None:
        """Check what this node acts on, and that its report names the job."""
        job = effect.job
        if self.lrm is not None:
            self._follow(self.lrm)
            if job.kind in (JobKind.START, JobKind.MIGRATE) and job.uid:
                self.fleet.rules.is_reported(self.machine, job, self.slot.written)
        super().begin_job(effect)

    def turned(self) -> None:
        """Check what this node acts on, and what it runs on if its host lease is lost."""
        lrm = self.lrm
        if lrm is not None:
            self._follow(lrm)
            if lrm.trouble:
                self.fleet.rules.goes_on(self.machine, self._runs_on(lrm))
        super().turned()

    def look_at_loss(self) -> None:
        """Check that what runs here is being stopped, if the host lease was not renewed again.

        A node that was delayed, or began, since the last renewal may be later.
        """
        lrm, world = self.lrm, self.world
        if lrm is None or not self.goes() or self.machine.slow:
            return
        if self.turns.goes_for(world.now) >= stops_after(world.settings):
            self.fleet.rules.goes_on(self.machine, self._runs_on(lrm))

    def _follow(self, lrm: Lrm) -> None:
        """Check what this node acts on from now on."""
        if lrm.report is not self._followed:
            self._followed = lrm.report
            self.fleet.rules.follows(self.machine, lrm.report, lrm.state)

    def _runs_on(self, lrm: Lrm) -> list[str]:
        """Return the services that are taken to run here, and of which no stop was begun.

        So are those that a probe found here, unless they are unmanaged by now.  What cannot be
        stopped is left to the watchdog.
        """
        local = lrm.report.services
        runs = (LocalState.RUNNING, LocalState.UNKNOWN)
        known = {key for key, one in local.items() if one.state in runs}
        services = lrm.state.services if lrm.state is not None else {}
        if lrm.state is not None and lrm.state.disarm_mode == IGNORE:
            services = {}
        found = {key for key in services if lrm.report.found.get(services[key].probe(key))}
        blocked = {key for key, one in local.items() if one.state is LocalState.BLOCKED}
        return sorted((known | found) - blocked - self.busy)
