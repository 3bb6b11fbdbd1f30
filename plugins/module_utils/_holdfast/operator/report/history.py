# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The history: selected events, and the course of each failover.

A failover is shown as steps in their order, and as phases.  Both come from an entry of
``failovers`` in ``read_status``, in seconds since the last heartbeat of the dead node.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Collection, Iterable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any

from ...cluster.model.event_kinds import EVENT_KINDS
from ...cluster.model.maintenance import time_from_text, utc
from ...cluster.model.state import ClusterState
from ...errors import InputError, StorageError
from ...names import require_known
from ...node.cluster_storage import ClusterStorage
from ...node.configuration import NodeConfiguration
from ...text import clean
from . import wording
from .status import event_document

_SPAN = re.compile(r"(\d+(?:\.\d+)?)([smhd])")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


@dataclass(frozen=True)
class Wish:
    """A selection of events; empty and 0 select any.

    *since* is seconds since 1970, *most* a number of the newest.
    """

    nodes: tuple[str, ...] = ()
    services: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    since: float = 0.0
    most: int = 0


def read_history(configuration: NodeConfiguration) -> dict[str, Any]:
    """Return the ``events`` in the manager's record, the oldest first, and the ``services`` of now.

    Raises ``StorageError`` when the storage cannot be read.
    """
    with closing(ClusterStorage(configuration)) as storage:
        state = storage.read_manager() or ClusterState()
        services = set(state.services)
        # None is declared if the configuration is damaged.
        with suppress(StorageError):
            services.update(storage.read_desired()[0].services)
    events = [event_document(event) for event in state.events]
    return {"events": events, "services": sorted(services)}


def chosen(events: Iterable[dict[str, Any]], wish: Wish) -> list[dict[str, Any]]:
    """Return the selected events in their order; one that rejects a node is about that node too."""
    found = [
        event
        for event in events
        if (not wish.nodes or _nodes_of(event) & set(wish.nodes))
        and (not wish.services or event["service"] in wish.services)
        and (not wish.kinds or event["kind"] in wish.kinds)
        and event["at"] >= wish.since
    ]
    return found[-wish.most :] if wish.most else found


def refuse_unknown(wish: Wish, history: dict[str, Any], members: Collection[str]) -> None:
    """Raise ``InputError`` for a node, service or kind that has no event and can have none.

    Known are *members*, services and kinds of now, and those in the *history*: of a removed node,
    or of a manager of another version.
    """
    nodes, services, kinds = set(members), set(history["services"]), set(EVENT_KINDS)
    for event in history["events"]:
        nodes |= _nodes_of(event)
        services.add(event["service"])
        kinds.add(event["kind"])
    for option, asked, known, what in (
        ("--node", wish.nodes, nodes - {""}, "a node of the cluster or of its history"),
        ("--service", wish.services, services - {""}, "a service, or one of the history"),
        ("--kind", wish.kinds, kinds, "a kind of event"),
    ):
        for one in asked:
            require_known(one, option, known, what)


def since(text: str, now: float) -> float:
    """Return the seconds since 1970 of *text*: a span before *now* such as 2h, or an ISO 8601 time.

    Raises ``InputError`` for anything else.
    """
    span = span_seconds(text)
    if span is not None:
        return now - span
    try:
        return time_from_text(text)
    except ValueError:
        expected = "a span such as 90s, 30m, 2h or 7d, or a time such as 2026-11-21T18:00:00Z"
        raise InputError("--since", text, expected) from None


def span_seconds(text: str) -> float | None:
    """Return the seconds in a span such as 90s, 30m, 2h or 7d; None if *text* is none."""
    span = _SPAN.fullmatch(text)
    return None if span is None else float(span[1]) * _SECONDS[span[2]]


def lines(events: Sequence[dict[str, Any]]) -> list[str]:
    """Return a line for each event, followed by its rejected nodes."""
    kinds = max((len(clean(event["kind"])) for event in events), default=0)
    told: list[str] = []
    for event in events:
        about = wording.event_subject(event)
        kind = clean(event["kind"])
        told.append(f"{utc(event['at'])}  {kind:<{kinds}}  {about}: {clean(event['text'])}")
        told.extend(f"{'':22}not {clean(node)}: {clean(why)}" for node, why in event["rejected"])
    return told


def _nodes_of(event: dict[str, Any]) -> set[str]:
    """Return the node of an event, and its rejected nodes."""
    return {event["node"], *(node for node, _why in event["rejected"])}


_STEP_WORDS = {
    "suspected": "suspected",
    "fence_sent": "fence sent",
    "confirmed": "confirmed dead",
}


@dataclass(frozen=True)
class Step:
    """One step of a failover; *seconds* is None for one that has not happened."""

    seconds: float | None
    text: str


class PhaseKind(str, enum.Enum):
    """The kind of a phase."""

    DETECT = "detect"
    FENCE = "fence"
    START = "start"


@dataclass(frozen=True)
class Phase:
    """One phase of a failover; the end of one *under_way* is now."""

    kind: PhaseKind
    label: str
    begin: float
    end: float
    under_way: bool = False

    @property
    def seconds(self) -> float:
        """Return how long the phase took; not negative where the clocks of two nodes differ."""
        return max(0.0, self.end - self.begin)


def steps(failover: dict[str, Any]) -> list[Step]:
    """Return the steps in their order, then what the failover waits for or lacks at its end.

    When all services run again, the last of their starts is the end.
    """
    node = clean(failover["node"])
    told = {
        "suspected": clean(failover["reason"]),
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
    return [*found, *_end(failover)]


def phases(failover: dict[str, Any], at: float) -> list[Phase]:
    """Return detection, fence and the start of each service; *at* is now.

    With a proof before any fence, such as an expired host lease, there is no fence phase.
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
    """Return result and duration of the failover in a few words."""
    seconds, started = failover["seconds"], failover["started"]
    if "finished" not in seconds:
        return "under way"
    if "confirmed" not in seconds:
        return f"called off after {seconds['finished']:.2f} s"
    if not failover["services"]:
        return f"confirmed dead after {seconds['confirmed']:.2f} s, no services on it"
    missing = len(not_started(failover))
    if missing:
        return f"{len(started)} of {len(failover['services'])} services run again"
    last = max(start["seconds"] for start in started.values())
    return f"services run again after {last:.2f} s"


def not_started(failover: dict[str, Any]) -> list[str]:
    """Return the services of the dead node that have not started again."""
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


def _end(failover: dict[str, Any]) -> list[Step]:
    seconds, services = failover["seconds"], failover["services"]
    missing = not_started(failover)
    if "finished" not in seconds:
        if "confirmed" not in seconds:
            return [Step(None, "no proof that it is dead yet: nothing is recovered without one")]
        return [Step(None, f"still to start: {', '.join(missing) or 'nothing'}")]
    at = seconds["finished"]
    if "confirmed" not in seconds:
        return [Step(at, f"called off: {clean(failover['proof']).replace('none: ', '', 1)}")]
    if not services:
        return [Step(at, "over: no services were on it")]
    if not missing:
        return []
    again = f"{len(services) - len(missing)} of {len(services)} services run again"
    return [Step(at, f"over: {again}; not started: {', '.join(missing)}")]
