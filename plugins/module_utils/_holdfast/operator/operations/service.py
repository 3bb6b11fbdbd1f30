# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Declaring a service, and requests to it, for the module ``service``."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

from ... import names
from ...cluster.model.allowed_agents import why_not_allowed
from ...cluster.model.desired import CLEAR, STOP, Request, Wanted
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
from ...errors import HoldfastError, InputError
from ...node.cluster_key import ClusterKey
from ...node.configuration import NodeConfiguration, load
from ...node.service_secrets import ServiceSecrets
from ...ocf.agent import locate, parse_agent
from ...ocf.metadata import AgentMetadata, check_parameters, load_metadata, require_api
from ...ocf.secret_sources import parameter_of, sources_in
from ...result import Result
from ...secret_sources import FILE, given_by
from ...secrets import HIDDEN, has_secret, shown, without_secrets
from .change import change_and_wait, no_use, read_cluster

PARAMETERS = "resources.parameters"

MIGRATION = ("migrate_to", "migrate_from")
"""The actions that an agent needs for a live migration (OCF 1.1, Actions)."""

SERVICE_KEYS = (
    *("state", "resources", "max_restart", "max_relocate", "failback"),
    *("node", "ignored", "live_migration", "after", "fence_on_stop_failure"),
    *("backoff", "backoff_max", "cpus", "memory"),
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
    if not absent:
        known: dict[str, AgentMetadata] = {}
        check_agents(options, present, configuration, known)
        options = with_sources(options, configuration, known)

    def plan(wanted: Wanted) -> Wanted:
        after = change(wanted)
        if options.get("replace") is False:
            _refuse_replaced(wanted.services.get(name), after.services.get(name))
        return after

    def change(wanted: Wanted) -> Wanted:
        if absent:
            return wanted.without_service(name) if name in wanted.services else wanted
        before = wanted.services.get(name)
        service = service_from_options(merged_service(wanted, options))
        after = wanted.with_service(service)
        request = once.get(CLEAR)
        if before is not None and (before.state, service.state) == (STARTED, STOPPED):
            request = once.get(STOP, request)
        return after.with_request(name, request) if request is not None else after

    wanted_state = "absent" if absent else options["state"]
    missing = partial(_missing, name, wanted_state)
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
    return Result(done.changed, values, _service(done.before, name), _service(done.after, name))


def merged_service(wanted: Wanted, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given options of a service, the others as they are declared.

    A secret that is given as an export hides it stays as it is declared too.
    """
    present = wanted.services.get(options["name"])
    merged: dict[str, Any] = {"name": options["name"]}
    if present is not None:
        merged = service_document(present)
    for key in SERVICE_KEYS:
        if options.get(key) is not None:
            merged[key] = options[key]
    if options.get("resources") is not None:
        merged["resources"] = [_with_secrets(row, present) for row in options["resources"]]
    return merged


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
    asked: dict[str, Request] = {}
    within = options.get("stop_within")
    if within is not None:
        if options["state"] != STOPPED:
            raise InputError("stop_within", within, f"it only with state={STOPPED}")
        seconds = names.number(within, "stop_within", 1.0, 86400.0, "seconds")
        asked[STOP] = Request(STOP, time.time(), timeout=seconds)
    if options.get("clear_error"):
        if options["state"] != STARTED:
            raise InputError("clear_error", True, f"it only with state={STARTED}")
        if status is not None and status.state is ServiceState.ERROR:
            asked[CLEAR] = Request(CLEAR, time.time())
    return asked


def check_agents(
    options: Mapping[str, Any],
    present: Wanted,
    configuration: NodeConfiguration,
    known: dict[str, AgentMetadata],
) -> None:
    """Raise ``InputError`` for a missing node or agent, and for what the agents cannot do.

    Resources that are not given are not checked again, unless they are to migrate.  *known* has
    the metadata of agents that were asked already; more is added to it.
    """
    service = service_from_options(merged_service(present, options))
    given = bool(options.get("resources"))
    if service.node:
        configuration.require_member(service.node)
    refused = why_not_allowed(service.agents, configuration.allowed_agents) if given else ""
    if refused:
        expected = f"an agent that {configuration.node} may run; {refused}"
        raise InputError("resources.agent", ", ".join(service.agents), expected)
    for resource in service.resources:
        if not given and not service.live_migration:
            continue
        if resource.agent not in known:
            agent = parse_agent(resource.agent, "resources.agent")
            path = locate(agent, configuration.agent_directories)
            known[resource.agent] = load_metadata(path, agent=agent)
        metadata = known[resource.agent]
        require_api(metadata, resource.agent)
        if given:
            _check_parameters(metadata, resource, configuration)
            _refuse_new_secrets(metadata, service.id, resource, present, configuration)
        missing = [one for one in MIGRATION if not metadata.supports(one)]
        if service.live_migration and missing:
            raise InputError(
                "live_migration",
                True,
                f"false for {service.id!r}: {resource.agent} has no action {' and '.join(missing)}",
            )


def _check_parameters(
    metadata: AgentMetadata, resource: Resource, configuration: NodeConfiguration
) -> None:
    sources = sources_in(metadata, resource.parameters, configuration.secrets_folder, PARAMETERS)
    others = {name: one for name, one in resource.parameters.items() if name not in sources}
    check_parameters(metadata, others, PARAMETERS, [parameter_of(one) for one in sources])
    for name in resource.secrets:
        if metadata.parameter(name) is None:
            raise InputError("resources.secrets", name, f"a parameter of {resource.agent}")


def _refuse_new_secrets(
    metadata: AgentMetadata,
    service_id: str,
    resource: Resource,
    present: Wanted,
    configuration: NodeConfiguration,
) -> None:
    """Raise ``InputError`` for a secret that is not declared yet and would be on shared storage."""
    declared = present.services.get(service_id)
    before = next(
        (one for one in (declared.resources if declared else ()) if one.name == resource.name), None
    )
    known = before.parameters if before is not None else {}
    for name, value in resource.parameters.items():
        parameter = metadata.parameter(name)
        if value == known.get(name) or (parameter is not None and value == parameter.default):
            continue
        if has_secret(name, value, resource.secrets):
            file = f"{service_id}.{resource.name}.{name}"
            raise InputError(
                f"{PARAMETERS}.{name}",
                HIDDEN,
                "no secret, as a declaration is on shared storage: write the value into"
                f" {configuration.secrets_folder / file} on each node, with mode 0600, and declare"
                f" {name}{FILE}: {file} instead",
            )


def with_sources(
    options: Mapping[str, Any],
    configuration: NodeConfiguration,
    known: Mapping[str, AgentMetadata],
) -> Mapping[str, Any]:
    """Return *options* with the sources of secrets in each resource and their digests.

    *known* has the metadata of all its agents.  A file that this node cannot read has no digest:
    the node on which the service is to be started says so.
    """
    if options.get("resources") is None:
        return options
    secrets = ServiceSecrets(configuration, ClusterKey(configuration).authentication)
    rows = []
    for row in options["resources"]:
        parameters = {str(key): str(one) for key, one in (row.get("parameters") or {}).items()}
        folder = configuration.secrets_folder
        sources = dict.fromkeys(sources_in(known[row["agent"]], parameters, folder, PARAMETERS), "")
        for source in sources:
            if given_by(source, FILE):
                with suppress(HoldfastError):
                    value = parameters[source]
                    sources[source] = secrets.digest(options["name"], row["name"], source, value)
        rows.append({**row, "sources": sources})
    return {**options, "resources": rows}


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


def _service(wanted: Wanted, name: str) -> object:
    """Return a service without its secrets."""
    service = wanted.services.get(name)
    return without_secrets(service_document(service)) if service is not None else None


def _missing(name: str, wanted: str, state: ClusterState) -> str:
    """Return why a service is not in the state *wanted*; raise for one in error."""
    status = state.services.get(name)
    if (wanted == "absent") if status is None else (status.state == wanted):
        return ""
    held = state.why_held()
    if held:
        so = f"is {status.state.value}, and left so," if status else "is not taken up,"
        ends = "what was asked stands until that ends; nothing came of it"
        text = f"Service {name!r} {so} as {held}; {ends}"
    elif status is None:
        text = f"Service {name!r} is not taken up by the manager"
    else:
        text = f"Service {name!r} is {status.state.value}: {status.why}"
    # Without its digest an error is being undone: what may still run is stopped again.
    final = status is not None and status.state is ServiceState.ERROR and status.digest
    if wanted == STARTED and final:
        raise no_use(text)
    return text
