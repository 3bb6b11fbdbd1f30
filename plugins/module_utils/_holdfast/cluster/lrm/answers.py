# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an LRM's report says to the manager's commands and questions, for as long as they stand."""

from __future__ import annotations

from collections.abc import Mapping

from ..model.desired import IGNORE
from ..model.jobs import Job, JobKind
from ..model.report import LocalState
from ..model.service import Service
from ..model.state import ClusterState, ServiceState
from .round import LocalRound


def answer_probes(round_: LocalRound, state: ClusterState, services: Mapping[str, Service]) -> None:
    """Look whether a newly declared service runs here already.

    One that does is looked at again from time to time: if it runs on two nodes,
    the operator stops one of them.  What is left to its operator is asked for afterwards.
    """
    if state.disarm_mode == IGNORE:
        return
    for service_id in state.probes:
        definition, status = services.get(service_id), state.services.get(service_id)
        if definition is None or status is None:
            continue
        if service_id in round_.memory.doubtful | round_.busy:
            continue
        found = round_.report.found.get(status.probe(service_id))
        if found is None or (found and round_.now >= round_.memory.probe_due.get(service_id, 0.0)):
            round_.begin_probe(Job(JobKind.PROBE, definition, status.uid))


def prune(
    round_: LocalRound,
    state: ClusterState,
    services: Mapping[str, Service],
    up_to_date: bool,
) -> None:
    """Forget the uids that the manager's record no longer names; it moved on from them."""
    report = round_.report
    if report.results or report.accepted or report.found:
        named = {*report.results, *report.accepted}
        current = {status.uid for status in state.services.values() if status.uid in named}
        results = {uid: one for uid, one in report.results.items() if uid in current}
        accepted = {uid: one for uid, one in report.accepted.items() if uid in current}
        asked = state.probes if state.disarm_mode != IGNORE else ()
        probes = {state.services[one].probe(one) for one in asked if one in state.services}
        found = {key: one for key, one in report.found.items() if key in probes}
        round_.set(results=results, accepted=accepted, found=found)
    _prune_left(round_, state, services, up_to_date)
    for service_id, local in round_.report.services.items():
        gone = local.state in (LocalState.STOPPED, LocalState.FAILED)
        if gone and service_id not in state.services and service_id not in round_.busy:
            round_.drop(service_id)


def _prune_left(
    round_: LocalRound,
    state: ClusterState,
    services: Mapping[str, Service],
    up_to_date: bool,
) -> None:
    """Forget what was left to its operator once it is answered for, or declared no longer."""

    def stays(service_id: str) -> bool:
        status = state.services.get(service_id)
        if status is None:
            return service_id in services or not up_to_date
        asked = status.state is ServiceState.PROBE
        return asked and status.probe(service_id) not in round_.report.found

    if round_.report.left:
        round_.set(left=tuple(one for one in round_.report.left if stays(one)))
