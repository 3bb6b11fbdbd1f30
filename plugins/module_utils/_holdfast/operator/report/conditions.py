# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of everything an operator has to act on, or wait for.

The status, ``holdfast check``, the page, the metrics and the alert rules are made from this table.
A row finds its condition in the plain data of ``read_status``; nothing else decides what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ...cluster.model.maintenance import NOT_PROVED
from ...cluster.model.membership import REMEDY
from ...cluster.model.report import Mode
from ...cluster.model.service import STARTED, STOPPED
from ...cluster.model.state import NodeState
from ...cluster.model.states import TRAITS, ServiceState
from ...cluster.model.versions import paused
from ...text import age
from . import wording
from .wording import Severity, texts

Status = dict[str, Any]
Found = tuple[str, str]
"""A condition that holds: its subject (a node, a service, or empty), and a sentence."""

STOPPING_LONG = 60.0
"""Seconds after which a stop or restart is shown as slow: a restart usually takes 5 seconds.
"""

REHEARSED_WITHIN = 8 * 86400.0
"""Seconds for which a rehearsal of fencing counts: a week, and a day for the timer's delay."""

MOST_NAMED = 5
"""How many blocks and records that are not authentic are named one by one."""


@dataclass(frozen=True)
class Row:
    """A kind of condition.

    *next* is the command that helps, with the subject for ``{}``.  A *passing* one ends without an
    operator.  Waits for a settled cluster wait for those *waited_for*.
    """

    id: str
    severity: Severity
    next: str
    find: Callable[[Status], Iterable[Found]]
    passing: bool = False
    readiness: bool = False

    @property
    def waited_for(self) -> bool:
        """Whether the cluster is not settled while this holds."""
        return self.passing or (self.severity is Severity.ERROR and not self.readiness)


def find_conditions(status: Status) -> list[dict[str, str]]:
    """Return all conditions that hold, the most severe first, as plain data.

    Each has ``id``, ``severity``, ``subject``, ``text`` and ``next``.  *status* is what
    ``read_status`` gathers.
    """
    found = [
        {
            "id": row.id,
            "severity": row.severity.value,
            "subject": subject,
            "text": text,
            "next": row.next.format(subject),
        }
        for row in CONDITIONS
        for subject, text in row.find(status)
    ]
    order = list(Severity)
    return sorted(found, key=lambda one: order.index(Severity(one["severity"])))


def add_conditions(status: Status) -> None:
    """Add ``conditions`` to *status*, and ``problems`` and ``under_way`` from them."""
    conditions = find_conditions(status)
    status["conditions"] = conditions
    status["problems"] = texts(conditions, Severity.ERROR)
    status["under_way"] = [one["text"] for one in conditions if one["id"] in PASSING]


def unsettled(status: Status) -> list[str]:
    """Return, one sentence each, what a wait for a settled cluster waits for."""
    return [one["text"] for one in find_conditions(status) if one["id"] in _WAITED_FOR]


def _regressions(status: Status) -> Iterator[Found]:
    if status["regressions"]:
        text = paused(status["regressions"])
        yield "", f"{text[0].upper()}{text[1:]}."


def _damaged_copies(status: Status) -> Iterator[Found]:
    for one in status["damaged_copies"]:
        yield "", f"{one}."


def _not_authentic(status: Status) -> Iterator[Found]:
    found = status["authentication"]["not_authentic"]
    named = found if len(found) <= MOST_NAMED else found[: MOST_NAMED - 1]
    for one in named:
        yield "", f"{one}."
    if len(found) > len(named):
        more = len(found) - len(named)
        yield "", f"{more} more blocks and records are not authentic."


def _key(status: Status) -> Iterator[Found]:
    problem = status["authentication"]["key_problem"]
    if problem:
        yield "", f"{problem} The keys read before stay valid."


def _no_manager(status: Status) -> Iterator[Found]:
    if status["manager"]["active"] is False:
        yield "", "No node holds the manager lease: nothing is decided until one does."


def _manager_unknown(status: Status) -> Iterator[Found]:
    manager = status["manager"]
    if manager["active"] is None:
        node = manager["node"]
        yield (
            node,
            f"It is not known on this node whether node {node or 'unknown'} still holds the manager"
            " lease: all states are the last known ones.",
        )


def _manager_late(status: Status) -> Iterator[Found]:
    manager = status["manager"]
    late = manager["active"] and manager["epoch"] > status["manager_epoch"]
    if late and not status["regressions"]:
        yield (
            manager["node"],
            f"Node {manager['node']} holds the manager lease and has not taken over yet; the log of"
            " its CRM says why.",
        )


def _foreign_hosts(status: Status) -> Iterator[Found]:
    membership = status["membership"]
    for host_id, name in sorted(membership["foreign_hosts"].items()):
        yield (
            name,
            f"Host id {host_id} ({name}) runs, but is not in the cluster's membership (version"
            f" {membership['version']}): {REMEDY}.",
        )


def _membership(status: Status) -> Iterator[Found]:
    membership = status["membership"]
    node = membership["read_on"]
    if membership["differs"] and not status["nodes"].get(node, {}).get("problem"):
        yield (
            node,
            f"The configuration file of {node} is not the cluster's membership (version"
            f" {membership['version']}): {membership['differs']}; {REMEDY}.",
        )


def _node_problem(status: Status) -> Iterator[Found]:
    for name, node in status["nodes"].items():
        if node["problem"]:
            yield name, f"Node {name}: {node['problem']}."


def _node_not_online(status: Status) -> Iterator[Found]:
    for name, node in status["nodes"].items():
        usual = node["problem"] or node["maintenance"]
        if not usual and node["state"] != NodeState.ONLINE.value:
            state = "to be fenced" if node["state"] == NodeState.FENCE.value else node["state"]
            yield name, f"Node {name} is {state}: {node['reason'] or 'no reason known'}."


def _fence_unconfirmed(status: Status) -> Iterator[Found]:
    for name, node in status["nodes"].items():
        kept = node["maintenance"]
        if kept is not None and kept["reason"].endswith(NOT_PROVED):
            yield (
                name,
                f"Node {name} was to be fenced by hand, and may be on: {kept['reason']}.",
            )


def _secret_wrong(status: Status) -> Iterator[Found]:
    for name, node in status["nodes"].items():
        for place, text in node["secrets"].items() if node["state"] not in _NOT_RUNNING else ():
            service, _slash, parameter = place.partition("/")
            yield (
                name,
                f"Node {name}, service {service}, {parameter.replace('/', '.')}: {text}.",
            )


def _secret_inline(status: Status) -> Iterator[Found]:
    for name, service in status["services"].items():
        if service["inline_secrets"]:
            yield (
                name,
                f"Service {name} has {', '.join(service['inline_secrets'])} with a secret on the"
                " shared storage: put it into a file of the nodes, and declare NAME_file instead.",
            )


def _service_state(status: Status) -> Iterator[Found]:
    for name, service in status["services"].items():
        if service["state"] == service["wanted"] or service["state"] in _IN_PROGRESS:
            continue
        if service["state"] == ServiceState.FENCE.value:
            yield name, f"Service {name} {service['reason']}."
            continue
        text = f"is {service['state']}"
        if {service["state"], service["wanted"]} == {STARTED, STOPPED}:
            text = f"{text}, not {service['wanted']} as configured"
        yield name, f"Service {name} {text}: {service['reason']}."


def _service_twice(status: Status) -> Iterator[Found]:
    for name, service in status["services"].items():
        if len(service["running_on"]) > 1:
            yield name, f"Service {name} is reported by {' and '.join(service['running_on'])}."


def _rehearsals(status: Status) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each node and its last rehearsal on this node; none where no device fences."""
    fencing = status["fencing"]
    if fencing is not None and not fencing["problem"]:
        for name in status["nodes"]:
            yield name, fencing["rehearsals"].get(name, {"verdict": "", "at": 0.0, "problems": []})


def _fencing_fails(status: Status) -> Iterator[Found]:
    for name, last in _rehearsals(status):
        if last["verdict"] == "fails":
            why = " ".join(last["problems"]) or "no reason known."
            yield name, f"Fencing of {name} would fail: {why}"


def _fencing_degraded(status: Status) -> Iterator[Found]:
    for name, last in _rehearsals(status):
        if last["verdict"] == "degraded":
            why = " ".join(last["problems"]) or "one level does not work."
            yield name, f"Fencing of {name} works only in part: {why}"


def _fencing_not_rehearsed(status: Status) -> Iterator[Found]:
    never = [name for name, last in _rehearsals(status) if not last["at"]]
    if never:
        names = ", ".join(never)
        yield "", f"Fencing was never rehearsed from {status['membership']['read_on']}: {names}."


def _fencing_rehearsal_old(status: Status) -> Iterator[Found]:
    for name, last in _rehearsals(status):
        if last["at"] and status["at"] - last["at"] > REHEARSED_WITHIN:
            since = age(status["at"] - last["at"])
            yield name, f"Fencing of {name} was last rehearsed {since} ago."


def _fencing_unknown(status: Status) -> Iterator[Found]:
    fencing = status["fencing"]
    if fencing is not None and fencing["problem"]:
        yield "", f"Whether fencing works is not known: {fencing['problem']}"


def _global_maintenance(status: Status) -> Iterator[Found]:
    if status["global_maintenance"]:
        yield "", f"{wording.held(status)} {wording.GLOBAL_MAINTENANCE}".strip()


def _disarmed(status: Status) -> Iterator[Found]:
    if status["disarm"] is not None:
        yield "", f"{wording.disarmed(status)} {wording.DISARMED}"


def _maintenance(status: Status) -> Iterator[Found]:
    for name, node in status["nodes"].items():
        if node["maintenance"] is not None:
            yield name, f"Node {name}: {wording.node_note(node, status['at'])}."


def _drain_blocked(status: Status) -> Iterator[Found]:
    for name, node in status["nodes"].items():
        for service, why in node["blocked"].items():
            yield name, f"Service {service} cannot leave node {name}, which is drained: {why}."


def _lease_lost(status: Status) -> Iterator[Found]:
    for name, node in status["nodes"].items():
        if node["lease_lost"]:
            yield name, f"Node {name} {wording.without_host_lease(node)}."


def _stops_long(status: Status) -> Iterator[Found]:
    for name, node in status["nodes"].items():
        lasts = status["at"] - node["mode_since"] if node["mode_since"] else 0.0
        if node["mode"] in _STOPPING and lasts > STOPPING_LONG:
            what = _STOPPING[node["mode"]]
            yield name, f"{what} of node {name} has been in progress for {age(lasts)}."


def _unmanaged(status: Status) -> Iterator[Found]:
    for name, node in status["nodes"].items():
        if node["left"]:
            services = ", ".join(node["left"])
            yield name, f"Not managed on node {name} since it was disarmed or removed: {services}."


def _unreachable(status: Status) -> Iterator[Found]:
    for name, seconds in status["unanswered"].items():
        if status["nodes"].get(name, {}).get("state") == NodeState.ONLINE.value:
            yield (
                name,
                f"Node {name} is online, but has not answered {status['membership']['read_on']} on"
                f" the network for {age(seconds)}.",
            )


def _failover(status: Status) -> Iterator[Found]:
    for failover in status["failovers"]:
        if not failover["finished"]:
            yield failover["node"], f"The failover of node {failover['node']} is in progress."


def _service_changing(status: Status) -> Iterator[Found]:
    for name, service in status["services"].items():
        if service["state"] in _IN_PROGRESS:
            what = _IN_PROGRESS[service["state"]]
            yield name, f"Service {name} is {what}: {service['reason'] or 'just declared'}."


def _configuration(status: Status) -> Iterator[Found]:
    if status["config_taken_up"] < status["config_version"]:
        version = status["config_version"]
        yield "", f"Version {version} of the configuration is not applied by the manager yet."


def _node_returning(status: Status) -> Iterator[Found]:
    for name, node in status["nodes"].items():
        if _returns(node, status):
            yield name, f"Node {name} takes no services yet: {_NOT_ACTIVE[node['mode']]}."


def _disarming(status: Status) -> Iterator[Found]:
    if status["disarm"] is not None and status["disarm"]["waits_for"]:
        yield (
            "",
            f"The cluster is not disarmed yet; it waits for {status['disarm']['waits_for']}.",
        )


def _leases_freed(status: Status) -> Iterator[Found]:
    for text in status.get("leases_being_freed", ()):
        yield "", text


def _returns(node: dict[str, Any], status: Status) -> bool:
    """Return whether the mode of an online node passes, as no operator requested it."""
    if node["state"] != NodeState.ONLINE.value or node["mode"] not in _NOT_ACTIVE:
        return False
    if node["mode"] == Mode.MAINTENANCE.value:
        return node["maintenance"] is None
    return node["mode"] != Mode.DISARM.value or status["disarm"] is None


_IN_PROGRESS = {state.value: one.progress for state, one in TRAITS.items() if one.progress}
"""States that end without an operator: a service in one of them is no problem."""

_NOT_RUNNING = (NodeState.OFF.value, NodeState.OFFLINE.value, NodeState.GONE.value)

_STOPPING = {
    Mode.RESTART.value: "A restart of the daemons",
    Mode.SHUTDOWN.value: "The shutdown",
}

_NOT_ACTIVE = {
    Mode.MAINTENANCE.value: "its LRM still keeps it empty",
    Mode.RESTART.value: "it, or its LRM, is being restarted",
    Mode.SHUTDOWN.value: "it is shutting down",
    Mode.DISARM.value: "its LRM is still disarmed",
}
"""Modes of the LRM of an online node in which no service is placed on it."""

_E, _W, _N = Severity.ERROR, Severity.WARNING, Severity.NOTE
CONDITIONS = (
    Row("record_regression", _E, "holdfast records repair --keep running", _regressions),
    Row("record_copy_damaged", _E, "holdfast lint", _damaged_copies),
    Row("not_authentic", _E, "holdfast lint", _not_authentic),
    Row("cluster_key", _E, "holdfast key show", _key),
    Row("manager_missing", _E, "systemctl status holdfast-crm", _no_manager),
    Row("manager_late", _E, "journalctl -u holdfast-crm", _manager_late),
    Row("foreign_host", _E, "holdfast membership", _foreign_hosts),
    Row("membership_differs", _E, "holdfast membership", _membership),
    Row("node_problem", _E, "holdfast why {}", _node_problem),
    Row("node_not_online", _E, "holdfast why {}", _node_not_online),
    Row("fence_unconfirmed", _E, "holdfast fence {}", _fence_unconfirmed),
    Row("secret_wrong", _E, "holdfast why {}", _secret_wrong),
    Row("service_state", _E, "holdfast why {}", _service_state),
    Row("service_twice", _E, "holdfast why {}", _service_twice),
    Row("fencing_fails", _E, "holdfast rehearse {}", _fencing_fails, readiness=True),
    Row("manager_unknown", _W, "holdfast status", _manager_unknown, passing=True),
    Row("global_maintenance", _W, "holdfast resume", _global_maintenance),
    Row("disarmed", _W, "holdfast resume", _disarmed),
    Row("maintenance", _W, "holdfast undrain {}", _maintenance),
    Row("drain_blocked", _W, "holdfast why {}", _drain_blocked),
    Row("fencing_degraded", _W, "holdfast rehearse {}", _fencing_degraded),
    Row("fencing_not_rehearsed", _W, "holdfast rehearse", _fencing_not_rehearsed),
    Row("fencing_rehearsal_old", _W, "holdfast rehearse {}", _fencing_rehearsal_old),
    Row("fencing_unknown", _W, "holdfast rehearse", _fencing_unknown),
    Row("secret_inline", _W, "holdfast why {}", _secret_inline),
    Row("lease_lost", _W, "holdfast why {}", _lease_lost),
    Row("stopping_long", _W, "systemctl list-jobs", _stops_long),
    Row("unmanaged", _W, "holdfast why {}", _unmanaged),
    Row("node_unreachable", _W, "ping {}", _unreachable),
    Row("failover", _W, "holdfast status --watch", _failover, passing=True),
    Row("service_changing", _N, "holdfast why {}", _service_changing, passing=True),
    Row("configuration_pending", _N, "holdfast status --watch", _configuration, passing=True),
    Row("node_returning", _N, "holdfast why {}", _node_returning, passing=True),
    Row("disarming", _N, "holdfast status --watch", _disarming, passing=True),
    Row("lease_being_freed", _N, "holdfast status --watch", _leases_freed, passing=True),
)
"""The table; its order is that of the sentences of one severity."""

PASSING = frozenset(row.id for row in CONDITIONS if row.passing)
_WAITED_FOR = frozenset(row.id for row in CONDITIONS if row.waited_for)
