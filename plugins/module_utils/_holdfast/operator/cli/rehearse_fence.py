# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rehearse the cluster's fencing, for a command and a module: ask, judge, save, report.

What asking showed is saved before a node is switched for real: this machine may not survive that.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...cluster.model.state import NodeState
from ...errors import FenceError, InputError
from ...fence.conversation import TOOLS, FenceTools
from ...fence.reboot import explained, for_reboot, levels_without_power
from ...fence.rehearsal.ask import WORD_ALONE, ask, came_true, questions, switch
from ...fence.rehearsal.judge import (
    FAILS,
    Findings,
    NodeVerdict,
    check_consent,
    described,
    judge,
)
from ...fence.rehearsal.report import (
    NodeReport,
    load_report,
    node_summary,
    problem_of,
    save_report,
    stale,
    updated,
    with_switched,
)
from ...fence.topology import FenceConfiguration, load_fence_configuration
from ...names import MAX_PORT, absolute_path
from ...node.configuration_file import load
from ...result import Result
from ..report.status import read_status

HEARTBEAT_WAIT = 10.0
"""Seconds for a heartbeat of a node that runs, on storage that may be slow: one a second is due."""

CONNECT = 2.0
"""Seconds for a connection to a node: in a local network it takes milliseconds."""


@dataclass(frozen=True)
class _Cluster:
    """What the cluster's storage says of the nodes.

    ``own_names`` are this machine's; ``services`` is None if not known; ``manager`` is the
    manager's node.
    """

    own_names: frozenset[str]
    online: frozenset[str] = frozenset()
    services: Mapping[str, Sequence[str]] | None = None
    manager: str = ""


def rehearse_fence(
    options: Mapping[str, Any],
    check: bool,
    tools: FenceTools = TOOLS,
    wall_clock: Callable[[], float] = time.time,
) -> Result:
    """Rehearse the fencing of the nodes in *options* (those of the module) and save the report.

    The Result has a ``failure`` if fencing fails.  Raises HoldfastError if it cannot be rehearsed.
    """
    _check_port(options)
    configuration = load_fence_configuration(options["config"])
    nodes = _nodes(configuration, options["nodes"])
    cluster = _look(options["node_config"])
    path = absolute_path(options["report"], "report")
    before = load_report(path)
    to_switch = ""
    if options["consent"]:
        to_switch = check_consent(
            nodes,
            cluster.own_names,
            cluster.services,
            options["with_services"],
            cluster.manager,
        )
        for_reboot(configuration, [to_switch], tools)
        _check_address(options)
    if check:
        asked = {name: list(one) for name, one in questions(configuration, nodes, tools).items()}
        switched_nodes = [to_switch] if to_switch else []
        values = {"report": str(path), "would_ask": asked, "would_switch": switched_nodes}
        return Result(changed=bool(to_switch), values=values)
    findings = ask(configuration, nodes, tools)
    off = _plug_off(configuration, findings, cluster.online.intersection(nodes))
    silent = _fell_silent(off, options["node_config"], tools)
    known_on = (cluster.online - silent).union(options["running"])
    verdicts = judge(configuration, findings, nodes, known_on)
    report = updated(before, configuration, verdicts, wall_clock())
    save_report(path, report, wall_clock())
    problems = [text for one in verdicts if one.verdict == FAILS for text in one.problems]
    switched = bool(to_switch) and not problems
    remarks = []
    if switched:
        answers = _answers(options["address"], options["port"])
        levels = switch(configuration, to_switch, answers, options["boot_timeout"], tools)
        if answers is None:
            remarks.append(f"{to_switch}: {WORD_ALONE}.")
        left_out = levels_without_power(configuration, to_switch, tools)
        if left_out:
            remarks.append(f"{to_switch}: not switched for real: {explained(left_out)}.")
        report = with_switched(report, configuration, to_switch, levels, wall_clock(), remarks)
        save_report(path, report, wall_clock())
        problems = [problem_of(to_switch, one) for one in levels if one.problem]
    old = {node: before.get(node, NodeReport()).verdict for node in nodes}
    new = {node: report[node].verdict for node in nodes}
    warnings = [text for one in verdicts if one.verdict != FAILS for text in one.problems]
    if options["max_age"] is not None:
        warnings += stale(report, nodes, options["max_age"], wall_clock())
    return Result(
        changed=switched or old != new,
        values=_values(path, report, verdicts, remarks, wall_clock()),
        before=old,
        after=new,
        warnings=warnings,
        failure=" ".join(problems),
    )


def _nodes(configuration: FenceConfiguration, desired: Sequence[str] | None) -> list[str]:
    """Return the nodes to rehearse; raises FenceError for one without fence levels."""
    nodes = list(dict.fromkeys(sorted(configuration.levels) if desired is None else desired))
    for node in nodes:
        configuration.levels_of(node)
    if not nodes:
        raise FenceError("No node is to be rehearsed: the fence configuration has none.")
    return nodes


def _look(path: str | None) -> _Cluster:
    """Return what the storage says, if *path* names a node's configuration."""
    host = socket.gethostname()
    own_names = frozenset({host, host.partition(".")[0]})
    if path is None:
        return _Cluster(own_names)
    node = load(Path(path))
    observed = read_status(node)
    status = observed["nodes"]
    return _Cluster(
        own_names=own_names | {node.node},
        online=frozenset(
            name for name, one in status.items() if one["state"] == NodeState.ONLINE.value
        ),
        services={name: one["services"] for name, one in status.items()},
        manager=observed["manager"]["node"],
    )


def _plug_off(
    configuration: FenceConfiguration, findings: Findings, nodes: Collection[str]
) -> frozenset[str]:
    """Return those of *nodes* with a plug that is off by its device."""
    off = {step for step, plug in findings.plugs.items() if plug.power == "off"}
    return frozenset(
        node for node in nodes if any(step in off for _level, step in configuration.steps_of(node))
    )


def _fell_silent(off: frozenset[str], path: str | None, tools: FenceTools) -> frozenset[str]:
    """Return those of *off*, nodes that were online and whose plug is off, that beat no more.

    They may have lost their power while the devices were asked: the manager's word that they
    are online is older than the answer, and only a heartbeat after it shows a wrong plug.
    """
    if path is None or not off:
        return frozenset()
    node = load(Path(path))
    silent = set(off)

    def heartbeats() -> dict[str, int]:
        observed = read_status(node)["nodes"]
        return {name: observed[name]["heartbeat"] for name in off}

    first = heartbeats()

    def all_heard() -> bool:
        now = heartbeats()
        silent.difference_update(name for name in off if now[name] != first[name])
        return not silent

    came_true(all_heard, HEARTBEAT_WAIT, tools)
    return frozenset(silent)


def _check_port(options: Mapping[str, Any]) -> None:
    if not 0 < options["port"] <= MAX_PORT:
        raise InputError("port", options["port"], f"a port number from 1 to {MAX_PORT}")


def _check_address(options: Mapping[str, Any]) -> None:
    """Raise FenceError if nothing answers at the address now: its silence would show nothing."""
    answers = _answers(options["address"], options["port"])
    if answers is not None and not answers():
        raise FenceError(
            f"Nothing answers at {options['address']} port {options['port']}, so its silence"
            " would not show that the node is off. Give an address and port where it answers."
        )


def _answers(address: str | None, port: int) -> Callable[[], bool] | None:
    if address is None:
        return None

    def connects() -> bool:
        try:
            socket.create_connection((address, port), timeout=CONNECT).close()
        except ConnectionRefusedError:
            # A machine that refuses a connection runs.
            return True
        except OSError:
            return False
        return True

    return connects


def _values(
    path: Path,
    report: Mapping[str, NodeReport],
    verdicts: Sequence[NodeVerdict],
    remarks: Sequence[str],
    now: float,
) -> dict[str, Any]:
    """Return the values of the module; *remarks* are on the one node that was switched."""
    nodes = {
        one.node: {**described(one), **node_summary(report[one.node], now)} for one in verdicts
    }
    for node in nodes.values():
        node["remarks"] += remarks
    return {"nodes": nodes, "report": str(path)}
