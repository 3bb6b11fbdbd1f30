# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""All metrics of holdfast, and their text in the Prometheus exposition format, version 0.0.4.

Names and escaping follow "Exposition formats" and "Metric and label naming": base units, a total
for a counter.  The first metrics are of one node and told by each; the others are of the whole
cluster and told by the manager's node, or by each while there is no manager.  Each has the label
``cluster``; a label that names a node is called ``node``, and scraping adds ``instance``.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field


class Kind(str, enum.Enum):
    """What a metric's numbers are."""

    GAUGE = "gauge"
    COUNTER = "counter"
    SUMMARY = "summary"


@dataclass(frozen=True)
class Metric:
    """A metric: its name without the common prefix, what its numbers are, and its one-line help."""

    name: str
    kind: Kind
    help: str


@dataclass(frozen=True)
class Sample:
    """One number of a metric; *suffix* is ``_sum`` or ``_count`` of a summary."""

    metric: Metric
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)
    suffix: str = ""


def render_metrics(
    prefix: str,
    catalogue: Sequence[Metric],
    samples: Iterable[Sample],
    common: Mapping[str, str],
) -> str:
    """Return *samples* as text, each metric of the *catalogue* that has some with HELP and TYPE.

    Metrics stand in the catalogue's order, and the samples of one in the order given; each
    has the labels *common* before its own.
    """
    found: dict[str, list[Sample]] = {}
    for sample in samples:
        found.setdefault(sample.metric.name, []).append(sample)
    lines: list[str] = []
    for metric in catalogue:
        rows = found.get(metric.name)
        if rows:
            name = prefix + metric.name
            lines.append(f"# HELP {name} {_escaped_help(metric.help)}")
            lines.append(f"# TYPE {name} {metric.kind.value}")
            lines.extend(_line(name, row, common) for row in rows)
    return "\n".join(lines) + "\n" if lines else ""


def _line(name: str, sample: Sample, common: Mapping[str, str]) -> str:
    pairs = {**common, **sample.labels}.items()
    labels = ",".join(f'{key}="{_escaped(value)}"' for key, value in pairs)
    shown = f"{{{labels}}}" if labels else ""
    return f"{name}{sample.suffix}{shown} {_number(sample.value)}"


def _number(value: float) -> str:
    """Return a number; whole ones without a point, so that a version reads as one."""
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(float(value))


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _escaped_help(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


PREFIX = "holdfast_"


def _gauge(name: str, text: str) -> Metric:
    return Metric(name, Kind.GAUGE, text)


def _counter(name: str, text: str) -> Metric:
    return Metric(name, Kind.COUNTER, text)


def _summary(name: str, text: str) -> Metric:
    return Metric(name, Kind.SUMMARY, text)


BUILD = _gauge("build_info", "1; the labels say which version this is.")
READABLE = _gauge("status_readable", "Whether this node can read the cluster's storage.")
WRITTEN = _gauge("metrics_written_timestamp_seconds", "When these metrics were made.")
IS_MANAGER = _gauge("is_manager", "Whether this node holds the manager lease.")
MANAGER_HELD = _gauge(
    "manager_lease_held",
    "Whether any node holds the manager lease; missing while that cannot be told.",
)
DAEMON_UP = _gauge("daemon_up", "Whether a daemon of this node left measurements lately.")
LEASE_AGE = _gauge(
    "lease_age_seconds", "How long ago this node's host lease was renewed, as its LRM sees it."
)
LEASE_MARGIN = _gauge(
    "lease_margin_seconds", "What is left until this node has to stop its services; below 0: over."
)
LEASE_LOOK = _summary("lease_check_seconds", "How long the LRM's looks at its host lease took.")
RENEWAL = _summary("lease_renewal_seconds", "How long renewals of the host lease took.")
RENEWAL_LAST = _gauge(
    "lease_renewal_last_seconds", "How long the last renewal of the host lease took."
)
RENEWAL_SLOWEST = _gauge(
    "lease_renewal_slowest_seconds", "How long the slowest renewal took that sanlock remembers."
)
RENEWALS_FAILED = _gauge(
    "lease_renewals_failed", "How many renewals timed out or failed that sanlock remembers."
)
HEARTBEAT = _summary("heartbeat_write_seconds", "How long writes of this node's heartbeat took.")
STORAGE_LOOK = _summary("storage_look_seconds", "How long the CRM's looks at all nodes took.")
ROUND = _summary("crm_round_seconds", "How long the CRM's rounds took.")
THROWN_AWAY = _counter(
    "crm_rounds_thrown_away_total", "Rounds that took so long that nothing was decided in them."
)
WORKERS_BUSY = _gauge("worker_queue_services", "Services with work waiting or in hand on a node.")
JOB = _summary("worker_job_seconds", "How long jobs of the LRM took, by kind and outcome.")
FENCE = _summary("fence_seconds", "How long fences that this node sent took, by result.")
FENCE_ATTEMPTS = _counter(
    "fence_attempts_total", "Fences that this node sent and that ended, by result."
)
FENCES_UNDER_WAY = _gauge("fences_under_way", "Fences that this node sent and that did not end.")
REHEARSAL = _gauge("fence_rehearsal_timestamp_seconds", "When a node's fencing was last rehearsed.")
REHEARSAL_WORKS = _gauge(
    "fence_rehearsal_works", "Whether the last rehearsal showed that a node's fencing will work."
)

PROBLEMS = _gauge("problems", "How many things of the cluster are not as they should be.")
UNDER_WAY = _gauge("changes_under_way", "How many changes are under way that need nobody's help.")
HELD = _gauge("global_maintenance", "Whether the cluster is held by global maintenance.")
HELD_UNTIL = _gauge(
    "global_maintenance_until_timestamp_seconds", "When it ends by itself; 0 for never."
)
DISARMED = _gauge("disarmed", "Whether the cluster is disarmed, or is being disarmed.")
CONFIGURATION = _gauge("config_version", "The version of the wanted configuration.")
EPOCH = _gauge("manager_epoch", "The version of the manager lease: it rises with each manager.")
NODE_STATE = _gauge("node_state", "1 for the state that a node is in, 0 for the others.")
NODE_SINCE = _gauge("node_state_since_timestamp_seconds", "Since when a node is in its state.")
NODE_MAINTENANCE = _gauge("node_maintenance", "Whether a node is in maintenance.")
NODE_SCORE = _gauge("node_score", "A node's score on the whiteboard.")
NODE_SERVICES = _gauge("node_services", "How many services are, or may be, active on a node.")
NODE_PROBLEM = _gauge("node_record_damaged", "Whether a node's block or record cannot be used.")
NODE_LEASE = _gauge("node_host_lease", "1 for the state that a node's host lease is in.")
SERVICES = _gauge("services", "How many services are in a state.")
SERVICE_RIGHT = _gauge("service_as_wanted", "Whether a service is in the state that is wanted.")
SERVICE_INFO = _gauge("service_info", "1; the labels say where a service is and its state.")
FAILOVERS_OPEN = _gauge("failovers_under_way", "How many failovers are under way.")
FAILOVER_AT = _gauge(
    "failover_last_timestamp_seconds", "When a node last fell silent and was recovered from."
)
FAILOVER_TOOK = _gauge(
    "failover_last_duration_seconds", "How long the phases of a node's last failover took."
)
FAILOVER_SERVICES = _gauge(
    "failover_last_services", "How many services a node's last failover had to start again."
)

OF_A_NODE = (
    *(BUILD, READABLE, WRITTEN, IS_MANAGER, MANAGER_HELD, DAEMON_UP, LEASE_AGE, LEASE_MARGIN),
    *(LEASE_LOOK, RENEWAL, RENEWAL_LAST, RENEWAL_SLOWEST, RENEWALS_FAILED),
    *(HEARTBEAT, STORAGE_LOOK, ROUND, THROWN_AWAY),
    *(WORKERS_BUSY, JOB, FENCE, FENCE_ATTEMPTS, FENCES_UNDER_WAY, REHEARSAL, REHEARSAL_WORKS),
)
OF_THE_CLUSTER = (
    *(PROBLEMS, UNDER_WAY, HELD, HELD_UNTIL, DISARMED, CONFIGURATION, EPOCH),
    *(NODE_STATE, NODE_SINCE, NODE_MAINTENANCE, NODE_SCORE, NODE_SERVICES, NODE_PROBLEM),
    *(NODE_LEASE, SERVICES),
    *(SERVICE_RIGHT, SERVICE_INFO, FAILOVERS_OPEN, FAILOVER_AT, FAILOVER_TOOK),
    FAILOVER_SERVICES,
)
CATALOGUE = (*OF_A_NODE, *OF_THE_CLUSTER)
