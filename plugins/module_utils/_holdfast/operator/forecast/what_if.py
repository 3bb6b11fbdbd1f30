# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Answers ``holdfast what-if`` and the module ``failover_simulation``: what would happen here.

The cluster's state is read from the storage, and simulated from there (``simulator/what_if.py``).
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from ...cluster.model.desired import MOVE, DesiredState, Request
from ...cluster.model.report import CommandResult, Report
from ...cluster.model.rules import Rule, rule_from_options
from ...cluster.model.state import ClusterState
from ...errors import HoldfastError, StorageError
from ...names import unknown_name
from ...node.cluster_storage import ClusterStorage
from ...node.configuration import EMBEDDED, NodeConfiguration
from ...node.configuration_file import load
from ...result import Result
from ...simulator.settings import Settings
from ...simulator.what_if import QUESTIONS, Answer, Now, Question, usual_seconds, what_if
from ...storage.lockspace.host_timing import LeaseTiming
from ...text import clean
from .moves import look, place_of, refuse_move, refuse_state

AGENT_SECONDS = 2.0
FENCE_SECONDS = 3.0
BOOT_SECONDS = 60.0
"""The times that are assumed before any was measured."""


def simulate_failover(options: Mapping[str, Any], check: bool) -> Result:
    """Answer the module ``failover_simulation``; it changes nothing in any mode."""
    configuration = load(Path(options["config"]))
    rules = [_rule(row, configuration) for row in options.get("rules") or ()]
    refuse_unknown_nodes(configuration, options)
    now = read_now(configuration, options.get("boot_seconds") or BOOT_SECONDS)
    answer = ask(configuration, now, options, rules)
    values = answer_document(answer)
    values["text"] = render_answer(answer, options.get("drained") or ())
    return Result(values=values)


def refuse_unknown_nodes(configuration: NodeConfiguration, options: Mapping[str, Any]) -> None:
    """Raise ``InputError`` for a node in a question of *options* that the cluster has not."""
    moves: Mapping[str, str] = options.get("moves") or {}
    for kind in QUESTIONS:
        for node in options.get(kind) or ():
            configuration.require_member(node, kind)
    for node in moves.values():
        configuration.require_member(node, "moves")


def ask(
    configuration: NodeConfiguration,
    now: Now,
    options: Mapping[str, Any],
    rules: Sequence[Rule] = (),
) -> Answer:
    """Return what would happen if all that *options* name happened at once.

    *options* has a list of nodes for each of ``QUESTIONS``, and in ``moves`` the nodes to which
    services are moved; all are nodes of the cluster.  Raises ``InputError`` for a move that would
    be refused.
    """
    desired = now.desired
    moves: Mapping[str, str] = options.get("moves") or {}
    for rule in rules:
        desired = desired.with_rule(rule)
    questions = [Question(kind, node) for kind in QUESTIONS for node in options.get(kind) or ()]
    if not questions and not rules and not moves:
        asked = ", ".join(QUESTIONS)
        raise HoldfastError(f"Nothing is asked: name nodes with {asked}, moves, or rules.")
    paused = now.state.why_paused()
    if paused:
        raise HoldfastError(
            f"Nothing would be recovered or moved now, as {paused}; ask again once that has ended."
        )
    state, observed = look(configuration) if moves else (now.state, None)
    for service_id, node in moves.items():
        if service_id not in state.services or observed is None:
            raise unknown_name(
                service_id, "moves", state.services, "the id of a service of the cluster"
            )
        status = state.services[service_id]
        if place_of(status) == node:
            # As the move, which then changes nothing.
            continue
        refuse_state(service_id, status, state)
        refuse_move(service_id, node, state, replace(observed, desired=desired))
        desired = desired.with_request(service_id, Request(MOVE, now.wall, node))
    return what_if(now, questions, within=float(options.get("within") or 600.0), desired=desired)


def read_now(configuration: NodeConfiguration, boot_seconds: float = BOOT_SECONDS) -> Now:
    """Return the cluster as it is now, read from its storage."""
    with closing(ClusterStorage(configuration)) as storage:
        state = storage.read_manager()
        desired, _slot = storage.read_desired()
        reports = {
            name: _report(storage, member.host_id) for name, member in configuration.members.items()
        }
    if state is None:
        raise HoldfastError("No manager has decided anything in this cluster yet; start its nodes.")
    return Now(
        nodes=tuple(sorted(configuration.members)),
        state=state,
        desired=desired,
        reports=reports,
        wall=time.time(),
        settings=_settings(configuration, state, boot_seconds),
        starts=_starts(state, desired, reports),
        lease_proof={name: one.lease_proof for name, one in configuration.members.items()},
    )


def answer_document(answer: Answer) -> dict[str, Any]:
    """Return an answer as plain data."""
    return {
        **asdict(answer),
        "steps": [asdict(step) for step in answer.steps],
        "not_running": sorted(
            key for key, one in answer.services.items() if one.before and not one.after
        ),
    }


def render_answer(answer: Answer, drained: Collection[str] = ()) -> list[str]:
    """Return an answer as lines for people; the nodes *drained* were to be emptied."""
    lines = []
    for step in answer.steps:
        about = " ".join(part for part in (step.service, step.node) if part)
        lines.append(f"{step.after:7.1f} s  {step.kind} {about}: {clean(step.text)}")
    lines.append("")
    for key, one in answer.services.items():
        where = f"on {one.after}" if one.after else f"not running ({clean(one.reason)})"
        before = f"was on {one.before}" if one.before else "was not running"
        moved = "as before" if one.before == one.after else before
        if one.down:
            moved = f"{moved}, down for {one.down:.1f} s"
        if answer.ended and one.after in drained:
            moved = f"{moved}; it blocks the drain: {clean(one.reason)}"
        lines.append(f"{key}: {where}; {moved}")
    if not answer.ended:
        lines.append("It would still be going on at the end of the requested time.")
    return lines


def _rule(row: Mapping[str, Any], configuration: NodeConfiguration) -> Rule:
    for node in row.get("nodes") or {}:
        configuration.require_member(node, "nodes")
    return rule_from_options(row)


def _report(storage: ClusterStorage, host_id: int) -> Report | None:
    try:
        return storage.read_report(host_id)
    except StorageError:
        return None


def _settings(
    configuration: NodeConfiguration, state: ClusterState, boot_seconds: float
) -> Settings:
    """Return the cluster's configured times, and those that were measured last."""
    own = configuration.sanlock
    timing = LeaseTiming(own.io_timeout, own.watchdog_timeout)
    fences = [one.confirmed - one.fence_sent for one in state.failovers if one.fence_sent]
    fence = usual_seconds(fences, FENCE_SECONDS)
    return Settings(
        watchdogs=configuration.backend != EMBEDDED and own.watchdog_timeout > 0,
        lease_fails=float(timing.fail_seconds),
        watchdog_fires=timing.dead_seconds - 1.0,
        lease_dead=float(timing.dead_seconds),
        boot=boot_seconds,
        fence=(fence, fence),
        agent=(AGENT_SECONDS, AGENT_SECONDS),
        timing=configuration.timing,
    )


def _starts(
    state: ClusterState, desired: DesiredState, reports: Mapping[str, Report | None]
) -> dict[str, float]:
    """Return how long each service's last start took, where it is recorded."""
    found: dict[str, float] = {}
    for report in reports.values():
        results: Sequence[CommandResult] = tuple(report.results.values()) if report else ()
        for result in results:
            status = state.services.get(result.service)
            if status is not None and result.took > 0 and result.service in desired.services:
                found[result.service] = result.took
    return found
