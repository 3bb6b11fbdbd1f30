# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The verdict on a node: the table of ``docs/design.md`` as a function."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from ..model.observed import Answer, LeaseSight, NodeSeen, Timing
from ..model.report import POWEROFF, Mode


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
            f" it may no longer act and cannot be seen to have stopped{_note(seen)}",
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
