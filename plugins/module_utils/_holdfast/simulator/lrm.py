# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A simulated LRM: plays ``cluster/lrm/cycle.py`` against the simulated storage and agents."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from ..cluster.lrm import cycle, effects
from ..cluster.lrm.cycle import Lrm, LrmSettings
from ..cluster.lrm.host_lease import HostLease
from ..cluster.model.effects import Cycle
from ..cluster.model.jobs import JobEnd, JobKind
from ..cluster.model.observed import HostState
from ..cluster.model.report import POWEROFF, RESTART, Report
from ..cluster.model.state import ClusterState
from ..errors import FormatError, StorageError
from .daemon import Acts, Daemon
from .foretold import Foretold
from .machine import Machine
from .settings import ROUND
from .shared_storage import Indexed

if TYPE_CHECKING:
    from .fleet import Fleet

GOES_DOWN = (1.0, 12.0)
"""Seconds from a node's leaving to its last breath."""

JOIN_TAKES = (0.5, 2.5)
"""Seconds that it takes to join the lockspace."""

STEADY = frozenset(
    {
        *("settings", "host_lease", "memory", "clocks", "next_heartbeat", "next_own_look"),
        *("trouble", "state", "desired", "next_turn"),
    }
)
LEASE_STEADY = frozenset(
    {"clocks", "renewed_at", "next_look", "trouble", "unrenewed", "unconfirmed", "lost"}
)
"""What a turn of an LRM changes although nothing has happened, or what is compared apart."""

_COMPARED = attrgetter(*(one.name for one in fields(Lrm) if one.name not in STEADY))
_LEASE_COMPARED = attrgetter(
    *(one.name for one in fields(HostLease) if one.name not in LEASE_STEADY)
)


class LrmDaemon(Daemon):
    """An LRM; *lrm* is None until it has read what the last one left."""

    kind = "lrm"
    acts = frozenset(
        {
            effects.LeaveHostLease,
            effects.DisarmWatchdog,
            effects.BeginJoin,
            effects.ContinueAfter,
            effects.KeepReport,
            effects.WriteReport,
            effects.BeginJob,
        }
    )

    def __init__(self, fleet: Fleet, machine: Machine) -> None:
        """Begin in the first turn with what the last LRM left."""
        self.lrm: Lrm | None = None
        self.slot = fleet.world.storage.reports[machine.name]
        self.ended: list[JobEnd] = []
        self.busy: set[str] = set()
        self.shutdown = ""
        self._number_read = self._after_number = 0
        self._stored: tuple[Report | None, int] = (None, 0)
        self._known: Indexed | None = None
        self._orders: ClusterState | None = None
        super().__init__(fleet, machine)
        self._foretold = Foretold(
            machine, fleet.agents, self.rounds, self.world.timeline, self.busy.add, self._job_ended
        )
        self.performs = {**self.clocks_and_log(), **self._make_performs()}

    def gone(self) -> None:
        self.machine.beats_in = self.machine.sends_in = False
        self.machine.starting.clear()
        self.machine.writes_since = math.inf

    def turn(self) -> Cycle[None]:
        self._foretold.forget()
        if self.lrm is not None:
            return cycle.turn(self.lrm)
        return self.resume() if self.machine.reads else _wait_for_storage()

    def catch_up(self, now: float) -> None:
        lrm = self.lrm
        if lrm is None:
            return
        self._foretold.catch_up(lrm, now)
        looked = self.last_skipped(now)
        if looked > 0.0 and self.machine.reads and not lrm.trouble:
            renewed = self.machine.renewals.last(looked)
            lrm.host_lease.renewed_at = max(lrm.host_lease.renewed_at, self.clock.mono(renewed))
            lrm.next_own_look = self.next_due(lrm.next_own_look, cycle.OWN_LOOK, looked)

    def foresee(self, now: float) -> float | None:
        lrm = self.lrm
        if lrm is None and not self.machine.reads:
            return math.inf
        if lrm is None or self.ended or lrm.pending or lrm.report != lrm.written:
            return None
        if self.machine.lost_at < math.inf and not lrm.host_lease.lost:
            # When it asks sanlock next, it sees the loss.
            return None
        clocks = self.clocks()
        if clocks.mono >= lrm.write_again or clocks.jump_since(lrm.clocks):
            return None
        if self.machine.reads and not self._stands():
            return None
        after = lrm.copy()
        # These go on at a steady pace, and come to the same each time.
        after.next_heartbeat = after.next_own_look = after.host_lease.next_look = math.inf
        if not self.fleet.every_round:
            after.memory = replace(after.memory, monitor_due=self._foretold.choose(lrm, now))
        memory = after.memory
        seconds = self.foresee_turn(cycle.turn(after))
        if seconds is not None and after.memory == memory and _same(lrm, after):
            lrm.state, lrm.desired = after.state, after.desired
            lrm.clocks = lrm.host_lease.clocks = self.clocks()
            return seconds
        self._foretold.forget()
        return None

    def turned(self) -> None:
        if self.lrm is not None and self.lrm.ends:
            self._end(self.lrm)

    def resume(self) -> Cycle[None]:
        """Return the first turn, which reads what the last LRM left."""
        machine, settings = self.machine, self.world.settings
        self.lrm = yield from cycle.start(
            LrmSettings(
                machine.name,
                machine.boot_id,
                settings.watchdog_timeout,
                settings.lease_fails,
                joins=settings.watchdogs,
                virtual=machine.virtual,
                room=machine.room,
            )
        )
        yield from cycle.turn(self.lrm)

    def _make_performs(self) -> dict[type, Callable[[Any], Any]]:
        """Return what performs each kind of effect."""
        return {
            effects.AdoptHostLease: self._adopt,
            effects.ReadOwnHostLease: self._read_own_host_lease,
            effects.ConfirmHostLease: lambda _: self.need_keeper(),
            effects.DisarmWatchdog: self._disarm_watchdog,
            effects.LeaveHostLease: lambda _: None,
            effects.BeginJoin: self._begin_join,
            effects.FollowJoin: self._follow_join,
            effects.ReadLateFree: self._read_late_free,
            effects.IsFreeingHostLease: lambda _: self.machine.frees,
            effects.ReadManagerRecord: lambda _: self.read_orders(),
            effects.ReadDesiredFrom: lambda _: self.read_desired(),
            effects.ReadKeptReport: lambda _: self.read_kept_report(),
            effects.ReadOwnReport: lambda _: self.read_own_report(),
            effects.ContinueAfter: self._continue_after,
            effects.KeepReport: self._keep_report,
            effects.WriteReport: lambda effect: self.record(lambda: self._put(effect.report)),
            effects.OwnReportStands: self._own_report_stands,
            effects.WriteHeartbeat: self._write_heartbeat,
            effects.WakeManager: lambda _: None,
            effects.TakeJobs: self._take_jobs,
            effects.BeginJob: self.begin_job,
            effects.ResizeWorkers: lambda _: None,
            effects.Supervise: lambda _: None,
            effects.CountTerms: lambda _: int(bool(self.shutdown)),
            effects.ReadShutdown: lambda _: self.shutdown,
            effects.ReadOwnMembership: lambda _: self.machine.membership,
            effects.ReadSecretProblems: lambda _: {},
        }

    def read_orders(self) -> ClusterState | None:
        """Return the newest manager's record that concerns this node, by the records' indexes."""
        state, known, name = self.read_manager_record(), self._known, self.machine.name
        found = self.storage.index_of(state)
        if found is not None and known is not None and found.is_old_news(name, known):
            return self._orders
        self._known, self._orders = found, state
        entry = found.entries.get(name) if found is not None else None
        if state is not None and entry is not None and entry.version != state.config_version:
            self._orders = replace(state, config_version=entry.version)
        return self._orders

    def has_new_orders(self) -> bool:
        """Return whether the manager's record has anything new for this node, if it can be read."""
        known, lrm = self._known, self.lrm
        if known is None or lrm is None or lrm.state is not self._orders:
            return True
        if self.machine.name in self.world.stale:
            return False
        found = self.storage.index_of(self.storage.newest_manager()[0])
        return found is None or not found.is_old_news(self.machine.name, known)

    def _adopt(self, _effect: effects.AdoptHostLease) -> effects.Adopted:
        self.need_keeper()
        self.need_reads()
        return effects.Adopted(self.machine.generation, self.world.settings.lease_fails)

    def _read_own_host_lease(self, _effect: effects.ReadOwnHostLease) -> effects.OwnHostLease:
        self.need_reads()
        machine, now, fails = self.machine, self.world.now, self.world.settings.lease_fails
        age = machine.own_lease_age(now)
        if self.horizon is not None:
            if not machine.renewals.goes:
                age = self.moving(age)
            elif age >= fails / 2:
                self.horizon.until(machine.renewals.next_after(now) - now)
        free = machine.freed or machine.left
        state = HostState.LIVE if age < fails else HostState.FAIL
        return effects.OwnHostLease(
            machine.name,
            machine.generation,
            HostState.FREE if free else state,
            age,
        )

    def _disarm_watchdog(self, _effect: effects.DisarmWatchdog) -> None:
        machine = self.machine
        if machine.given_up:
            return
        with self.world.changing(machine):
            machine.given_up = True
        self.world.say(f"{machine.name} lost its host lease and runs nothing: watchdog disarmed")

    def _begin_join(self, _effect: effects.BeginJoin) -> str:
        self.machine.joins_at = self.world.now + self.world.random.uniform(*JOIN_TAKES)
        return "joins the lockspace"

    def _follow_join(self, _effect: effects.FollowJoin) -> effects.JoinEnd:
        machine, left = self.machine, self.machine.joins_at - self.world.now
        if left > 0.0:
            if self.horizon is not None:
                self.horizon.until(left)
            return effects.JoinEnd(False)
        if not machine.storage:
            return effects.JoinEnd(True, "the storage fails")
        if self.horizon is not None:
            raise Acts
        with self.world.changing(machine):
            self.world.joins(machine)
        self.world.say(f"{machine.name} joins again")
        return effects.JoinEnd(True)

    def _read_late_free(self, _effect: effects.ReadLateFree) -> str:
        self.need_reads()
        if self.world.waits_for_late_free(self.machine):
            return "another node may still be freeing its last host lease"
        return ""

    def read_kept_report(self) -> effects.NumberedReport:
        """Return the report that the last LRM left on the local disk."""
        return effects.NumberedReport(*self.machine.kept.read())

    def read_own_report(self) -> effects.NumberedReport:
        """Return the report that the last LRM left on the storage."""
        self.need_reads()
        if self.slot.damaged:
            raise FormatError("the node's report is damaged")
        self._number_read = self.slot.sequence
        return effects.NumberedReport(self.slot.sequence, self.slot.value)

    def _continue_after(self, effect: effects.ContinueAfter) -> None:
        self._after_number = max(self._after_number, effect.number)

    def last_number(self) -> int:
        """Return the number after which this LRM writes its next report."""
        return max(self._after_number, self._number_read)

    def _keep_report(self, effect: effects.KeepReport) -> None:
        self.machine.kept.write(self.world.now, self.last_number() + 1, effect.report)

    def _put(self, report: Report) -> None:
        news = report != self.slot.value or not self.slot.is_whole
        self._number_read = self.slot.put(report, self.world.now, self.last_number())
        self._stored = (report, self._number_read)
        if news:
            self.fleet.wake_managers()

    def _own_report_stands(self, _effect: effects.OwnReportStands) -> bool:
        self.need_reads()
        return self._stands()

    def _stands(self) -> bool:
        """Return whether the report is on storage as it was written, if it was."""
        return self._stored[0] is None or self.slot.stands(*self._stored)

    def _write_heartbeat(self, _effect: effects.WriteHeartbeat) -> None:
        machine, now = self.machine, self.world.now
        if not machine.writes:
            raise StorageError("the write failed")
        self.slot.told = self._number_read
        if not machine.beats_in:
            with self.world.changing(machine):
                machine.beats_in = True
                machine.writes_since = now
                rounds = self.world.settings.timing.heartbeat / ROUND
                machine.beats.restart(now, self.rounds.origin, self.rounds.period * rounds)
                self._start_sender()

    def _start_sender(self) -> None:
        """Send keepalives from now on, if the cluster has them."""
        machine, interval = self.machine, self.world.settings.timing.keepalive
        if interval and not machine.sends_in:
            machine.sends_in = True
            machine.sends.restart(self.world.now, self.rounds.origin, interval / self.clock.rate)

    def _take_jobs(self, _effect: effects.TakeJobs) -> effects.JobStatus:
        ended = tuple(self.ended)
        self.ended.clear()
        self.busy.difference_update(end.job.service.id for end in ended)
        return effects.JobStatus(ended, frozenset(self.busy))

    def begin_job(self, effect: effects.BeginJob) -> None:
        """Let the agents do a job; a worker asks once more whether it may start anything."""
        lrm, job, agents = self.lrm, effect.job, self.fleet.agents
        if lrm is None:
            return
        self.busy.add(job.service.id)
        obstacle = ""
        if job.kind in (JobKind.START, JobKind.RESTART):
            obstacle = cycle.start_obstacle(lrm, self.clocks())
        if obstacle:
            agents.refuse(self.machine, job, obstacle, self._is_alive, self._job_ended)
        else:
            agents.begin(self.machine, job, self._is_alive, self._job_ended)

    def _is_alive(self) -> bool:
        return self.alive

    def _job_ended(self, end: JobEnd) -> None:
        if self.alive:
            self.ended.append(end)
            self.wake()

    def _end(self, lrm: Lrm) -> None:
        """End as told: this daemon alone, or the whole node goes down."""
        world, machine = self.world, self.machine
        if lrm.shutdown == RESTART:
            self.kill()
            return
        world.say(f"{machine.name} leaves the cluster")
        with world.changing(machine):
            self.fleet.leave(machine)
            machine.left = not machine.frees
        down = lrm.shutdown
        world.later(world.random.uniform(*GOES_DOWN), self._is_down, machine.powered, down)

    def _is_down(self, powered: int, shutdown: str) -> None:
        world, machine = self.world, self.machine
        if machine.powered != powered:
            return
        world.power_off(machine, f"it is shut down ({shutdown})")
        if shutdown == POWEROFF:
            machine.cut = True
        else:
            world.power_on(machine)


def _wait_for_storage() -> Cycle[None]:
    """Do nothing: an LRM that starts waits until it can read its record."""
    yield from ()


def _same(before: Lrm, after: Lrm) -> bool:
    """Return whether a turn has changed nothing of what an LRM knows; its memory is apart."""
    if _troubles(before) != _troubles(after):
        return False
    if _COMPARED(before) != _COMPARED(after):
        return False
    return bool(_LEASE_COMPARED(before.host_lease) == _LEASE_COMPARED(after.host_lease))


def _troubles(lrm: Lrm) -> tuple[object, ...]:
    """Return which troubles there are; their texts count seconds."""
    lease = lrm.host_lease
    return (
        bool(lrm.trouble),
        lease.trouble is None,
        bool(lease.trouble),
        bool(lease.unconfirmed),
        bool(lease.unrenewed),
        bool(lease.lost),
    )
