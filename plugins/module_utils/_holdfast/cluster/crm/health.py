# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The verdict on each node: the table of ``docs/design.md`` as a function.

``watch.py`` makes the observation that it judges.  ``sort_ends`` holds a fence's proof back while
its node may still be writing.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from ..model.observed import Answer, FenceReport, LeaseSight, ObservedNode, Timing
from ..model.report import POWEROFF, Mode
from .effects import FenceEnd, Observation
from .watch import answer_wait


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


def judge(
    observed: ObservedNode, storage_trouble: str, timing: Timing, joined_for: float = math.inf
) -> Judgement:
    """Return the verdict on a node.

    *storage_trouble* is why the observer cannot trust its own reads.  It then judges no node.
    After a power failure of the site, or when the storage was away, all nodes boot.  So an observer
    that has its host lease for *joined_for* seconds waits for those that it has not seen alive.
    """
    age = observed.heartbeat_age
    if observed.is_fresh(timing):
        if observed.beats:
            return Judgement(Verdict.HEALTHY, "its heartbeat is fresh")
        return Judgement(Verdict.WATCH, f"it has been watched for {age:.1f} s only")
    if storage_trouble:
        return Judgement(Verdict.WAIT, f"no verdict: {storage_trouble}")
    silent = f"no heartbeat for {age:.1f} s"
    if observed.lease is LeaseSight.DEAD:
        return Judgement(
            Verdict.DEAD, f"{silent}, and its host lease has run out behind its watchdog"
        )
    if _stopped_all(observed):
        if observed.lease is LeaseSight.FREE:
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
    boots = timing.suspect_after + timing.daemon_grace
    if not observed.beats and joined_for < boots:
        return Judgement(
            Verdict.WAIT,
            f"{silent}; the node that watches it joined only {joined_for:.0f} s ago, so both may"
            f" have just been restarted: it is not fenced for another {boots - joined_for:.0f} s",
        )
    if observed.answer is Answer.YES:
        return _alive_without_heartbeat(observed, silent, timing)
    if observed.answer is Answer.UNKNOWN:
        return Judgement(Verdict.WAIT, f"{silent}; it is being asked over the network")
    return Judgement(Verdict.FENCE, f"{silent} and no answer on the network{_note(observed)}")


def _note(observed: ObservedNode) -> str:
    """Return the part of a reason that says why an expired host lease is no proof."""
    return f"; {observed.lease_note}" if observed.lease_note else ""


def _stopped_all(observed: ObservedNode) -> bool:
    """Return whether a node reported that it shuts down and that nothing runs there.

    A node that is powered off with frozen services counts, too.
    """
    report = observed.report
    if report is None or report.running() or report.coming:
        return False
    return report.mode is Mode.SHUTDOWN or (
        report.mode is Mode.RESTART and report.goes_down == POWEROFF
    )


def _alive_without_heartbeat(observed: ObservedNode, silent: str, timing: Timing) -> Judgement:
    """Return the verdict on a node that answers on the network but writes no heartbeat."""
    if observed.lease in (LeaseSight.FAILED, LeaseSight.FREE):
        return Judgement(
            Verdict.FENCE,
            f"{silent}; it answers, but its host lease is {observed.lease.value}:"
            f" it may no longer act and cannot be observed to have stopped{_note(observed)}",
        )
    if observed.lease is LeaseSight.STALE:
        return Judgement(
            Verdict.WAIT,
            f"{silent}; it answers, but does not renew its host lease:"
            " its way to the storage seems gone and its watchdog will act",
        )
    if observed.heartbeat_age < timing.suspect_after + timing.daemon_grace:
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


def just_answered(observation: Observation, node: str, now: float, timing: Timing) -> bool:
    """Return whether *node* answered within the time in which it is expected to."""
    answered = observation.answered.get(node)
    wait = answer_wait(timing, observation.nodes[node].short_limit)
    return answered is not None and now - answered <= wait


def sort_ends(
    ends: Iterable[FenceEnd], observation: Observation, timing: Timing, now: float
) -> tuple[list[FenceReport], list[FenceEnd]]:
    """Return the fences that count now, and those that are held back.

    A proof is held back while the fenced node may still be writing: a device may answer before the
    node's next heartbeat is due.  An answer from before the end of the fence says nothing, nor does
    a heartbeat that was seen to change within a turn after it.  Silence counts only until the
    observation began.
    """
    reports: list[FenceReport] = []
    held_back: list[FenceEnd] = []
    for end in ends:
        node = end.report.node
        changed = observation.changed[node]
        answers = just_answered(observation, node, now, timing)
        wait = answer_wait(timing, observation.nodes[node].short_limit)
        limit = observation.nodes[node].short_limit or timing.suspect_after
        if not end.report.confirmed:
            reports.append(end.report)
        elif changed > end.ended + timing.look or (answers and now - end.ended > wait):
            reports.append(replace(end.report, quiet=False))
        elif now - observation.took - changed >= limit and not answers:
            reports.append(end.report)
        else:
            held_back.append(end)
    return reports, held_back
