# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""One resource whose agent was found and whose options were checked, ready to be called."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ..errors import AgentError, InputError
from ..names import did_you_mean
from ..process.run import Outcome
from ..process.run import run as run_process
from .call import OcfResult, call
from .environment import RUN_DIRECTORY, check_meta, check_meta_of_action
from .locate import OCF_ROOT, AgentName, locate, parse_agent
from .metadata import AgentMetadata, check_parameters, load_metadata


@dataclass(frozen=True)
class Resource:
    """One resource; ``timeout`` None means what the agent advises.

    ``meta`` is what a cluster tells of the resource's place in it.  ``monitor_action`` is
    ``monitor``, or ``status`` for an agent of the older text, in whose codes it is then read.
    """

    instance: str
    agent: AgentName
    path: str
    metadata: AgentMetadata
    parameters: Mapping[str, str] = field(repr=False)
    timeout: float | None = None
    meta: Mapping[str, str] = field(default_factory=dict)
    monitor_action: str = "monitor"
    ocf_root: str = OCF_ROOT
    node_name: str = ""
    run_directory: str = RUN_DIRECTORY

    def timeout_of(self, action: str) -> float:
        """Return the seconds that *action* gets."""
        return self.timeout if self.timeout is not None else self.metadata.advised_timeout(action)

    def __str__(self) -> str:
        return f"{self.instance} ({self.agent})"


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
    run: Callable[..., Outcome] = run_process,
) -> Resource:
    """Return the resource *instance* of *agent* with its parameters checked.

    *timeout* is in seconds.  Only the agent's metadata is asked for.  Raises InputError for
    a value that is not acceptable, and AgentError when the agent is not installed or has no
    metadata.
    """
    if not instance or "/" in instance or not instance.isprintable():
        raise InputError("name", instance, "a name that can be part of a file's name")
    if timeout is not None and not 0 < timeout < 86400:
        raise InputError("timeout", timeout, "a number of seconds from above 0 to a day")
    name = parse_agent(agent)
    told = check_meta(meta or {})
    path = locate(name, directories)
    metadata = load_metadata(path, agent=name, ocf_root=ocf_root, run=run)
    return Resource(
        instance=instance,
        agent=name,
        path=path,
        metadata=metadata,
        parameters=check_parameters(metadata, parameters),
        timeout=timeout,
        meta=told,
        monitor_action=monitor_action,
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

    *interval* (seconds) 0 makes a monitor a probe, anything above a check of health.
    Raises AgentError when the agent does not advertise *action*, and InputError when
    *action* makes no sense without meta attributes that are missing.
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
        meta=resource.meta,
        ocf_root=resource.ocf_root,
        node_name=resource.node_name,
        run_directory=resource.run_directory,
        run=run,
    )


def check_action(resource: Resource, action: str) -> None:
    """Raise unless *action* can be called, as ``perform`` does."""
    if not resource.metadata.supports(action):
        names = sorted({one.name for one in resource.metadata.actions})
        raise AgentError(
            f"{resource.agent} has no action {action!r}; it has:"
            f" {', '.join(names)}{did_you_mean(action, names) or '.'}"
        )
    check_meta_of_action(action, resource.meta)
