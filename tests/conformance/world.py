# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The hardware that a scenario plays on, with the timings of Proxmox VE's HA simulator.

Machines with power, network and watchdogs; locks that live 120 s after their last
renewal; what really runs where; and the lines of the trace.  The stub agents do what the
digits of an ``fa`` service say: the second is how often its start fails, the third how
often its move does, the fourth that it cannot be stopped, the sixth on which node only.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.effects import (
    Clocks,
)

LOCK_LIFE = 120
WATCHDOG_TIMEOUT = 60
WALL = 1_000_000.0
"""The wall clock at the beginning of a scenario, in seconds."""

MANAGER_LOCK = "manager"


@dataclass
class Machine:
    """One node's hardware; *watchdogs* are open ones with the time of their last pet."""

    name: str
    power: bool = False
    network: bool = False
    boot: int = 0
    reads: bool = True
    updates: bool = True
    shutdown: str = ""
    watchdogs: dict[str, int] = field(default_factory=dict)
    running: set[str] = field(default_factory=set)


@dataclass
class Lock:
    """Who has a lock, and when it was renewed last."""

    holder: str
    renewed: int


class World:
    """Machines, locks, the clock, what runs, and the trace so far."""

    def __init__(self, names: tuple[str, ...]) -> None:
        """Build the machines, all of them off."""
        self.now = 0
        self.machines = {name: Machine(name) for name in names}
        self.locks: dict[str, Lock] = {}
        self.trace: list[tuple[int, str, str, str]] = []
        self.shown: dict[str, str] = {}
        self._starts: dict[str, int] = {}
        self._moves: dict[str, int] = {}

    def clocks(self) -> Clocks:
        """Return the clocks of every node."""
        return Clocks(float(self.now), WALL + self.now, float(self.now))

    def say(self, kind: str, subject: str, detail: str) -> None:
        """Add a line to the trace."""
        self.trace.append((self.now, kind, subject, detail))

    def member(self, name: str) -> bool:
        """Return whether a node is in reach of the others and of the storage."""
        machine = self.machines[name]
        return machine.power and machine.network

    def quorate(self, name: str) -> bool:
        """Return whether a node may read, write and renew: it is one of a majority."""
        members = sum(self.member(one) for one in self.machines)
        return self.member(name) and 2 * members > len(self.machines)

    def free(self, lock: str, holder: str) -> bool:
        """Return whether *holder* would get a lock."""
        held = self.locks.get(lock)
        return held is None or held.holder == holder or self.now - held.renewed > LOCK_LIFE

    def take(self, lock: str, holder: str) -> bool:
        """Take or renew a lock."""
        if not self.quorate(holder.partition("/")[0]) or not self.free(lock, holder):
            return False
        self.locks[lock] = Lock(holder, self.now)
        return True

    def bind(self, machine: Machine, lock: str, watchdog: str) -> bool:
        """Take or renew a lock for a machine, which binds the machine to a watchdog."""
        if not self.take(lock, machine.name):
            return False
        machine.watchdogs[watchdog] = self.now
        return True

    def let_go(self, machine: Machine, lock: str, watchdog: str) -> None:
        """Give a lock up and close its watchdog."""
        machine.watchdogs.pop(watchdog, None)
        self.release(lock, machine.name)

    def is_free(self, lock: str) -> bool:
        """Return whether nobody has a lock, or its holder did not renew it in time."""
        return self.free(lock, "")

    def fence(self, name: str, by: str) -> bool:
        """Take the lock of a node for the manager on the node *by*."""
        return self.take(name, f"{by}/fence")

    def is_fenced(self, name: str) -> bool:
        """Return whether the lock of a node is one that was taken to fence it."""
        held = self.locks.get(name)
        return held is not None and held.holder.endswith("/fence") and not self.is_free(name)

    def release(self, lock: str, holder: str) -> None:
        """Give a lock up."""
        held = self.locks.get(lock)
        if held is not None and held.holder == holder:
            del self.locks[lock]

    def cut_power(self, machine: Machine) -> None:
        """Take a machine's power: nothing runs on it any more."""
        machine.power = machine.network = False
        machine.shutdown = ""
        machine.watchdogs.clear()
        for service_id in machine.running:
            if self.shown.get(service_id) == machine.name:
                del self.shown[service_id]
        machine.running.clear()

    def start(self, service_id: str, machine: Machine) -> bool:
        """Let the stub agent start a service; False if it fails."""
        if service_id not in machine.running:
            if self._start_fails(service_id, machine):
                self.say("fail", service_id, f"start@{machine.name}")
                return False
            machine.running.add(service_id)
        self.show(service_id, machine)
        return True

    def show(self, service_id: str, machine: Machine) -> None:
        """Say that a service runs on a machine, once."""
        if self.shown.get(service_id) != machine.name:
            self.shown[service_id] = machine.name
            self.say("run", service_id, f"+{machine.name}")

    def stop(self, service_id: str, machine: Machine) -> bool:
        """Let the stub agent stop a service; False if it fails."""
        if service_id.startswith("fa:") and _digit(service_id, 3) and service_id in machine.running:
            self.say("fail", service_id, f"stop@{machine.name}")
            return False
        if service_id in machine.running:
            machine.running.discard(service_id)
            self.shown.pop(service_id, None)
            self.say("run", service_id, f"-{machine.name}")
        return True

    def move_fails(self, service_id: str, machine: Machine) -> bool:
        """Return whether a service's move away fails this time."""
        if not service_id.startswith("fa:"):
            return False
        tries = self._moves[service_id] = self._moves.get(service_id, 0) + 1
        if tries <= _digit(service_id, 2):
            self.say("fail", service_id, f"move@{machine.name}")
            return True
        self._moves[service_id] = 0
        return False

    def _start_fails(self, service_id: str, machine: Machine) -> bool:
        if not service_id.startswith("fa:"):
            return False
        only = _digit(service_id, 5)
        if only and machine.name != f"node{only}":
            return False
        tries = self._starts[service_id] = self._starts.get(service_id, 0) + 1
        if tries <= _digit(service_id, 1):
            return True
        self._starts[service_id] = 0
        return False


def _digit(service_id: str, place: int) -> int:
    digits = service_id.partition(":")[2]
    return int(digits[place]) if len(digits) > place and digits[place].isdigit() else 0
