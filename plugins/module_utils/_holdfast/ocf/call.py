# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Call one action of a resource agent and interpret its exit status.

OCF 1.0 and 1.1 (Return codes) have one set of exit codes for all actions.  The action
``status`` of OCF of July 2003 has the codes of init scripts instead, in which 3 and 4 mean
something else.  All results are in the codes of 1.1.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from ..errors import AgentError
from ..process.run import Outcome
from ..process.run import run as run_process
from ..secrets import hide, secret_values
from .agent import AgentCall


@dataclass(frozen=True)
class Meaning:
    """The meaning of one exit status; ``code`` is the code of OCF 1.1 for it.

    ``recovery`` is ``none``, ``soft`` (recover here or elsewhere), ``hard`` (not on this node)
    or ``fatal`` (on no node before a person acts).
    """

    code: int
    name: str
    text: str
    recovery: str


MONITORS = ("monitor", "status")
"""The actions that report the state of a resource."""

SUCCESS = 0
GENERIC = 1
ARGUMENTS = 2
UNIMPLEMENTED = 3
PERMISSION = 4
INSTALLED = 5
CONFIGURED = 6
NOT_RUNNING = 7
PROMOTED = 8
FAILED_PROMOTED = 9
DEGRADED = 190
DEGRADED_PROMOTED = 191

MEANINGS: dict[int, Meaning] = {
    meaning.code: meaning
    for meaning in (
        Meaning(SUCCESS, "success", "the action succeeded, or the resource runs", "none"),
        Meaning(GENERIC, "failed", "something went wrong", "soft"),
        Meaning(ARGUMENTS, "bad arguments", "a parameter is not valid on this node", "hard"),
        Meaning(UNIMPLEMENTED, "unimplemented", "the agent has no such action", "hard"),
        Meaning(PERMISSION, "no permission", "the agent may not do this here", "hard"),
        Meaning(INSTALLED, "not installed", "a program it needs is missing here", "hard"),
        Meaning(CONFIGURED, "misconfigured", "the parameters are wrong on every node", "fatal"),
        Meaning(NOT_RUNNING, "not running", "the resource is cleanly stopped", "none"),
        Meaning(PROMOTED, "promoted", "the resource runs in the promoted role", "none"),
        Meaning(
            FAILED_PROMOTED,
            "failed promoted",
            "the promoted resource has failed: demote it, stop it, start it",
            "soft",
        ),
        Meaning(DEGRADED, "degraded", "it runs, but is likely to fail soon", "none"),
        Meaning(
            DEGRADED_PROMOTED, "degraded promoted", "it runs promoted, likely to fail soon", "none"
        ),
    )
}
"""OCF 1.1 with pacemaker's reaction to each as ``recovery``."""

UNKNOWN_STATUS = Meaning(GENERIC, "unknown", "the agent cannot determine the state", "soft")

STATUS_MEANINGS: dict[int, Meaning] = {
    3: MEANINGS[NOT_RUNNING],
    4: UNKNOWN_STATUS,
}
"""Where ``status`` differs from ``monitor``.  7 and 8 mean the same in both: most agents that
still have ``status`` answer it like ``monitor``."""

_EXPECTED_RUNNING = {
    NOT_RUNNING: Meaning(NOT_RUNNING, "not running", "it should run, but is stopped", "soft"),
    UNIMPLEMENTED: Meaning(
        UNIMPLEMENTED, "unimplemented", "the agent has no such check; it is left out", "none"
    ),
}
"""For a health check, which, unlike a probe, is made of a resource that should run."""

_ONLY_OF_A_MONITOR = frozenset(
    {NOT_RUNNING, PROMOTED, FAILED_PROMOTED, DEGRADED, DEGRADED_PROMOTED}
)


def meaning_of(action: str, exit_status: int, interval: float = 0.0) -> Meaning:
    """Return what the *exit_status* of *action* means.

    *interval* is 0 for a probe, or the seconds of a health check.  An exit status that OCF
    does not know is a failure (pacemaker, ``services__ocf2ocf``).
    """
    meaning = MEANINGS.get(exit_status, MEANINGS[GENERIC])
    if action not in MONITORS:
        if meaning.code in _ONLY_OF_A_MONITOR:
            return replace(meaning, text=f"{action} was not done", recovery="soft")
        return meaning
    if action == "status":
        meaning = STATUS_MEANINGS.get(exit_status, meaning)
    if interval > 0:
        return _EXPECTED_RUNNING.get(meaning.code, meaning)
    return meaning


_RUNNING = frozenset({SUCCESS, PROMOTED, DEGRADED, DEGRADED_PROMOTED})


@dataclass(frozen=True)
class OcfResult:
    """The result of one call; ``duration`` is in seconds.

    ``exit_status`` is the agent's own; None when it was killed or could not be run.
    ``reason`` then says why.  It also names an exit status that OCF does not know, and the
    last ``ocf-exit-reason`` of the agent.
    """

    action: str
    meaning: Meaning
    exit_status: int | None = None
    reason: str = ""
    timed_out: bool = False
    duration: float = 0.0
    stdout: str = ""
    stderr: str = ""

    @property
    def code(self) -> int:
        """The code of OCF 1.1, whatever the agent's own exit status was."""
        return self.meaning.code

    @property
    def recovery(self) -> str:
        """The recovery for a failure: none, soft, hard or fatal (see ``Meaning``)."""
        return self.meaning.recovery

    @property
    def running(self) -> bool:
        """A monitor found the resource active and not failed."""
        return self.action in MONITORS and self.code in _RUNNING

    @property
    def stopped(self) -> bool:
        """A monitor found the resource cleanly stopped, or a stop succeeded."""
        if self.action in MONITORS:
            return self.code == NOT_RUNNING
        return self.action == "stop" and self.code == SUCCESS

    @property
    def promoted(self) -> bool:
        """A monitor found the resource active in the promoted role."""
        return self.action in MONITORS and self.code in (PROMOTED, DEGRADED_PROMOTED)

    @property
    def succeeded(self) -> bool:
        """The action succeeded; for a monitor: the resource is active."""
        return self.code in _RUNNING if self.action in MONITORS else self.code == SUCCESS

    @property
    def active_or_failed(self) -> bool:
        """A monitor found something that a stop has to clean up."""
        failed = self.code in (GENERIC, FAILED_PROMOTED) and self.meaning != UNKNOWN_STATUS
        return self.running or (self.action in MONITORS and failed)

    def require_success(self, instance: str) -> None:
        """Raise AgentError naming the resource *instance* unless the action succeeded."""
        if not self.succeeded:
            raise AgentError(f"The resource {instance} failed to {self}.")

    def __str__(self) -> str:
        text = f"{self.action}: {self.code} ({self.meaning.name})"
        lines = self.stderr.strip().splitlines()
        detail = self.reason or (lines[-1] if lines and not self.succeeded else "")
        return f"{text}: {detail}" if detail else text


def call(
    agent_path: str, request: AgentCall, run: Callable[..., Outcome] = run_process
) -> OcfResult:
    """Make the *request* to the agent at *agent_path* and return its result.

    The timeout of the request is both the agent's deadline and ours.  The run directory is
    created if it is missing.  Secrets in the parameters are hidden in all output of the agent.

    An agent that is missing is code 5, one that is not executable code 4, as in pacemaker.
    Raises AgentError only when the run directory cannot be created.
    """
    try:
        Path(request.run_directory).mkdir(mode=0o755, parents=True, exist_ok=True)
    except OSError as error:
        raise AgentError(
            f"The run directory {request.run_directory} for resource agents cannot be made:"
            f" {error.strerror}."
        ) from None
    if not os.path.isfile(agent_path):  # noqa: PTH113
        reason = f"the agent {agent_path} does not exist"
        return OcfResult(request.action, MEANINGS[INSTALLED], reason=reason)
    if not os.access(agent_path, os.X_OK):
        reason = f"the agent {agent_path} is not executable"
        return OcfResult(request.action, MEANINGS[PERMISSION], reason=reason)
    try:
        outcome = run(
            [agent_path, request.action],
            deadline=request.timeout,
            environment=request.environment(),
        )
    except AgentError as error:
        return OcfResult(request.action, MEANINGS[GENERIC], reason=str(error))
    secrets = secret_values(request.parameters, request.secrets)
    if secrets:
        stdout, stderr = hide(outcome.stdout, secrets), hide(outcome.stderr, secrets)
        outcome = replace(outcome, stdout=stdout, stderr=stderr)
    return _interpret(request, outcome)


def _interpret(request: AgentCall, outcome: Outcome) -> OcfResult:
    status, problem = outcome.exit_status, ""
    if outcome.timed_out:
        status = None
        problem = f"no answer within {request.timeout:g} seconds; the agent was killed"
    elif outcome.signal is not None:
        problem = f"the agent was killed by signal {outcome.signal}"
    elif status is None:
        problem = "the agent's exit status was lost"
    elif status not in MEANINGS:
        problem = f"the agent ended with exit status {status}, unknown to OCF"
    meaning = MEANINGS[GENERIC]
    if status is not None:
        meaning = meaning_of(request.action, status, request.interval)
    return OcfResult(
        action=request.action,
        meaning=meaning,
        exit_status=status,
        reason="; ".join(part for part in (problem, outcome.exit_reason) if part),
        timed_out=outcome.timed_out,
        duration=outcome.duration,
        stdout=outcome.stdout,
        stderr=outcome.stderr,
    )
