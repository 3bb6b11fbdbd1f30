# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a CRM concludes about each node from what it reads and hears.

``Watch`` makes an observation of it: silence, answers, expired leases.  ``judge`` is the verdict on
that: the table of ``docs/design.md`` as a function.  ``sort_ends`` holds a fence's proof back while
its node may still be writing.

All ages count on this node's monotonic clock from the last change that this node saw.  Clocks of
other nodes are never used.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace

from ..model.observed import Answer, FenceReport, HostState, LeaseSight, NodeSeen, Timing
from ..model.report import POWEROFF, Mode, Report
from .effects import FenceEnd, Observation
from .lease_proof import Elsewhere, beats_elsewhere, other_storage, renewed_elsewhere, why_no_proof

SLOW_STORAGE = 1.0
"""Seconds: after a slower observation this node must not judge other nodes."""

ANSWER_WAIT = 1.0
"""Seconds after which a node that was asked counts as not answering."""

ROUND = 0.5
"""Seconds between the beginnings of two turns of a CRM without news."""

LARGE = 64
LARGE_ROUND = 1.0
"""The same with more members: the whiteboard is larger, and heartbeats come once a second."""


def round_seconds(members: int) -> float:
    """Return the seconds between two turns of a CRM in a cluster of so many members."""
    return ROUND if members <= LARGE else LARGE_ROUND


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
    heartbeat changed since *watched_since*.  *asked* is since when a member is asked on the
    network, *answered* when it last answered.
    """

    settings: ObserverSettings
    changed: dict[str, float]
    watched_since: float
    looked: float = -math.inf
    beating: set[str] = field(default_factory=set)
    asked: dict[str, float] = field(default_factory=dict)
    answered: dict[str, float] = field(default_factory=dict)
    elsewhere: dict[str, Elsewhere] = field(default_factory=dict)
    _timestamps: dict[str, float] = field(default_factory=dict)
    _reports: dict[str, int] = field(default_factory=dict)
    _put_back: set[str] = field(default_factory=set)
    _blank: set[str] = field(default_factory=set)

    def begin_look(self, now: float) -> None:
        """Begin an observation.  Time in which nothing was observed does not count as silence.

        A heartbeat that changed before such a gap is no sign of life either: the node may have died
        in the gap.
        """
        if now - self.looked > self.settings.timing.suspect_after:
            self.watched_since = now
            self.beating.clear()
        self.looked = now

    def note_block(self, node: str, timestamp: float, now: float, report: int = 0) -> None:
        """Record the timestamp in a member's block, and the number of the *report* that it names.

        The first timestamp counts as a change only if the block was blank before.  Of authenticated
        blocks an older one than before is no sign of life: timestamps only rise, except with a new
        start of the node, which writes a new report first.
        """
        before = self._timestamps.get(node)
        if before == timestamp:
            self._blank.discard(node)
            self._put_back.discard(node)
            return
        if self.settings.authenticated and before is not None:
            if (report, timestamp) < (self._reports.get(node, 0), before):
                self._put_back.add(node)
                return
            self._put_back.discard(node)
        self._reports[node] = report
        if before is not None or node in self._blank:
            self.changed[node] = now
            self.beating.add(node)
            self.elsewhere.pop(node, None)
        self._timestamps[node] = timestamp
        self._blank.discard(node)

    def note_no_block(self, node: str, *, blank: bool) -> None:
        """Record that a member's block is *blank* or cannot be read."""
        if blank:
            self._blank.add(node)
        else:
            self._blank.discard(node)

    def is_new(self, node: str, timestamp: float, report: int = 0) -> bool:
        """Return whether ``note_block`` would take this timestamp for a sign of life."""
        before = self._timestamps.get(node)
        if before is None or before == timestamp:
            return before is None
        older = (report, timestamp) < (self._reports.get(node, 0), before)
        return not (self.settings.authenticated and older)

    def has_read(self, node: str) -> bool:
        """Return whether a block of this member was ever read."""
        return node in self._timestamps

    def note_answers(self, nodes: Iterable[str], now: float) -> None:
        """Record which members answered just now.  A datagram may name any node."""
        self.answered.update({node: now for node in nodes if node in self.changed})

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
        if self.silent_for(node, now) <= self.settings.timing.suspect_after / 2:
            self.asked.pop(node, None)
            return False
        self.asked.setdefault(node, now)
        return True

    def is_asked(self, node: str) -> bool:
        """Return whether a member is silent for so long that it is asked."""
        return node in self.asked

    def observe(self, node: str, look: NodeLook, now: float, fail_seconds: float) -> NodeSeen:
        """Return the observation of a member.

        A host lease that was not renewed for *fail_seconds* has failed.
        """
        age, answer, lease = self.silent_for(node, now), Answer.UNKNOWN, LeaseSight.RENEWED
        note = ""
        if self.is_asked(node):
            answer = self._answer(node, now)
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
        return NodeSeen(
            age,
            answer,
            lease,
            report,
            problem or look.report_lost,
            node in self.beating,
            report_lost=bool(look.report_lost),
            lease_note=note,
        )

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

    def _answer(self, node: str, now: float) -> Answer:
        """Return whether a member that is asked answers on the network."""
        answered, asked = self.answered.get(node), self.asked[node]
        if answered is not None and now - answered <= ANSWER_WAIT:
            return Answer.YES
        waiting_since = asked if answered is None else max(asked, answered)
        return Answer.NO if now - waiting_since >= ANSWER_WAIT else Answer.UNKNOWN

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


def other_key(forged: Collection[str], present: Collection[str], answering: Collection[str]) -> str:
    """Return why this node seems to have another cluster key than the others; empty if not.

    *present* are the other members with a block, *forged* those of them whose block is not
    authentic, and *answering* those whose answers have the nonce of this node's question, but no
    right MAC.  Blocks alone do not count: a stranger who writes the storage could forge them.
    """
    if not present or set(forged) < set(present) or not set(answering) & set(forged):
        return ""
    return (
        f"no block of the other nodes is authentic, and {', '.join(sorted(answering))} answers with"
        " another cluster key: compare the output of 'holdfast key show' on all nodes"
    )


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


class Verdict(enum.Enum):
    """What to do about a node.  WAIT always has a reason.

    WATCH: the node has not been observed for long enough.  LEFT: it was shut down, has stopped its
    services and given its host lease back.
    """

    HEALTHY = "healthy"
    WATCH = "watch"
    WAIT = "wait"
    FENCE = "fence"
    DEAD = "dead"
    LEFT = "left"


@dataclass(frozen=True)
class Judgement:
    """A verdict and its reason."""

    verdict: Verdict
    reason: str


def judge(seen: NodeSeen, storage_trouble: str, timing: Timing) -> Judgement:
    """Return the verdict on a node.

    *storage_trouble* is why the observer cannot trust its own reads.  It then judges no node.
    """
    age = seen.heartbeat_age
    if age < timing.suspect_after:
        if seen.beats:
            return Judgement(Verdict.HEALTHY, "its heartbeat is fresh")
        return Judgement(Verdict.WATCH, f"it has been watched for {age:.1f} s only")
    if storage_trouble:
        return Judgement(Verdict.WAIT, f"no verdict: {storage_trouble}")
    silent = f"no heartbeat for {age:.1f} s"
    if seen.lease is LeaseSight.DEAD:
        return Judgement(
            Verdict.DEAD, f"{silent}, and its host lease has run out behind its watchdog"
        )
    if _stopped_all(seen):
        if seen.lease is LeaseSight.FREE:
            return Judgement(
                Verdict.LEFT,
                "it was shut down: its services stopped and it gave its host lease back",
            )
        if age < timing.suspect_after + timing.daemon_grace:
            return Judgement(
                Verdict.WAIT,
                f"{silent}, but it stopped its services and is being shut down: it has"
                f" {timing.daemon_grace:.0f} s to give its host lease back",
            )
    if seen.answer is Answer.YES:
        return _alive_without_heartbeat(seen, silent, timing)
    if seen.answer is Answer.UNKNOWN:
        return Judgement(Verdict.WAIT, f"{silent}; it is being asked over the network")
    return Judgement(Verdict.FENCE, f"{silent} and no answer on the network{_note(seen)}")


def _note(seen: NodeSeen) -> str:
    """Return the part of a reason that says why an expired host lease is no proof."""
    return f"; {seen.lease_note}" if seen.lease_note else ""


def _stopped_all(seen: NodeSeen) -> bool:
    """Return whether a node reported that it shuts down and that nothing runs there.

    A node that is powered off with frozen services counts, too.
    """
    report = seen.report
    if report is None or report.running() or report.coming:
        return False
    return report.mode is Mode.SHUTDOWN or (
        report.mode is Mode.RESTART and report.goes_down == POWEROFF
    )


def _alive_without_heartbeat(seen: NodeSeen, silent: str, timing: Timing) -> Judgement:
    """Return the verdict on a node that answers on the network but writes no heartbeat."""
    if seen.lease in (LeaseSight.FAILED, LeaseSight.FREE):
        return Judgement(
            Verdict.FENCE,
            f"{silent}; it answers, but its host lease is {seen.lease.value}:"
            f" it may no longer act and cannot be observed to have stopped{_note(seen)}",
        )
    if seen.lease is LeaseSight.STALE:
        return Judgement(
            Verdict.WAIT,
            f"{silent}; it answers, but does not renew its host lease:"
            " its way to the storage seems gone and its watchdog will act",
        )
    if seen.heartbeat_age < timing.suspect_after + timing.daemon_grace:
        return Judgement(
            Verdict.WAIT,
            f"{silent}, but it answers and renews its host lease: its LRM daemon is gone and"
            f" has {timing.daemon_grace:.0f} s to come back",
        )
    return Judgement(
        Verdict.FENCE,
        f"{silent}; the node lives, but its LRM daemon did not come back"
        f" within {timing.daemon_grace:.0f} s",
    )


def just_answered(observation: Observation, node: str, now: float) -> bool:
    """Return whether *node* answered within the last second."""
    answered = observation.answered.get(node)
    return answered is not None and now - answered <= ANSWER_WAIT


def sort_ends(
    ends: Iterable[FenceEnd], observation: Observation, suspect_after: float, now: float
) -> tuple[list[FenceReport], list[FenceEnd]]:
    """Return the fences that count now, and those that are held back.

    A proof is held back while the fenced node may still be writing: a device may answer before the
    node's next heartbeat is due.  An answer from before the end of the fence says nothing, nor does
    a heartbeat that was seen to change within a turn after it.  Silence counts only until the
    observation began.
    """
    late = round_seconds(len(observation.nodes))
    reports: list[FenceReport] = []
    held_back: list[FenceEnd] = []
    for end in ends:
        node = end.report.node
        changed = observation.changed[node]
        answers = just_answered(observation, node, now)
        if not end.report.confirmed:
            reports.append(end.report)
        elif changed > end.ended + late or (answers and now - end.ended > ANSWER_WAIT):
            reports.append(replace(end.report, quiet=False))
        elif now - observation.took - changed >= suspect_after and not answers:
            reports.append(end.report)
        else:
            held_back.append(end)
    return reports, held_back
