# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the other nodes look like from here: ages, answers, leases, reports.

Ages are measured on this observer's own monotonic clock, from the last change
that it saw itself; nothing is concluded from another node's clock.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from ...cluster.crm import same_storage
from ...cluster.crm.adoption import HostView
from ...cluster.crm.effects import Observation
from ...cluster.crm.fence_ends import ANSWER_WAIT
from ...cluster.crm.lease_proof import why_no_proof
from ...cluster.model.observed import Answer, LeaseSight, NodeSeen
from ...cluster.model.report import Report
from ...errors import StorageError
from ...lease.interface import HostLeaseView, HostState
from ...storage.lockspace.host_timing import FIXED_WATCHDOG_TIMEOUT
from ...storage.whiteboard.board import Board
from ..cluster_storage import ClusterStorage
from ..configuration import NodeConfiguration
from .heartbeat import report_number, trouble_told
from .network import Network
from .own_membership import ForeignHosts
from .record_guard import report_older_than_told

SLOW_STORAGE = 1.0
"""A look at the storage that takes longer makes this node's own verdicts worthless."""


class Observer:
    """Looks at all nodes again and again, and remembers since when they are silent."""

    def __init__(
        self,
        configuration: NodeConfiguration,
        storage: ClusterStorage,
        network: Network,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin to observe: a node's silence counts from the first look at the earliest."""
        self._configuration = configuration
        self._storage = storage
        self._network = network
        self._clock = clock
        begun = clock()
        self._timestamps: dict[str, int | None] = dict.fromkeys(configuration.members)
        self._changed = dict.fromkeys(configuration.members, begun)
        self._looked = -math.inf
        self._watched_since = begun
        self._beating: set[str] = set()
        self._blank: set[str] = set()
        self._foreign = ForeignHosts(configuration.host_ids().values())
        self._asked: dict[str, float] = {}
        self._answered: dict[str, float] = {}
        self._elsewhere: dict[str, same_storage.Elsewhere] = {}

    def answered(self, nodes: set[str]) -> None:
        """Note that these nodes answered a question just now; a datagram may name any."""
        self._answered.update(dict.fromkeys(nodes & set(self._changed), self._clock()))

    def just_answered(self, node: str) -> bool:
        """Return whether the node answered so lately that it counts as answering."""
        answered = self._answered.get(node)
        return answered is not None and self._clock() - answered <= ANSWER_WAIT

    def look(self) -> Observation:
        """Look at the storage once, and ask the nodes that are silent.

        Raises ``StorageError`` when the whiteboard itself cannot be read.
        """
        begun = self._clock()
        # Before the board is read: a heartbeat that was written by then is read, if it is there.
        beats = self._network.take_beats()
        board = self._storage.board.read()
        now = self._clock()
        if now - self._looked > self._configuration.timing.suspect_after:
            # What nobody watched is no silence: this process may have waited for its host
            # lease, or all nodes for the same storage.  And what was seen before is no sign
            # of life: who was dead by then would seem to be back.
            self._watched_since = now
            self._beating.clear()
        self._looked = now
        for name, member in self._configuration.members.items():
            block = board.hosts.get(member.host_id)
            if block is None or block.timestamp == self._timestamps[name]:
                continue
            if self._timestamps[name] is not None or name in self._blank:
                self._changed[name] = now
                self._beating.add(name)
                self._elsewhere.pop(name, None)
            self._timestamps[name] = block.timestamp
        self._blank = {
            name
            for name, member in self._configuration.members.items()
            if member.host_id not in board.hosts and member.host_id not in board.problems
        }
        self._note_beats(beats, now)
        nodes = {
            name: self._see(name, member.host_id, board, now)
            for name, member in self._configuration.members.items()
        }
        held = "set on the whiteboard"
        if board.global_block is None:
            held = "the whiteboard's global block is damaged"
        elif not board.global_block.maintenance:
            held = ""
        took = self._clock() - begun
        readable = board.global_block is not None
        foreign = self._foreign.look(board, now, self._watched_since)
        own = self._configuration.node
        elsewhere = same_storage.storage_trouble(own, self._elsewhere, now)
        trouble = self._own_trouble(took) or elsewhere
        return Observation(
            nodes,
            held,
            trouble,
            took,
            dict(self._changed),
            dict(self._answered),
            readable,
            foreign,
            elsewhere,
        )

    def with_lease(self, host_id: int, view: HostView | None) -> HostView:
        """Return the *view* of a foreign host id, silent if None, with its host lease."""
        known = view or HostView(age=math.inf)
        try:
            report = self._storage.read_report(host_id)
        except StorageError:
            report = None
        lease = self._sight(self._host_lease(host_id), report, known.age)
        return replace(known, lease=lease)

    def _note_beats(self, beats: Mapping[str, int], now: float) -> None:
        """Note which silent nodes named a heartbeat that is not in their block here."""
        for name in beats.keys() & self._changed.keys():
            known = same_storage.heard_of(
                self._elsewhere.get(name),
                beats[name],
                self._timestamps[name],
                self._silent_for(name, now),
                self._configuration.timing.suspect_after,
                now,
            )
            if known is not None:
                self._elsewhere[name] = known

    def _silent_for(self, name: str, now: float) -> float:
        return now - max(self._changed[name], self._watched_since)

    def _see(self, name: str, host_id: int, board: Board, now: float) -> NodeSeen:
        age = self._silent_for(name, now)
        written = report_number(board.hosts.get(host_id))
        if age <= self._configuration.timing.suspect_after / 2:
            self._asked.pop(name, None)
            answer, lease = Answer.UNKNOWN, LeaseSight.RENEWED
            report, lost = self._report(host_id, written, board)
        else:
            answer, view = self._answer(name, now), self._host_lease(host_id)
            # A node that does not write its block may have written its record all the same, and
            # what it wrote before its host lease ran out is to be in it: so it is read after it.
            report, lost = self._report(host_id, 0, board)
            lease = self._sight(view, report, age)
        note = ""
        if lease is LeaseSight.DEAD:
            note = same_storage.why_no_proof(self._elsewhere.get(name)) or why_no_proof(
                self._configuration.members[name].lease_proof, report
            )
            lease = LeaseSight.FAILED if note else lease
        problem = board.problems.get(host_id, "") or trouble_told(board.hosts.get(host_id))
        if report is not None and report.node not in ("", name):
            problem = problem or f"its host id's record is that of {report.node}"
            report = None
        return NodeSeen(
            age,
            answer,
            lease,
            report,
            problem or lost,
            name in self._beating,
            report_lost=bool(lost),
            lease_note=note,
        )

    def _report(self, host_id: int, number: int, board: Board) -> tuple[Report | None, str]:
        """Return the node's report, and why there is none although it wrote one; empty if not.

        The storage is not asked if the report read last has *number*.
        """
        block = board.hosts.get(host_id)
        try:
            report = self._storage.read_report(host_id, number)
        except StorageError as error:
            return None, f"its report cannot be read: {error}" if report_number(block) else ""
        older = report_older_than_told(self._storage, host_id, block)
        return (None, older) if older else (report, "")

    def _answer(self, name: str, now: float) -> Answer:
        """Ask a silent node, and say what its answers, or their absence, amount to."""
        asked = self._asked.setdefault(name, now)
        self._network.ask(self._configuration.members[name])
        if self.just_answered(name):
            return Answer.YES
        answered = self._answered.get(name)
        waiting_since = asked if answered is None else max(asked, answered)
        return Answer.NO if now - waiting_since >= ANSWER_WAIT else Answer.UNKNOWN

    def _host_lease(self, host_id: int) -> HostLeaseView | None:
        """Return a node's host lease, or None while it cannot be read."""
        try:
            return self._storage.leases.host(host_id)
        except StorageError:
            return None

    def _sight(
        self, view: HostLeaseView | None, report: Report | None, silent_for: float
    ) -> LeaseSight:
        """Return what the host lease says of a node whose heartbeat is so old."""
        if view is None:
            return LeaseSight.STALE
        if view.state is HostState.FREE:
            return LeaseSight.FREE
        if view.state is HostState.DEAD:
            is_reset = self._watchdog_has_acted(report, view.unchanged_for)
            return LeaseSight.DEAD if is_reset else LeaseSight.FAILED
        if view.state is HostState.FAIL:
            return LeaseSight.FAILED
        fresh = self._storage.leases.fail_seconds / 2
        timing = self._configuration.timing
        if silent_for >= timing.suspect_after + timing.daemon_grace:
            # With a long I/O timeout what nobody renews any more still looks fresh when an LRM
            # that is gone has had its time to come back: a renewal must have come since.
            fresh = min(fresh, silent_for - timing.suspect_after)
        return LeaseSight.RENEWED if view.unchanged_for < fresh else LeaseSight.STALE

    def _watchdog_has_acted(self, report: Report | None, unchanged_for: float) -> bool:
        """Whether a node has been reset whose lease is dead by this node's own times.

        All nodes are to have the same times, and who joins without a watchdog is refused; but
        a node that was given another one lives as long as it said itself.  Nobody knows what
        a damaged record said: then it is the longest that there is.
        """
        ours = self._configuration.watchdog_timeout
        said = FIXED_WATCHDOG_TIMEOUT if report is None else report.watchdog_timeout
        theirs = ours if said is None else said
        if not ours or not theirs:
            return False
        return theirs <= ours or unchanged_for >= self._storage.leases.fail_seconds + theirs

    def _own_trouble(self, took: float) -> str:
        """Return what is wrong with this node's own way to the storage, or nothing."""
        if took > SLOW_STORAGE:
            return f"this node's own reads of the storage take {took:.1f} s"
        own = self._storage.leases.host(self._configuration.me.host_id)
        if own.state is not HostState.LIVE:
            return f"this node's own host lease is {own.state.value}"
        # What is read is as new as our renewal in it, and so is no view of somebody who left, or
        # died, and joined again since: that takes as long.
        if own.unchanged_for >= self._storage.leases.late_seconds:
            return (
                "this node's own host lease was not seen to be renewed for"
                f" {own.unchanged_for:.0f} s, so what it reads may be old"
            )
        return ""
