# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asking for the status of a cluster from where its storage is not: by a command, node after node.

Whoever is no node, such as an Ansible controller, runs ``holdfast status --json`` on one of
them.  Each node can answer for the whole cluster, so the first that does is enough; a node
that is down, hangs or answers something else is passed over.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import AgentError, HoldfastError, InputError
from ...process.run import Outcome, run

PLACE = "{node}"
"""Stands in a command for the node that is asked."""

ANSWERED = (0, 1)
"""The exit statuses of ``holdfast status`` with an answer: all is well, something is not."""

NEEDED = ("cluster", "at", "manager", "nodes", "services")


@dataclass(frozen=True)
class Answered:
    """A status, which node it is from, and why each node that was asked before did not answer."""

    status: dict[str, Any]
    node: str
    passed_over: dict[str, str]


def ask_for_status(command: Sequence[str], nodes: Sequence[str], timeout: float) -> Answered:
    """Return the status that the first of *nodes* to answer gives, each asked for *timeout* s.

    *command* is a program with its arguments, run without a shell; ``{node}`` in it becomes
    the node.  Without *nodes* it is run once, as it is.

    Raises ``InputError`` for a command that cannot be meant, and ``HoldfastError``, naming
    each node with its reason, when none answers.
    """
    _check(command, nodes, timeout)
    passed_over: dict[str, str] = {}
    for node in nodes or ("",):
        words = [word.replace(PLACE, node) for word in command]
        try:
            return Answered(_answer(words, timeout), node, passed_over)
        except HoldfastError as error:
            passed_over[node] = str(error).rstrip(".")
    told = "; ".join(f"{node}: {why}" if node else why for node, why in passed_over.items())
    raise HoldfastError(f"Nobody says how the cluster is: {told}.")


def _check(command: Sequence[str], nodes: Sequence[str], timeout: float) -> None:
    if not command:
        raise InputError("command", command, "a program and its arguments")
    if nodes and not any(PLACE in word for word in command):
        raise InputError("command", list(command), f"{PLACE} in it where the node's name belongs")
    if not nodes and any(PLACE in word for word in command):
        raise InputError(
            "nodes", list(nodes), f"the nodes to ask, as the command has {PLACE} in it"
        )
    for node in nodes:
        # What begins so would be an option of ssh.
        if not node or node.startswith("-") or any(one.isspace() for one in node):
            raise InputError("nodes", node, "names or addresses of nodes")
    if not timeout > 0:
        raise InputError("timeout", timeout, "a number of seconds above 0")


def _answer(words: Sequence[str], timeout: float) -> dict[str, Any]:
    outcome = run(words, deadline=timeout, keep=64 << 20)
    if outcome.exit_status not in ANSWERED:
        raise AgentError(_why(outcome, timeout))
    try:
        status = json.loads(outcome.stdout)
    except ValueError:
        status = None
    if not isinstance(status, dict) or any(key not in status for key in NEEDED):
        raise AgentError(f"no status as JSON, but {_why(outcome, timeout)}")
    return status


def _why(outcome: Outcome, timeout: float) -> str:
    if outcome.timed_out:
        return f"no answer within {timeout:g} s"
    lines = [line.strip() for line in outcome.stderr.splitlines() if line.strip()]
    ended = f"signal {outcome.signal}" if outcome.signal else f"exit status {outcome.exit_status}"
    return f"{ended} of {outcome.argv[0]}" + (f" ({lines[-1]})" if lines else "")
