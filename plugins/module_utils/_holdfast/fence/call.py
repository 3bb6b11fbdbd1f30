# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Call one action of a fence agent for one plug and say what came of it.

Everything goes over standard input, so that no password is ever on a command line.
The exit status alone is believed, and of it little: an agent's text has no agreed
form and is kept only for people, with all secrets taken out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ..errors import FenceError
from ..process.run import KEEP, Outcome
from ..process.run import run as run_process
from ..secrets import hide
from .known_agents import fence_environment
from .metadata import FenceMetadata
from .request import fence_request
from .secret_sources import secrets_from_files, secrets_from_scripts

TEXT_LIMIT = 2000
"""Characters kept of what an agent said: its last ones, where the reason is."""

LISTS = ("list", "list-status")

STATUS_OFF = 2
"""The exit status of a ``status`` that is off (FenceAgentAPI, Agent Operations: status)."""

_KEEP = 64 * 1024


@dataclass(frozen=True)
class FenceCall:
    """What one call said; ``exit_status`` is None when the agent did not end by itself.

    ``output`` is its standard output alone, for actions whose answer is a list.
    """

    action: str
    exit_status: int | None
    timed_out: bool
    duration: float
    text: str
    output: str = ""

    @property
    def succeeded(self) -> bool:
        """The agent says that it did what was asked.  This proves nothing yet.

        (FenceAgentAPI, Agent Operations: a status or monitor of a machine that is off is 2.)
        """
        good = (0, STATUS_OFF) if self.action in ("status", "monitor") else (0,)
        return self.exit_status in good and not self.timed_out

    @property
    def power(self) -> str:
        """What a status says: ``on`` (0) or ``off`` (2); all else is ``unknown``.

        (FenceAgentAPI, Agent Operations: status.)
        """
        if self.action != "status" or self.timed_out:
            return "unknown"
        if self.exit_status == 0:
            return "on"
        return "off" if self.exit_status == STATUS_OFF else "unknown"


def call_fence_agent(
    path: str,
    metadata: FenceMetadata,
    action: str,
    parameters: Mapping[str, object],
    *,
    plug: str | None = None,
    timeout: float,
    run: Callable[..., Outcome] = run_process,
    clock: Callable[[], float] = time.monotonic,
) -> FenceCall:
    """Make the fence agent at *path* do *action* to *plug* within *timeout* seconds.

    Secrets in files and from scripts are fetched first, within the same time; an agent for
    which none is left is not called, as it would be killed in the midst of it.  Raises
    InputError, AgentError or FenceError when the request itself is wrong (see
    ``fence_request``), a secret cannot be had, or the agent cannot be started; whatever the
    agent then does is in the result.
    """
    began = clock()
    parameters = secrets_from_files(metadata, parameters)
    parameters = secrets_from_scripts(metadata, parameters, run, timeout)
    request = fence_request(metadata, action, parameters, plug)
    secrets = metadata.secrets_in(parameters)
    fetching = clock() - began
    if fetching >= timeout:
        raise FenceError(
            f"The secrets of {metadata.name} took all of its {timeout:g} seconds; it is not called."
        )
    outcome = run(
        [path],
        deadline=timeout - fetching,
        stdin=request,
        environment=fence_environment(),
        keep=KEEP if action in LISTS else _KEEP,
    )
    return FenceCall(
        action=action,
        exit_status=outcome.exit_status,
        timed_out=outcome.timed_out,
        duration=fetching + outcome.duration,
        text=_said(outcome, secrets, timeout),
        output=hide(outcome.stdout, secrets),
    )


def _said(outcome: Outcome, secrets: Sequence[str], timeout: float) -> str:
    parts = [outcome.stdout.strip(), outcome.stderr.strip()]
    if outcome.timed_out:
        parts.append(f"no answer within {timeout:g} seconds; the agent was killed")
    elif outcome.signal is not None:
        parts.append(f"the agent was killed by signal {outcome.signal}")
    # Hidden before it is cut, so that no half of a secret is left at the edge.
    text = hide("\n".join(part for part in parts if part), secrets)
    return text[-TEXT_LIMIT:]
