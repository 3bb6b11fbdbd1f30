# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The CRM daemon: performs the effects of ``cluster/crm/cycle.py`` on this node.

Nothing is decided here.  sanlock ends the daemon with SIGTERM when the daemon holds the manager
lease by the Python binding and the lockspace is lost.
"""

from __future__ import annotations

import importlib
import signal
from collections.abc import Callable
from typing import Any

from ...cluster.crm import cycle, effects
from ...cluster.crm.memory import CrmSettings, start_crm
from ...cluster.model.effects import Clocks, Cycle
from ...cluster.model.observed import HostState
from ...storage.lockspace.host_timing import LeaseTiming
from ...storage.record_format import Kind
from ...storage.whiteboard.block import GlobalBlock
from ..cluster_storage import MANAGER_LEASE, ClusterStorage
from ..configuration import CRM, LRM, NodeConfiguration
from ..log import Repeating, log
from ..run_notes import end_of_predecessor, freeing
from .fence_orders import Orders
from .heartbeat import PublishedTrouble
from .network import Network
from .network_check import NetworkCheck
from .observer import Observer
from .performing import Daemon, clocks_and_journal, play, read_clocks
from .record_guard import read_stored
from .supervision import Notifier
from .telemetry import (
    FENCE,
    FENCES_UNDER_WAY,
    ROUND_TOOK,
    ROUNDS_THROWN_AWAY,
    STORAGE_LOOK,
    UNANSWERED,
)

# What weighs nodes by their load is loaded with its first question elsewhere; here it may come when
# another version of the library lies in this one's place.
importlib.import_module("...placement.services", __package__)


SHORTEST_WAIT = 0.02
"""Seconds between a turn and the next one at least, for looks that are due before their pace."""


class ClusterDaemon(Daemon):
    """The CRM of one node, as a process."""

    def __init__(
        self,
        configuration: NodeConfiguration,
        *,
        network: Network | None = None,
        storage: ClusterStorage | None = None,
        observer: Observer | None = None,
        orders: Orders | None = None,
        clocks: Callable[[], Clocks] = read_clocks,
    ) -> None:
        """Listen on the node's CRM port; a node is judged only after it was watched for a while.

        What is not given is made here, as the node needs it.
        """
        super().__init__("crm", CRM, configuration, Notifier(), network, clocks)
        clock = self._clock
        self._storage = storage or ClusterStorage(configuration, clock)
        self._leases = self._storage.leases
        self._observer = observer or Observer(configuration, self._storage, self._network, clock)
        self._orders = orders or Orders(configuration, self._wake)
        self._published = PublishedTrouble(configuration.run_directory, clock)
        members = configuration.members
        self._network_check = NetworkCheck(
            sorted(set(members) - {configuration.node}),
            lambda node: self._network.ask(members[node]),
            clock(),
        )
        self._stop = False
        timing = LeaseTiming(configuration.sanlock.io_timeout)
        self._crm = start_crm(
            CrmSettings(
                configuration.node,
                configuration.host_ids(),
                configuration.timing,
                lease_silence=float(timing.silence_seconds),
            )
        )
        self._performers = self._make_performers()

    def run(self) -> None:
        """Play turns until SIGTERM; then the manager lease is given up."""
        signal.signal(signal.SIGTERM, self._on_term)
        self._notifier.ready()
        log(f"CRM of {self._configuration.node} runs")
        pace = self._configuration.timing.look
        while not self._stop:
            begun = self._clock()
            self.round()
            self._notifier.alive()
            self._telemetry.timed(ROUND_TOOK, self._clock() - begun)
            self._check_network()
            self._keep_telemetry()
            # A look that is due comes at its time, but the machine also has other work.
            due = max(self._observer.due_in(), SHORTEST_WAIT)
            self._listen(min(pace - (self._clock() - begun), due))
        self._play(cycle.end(self._crm))
        log(f"CRM of {self._configuration.node} ends")

    def round(self) -> None:
        """Play one turn."""
        self._play(cycle.turn(self._crm))
        self._telemetry.set(ROUNDS_THROWN_AWAY, self._crm.late_turns)

    def _play(self, generator: Cycle[None]) -> None:
        play(generator, self._performers)

    def _make_performers(self) -> dict[type, Callable[[Any], Any]]:
        """Return what performs each kind of effect."""
        storage, leases, orders = self._storage, self._leases, self._orders
        return {
            **clocks_and_journal(self._clocks, Repeating(self._clock)),
            effects.AwaitPredecessor: lambda _: self._await_predecessor(),
            effects.AdoptHostLease: lambda _: storage.adopt_host_lease(),
            effects.ConfirmHostLease: lambda _: leases.renew(),
            effects.LeaveHostLease: lambda _: leases.leave(),
            effects.Look: lambda _: self._look(),
            effects.TakeEnded: lambda _: self._take_ended(),
            effects.HoldsManagerLease: lambda _: leases.held(MANAGER_LEASE),
            effects.AcquireManagerLease: lambda _: leases.acquire(MANAGER_LEASE),
            effects.ReleaseManagerLease: lambda _: leases.release(MANAGER_LEASE),
            effects.ReadManagerLease: lambda _: self._read_manager_lease(),
            effects.ReadManagerRecord: lambda _: storage.read_manager(),
            effects.ReadReadableState: lambda _: storage.readable_manager()[0],
            effects.ReadRecords: lambda _: read_stored(self._configuration, storage),
            effects.ReadDesired: lambda _: storage.read_desired(),
            effects.ReadIntent: lambda _: storage.newest_intent(),
            effects.ReadOwnFreeing: lambda _: storage.own_freeing(),
            effects.OwnRecordStands: lambda _: storage.own_record_stands(Kind.CRM),
            effects.ReadHeartbeat: lambda effect: self._observer.heartbeat(effect.node),
            effects.HasNewHeartbeat: lambda effect: self._observer.has_new_heartbeat(effect.node),
            effects.WriteState: lambda effect: storage.write_manager(
                effect.state, effect.freeing, effect.news
            ),
            effects.WriteIntent: lambda effect: storage.write_intent(effect.intent, effect.freeing),
            effects.WriteFreeing: lambda effect: storage.write_freeing(effect.freeing),
            effects.ReadHostLease: self._read_host_lease,
            effects.FreeHostLease: self._free_host_lease,
            effects.LookAtForeignHost: lambda effect: self._observer.with_lease(
                effect.host_id, effect.view
            ),
            effects.ReadOwnMembership: lambda _: self._membership.get(),
            effects.Fence: lambda effect: orders.fence(effect.node),
            effects.PowerOn: lambda effect: orders.power_on(effect.node),
            effects.SetBoardMaintenance: self._set_board_maintenance,
            effects.WakeNodes: self._wake_nodes,
            effects.IsEnding: lambda _: self._stop,
            effects.ShowTrouble: lambda effect: self._published.publish(effect.text),
        }

    def _await_predecessor(self) -> None:
        end_of_predecessor(self._configuration.run_directory, self._configuration.lockspace_path)

    def _look(self) -> effects.Observation:
        observation = self._observer.look()
        self._telemetry.timed(STORAGE_LOOK, observation.took)
        return observation

    def _take_ended(self) -> effects.Ended:
        powers, fences = self._orders.take_powers(), self._orders.take_fences()
        for end in fences:
            result = "confirmed" if end.report.confirmed else "failed"
            self._telemetry.timed(FENCE, end.ended - end.sent, node=end.report.node, result=result)
        self._telemetry.set(FENCES_UNDER_WAY, len(self._orders.fencing()))
        return effects.Ended(tuple(fences), tuple(powers), self._orders.fencing())

    def _read_manager_lease(self) -> effects.LeaseHolder:
        names = {host_id: name for name, host_id in self._configuration.host_ids().items()}
        lease = self._leases.holder(MANAGER_LEASE)
        return effects.LeaseHolder(names.get(lease.host_id, ""), lease.version, lease.active)

    def _read_host_lease(self, effect: effects.ReadHostLease) -> effects.HostLease:
        view = self._leases.host(effect.host_id)
        free = view.state is HostState.FREE
        return effects.HostLease(view.host_id, view.generation, view.timestamp, free)

    def _free_host_lease(self, effect: effects.FreeHostLease) -> None:
        lease = effect.lease
        with freeing(self._configuration.run_directory):
            # What is recorded as about to be freed counts for as long as this node's host lease.
            self._leases.renew()
            self._leases.free_host(lease.host_id, lease.generation, lease.timestamp)

    def _set_board_maintenance(self, effect: effects.SetBoardMaintenance) -> None:
        self._storage.board.write_global(GlobalBlock(effect.maintenance))
        log(f"global maintenance on the whiteboard is {'on' if effect.maintenance else 'off'}")

    def _wake_nodes(self, effect: effects.WakeNodes) -> None:
        members = self._configuration.members
        self._network.hint(
            member.at(LRM)
            for name, member in members.items()
            if effect.nodes is None or name in effect.nodes
        )

    def _listen(self, seconds: float) -> None:
        _hinted, answered = self._network.listen(max(seconds, 0.0))
        self._observer.answered(answered)
        self._network_check.note_answers(answered, self._clock())

    def _check_network(self) -> None:
        now = self._clock()
        # Not in each turn: in a large cluster that is most of what an ordinary node's CRM does.
        if self._network_check.turn(now):
            for node, seconds in self._network_check.unanswered(now).items():
                self._telemetry.set(UNANSWERED, seconds, node=node)

    def _on_term(self, *_arguments: object) -> None:
        self._stop = True
