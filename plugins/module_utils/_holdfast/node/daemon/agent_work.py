# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a worker does: calls the resource agents of one service, in order or in reverse.

What really runs on this node, by the word of the agents alone.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from ...cluster.model.jobs import Job, JobEnd, JobKind, Sight
from ...cluster.model.report import Outcome
from ...cluster.model.service import Resource, Service
from ...errors import HoldfastError
from ...ocf.agent import SEARCH_PATH, AgentCall, locate, parse_agent
from ...ocf.call import OcfResult, call
from ..cluster_storage import ClusterStorage
from ..configuration import MARK, NodeConfiguration
from .leftovers import CALLER

RETRY_WAIT = 1.0
"""Seconds between a failed start and the next try on the same node."""


class AgentWork:
    """Carries out jobs on this node."""

    def __init__(
        self,
        configuration: NodeConfiguration,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        wait: Callable[[float], None] = time.sleep,
        forbidden: Callable[[], str] = str,
        ran_here: Callable[[str], bool] = lambda service_id: False,
    ) -> None:
        """Remember the node; *clock* is monotonic seconds, *wall* seconds since 1970.

        *forbidden* is asked just before each start: a job may have waited for long.
        It returns why nothing may be started here now, or nothing.  *ran_here* says of a
        service whether it was seen to run here, and not to end since.
        """
        self._configuration = configuration
        self._clock = clock
        self._wall = wall
        self._wait = wait
        self._forbidden = forbidden
        self._ran_here = ran_here

    def carry_out(self, job: Job) -> JobEnd:
        """Do a job to its end and return how it ended; never raises what an agent causes."""
        begun = self._clock()
        try:
            outcome, sight, text = self._do(job)
        except HoldfastError as error:
            outcome, sight, text = Outcome.BLOCKED, Sight.PARTLY, str(error)
        return JobEnd(job, outcome, sight, text, self._wall(), self._clock() - begun)

    def _do(self, job: Job) -> tuple[Outcome, Sight, str]:
        if job.kind is JobKind.PROBE:
            return (Outcome.OK, *self._look(job.service, health=False))
        if job.kind is JobKind.MONITOR:
            return (Outcome.OK, *self._look(job.service, health=True))
        if job.kind is JobKind.STOP:
            return self._stop(job.service, job.timeout)
        if job.kind is JobKind.MIGRATE:
            return self._migrate_to(job.service, job.other)
        if job.kind is JobKind.RESTART:
            ended = self._stop(job.service)
            return ended if ended[0] is not Outcome.OK else self._start(job.service, tries=1)
        if job.other and self._migrate_from(job.service, job.other):
            return Outcome.OK, Sight.RUNNING, f"came from {job.other} while it ran"
        missing = self._missing_agents(job.service) if job.other else ""
        if missing:
            # It may run here all the same, and nothing can tell, nor stop it.
            return Outcome.BLOCKED, Sight.PARTLY, f"may have come from {job.other}; {missing}"
        return self._start(job.service, tries=1 + job.service.max_restart)

    def _start(self, service: Service, tries: int) -> tuple[Outcome, Sight, str]:
        """Start all resources in order; after a failure leave nothing of them running.

        Without all of its agents a service is not begun: it could not be stopped either.
        """
        missing = self._missing_agents(service)
        if missing:
            return Outcome.FAILED, Sight.STOPPED, missing
        for attempt in range(1, tries + 1):
            failure = self._start_once(service)
            if not failure:
                return Outcome.OK, Sight.RUNNING, "started"
            outcome, sight, text = self._stop(service)
            if outcome is not Outcome.OK:
                return outcome, sight, f"{failure}; and then it could not be stopped: {text}"
            if self._forbidden():
                return Outcome.INTERRUPTED, Sight.STOPPED, failure
            if attempt < tries:
                self._wait(RETRY_WAIT)
        times = f" ({tries} tries)" if tries > 1 else ""
        return Outcome.FAILED, Sight.STOPPED, f"{failure}{times}"

    def _migrate_to(self, service: Service, target: str) -> tuple[Outcome, Sight, str]:
        """Let a service go to another node while it runs; or say that it runs here as before.

        Only what has one resource can: of several, some would run here and some there.
        What does not run here any more may run on the target, and is looked for there.
        """
        if len(service.resources) > 1:
            return Outcome.FAILED, Sight.RUNNING, "it has several resources, which cannot migrate"
        resource = service.resources[0]
        meta = {"migrate_target": target, "migrate_source": self._configuration.node}
        timeout = resource.start_timeout + resource.stop_timeout
        result = self._call(service, resource, "migrate_to", timeout, meta=meta)
        sight, text = self._look(service, health=False)
        if sight is Sight.STOPPED:
            return Outcome.OK, sight, f"went to {target}: {result}"
        # One that was given up may go on behind the agent's back, and take it away yet.
        if sight is Sight.RUNNING and result.exit_status is not None:
            return Outcome.FAILED, sight, f"{resource.name}: {result}"
        return Outcome.BLOCKED, sight, f"{resource.name}: {result}; and now {text}"

    def _migrate_from(self, service: Service, source: str) -> bool:
        """Take in a service that comes while it runs; False if it is to be started instead."""
        if self._forbidden() or len(service.resources) > 1:
            return False
        resource = service.resources[0]
        meta = {"migrate_target": self._configuration.node, "migrate_source": source}
        timeout = resource.start_timeout + resource.stop_timeout
        result = self._call(service, resource, "migrate_from", timeout, meta=meta)
        return result.succeeded and self._look(service, health=False)[0] is Sight.RUNNING

    def _missing_agents(self, service: Service) -> str:
        """Return why the first agent that is not here cannot be called, or nothing."""
        for resource in service.resources:
            try:
                locate(parse_agent(resource.agent), self._configuration.agent_directories)
            except HoldfastError as error:
                return f"{resource.name}: {error}"
        return ""

    def _start_once(self, service: Service) -> str:
        for resource in service.resources:
            reason = self._forbidden()
            if reason:
                return f"not started: {reason}"
            result = self._call(service, resource, "start", resource.start_timeout)
            if not result.succeeded:
                return f"{resource.name}: {result}"
        return ""

    def _stop(self, service: Service, timeout: float | None = None) -> tuple[Outcome, Sight, str]:
        """Stop all resources in reverse; an agent's word is checked by a probe.

        *timeout* is that of the operator for each of them; 0 leaves it at their own.
        """
        for resource in reversed(service.resources):
            seconds = timeout or resource.stop_timeout
            result = self._call(service, resource, "stop", seconds)
            if not result.succeeded:
                return Outcome.BLOCKED, Sight.PARTLY, f"{resource.name}: {result}"
            left = self._call(service, resource, "monitor", resource.monitor_timeout)
            if left.active_or_failed:
                text = f"{resource.name}: stop succeeded, but a probe says {left}"
                return Outcome.BLOCKED, Sight.PARTLY, text
        return Outcome.OK, Sight.STOPPED, "stopped"

    def _look(self, service: Service, *, health: bool) -> tuple[Sight, str]:
        """Return what of the service runs; a health check asks the agents for more than a probe.

        Where it never ran an agent that cannot work says enough.  Of what ran here only "not
        running" tells that it ended: who lost its agent, or a file of it, may run on.
        """
        running, reasons = 0, list[str]()
        failed = False
        ran_here = self._ran_here(service.id)
        for resource in service.resources:
            interval = resource.monitor_interval if health else 0.0
            result = self._call(
                service, resource, "monitor", resource.monitor_timeout, interval=interval
            )
            if result.running:
                running += 1
                continue
            failed = failed or result.active_or_failed or (ran_here and not result.stopped)
            reasons.append(f"{resource.name}: {result}")
        text = "; ".join(reasons)
        if running == len(service.resources):
            return Sight.RUNNING, text
        if running or failed:
            return Sight.PARTLY, text
        return Sight.STOPPED, text

    def _call(
        self,
        service: Service,
        resource: Resource,
        action: str,
        timeout: float,
        interval: float = 0.0,
        meta: Mapping[str, str] | None = None,
    ) -> OcfResult:
        request = AgentCall(
            parse_agent(resource.agent),
            action,
            instance=f"{service.id}.{resource.name}",
            timeout=timeout,
            interval=interval,
            parameters=resource.parameters,
            meta=meta or {},
            node_name=self._configuration.node,
            run_directory=str(self._configuration.run_directory),
            extra=agent_extras(self._configuration),
        )
        return call(self._locate(resource.agent), request)

    def _locate(self, agent: str) -> str:
        """Return the agent's file; one that is missing is left to the call, which says so."""
        try:
            return locate(parse_agent(agent), self._configuration.agent_directories)
        except HoldfastError:
            return f"/{agent}"


def agent_extras(configuration: NodeConfiguration) -> dict[str, str]:
    """Return what agents get beyond OCF's environment: this Python, and whose they are."""
    extras = {
        "PATH": f"{SEARCH_PATH}:{Path(sys.executable).parent}",
        "HOLDFAST_NODE": configuration.node,
        CALLER: str(configuration.folder.resolve()),
    }
    if MARK in os.environ:
        extras[MARK] = os.environ[MARK]
    return extras


def probe_services(configuration: NodeConfiguration) -> dict[str, str]:
    """Return for each declared service ``running``, ``partly`` or ``stopped`` on this node.

    No daemon and no record is asked but the wanted configuration.
    """
    storage = ClusterStorage(configuration)
    try:
        wanted, _slot = storage.read_wanted()
    finally:
        storage.close()
    work = AgentWork(configuration)
    sights: dict[str, Sight] = {}
    for service_id, service in sorted(wanted.services.items()):
        sights[service_id] = work.carry_out(Job(JobKind.PROBE, service)).sight
    return {service_id: sight.value for service_id, sight in sights.items()}
