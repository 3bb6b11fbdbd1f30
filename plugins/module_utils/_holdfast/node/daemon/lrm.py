# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The LRM daemon: performs the effects of ``cluster/lrm/cycle.py`` on this node.

Nothing is decided here.  The daemon's own end changes nothing for the services.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from typing import Any

from ...cluster.lrm import cycle, effects
from ...cluster.lrm.cycle import Lrm, LrmSettings
from ...cluster.model.effects import Clocks
from ...errors import FormatError, StorageError
from ...storage.lockspace.host_timing import LeaseTiming
from ...storage.record_format import Kind
from ..cluster_key import ClusterKey
from ..cluster_storage import ClusterStorage
from ..configuration import CRM, LRM, SANLOCK, NodeConfiguration, make_private
from ..log import Repeating, log
from ..service_secrets import ServiceSecrets
from .agent_work import AgentWork, Workers, end_leftover_agents
from .heartbeat import heartbeat
from .host_lease import HostLeaseKeeper
from .keepalive import KeepaliveSender
from .network import Network
from .performing import Daemon, clocks_and_journal, play, read_clocks
from .record_guard import KeptReport
from .supervision import Notifier, Supervision
from .system import node_room, virtual_machine, why_ending
from .telemetry import (
    HEARTBEAT_WRITE,
    JOB,
    LEASE_FAIL_SECONDS,
    LEASE_LOOK,
    LEASE_RENEWED_AT,
    WORKERS_BUSY,
)

START_WAIT = 10.0
"""Seconds for which an LRM waits for the storage at its start, a look each second.

With each start of the LRM systemd tries a mount again that failed at boot.  A node that is up
must have its storage before ``daemon_grace`` is over, or it is fenced for being without an LRM.
"""
START_LOOK = 1.0


def storage_with_own_record(
    configuration: NodeConfiguration,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> ClusterStorage:
    """Return the storage once this node's own record can be read from it.

    A node that starts before its storage does would otherwise start its LRM several times a
    second.  Raises ``StorageError`` when ``START_WAIT`` seconds were not enough.
    """
    storage = ClusterStorage(configuration, clock)
    repeating, until = Repeating(clock), clock() + START_WAIT
    while True:
        try:
            storage.read_report(configuration.me.host_id)
        except FormatError:
            # It can be read, and is damaged: this node has a copy of its own.
            return storage
        except StorageError as error:
            if clock() >= until:
                raise
            repeating.log(f"waits for the storage: {error}")
            pause(START_LOOK)
        else:
            return storage


class LocalDaemon(Daemon):
    """The LRM of one node, as a process."""

    def __init__(
        self,
        configuration: NodeConfiguration,
        *,
        network: Network | None = None,
        storage: ClusterStorage | None = None,
        workers: Workers | None = None,
        supervision: Supervision | None = None,
        clocks: Callable[[], Clocks] = read_clocks,
    ) -> None:
        """Listen on the node's LRM port and continue with what the last LRM left.

        What is not given is made here, as the node needs it.
        """
        # First: it takes the open file that the last LRM left.
        notifier = Notifier()
        self._supervision = supervision or Supervision(
            configuration, notifier, lambda: clocks().mono
        )
        super().__init__("lrm", LRM, configuration, notifier, network, clocks)
        # The node answers while its LRM waits for the storage.
        self._storage = storage or storage_with_own_record(configuration, self._clock)
        if not configuration.is_machine:
            make_private(configuration.run_directory)
        leftovers = end_leftover_agents(configuration)
        if leftovers:
            log(f"ended {leftovers} agents of the LRM before this one")
        self._kept = KeptReport(configuration.folder, configuration.cluster)
        self._secrets = ServiceSecrets(configuration, ClusterKey(configuration).authentication)
        self._host_lease = HostLeaseKeeper(configuration, self._storage, self._clock)
        self._workers = workers or Workers(
            AgentWork(
                configuration, forbidden=self._start_obstacle, ran_here=self._ran_here
            ).carry_out,
            self._wake,
        )
        self._terms = 0
        self._keepalives = self._keepalive_sender()
        self._performers = self._make_performers()
        self._lrm: Lrm = play(cycle.start(self._settings()), self._performers)

    def run(self) -> None:
        """Play turns until SIGTERM, and then until nothing here has to be waited for."""
        signal.signal(signal.SIGTERM, self._on_term)
        self._supervision.ready()
        log(f"LRM of {self._configuration.node} runs")
        while not self._lrm.ends:
            self.round()
            self._keep_telemetry()
            while not self._has_news() and self._clock() < self._lrm.next_turn:
                play(cycle.beat(self._lrm), self._performers)
        if self._keepalives is not None:
            self._keepalives.close()
        # What a disarm with "ignore" left alone, an LRM no longer knows.
        left = ", ".join(self._lrm.report.running()) or "none"
        log(f"LRM of {self._configuration.node} ends; managed services left running: {left}")

    def round(self) -> None:
        """Play one turn."""
        play(cycle.turn(self._lrm), self._performers)
        if self._keepalives is not None:
            self._keepalives.turned()
        self._telemetry.set(LEASE_RENEWED_AT, self._lrm.host_lease.renewed_at)
        self._telemetry.set(LEASE_FAIL_SECONDS, self._lrm.host_lease.fail_seconds)
        self._telemetry.set(WORKERS_BUSY, len(self._workers.busy()))

    def _keepalive_sender(self) -> KeepaliveSender | None:
        """Return the sender of this node's keepalives, None if the cluster has none."""
        if not self._configuration.timing.keepalive:
            return None
        authenticate = ClusterKey(self._configuration).authentication
        sender = KeepaliveSender(
            self._configuration, self._network.port_fileno(), authenticate, self._clock
        )
        self._network.on_request = sender.ask
        return sender

    def _has_news(self) -> bool:
        """Wait for a hint until the next turn or heartbeat; return whether there was one."""
        hinted, _answered = self._network.listen(cycle.wait_seconds(self._lrm, self._clock()))
        return hinted

    def _settings(self) -> LrmSettings:
        configuration = self._configuration
        timing = LeaseTiming(configuration.sanlock.io_timeout)
        return LrmSettings(
            configuration.node,
            configuration.boot(),
            configuration.watchdog_timeout,
            float(timing.fail_seconds),
            joins=configuration.backend == SANLOCK,
            virtual=virtual_machine(configuration),
            room=node_room(),
            allowed_agents=configuration.allowed_agents,
            heartbeat=configuration.timing.heartbeat,
        )

    def _make_performers(self) -> dict[type, Callable[[Any], Any]]:
        """Return what performs each kind of effect."""
        storage, workers = self._storage, self._workers
        own_id = self._configuration.me.host_id
        return {
            **clocks_and_journal(self._clocks, Repeating(self._clock)),
            **self._host_lease.performers(),
            effects.ReadOwnHostLease: self._read_own_host_lease,
            effects.ReadManagerRecord: lambda _: storage.read_orders(),
            effects.ReadDesiredFrom: lambda effect: storage.read_desired_from(effect.host_id),
            effects.ReadKeptReport: lambda _: effects.NumberedReport(*self._kept.read()),
            effects.ReadOwnReport: lambda _: effects.NumberedReport(
                report=storage.read_report(own_id), number=storage.own_report_number()
            ),
            effects.ContinueAfter: lambda effect: storage.continue_after(effect.number),
            effects.KeepReport: lambda effect: self._kept.write(
                storage.next_report_number(), effect.report
            ),
            effects.WriteReport: lambda effect: storage.write_report(effect.report),
            effects.OwnReportStands: lambda _: storage.own_record_stands(Kind.LRM),
            effects.WriteHeartbeat: self._write_heartbeat,
            effects.WakeManager: self._wake_manager,
            effects.TakeJobs: lambda _: self._take_jobs(),
            effects.BeginJob: lambda effect: workers.begin(effect.job),
            effects.ResizeWorkers: lambda effect: workers.resize(effect.number),
            effects.Supervise: lambda effect: self._supervision.alive(effect.bound),
            effects.CountTerms: lambda _: self._terms,
            effects.ReadShutdown: lambda effect: why_ending(self._configuration, effect.tries),
            effects.ReadOwnMembership: lambda _: self._membership.get(),
            effects.ReadSecretProblems: lambda effect: self._secrets.problems(effect.desired),
        }

    def _read_own_host_lease(self, _effect: effects.ReadOwnHostLease) -> effects.OwnHostLease:
        begun = self._clock()
        lease = self._host_lease.read_own()
        self._telemetry.timed(LEASE_LOOK, self._clock() - begun)
        return lease

    def _write_heartbeat(self, effect: effects.WriteHeartbeat) -> None:
        begun = self._clock()
        block = heartbeat(
            self._configuration.me.host_id,
            self._configuration.node,
            begun,
            running=effect.running,
            drained=effect.drained,
            stopped=effect.stopped,
            report=self._storage.own_report_number(),
            trouble=effect.trouble,
        )
        try:
            self._storage.board.write_host(block)
        finally:
            self._telemetry.timed(HEARTBEAT_WRITE, self._clock() - begun)
        self._network.wrote(block.timestamp)

    def _wake_manager(self, effect: effects.WakeManager) -> None:
        member = self._configuration.members.get(effect.node)
        if member is not None:
            self._network.hint([member.at(CRM)])

    def _take_jobs(self) -> effects.JobStatus:
        ended = self._workers.take_ended()
        for end in ended:
            self._telemetry.timed(JOB, end.took, kind=end.job.kind.value, outcome=end.outcome.value)
        return effects.JobStatus(tuple(ended), self._workers.busy())

    def _start_obstacle(self) -> str:
        """Return why nothing may be started at this moment; asked by the workers."""
        return cycle.start_obstacle(self._lrm, self._clocks())

    def _ran_here(self, service_id: str) -> bool:
        """Return whether a service was seen to run here, and not to end; asked by the workers."""
        return cycle.ran_here(self._lrm, service_id)

    def _on_term(self, *_arguments: object) -> None:
        self._terms += 1
