# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A resource brought into the state that an operator asks for: probe, plan, act, look again.

The probe changes nothing and the plan is a pure function of what it found, so check
mode shows exactly what would be called.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ..errors import AgentError
from ..process.run import Outcome
from ..process.run import run as run_process
from .call import OcfResult
from .plan import ResourcePlan, has_changed, plan_action, plan_state, state_of
from .remains import Traces, require_no_remains
from .resource import Resource, perform

HEALTH_INTERVAL = 10.0
"""Seconds told to a health check: agents take 0 for a probe and answer it differently."""

_NOT_RUNNING = ("stopped", "absent")


@dataclass(frozen=True)
class Applied:
    """A plan and what its calls said, the probe first; in check mode that is all."""

    plan: ResourcePlan
    results: tuple[OcfResult, ...]


def bring_to_state(
    resource: Resource,
    wanted: str,
    *,
    check: bool = False,
    traces: Traces | None = None,
    run: Callable[..., Outcome] = run_process,
) -> Applied:
    """Find *resource*, and unless *check* is true call what makes it as *wanted*.

    Whenever it is found or made stopped, *traces* must be gone.  The last call is a monitor
    that agrees.  Raises AgentError when the plan cannot be made (``plan_state``), at the
    first action that fails, when a stop left something, and when the monitor afterwards
    finds another state than planned.
    """
    probe = perform(resource, resource.monitor_action, run=run)
    plan = plan_state(resource, wanted, probe)
    if traces is not None and plan.before in _NOT_RUNNING:
        require_no_remains(resource, traces)
    if check or not plan.actions:
        return Applied(plan, (probe,))
    results = [probe]
    for number, action in enumerate(plan.actions):
        result = perform(resource, action, run=run)
        results.append(result)
        # What cannot be demoted can still be stopped.
        if action != "demote" or plan.actions[number + 1 : number + 2] != ("stop",):
            result.require_success(resource.instance)
        if action == "stop" and traces is not None:
            require_no_remains(resource, traces)
    # For a stopped resource only a probe has an answer that all agents agree on.
    interval = 0.0 if plan.after in _NOT_RUNNING else HEALTH_INTERVAL
    last = perform(resource, resource.monitor_action, interval=interval, run=run)
    if state_of(last) != plan.after:
        raise AgentError(f"{resource} is not {plan.after} after {', '.join(plan.actions)}: {last}.")
    return Applied(plan, (*results, last))


def call_action(
    resource: Resource,
    action: str,
    *,
    check: bool = False,
    check_level: int | None = None,
    interval: float = 0.0,
    traces: Traces | None = None,
    run: Callable[..., Outcome] = run_process,
) -> Applied:
    """Call one *action* that may change *resource*, whatever the state is, unless *check* is true.

    The plan that is returned says what was found before and after.  The second to last
    result is that of the action, the last one a probe.  Raises AgentError when the action
    fails or cannot be called, or when a stop left some of *traces*.
    """
    probe = perform(resource, resource.monitor_action, run=run)
    plan = plan_action(resource, action, probe)
    if check:
        return Applied(plan, (probe,))
    result = perform(resource, action, interval=interval, check_level=check_level, run=run)
    result.require_success(resource.instance)
    if action == "stop" and traces is not None:
        require_no_remains(resource, traces)
    last = perform(resource, resource.monitor_action, run=run)
    after = state_of(last)
    plan = replace(plan, after=after, changes=has_changed(action, plan.before, after))
    return Applied(plan, (probe, result, last))
