# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A whole simulated cluster: all daemons of all nodes, and what is done to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..cluster.crm.repair_plan import Keep
from ..cluster.model.desired import Wanted
from ..cluster.model.membership import Membership
from ..cluster.model.state import Event
from .agents import Agents
from .crm import CrmDaemon
from .daemon import Blow, Daemon, Place
from .fence_devices import Fencing
from .lrm import LrmDaemon
from .machine import Machine
from .rules import stops_after
from .settings import Settings
from .shared_storage import StaleView
from .world import World


class Fleet:
    """The daemons of a world."""

    def __init__(
        self,
        names: Sequence[str],
        settings: Settings,
        seed: int,
        *,
        every_round: bool = False,
        running: bool = True,
    ) -> None:
        """Start an LRM and a CRM on every machine of a new world.

        *every_round* goes through all rounds, also those that are known to change nothing.
        """
        self.world = World(names, settings, seed, running=running)
        self.every_round = every_round
        self.rounds = 0
        self.manager_writes = 0
        self.history: list[tuple[float, Event]] = []
        self.agents = Agents(self.world)
        self.devices = Fencing(self.world)
        self.lrms: dict[str, LrmDaemon] = {}
        self.crms: dict[str, CrmDaemon] = {}
        self._blows: dict[tuple[str, str], list[Blow]] = {}
        self.late_frees: dict[str, float] = {}
        self.strikes = True
        self.keep = Keep.RUNNING if seed % 4 < 2 else Keep.FILE
        """What an operator keeps who repairs the records once all faults are over."""
        self.taken_back = False
        self.went_back = False
        """Whether the storage, or what stood on it, is as it was before."""
        self.world.before_change = self._before_change
        self.world.after_change = self._after_change
        self.world.on_machine_gone = self._machine_gone
        self.world.on_boot = self._boot
        self.world.on_renewals_end = self._renewals_end

    def begin(self) -> None:
        """Let all machines that are on start their daemons; the others come up."""
        for machine in self.world.machines.values():
            if machine.on:
                self._boot(machine)
            else:
                self.world.power_on(machine)

    def start(self, kind: str, machine: Machine) -> None:
        """Start a daemon that is not there."""
        if not machine.on or machine.left or self.world.machines[machine.name] is not machine:
            return
        present = self.daemon(kind, machine.name)
        if present is not None and present.alive:
            return
        if kind == "lrm":
            self.lrms[machine.name] = LrmDaemon(self, machine)
        else:
            self.crms[machine.name] = CrmDaemon(self, machine)

    def start_again(self, kind: str, machine: Machine, boot: int) -> None:
        """Start a daemon that died, unless its machine was started anew meanwhile."""
        if machine.boot == boot and machine.on and kind == "crm" and machine.frees:
            # The kernel keeps a process, and what it listens on, until its write has returned.
            self.world.later(1.0, self.start_again, kind, machine, boot)
        elif machine.boot == boot and machine.on:
            self.world.before_change(machine)
            self.start(kind, machine)
            self.world.after_change(machine)

    def leave(self, machine: Machine) -> None:
        """End a machine's daemons for good, as it goes down or is gone."""
        for kind in ("lrm", "crm"):
            daemon = self.daemon(kind, machine.name)
            if daemon is not None and daemon.machine is machine:
                daemon.end()

    def configure(self, machine: Machine, membership: Membership) -> None:
        """Configure a machine with this membership, and let its daemons start with it."""
        if machine.membership.digest != membership.digest:
            machine.membership = membership
            for kind in ("crm", "lrm"):
                self.kill(kind, machine.name)

    def daemon(self, kind: str, name: str) -> Daemon | None:
        """Return a node's LRM or CRM, alive or not."""
        return self.lrms.get(name) if kind == "lrm" else self.crms.get(name)

    def kill(self, kind: str, name: str, restart_after: float | None = None) -> None:
        """Kill a node's LRM or CRM."""
        daemon = self.daemon(kind, name)
        if daemon is not None:
            daemon.kill(restart_after)

    def manager(self) -> CrmDaemon | None:
        """Return the manager, if there is one."""
        daemon = self.crms.get(self.world.storage.holder)
        return daemon if daemon is not None and daemon.alive and daemon.state is not None else None

    def strike(self, kind: str, name: str, blow: Blow) -> None:
        """Let a daemon be struck at one of its next writes."""
        self._blows.setdefault((kind, name), []).append(blow)

    def strike_no_more(self) -> None:
        """Take back what was to strike daemons and machines."""
        self._blows.clear()
        self.late_frees.clear()
        self.strikes = False

    def is_struck(self, daemon: Daemon) -> bool:
        """Return whether a daemon is still to be struck."""
        if daemon.kind == "crm" and daemon.machine.name in self.late_frees:
            return True
        return bool(self._blows) and bool(self._blows.get((daemon.kind, daemon.machine.name)))

    def blow(self, daemon: Daemon, place: Place) -> Blow | None:
        """Return what strikes a daemon at this effect."""
        waiting = self._blows.get((daemon.kind, daemon.machine.name), [])
        for blow in waiting:
            if blow.stage not in place.value:
                continue
            blow.count -= 1
            if blow.count <= 0:
                waiting.remove(blow)
                return blow
        return None

    def want(self, wanted: Wanted) -> bool:
        """Write a configuration, as its next version; return whether that was possible.

        It is refused where ``operator/operations/change.py`` refuses it: on a configuration that may not
        be the newest.
        """  # noqa: E501
        storage = self.world.storage
        state, unreadable = storage.newest_manager()
        newest = storage.wanted
        if unreadable or not storage.wanted_readable:
            self.world.say("the configuration is not changed: a record is damaged")
            return False
        if state is not None and not newest.at_least(state.generation, state.config_version):
            self.world.say("the configuration is not changed: it is older than the manager's")
            return False
        storage.configuration_lease += 1
        storage.note_leases(self.world.now)
        version = storage.configuration_lease
        if newest.version >= version:
            self.world.say("the configuration is not changed: its lease is older")
            return False
        self.world.before_change(None)
        storage.configuration.put(replace(wanted, version=version), self.world.now)
        storage.wanted_at = self.world.now
        self.world.after_change(None)
        return True

    def set_board(self, held: str) -> None:
        """Write the whiteboard's global block."""
        if held != self.world.storage.held or not self.world.storage.board_readable:
            self.world.before_change(None)
            self.world.storage.held = held
            self.world.storage.held_since = self.world.now
            self.world.storage.board_readable = True
            self.world.after_change(None)

    def make_stale(self, name: str, stale: bool, *, back: bool = False) -> None:
        """Let a node's view of the storage stand still, or go on; with *back* one record behind."""
        world, storage = self.world, self.world.storage
        if stale and any(one.lies_until > world.now for one in world.machines.values()):
            return
        world.before_change(None)
        if not stale:
            world.stale.pop(name, None)
        elif name not in world.stale:
            reports = {one: storage.report(one) for one in world.machines}
            lost = frozenset(one for one, slot in storage.reports.items() if not slot.is_whole)
            state = storage.manager_record()
            if back:
                reports = {
                    one: slot.before or reports[one] for one, slot in storage.reports.items()
                }
                holder = storage.states.get(state.manager) if state is not None else None
                state = holder.before if holder is not None and holder.before else state
            free = frozenset(one.name for one in world.machines.values() if one.freed or one.left)
            world.stale[name] = StaleView(world.now, free, reports, lost, state, storage.wanted)
        world.after_change(None)

    def wake_managers(self) -> None:
        """A report was written: who manages looks at it."""
        for daemon in self.crms.values():
            if daemon.state is not None or daemon.waits:
                daemon.wake()

    def wake_lrms(self) -> None:
        """The manager's record was written: all LRMs look at it."""
        for daemon in self.lrms.values():
            daemon.wake()

    def _boot(self, machine: Machine) -> None:
        self.start("lrm", machine)
        self.start("crm", machine)

    def _renewals_end(self, machine: Machine) -> None:
        """Look at a node whose host lease is no longer renewed once it has to have stopped."""
        daemon = self.lrms.get(machine.name)
        if daemon is not None:
            self.world.later(stops_after(self.world.settings), daemon.look_at_loss)

    def _machine_gone(self, machine: Machine) -> None:
        # What was old stood in its memory.
        self.world.stale.pop(machine.name, None)
        self.leave(machine)

    def _before_change(self, machine: Machine | None) -> None:
        now = self.world.now
        for daemon in self.crms.values():
            daemon.catch_up(now)
        for lrm in self.lrms.values():
            if (machine is None or lrm.machine is machine) and lrm.alive:
                lrm.catch_up(now)

    def _after_change(self, machine: Machine | None) -> None:
        now = self.world.now
        for daemon in self.crms.values():
            if daemon.alive:
                daemon.refresh(now)
                daemon.wake(news=False)
        for lrm in self.lrms.values():
            if (machine is None or lrm.machine is machine) and lrm.alive:
                lrm.refresh(now)
                lrm.wake(news=False)
