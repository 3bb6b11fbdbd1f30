# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The catalogue of metrics, and their text in the Prometheus exposition format, version 0.0.4.

Names and escaping follow Prometheus' "Exposition formats" and "Metric and label naming".  Each
sample has the label ``cluster``; a label that names a node is ``node``: scraping adds ``instance``.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ...text import printable


class Kind(str, enum.Enum):
    """What a metric's numbers are."""

    GAUGE = "gauge"
    COUNTER = "counter"
    SUMMARY = "summary"


@dataclass(frozen=True)
class Metric:
    """A metric: its name without ``PREFIX``, what its numbers are, and its one-line help."""

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
        rows = found.get(metric.name, ())
        name = prefix + metric.name
        if rows:
            lines.append(f"# HELP {name} {_escaped_help(metric.help)}")
            lines.append(f"# TYPE {name} {metric.kind.value}")
        for sample in rows:
            pairs = {**common, **sample.labels}.items()
            escaped = {key: _escaped_help(value).replace('"', '\\"') for key, value in pairs}
            labels = ",".join(f'{key}="{value}"' for key, value in escaped.items())
            shown, value = f"{{{labels}}}" if labels else "", sample.value
            # Whole ones without a point, so that a version reads as one.
            whole = value == int(value) and abs(value) < 1e15
            number = str(int(value)) if whole else repr(float(value))
            lines.append(f"{name}{sample.suffix}{shown} {number}")
    return "\n".join(lines) + "\n" if lines else ""


def _escaped_help(text: str) -> str:
    return printable(text).replace("\\", "\\\\").replace("\n", "\\n")


PREFIX = "holdfast_"
CATALOGUE: list[Metric] = []
"""All metrics, in the order in which they are written."""


def _metric(name: str, text: str, kind: Kind = Kind.GAUGE) -> Metric:
    """Return a metric, added to the catalogue."""
    CATALOGUE.append(Metric(name, kind, text))
    return CATALOGUE[-1]


# Of one node; each node writes its own.
BUILD = _metric("build_info", "1; the labels show the version.")
READABLE = _metric("status_readable", "Whether this node can read the cluster's storage.")
WRITTEN = _metric("metrics_written_timestamp_seconds", "When these metrics were made.")
IS_MANAGER = _metric("is_manager", "Whether this node holds the manager lease.")
MANAGER_HELD = _metric(
    "manager_lease_held",
    "Whether any node holds the manager lease; missing while that is not known.",
)
DAEMON_UP = _metric("daemon_up", "Whether a daemon of this node left measurements lately.")
LEASE_AGE = _metric(
    "lease_age_seconds", "How long ago this node's host lease was renewed, as its LRM sees it."
)
LEASE_MARGIN = _metric(
    "lease_margin_seconds", "What is left until this node has to stop its services; below 0: over."
)
LEASE_LOOK = _metric(
    "lease_check_seconds", "How long the LRM's looks at its host lease took.", Kind.SUMMARY
)
RENEWAL = _metric(
    "lease_renewal_seconds", "How long renewals of the host lease took.", Kind.SUMMARY
)
RENEWAL_LAST = _metric(
    "lease_renewal_last_seconds", "How long the last renewal of the host lease took."
)
RENEWAL_SLOWEST = _metric(
    "lease_renewal_slowest_seconds", "How long the slowest renewal took that sanlock remembers."
)
RENEWALS_FAILED = _metric(
    "lease_renewals_failed", "How many renewals timed out or failed that sanlock remembers."
)
HEARTBEAT = _metric(
    "heartbeat_write_seconds", "How long writes of this node's heartbeat took.", Kind.SUMMARY
)
STORAGE_LOOK = _metric(
    "storage_look_seconds", "How long the CRM's looks at all nodes took.", Kind.SUMMARY
)
ROUND = _metric("crm_round_seconds", "How long the CRM's rounds took.", Kind.SUMMARY)
THROWN_AWAY = _metric(
    "crm_rounds_thrown_away_total",
    "Rounds that took too long, in which nothing was decided.",
    Kind.COUNTER,
)
WORKERS_BUSY = _metric("worker_queue_services", "Services with work waiting or in hand on a node.")
JOB = _metric(
    "worker_job_seconds", "How long jobs of the LRM took, by kind and outcome.", Kind.SUMMARY
)
FENCE = _metric(
    "fence_seconds", "How long fences that this node sent took, by result.", Kind.SUMMARY
)
FENCE_ATTEMPTS = _metric(
    "fence_attempts_total", "Fences that this node sent and that ended, by result.", Kind.COUNTER
)
FENCES_UNDER_WAY = _metric("fences_under_way", "Fences that this node sent and that did not end.")
UNANSWERED = _metric(
    "network_unanswered_seconds", "How long a node has not answered this one; 0 if it answers."
)
DATAGRAMS_REFUSED = _metric(
    "datagrams_refused_total", "Datagrams that a daemon did not believe.", Kind.COUNTER
)
REHEARSAL = _metric(
    "fence_rehearsal_timestamp_seconds", "When a node's fencing was last rehearsed."
)
REHEARSAL_WORKS = _metric(
    "fence_rehearsal_works", "Whether the last rehearsal showed that a node's fencing will work."
)

# Of the cluster; the manager's node writes them, or each node while there is no manager.
PROBLEMS = _metric("problems", "How many errors the status of the cluster has.")
CONDITIONS = _metric(
    "condition", "How often a condition of the table in docs/status.md holds, with its severity."
)
NOT_AUTHENTIC = _metric(
    "not_authentic", "How many blocks and records on the storage were not written by a member."
)
UNDER_WAY = _metric("changes_under_way", "How many changes are under way that need nobody's help.")
HELD = _metric("global_maintenance", "Whether the cluster is paused (global maintenance).")
HELD_UNTIL = _metric(
    "global_maintenance_until_timestamp_seconds", "When it ends by itself; 0 for never."
)
DISARMED = _metric("disarmed", "Whether the cluster is disarmed, or is being disarmed.")
CONFIGURATION = _metric("config_version", "The version of the desired configuration.")
EPOCH = _metric("manager_epoch", "The version of the manager lease: it rises with each manager.")
NODE_STATE = _metric("node_state", "1 for the state that a node is in, 0 for the others.")
NODE_SINCE = _metric("node_state_since_timestamp_seconds", "Since when a node is in its state.")
NODE_MAINTENANCE = _metric("node_maintenance", "Whether a node is in maintenance.")
NODE_SCORE = _metric(
    "node_score",
    "A node's score on the whiteboard: 3400, or 0 while it is drained, in trouble or shut down."
    " It is no measure of health.",
)
NODE_SERVICES = _metric("node_services", "How many services are, or may be, active on a node.")
NODE_PROBLEM = _metric("node_record_damaged", "Whether a node's block or record cannot be used.")
NODE_LEASE = _metric("node_host_lease", "1 for the state that a node's host lease is in.")
SERVICES = _metric("services", "How many services are in a state.")
SERVICE_RIGHT = _metric("service_as_wanted", "Whether a service is in its desired state.")
SERVICE_INFO = _metric("service_info", "1; the labels show the node and the state of a service.")
FAILOVERS_OPEN = _metric("failovers_under_way", "How many failovers are under way.")
FAILOVER_AT = _metric(
    "failover_last_timestamp_seconds", "When a node last fell silent and was recovered from."
)
FAILOVER_TOOK = _metric(
    "failover_last_duration_seconds", "How long the phases of a node's last failover took."
)
FAILOVER_SERVICES = _metric(
    "failover_last_services", "How many services a node's last failover had to start again."
)
