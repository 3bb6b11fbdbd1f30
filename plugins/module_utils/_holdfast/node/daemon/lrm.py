# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The LRM daemon: keeps this node's services as the manager's record wants them.

Each round it reads, lets ``cluster/lrm/step.py`` decide, writes its record, and only
then begins what was decided.  Its own death changes nothing for the services:
the next one takes them up as they are.  Told to end by SIGTERM it first says why
(``ending.py``), so that its services are frozen, moved or stopped as the policy has it;
told once more it ends at once.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

from ...cluster.crm.global_maintenance import in_force
from ...cluster.lrm import step as lrm_step
from ...cluster.model.desired import Wanted
from ...cluster.model.jobs import Job, JobEnd, JobKind, Sight
from ...cluster.model.report import WRITTEN_AGAIN, LocalState, Report
from ...cluster.model.state import ClusterState
from ...cluster.model.versions import newer_report
from ...errors import FormatError, HoldfastError, LeaseError, StorageError
from ..cluster_storage import ClusterStorage
from ..configuration import CRM, LRM, NodeConfiguration, make_private, node_room
from ..log import Repeating, log, name_daemon
from .agent_work import AgentWork
from .clock_jump import Clocks, ClockWatch
from .heartbeat import MANAGERS_RECORD, OLDER_RECORD, OWN_RECORD, Hindered, heartbeat
from .leftovers import end_leftover_agents
from .membership import HostLease
from .network import Network, answering_network
from .own_membership import OwnMembership
from .record_guard import KeptReport
from .shutdown import why_ending
from .supervision import Notifier, Supervision
from .telemetry import (
    HEARTBEAT_WRITE,
    JOB,
    LEASE_FAIL_SECONDS,
    LEASE_LOOK,
    LEASE_RENEWED_AT,
    WORKERS_BUSY,
    Telemetry,
    telemetry_path,
)
from .virtual import virtual_machine
from .workers import Workers

ROUND = 0.5
HEARTBEAT = 1.0

START_WAIT = 45.0
"""Seconds for which an LRM waits for the storage at its start, a look each second: less than
systemd waits for the start of a unit (TimeoutStartSec of holdfast-lrm.service, 60 s)."""
START_LOOK = 1.0

OWN_LOOK = 5.0
"""Seconds between two looks at whether this node's own record on storage is as it was written."""

_NOT_SEEN_TO_RUN = frozenset({LocalState.STARTING, LocalState.STOPPED, LocalState.FAILED})


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


class LocalDaemon:
    """The LRM of one node."""

    def __init__(
        self,
        configuration: NodeConfiguration,
        *,
        network: Network | None = None,
        storage: ClusterStorage | None = None,
        workers: Workers | None = None,
        host_lease: HostLease | None = None,
        supervision: Supervision | None = None,
        clock: Callable[[], float] = time.monotonic,
        clocks: ClockWatch | None = None,
    ) -> None:
        """Listen on the node's LRM port and take up what a predecessor left.

        What is not given is made here, as the node needs it.
        """
        name_daemon("lrm", configuration.node)
        self._configuration = configuration
        self._me = configuration.me
        self._clock = clock
        notifier = Notifier()
        self._supervision = supervision or Supervision(configuration, notifier, clock)
        self._network = network or answering_network(configuration, LRM, notifier)
        # Listened for first: the node is answered for while the storage is waited for.
        self._storage = storage or storage_with_own_record(configuration, clock)
        self._clocks = clocks or ClockWatch()
        own_clocks = ClockWatch(self._clocks.read)
        self._lease = host_lease or HostLease(
            configuration, self._storage, clock, clocks=own_clocks
        )
        if not configuration.is_machine:
            make_private(configuration.run_directory)
        leftovers = end_leftover_agents(configuration)
        if leftovers:
            log(f"ended {leftovers} agents of the LRM before this one")
        self._kept = KeptReport(configuration.folder, configuration.cluster)
        self._report, self._memory = lrm_step.resume(
            self._last_report(),
            configuration.node,
            configuration.boot(),
            configuration.watchdog_timeout,
            virtual_machine(configuration),
        )
        self._repeating = Repeating(clock)
        self._next_own_look = 0.0
        self._written: Report | None = None
        self._hindered = Hindered()
        self._membership = OwnMembership(configuration)
        self._write_again = 0.0
        self._telemetry = Telemetry(telemetry_path(configuration.run_directory, "lrm"), clock)
        self._pending: list[JobEnd] = []
        self._next_heartbeat = 0.0
        self._state: ClusterState | None = None
        self._wanted: Wanted | None = None
        self._trouble = ""
        self._room = node_room()
        self._shutdown = ""
        self._asked_to_end = 0.0
        self._terms = self._asked = 0
        self._stop = False
        self._workers = workers or Workers(
            AgentWork(configuration, forbidden=self._forbidden, ran_here=self._ran_here).carry_out,
            self._wake,
        )

    def run(self) -> None:
        """Go round until SIGTERM, and then until nothing here has to be waited for."""
        signal.signal(signal.SIGTERM, self._on_term)
        self._supervision.ready()
        log(f"LRM of {self._configuration.node} runs")
        while not self._stop:
            self._note_end()
            self.round()
            self._supervision.alive(self._runs_services())
            self._telemetry.keep()
            self._network.listen(ROUND)
        left = self._report.running()
        log(f"LRM of {self._configuration.node} ends; left running: {', '.join(left) or 'nothing'}")

    def round(self) -> None:
        """Look, decide, write, act: once."""
        begun, clocks = self._clock(), self._clocks.read()
        looked = self._lease.look()
        now = self._clock()
        self._measure_lease(now - begun)
        self._heartbeat(now)
        if looked is None:
            return
        trouble = self._trouble = looked
        if self._read() and not trouble:
            self._note_jump(clocks)
        self._take_ended()
        seen = lrm_step.LocalSeen(
            now=now,
            wall=time.time(),
            state=self._state,
            wanted=self._wanted,
            lease_trouble=trouble,
            renewal_trouble=self._lease.doubt,
            ended=tuple(self._pending),
            busy=self._workers.busy(),
            shutdown=self._shutdown,
            shutdown_for=now - self._asked_to_end,
            room=self._room,
        )
        report = self._membership.noted(self._report, self._state)
        if report.membership_differs:
            self._repeating.log(f"not the cluster's membership: {report.membership_differs}")
        step = lrm_step.step(report, self._memory, seen)
        self._note_refusal(step.refused, now)
        if not self._write(step.report) and not trouble:
            # Nothing may happen that does not stand on storage; look again next round.
            return
        self._report, self._memory = step.report, step.memory
        self._pending.clear()
        if step.jobs:
            # Bound before the first of them runs, not a round later.
            self._supervision.alive(self._runs_services())
        for job in step.jobs:
            if job.kind is not JobKind.MONITOR:
                self._say(job, job.reason)
            self._workers.begin(job)
        self._stop = self._stop or (step.ends and not step.jobs)
        if trouble and not self._report.binds_watchdog(self._written) and not self._workers.busy():
            self._lease.come_back()

    def _last_report(self) -> Report | None:
        """Return what the LRM before this one published last: on the storage, or kept here."""
        number, kept = self._kept.read()
        try:
            stored = self._storage.read_report(self._me.host_id)
        except FormatError as error:
            if kept is None:
                raise
            log(f"goes on from the copy on the local disk: {error}")
            stored = None
        stored_number = self._storage.own_report_number()
        if stored is not None and stored.node not in ("", self._configuration.node):
            # The host id was another node's.
            return stored
        newer = newer_report(stored_number, stored, number, kept)
        if newer is kept and kept is not None and number > stored_number:
            log(
                f"its record on storage is older (number {stored_number}) than the copy on the"
                f" local disk (number {number}): goes on from the latter"
            )
        self._storage.continue_after(number)
        return newer

    def _note_refusal(self, refused: str, now: float) -> None:
        """Tell the others of a manager's record that is not followed; and look at the own one."""
        if refused:
            self._hindered.by(OLDER_RECORD, refused, now)
            self._repeating.log(f"the manager's record is not followed: {refused}")
        else:
            self._hindered.no_more(OLDER_RECORD)
        if now < self._next_own_look:
            return
        self._next_own_look = now + OWN_LOOK
        try:
            stands = self._storage.own_report_stands()
        except StorageError:
            return
        if not stands:
            log("its record on storage is damaged, or older than what was written: written again")
            self._written = None

    def _note_end(self) -> None:
        """Once SIGTERM has come, find out why; a second one asks for the end at once."""
        if self._terms and not self._shutdown:
            self._asked += 1
            self._shutdown = why_ending(self._configuration, self._asked)
            self._asked_to_end = self._clock()
            log(f"told to end: {self._shutdown or 'systemd does not say why yet'}")
        self._stop = self._stop or self._terms > 1

    def _measure_lease(self, took: float) -> None:
        """Note how the host lease is, as the decisions of this node see it."""
        self._telemetry.timed(LEASE_LOOK, took)
        self._telemetry.set(LEASE_RENEWED_AT, self._lease.renewed_at)
        self._telemetry.set(LEASE_FAIL_SECONDS, self._lease.fail_seconds)

    def _take_ended(self) -> None:
        """Take the jobs that ended, and say how those did that were not only a look."""
        for end in self._workers.take_ended():
            self._pending.append(end)
            self._telemetry.timed(JOB, end.took, kind=end.job.kind.value, outcome=end.outcome.value)
            # Of a service that runs as it should, every few seconds, there is nothing to say.
            well = end.job.kind is JobKind.MONITOR and end.sight is Sight.RUNNING
            if end.job.uid and not well:
                self._say(end.job, f"{end.outcome.value}, {end.text}", ":")
        self._telemetry.set(WORKERS_BUSY, len(self._workers.busy()))

    def _say(self, job: Job, text: str, mark: str = "") -> None:
        """Log something about a job."""
        log(
            f"{job.kind.value} {job.service.id} {job.uid}{mark} {text}".rstrip(),
            service=job.service.id,
            uid=job.uid,
            epoch=self._report.epoch,
            reason=text,
        )

    def _runs_services(self) -> bool:
        """Return whether somebody has to look after services here, or after what comes live."""
        expected = self._report.running() or self._report.coming
        return bool(expected or self._workers.busy())

    def _heartbeat(self, now: float) -> None:
        """Write this node's block on the whiteboard, once a second."""
        if now >= self._next_heartbeat and self._lease.owns_slot:
            self._write_block(now)

    def _write_block(self, now: float) -> None:
        self._next_heartbeat = now + HEARTBEAT
        report = self._written or self._report
        block = heartbeat(
            self._me.host_id,
            self._configuration.node,
            now,
            running=len(report.running()),
            drained=self._is_drained(),
            report=self._storage.own_report_number(),
            trouble=self._hindered.told(now),
        )
        begun = self._clock()
        try:
            self._storage.board.write_host(block)
        except StorageError as error:
            self._repeating.log(f"heartbeat not written: {error}")
        else:
            self._network.wrote(block.timestamp)
        self._telemetry.timed(HEARTBEAT_WRITE, self._clock() - begun)

    def _is_drained(self) -> bool:
        """Return whether this node is in maintenance, as far as the manager has not ended it."""
        if self._wanted is None:
            return False
        ended = self._state.ended if self._state is not None else {}
        return self._configuration.node in in_force(self._wanted, ended).maintenance

    def _note_jump(self, clocks: Clocks) -> None:
        """Let agents be called again: lease and record were read after the clocks jumped."""
        jump = self._clocks.jump()
        if jump:
            log(f"{jump}; its host lease and the manager's record were read again")
        self._clocks.mark(clocks)

    def _read(self) -> bool:
        """Read the manager's record and its configuration; return whether that worked."""
        try:
            state = self._state = self._storage.read_manager()
            if state is not None and state.config_slot and not self._has_configuration_of(state):
                wanted = self._storage.read_wanted_from(state.config_slot)
                if wanted is not None and wanted.at_least(state.generation, state.config_version):
                    self._wanted = wanted
                    self._workers.resize(wanted.policy.max_workers)
            self._hindered.no_more(MANAGERS_RECORD)
        except HoldfastError as error:
            self._state = None
            self._hindered.by(MANAGERS_RECORD, str(error), self._clock())
            self._repeating.log(f"the manager's record cannot be read: {error}")
            return False
        return True

    def _has_configuration_of(self, state: ClusterState) -> bool:
        """Return whether the configuration that *state* was made from was read before."""
        wanted = self._wanted
        return wanted is not None and wanted.is_version(state.generation, state.config_version)

    def _write(self, report: Report) -> bool:
        """Write the report if it changed, or was last written long ago; False if that failed."""
        now, changed = self._clock(), report != self._written
        if not changed and now < self._write_again:
            return True
        if not self._lease.owns_slot:
            return False
        self._keep(report)
        try:
            self._storage.write_report(report)
        except (StorageError, LeaseError) as error:
            self._repeating.log(f"report not written: {error}")
            self._hindered.by(OWN_RECORD, str(error), now)
            return False
        self._hindered.no_more(OWN_RECORD)
        self._written, self._write_again = report, now + WRITTEN_AGAIN
        # The manager reads the record when the block speaks of it.
        self._write_block(self._clock())
        if changed and self._state is not None:
            self._hint_manager(self._state.manager)
        return True

    def _keep(self, report: Report) -> None:
        """Keep the report on the local disk too, before anything of it is done.

        A full disk does not end a node's work: then only the storage remembers.
        """
        try:
            self._kept.write(self._storage.next_report_number(), report)
        except StorageError as error:
            self._repeating.log(f"the report is not kept on the local disk: {error}")

    def _hint_manager(self, manager: str) -> None:
        if manager in self._configuration.members:
            self._network.hint([self._configuration.members[manager].at(CRM)])

    def _forbidden(self) -> str:
        """Return why nothing may be started here at this moment; asked by the workers."""
        silent = self._clock() - self._lease.renewed_at
        if self._trouble:
            return f"this node's host lease {self._trouble}"
        if silent >= self._lease.fail_seconds:
            return f"this node's host lease was not seen to be renewed for {silent:.0f} s"
        jump = self._clocks.jump()
        if jump:
            return f"{jump}: its host lease and the manager's record are read again first"
        return lrm_step.proved_dead(self._report, self._state)

    def _ran_here(self, service_id: str) -> bool:
        """Return whether a service was seen to run here, and not to end; asked by the workers.

        What ran here when it was left to its operator counts, too: only a look can end that.
        """
        local = self._report.services.get(service_id)
        if service_id in self._report.left:
            return True
        return local is not None and local.state not in _NOT_SEEN_TO_RUN

    def _wake(self) -> None:
        """End the loop's wait; called from the workers."""
        self._network.hint([self._me.at(LRM)])

    def _on_term(self, *_arguments: object) -> None:
        self._terms += 1
