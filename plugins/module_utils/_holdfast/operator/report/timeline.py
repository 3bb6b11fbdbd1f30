# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A failover as people are told it: its steps one after the other, and its phases side by side.

Both are made from one entry of ``failovers`` in the plain data of
``read_status``; all times are seconds since the dead node's last heartbeat.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

from ...cluster.model.maintenance import utc
from ...text import clean

_STEP_WORDS = {
    "suspected": "suspected",
    "recorded": "reason recorded",
    "fence_sent": "fence sent",
    "confirmed": "confirmed dead",
}


@dataclass(frozen=True)
class Step:
    """One step; *seconds* is None for what is still awaited."""

    seconds: float | None
    text: str


class PhaseKind(str, enum.Enum):
    """What a phase is spent on."""

    DETECT = "detect"
    FENCE = "fence"
    START = "start"


@dataclass(frozen=True)
class Phase:
    """One span of a failover; *under_way* while its end is only the present moment."""

    kind: PhaseKind
    label: str
    begin: float
    end: float
    under_way: bool = False

    @property
    def seconds(self) -> float:
        """Return how long the phase took; clocks of two nodes may make it look negative."""
        return max(0.0, self.end - self.begin)


def steps(failover: dict[str, Any]) -> list[Step]:
    """Return what happened in its order, then how it ended or what is awaited."""
    node = clean(failover["node"])
    told = {
        "recorded": clean(failover["reason"]),
        "confirmed": clean(failover["proof"]),
    }
    found = [Step(0.0, f"last heartbeat of {node} ({utc(failover['last_heartbeat'])})")]
    for key, words in _STEP_WORDS.items():
        if key in failover["seconds"]:
            more = f": {told[key]}" if told.get(key) else ""
            found.append(Step(failover["seconds"][key], f"{words}{more}"))
    for service, start in failover["started"].items():
        text = f"{clean(service)} started on {clean(start['node'])}"
        found.append(Step(start["seconds"], text))
    found.sort(key=lambda step: step.seconds or 0.0)
    return [*found, _end(failover)]


def phases(failover: dict[str, Any], at: float) -> list[Phase]:
    """Return detection, fence and the start of each service; *at* is the present time.

    A failover whose proof was there before any fence, such as a host lease that
    had run out already, has no fence phase.
    """
    seconds = failover["seconds"]
    now = max(0.0, at - failover["last_heartbeat"])
    recorded = seconds.get("recorded", now)
    found = [Phase(PhaseKind.DETECT, "Detection", 0.0, recorded, "recorded" not in seconds)]
    confirmed = seconds.get("confirmed")
    if confirmed is None:
        end = seconds.get("finished")
        label = "Fence, no proof yet" if end is None else "Suspicion, called off"
        last = Phase(PhaseKind.FENCE, label, recorded, now if end is None else end, end is None)
        return [*found, last]
    if confirmed > recorded or "fence_sent" in seconds:
        found.append(Phase(PhaseKind.FENCE, "Fence until proof", recorded, confirmed))
    return [*found, *_starts(failover, confirmed, now)]


def total(failover: dict[str, Any]) -> str:
    """Return in a few words how the failover went and how long it took."""
    seconds, started = failover["seconds"], failover["started"]
    if "finished" not in seconds:
        return "under way"
    if "confirmed" not in seconds:
        return f"called off after {seconds['finished']:.2f} s"
    if not failover["services"]:
        return f"proved dead after {seconds['confirmed']:.2f} s, no services on it"
    missing = len(not_started(failover))
    if missing:
        return f"{len(started)} of {len(failover['services'])} services run again"
    last = max(start["seconds"] for start in started.values())
    return f"services run again after {last:.2f} s"


def not_started(failover: dict[str, Any]) -> list[str]:
    """Return the services of the dead node that did not start again, or not yet."""
    return [clean(one) for one in failover["services"] if one not in failover["started"]]


def _starts(failover: dict[str, Any], confirmed: float, now: float) -> list[Phase]:
    found = [
        Phase(
            PhaseKind.START,
            f"Start of {clean(service)} on {clean(start['node'])}",
            confirmed,
            start["seconds"],
        )
        for service, start in failover["started"].items()
    ]
    found.sort(key=lambda phase: phase.end)
    if "finished" not in failover["seconds"]:
        found.extend(
            Phase(PhaseKind.START, f"Start of {service}, awaited", confirmed, now, True)
            for service in not_started(failover)
        )
    return found


def _end(failover: dict[str, Any]) -> Step:
    seconds, services = failover["seconds"], failover["services"]
    missing = not_started(failover)
    if "finished" not in seconds:
        if "confirmed" not in seconds:
            return Step(None, "no proof that it is dead yet: nothing is recovered without one")
        return Step(None, f"still to start: {', '.join(missing) or 'nothing'}")
    at = seconds["finished"]
    if "confirmed" not in seconds:
        return Step(at, f"called off: {clean(failover['proof']).replace('none: ', '', 1)}")
    if not services:
        return Step(at, "over: no services were on it")
    text = f"over: {len(services) - len(missing)} of {len(services)} services run again"
    return Step(at, f"{text}; not started: {', '.join(missing)}" if missing else text)
