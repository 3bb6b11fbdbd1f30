# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A resource in the state that an operator asks for: probe, plan, apply the plan once.

The probe changes nothing and the plan is a pure function of what it found, so check
mode shows exactly what would be called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ..errors import AgentError, InputError
from ..process import Outcome
from ..process import run as run_process
from .call import OcfResult, call
from .codes import INSTALLED
from .environment import RUN_DIRECTORY
from .locate import OCF_ROOT, AgentName, locate, parse_agent
from .metadata import AgentMetadata, check_parameters, load_metadata

STATES = ("started", "stopped", "restarted", "reloaded", "promoted", "demoted")
READ_ONLY_ACTIONS = frozenset(
    {"monitor", "status", "validate-all", "meta-data", "usage", "methods"}
)

HEALTH_INTERVAL = 10.0
"""Seconds told to a health check: agents take 0 for a probe and answer it differently."""

_NEEDS = {"reloaded": "reload", "promoted": "promote", "demoted": "demote"}


@dataclass(frozen=True)
class Resource:
    """One resource, ready to be called; ``timeout`` None means what the agent advises."""

    instance: str
    agent: AgentName
    path: str
    metadata: AgentMetadata
    parameters: Mapping[str, str] = field(repr=False)
    timeout: float | None = None
    ocf_root: str = OCF_ROOT
    node_name: str = ""
    run_directory: str = RUN_DIRECTORY

    def timeout_of(self, action: str) -> float:
        """Return the seconds that *action* gets."""
        return self.timeout if self.timeout is not None else self.metadata.advised_timeout(action)


@dataclass(frozen=True)
class ResourcePlan:
    """What will be called: ``actions`` in order, from state ``before`` to ``after``."""

    before: str
    after: str
    actions: tuple[str, ...]


def prepare(
    agent: str,
    instance: str,
    parameters: Mapping[str, object],
    *,
    directories: Sequence[str] = (OCF_ROOT,),
    timeout: float | None = None,
    ocf_root: str = OCF_ROOT,
    node_name: str = "",
    run_directory: str = RUN_DIRECTORY,
    run: Callable[..., Outcome] = run_process,
) -> Resource:
    """Return the resource *instance* of *agent* with its parameters checked.

    Raises InputError for a value that is not acceptable, and AgentError when the agent
    is not installed or has no metadata.
    """
    if not instance or "/" in instance or not instance.isprintable():
        raise InputError("name", instance, "a name that can be part of a file's name")
    if timeout is not None and not 0 < timeout < 86400:
        raise InputError("timeout", timeout, "a number of seconds from above 0 to a day")
    name = parse_agent(agent)
    path = locate(name, directories)
    metadata = load_metadata(path, agent=name, ocf_root=ocf_root, run=run)
    return Resource(
        instance=instance,
        agent=name,
        path=path,
        metadata=metadata,
        parameters=check_parameters(metadata, parameters),
        timeout=timeout,
        ocf_root=ocf_root,
        node_name=node_name,
        run_directory=run_directory,
    )


def perform(
    resource: Resource,
    action: str,
    *,
    interval: float = 0.0,
    check_level: int | None = None,
    run: Callable[..., Outcome] = run_process,
) -> OcfResult:
    """Call *action* of *resource* once, whatever comes of it.

    Raises AgentError when the agent does not advertise *action*.
    """
    check_action(resource, action)
    return call(
        resource.path,
        action,
        instance=resource.instance,
        agent=resource.agent,
        parameters=resource.parameters,
        timeout=resource.timeout_of(action),
        interval=interval,
        check_level=check_level,
        ocf_root=resource.ocf_root,
        node_name=resource.node_name,
        run_directory=resource.run_directory,
        run=run,
    )


def check_action(resource: Resource, action: str) -> None:
    """Raise AgentError when the agent of *resource* does not advertise *action*."""
    if not resource.metadata.supports(action):
        names = ", ".join(sorted({one.name for one in resource.metadata.actions}))
        raise AgentError(f"{resource.agent} has no action {action!r}; it has: {names}.")


def state_of(resource: Resource, result: OcfResult) -> str:
    """Return started, promoted, stopped, failed or absent for a monitor's *result*.

    ``absent``: its program is not installed here, so it cannot run here.  Raises
    AgentError when the agent could not tell at all.
    """
    if result.promoted:
        return "promoted"
    if result.running:
        return "started"
    if result.stopped:
        return "stopped"
    if result.code == INSTALLED:
        return "absent"
    if result.active_or_failed:
        return "failed"
    raise AgentError(f"The state of {resource.instance} ({resource.agent}) is unknown: {result}.")


def plan_state(resource: Resource, wanted: str, probe: OcfResult) -> ResourcePlan:
    """Return what to call so that *resource*, as *probe* found it, is as *wanted*.

    Raises AgentError when its program is missing but it is to run, or when the agent
    lacks an action that *wanted* needs.
    """
    needed = _NEEDS.get(wanted)
    if needed is not None and not resource.metadata.supports(needed):
        raise AgentError(f"{resource.agent} cannot be {wanted}: it has no action {needed!r}.")
    before = state_of(resource, probe)
    if before == "absent":
        if wanted == "stopped":
            return ResourcePlan(before, before, ())
        raise AgentError(f"{resource.instance} ({resource.agent}) cannot run here: {probe}.")
    stop = {"stopped": (), "promoted": ("demote", "stop")}.get(before, ("stop",))
    begin = () if before in ("started", "promoted") else (*stop, "start")
    actions: tuple[str, ...]
    if wanted == "started":
        actions = begin
    elif wanted == "stopped":
        actions = stop
    elif wanted == "restarted":
        actions = (*stop, "start")
    elif wanted == "reloaded":
        # A reload of a stopped resource starts it with some agents and fails with others.
        actions = begin or ("reload",)
    elif wanted == "promoted":
        actions = () if before == "promoted" else (*begin, "promote")
    else:
        actions = ("demote",) if before == "promoted" else begin
    return ResourcePlan(before, _after(wanted, before), actions)


def apply_plan(
    resource: Resource,
    plan: ResourcePlan,
    *,
    run: Callable[..., Outcome] = run_process,
) -> tuple[OcfResult, ...]:
    """Carry out *plan* and return every result, the last of them a monitor that agrees.

    Raises AgentError at the first action that fails, or when the monitor afterwards
    finds another state than planned.
    """
    results = []
    for action in plan.actions:
        result = perform(resource, action, run=run)
        result.require_success(resource.instance)
        results.append(result)
    # For a stopped resource only a probe has an answer that all agents agree on.
    interval = 0.0 if plan.after in ("stopped", "absent") else HEALTH_INTERVAL
    last = perform(resource, "monitor", interval=interval, run=run)
    results.append(last)
    if state_of(resource, last) != plan.after:
        raise AgentError(
            f"{resource.instance} ({resource.agent}) is not {plan.after} after"
            f" {', '.join(plan.actions)}: {last}."
        )
    return tuple(results)


def _after(wanted: str, before: str) -> str:
    if wanted in ("stopped", "promoted"):
        return wanted
    keeps_role = wanted in ("started", "reloaded") and before == "promoted"
    return "promoted" if keeps_role else "started"
