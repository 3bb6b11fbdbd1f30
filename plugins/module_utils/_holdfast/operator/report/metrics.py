# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The metrics of a node, for the textfile collector of Prometheus' node exporter.

They come from the cluster's status, from what this node's daemons measured, and from the report of
the last fence rehearsals.  While the storage cannot be read, or hangs, only the others are written.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...cluster.model.observed import HostState
from ...cluster.model.state import NodeState
from ...errors import HoldfastError
from ...node.configuration import EMBEDDED, NodeConfiguration
from ...node.daemon import telemetry
from ...node.daemon.telemetry import EVERY, Measured, read_telemetry, telemetry_path
from ...version import VERSION
from . import exposition
from .conditions import CONDITIONS
from .exposition import Sample, render_metrics
from .history import phases
from .readiness import rehearsal_path
from .record_problems import UNHELD
from .status import read_status_in_time

if TYPE_CHECKING:
    # The package fence takes longer to load than all the rest.
    from ...fence.rehearsal.report import NodeReport
    from ...lease.sanlock_views import Renewals

DAEMONS = ("lrm", "crm")
MACHINE = "machine"
HELD_UP = 1.0
"""Seconds by which measurements of a healthy LRM may be late."""

LATE = 4 * EVERY
"""Seconds without measurements after which a daemon counts as down."""

_SPANS = {
    telemetry.LEASE_LOOK: exposition.LEASE_LOOK,
    telemetry.LEASE_RENEWAL: exposition.RENEWAL,
    telemetry.HEARTBEAT_WRITE: exposition.HEARTBEAT,
    telemetry.STORAGE_LOOK: exposition.STORAGE_LOOK,
    telemetry.ROUND_TOOK: exposition.ROUND,
    telemetry.JOB: exposition.JOB,
    telemetry.FENCE: exposition.FENCE,
}
_VALUES = {
    telemetry.ROUNDS_THROWN_AWAY: exposition.THROWN_AWAY,
    telemetry.WORKERS_BUSY: exposition.WORKERS_BUSY,
    telemetry.FENCES_UNDER_WAY: exposition.FENCES_UNDER_WAY,
    telemetry.DATAGRAMS_REFUSED: exposition.DATAGRAMS_REFUSED,
    telemetry.UNANSWERED: exposition.UNANSWERED,
}
FENCE_RESULTS = ("confirmed", "failed")
"""The label ``result`` of fences."""

_LEASE_STATES = (*(state.value for state in HostState), UNHELD)


@dataclass(frozen=True)
class Known:
    """The sources of metrics; *status* is None while the storage cannot be read.

    *measured* is by daemon; *now* is monotonic seconds, *wall* seconds since 1970.
    """

    node: str
    status: dict[str, Any] | None
    measured: dict[str, Measured | None]
    rehearsals: dict[str, NodeReport]
    now: float
    wall: float
    renewals: Renewals | None = None


def node_metrics(
    configuration: NodeConfiguration,
    report: Path | None = None,
    *,
    whole_cluster: bool = False,
    clock: Callable[[], float] = time.monotonic,
    wall_clock: Callable[[], float] = time.time,
) -> str:
    """Return the metrics of this node in the Prometheus text format.

    Those of the whole cluster are on the manager's node alone, so that they are stored once; on
    each node without a manager, or with *whole_cluster*.  *report* is that of the rehearsals, this
    node's own if None; a damaged one counts as none.
    """
    try:
        status: dict[str, Any] | None = read_status_in_time(configuration)
    except HoldfastError:
        status = None
    rehearsals = _rehearsals(report or rehearsal_path(configuration))
    now = clock()
    measured = {
        daemon: read_telemetry(telemetry_path(configuration.run_directory, daemon), now)
        for daemon in (*DAEMONS, MACHINE)
    }
    renewals = _renewals(configuration)
    known = Known(configuration.node, status, measured, rehearsals, now, wall_clock(), renewals)
    return render_metrics(
        exposition.PREFIX,
        exposition.CATALOGUE,
        samples(known, whole_cluster=whole_cluster),
        {"cluster": configuration.cluster},
    )


def samples(known: Known, *, whole_cluster: bool = False) -> list[Sample]:
    """Return the samples of a node, and those of the cluster if this node writes them."""
    found = [
        Sample(exposition.BUILD, 1, {"version": VERSION}),
        Sample(exposition.READABLE, known.status is not None),
        Sample(exposition.WRITTEN, known.wall),
        *_daemon_samples(known),
        *_rehearsal_samples(known.rehearsals),
    ]
    if known.renewals is not None:
        found.append(Sample(exposition.RENEWAL_LAST, known.renewals.last))
        found.append(Sample(exposition.RENEWAL_SLOWEST, known.renewals.slowest))
        found.append(Sample(exposition.RENEWALS_FAILED, known.renewals.failed))
    if known.status is None:
        return found
    manager = known.status["manager"]
    found.append(Sample(exposition.IS_MANAGER, bool(manager["active"]) and _is_manager(known)))
    if manager["active"] is not None:
        found.append(Sample(exposition.MANAGER_HELD, manager["active"]))
    if whole_cluster or not manager["active"] or _is_manager(known):
        found.extend(cluster_samples(known.status))
        found.extend(_never_rehearsed(known))
        found.extend(_never_fenced(known))
    return found


def cluster_samples(status: dict[str, Any]) -> Iterator[Sample]:
    """Return the samples of the cluster; *status* is what ``read_status`` returns."""
    hold = status["maintenance"]
    yield Sample(exposition.PROBLEMS, len(status["problems"]))
    held = [one["id"] for one in status["conditions"]]
    for row in CONDITIONS:
        labels = {"condition": row.id, "severity": row.severity.value}
        yield Sample(exposition.CONDITIONS, held.count(row.id), labels)
    yield Sample(exposition.NOT_AUTHENTIC, len(status["authentication"]["not_authentic"]))
    yield Sample(exposition.UNDER_WAY, len(status["under_way"]))
    yield Sample(exposition.HELD, status["global_maintenance"])
    if hold is not None:
        yield Sample(exposition.HELD_UNTIL, hold["until"])
    yield Sample(exposition.DISARMED, status["disarm"] is not None)
    yield Sample(exposition.CONFIGURATION, status["config_version"])
    yield Sample(exposition.EPOCH, status["manager"]["epoch"])
    for name, node in status["nodes"].items():
        yield from _node_samples(name, node)
    yield from _service_samples(status["services"])
    yield from _failover_samples(status)


def _renewals(configuration: NodeConfiguration) -> Renewals | None:
    """Return the renewals that sanlock remembers; None with embedded leases."""
    if configuration.backend == EMBEDDED:
        return None
    from ...lease.sanlock_views import read_renewals

    return read_renewals(configuration.cluster, configuration.sanlock.run_directory)


def _rehearsals(report: Path) -> dict[str, NodeReport]:
    if not report.exists():
        return {}
    from ...fence.rehearsal.report import load_report

    try:
        return load_report(report)
    except HoldfastError:
        return {}


def _is_manager(known: Known) -> bool:
    return known.status is not None and known.status["manager"]["node"] == known.node


def _daemon_samples(known: Known) -> Iterator[Sample]:
    for daemon in DAEMONS:
        measured = known.measured.get(daemon)
        up = measured is not None and known.now - measured.kept_at <= LATE
        yield Sample(exposition.DAEMON_UP, up, {"daemon": daemon})
    yield from _lease_samples(known.measured.get("lrm"), known.now)
    for measured in known.measured.values():
        if measured is not None:
            yield from _measured_samples(measured)


def _lease_samples(measured: Measured | None, now: float) -> Iterator[Sample]:
    """Return age and margin of the host lease at the LRM's last measurement.

    Without a measurement for longer than ``EVERY`` the LRM hangs, and the age is that of now.
    """
    values = measured.values if measured is not None else {}
    renewed_at = values.get((telemetry.LEASE_RENEWED_AT, ()))
    fail_seconds = values.get((telemetry.LEASE_FAIL_SECONDS, ()))
    if measured is None or renewed_at is None or fail_seconds is None:
        return
    hangs = now - measured.kept_at > EVERY + HELD_UP
    age = max(0.0, (now if hangs else measured.kept_at) - renewed_at)
    yield Sample(exposition.LEASE_AGE, age)
    yield Sample(exposition.LEASE_MARGIN, fail_seconds - age)


def _measured_samples(measured: Measured) -> Iterator[Sample]:
    for (name, labels), value in sorted(measured.values.items()):
        if name in _VALUES:
            yield Sample(_VALUES[name], value, dict(labels))
    for (name, labels), span in sorted(measured.spans.items(), key=lambda row: row[0]):
        if name in _SPANS:
            yield Sample(_SPANS[name], span.total, dict(labels), "_sum")
            yield Sample(_SPANS[name], span.count, dict(labels), "_count")
        if name == telemetry.FENCE:
            yield Sample(exposition.FENCE_ATTEMPTS, span.count, dict(labels))
        if name == telemetry.LEASE_RENEWAL:
            yield Sample(exposition.RENEWAL_LAST, span.last)


def _rehearsal_samples(rehearsals: dict[str, NodeReport]) -> Iterator[Sample]:
    for node, report in sorted(rehearsals.items()):
        newest: dict[str, float] = {}
        for rehearsal in report.rehearsals:
            newest[rehearsal.manner] = max(newest.get(rehearsal.manner, 0.0), rehearsal.at)
        for manner, at in sorted(newest.items()):
            yield Sample(exposition.REHEARSAL, at, {"node": node, "manner": manner})
        if report.rehearsals:
            from ...fence.rehearsal.judge import FAILS

            yield Sample(exposition.REHEARSAL_WORKS, report.verdict != FAILS, {"node": node})


def _never_rehearsed(known: Known) -> Iterator[Sample]:
    """Return time 0 for nodes without a rehearsal in this node's report, so that alerts fire.

    Another node's report may have one; alerts use the newest.
    """
    for node in known.status["nodes"] if known.status is not None else ():
        report = known.rehearsals.get(node)
        if report is None or not report.rehearsals:
            yield Sample(exposition.REHEARSAL, 0, {"node": node})


def _never_fenced(known: Known) -> Iterator[Sample]:
    """Return count 0 for fences that this node did not send, so that the first one is an increase.

    Only with the cluster's samples: else there was a series for each pair of nodes.
    """
    crm = known.measured.get("crm")
    if crm is None or known.status is None:
        return
    for node in known.status["nodes"]:
        for result in FENCE_RESULTS:
            labels = {"node": node, "result": result}
            if (telemetry.FENCE, tuple(sorted(labels.items()))) not in crm.spans:
                yield Sample(exposition.FENCE_ATTEMPTS, 0, labels)


def _node_samples(name: str, node: dict[str, Any]) -> Iterator[Sample]:
    labels = {"node": name}
    for state in NodeState:
        yield Sample(
            exposition.NODE_STATE, node["state"] == state.value, {**labels, "state": state.value}
        )
    if node["since"]:
        yield Sample(exposition.NODE_SINCE, node["since"], labels)
    yield Sample(exposition.NODE_MAINTENANCE, node["maintenance"] is not None, labels)
    yield Sample(exposition.NODE_SCORE, node["score"], labels)
    yield Sample(exposition.NODE_SERVICES, len(node["services"]), labels)
    yield Sample(exposition.NODE_PROBLEM, bool(node["problem"]), labels)
    for state_ in _LEASE_STATES:
        here = node["host_lease"]["state"] == state_
        yield Sample(exposition.NODE_LEASE, here, {**labels, "state": state_})


def _service_samples(services: dict[str, Any]) -> Iterator[Sample]:
    counts: dict[str, int] = {}
    for service in services.values():
        counts[service["state"]] = counts.get(service["state"], 0) + 1
    for state, count in sorted(counts.items()):
        yield Sample(exposition.SERVICES, count, {"state": state})
    for service_id, service in services.items():
        right = service["state"] == service["wanted"] and len(service["running_on"]) <= 1
        yield Sample(exposition.SERVICE_RIGHT, right, {"service": service_id})
        where = {"service": service_id, "node": service["node"]}
        told = {**where, "state": service["state"], "wanted": service["wanted"]}
        yield Sample(exposition.SERVICE_INFO, 1, told)


def _failover_samples(status: dict[str, Any]) -> Iterator[Sample]:
    last: dict[str, dict[str, Any]] = {}
    for failover in status["failovers"]:
        if failover["finished"] and "confirmed" in failover["seconds"]:
            last[failover["node"]] = failover
    open_ = sum(1 for failover in status["failovers"] if not failover["finished"])
    yield Sample(exposition.FAILOVERS_OPEN, open_)
    for node, failover in sorted(last.items()):
        labels = {"node": node}
        yield Sample(exposition.FAILOVER_AT, failover["last_heartbeat"], labels)
        yield Sample(exposition.FAILOVER_SERVICES, len(failover["services"]), labels)
        took: dict[str, float] = {"total": 0.0}
        for phase in phases(failover, status["at"]):
            took[phase.kind.value] = max(took.get(phase.kind.value, 0.0), phase.seconds)
            took["total"] = max(took["total"], phase.end)
        for kind, seconds in took.items():
            yield Sample(exposition.FAILOVER_TOOK, seconds, {**labels, "phase": kind})
