# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A whole simulated cluster: a world, its agents and fence devices, and all daemons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..cluster.model.desired import DesiredState
from ..cluster.model.state import Event
from .agents import Agents
from .crm import CrmDaemon
from .daemon import Daemon
from .fence_devices import Fencing
from .lrm import LrmDaemon
from .machine import Machine
from .settings import Settings
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
        self.world.before_change = self._before_change
        self.world.after_change = self._after_change
        self.world.on_machine_gone = self._machine_gone
        self.world.on_boot = self.boot

    def begin(self) -> None:
        """Let all machines that are on start their daemons; the others come up."""
        for machine in self.world.machines.values():
            if machine.on:
                self.boot(machine)
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
            self.lrms[machine.name] = self.new_lrm(machine)
        else:
            self.crms[machine.name] = self.new_crm(machine)

    def new_lrm(self, machine: Machine) -> LrmDaemon:
        """Return the LRM that is started on a machine."""
        return LrmDaemon(self, machine)

    def new_crm(self, machine: Machine) -> CrmDaemon:
        """Return the CRM that is started on a machine."""
        return CrmDaemon(self, machine)

    def start_again(self, kind: str, machine: Machine, boot: int) -> None:
        """Start a daemon that died, unless its machine was restarted meanwhile."""
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

    def daemon(self, kind: str, name: str) -> Daemon | None:
        """Return a node's LRM or CRM, alive or not."""
        return self.lrms.get(name) if kind == "lrm" else self.crms.get(name)

    def manager(self) -> CrmDaemon | None:
        """Return the manager, if there is one."""
        daemon = self.crms.get(self.world.storage.holder)
        return daemon if daemon is not None and daemon.alive and daemon.state is not None else None

    def want(self, desired: DesiredState) -> bool:
        """Write a configuration, as its next version; return whether that was possible.

        It is refused where ``operator/operations/change.py`` refuses it: on a configuration that may not
        be the newest.
        """  # noqa: E501
        storage = self.world.storage
        state, unreadable = storage.newest_manager()
        newest = storage.desired
        if unreadable or not storage.desired_readable:
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
        storage.configuration.put(replace(desired, version=version), self.world.now)
        storage.desired_at = self.world.now
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

    def wake_managers(self) -> None:
        """A report was written: who manages looks at it."""
        for daemon in self.crms.values():
            if daemon.state is not None or daemon.waits:
                daemon.wake()

    def wake_lrms(self) -> None:
        """The manager's record was written: the LRMs look at it that it has news for."""
        for daemon in self.lrms.values():
            if daemon.has_new_orders() or daemon.is_to_be_interrupted():
                daemon.wake()

    def catch_up_reserves(self) -> None:
        """The manager's record is about to have another state of a node: that ranks reserves."""
        for daemon in self.crms.values():
            if daemon.crm.is_reserve:
                daemon.catch_up(self.world.now)

    def wake_standbys(self) -> None:
        """The manager's record has another state of a node: who observes all nodes may change."""
        for daemon in self.crms.values():
            if daemon.state is None:
                daemon.wake(news=False)

    def boot(self, machine: Machine) -> None:
        """Start the daemons of a machine that is up."""
        self.start("lrm", machine)
        self.start("crm", machine)

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
