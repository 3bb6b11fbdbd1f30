# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The status for the module ``cluster_info``, for the status page, and for other machines.

A machine that is no node, such as an Ansible controller, runs ``holdfast status --json`` on a node.
Each node can answer for the whole cluster: nodes are asked in turn until one answers.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..cluster.model.state import NodeState
from ..documents import read_document
from ..errors import AgentError, DocumentError, HoldfastError, InputError, StorageError
from ..names import absolute_path
from ..node.configuration import NodeConfiguration
from ..node.configuration_file import load
from ..process.run import Outcome, run
from ..result import Result
from ..storage.whole_file import write_text
from ..text import clean
from .report.conditions import unsettled
from .report.inventory import checked_status
from .report.status import in_time, read_status
from .report.text import render_failover, render_text

POLL = 0.25

IN_DOUBT = frozenset({NodeState.ONLINE.value, NodeState.SUSPECT.value, NodeState.FENCE.value})
"""States in which a node may still run its services."""


def inform(options: Mapping[str, Any], check: bool) -> Result:
    """Return the cluster's state; raises ``HoldfastError`` when a wait times out."""
    configuration = load(Path(options["config"]))
    _check(options, configuration)
    status = _wait(configuration, options)
    values = dict(status)
    values["text"] = render_text(status, colour=False).splitlines()
    values["failover_text"] = {one["node"]: render_failover(one) for one in status["failovers"]}
    if options["probe"]:
        # Only here: resource agents take a fifth of all imports, and few tasks probe.
        from ..node.daemon.agent_work import probe_services

        values["running_here"] = probe_services(configuration)
    if options["page"] and not check:
        write_text(Path(options["page"]), _page(configuration, status))
    return Result(values=values)


def _page(configuration: NodeConfiguration, status: dict[str, Any], refresh: float = 0.0) -> str:
    from .forecast.rebalance import foresee
    from .report.page import render_page

    return render_page(status, refresh=refresh, plan=foresee(configuration))


def _check(options: Mapping[str, Any], configuration: NodeConfiguration) -> None:
    """Raise ``InputError`` for wrong options, before any wait."""
    for option in ("failover_of", "recovered_from"):
        node = options[option]
        if node:
            configuration.require_member(node, option)
    if options["recovered_from"] and options["until"] != "recovered":
        raise InputError("until", options["until"], "recovered, as recovered_from is given")
    if options["page"]:
        absolute_path(options["page"], "page")


def _wait(configuration: NodeConfiguration, options: Mapping[str, Any]) -> dict[str, Any]:
    until = time.monotonic() + options["timeout"]
    while True:
        try:
            status = read_status(configuration)
            missing = _missing(status, options)
        except StorageError as error:
            # A read may fail while a path fails over: a wait goes on.
            if options["until"] == "now":
                raise
            missing = [str(error)]
        if not missing:
            return status
        if time.monotonic() > until:
            text = " ".join(missing)
            raise HoldfastError(
                f"The cluster is not as asked after {options['timeout']:g} s: {text}"
            )
        time.sleep(POLL)


def _missing(status: dict[str, Any], options: Mapping[str, Any]) -> list[str]:
    """Return what the wait is for, one sentence each; empty at its end."""
    if options["until"] == "now":
        return []
    if options["recovered_from"]:
        return _missing_without(status, options["recovered_from"])
    missing = [
        one
        for one in unsettled(status)
        if options["until"] == "settled" or not one.startswith("Node ")
    ]
    node = options["failover_of"]
    if node and not any(
        one["node"] == node and one["finished"] and one["recorded"] >= options["since"]
        for one in status["failovers"]
    ):
        missing.append(f"There was no failover of node {node} yet.")
    return missing


def _missing_without(status: dict[str, Any], node: str) -> list[str]:
    """Return what is missing until the services of *node*, which was fenced, run elsewhere.

    Services count as started there until the manager knows that the node is off; then they are in
    the failover.  Other services do not matter.
    """
    known = status["nodes"][node]
    if known["state"] in IN_DOUBT:
        why = known["reason"] or "no reason known"
        return [f"Node {node} is not known to be off yet; it is {known['state']}: {why}."]
    failovers = [one for one in status["failovers"] if one["node"] == node]
    lost = set(known["services"])
    if failovers and known["state"] == NodeState.OFF.value:
        lost.update(failovers[-1]["services"])
    services = {name: one for name, one in status["services"].items() if name in lost}
    part = {**status, "nodes": {}, "services": services, "failovers": failovers, "disarm": None}
    return unsettled(part)


def write_page_in_time(
    path: Path, configuration: NodeConfiguration, *, refresh: float = 0.0
) -> dict[str, Any]:
    """Write the status page as the file *path* and return the status, as ``read_status_in_time``.

    *refresh* is that of ``render_page``.  On an error the file stays as it is.
    """

    def read() -> dict[str, Any]:
        status = read_status(configuration)
        return {"status": status, "page": _page(configuration, status, refresh)}

    made = in_time(configuration, read)
    write_text(path, made["page"])
    status: dict[str, Any] = made["status"]
    return status


PLACE = "{node}"
"""In a command: replaced by the name of the node."""

ANSWERED = (0, 1)
"""The exit statuses of ``holdfast status`` with an answer: no problems, problems."""

NEEDED = ("cluster", "at", "manager", "nodes", "services")


@dataclass(frozen=True)
class Answered:
    """A status, the node that answered, and why each node before it did not answer."""

    status: dict[str, Any]
    node: str
    passed_over: dict[str, str]


def ask_for_status(command: Sequence[str], nodes: Sequence[str], timeout: float) -> Answered:
    """Return the status from the first of *nodes* that answers within *timeout* seconds.

    *command* is a program with its arguments, run without a shell; ``{node}`` in it becomes the
    node.  Without *nodes* it is run once.  Raises ``InputError`` for a wrong command, and
    ``HoldfastError`` with each node's reason when none answers.
    """
    _check_command(command, nodes, timeout)
    passed_over: dict[str, str] = {}
    for node in nodes or ("",):
        words = [word.replace(PLACE, node) for word in command]
        try:
            return Answered(_read_answer(words, timeout), node, passed_over)
        except HoldfastError as error:
            passed_over[node] = str(error).rstrip(".")
    told = "; ".join(f"{node}: {why}" if node else why for node, why in passed_over.items())
    raise HoldfastError(f"No node reports the state of the cluster: {told}.")


def _check_command(command: Sequence[str], nodes: Sequence[str], timeout: float) -> None:
    if not command:
        raise InputError("command", command, "a program and its arguments")
    if nodes and not any(PLACE in word for word in command):
        raise InputError("command", list(command), f"{PLACE} in it where the node's name belongs")
    if not nodes and any(PLACE in word for word in command):
        raise InputError(
            "nodes", list(nodes), f"the nodes to ask, as the command has {PLACE} in it"
        )
    for node in nodes:
        # A name that begins with "-" would be an option of ssh.
        if not node or node.startswith("-") or any(one.isspace() for one in node):
            raise InputError("nodes", node, "names or addresses of nodes")
    if not timeout > 0:
        raise InputError("timeout", timeout, "a number of seconds above 0")


def _read_answer(words: Sequence[str], timeout: float) -> dict[str, Any]:
    outcome = run(words, deadline=timeout, keep=64 << 20)
    if outcome.exit_status not in ANSWERED:
        raise AgentError(_why(outcome, timeout))
    try:
        status = read_document(outcome.stdout, "The answer")
    except DocumentError:
        status = None
    if not isinstance(status, dict) or any(key not in status for key in NEEDED):
        raise AgentError(f"no status as JSON, but {_why(outcome, timeout)}")
    try:
        checked_status(status)
    except (DocumentError, InputError) as error:
        raise AgentError(f"a status that is not one: {error}") from None
    return status


def _why(outcome: Outcome, timeout: float) -> str:
    if outcome.timed_out:
        return f"no answer within {timeout:g} s"
    lines = [line.strip() for line in outcome.stderr.splitlines() if line.strip()]
    ended = f"signal {outcome.signal}" if outcome.signal else f"exit status {outcome.exit_status}"
    return f"{ended} of {outcome.argv[0]}" + (f" ({clean(lines[-1])})" if lines else "")
