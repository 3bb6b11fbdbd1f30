# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a service or a node is in its state: the reasons now, and those of the last decision.

No daemon is asked.  The manager's record has the reason of the last change, which is history: a
node that was rejected then may be fit now.  What holds now is computed here by the rules that the
manager goes by.
"""

from __future__ import annotations

import textwrap
import time
from collections.abc import Iterator, Sequence
from typing import Any

from ...cluster.crm.selection import better_place, choose
from ...cluster.lrm.commands import stops_first
from ...cluster.model.desired import DesiredState
from ...cluster.model.desired_codec import request_document
from ...cluster.model.maintenance import (
    maintenance_document,
    maintenance_from_document,
    maintenance_text,
    utc,
)
from ...cluster.model.observed import ObservedState
from ...cluster.model.rules import rule_document
from ...cluster.model.service import STARTED, STOPPED
from ...cluster.model.state import ClusterState, NodeStatus, ServiceStatus
from ...cluster.model.states import ServiceState
from ...names import unknown_name
from ...node.configuration import NodeConfiguration
from ...text import age, clean
from .record_problems import unknown_node
from .status import event_document, last_choices, node_reason, read_status


def read_why(configuration: NodeConfiguration, subject: str) -> dict[str, Any]:
    """Return why a service or node is in its state, as plain data.

    *subject* is the id of a service, else the name of a node.  Raises ``InputError`` for neither.
    """
    from ..forecast.moves import look

    status = read_status(configuration)
    managed = status["manager"]["active"]
    conditions = [one for one in status["conditions"] if one["subject"] == subject]
    state, observed = look(configuration)
    desired, at = observed.desired, time.time()
    if subject in desired.services or subject in state.services:
        return why_service(subject, state, observed, at, managed=managed, conditions=conditions)
    member = configuration.members.get(subject)
    if member is not None or subject in state.nodes:
        why = why_node(subject, state, desired, at, managed=managed, conditions=conditions)
        return {**why, **(unknown_node(subject, member, state) if member is not None else {})}
    known = [*desired.services, *configuration.members]
    raise unknown_name(subject, "SERVICE|NODE", known, "the id of a service or the name of a node")


def why_service(
    name: str,
    state: ClusterState,
    observed: ObservedState,
    at: float,
    *,
    managed: bool | None = True,
    conditions: Sequence[dict[str, str]] = (),
) -> dict[str, Any]:
    """Return why a service is in its state and on its node; see docs/status.md.

    *managed* is whether a node holds the manager lease, None if that is not known.  *conditions*
    are those of the status that are about it.
    """
    desired = observed.desired
    status = state.services.get(name, ServiceStatus(ServiceState.PROBE))
    definition = desired.services.get(name)
    request = desired.requests.get(name)
    return {
        "kind": "service",
        "name": name,
        "at": at,
        "cluster": _cluster_note(state, desired, managed),
        "state": status.state.value,
        "wanted": definition.state if definition is not None else "absent",
        "node": status.node,
        "target": status.target,
        "since": status.since,
        "now": reason_now(name, state, observed) if managed else "",
        "others": _other_nodes(name, state, observed) if managed else {},
        "reason": status.why or "not looked at by a manager yet",
        "choice": last_choices(state.events).get(name),
        "failed_nodes": list(status.failed_nodes),
        "crashes": status.crashes,
        "not_before": status.not_before,
        "pinned": desired.pins.get(name, ""),
        "after": list(definition.after) if definition is not None else [],
        "stops_after": stops_first(name, state, desired),
        "rules": [rule_document(rule) for rule in desired.rules() if name in rule.services],
        "request": request_document(request) if request is not None else None,
        "request_heard": request is not None and status.request >= request.made,
        "conditions": list(conditions),
        "history": [event_document(one) for one in state.events if one.service == name],
    }


def reason_now(name: str, state: ClusterState, observed: ObservedState) -> str:
    """Return why a service is where it is, by what holds now; empty for one that is changing."""
    status, definition = state.services.get(name), observed.desired.services.get(name)
    if state.why_paused():
        return f"it is left as it is: {state.why_paused()}"
    if definition is not None and definition.ignored:
        return "it is declared to be ignored: nothing is done"
    if status is None or definition is None:
        return ""
    if definition.state == STOPPED and status.state is ServiceState.STOPPED:
        return "it is declared to be stopped"
    if status.state is ServiceState.STARTED and definition.state == STARTED:
        better = better_place(name, state, observed)
        if better is None:
            return "it stays: no other node is preferred"
        return f"it is to move to {better.node}: {better.reason}" if better.node else better.reason
    if status.state in _PLACED_NEXT and definition.state == STARTED:
        choice = choose(name, state, observed)
        return f"it would start on {choice.node}: {choice.reason}" if choice.node else choice.reason
    return status.why


_PLACED_NEXT = (ServiceState.STOPPED, ServiceState.RECOVERY, ServiceState.REQUEST_START)
"""States of a service for which a node is chosen next."""


def _other_nodes(name: str, state: ClusterState, observed: ObservedState) -> dict[str, str]:
    """Return for each other node why the service cannot run there now; empty if it can."""
    if name not in state.services:
        return {}
    choice = choose(name, state, observed)
    others = set(observed.nodes) - {state.services[name].node}
    return {node: choice.rejected.get(node, "") for node in sorted(others)}


def why_node(
    name: str,
    state: ClusterState,
    desired: DesiredState,
    at: float,
    *,
    managed: bool | None = True,
    conditions: Sequence[dict[str, str]] = (),
) -> dict[str, Any]:
    """Return why a node is in its state, and why each of its services; see docs/status.md.

    *managed* and *conditions* are as in ``why_service``.
    """
    status = state.nodes.get(name, NodeStatus())
    maintenance = desired.maintenance.get(name)
    return {
        "kind": "node",
        "name": name,
        "at": at,
        "cluster": _cluster_note(state, desired, managed),
        "state": status.state.value,
        "since": status.since,
        "reason": node_reason(status),
        "proof": status.proved_by,
        "mode": status.mode,
        "power": status.power.value,
        "fenced": list(status.fenced),
        "maintenance": maintenance_document(maintenance) if maintenance is not None else None,
        "services": {
            one: {"state": state.services[one].state.value, "reason": state.services[one].why}
            for one in state.services_on(name)
        },
        "conditions": list(conditions),
        "history": [
            event_document(one) for one in state.events if one.node == name and not one.service
        ],
    }


def render_why(why: dict[str, Any], width: int = 100) -> str:
    """Return the answer as lines of text, ended by a newline; no reason is cut short."""
    lines = _service_lines(why) if why["kind"] == "service" else _node_lines(why)
    lines += _condition_lines(why)
    if why["cluster"]:
        lines.append(("cluster", why["cluster"]))
    column = max(len(label) for label, _text in lines) + 2
    shown = [
        row for label, text in lines for row in _wrapped(f"{label:<{column}}", clean(text), width)
    ]
    if why["history"]:
        shown += ["", "history"]
        for event in why["history"]:
            shown += _wrapped(f"  {utc(event['at'])}  ", _event_line(event), width)
    return "\n".join(shown) + "\n"


def _service_lines(why: dict[str, Any]) -> list[tuple[str, str]]:
    place = f" on {why['node']}" if why["node"] else ""
    target = f", going to {why['target']}" if why["target"] else ""
    lines = [
        ("service", f"{why['name']} is {why['state']}{place}{target}{_for(why)}"),
        ("declared", why["wanted"]),
    ]
    if why["now"]:
        lines.append(("why", why["now"]))
    for node, reason in why["others"].items():
        lines.append(
            ("not", f"{node}: {reason}") if reason else ("or", f"{node}: it could run there")
        )
    lines.append(("last change", why["reason"]))
    if why["choice"] is not None:
        choice = why["choice"]
        lines.append(("chosen", f"{choice['node']} at {utc(choice['at'])}: {choice['text']}"))
        lines += [("not then", f"{node}: {reason}") for node, reason in choice["rejected"]]
    for rule in why["rules"]:
        lines.append(("rule", _rule(rule)))
    if why["pinned"]:
        unpin = f"holdfast move {why['name']} --unpin"
        lines.append(("pinned", f"to {why['pinned']}, until '{unpin}'"))
    if why["after"]:
        lines.append(("after", ", ".join(why["after"])))
    if why["stops_after"]:
        lines.append(("waits", f"for {', '.join(why['stops_after'])} to stop or leave first"))
    if why["failed_nodes"]:
        lines.append(("failed on", ", ".join(why["failed_nodes"])))
    if why["not_before"] > why["at"]:
        wait = age(why["not_before"] - why["at"])
        lines.append(("waits", f"{wait} more, after {why['crashes']} failures in a row"))
    if why["request"] is not None and not why["request_heard"]:
        asked = f"{why['request']['kind']} {why['request']['node']}".rstrip()
        lines.append(("requested", f"{asked}, not answered yet"))
    return lines


def _node_lines(why: dict[str, Any]) -> list[tuple[str, str]]:
    lines = [("node", f"{why['name']} is {why['state']}{_for(why)}")]
    reason = why["reason"] or ("" if why["conditions"] else "nothing speaks against it")
    if reason:
        lines.append(("why", reason))
    lines += [(key, why[key]) for key in ("proof", "mode", "power") if why[key]]
    if why["maintenance"] is not None:
        drained = maintenance_from_document(why["maintenance"])
        lines.append(("drained", f"since {utc(drained.since)}, {maintenance_text(drained)}"))
    if why["fenced"]:
        lines.append(("fenced", ", ".join(utc(one) for one in why["fenced"])))
    for name, service in why["services"].items():
        lines.append(("has", f"{name} ({service['state']}): {service['reason']}"))
    return lines


def _condition_lines(why: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what the status says besides the reason, and the command that helps."""
    for one in why["conditions"]:
        if why["reason"] and why["reason"] in one["text"]:
            continue
        yield one["severity"], one["text"]
        if not one["next"].startswith("holdfast why "):
            yield "next", one["next"]


def _cluster_note(state: ClusterState, desired: DesiredState, managed: bool | None) -> str:
    """Return why nothing is done in the whole cluster; empty without a reason."""
    unmanaged = ""
    if managed is None:
        unmanaged = (
            "it is not known on this node whether a node holds the manager lease: this may be"
            " what the last manager wrote"
        )
    elif not managed:
        unmanaged = "no node holds the manager lease: this is what the last manager wrote"
    return "; ".join(one for one in (unmanaged, _pause_text(state, desired)) if one)


def _pause_text(state: ClusterState, desired: DesiredState) -> str:
    if state.hold is not None:
        return f"nothing is done in global maintenance ({maintenance_text(state.hold)})"
    if state.disarm:
        waits = f"; waits for {state.disarm_waits}" if state.disarm_waits else ""
        by = f": {maintenance_text(desired.disarmed_by)}" if desired.disarmed_by is not None else ""
        return f"nothing is done, the cluster is {state.disarm} ({state.disarm_mode}{by}){waits}"
    return ""


def _for(why: dict[str, Any]) -> str:
    return f", for {age(why['at'] - why['since'])}" if why["since"] else ""


def _rule(rule: dict[str, Any]) -> str:
    if "affinity" in rule:
        return f"{rule['name']}: {rule['affinity']}: {', '.join(rule['services'])}"
    order = sorted(rule["nodes"].items(), key=lambda one: (-one[1], one[0]))
    nodes = ", ".join(f"{node} ({priority})" for node, priority in order)
    return f"{rule['name']}: {'only on' if rule['strict'] else 'rather on'} {nodes}"


def _event_line(event: dict[str, Any]) -> str:
    """Return a line of the history: kind, node, reason, and rejected nodes."""
    node = f" {event['node']}" if event["node"] else ""
    not_ = "; ".join(f"not {other}: {reason}" for other, reason in event["rejected"])
    return clean(f"{event['kind']}{node}: {event['text']}" + (f" ({not_})" if not_ else ""))


def _wrapped(label: str, text: str, width: int) -> list[str]:
    indent = " " * len(label)
    room = max(width, len(label) + 28)
    return textwrap.wrap(text, room, initial_indent=label, subsequent_indent=indent) or [label]
