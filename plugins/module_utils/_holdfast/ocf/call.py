# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Call one action of a resource agent and say what came of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..errors import AgentError
from ..process import Outcome
from ..process import run as run_process
from .codes import (
    DEGRADED,
    DEGRADED_PROMOTED,
    FAILED_PROMOTED,
    GENERIC,
    INSTALLED,
    MEANINGS,
    NOT_RUNNING,
    PERMISSION,
    PROMOTED,
    SUCCESS,
    Meaning,
    folded,
)
from .environment import RUN_DIRECTORY, agent_environment
from .locate import OCF_ROOT, AgentName

_REASON = "ocf-exit-reason:"
_RUNNING = frozenset({SUCCESS, PROMOTED, DEGRADED, DEGRADED_PROMOTED})
_PROBES = frozenset({"monitor", "status"})


@dataclass(frozen=True)
class OcfResult:
    """What one call said.

    ``code`` is always one of OCF's; a timeout, a signal and a code that OCF does not
    know are 1, and ``reason`` then says which it was.  ``reason`` is otherwise the last
    ``ocf-exit-reason`` of the agent.  ``duration`` is in seconds.
    """

    action: str
    code: int
    meaning: str
    reason: str
    timed_out: bool
    duration: float
    stdout: str
    stderr: str

    @property
    def running(self) -> bool:
        """A monitor found the resource active and not failed."""
        return self.action in _PROBES and self.code in _RUNNING

    @property
    def stopped(self) -> bool:
        """A monitor found the resource cleanly stopped, or a stop succeeded."""
        if self.action in _PROBES:
            return self.code == NOT_RUNNING
        return self.action == "stop" and self.code == SUCCESS

    @property
    def promoted(self) -> bool:
        """A monitor found the resource active in the promoted role."""
        return self.action in _PROBES and self.code in (PROMOTED, DEGRADED_PROMOTED)

    @property
    def degraded(self) -> bool:
        """A monitor found the resource active but likely to fail soon."""
        return self.action in _PROBES and self.code in (DEGRADED, DEGRADED_PROMOTED)

    @property
    def succeeded(self) -> bool:
        """The action did what was asked; for a monitor: the resource is active."""
        return self.code in _RUNNING if self.action in _PROBES else self.code == SUCCESS

    @property
    def active_or_failed(self) -> bool:
        """A monitor found something that a stop has to clean up.

        The codes that say "this cannot work here" are not among them.
        """
        return self.action in _PROBES and (
            self.code in _RUNNING or self.code in (GENERIC, FAILED_PROMOTED)
        )

    @property
    def recovery(self) -> str:
        """What a failure asks for: none, soft, hard or fatal (see ``Meaning``)."""
        return MEANINGS[self.code].recovery

    def require_success(self, instance: str) -> None:
        """Raise AgentError naming the resource *instance* unless the action succeeded."""
        if not self.succeeded:
            raise AgentError(f"The resource {instance} failed to {self}.")

    def __str__(self) -> str:
        text = f"{self.action}: {self.code} ({self.meaning})"
        lines = self.stderr.strip().splitlines()
        told = self.reason or (lines[-1] if lines and not self.succeeded else "")
        return f"{text}: {told}" if told else text


def call(
    agent_path: str,
    action: str,
    *,
    instance: str,
    agent: AgentName,
    parameters: Mapping[str, str],
    timeout: float,
    interval: float = 0.0,
    check_level: int | None = None,
    ocf_root: str = OCF_ROOT,
    node_name: str = "",
    run_directory: str = RUN_DIRECTORY,
    extra_environment: Mapping[str, str] | None = None,
    run: Callable[..., Outcome] = run_process,
) -> OcfResult:
    """Call *action* of the agent at *agent_path* for the resource *instance*.

    *timeout* (seconds) is both the agent's and our deadline.  *interval* 0 makes a
    monitor a probe, anything above a health check.  *ocf_root* is where the functions
    of the distribution's agents are, wherever this agent itself lies.  *run_directory*
    is made when it is missing; it must be the same for all calls of a resource.

    Nothing that an agent does raises: an agent that is missing or not executable is
    code 5 or 4, as pacemaker has it.  Raises AgentError only when *run_directory*
    cannot be made.
    """
    _make(run_directory)
    missing = _unusable(agent_path)
    if missing is not None:
        return _result(action, missing[0], missing[1])
    environment = agent_environment(
        agent,
        instance=instance,
        action=action,
        timeout=timeout,
        interval=interval,
        check_level=check_level,
        parameters=parameters,
        ocf_root=ocf_root,
        node_name=node_name,
        run_directory=run_directory,
        extra=extra_environment,
    )
    try:
        outcome = run([agent_path, action], deadline=timeout, environment=environment)
    except AgentError as error:
        return _result(action, GENERIC, str(error))
    return _interpret(action, timeout, outcome)


def meaning_of(code: int) -> Meaning:
    """Return what *code* means; a code that OCF does not know is a failure."""
    return MEANINGS[folded(code)]


def _make(directory: str) -> None:
    try:
        Path(directory).mkdir(mode=0o755, parents=True, exist_ok=True)
    except OSError as error:
        raise AgentError(
            f"The run directory {directory} for resource agents cannot be made: {error.strerror}."
        ) from None


def _unusable(path: str) -> tuple[int, str] | None:
    if not os.path.isfile(path):  # noqa: PTH113
        return INSTALLED, f"the agent {path} does not exist"
    if not os.access(path, os.X_OK):
        return PERMISSION, f"the agent {path} is not executable"
    return None


def _interpret(action: str, timeout: float, outcome: Outcome) -> OcfResult:
    said = _last_reason(outcome.stderr)
    if outcome.timed_out:
        code, reason = GENERIC, f"no answer within {timeout:g} seconds; the agent was killed"
    elif outcome.signal is not None:
        code, reason = GENERIC, f"the agent was killed by signal {outcome.signal}"
    elif outcome.exit_status is None:
        code, reason = GENERIC, "the agent's exit status was lost"
    elif outcome.exit_status not in MEANINGS:
        code = GENERIC
        reason = f"the agent ended with exit status {outcome.exit_status}, unknown to OCF"
    else:
        return _result(action, outcome.exit_status, said, outcome)
    return _result(action, code, f"{reason}; {said}" if said else reason, outcome)


def _result(action: str, code: int, reason: str, outcome: Outcome | None = None) -> OcfResult:
    return OcfResult(
        action=action,
        code=code,
        meaning=MEANINGS[code].name,
        reason=reason,
        timed_out=outcome.timed_out if outcome else False,
        duration=outcome.duration if outcome else 0.0,
        stdout=outcome.stdout if outcome else "",
        stderr=outcome.stderr if outcome else "",
    )


def _last_reason(stderr: str) -> str:
    """Return the last exit reason; earlier ones are of steps on the way (pacemaker: the last)."""
    found = ""
    for line in stderr.splitlines():
        if _REASON in line:
            found = line.split(_REASON, 1)[1].strip()
    return found
