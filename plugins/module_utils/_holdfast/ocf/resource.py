# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A resource with checked options, and how it gets into a state: probe, plan, act.

The probe changes nothing and the plan is a pure function of its result, so check mode shows
exactly what would be called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from ..errors import AgentError, InputError
from ..names import did_you_mean
from ..process.run import Outcome
from ..process.run import run as run_process
from .agent import OCF_ROOT, RUN_DIRECTORY, AgentCall, locate, parse_agent
from .call import FAILED_PROMOTED, INSTALLED, OcfResult, call
from .metadata import (
    AgentMetadata,
    check_meta,
    check_meta_of_action,
    check_parameters,
    load_metadata,
    require_api,
)
from .remains import Traces, require_no_remains


@dataclass(frozen=True)
class Resource:
    """One resource; with ``timeout`` None the agent's advice counts.

    ``call`` has what all calls share.  ``monitor_action`` is ``monitor``, or ``status`` for an
    agent of the older OCF, whose exit codes then count.
    """

    path: str
    metadata: AgentMetadata
    call: AgentCall
    timeout: float | None = None
    monitor_action: str = "monitor"

    def timeout_of(self, action: str) -> float:
        """Return the seconds that *action* gets."""
        return self.timeout if self.timeout is not None else self.metadata.advised_timeout(action)

    def __str__(self) -> str:
        return f"{self.call.instance} ({self.call.agent})"


def prepare(
    agent: str,
    instance: str,
    parameters: Mapping[str, object],
    *,
    directories: Sequence[str] = (OCF_ROOT,),
    timeout: float | None = None,
    meta: Mapping[str, object] | None = None,
    monitor_action: str = "monitor",
    ocf_root: str = OCF_ROOT,
    node_name: str = "",
    run_directory: str = RUN_DIRECTORY,
) -> Resource:
    """Return the resource *instance* of *agent* with its parameters checked.

    *timeout* is in seconds.  Calls the agent for its metadata only.  Raises InputError for a
    value that is not acceptable, and AgentError when the agent is not installed, has no
    metadata, or follows another major version of the OCF API.
    """
    if not instance or "/" in instance or not instance.isprintable():
        raise InputError("name", instance, "a name that can be part of a file's name")
    if timeout is not None and not 0 < timeout < 86400:
        raise InputError("timeout", timeout, "a number of seconds from above 0 to a day")
    name = parse_agent(agent)
    attributes = check_meta(meta or {})
    path = locate(name, directories)
    metadata = load_metadata(path, agent=name, ocf_root=ocf_root)
    require_api(metadata, agent)
    shared = AgentCall(
        name,
        monitor_action,
        instance,
        timeout or 0.0,
        parameters=check_parameters(metadata, parameters),
        meta=attributes,
        ocf_root=ocf_root,
        node_name=node_name,
        run_directory=run_directory,
    )
    return Resource(path, metadata, shared, timeout, monitor_action)


def perform(
    resource: Resource,
    action: str,
    *,
    interval: float = 0.0,
    check_level: int | None = None,
    run: Callable[..., Outcome] = run_process,
) -> OcfResult:
    """Call *action* of *resource* once and return its result.

    With *interval* 0 (seconds) a monitor is a probe, with any other a health check.  Raises
    AgentError when the agent does not advertise *action*, and InputError when a meta attribute
    that *action* needs is missing.
    """
    check_action(resource, action)
    request = replace(
        resource.call,
        action=action,
        timeout=resource.timeout_of(action),
        interval=interval,
        check_level=check_level,
    )
    return call(resource.path, request, run)


def check_action(resource: Resource, action: str) -> None:
    """Raise the errors of ``perform`` unless *action* can be called."""
    if not resource.metadata.supports(action):
        names = sorted({one.name for one in resource.metadata.actions})
        raise AgentError(
            f"{resource.call.agent} has no action {action!r}; it has:"
            f" {', '.join(names)}{did_you_mean(action, names) or '.'}"
        )
    check_meta_of_action(action, resource.call.meta)


STATES = ("started", "stopped", "restarted", "reloaded", "promoted", "demoted")
READ_ONLY_ACTIONS = frozenset(
    {"monitor", "status", "validate-all", "meta-data", "usage", "methods"}
)

_NEEDS = {"reloaded": "reload", "promoted": "promote", "demoted": "demote"}
_LEADS_TO = {
    "start": "started",
    "stop": "stopped",
    "promote": "promoted",
    "demote": "started",
    "recover": "started",
    "migrate_to": "stopped",
    "migrate_from": "started",
}


@dataclass(frozen=True)
class ResourcePlan:
    """The ``actions`` to call, in order, from state ``before`` to ``after``.

    ``changes`` is whether anything is different afterwards, as far as is known.
    """

    before: str
    after: str
    actions: tuple[str, ...]
    changes: bool


def state_of(result: OcfResult) -> str:
    """Return the state of the resource by a monitor's *result*.

    One of started, promoted, stopped, failed, absent (its program is not installed here, so it
    cannot run here) and unknown.
    """
    if result.promoted:
        return "promoted"
    if result.running:
        return "started"
    if result.stopped:
        return "stopped"
    if result.code == INSTALLED:
        return "absent"
    return "failed" if result.active_or_failed else "unknown"


def plan_state(resource: Resource, desired: str, probe: OcfResult) -> ResourcePlan:
    """Return the plan that brings *resource* from the state in *probe* to *desired*.

    Raises AgentError when the state is unknown, the program is missing but needed, or the
    agent lacks an action that *desired* needs.
    """
    needed = _NEEDS.get(desired)
    if needed is not None and not resource.metadata.supports(needed):
        raise AgentError(
            f"{resource.call.agent} cannot be {desired}: it has no action {needed!r}"
            + ("; state=restarted does without." if desired == "reloaded" else ".")
        )
    before = state_of(probe)
    if before == "unknown":
        raise AgentError(f"The state of {resource} is unknown: {probe}.")
    if before == "absent":
        if desired == "stopped":
            return ResourcePlan(before, before, (), changes=False)
        raise AgentError(f"{resource} cannot run here: {probe}.")
    actions = _actions(desired, before, _stopping(resource, before, probe))
    keeps_role = desired in ("started", "reloaded") and before == "promoted"
    after = (
        desired if desired in ("stopped", "promoted") else "promoted" if keeps_role else "started"
    )
    return ResourcePlan(before, after, actions, changes=bool(actions))


def plan_action(resource: Resource, action: str, probe: OcfResult) -> ResourcePlan:
    """Return the plan that calls *action* alone, with *resource* in the state in *probe*.

    Starting what runs or stopping what is stopped changes nothing; an action such as reload is
    assumed to change something.  Raises AgentError when the agent does not have *action*, or
    when the program is missing but needed.
    """
    check_action(resource, action)
    before = state_of(probe)
    after = _LEADS_TO.get(action, before)
    if before == "absent" and after != before:
        if after != "stopped":
            raise AgentError(f"{resource} cannot run here: {probe}.")
        after = before
    if action in ("start", "recover") and before == "promoted":
        after = before
    return ResourcePlan(before, after, (action,), has_changed(action, before, after))


def has_changed(action: str, before: str, after: str) -> bool:
    """Return whether *action* changed something, by the states before and after it."""
    return before != after or action not in _LEADS_TO


def _stopping(resource: Resource, before: str, probe: OcfResult) -> tuple[str, ...]:
    """Return the actions that stop a resource; a promoted one is demoted first, even if failed."""
    if before == "stopped":
        return ()
    failed_promoted = probe.code == FAILED_PROMOTED and resource.metadata.supports("demote")
    return ("demote", "stop") if before == "promoted" or failed_promoted else ("stop",)


def _actions(desired: str, before: str, stop: tuple[str, ...]) -> tuple[str, ...]:
    begin = () if before in ("started", "promoted") else (*stop, "start")
    if desired == "started":
        return begin
    if desired == "stopped":
        return stop
    if desired == "restarted":
        return (*stop, "start")
    if desired == "reloaded":
        # A reload of a stopped resource starts it with some agents and fails with others.
        return begin or ("reload",)
    if desired == "promoted":
        return () if before == "promoted" else (*begin, "promote")
    return ("demote",) if before == "promoted" else begin


HEALTH_INTERVAL = 10.0
"""Seconds that a health check gets: agents take 0 for a probe and answer it differently."""

_NOT_RUNNING = ("stopped", "absent")


@dataclass(frozen=True)
class Applied:
    """A plan and the results of its calls, the probe first; in check mode only the probe."""

    plan: ResourcePlan
    results: tuple[OcfResult, ...]


def bring_to_state(
    resource: Resource,
    desired: str,
    *,
    check: bool = False,
    traces: Traces | None = None,
) -> Applied:
    """Probe *resource*, and unless *check* is true call what brings it to *desired*.

    Once it is stopped, *traces* must be gone.  The last call is a monitor.  Raises AgentError
    when there is no plan (``plan_state``), at the first action that fails, when a stop left
    something, and when the last monitor finds another state than planned.
    """
    probe = perform(resource, resource.monitor_action)
    plan = plan_state(resource, desired, probe)
    if traces is not None and plan.before in _NOT_RUNNING:
        require_no_remains(resource, traces)
    if check or not plan.actions:
        return Applied(plan, (probe,))
    results = [probe]
    for number, action in enumerate(plan.actions):
        result = perform(resource, action)
        results.append(result)
        # What cannot be demoted can still be stopped.
        if action != "demote" or plan.actions[number + 1 : number + 2] != ("stop",):
            result.require_success(resource.call.instance)
        if action == "stop" and traces is not None:
            require_no_remains(resource, traces)
    # For a stopped resource only a probe has an answer that all agents agree on.
    interval = 0.0 if plan.after in _NOT_RUNNING else HEALTH_INTERVAL
    last = perform(resource, resource.monitor_action, interval=interval)
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
) -> Applied:
    """Call one *action* of *resource*, whatever its state is, unless *check* is true.

    The returned plan has the states found before and after.  The second to last result is that
    of the action, the last one a probe.  Raises AgentError when the action fails or cannot be
    called, or when a stop left some of *traces*.
    """
    probe = perform(resource, resource.monitor_action)
    plan = plan_action(resource, action, probe)
    if check:
        return Applied(plan, (probe,))
    result = perform(resource, action, interval=interval, check_level=check_level)
    result.require_success(resource.call.instance)
    if action == "stop" and traces is not None:
        require_no_remains(resource, traces)
    last = perform(resource, resource.monitor_action)
    after = state_of(last)
    plan = replace(plan, after=after, changes=has_changed(action, plan.before, after))
    return Applied(plan, (probe, result, last))
