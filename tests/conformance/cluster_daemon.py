# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node's CRM in a scenario: performs the effects of ``cluster/crm/cycle.py``.

Nothing is decided here.  The manager lock stands for the manager lease, and binds a watchdog as it
does in Proxmox VE.  A fence takes the lock of its node once that has expired.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm import (
    cycle,
    effects,
    memory,
    pausing,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.repair_plan import (
    StoredRecords,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.effects import (
    Clocks,
    ForgetRepeated,
    Log,
    ReadClocks,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.lease_freeing import (  # noqa: E501
    Freeing,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (
    FenceReport,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import LeaseError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.performing import (
    play,
)
from ansible_collections.holdfast.ha.tests.conformance.observing import (
    TIMING,
    has_heartbeat,
    observe,
)
from ansible_collections.holdfast.ha.tests.conformance.storage import (
    SLOT,
    Storage,
    host_ids,
    membership,
)
from ansible_collections.holdfast.ha.tests.conformance.words import Words, crm_word
from ansible_collections.holdfast.ha.tests.conformance.world import (
    LOCK_LIFE,
    MANAGER_LOCK,
    Machine,
    World,
)

MOST_TURNS = 30
"""The turns of one round at most; only a service that never comes to rest takes all of them."""

WATCHDOG = "crm"
NOT_NEEDED = (effects.AwaitPredecessor, effects.ShowTrouble, effects.WakeNodes)
"""What has nothing to do here.  All LRMs go on after the manager anyway."""


def common_effects(world: World, *not_needed: type) -> dict[type, Callable[[Any], Any]]:
    """Return what performs the effects that both cycles have, and what is *not_needed* here."""
    return {
        ReadClocks: lambda _: world.clocks(),
        **dict.fromkeys((Log, ForgetRepeated, *not_needed), lambda _: None),
    }


def fence_end(node: str, sent: Clocks, ended: Clocks) -> effects.FenceEnd:
    """Return the end of a fence by a node's lock: it is free only behind the node's watchdog."""
    text = "its lock was taken behind its watchdog"
    report = FenceReport(node, True, text, sent.wall, ended.wall, verified=False)
    return effects.FenceEnd(report, sent.mono, ended.mono)


class ClusterDaemon:
    """The CRM of one machine; *shutdown* says that it was told to end."""

    def __init__(self, storage: Storage, words: Words, machine: Machine) -> None:
        """Start as neither manager nor candidate."""
        self.shutdown = False
        self._storage, self._words, self._machine = storage, words, machine
        self._world, self._name = storage.world, machine.name
        self._last_beat = dict.fromkeys(self._world.machines, self._world.now)
        self._fencing: dict[str, Clocks] = {}
        self._ended: list[effects.FenceEnd] = []
        self._has_lock = self._wrote = False
        self._role = "startup"
        ids = host_ids(self._world)
        settings = memory.CrmSettings(
            self._name, ids, TIMING, lease_silence=LOCK_LIFE, even_for=0.0
        )
        self._crm = memory.start_crm(settings)
        self._performers = self._make_performers()
        self._show_role()

    @property
    def is_manager(self) -> bool:
        """Whether this CRM has the manager lock, as far as it knows."""
        return self._has_lock

    def begin_round(self) -> None:
        """Renew the manager lock, which binds the watchdog unless the cluster is disarmed."""
        if not self._has_lock:
            return
        self._has_lock = self._world.bind(self._machine, MANAGER_LOCK, WATCHDOG)
        if not self._has_lock or self._storage.state.disarm == pausing.DISARMED:
            self._machine.watchdogs.pop(WATCHDOG, None)

    def play_turns(self) -> None:
        """Play turns until one changes nothing."""
        for _turn in range(MOST_TURNS):
            self._wrote = False
            self._take_locks()
            play(cycle.turn(self._crm), self._performers)
            self._show_role()
            if not self._wrote:
                break

    def end(self) -> None:
        """End as the process does when it is told to."""
        self.shutdown = True
        play(cycle.end(self._crm), self._performers)

    def _show_role(self) -> None:
        role = crm_word(self._crm, has_lock=self._has_lock)
        if role != self._role:
            self._world.say("crm", self._name, f"{self._role}>{role}")
            self._role = role

    def _make_performers(self) -> dict[type, Callable[[Any], Any]]:
        storage, machine, own = self._storage, self._machine, membership(self._world)
        return {
            **common_effects(self._world, *NOT_NEEDED),
            effects.AdoptHostLease: lambda _: self._confirm_host_lease(),
            effects.ConfirmHostLease: lambda _: self._confirm_host_lease(),
            effects.LeaveHostLease: lambda _: self._lose_lock(),
            effects.Look: lambda _: storage.read(machine, self._look()),
            effects.TakeEnded: lambda _: self._take_ended(),
            effects.HoldsManagerLease: lambda _: self._has_lock,
            effects.AcquireManagerLease: lambda _: self._acquire(),
            effects.ReleaseManagerLease: lambda _: self._release(),
            effects.ReadManagerLease: lambda _: effects.LeaseHolder(
                storage.manager_lease.node, storage.manager_lease.version
            ),
            effects.ReadManagerRecord: lambda _: storage.read(machine, storage.state),
            effects.ReadReadableState: lambda _: storage.read(machine, storage.state),
            effects.ReadRecords: lambda _: storage.read(machine, self._records()),
            effects.ReadDesired: lambda _: storage.read(machine, (storage.desired, SLOT)),
            effects.ReadIntent: lambda _: storage.intent,
            effects.WriteIntent: self._write_intent,
            effects.ReadOwnFreeing: lambda _: storage.freeing.get(self._name, Freeing()),
            effects.OwnRecordStands: lambda _: True,
            effects.HasNewHeartbeat: lambda _: False,
            effects.WriteState: self._write,
            effects.WriteFreeing: lambda effect: storage.write_freeing(self._name, effect.freeing),
            effects.ReadHostLease: self._read_host_lease,
            effects.ReadOwnMembership: lambda _: own,
            effects.Fence: self._fence,
            effects.IsEnding: lambda _: self.shutdown,
        }

    def _confirm_host_lease(self) -> int:
        if not self._world.quorate(self._name):
            raise LeaseError("this node has no quorum")
        return self._machine.boot

    def _lose_lock(self) -> None:
        self._has_lock = False
        self._machine.watchdogs.pop(WATCHDOG, None)

    def _look(self) -> effects.Observation:
        beating = (one for one in self._world.machines if has_heartbeat(self._storage, one))
        self._last_beat.update(dict.fromkeys(beating, self._world.now))
        return observe(self._storage, self._last_beat)

    def _acquire(self) -> int | None:
        """Take the manager lock; each time it is taken again counts as a version of the lease."""
        if not self._has_lock and self._world.bind(self._machine, MANAGER_LOCK, WATCHDOG):
            self._has_lock = True
            self._storage.note_manager(self._name)
            self._world.say("master", self._name, "lock")
        return self._storage.manager_lease.version if self._has_lock else None

    def _release(self) -> None:
        if self._has_lock:
            self._world.let_go(self._machine, MANAGER_LOCK, WATCHDOG)
        self._has_lock = False

    def _records(self) -> StoredRecords:
        storage = self._storage
        leases = (storage.manager_lease, storage.desired.version)
        return StoredRecords(storage.state, storage.desired, SLOT, (), False, None, leases)

    def _write(self, effect: effects.WriteState) -> None:
        self._storage.check_writable(self._machine)
        self._storage.state = effect.state
        self._storage.write_freeing(self._name, effect.freeing)
        self._wrote = True
        for change in self._crm.changes:
            mode = effect.state.disarm_mode
            self._words.tell(change, self._storage.desired, mode, self._storage.removed)

    def _write_intent(self, effect: effects.WriteIntent) -> None:
        self._storage.intent = effect.intent
        self._storage.write_freeing(self._name, effect.freeing)

    def _read_host_lease(self, effect: effects.ReadHostLease) -> effects.HostLease:
        name = sorted(self._world.machines)[effect.host_id - 1]
        lock = self._world.locks.get(name)
        boot = self._world.machines[name].boot
        renewed = lock.renewed if lock is not None else 0
        return effects.HostLease(effect.host_id, boot, renewed, self._world.is_free(name))

    def _fence(self, effect: effects.Fence) -> None:
        self._fencing[effect.node] = self._world.clocks()
        self._take_locks()

    def _take_locks(self) -> None:
        """Carry on with the fences: each ends when it has its node's lock, or the node is back."""
        for node, sent in list(self._fencing.items()):
            if self._world.member(node):
                del self._fencing[node]
            elif self._world.fence(node, self._name):
                del self._fencing[node]
                self._ended.append(fence_end(node, sent, self._world.clocks()))

    def _take_ended(self) -> effects.Ended:
        ended, self._ended = tuple(self._ended), []
        return effects.Ended(fences=ended, fencing=frozenset(self._fencing))
