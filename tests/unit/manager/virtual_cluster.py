# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The two daemons of every node in a virtual world, driving the real steps.

They do what ``node/lrm.py``, ``node/crm.py`` and ``node/observer.py`` do: look,
decide, write, and only then act.  A daemon can be killed between its write and its
acts; one that is killed is started again by its machine a moment later.
"""

from __future__ import annotations

from dataclasses import replace

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.manager import (
    cluster,
    election,
    local,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.manager.cluster import Intent
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.manager.jobs import JobEnd
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.manager.seen import (
    Answer,
    FenceReport,
    LeaseSight,
    NodeSeen,
    PowerReport,
    Seen,
    Timing,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.manager.state import (
    ClusterState,
)
from ansible_collections.holdfast.ha.tests.unit.manager.virtual_world import (
    LEASE_DEAD,
    LEASE_FAILS,
    Machine,
    World,
)

ROUND = 0.8
TIMING = Timing(fence_window=120.0, fence_limit=6)


class StorageFails(Exception):
    """A read or write of this node does not succeed."""


class Daemon:
    """A process that goes round until it is killed."""

    kind = ""

    def __init__(self, fleet: Cluster, machine: Machine) -> None:
        """Start at once, and again each round."""
        self.fleet, self.world, self.machine = fleet, fleet.world, machine
        self.storage = self.world.storage
        self.alive = True
        self._go()

    def kill(self) -> None:
        """End without a last word; the machine starts another one."""
        if not self.alive:
            return
        self.alive = False
        self.gone()
        if self.machine.on:
            self.world.say(f"{self.kind} of {self.machine.name} is killed")
            boot, machine = self.machine.boot, self.machine
            self.world.later(
                self.world.random.uniform(0.3, 3.0),
                lambda: machine.boot == boot and self.fleet.start(self.kind, machine),
            )

    def gone(self) -> None:
        """Do what the kernel does when this process is gone."""

    def round(self) -> None:
        """Look, decide, write, act: once."""
        raise NotImplementedError

    def killed_between(self) -> bool:
        """Return whether this process is killed right here."""
        if self.world.random.random() < self.world.trouble.killed_between:
            self.kill()
        return not self.alive

    def needs_storage(self) -> None:
        """Raise ``StorageFails`` while this machine has no way to the storage."""
        if not self.machine.storage:
            raise StorageFails

    def write_fails(self) -> bool:
        """Return whether a write fails; a failed one may have been done all the same."""
        return (
            not self.machine.storage or self.world.random.random() < self.world.trouble.write_fails
        )

    def _go(self) -> None:
        if not self.alive:
            return
        if not self.machine.frozen:
            self.round()
        self.world.later(ROUND * self.world.random.uniform(0.9, 1.1), self._go)


class LocalDaemon(Daemon):
    """An LRM."""

    kind = "lrm"

    def __init__(self, fleet: Cluster, machine: Machine) -> None:
        """Take up what a predecessor left."""
        last = fleet.world.storage.reports.get(machine.name)
        self.report, self.memory = local.resume(last, machine.name, f"boot{machine.boot}")
        self.generation = machine.generation
        self.written = None
        self.pending: list[JobEnd] = []
        self.ended: list[JobEnd] = []
        self.busy: set[str] = set()
        self.wanted = None
        self.shutdown = ""
        machine.writes_since = fleet.world.now
        super().__init__(fleet, machine)

    def gone(self) -> None:
        self.machine.starting.clear()
        self.machine.writes_since = float("inf")

    def round(self) -> None:
        trouble = ""
        if self.world.lease_age(self.machine) >= LEASE_FAILS:
            trouble = "was not renewed"
        elif self.machine.freed or self.machine.generation != self.generation:
            trouble = "is no longer that of this start"
        state = None
        if self.machine.storage:
            self.storage.heartbeats[self.machine.name] += 1
            state = self.storage.manager_record()
        else:
            self.machine.writes_since = self.world.now
        if state is not None and self.storage.wanted.version >= state.config_version:
            self.wanted = self.storage.wanted
        self.busy.difference_update(end.job.service.id for end in self.ended)
        self.pending.extend(self.ended)
        self.ended.clear()
        seen = local.LocalSeen(
            now=self.world.now,
            wall=self.world.now,
            state=state,
            wanted=self.wanted,
            lease_trouble=trouble,
            ended=tuple(self.pending),
            busy=frozenset(self.busy),
            shutdown=self.shutdown,
        )
        step = local.step(self.report, self.memory, seen)
        if step.report.epoch < self.report.epoch:
            self.world.violated("S6", f"{self.machine.name} goes back to an older epoch")
        if step.report != self.written:
            fails = self.write_fails()
            if self.machine.storage and (not fails or self.world.random.random() < 0.5):
                self.storage.reports[self.machine.name] = step.report
            if not fails:
                self.written = step.report
            elif not trouble:
                return
        self.report, self.memory = step.report, step.memory
        self.pending.clear()
        if step.ends:
            self.world.power_off(self.machine, f"it is shut down ({self.shutdown})")
            self.world.power_on(self.machine)
            return
        for job in step.jobs:
            if self.killed_between():
                return
            self.busy.add(job.service.id)
            self.world.begin(self.machine, job, lambda: self.alive, self.ended.append)


class ClusterDaemon(Daemon):
    """A CRM: the manager, or a candidate."""

    kind = "crm"

    def __init__(self, fleet: Cluster, machine: Machine) -> None:
        """Watch everybody for a while before judging."""
        names = list(fleet.world.machines)
        self.state: ClusterState | None = None
        self.written: ClusterState | None = None
        self.changed = dict.fromkeys(names, fleet.world.now)
        self.timestamps: dict[str, int] = {}
        self.heard: set[str] = set()
        self.asked: dict[str, float] = {}
        self.answered: dict[str, float] = {}
        self.fencing: set[str] = set()
        self.ended: list[tuple[FenceReport, float, float]] = []
        self.fences: list[FenceReport] = []
        self.powers: list[PowerReport] = []
        self.not_before = 0.0
        self.trouble = ""
        self.begun = fleet.world.now
        super().__init__(fleet, machine)

    def gone(self) -> None:
        if self.storage.holder == self.machine.name:
            self.storage.holder = ""

    def round(self) -> None:
        try:
            self.needs_storage()
            nodes = {name: self._see(other) for name, other in self.world.machines.items()}
            self._collect()
            if self.state is None:
                self._try_for_manager(nodes)
            if self.state is not None and self.alive:
                self._manage(nodes)
        except StorageFails:
            self.trouble = "this node's own storage fails"

    def _see(self, other: Machine) -> NodeSeen:
        """Look at one node, as the observer does."""
        now, name = self.world.now, other.name
        heartbeat = self.storage.heartbeats[name]
        if heartbeat != self.timestamps.get(name):
            if name in self.timestamps:
                self.heard.add(name)
                self.changed[name] = now
            self.timestamps[name] = heartbeat
        age = now - self.changed[name]
        answer, lease = Answer.UNKNOWN, LeaseSight.RENEWED
        if age > TIMING.suspect_after / 2:
            answer, lease = self._answer(other), self._lease(other)
        else:
            self.asked.pop(name, None)
        report = self.storage.reports.get(name)
        return NodeSeen(age, answer, lease, report, beats=name in self.heard)

    def _answer(self, other: Machine) -> Answer:
        now = self.world.now
        asked = self.asked.setdefault(other.name, now)
        if other.awake and other.network and self.machine.network and now > asked:
            self.answered[other.name] = now
        answered = self.answered.get(other.name)
        if answered is not None and now - answered <= 1.0:
            return Answer.YES
        since = asked if answered is None else max(asked, answered)
        return Answer.NO if now - since >= 1.0 else Answer.UNKNOWN

    def _lease(self, other: Machine) -> LeaseSight:
        if other.freed:
            return LeaseSight.FREE
        unchanged = self.world.now - max(other.renewed, self.begun)
        if unchanged >= LEASE_DEAD and self.world.watchdogs:
            return LeaseSight.DEAD
        if unchanged >= LEASE_FAILS:
            return LeaseSight.FAILED
        return LeaseSight.RENEWED if unchanged < LEASE_FAILS / 2 else LeaseSight.STALE

    def _collect(self) -> None:
        """Take the fences that ended; a proof waits while the node may still be writing."""
        waiting = []
        for report, sent, ended in self.ended:
            changed = self.changed[report.node]
            if not report.confirmed or changed <= sent:
                self.fences.append(report)
            elif changed > ended + ROUND:
                self.fences.append(replace(report, quiet=False))
            elif self.world.now - changed >= TIMING.suspect_after:
                self.fences.append(report)
            else:
                waiting.append((report, sent, ended))
                continue
            self.fencing.discard(report.node)
        self.ended = waiting

    def _try_for_manager(self, nodes: dict[str, NodeSeen]) -> None:
        if self.storage.holder and self.storage.holder != self.machine.name:
            self._watch_holder(nodes)
            return
        if not self.storage.holder:
            self.storage.holder = self.machine.name
            self.storage.epoch += 1
        last = self.storage.manager_record() or ClusterState()
        intent = max(
            self.storage.intents.values(), key=lambda one: (one.epoch, one.recorded), default=None
        )
        self.state = cluster.take_over(
            last, self.storage.epoch, self.machine.name, self.world.now, intent
        )

    def _watch_holder(self, nodes: dict[str, NodeSeen]) -> None:
        holder = self.storage.holder
        candidacy = election.consider(
            self.machine.name,
            holder,
            nodes,
            {name: one.host_id for name, one in self.world.machines.items()},
            self._own_trouble(),
            self.storage.held,
            TIMING,
        )
        self.trouble = ""
        self.fences.clear()
        now = self.world.now
        if not candidacy.fence or now < self.not_before or holder in self.fencing:
            return
        self.not_before = now + TIMING.fence_retry
        age, epoch = nodes[holder].heartbeat_age, self.storage.epoch
        if self.write_fails():
            raise StorageFails
        intent = Intent(holder, candidacy.reason, now - age, now, epoch)
        self.storage.intents[self.machine.name] = intent
        if not self.killed_between():
            self._fence(holder)

    def _own_trouble(self) -> str:
        if self.world.lease_age(self.machine) >= LEASE_FAILS:
            return "this node's own host lease is not renewed"
        return self.trouble

    def _manage(self, nodes: dict[str, NodeSeen]) -> None:
        seen = Seen(
            now=self.world.now,
            wall=self.world.now,
            wanted=self.storage.wanted,
            config_slot=1,
            nodes=nodes,
            storage_trouble=self._own_trouble(),
            held=self.storage.held,
            fencing=frozenset(self.fencing),
            fences=tuple(self.fences),
            powers=tuple(self.powers),
        )
        self.trouble = ""
        step = cluster.step(self.state, seen, TIMING)
        if step.state != self.written:
            fails = self.write_fails()
            if not fails or self.world.random.random() < 0.5:
                before = self.storage.states.get(self.machine.name)
                same = before is not None and before.epoch == step.state.epoch
                self.world.written_manager(
                    self.machine.name, before if same else self.state, step.state
                )
                self.fleet.manager_writes += 1
            if fails:
                # What failed may stand on storage all the same: it is read back first.
                self.state = self.written = None
                raise StorageFails
            self.written = step.state
        self.state = step.state
        for fence in self.fences:
            machine = self.world.machines[fence.node]
            machine.freed = machine.freed or (fence.confirmed and fence.quiet and not machine.on)
        self.fences.clear()
        self.powers.clear()
        for order in step.fences:
            if self.killed_between():
                return
            self._fence(order.node)
        if len(self.fencing) > TIMING.concurrent_fences:
            self.world.violated("S12", f"{len(self.fencing)} fences at a time")
        for node in step.powers:
            if self.killed_between():
                return
            self._power_on(node)
        if step.board is not None and not self.killed_between() and not self.write_fails():
            self.storage.held = "set on the whiteboard" if step.board else ""

    def _fence(self, node: str) -> None:
        sent = self.world.now
        self.fencing.add(node)

        def done(confirmed: bool, text: str) -> None:
            report = FenceReport(node, confirmed, text, sent, self.world.now)
            self.ended.append((report, sent, self.world.now))

        self.world.fence(self.world.machines[node], self.machine.name, done)

    def _power_on(self, node: str) -> None:
        ok = self.world.random.random() < 0.8
        if ok:
            self.world.power_on(self.world.machines[node])
        report = PowerReport(node, ok, "" if ok else "the device is busy")
        self.world.later(0.5, lambda: self.powers.append(report))


class Cluster:
    """All the daemons of a world."""

    def __init__(self, seed: int) -> None:
        """Start an LRM and a CRM on every machine of a new world."""
        self.world = World(seed)
        self.manager_writes = 0
        self.daemons: dict[tuple[str, str], Daemon] = {}
        self.world.on_machine_gone = self._machine_gone
        self.world.on_boot = self._boot
        for machine in self.world.machines.values():
            self._boot(machine)

    def start(self, kind: str, machine: Machine) -> None:
        """Start a daemon that is not there."""
        present = self.daemons.get((kind, machine.name))
        if machine.on and (present is None or not present.alive):
            made = LocalDaemon if kind == "lrm" else ClusterDaemon
            self.daemons[kind, machine.name] = made(self, machine)

    def kill(self, kind: str, name: str) -> None:
        """Kill a node's LRM or CRM."""
        daemon = self.daemons.get((kind, name))
        if daemon is not None:
            daemon.kill()

    def manager(self) -> ClusterDaemon | None:
        """Return the manager, if there is one."""
        for daemon in self.daemons.values():
            if isinstance(daemon, ClusterDaemon) and daemon.alive and daemon.state is not None:
                return daemon
        return None

    def _boot(self, machine: Machine) -> None:
        self.start("lrm", machine)
        self.start("crm", machine)

    def _machine_gone(self, machine: Machine) -> None:
        self.kill("lrm", machine.name)
        self.kill("crm", machine.name)
