# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The wording of the cluster's status, the same on the terminal and on the page.

All functions take the plain data of ``read_status`` or a part of it.  Ages count up to its ``at``.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sized
from typing import Any

from ...cluster.model.maintenance import utc
from ...cluster.model.observed import HostState
from ...cluster.model.state import NodeState
from ...cluster.model.states import ServiceState
from ...text import age, clean
from .record_problems import UNHELD

UNTOLD = "-"
"""Shown where there is no value."""

GLOBAL_MAINTENANCE = (
    "Nothing is fenced, recovered, started or moved until global maintenance is ended."
)
DISARMED = "Nothing is fenced, recovered, started or moved until the cluster is armed again."
EMBEDDED = (
    "Embedded backend: all nodes are on this one machine, which is for trying things out;"
    " it does not survive the machine."
)


class Severity(str, enum.Enum):
    """error: something does not work; warning: it may soon not; note: a change is in progress."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Tone(str, enum.Enum):
    """How good a state is: good, in between, bad, or of no concern."""

    GOOD = "good"
    WARN = "warn"
    BAD = "bad"
    QUIET = "quiet"


_NODE_TONES = {
    NodeState.UNKNOWN.value: Tone.WARN,
    NodeState.ONLINE.value: Tone.GOOD,
    NodeState.OFFLINE.value: Tone.WARN,
    NodeState.SUSPECT.value: Tone.WARN,
    NodeState.FENCE.value: Tone.BAD,
    NodeState.OFF.value: Tone.BAD,
    NodeState.GONE.value: Tone.QUIET,
}
_SERVICE_TONES = {
    ServiceState.STARTED.value: Tone.GOOD,
    ServiceState.FENCE.value: Tone.BAD,
    ServiceState.RECOVERY.value: Tone.BAD,
    ServiceState.ERROR.value: Tone.BAD,
}
_LEASE_TONES = {
    HostState.LIVE.value: Tone.GOOD,
    HostState.FAIL.value: Tone.WARN,
    HostState.DEAD.value: Tone.BAD,
    UNHELD: Tone.WARN,
}


def texts(conditions: Iterable[dict[str, str]], severity: Severity) -> list[str]:
    """Return the sentences of the *conditions* of one severity."""
    return [one["text"] for one in conditions if one["severity"] == severity.value]


def age_since(since: float, at: float) -> str:
    """Return how long ago *since* was at the time *at*, both in seconds since 1970."""
    return age(at - since) if since else UNTOLD


def verdict(status: dict[str, Any]) -> tuple[Tone, str]:
    """Return the state of the cluster in a few words, and its tone.

    It is healthy only without an error and a warning in ``conditions``.
    """
    counts = [
        f"{count} {severity.value}{'' if count == 1 else 's'}"
        for severity in (Severity.ERROR, Severity.WARNING)
        if (count := len(texts(status["conditions"], severity)))
    ]
    if status["problems"]:
        return Tone.BAD, ", ".join(counts)
    if status["global_maintenance"]:
        counts.insert(0, "paused (global maintenance)")
    elif status["disarm"] is not None:
        counts.insert(0, f"{status['disarm']['state']} ({status['disarm']['mode']})")
    if counts:
        return Tone.WARN, ", ".join(counts)
    if status["under_way"]:
        return Tone.WARN, "changes in progress"
    return Tone.GOOD, "healthy"


def is_current(status: dict[str, Any]) -> bool:
    """Return whether a manager keeps the recorded states up to date.

    If not, they are the last known ones: after a power cut of all nodes nothing may run.
    """
    return (
        bool(status["manager"]["active"]) and status["manager_epoch"] >= status["manager"]["epoch"]
    )


def state_heading(status: dict[str, Any]) -> str:
    """Return the heading of a column of states."""
    return "State" if is_current(status) else "Last known state"


def summary(status: dict[str, Any]) -> str:
    """Return how many nodes and services there are, and how many are as they should be."""
    told = "no services declared"
    if status["services"]:
        told = f"{_number(status['services'], 'service')}, {count_as_wanted(status)} as configured"
    last = "" if is_current(status) else "last known: "
    return f"{last}{_number(status['nodes'], 'node')}, {count_online(status)} online; {told}"


def _number(things: Sized, name: str) -> str:
    """Return how many *things* there are, each called *name*."""
    return f"{len(things)} {name}{'' if len(things) == 1 else 's'}"


def count_online(status: dict[str, Any]) -> int:
    """Return how many nodes are online."""
    return sum(one["state"] == NodeState.ONLINE.value for one in status["nodes"].values())


def count_as_wanted(status: dict[str, Any]) -> int:
    """Return how many services are in their desired state on nodes that are online."""
    tones = [service_tone(one, status["nodes"]) for one in status["services"].values()]
    return sum(tone in (Tone.GOOD, Tone.QUIET) for tone in tones)


def manager(status: dict[str, Any]) -> str:
    """Return which node is manager, or was last."""
    lease = status["manager"]
    if lease["active"]:
        return f"manager {clean(lease['node']) or 'unknown'}, epoch {lease['epoch']}"
    if lease["active"] is None:
        return f"manager perhaps {clean(lease['node']) or 'unknown'}, epoch {lease['epoch']}"
    if lease["node"]:
        return f"no manager (the last was {clean(lease['node'])}, epoch {lease['epoch']})"
    return "no manager yet"


def node_tone(node: dict[str, Any]) -> Tone:
    """Return the tone of a node's state; that of a drained node is never good."""
    tone = _NODE_TONES.get(node["state"], Tone.WARN)
    return Tone.WARN if tone is Tone.GOOD and node["maintenance"] else tone


def node_note(node: dict[str, Any], at: float) -> str:
    """Return why a node is in its state."""
    notes = [clean(node["problem"]), _maintenance(node["maintenance"], at), clean(node["reason"])]
    proof = clean(node["proof"])
    if proof and proof not in notes[-1]:
        notes.append(f"proof: {proof}")
    if node["lease_lost"]:
        notes.append(f"it {without_host_lease(node)}")
    return "; ".join(note for note in notes if note)


def without_host_lease(node: dict[str, Any]) -> str:
    """Return what became of a node that lost its host lease, as a part of a sentence."""
    if not node["left"]:
        return "lost its host lease and stops its services"
    left = " and ".join(clean(one) for one in node["left"])
    return (
        f"lost its host lease and does not join again while {left}, left to the operator, may run"
        " there: reboot the node"
    )


def service_tone(service: dict[str, Any], nodes: dict[str, Any]) -> Tone:
    """Return the tone of a service's state; *nodes* are those of the status.

    A service on a node that is not online is never good.
    """
    if service["state"] == service["wanted"] == ServiceState.STOPPED.value:
        return Tone.QUIET
    tone = _SERVICE_TONES.get(service["state"], Tone.WARN)
    wrong = service["wanted"] != service["state"] or _node_in_doubt(service, nodes)
    return Tone.WARN if tone is Tone.GOOD and wrong else tone


def service_place(service: dict[str, Any]) -> str:
    """Return the node a service is on, and the one that it moves to."""
    node, target = clean(service["node"]), clean(service["target"])
    if target and target != node:
        return f"{node} -> {target}" if node else f"-> {target}"
    return node or UNTOLD


def service_note(service: dict[str, Any], nodes: dict[str, Any]) -> str:
    """Return why a service is in its state, and what is wrong with it."""
    notes = [clean(service["reason"])]
    if service.get("pinned"):
        notes.append(f"pinned to {clean(service['pinned'])}")
    failed = f"on {', '.join(map(clean, service['failed_nodes']))}"
    if service["failed_nodes"] and failed not in notes[0]:
        notes.append(f"its start failed {failed}")
    if len(service["running_on"]) > 1:
        notes.append(f"reported by {' and '.join(map(clean, service['running_on']))}")
    if _node_in_doubt(service, nodes) and service["state"] != ServiceState.FENCE.value:
        notes.append(f"its node {clean(service['node'])} is not online")
    return "; ".join(note for note in notes if note)


def lease_tone(state: str) -> Tone:
    """Return the tone of a host lease's state."""
    return _LEASE_TONES.get(state, Tone.QUIET)


def event_subject(event: dict[str, Any]) -> str:
    """Return the service, the node, or "SERVICE on NODE" of an event."""
    service, node = clean(event["service"]), clean(event["node"])
    if service and node:
        return f"{service} on {node}"
    return service or node or UNTOLD


def held(status: dict[str, Any]) -> str:
    """Return owner, reason, begin and end of global maintenance in a sentence; empty without."""
    maintenance = status["maintenance"]
    if maintenance is None:
        return ""
    return f"The cluster is in global maintenance{_maintenance_text(maintenance, status['at'])}."


def capitalized(text: str) -> str:
    """Return *text* with a capital first letter."""
    return text[:1].upper() + text[1:]


def disarmed(status: dict[str, Any]) -> str:
    """Return mode, owner and reason of the disarmed cluster in a sentence; empty while armed."""
    disarm = status["disarm"]
    if disarm is None:
        return ""
    why = _maintenance_text(disarm, status["at"])
    return f"The cluster is {disarm['state']} ({disarm['mode']}){why}."


def _node_in_doubt(service: dict[str, Any], nodes: dict[str, Any]) -> bool:
    """Return whether the service is recorded on a node that is not online."""
    if not service["node"] or service["state"] == ServiceState.RECOVERY.value:
        return False
    node = nodes.get(service["node"])
    return node is None or node["state"] != NodeState.ONLINE.value


def _maintenance(maintenance: dict[str, Any] | None, at: float) -> str:
    if maintenance is None:
        return ""
    return f"in maintenance{_maintenance_text(maintenance, at)}"


def _maintenance_text(maintenance: dict[str, Any], at: float) -> str:
    """Return begin, owner, end and reason of a maintenance, those that are known."""
    text = ""
    if maintenance["since"]:
        text += f" for {age_since(maintenance['since'], at)}"
    if maintenance["owner"]:
        text += f" by {clean(maintenance['owner'])}"
    text += _until(maintenance.get("until", 0.0), at)
    if maintenance["reason"]:
        text += f": {clean(maintenance['reason'])}"
    return text


def _until(until: float, at: float) -> str:
    if not until:
        return ""
    if until <= at:
        return f", over since {utc(until)} and not ended by a manager yet"
    return f", until {utc(until)} (in {age(until - at)})"
