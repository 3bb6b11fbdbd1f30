# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A simulated cluster whose daemons and storage can fail, and that is checked at each event."""

from __future__ import annotations

from collections.abc import Sequence

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.repair_plan import (
    Keep,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.membership import (  # noqa: E501
    Membership,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.simulator.daemon import Daemon
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.simulator.fleet import Fleet
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.simulator.machine import Machine
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.simulator.settings import (
    Settings,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.simulator.shared_storage import (  # noqa: E501
    StaleView,
)
from ansible_collections.holdfast.ha.tests.simulation.faulty_daemons import (
    FaultyCrm,
    FaultyDaemon,
    FaultyLrm,
    Interruption,
    Place,
)
from ansible_collections.holdfast.ha.tests.simulation.rules import Rules, stops_after


class FaultyFleet(Fleet):
    """The daemons of a world, what is to happen to them, and the rules of safety."""

    def __init__(
        self,
        names: Sequence[str],
        settings: Settings,
        seed: int,
        *,
        every_round: bool = False,
        running: bool = True,
    ) -> None:
        """Build a new world in which nothing fails yet."""
        super().__init__(names, settings, seed, every_round=every_round, running=running)
        self.rules = Rules(self.world)
        self.world.checks = self.rules
        self.world.on_renewals_end = self._renewals_end
        self.write_fails: dict[str, float] = {}
        """The chance that a write fails, for each node where one may."""
        self.killed_between = 0.0
        """The chance that a daemon is killed between two acts."""
        self.late_frees: dict[str, float] = {}
        """For how long the next write hangs by which a node frees another's host lease."""
        self.interrupts = True
        """Whether machines and daemons are still interrupted."""
        self.keep = Keep.RUNNING if seed % 4 < 2 else Keep.FILE
        """What an operator keeps who repairs the records once all faults are over."""
        self.taken_back = False
        """Whether operators have taken back what they had declared."""
        self.went_back = False
        """Whether the storage, or what was on it, is as it was before."""
        self._interruptions: dict[tuple[str, str], list[Interruption]] = {}

    def new_lrm(self, machine: Machine) -> FaultyLrm:
        return FaultyLrm(self, machine)

    def new_crm(self, machine: Machine) -> FaultyCrm:
        return FaultyCrm(self, machine)

    def boot(self, machine: Machine) -> None:
        self.rules.joined(machine)
        super().boot(machine)

    def kill(self, kind: str, name: str, restart_after: float | None = None) -> None:
        """Kill a node's LRM or CRM."""
        daemon = self.daemon(kind, name)
        if daemon is not None:
            daemon.kill(restart_after)

    def configure(self, machine: Machine, membership: Membership) -> None:
        """Configure a machine with this membership, and let its daemons start with it."""
        if machine.membership.digest != membership.digest:
            machine.membership = membership
            for kind in ("crm", "lrm"):
                self.kill(kind, machine.name)

    def hang(self, kind: str, name: str, seconds: float) -> None:
        """Let a node's LRM or CRM make no progress for a while."""
        daemon = self.daemon(kind, name)
        if isinstance(daemon, FaultyDaemon):
            daemon.hang(seconds)

    def interrupt(self, kind: str, name: str, interruption: Interruption) -> None:
        """Let a daemon be interrupted at one of its next effects."""
        self._interruptions.setdefault((kind, name), []).append(interruption)
        daemon = self.daemon(kind, name)
        if daemon is not None:
            daemon.wake(news=False)

    def interrupt_no_more(self) -> None:
        """Interrupt no daemon and no machine from now on."""
        self._interruptions.clear()
        self.late_frees.clear()
        self.interrupts = False

    def is_to_interrupt(self, daemon: Daemon) -> bool:
        """Return whether a daemon is still to be interrupted."""
        if not (self._interruptions or self.late_frees):
            return False
        if daemon.kind == "crm" and daemon.machine.name in self.late_frees:
            return True
        return bool(self._interruptions.get((daemon.kind, daemon.machine.name)))

    def take_interruption(self, daemon: Daemon, place: Place) -> Interruption | None:
        """Return what interrupts a daemon at this effect, and forget it; None for nothing."""
        waiting = self._interruptions.get((daemon.kind, daemon.machine.name), [])
        for one in waiting:
            if one.stage not in place.value:
                continue
            one.count -= 1
            if one.count <= 0:
                waiting.remove(one)
                return one
        return None

    def make_stale(self, name: str, stale: bool, *, back: bool = False) -> None:
        """Let a node's view of the storage stop, or go on; with *back* one record behind."""
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
            world.stale[name] = StaleView(world.now, free, reports, lost, state, storage.desired)
        world.after_change(None)

    def _renewals_end(self, machine: Machine) -> None:
        """Check a node that lost its host lease once it has to have stopped its services."""
        daemon = self.lrms.get(machine.name)
        if isinstance(daemon, FaultyLrm):
            self.world.later(stops_after(self.world.settings), daemon.look_at_loss)
