# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Declaring a service, and requests to it, for the module ``service``."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

from ... import names
from ...cluster.model.desired import CLEAR, STOP, DesiredState, Request
from ...cluster.model.service import (
    STARTED,
    STOPPED,
    Resource,
    Service,
    service_document,
    service_from_options,
)
from ...cluster.model.state import ClusterState, ServiceStatus
from ...cluster.model.states import ServiceState
from ...errors import InputError
from ...node.configuration_file import load
from ...ocf.metadata import AgentMetadata
from ...result import Result
from ...secrets import HIDDEN, shown, without_secrets
from .agent_checks import Agents, refuse_shared_values
from .change import change_and_wait, no_use, read_cluster

ADVISED = {"start_timeout": "start", "stop_timeout": "stop", "monitor_timeout": "monitor"}
"""The times of a resource for which its agent has advice, and the action of each."""

KEPT = (*ADVISED, "monitor_interval", "check_level")
"""What of a resource stays as it is declared if it is not given."""

SERVICE_KEYS = (
    *("state", "resources", "max_restart", "max_relocate", "failback"),
    *("node", "ignored", "live_migration", "after", "fence_on_stop_failure"),
    *("backoff", "backoff_max", "cpus", "memory", "utilization"),
)
"""The options of a service; one that is not given stays as it is declared."""


def declare_service(options: Mapping[str, Any], check: bool) -> Result:
    """Declare or remove a service; the operation of the module ``service``.

    Clearing an error and stopping with a timeout are requests beside the declaration; see
    ``cluster/model/desired.py``.
    """
    configuration = load(Path(options["config"]))
    name = names.service_id(options["name"])
    absent = options["state"] == "absent"
    present, state = read_cluster(configuration)
    once = _requests(options, state.services.get(name))
    agents = Agents(configuration)
    warnings: list[str] = []
    if not absent:
        merged = service_from_options(merged_service(present, options))
        warnings = agents.check(present, merged, options)
        options = agents.with_sources(options)

    def plan(desired: DesiredState) -> DesiredState:
        after = change(desired)
        if options.get("replace") is False:
            _refuse_replaced(desired.services.get(name), after.services.get(name))
        return after

    def change(desired: DesiredState) -> DesiredState:
        if absent:
            return desired.without_service(name) if name in desired.services else desired
        before = desired.services.get(name)
        service = service_from_options(merged_service(desired, options, agents.known))
        after = desired.with_service(service)
        if options.get("validate", True):
            refuse_shared_values(desired.services, after.services, agents.known)
        request = once.get(CLEAR)
        if before is not None and (before.state, service.state) == (STARTED, STOPPED):
            request = once.get(STOP, request)
        return after.with_request(name, request) if request is not None else after

    desired_state = "absent" if absent else options["state"]
    missing = partial(_missing, name, desired_state)
    done, reached = change_and_wait(configuration, options, plan, check, missing)
    values: dict[str, Any] = {
        "service": _service(done.after, name),
        "version": done.after.version,
        "cleared": CLEAR in once,
    }
    if reached is not None:
        status = reached.services.get(name)
        values["status"] = {
            "state": status.state.value if status is not None else "absent",
            "node": status.node if status is not None else "",
            "reason": status.why if status is not None else "",
        }
    if options["state"] != STARTED and done.changed:
        warnings += _left_running(name, done.before)
    before, after = _service(done.before, name), _service(done.after, name)
    return Result(done.changed, values, before, after, warnings)


def merged_service(
    desired: DesiredState,
    options: Mapping[str, Any],
    known: Mapping[str, AgentMetadata] | None = None,
) -> dict[str, Any]:
    """Return the given options of a service, the others as they are declared.

    A secret that is given as an export hides it stays as it is declared too, and so does a time of
    a resource that is not given.  One that is not declared either is what the agent advises, by
    the *known* metadata.
    """
    present = desired.services.get(options["name"])
    merged: dict[str, Any] = {"name": options["name"]}
    if present is not None:
        merged = service_document(present)
    for key in SERVICE_KEYS:
        if options.get(key) is not None:
            merged[key] = options[key]
    if options.get("resources") is not None:
        merged["resources"] = [
            _with_kept(_with_secrets(row, present), present, known or {})
            for row in options["resources"]
        ]
    return merged


def _with_kept(row: Any, present: Service | None, known: Mapping[str, AgentMetadata]) -> Any:
    """Return a resource as options with what is not given: as declared, or as its agent advises."""
    if not isinstance(row, Mapping):
        return row
    kept: dict[str, float] = {}
    metadata = known.get(str(row.get("agent")))
    for key, action in ADVISED.items():
        if metadata is not None:
            kept[key] = metadata.advised_timeout(action, getattr(Resource, key))
    for resource in present.resources if present is not None else ():
        if (resource.name, resource.agent) == (row.get("name"), row.get("agent")):
            kept.update({key: getattr(resource, key) for key in KEPT})
    return {**row, **{key: value for key, value in kept.items() if row.get(key) is None}}


def _with_secrets(row: Any, present: Service | None) -> Any:
    """Return a resource as options with hidden secrets replaced by the declared ones.

    They are those of the resource with the same name and agent.  Raises ``InputError`` without
    one: the text that hides a secret must never become the secret.
    """
    given = row.get("parameters") if isinstance(row, Mapping) else None
    if not isinstance(given, Mapping):
        return row
    known: dict[str, str] = {}
    named = row.get("secrets") or ()
    recorded: dict[str, str] = {}
    for resource in present.resources if present is not None else ():
        if (resource.name, resource.agent) == (row.get("name"), row.get("agent")):
            known.update(resource.parameters)
            recorded.update(resource.sources)
    parameters = dict(given)
    for name, value in given.items():
        if HIDDEN not in str(value):
            continue
        if str(name) not in known or shown(str(name), known[str(name)], named) != value:
            expected = "the secret itself, as an export hides it and none is declared yet"
            raise InputError(f"resources.parameters.{name}", value, expected)
        parameters[name] = known[str(name)]
    # Without a look at the files the digests of those that are declared stay.
    kept = {one: digest for one, digest in recorded.items() if parameters.get(one) == known[one]}
    made = row.get("sources", kept)
    sources = {one: digest or kept.get(one, "") for one, digest in made.items()}
    return {**row, "parameters": parameters, "sources": sources}


def _requests(options: Mapping[str, Any], status: ServiceStatus | None) -> dict[str, Request]:
    """Return the requests of *options*: to clear an error, to stop with a timeout."""
    requests: dict[str, Request] = {}
    within = options.get("stop_within")
    if within is not None:
        if options["state"] != STOPPED:
            raise InputError("stop_within", within, f"it only with state={STOPPED}")
        requests[STOP] = Request(STOP, time.time(), timeout=within)
    if options.get("clear_error"):
        if options["state"] != STARTED:
            raise InputError("clear_error", True, f"it only with state={STARTED}")
        if status is not None and status.state is ServiceState.ERROR:
            requests[CLEAR] = Request(CLEAR, time.time())
    return requests


def _left_running(name: str, desired: DesiredState) -> list[str]:
    """Return a warning if services that start after this one are kept running without it."""
    left = [
        one
        for one in sorted(desired.dependents(name))
        if desired.services[one].state == STARTED and not desired.services[one].ignored
    ]
    if not left:
        return []
    listed = ", ".join(left)
    return [f"Service {name!r} stops, and these start after it and are kept running: {listed}."]


def _refuse_replaced(before: Service | None, after: Service | None) -> None:
    """Raise ``InputError`` if a declared service would be changed or removed."""
    if before is None or before == after:
        return
    how = "it is declared, and would be removed"
    if after is not None:
        names_ = [one.name for one in fields(Service)]
        other = [one for one in names_ if getattr(before, one) != getattr(after, one)]
        how = f"it is declared, and differs in {', '.join(other)}"
    raise InputError("name", before.id, f"a service that is new, as replace is false; {how}")


def _service(desired: DesiredState, name: str) -> object:
    """Return a service without its secrets."""
    service = desired.services.get(name)
    return without_secrets(service_document(service)) if service is not None else None


def _missing(name: str, desired: str, state: ClusterState) -> str:
    """Return why a service is not in the state *desired*; raise for one in error."""
    status = state.services.get(name)
    if (desired == "absent") if status is None else (status.state == desired):
        return ""
    paused = state.why_paused()
    if paused:
        so = f"is {status.state.value}, and left so," if status else "is not applied,"
        ends = "the request stays until then and had no effect yet"
        text = f"Service {name!r} {so} as {paused}; {ends}"
    elif status is None:
        text = f"Service {name!r} is not applied by the manager"
    else:
        text = f"Service {name!r} is {status.state.value}: {status.why}"
    # Without its digest an error is being undone: what may still run is stopped again.
    final = status is not None and status.state is ServiceState.ERROR and status.digest
    if desired == STARTED and final:
        raise no_use(text)
    return text
