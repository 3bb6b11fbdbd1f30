# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A declared service: its resources, and how it is kept running."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ... import names
from ...errors import InputError
from ...secrets import shown
from .resources import utilization_from_options

STARTED = "started"
STOPPED = "stopped"

DEEPEST_CHECK = 100
"""The largest level of a monitor; OCF 1.1 has 0, 10 and 20, and agents may have others."""


@dataclass(frozen=True)
class Resource:
    """One resource of a resource agent; all times in seconds.

    *agent* is written ``ocf:provider:type``.  The default timeouts are the median advice of the
    agents in resource-agents 4.12, rounded.

    The parameters *secrets* are secrets, whatever their names.  *sources* are the parameters such
    as ``password_file`` that stand for a secret of the node, each with the keyed digest of that
    secret when the service was declared, or "" if that is not known.

    *check_level* is how deep its monitors look, for agents that know of levels (OCF 1.1, monitor).
    """

    name: str
    agent: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    start_timeout: float = 30.0
    stop_timeout: float = 30.0
    monitor_timeout: float = 20.0
    monitor_interval: float = 10.0
    secrets: tuple[str, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)
    check_level: int = 0


@dataclass(frozen=True)
class Service:
    """A service: resources that are started in order and stopped in reverse.

    *max_restart* is how often a failed service is restarted on its node, *max_relocate* how many
    further nodes are tried after that.  With *failback* a service moves to a preferred node that
    comes back.

    *node* is where it is first started, if possible.  An *ignored* service is unmanaged.  With
    *live_migration* it is moved while it runs, if its agents support that.  It starts once the
    services in *after* run.  With *fence_on_stop_failure* a failed stop gets its node fenced.

    From the third failure in a row on, a restart waits *backoff* seconds, doubled each time up to
    *backoff_max*.  *cpus* and *memory* (MiB) are its use of the node, for placement by load; 0 if
    unknown.  *utilization* is what it takes of other resources that nodes declare, by name.
    """

    id: str
    resources: tuple[Resource, ...]
    state: str = STARTED
    max_restart: int = 1
    max_relocate: int = 1
    failback: bool = True
    node: str = ""
    ignored: bool = False
    live_migration: bool = False
    after: tuple[str, ...] = ()
    fence_on_stop_failure: bool = False
    backoff: float = 10.0
    backoff_max: float = 300.0
    cpus: float = 0.0
    memory: float = 0.0
    utilization: Mapping[str, int] = field(default_factory=dict)

    @cached_property
    def agents(self) -> tuple[str, ...]:
        """The agents of the resources, such as ``ocf:heartbeat:IPaddr2``."""
        return tuple(resource.agent for resource in self.resources)

    def digest(self) -> str:
        """Return a short fingerprint of the resources; a change of it requires a restart."""
        return self._digest

    @cached_property
    def _digest(self) -> str:
        rows = [_what_runs(resource) for resource in self.resources]
        return hashlib.sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest()[:16]


_NOT_RUN = ("secrets", "sources", "check_level")
"""What of a resource may change while it runs.  Left out of a document where it is the default, so
that older versions can read it."""

_LIMITS = {
    "backoff": (0.0, 3600.0, "seconds"),
    "backoff_max": (0.0, 86400.0, "seconds"),
    "cpus": (0.0, 10000.0, "a number of CPUs"),
    "memory": (0.0, 1e9, "MiB"),
}
"""The numbers of a service: minimum, maximum, and unit."""


def _flag(value: object, _option: str) -> bool:
    return bool(value)


def _node(value: object, option: str) -> str:
    return names.node_name(value, option) if value else ""


def _utilization(value: object, _option: str) -> Mapping[str, int]:
    return utilization_from_options(value)


_READERS: Mapping[str, Callable[[object, str], Any]] = {
    "max_restart": names.count,
    "max_relocate": names.count,
    "failback": _flag,
    "node": _node,
    "ignored": _flag,
    "live_migration": _flag,
    "fence_on_stop_failure": _flag,
    "utilization": _utilization,
}
"""What reads the options of a service that stand for themselves."""


def service_from_options(options: object) -> Service:
    """Return the checked service of a document or of module options.

    Raises ``InputError`` naming the wrong option.
    """
    if not isinstance(options, Mapping):
        raise InputError("services", options, "a dictionary with name and resources")
    identity = names.service_id(options.get("name"))
    state = options.get("state", STARTED)
    if state not in (STARTED, STOPPED):
        raise InputError("state", state, "'started' or 'stopped'")
    rows = options.get("resources") or ()
    if not isinstance(rows, (list, tuple)):
        raise InputError("resources", rows, "a list of dictionaries, each with name and agent")
    resources = tuple(_resource(row) for row in rows)
    if not resources:
        raise InputError("resources", [], f"at least one resource for service {identity!r}")
    seen: set[str] = set()
    for resource in resources:
        if resource.name in seen:
            raise InputError("resources", resource.name, "a resource name used once per service")
        seen.add(resource.name)
    given: dict[str, Any] = _numbers(options)
    given.update((key, read(options[key], key)) for key, read in _READERS.items() if key in options)
    if given.get("live_migration") and len(resources) > 1:
        # With several, some would run here and some there.
        raise InputError(
            "live_migration", True, f"false for {identity!r}, which has {len(resources)} resources"
        )
    if options.get("after"):
        given["after"] = _after(identity, options["after"])
    return Service(id=identity, resources=resources, state=state, **given)


def needs_from_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given CPUs, MiB of memory and utilization of a service, checked."""
    found: dict[str, Any] = {
        key: names.number(options[key], key, *_LIMITS[key])
        for key in ("cpus", "memory")
        if options.get(key) is not None
    }
    if options.get("utilization") is not None:
        found["utilization"] = utilization_from_options(options["utilization"])
    return found


def service_document(service: Service) -> dict[str, Any]:
    """Return a service as plain data; ``service_from_options`` reads it back."""
    document: dict[str, Any] = {
        "name": service.id,
        "state": service.state,
        "resources": [_resource_document(resource) for resource in service.resources],
        "max_restart": service.max_restart,
        "max_relocate": service.max_relocate,
        "failback": service.failback,
    }
    # Defaults are left out, so that older versions can read the document.
    for key in ("node", "ignored", "live_migration", "fence_on_stop_failure", *_LIMITS):
        if getattr(service, key) != getattr(Service, key):
            document[key] = getattr(service, key)
    if service.after:
        document["after"] = list(service.after)
    if service.utilization:
        document["utilization"] = dict(service.utilization)
    return document


def refuse_unknown_after(
    service: Service, before: Service | None, services: Mapping[str, Service]
) -> None:
    """Raise ``InputError`` if *service* newly starts after an undeclared one."""
    known = set(before.after) if before is not None else set()
    for other in service.after:
        if other not in services and other not in known:
            there = ", ".join(sorted(services.keys() - {service.id})) or "there are none yet"
            expected = f"the id of a declared service ({there}) for {service.id!r}"
            raise InputError("after", other, expected)


def refuse_circle(service: Service, services: Mapping[str, Service]) -> None:
    """Raise ``InputError`` if *service* would have to wait for itself."""
    ways: list[tuple[str, ...]] = [(other,) for other in service.after]
    seen: set[str] = set()
    while ways:
        way = ways.pop()
        if way[-1] == service.id:
            circle = " after ".join((service.id, *way))
            raise InputError("after", list(service.after), f"no circle, but this is {circle}")
        if way[-1] not in seen and way[-1] in services:
            seen.add(way[-1])
            ways.extend((*way, other) for other in services[way[-1]].after)


def _numbers(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers that are among *options*, checked."""
    given = {
        key: names.number(options[key], key, *limits)
        for key, limits in _LIMITS.items()
        if key in options
    }
    backoff = given.get("backoff", Service.backoff)
    longest = given.get("backoff_max", Service.backoff_max)
    if longest < backoff:
        least = f"seconds from backoff, which is {backoff:g}, on"
        raise InputError("backoff_max", longest, least)
    return given


def _resource(row: object) -> Resource:
    if not isinstance(row, Mapping):
        raise InputError("resources", row, "a list of dictionaries, each with name and agent")
    agent = row.get("agent")
    if not isinstance(agent, str) or not agent:
        raise InputError("resources.agent", agent, "a resource agent such as ocf:heartbeat:IPaddr2")
    parameters = row.get("parameters") or {}
    if not isinstance(parameters, Mapping):
        raise InputError("resources.parameters", parameters, "a dictionary of parameters")
    named = _secrets(row["secrets"]) if row.get("secrets") else ()
    return Resource(
        name=names.service_id(row.get("name"), "resources.name"),
        agent=agent,
        parameters=dict([_parameter(key, value, named) for key, value in parameters.items()]),
        secrets=named,
        sources=_sources(row["sources"], parameters) if row.get("sources") else {},
        **{
            key: read(row[key], key)
            for key, read in _RESOURCE_NUMBERS.items()
            if row.get(key) is not None
        },
    )


def _resource_document(resource: Resource) -> dict[str, Any]:
    document = _what_runs(resource)
    if resource.secrets:
        document["secrets"] = list(resource.secrets)
    if resource.sources:
        document["sources"] = dict(resource.sources)
    if resource.check_level:
        document["check_level"] = resource.check_level
    return document


def _what_runs(resource: Resource) -> dict[str, Any]:
    """Return what of a resource cannot change while it runs."""
    row = {**vars(resource), "parameters": dict(resource.parameters)}
    return {key: value for key, value in row.items() if key not in _NOT_RUN}


def _secrets(names_: object) -> tuple[str, ...]:
    if not isinstance(names_, (list, tuple)) or not all(isinstance(one, str) for one in names_):
        raise InputError("resources.secrets", names_, "a list of names of parameters")
    return tuple(names_)


def _sources(rows: object, parameters: Mapping[str, Any]) -> dict[str, str]:
    if not isinstance(rows, Mapping):
        raise InputError("resources.sources", rows, "a dictionary of digests")
    return {str(name): str(digest) for name, digest in rows.items() if name in parameters}


def _parameter(name: object, value: object, named: Collection[str]) -> tuple[str, str]:
    """Return a parameter as texts for agents, with YAML's booleans in lower case.

    It becomes a variable of an agent's environment.
    """
    if not isinstance(value, (str, int, float)):
        kind = "nothing" if value is None else "a list or a dictionary"
        raise InputError(f"resources.parameters.{name}", kind, "a text, a number or a boolean")
    word = str(value).lower() if isinstance(value, bool) else str(value)
    if not str(name) or any(one in str(name) for one in "=\0"):
        raise InputError("resources.parameters", name, "the name of a parameter, without = and NUL")
    if "\0" in word:
        value_shown = shown(str(name), value, named)
        raise InputError(f"resources.parameters.{name}", value_shown, "a value without NUL")
    return str(name), word


def _after(service_id: str, others: object) -> tuple[str, ...]:
    """Return the services after which this one starts, each once."""
    if not isinstance(others, (list, tuple)):
        raise InputError("after", others, "a list of service ids")
    after = tuple(dict.fromkeys(names.service_id(one, "after") for one in others))
    if service_id in after:
        raise InputError("after", service_id, "services other than this one")
    return after


def _seconds(value: object, option: str) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value <= 86400:
        return float(value)
    raise InputError(f"resources.{option}", value, "seconds from just over 0 to 86400")


def _level(value: object, option: str) -> int:
    return names.whole_number(value, f"resources.{option}", 0, DEEPEST_CHECK, "a level")


_RESOURCE_NUMBERS: Mapping[str, Callable[[object, str], Any]] = {
    **dict.fromkeys(("start_timeout", "stop_timeout"), _seconds),
    **dict.fromkeys(("monitor_timeout", "monitor_interval"), _seconds),
    "check_level": _level,
}
"""What reads the numbers of a resource."""
