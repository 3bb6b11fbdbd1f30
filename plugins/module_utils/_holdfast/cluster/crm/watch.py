# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a CRM remembers of the other nodes, and what it observes of each: silence, answers, leases.

All ages count on this node's monotonic clock from the last change that this node saw.  Clocks of
other nodes are never used.  ``health.py`` has the verdict on what was observed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from ..model.observed import Answer, HostState, LeaseSight, ObservedKeepalive, ObservedNode, Timing
from ..model.report import Mode, Report
from .lease_proof import Elsewhere, beats_elsewhere, other_storage, renewed_elsewhere, why_no_proof
from .rhythm import Rhythm, short_limit

SLOW_STORAGE = 1.0
"""Seconds: after a slower observation this node must not judge other nodes."""

ANSWER_WAIT = 1.0
"""Seconds after which a node that was asked counts as not answering."""

QUESTIONS, FEW = 6, 4
"""How often a silent node is asked in one look, as a datagram may be lost; once if more than a few
nodes are silent."""

DUE = 0.01
"""Seconds by which a look comes after the time at which a silence is long enough."""


def questions(silent: int) -> int:
    """Return how often each node is asked in one look while so many are silent."""
    return QUESTIONS if silent <= FEW else 1


def answer_wait(timing: Timing, short_limit: float) -> float:
    """Return the seconds without an answer after which a node counts as not answering.

    With a *short_limit* of silence, which is not 0.0, they are fewer, too.
    """
    return timing.suspect_soonest / 2 if short_limit else ANSWER_WAIT


@dataclass(frozen=True)
class ObserverSettings:
    """The settings of an observer.

    *watchdog_timeout* is that of all nodes in seconds, 0 without watchdogs.
    *longest_watchdog_timeout* is the longest that any node can have.  Blocks are *authenticated*
    where only a member can write one, though a stranger may put an older one back.
    """

    node: str
    timing: Timing
    watchdog_timeout: float
    longest_watchdog_timeout: float
    authenticated: bool = False


@dataclass(frozen=True)
class LeaseLook:
    """A host lease as just read, unchanged for *unchanged_for* seconds by the reader's clock."""

    state: HostState
    unchanged_for: float


@dataclass(frozen=True)
class NodeLook:
    """What was just read of a node.

    *report_lost* is why a report that was written cannot be read, *problem* what is wrong with the
    node's block.  *lease* is None if it cannot be read, and for a node that is not silent.
    *lease_proof* is the node's setting, None for automatic.
    """

    report: Report | None
    report_lost: str = ""
    problem: str = ""
    lease: LeaseLook | None = None
    lease_proof: bool | None = None


@dataclass
class Watch:
    """What one CRM remembers of all members between observations, in monotonic seconds.

    *changed* is when each heartbeat was last seen to change; *beating* are the members whose
    heartbeat changed between two looks since *watched_since*.  *queried_since* is since when a
    member is asked on the network, *answered* when it last answered.  *rhythms* are the signs of
    life of each member.  Since *steady_since* the looks came as they should.
    """

    settings: ObserverSettings
    changed: dict[str, float]
    watched_since: float
    looked: float = -math.inf
    beating: set[str] = field(default_factory=set)
    queried_since: dict[str, float] = field(default_factory=dict)
    answered: dict[str, float] = field(default_factory=dict)
    elsewhere: dict[str, Elsewhere] = field(default_factory=dict)
    rhythms: dict[str, Rhythm] = field(default_factory=dict)
    steady_since: float = -math.inf
    _timestamps: dict[str, float] = field(default_factory=dict)
    _reports: dict[str, int] = field(default_factory=dict)
    _put_back: set[str] = field(default_factory=set)
    _unread: set[str] = field(default_factory=set)

    def is_gap(self, now: float) -> bool:
        """Return whether nothing was observed for so long that the next look is a first one."""
        return now - self.looked > self.settings.timing.suspect_after

    def begin_look(self, now: float) -> None:
        """Begin an observation.  Time in which nothing was observed does not count as silence.

        A heartbeat that changed before such a gap, or in it, is no sign of life either: the node
        may have died in the gap.
        """
        if self.is_gap(now):
            self.watched_since = now
            self.beating.clear()
            self._unread.update(self.changed)
        if now - self.looked > self.settings.timing.suspect_soonest / 2:
            self.steady_since = now
        self.looked = now

    def note_block(self, node: str, timestamp: float, now: float, report: int = 0) -> None:
        """Record the timestamp in a member's block, and the number of the *report* that it names.

        What is read first since a gap may have been written at any time before.  It is no sign of
        life then, but speaks against a proof of death as a change does.  An authenticated block
        that is older than the last one says nothing: timestamps only rise, except with a new start
        of the node, which writes a new report first.
        """
        if self._is_older(node, timestamp, report):
            self._put_back.add(node)
            return
        self._put_back.discard(node)
        is_first = node in self._unread
        self._unread.discard(node)
        if timestamp == self._timestamps.get(node):
            return
        self._timestamps[node], self._reports[node] = timestamp, report
        self.changed[node] = now
        self.rhythm(node).note_heartbeat(now)
        self.elsewhere.pop(node, None)
        if not is_first:
            self.beating.add(node)

    def note_blank(self, node: str) -> None:
        """Record that a member has no block: the next one that is read was written after."""
        self._unread.discard(node)

    def is_new(self, node: str, timestamp: float, report: int = 0) -> bool:
        """Return whether this timestamp is another one than before, and not an older one."""
        return timestamp != self._timestamps.get(node) and not self._is_older(
            node, timestamp, report
        )

    def _is_older(self, node: str, timestamp: float, report: int) -> bool:
        """Return whether somebody put an older block back: only blocks that are authenticated."""
        before = self._timestamps.get(node)
        if not self.settings.authenticated or before is None:
            return False
        return (report, timestamp) < (self._reports[node], before)

    def has_read(self, node: str) -> bool:
        """Return whether a block of this member was ever read."""
        return node in self._timestamps

    def note_answers(self, nodes: Iterable[str], now: float) -> None:
        """Record which members answered just now.  A datagram may name any node."""
        self.answered.update({node: now for node in nodes if node in self.changed})

    def rhythm(self, node: str) -> Rhythm:
        """Return the signs of life of a member."""
        rhythm = self.rhythms.get(node)
        if rhythm is None:
            rhythm = self.rhythms[node] = Rhythm()
        return rhythm

    def note_keepalives(self, node: str, sent: Iterable[ObservedKeepalive]) -> None:
        """Record keepalives of a member in the order in which they came."""
        if node not in self.changed:
            return
        rhythm = self.rhythm(node)
        for one in sent:
            if one.works:
                rhythm.note_keepalive(one.at)
            else:
                # The node lives, as with an answer of its CRM.
                rhythm.note_stop(one.at)
                self.answered[node] = one.at

    def last_answers(self) -> dict[str, float]:
        """Return when each member last answered, or sent anything by itself."""
        answers = dict(self.answered)
        for node, rhythm in self.rhythms.items():
            sent = max(rhythm.heard, rhythm.stopped)
            if sent > answers.get(node, -math.inf):
                answers[node] = sent
        return answers

    def short_limit(self, node: str) -> float:
        """Return ``ObservedNode.short_limit`` of a member."""
        if not self.settings.timing.keepalive or self.changed[node] < self.watched_since:
            return 0.0
        answered = self.answered.get(node, -math.inf)
        return short_limit(
            self.rhythm(node),
            self.changed[node],
            answered,
            self.steady_since,
            self.settings.timing,
        )

    def note_named_beat(self, node: str, beat: int, now: float) -> None:
        """Record the heartbeat that a node named in an answer; it may be on another storage."""
        if node not in self.changed:
            return
        here = self._timestamps.get(node)
        known = beats_elsewhere(
            self.elsewhere.get(node),
            beat,
            int(here) if here is not None else None,
            self.silent_for(node, now),
            self.settings.timing.suspect_after,
            now,
        )
        if known is not None:
            self.elsewhere[node] = known

    def silent_for(self, node: str, now: float) -> float:
        """Return the seconds since a member's heartbeat was last seen to change."""
        return now - max(self.changed[node], self.watched_since)

    def ask(self, node: str, now: float) -> bool:
        """Return whether a member has been silent long enough to be asked; record since when."""
        timing, rhythm = self.settings.timing, self.rhythms.get(node)
        silent = self.silent_for(node, now)
        if silent <= timing.suspect_after / 2:
            quiet = rhythm is not None and rhythm.sends and timing.keepalive > 0
            heard = rhythm.heard if rhythm is not None else now
            if not quiet or min(silent, now - heard) <= timing.suspect_soonest / 2:
                self.queried_since.pop(node, None)
                return False
        self.queried_since.setdefault(node, now)
        return True

    def due(self, now: float) -> float:
        """Return when a silent member is next to be asked or judged, infinity for never.

        It is judged by its silence, and by its answer when it had its time to answer.  *now* is
        that of the last look.  A node that still has its time to answer when the silence is long
        enough needs no look of its own to be asked: each look reads the whole board.
        """
        timing, found = self.settings.timing, math.inf
        asked_at = max(timing.suspect_after / 2, timing.suspect_after - ANSWER_WAIT)
        for node in self.changed:
            since = now - self.silent_for(node, now)
            times = [since + asked_at, since + timing.suspect_after]
            short = self.short_limit(node)
            if short:
                heard = max(since, self.rhythm(node).heard)
                times += [heard + timing.suspect_soonest / 2, since + short]
            if self.is_asked(node):
                times.append(self._waiting_since(node) + answer_wait(timing, short))
            found = min([found, *(one + DUE for one in times if one > now)])
        return found

    def is_asked(self, node: str) -> bool:
        """Return whether a member is silent for so long that it is asked."""
        return node in self.queried_since

    def observe(self, node: str, look: NodeLook, now: float, fail_seconds: float) -> ObservedNode:
        """Return the observation of a member.

        A host lease that was not renewed for *fail_seconds* has failed.
        """
        age, answer, lease = self.silent_for(node, now), Answer.UNKNOWN, LeaseSight.RENEWED
        short, note = self._short_limit_by(look.report, node), ""
        if self.is_asked(node):
            answer = self._answer(node, now, short)
            lease = self.lease_sight(look.lease, look.report, age, fail_seconds)
        if lease is LeaseSight.DEAD:
            note = renewed_elsewhere(self.elsewhere.get(node))
            note = note or why_no_proof(look.lease_proof, look.report)
            lease = LeaseSight.FAILED if note else lease
        report, problem = look.report, look.problem
        if node in self._put_back:
            problem = problem or "its block is older than one that was read before"
        if report is not None and report.node not in ("", node):
            problem = problem or f"its host id's record is that of {report.node}"
            report = None
        return ObservedNode(
            age,
            answer,
            lease,
            report,
            problem or look.report_lost,
            node in self.beating,
            report_lost=bool(look.report_lost),
            lease_note=note,
            short_limit=short,
        )

    def _short_limit_by(self, report: Report | None, node: str) -> float:
        """Return the short limit of a member; 0.0 unless its LRM works as usual by its report.

        An LRM that restarts, or whose node goes down, falls silent on both ways.
        """
        if not self.settings.timing.keepalive or report is None or report.mode is not Mode.ACTIVE:
            return 0.0
        self.rhythm(node).note_boot(report.boot)
        return self.short_limit(node)

    def lease_sight(
        self,
        lease: LeaseLook | None,
        report: Report | None,
        silent_for: float,
        fail_seconds: float,
    ) -> LeaseSight:
        """Return what the host lease of a node says after *silent_for* seconds of silence."""
        if lease is None:
            return LeaseSight.STALE
        if lease.state is HostState.FREE:
            return LeaseSight.FREE
        if lease.state is HostState.DEAD:
            reset = self._watchdog_has_fired(report, lease.unchanged_for, fail_seconds)
            return LeaseSight.DEAD if reset else LeaseSight.FAILED
        if lease.state is HostState.FAIL:
            return LeaseSight.FAILED
        fresh, timing = fail_seconds / 2, self.settings.timing
        if silent_for >= timing.suspect_after + timing.daemon_grace:
            # With a long I/O timeout, a lease that is no longer renewed still looks fresh after the
            # grace period of the LRM. So a renewal must have come since the silence began.
            fresh = min(fresh, silent_for - timing.suspect_after)
        return LeaseSight.RENEWED if lease.unchanged_for < fresh else LeaseSight.STALE

    def own_trouble(self, took: float, own: LeaseLook, late_seconds: float) -> str:
        """Return why this node cannot trust its own reads of the storage; empty if it can.

        The observation took *took* seconds.  A host lease not renewed for *late_seconds* is late.
        """
        if took > SLOW_STORAGE:
            return f"this node's own reads of the storage take {took:.1f} s"
        if own.state is not HostState.LIVE:
            return f"this node's own host lease is {own.state.value}"
        # What this node reads is as recent as its own last renewal.
        if own.unchanged_for >= late_seconds:
            return (
                "this node's own host lease was not observed to be renewed for"
                f" {own.unchanged_for:.0f} s, so what it reads may be old"
            )
        return ""

    def storage_trouble(self, now: float) -> str:
        """Return why this node seems to use another storage than the others; empty if not."""
        return other_storage(self.settings.node, self.elsewhere, now)

    def _answer(self, node: str, now: float, short: float) -> Answer:
        """Return whether a member that is asked answers on the network, or sends a keepalive."""
        wait = answer_wait(self.settings.timing, short)
        if now - self._answered_at(node) <= wait:
            return Answer.YES
        return Answer.NO if now - self._waiting_since(node) >= wait else Answer.UNKNOWN

    def _waiting_since(self, node: str) -> float:
        return max(self.queried_since[node], self._answered_at(node))

    def _answered_at(self, node: str) -> float:
        answered, rhythm = self.answered.get(node, -math.inf), self.rhythms.get(node)
        if rhythm is not None and rhythm.sends:
            return max(answered, rhythm.heard)
        return answered

    def _watchdog_has_fired(
        self, report: Report | None, unchanged_for: float, fail_seconds: float
    ) -> bool:
        """Return whether the watchdog must have reset a node whose host lease is dead.

        All nodes should have the same timeout.  A node that reported a longer one lives for that
        long.  If its report is damaged, the longest possible timeout counts.
        """
        ours = self.settings.watchdog_timeout
        reported = self.settings.longest_watchdog_timeout
        if report is not None:
            reported = ours if report.watchdog_timeout is None else report.watchdog_timeout
        if not ours or not reported:
            return False
        return reported <= ours or unchanged_for >= fail_seconds + reported


def start_watch(settings: ObserverSettings, nodes: Iterable[str], now: float) -> Watch:
    """Return the memory of a starting CRM. Silence counts from now at the earliest."""
    return Watch(settings, dict.fromkeys(nodes, now), now)


def held_by_board(maintenance: bool | None) -> str:
    """Return why the whiteboard's global block pauses the cluster; empty if it does not.

    *maintenance* is what the block says, None if it is damaged.
    """
    if maintenance is None:
        return "the whiteboard's global block is damaged"
    return "set on the whiteboard" if maintenance else ""
