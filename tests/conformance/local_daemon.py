# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node's LRM in a scenario: performs the effects of ``cluster/lrm/cycle.py``.

Nothing is decided here.  The lock of the node stands for its host lease: it binds the watchdog, and
the LRM has it, as in Proxmox VE, while its report says that it is active.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.lrm import (
    cycle,
    effects,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (
    HostState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    Phase,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    ServiceStatus,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import (
    LeaseError,
    StorageError,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.performing import (
    play,
)
from ansible_collections.holdfast.ha.tests.conformance.agents import Workers
from ansible_collections.holdfast.ha.tests.conformance.cluster_daemon import (
    MOST_TURNS,
    common_effects,
)
from ansible_collections.holdfast.ha.tests.conformance.storage import Storage, boot_id, membership
from ansible_collections.holdfast.ha.tests.conformance.words import lrm_word
from ansible_collections.holdfast.ha.tests.conformance.world import (
    LOCK_LIFE,
    WATCHDOG_TIMEOUT,
    Machine,
)

IDLE_AFTER = 1200.0
"""Seconds: 60 rounds of 20 s, as in Proxmox VE's simulator."""

WATCHDOG = "lrm"

NOT_NEEDED = (
    effects.ConfirmHostLease,
    effects.ContinueAfter,
    effects.KeepReport,
    effects.ResizeWorkers,
    effects.Supervise,
    effects.WakeManager,
    effects.WriteHeartbeat,
)
"""What has nothing to do here: reading the host lease confirms it, and jobs end at once."""

BOUND = (Phase.ACTIVE, Phase.MAINTENANCE)


class LocalDaemon:
    """The LRM of one machine; *room* is what the machine has of CPU and memory.

    What an LRM does that is not *traced* stands in no line of the trace.
    """

    def __init__(
        self,
        storage: Storage,
        machine: Machine,
        room: tuple[float, float] | None = None,
        *,
        traced: bool = True,
    ) -> None:
        """Start with nothing read; the cycle is started by the first round that can read."""
        self.shutdown, self.traced = "", traced
        self._storage, self._machine = storage, machine
        self._world, self._name = storage.world, machine.name
        self._settings = cycle.LrmSettings(
            self._name,
            boot_id(machine),
            WATCHDOG_TIMEOUT,
            float(LOCK_LIFE),
            joins=False,
            room=room,
            idle_after=IDLE_AFTER,
        )
        self._lrm: cycle.Lrm | None = None
        self._workers = Workers(self._world, machine, self._status, self._obstacle)
        self._wrote = False
        self._word = "startup"
        self._performers = self._make_performers()
        self._show(Phase.WAIT.value)

    @property
    def has_ended(self) -> bool:
        """Whether the process has ended, as it was told to."""
        return self._lrm is not None and self._lrm.ends

    def begin_round(self) -> None:
        """Start the cycle if the storage can be read, renew the lock, go on with failed starts."""
        try:
            self._lrm = self._lrm or play(cycle.start(self._settings), self._performers)
        except StorageError:
            return
        if self._lrm.report.phase in BOUND:
            self._world.bind(self._machine, self._name, WATCHDOG)
        self._workers.next_round()

    def play_turns(self) -> bool:
        """Play turns until one changes nothing; return whether one did."""
        changed = False
        for _turn in range(MOST_TURNS):
            if not self.play_turn():
                break
            changed = True
        return changed

    def play_turn(self) -> bool:
        """Play one turn; return whether it changed anything."""
        if self._lrm is None or self._lrm.ends:
            return False
        self._wrote = False
        play(cycle.turn(self._lrm), self._performers)
        self._show(lrm_word(self._lrm))
        if self._lrm.ends:
            self._world.let_go(self._machine, self._name, WATCHDOG)
        return self._wrote or self._workers.have_ended()

    def _show(self, word: str) -> None:
        if word != self._word and self.traced:
            self._world.say("lrm", self._name, f"{self._word}>{word}")
        self._word = word

    def _make_performers(self) -> dict[type, Callable[[Any], Any]]:
        storage, machine, own = self._storage, self._machine, membership(self._world)
        return {
            **common_effects(self._world, *NOT_NEEDED),
            effects.AdoptHostLease: lambda _: self._adopt(),
            effects.ReadOwnHostLease: lambda _: self._read_host_lease(),
            effects.ReadManagerRecord: lambda _: storage.read(machine, storage.state),
            effects.ReadDesiredFrom: lambda _: storage.read(machine, storage.desired),
            effects.ReadKeptReport: lambda _: effects.NumberedReport(),
            effects.ReadOwnReport: lambda _: storage.read(
                machine, effects.NumberedReport(1, storage.reports.get(self._name))
            ),
            effects.WriteReport: self._write_report,
            effects.OwnReportStands: lambda _: True,
            effects.TakeJobs: lambda _: self._workers.take(),
            effects.BeginJob: lambda effect: self._workers.begin(effect.job),
            effects.CountTerms: lambda _: int(bool(self.shutdown)),
            effects.ReadShutdown: lambda _: self.shutdown,
            effects.ReadOwnMembership: lambda _: own,
            effects.ReadSecretProblems: lambda _: {},
        }

    def _adopt(self) -> effects.Adopted:
        if self._read_host_lease().state is not HostState.LIVE:
            raise LeaseError("the lock of this node was taken to fence it")
        return effects.Adopted(self._machine.boot, float(LOCK_LIFE))

    def _read_host_lease(self) -> effects.OwnHostLease:
        self._storage.check_writable(self._machine)
        own = self._world.free(self._name, self._name)
        state = HostState.LIVE if own else HostState.FAIL
        return effects.OwnHostLease(self._name, self._machine.boot, state, 0.0)

    def _write_report(self, effect: effects.WriteReport) -> None:
        """Write the report; the lock and the watchdog go with the phase that it shows."""
        self._storage.check_writable(self._machine)
        before, report = self._storage.reports.get(self._name), effect.report
        was_bound = before is not None and before.boot == report.boot and before.phase in BOUND
        self._storage.reports[self._name] = report
        self._wrote = True
        if was_bound and report.phase is Phase.WAIT:
            self._world.let_go(self._machine, self._name, WATCHDOG)
        elif report.phase in BOUND and not was_bound:
            self._world.bind(self._machine, self._name, WATCHDOG)
            self._world.say("lrmlock", self._name, "got")

    def _obstacle(self) -> str:
        return cycle.start_obstacle(self._lrm, self._world.clocks()) if self._lrm else ""

    def _status(self, service_id: str) -> ServiceStatus | None:
        state = self._lrm.state if self._lrm is not None else None
        status = state.services.get(service_id) if state is not None else None
        return status if status is not None and status.node == self._name else None
