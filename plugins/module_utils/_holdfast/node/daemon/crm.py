# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The CRM daemon: tries for the manager lease, and manages the cluster while it has it.

Each round it looks, lets ``cluster/crm/step.py`` decide, writes its record, makes
sure that it still is the manager, and only then gives the orders.  It works under the
host lease that the LRM, or an embedded node's machine, joined; without one it is
neither manager nor candidate.  sanlock ends it with SIGTERM when it holds the manager
lease by the Python binding and the lockspace is lost.
"""

from __future__ import annotations

import importlib
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from ...cluster.crm import election
from ...cluster.crm import step as crm_step
from ...cluster.crm.repair_plan import Records, record_restored, repaired
from ...cluster.model.lease_freeing import Freeing, freeing
from ...cluster.model.observed import FenceReport, PowerReport, Seen
from ...cluster.model.state import ClusterState, Intent, NodeState
from ...cluster.model.versions import not_heard_yet, older_than_reports, paused, reports_seen
from ...errors import LeaseError, NoAnswerError, StorageError
from ...storage.lockspace.host_timing import LeaseTiming
from ..cluster_storage import MANAGER_LEASE, ClusterStorage
from ..configuration import CRM, LRM, NodeConfiguration
from ..log import Repeating, log, name_daemon
from .eligibility import Eligibility, foreign_hosts
from .fence_orders import FenceEnd, Orders
from .freed_leases import FreedLeases, end_of_predecessor, under_way
from .heartbeat import PublishedTrouble
from .maintenance_board import MaintenanceBoard
from .network import Network, answering_network
from .observer import ANSWER_WAIT, Observation, Observer
from .record_guard import known_floors, read_records
from .supervision import Notifier
from .telemetry import (
    FENCE,
    FENCES_UNDER_WAY,
    ROUND_TOOK,
    ROUNDS_THROWN_AWAY,
    STORAGE_LOOK,
    Telemetry,
    telemetry_path,
)

# What weighs nodes by their load is loaded with its first question elsewhere; here it may come when
# another version of the library lies in this one's place.
importlib.import_module("..placement.for_services", __package__)

ROUND = 0.5

OWN_LOOK = 5.0
"""Seconds between two looks at whether the manager's record on storage is as it was written."""

CONFIRM = 1.0
"""Seconds between two questions to who keeps the host lease."""

LATE = 1.5
"""A round that took longer, because this process or its storage was held up, decides nothing."""


class ClusterDaemon:
    """The CRM of one node: the manager, or a candidate."""

    def __init__(
        self,
        configuration: NodeConfiguration,
        *,
        network: Network | None = None,
        storage: ClusterStorage | None = None,
        observer: Observer | None = None,
        orders: Orders | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Listen on the node's CRM port; nobody is judged before it was watched for a while.

        What is not given is made here, as the node needs it.
        """
        name_daemon("crm", configuration.node)
        self._configuration = configuration
        self._me = configuration.me
        self._clock = clock
        self._notifier = Notifier()
        self._network = network or answering_network(configuration, CRM, self._notifier)
        self._storage = storage or ClusterStorage(configuration, clock)
        self._observer = observer or Observer(configuration, self._storage, self._network, clock)
        self._orders = orders or Orders(configuration, self._wake)
        self._eligibility = Eligibility(configuration, self._storage, self._observer, clock)
        self._maintenance = MaintenanceBoard(self._storage, clock)
        self._telemetry = Telemetry(telemetry_path(configuration.run_directory, "crm"), clock)
        self._published = PublishedTrouble(configuration.run_directory, clock)
        self._adopted = False
        self._generation = 0
        self._next_confirmation = 0.0
        self._repeating = Repeating(clock)
        self._state: ClusterState | None = None
        self._written: ClusterState | None = None
        self._freed_leases = FreedLeases(
            self._storage.leases,
            LeaseTiming(configuration.sanlock.io_timeout),
            clock,
            partial(under_way, configuration.run_directory),
        )
        self._held_back: list[FenceEnd] = []
        self._fences: list[FenceReport] = []
        self._powers: list[PowerReport] = []
        self._fence_not_before = 0.0
        self._fenced_epoch = 0
        self._trouble = ""
        self._paused = ""
        self._next_own_look = 0.0
        self._stop = False

    def run(self) -> None:
        """Go round until SIGTERM; then the manager lease is given up."""
        signal.signal(signal.SIGTERM, self._on_term)
        self._notifier.ready()
        log(f"CRM of {self._configuration.node} runs")
        while not self._stop:
            begun = self._clock()
            try:
                self.round()
            except (StorageError, LeaseError) as error:
                self._trouble = f"this node's own storage fails: {error}"
                self._repeating.log(f"round without result: {error}")
                if self._state is None:
                    self._give_up_lease()
            self._notifier.alive()
            self._telemetry.timed(ROUND_TOOK, self._clock() - begun)
            self._telemetry.keep()
            self._listen(ROUND - (self._clock() - begun))
        self._free_nothing_more()
        self._give_up_lease()
        log(f"CRM of {self._configuration.node} ends")

    def round(self) -> None:
        """Look, decide, write, act: once."""
        begun = self._clock()
        end_of_predecessor(self._configuration.run_directory, self._configuration.lockspace_path)
        if not self._has_host_lease(begun):
            return
        observation = self._observer.look()
        self._telemetry.timed(STORAGE_LOOK, observation.took)
        self._published.publish(observation.elsewhere)
        self._collect(observation.took)
        self._freed_leases.watch()
        if self._state is not None and not self._storage.leases.held(MANAGER_LEASE):
            log("the manager lease is lost: no longer manager")
            self._state = self._written = None
        if self._state is None:
            self._try_for_manager(observation, begun)
        if self._state is None:
            self._record_freeing(freeing(self._generation, self._freed_leases.intended()))
        else:
            self._manage(observation, begun)

    def _has_host_lease(self, now: float) -> bool:
        """Adopt this node's host lease, or confirm it; without it nobody is manager here.

        Raises ``NoAnswerError`` and ``StorageError`` while that cannot be told.
        """
        try:
            if not self._adopted:
                self._generation = self._storage.adopt_host_lease()
            elif now >= self._next_confirmation:
                self._storage.leases.renew()
            else:
                return True
        except NoAnswerError:
            raise
        except LeaseError as error:
            self._resign(str(error))
            return False
        if not self._adopted:
            log("works under this node's host lease")
            self._repeating.forget()
        self._adopted = True
        self._next_confirmation = now + CONFIRM
        return True

    def _resign(self, reason: str) -> None:
        """Be neither manager nor candidate, as this node's host lease is not there."""
        if self._state is not None:
            log("no longer manager: the host lease is lost")
        self._state = self._written = None
        # What is recorded counts only for as long as the host lease that is lost.
        self._freed_leases.recorded({})
        self._repeating.log(f"without a host lease nothing is decided here: {reason}")
        if self._adopted:
            self._adopted = False
            self._storage.leases.leave()

    def _give_up_lease(self) -> None:
        """Release the manager lease, or the try for it that may go on behind the scenes."""
        try:
            self._storage.leases.release(MANAGER_LEASE)
        except (StorageError, LeaseError) as error:
            self._repeating.log(f"the manager lease is not seen to be released: {error}")

    def _record_freeing(self, record: Freeing) -> None:
        """Record beside the rest of this node's slot what it is about to free, if that changed."""
        if record != self._storage.own_freeing():
            self._storage.write_freeing(record)
        self._freed_leases.recorded(record.leases)

    def _free_nothing_more(self) -> None:
        """Take back what is recorded, as this process ends and frees nothing more."""
        try:
            if self._adopted:
                self._record_freeing(Freeing())
        except (StorageError, LeaseError) as error:
            self._repeating.log(f"the record of what is being freed is not taken back: {error}")

    def _collect(self, looked_for: float) -> None:
        """Take what ended; a proof is held back while the dead node may still be writing.

        A node that is fenced for a service of its was not silent before.  A device may answer
        sooner than its next heartbeat, so that silence since the fence alone says nothing.
        Nor does an answer on the network from before the fence ended.  Silence is known until
        the look began that took *looked_for* seconds: this process may have been held up in it.
        """
        self._powers.extend(self._orders.take_powers())
        ended = self._orders.take_fences()
        for end in ended:
            result = "confirmed" if end.report.confirmed else "failed"
            self._telemetry.timed(FENCE, end.ended - end.sent, node=end.report.node, result=result)
        self._telemetry.set(FENCES_UNDER_WAY, len(self._orders.fencing()))
        self._held_back.extend(ended)
        waiting: list[FenceEnd] = []
        suspect_after = self._configuration.timing.suspect_after
        for end in self._held_back:
            changed = self._observer.changed_at(end.report.node)
            quiet_for = self._clock() - looked_for - changed
            if not end.report.confirmed:
                self._fences.append(end.report)
            elif changed > end.ended + ROUND:
                self._fences.append(replace(end.report, quiet=False))
            elif quiet_for < suspect_after or self._may_have_answered_before(end):
                waiting.append(end)
            else:
                self._fences.append(end.report)
        self._held_back = waiting

    def _may_have_answered_before(self, end: FenceEnd) -> bool:
        """Return whether it cannot be told yet if the node's answers end with its fence."""
        lately = self._clock() - end.ended <= ANSWER_WAIT
        return lately and self._observer.just_answered(end.report.node)

    def _try_for_manager(self, observation: Observation, begun: float) -> None:
        """Take the manager lease if it is free; fence its holder if that is silent.

        On a storage that other nodes do not use, the lease is free or will be, and the records
        are a copy of those that the other nodes go on with.
        """
        if observation.elsewhere:
            self._stand_aside(observation.elsewhere)
            return
        last, _damage = self._storage.readable_manager()
        if not self._is_eligible(last or ClusterState(), observation):
            return
        epoch = self._storage.leases.acquire(MANAGER_LEASE)
        if epoch is None:
            self._watch_holder(observation, begun)
            return
        records = self._records(observation)
        last = records.state or ClusterState()
        if not self._is_eligible(last, observation):
            return
        if records.repaired:
            self._begin_generation(observation, records, epoch)
            return
        waits = not_heard_yet(observation.nodes, self._configuration.timing.suspect_after)
        if records.regressions or waits:
            self._pause(paused(records.regressions) if records.regressions else waits)
            return
        intent = self._storage.newest_intent()
        state = crm_step.take_over(last, epoch, self._configuration.node, time.time(), intent)
        self._state = self._eligibility.recorded(state, time.time())
        self._paused = ""
        log(f"manager with epoch {epoch}", epoch=epoch)

    def _stand_aside(self, why: str) -> None:
        """Be neither manager nor candidate for now."""
        self._repeating.log(f"not managing: {why}")
        self._paused = why
        self._drop_ends()
        self._give_up_lease()

    def _records(self, observation: Observation) -> Records:
        """Read the newest records and compare them with what each node has acted on."""
        reports = reports_seen(observation.nodes)
        return read_records(self._configuration, self._storage, reports)

    def _begin_generation(self, observation: Observation, records: Records, epoch: int) -> None:
        """Take up the repair of an operator: manage from a state in which all is asked again."""
        floors = known_floors(self._configuration, reports_seen(observation.nodes))
        state = repaired(
            records.state or ClusterState(),
            records.wanted,
            floors,
            epoch,
            self._configuration.node,
            time.time(),
        )
        self._state = self._eligibility.recorded(state, time.time())
        self._written = None
        self._drop_ends()
        self._paused = ""
        log(f"manager with epoch {epoch}; the records were repaired", epoch=epoch)

    def _pause(self, why: str) -> None:
        """Keep the manager lease and do nothing: what is on storage is older than what was known.

        Nobody else could know better, so the lease is not given up.
        """
        if why != self._paused:
            log(f"not managing: {why}")
        self._paused = why
        self._state = self._written = None
        self._drop_ends()

    def _drop_ends(self) -> None:
        """Forget the ends of fences that belong to a state which is not gone on with."""
        self._fences.clear()
        self._powers.clear()

    def _is_eligible(self, last: ClusterState, observation: Observation) -> bool:
        """Return whether this node may be manager or candidate; if not, drop the lease."""
        obstacle = self._eligibility.obstacle(last, observation)
        if obstacle:
            self._repeating.log(obstacle)
            self._fences.clear()
            self._give_up_lease()
        return not obstacle

    def _keeps_managing(self, state: ClusterState, observation: Observation) -> bool:
        """Return whether the manager may act in this round; record a membership that changed.

        The fence settings may change while it manages.
        """
        obstacle = self._eligibility.obstacle(state, observation)
        if not obstacle:
            self._state = self._eligibility.recorded(state, time.time())
            return True
        self._repeating.log(obstacle)
        if self._eligibility.is_over():
            log("the manager lease is given up: this node's membership is another one")
            self._state = self._written = None
            self._give_up_lease()
        return False

    def _watch_holder(self, observation: Observation, begun: float) -> None:
        """As a candidate: fence the manager's node when it is silent and it is our turn."""
        ids = {host_id: name for name, host_id in self._configuration.host_ids().items()}
        lease = self._storage.leases.holder(MANAGER_LEASE)
        holder = ids.get(lease.host_id, "")
        candidacy = election.consider(
            self._configuration.node,
            holder,
            observation.nodes,
            self._configuration.host_ids(),
            observation.trouble or self._trouble,
            self._maintenance.held_for_candidate(observation),
            self._configuration.timing,
        )
        self._trouble = ""
        self._sort_own_fences(lease.version)
        now = self._clock()
        if not candidacy.fence or now < self._fence_not_before or self._is_fencing(holder):
            return
        regressions = self._records(observation).regressions
        if regressions:
            self._repeating.log(f"{candidacy.reason}; not fenced: {paused(regressions)}")
            return
        kept = self._maintenance.kept_from_fencing()
        if kept:
            self._repeating.log(f"{candidacy.reason}; not fenced: {kept}", node=holder)
            return
        if self._is_late(begun):
            return
        self._fence_not_before = now + self._configuration.timing.fence_retry
        wall = time.time()
        age = observation.nodes[holder].heartbeat_age
        intent = Intent(holder, candidacy.reason, wall - age, wall, lease.version)
        self._fence_begins(holder)
        record = freeing(self._generation, self._freed_leases.fenced(holder))
        try:
            self._storage.write_intent(intent, record)
        except (StorageError, LeaseError):
            self._freed_leases.forget(holder)
            raise
        self._freed_leases.recorded(record.leases)
        if self._is_late(begun):
            # Held up in the write: its node may have been started anew meanwhile.
            self._freed_leases.forget(holder)
            return
        if self._storage.leases.holder(MANAGER_LEASE).version != lease.version:
            # Who is manager by now may have looked for intents before this one stood there, and
            # would leave a node off that nobody knows to be fenced.
            self._freed_leases.forget(holder)
            return
        self._fenced_epoch = lease.version
        log(
            f"fence {holder}: {candidacy.reason}",
            node=holder,
            epoch=lease.version,
            reason=candidacy.reason,
        )
        self._orders.fence(holder)

    def _sort_own_fences(self, epoch: int) -> None:
        """Of a candidate's own fences keep a proof against the holder of *epoch*; drop the rest.

        It counts once the lease is had, and sets the host lease free at once: the
        manager lease may wait for that.
        """
        proofs: list[FenceReport] = []
        for fence in self._fences:
            if not (fence.confirmed and fence.quiet) or self._observer.just_answered(fence.node):
                log(f"fence of {fence.node} failed: {fence.text}")
                self._freed_leases.forget(fence.node)
            elif epoch == self._fenced_epoch:
                proofs.append(fence)
            else:
                self._freed_leases.forget(fence.node)
        self._fences = proofs
        for fence in proofs:
            self._freed_leases.fence_ended(fence)

    def _is_fencing(self, node: str) -> bool:
        held_back = {end.report.node for end in self._held_back}
        return node in self._orders.fencing() | held_back

    def _manage(self, observation: Observation, begun: float) -> None:
        if self._state is None or not self._keeps_managing(self._state, observation):
            return
        state = self._state
        foreign = foreign_hosts(observation, self._configuration.timing.suspect_after)
        if foreign != state.foreign_hosts:
            state = replace(state, foreign_hosts=foreign)
        wanted, slot = self._storage.read_wanted()
        if wanted.generation > state.generation:
            self._begin_generation(observation, self._records(observation), state.epoch)
            return
        older = older_than_reports(state, wanted, reports_seen(observation.nodes))
        if older:
            self._pause(paused(older))
            return
        now = self._clock()
        state = self._look_at_own_record(state, now)
        seen = Seen(
            now=now,
            wall=time.time(),
            wanted=wanted,
            config_slot=slot,
            nodes=observation.nodes,
            storage_trouble=observation.trouble or self._trouble,
            held=observation.held,
            fencing=self._orders.fencing() | {end.report.node for end in self._held_back},
            fences=tuple(self._fences),
            powers=tuple(self._powers),
            board_readable=observation.board_readable,
            wall_even=self._maintenance.look_at_clock(),
        )
        self._trouble = ""
        step = crm_step.step(state, seen, self._configuration.timing)
        if self._is_late(begun):
            return
        # A proof that was not taken, as the node still answers, is none for its lease.
        proofs = [one if _is_off(step.state, one.node) else _no_proof(one) for one in seen.fences]
        record = freeing(self._generation, self._freed_leases.intended(proofs))
        if step.state != self._written:
            self._write(step.state, record)
            self._log_events(state, step.state)
            self._written = step.state
            self._network.hint(member.at(LRM) for member in self._configuration.members.values())
        self._record_freeing(record)
        self._state = step.state
        for fence in proofs:
            self._freed_leases.fence_ended(fence)
        self._fences.clear()
        self._powers.clear()
        orders = step.fences or step.powers or step.board is not None
        if orders and not self._storage.leases.held(MANAGER_LEASE):
            raise LeaseError("the manager lease was lost before the orders were given")
        if orders and self._is_late(begun):
            # What was written was not ordered: it is read back, and decided anew.
            self._state = self._written = None
            return
        if self._stop:
            # Nobody would wait for their end; and it may be sanlock that ends this process.
            return
        for order in step.fences:
            self._fence(order.node)
        for node in step.powers:
            self._orders.power_on(node)
        if step.board is not None:
            self._maintenance.write(step.board)

    def _look_at_own_record(self, state: ClusterState, now: float) -> ClusterState:
        """Return *state*, to be written again if its record on storage is not as it was written.

        This process knows what it wrote, so nothing is lost by damage to it.
        """
        if self._written is None or now < self._next_own_look:
            return state
        self._next_own_look = now + OWN_LOOK
        if self._storage.own_manager_record_stands():
            return state
        log("this manager's record on storage is damaged or older than what was written")
        self._written = None
        return record_restored(state, time.time())

    def _is_late(self, begun: float) -> bool:
        """Return whether this round took so long that what it saw may be no longer so."""
        if self._clock() - begun <= LATE:
            return False
        self._trouble = "this node was held up in the middle of a round"
        self._telemetry.count(ROUNDS_THROWN_AWAY)
        self._repeating.log(f"{self._trouble}; the round is thrown away")
        return True

    def _write(self, state: ClusterState, record: Freeing) -> None:
        """Write the record; if that fails, what stands there is not known and is read anew.

        It may have been written all the same, with command uids that must not be
        given out a second time for something else.
        """
        try:
            self._storage.write_manager(state, record)
        except (StorageError, LeaseError):
            self._state = self._written = None
            raise

    def _fence(self, node: str) -> None:
        """Send a fence, remembering which host lease it is to prove dead."""
        self._fence_begins(node)
        self._orders.fence(node)

    def _fence_begins(self, node: str) -> None:
        self._freed_leases.fence_begins(node, self._configuration.members[node].host_id)

    def _listen(self, seconds: float) -> None:
        _hinted, answered = self._network.listen(max(seconds, 0.0))
        self._observer.answered(answered)

    def _log_events(self, before: ClusterState, after: ClusterState) -> None:
        known = set(before.events)
        for event in after.events:
            if event not in known:
                about = " ".join(part for part in (event.service, event.node) if part)
                log(
                    f"{event.kind} {about}: {event.text}",
                    node=event.node,
                    service=event.service,
                    epoch=after.epoch,
                    reason=event.text,
                )

    def _wake(self) -> None:
        """End the loop's wait; called from the threads of the orders."""
        self._network.hint([self._me.at(CRM)])

    def _on_term(self, *_arguments: object) -> None:
        self._stop = True


def _is_off(state: ClusterState, node: str) -> bool:
    """Return whether *state* has *node* as proved dead."""
    status = state.nodes.get(node)
    return status is not None and status.state is NodeState.OFF


def _no_proof(fence: FenceReport) -> FenceReport:
    return replace(fence, confirmed=False)
