# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What has to be called so that a resource is as wanted: pure functions of what was found."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import AgentError
from .call import OcfResult
from .codes import FAILED_PROMOTED, INSTALLED
from .resource import Resource, check_action

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
    """What will be called: ``actions`` in order, from state ``before`` to ``after``.

    ``changes`` says whether anything is different afterwards, as far as can be told.
    """

    before: str
    after: str
    actions: tuple[str, ...]
    changes: bool


def state_of(result: OcfResult) -> str:
    """Return what a monitor's *result* says of the resource.

    One of started, promoted, stopped, failed, ``absent`` (its program is not installed
    here, so it cannot run here) and ``unknown``.
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


def plan_state(resource: Resource, wanted: str, probe: OcfResult) -> ResourcePlan:
    """Return what to call so that *resource*, as *probe* found it, is as *wanted*.

    Raises AgentError when its state is unknown, when its program is missing but it is to
    run, or when the agent lacks an action that *wanted* needs.
    """
    needed = _NEEDS.get(wanted)
    if needed is not None and not resource.metadata.supports(needed):
        raise AgentError(
            f"{resource.agent} cannot be {wanted}: it has no action {needed!r}"
            + ("; state=restarted does without." if wanted == "reloaded" else ".")
        )
    before = state_of(probe)
    if before == "unknown":
        raise AgentError(f"The state of {resource} is unknown: {probe}.")
    if before == "absent":
        if wanted == "stopped":
            return ResourcePlan(before, before, (), changes=False)
        raise AgentError(f"{resource} cannot run here: {probe}.")
    actions = _actions(wanted, before, _stopping(resource, before, probe))
    return ResourcePlan(before, _after(wanted, before), actions, changes=bool(actions))


def plan_action(resource: Resource, action: str, probe: OcfResult) -> ResourcePlan:
    """Return what comes of calling *action* alone, *resource* being as *probe* found it.

    Starting what runs or stopping what is stopped changes nothing; of an action that is
    not about running or not, such as reload, it is assumed that it changes something.

    Raises AgentError when the agent does not have *action*, or when its program is missing
    but it is to run.
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
    """Say whether *action* changed something, going by the states around it."""
    return before != after or action not in _LEADS_TO


def _stopping(resource: Resource, before: str, probe: OcfResult) -> tuple[str, ...]:
    """Return what ends a resource; a promoted one is demoted first, also when it failed."""
    if before == "stopped":
        return ()
    failed_promoted = probe.code == FAILED_PROMOTED and resource.metadata.supports("demote")
    return ("demote", "stop") if before == "promoted" or failed_promoted else ("stop",)


def _actions(wanted: str, before: str, stop: tuple[str, ...]) -> tuple[str, ...]:
    begin = () if before in ("started", "promoted") else (*stop, "start")
    if wanted == "started":
        return begin
    if wanted == "stopped":
        return stop
    if wanted == "restarted":
        return (*stop, "start")
    if wanted == "reloaded":
        # A reload of a stopped resource starts it with some agents and fails with others.
        return begin or ("reload",)
    if wanted == "promoted":
        return () if before == "promoted" else (*begin, "promote")
    return ("demote",) if before == "promoted" else begin


def _after(wanted: str, before: str) -> str:
    if wanted in ("stopped", "promoted"):
        return wanted
    keeps_role = wanted in ("started", "reloaded") and before == "promoted"
    return "promoted" if keeps_role else "started"
