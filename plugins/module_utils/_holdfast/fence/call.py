# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Call one action of a fence agent for one plug and say what came of it.

Everything goes over standard input, so that no password is ever on a command line.
The exit status alone is believed, and of it little: an agent's text has no agreed
form and is kept only for people, with all secrets taken out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..process import Outcome
from ..process import run as run_process
from ..secrets import hide, secret_values
from .locate import fence_environment
from .metadata import FenceMetadata
from .request import fence_request

TEXT_LIMIT = 2000
"""Characters kept of what an agent said: its last ones, where the reason is."""

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
        """The agent says that it did what was asked.  This proves nothing yet."""
        return self.exit_status == 0 and not self.timed_out

    @property
    def power(self) -> str:
        """What a status says: ``on`` (0) or ``off`` (2); all else is ``unknown``.

        (FenceAgentAPI, Agent Operations: status.)
        """
        if self.action != "status" or self.timed_out:
            return "unknown"
        if self.exit_status == 0:
            return "on"
        return "off" if self.exit_status == 2 else "unknown"


def call_fence_agent(
    path: str,
    metadata: FenceMetadata,
    action: str,
    parameters: Mapping[str, object],
    *,
    plug: str | None = None,
    timeout: float,
    run: Callable[..., Outcome] = run_process,
) -> FenceCall:
    """Make the fence agent at *path* do *action* to *plug* within *timeout* seconds.

    Raises InputError or AgentError when the request itself is wrong (see
    ``fence_request``) or the agent cannot be started; whatever the agent then does is
    in the result.
    """
    request = fence_request(metadata, action, parameters, plug)
    outcome = run(
        [path],
        deadline=timeout,
        stdin=request,
        environment=fence_environment(),
        keep=_KEEP,
    )
    return FenceCall(
        action=action,
        exit_status=outcome.exit_status,
        timed_out=outcome.timed_out,
        duration=outcome.duration,
        text=_said(outcome, parameters, timeout),
        output=hide(outcome.stdout, secret_values(parameters)),
    )


def listed_plugs(answer: FenceCall) -> dict[str, str]:
    """Return the plugs in the answer to ``list``, each with its alias ("" when it has none).

    (FenceAgentAPI, Agent Operations: list prints one ``plug,alias`` in each line.)
    """
    plugs = {}
    for line in answer.output.splitlines():
        plug, _comma, alias = line.strip().partition(",")
        if plug:
            plugs[plug] = alias
    return plugs


def _said(outcome: Outcome, parameters: Mapping[str, object], timeout: float) -> str:
    parts = [outcome.stdout.strip(), outcome.stderr.strip()]
    if outcome.timed_out:
        parts.append(f"no answer within {timeout:g} seconds; the agent was killed")
    elif outcome.signal is not None:
        parts.append(f"the agent was killed by signal {outcome.signal}")
    # Hidden before it is cut, so that no half of a secret is left at the edge.
    text = hide("\n".join(part for part in parts if part), secret_values(parameters))
    return text[-TEXT_LIMIT:]
