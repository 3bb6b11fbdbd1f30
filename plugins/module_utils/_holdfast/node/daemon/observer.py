# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads what a CRM observes of all nodes: the whiteboard, reports, host leases, answers.

``cluster/crm/health.py`` judges it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from ...cluster.crm.effects import Observation
from ...cluster.crm.eligibility import other_key
from ...cluster.crm.watch import (
    LeaseLook,
    NodeLook,
    ObserverSettings,
    held_by_board,
    questions,
    start_watch,
)
from ...cluster.lrm.keepalives import ASK_EACH
from ...cluster.model.observed import HostView, ObservedNode
from ...cluster.model.report import Report
from ...errors import StorageError
from ...lease.interface import HostLeaseView
from ...storage.authentication import Policy
from ...storage.lockspace.host_timing import FIXED_WATCHDOG_TIMEOUT
from ...storage.whiteboard.block import HostBlock
from ...storage.whiteboard.board import Board
from ..cluster_storage import ClusterStorage
from ..configuration import NodeConfiguration
from .heartbeat import beat_of, report_number, trouble_told
from .network import Network
from .own_membership import ForeignHosts
from .record_guard import report_older_than_told

ONE_BY_ONE = 4
"""How many host leases are read one by one at most; for more the lockspace is read as a whole."""


class Observer:
    """Reads and asks all nodes each turn, for ``Watch`` to observe."""

    def __init__(
        self,
        configuration: NodeConfiguration,
        storage: ClusterStorage,
        network: Network,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin to observe: a node's silence counts from now at the earliest."""
        self._configuration = configuration
        self._storage = storage
        self._network = network
        self._clock = clock
        settings = ObserverSettings(
            configuration.node,
            configuration.timing,
            configuration.watchdog_timeout,
            FIXED_WATCHDOG_TIMEOUT,
            authenticated=configuration.authentication is Policy.ENFORCE,
        )
        self._watch = start_watch(settings, configuration.members, clock())
        self._foreign = ForeignHosts(configuration.host_ids().values())
        self._due = math.inf
        self._next_request = 0.0

    def answered(self, nodes: set[str]) -> None:
        """Note that these nodes answered a question just now; a datagram may name any."""
        self._watch.note_answers(nodes, self._clock())

    def look(self) -> Observation:
        """Look at the storage once, and ask the nodes that are silent.

        Raises ``StorageError`` when the whiteboard itself cannot be read.
        """
        begun = self._clock()
        # Before anything else is read: all that is read after it is at least as new.
        own = self._storage.leases.host(self._configuration.me.host_id)
        # Before the board is read: a heartbeat that was written by then is read, if it is there.
        beats = self._network.take_beats()
        self._request_keepalives(begun)
        board = self._storage.board.read()
        keepalives = self._network.take_keepalives()
        now = self._clock()
        self._watch.begin_look(now)
        for name, sent in keepalives.items():
            self._watch.note_keepalives(name, sent)
        for name, member in self._configuration.members.items():
            block = board.hosts.get(member.host_id)
            if block is not None:
                self._watch.note_block(name, beat_of(block), now, report_number(block))
            elif member.host_id not in board.problems:
                self._watch.note_blank(name)
        for name, beat in beats.items():
            self._watch.note_named_beat(name, beat, now)
        silent = [name for name in self._configuration.members if self._watch.ask(name, now)]
        leases = self._leases_of(silent)
        self._due = self._watch.due(now)
        nodes = {
            name: self._see(name, member.host_id, board, now, leases.get(name))
            for name, member in self._configuration.members.items()
        }
        took = self._clock() - begun
        elsewhere = self._watch.storage_trouble(now) or self._other_key(board)
        return Observation(
            nodes,
            held_by_board(None if board.global_block is None else board.global_block.maintenance),
            self._own_trouble(own, took) or elsewhere,
            took,
            dict(self._watch.changed),
            self._watch.last_answers(),
            board.global_block is not None,
            self._foreign.look(board, now, self._watch.watched_since),
            elsewhere,
            board_binds=self._configuration.authentication is not Policy.ENFORCE,
        )

    def due_in(self) -> float:
        """Return the seconds until a node that stays silent is to be looked at again.

        It is due once: a CRM that leaves the observation to others does not look in its next turn.
        """
        left = self._due - self._clock()
        if left <= 0.0:
            self._due = math.inf
        return max(left, 0.0)

    def has_new_heartbeat(self, node: str) -> bool:
        """Return whether a member gave a sign of life since the last look.

        Raises ``StorageError`` when the whiteboard cannot be read.
        """
        host_id = self._configuration.members[node].host_id
        block = self._storage.board.read_trusted(host_id)
        if self._network.has_keepalive(node):
            return True
        return block is not None and self._watch.is_new(node, beat_of(block), report_number(block))

    def heartbeat(self, node: str) -> tuple[int, float] | None:
        """Return the report number and the timestamp of a member's block, None without a whole one.

        Raises ``StorageError`` when the whiteboard cannot be read.
        """
        block = self._storage.board.read_trusted(self._configuration.members[node].host_id)
        return None if block is None else (report_number(block), beat_of(block))

    def with_lease(self, host_id: int, view: HostView | None) -> HostView:
        """Return the *view* of a foreign host id, silent if None, with its host lease."""
        known = view or HostView(age=math.inf)
        try:
            report = self._storage.read_report(host_id)
        except StorageError:
            report = None
        lease = self._watch.lease_sight(
            self._host_lease(host_id), report, known.age, self._storage.leases.fail_seconds
        )
        return replace(known, lease=lease)

    def _request_keepalives(self, now: float) -> None:
        """Ask all other members for keepalives, if that is due."""
        configuration = self._configuration
        if not configuration.timing.keepalive or now < self._next_request:
            return
        self._next_request = now + ASK_EACH
        for name, member in configuration.members.items():
            if name != configuration.node:
                self._network.request_keepalives(member)

    def _leases_of(self, silent: list[str]) -> dict[str, LeaseLook | None]:
        """Ask the *silent* nodes on the network, and return their host leases.

        One read of the lockspace has the leases of many.
        """
        members = self._configuration.members
        for name in silent:
            self._network.ask(members[name], questions(len(silent)))
        views: Mapping[int, HostLeaseView] = {}
        if len(silent) > ONE_BY_ONE:
            try:
                views = self._storage.leases.hosts()
            except StorageError:
                return dict.fromkeys(silent)
        # Those that were never held, or are damaged, are not among all.
        host_ids = {name: members[name].host_id for name in silent}
        return {
            name: _lease_look(views[host_id]) if host_id in views else self._host_lease(host_id)
            for name, host_id in host_ids.items()
        }

    def _see(
        self, name: str, host_id: int, board: Board, now: float, lease: LeaseLook | None
    ) -> ObservedNode:
        block = board.hosts.get(host_id)
        number = report_number(block)
        if self._watch.is_asked(name):
            # A node that does not write its block may have written its record all the same.  It is
            # read after the host lease, so that it has all that was written under that.
            number = 0
        report, lost = self._report(host_id, number, block)
        look = NodeLook(
            report,
            lost,
            board.problems.get(host_id, "") or trouble_told(block),
            lease,
            self._configuration.members[name].lease_proof,
        )
        return self._watch.observe(name, look, now, self._storage.leases.fail_seconds)

    def _report(
        self, host_id: int, number: int, block: HostBlock | None
    ) -> tuple[Report | None, str]:
        """Return the node's report, and why there is none although it wrote one; empty if not.

        The storage is not asked if the report read last has *number*.
        """
        try:
            report = self._storage.read_report(host_id, number)
        except StorageError as error:
            return None, f"its report cannot be read: {error}" if report_number(block) else ""
        older = report_older_than_told(self._storage, host_id, block)
        return (None, older) if older else (report, "")

    def _host_lease(self, host_id: int) -> LeaseLook | None:
        """Return a node's host lease, or None while it cannot be read."""
        try:
            return _lease_look(self._storage.leases.host(host_id))
        except StorageError:
            return None

    def _other_key(self, board: Board) -> str:
        """Return why this node seems to have another cluster key than the others; empty if not."""
        if not board.forged:
            return ""
        others = {
            name: member.host_id
            for name, member in self._configuration.members.items()
            if name != self._configuration.node
        }
        forged = {name for name, host_id in others.items() if host_id in board.forged}
        present = forged | {name for name, host_id in others.items() if host_id in board.hosts}
        return other_key(forged, present, self._network.answering_with_other_keys())

    def _own_trouble(self, own: HostLeaseView, took: float) -> str:
        look = LeaseLook(own.state, own.unchanged_for)
        return self._watch.own_trouble(took, look, self._storage.leases.late_seconds)


def _lease_look(view: HostLeaseView) -> LeaseLook:
    return LeaseLook(view.state, view.unchanged_for)
