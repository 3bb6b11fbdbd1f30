# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Carrying out an LRM's jobs: a few threads call the resource agents of services.

A resource agent has a session of its own, so it goes on when its LRM is killed.  A start that is
half done may then finish after the next LRM has found the service stopped, and after the manager
has started it elsewhere.  So the next LRM ends its predecessor's agents before it probes anything,
with all that came of their calls: what ``su`` runs for an agent has a session of its own, and may
start the service yet.  What an agent left behind when it ended is not touched.
"""

from __future__ import annotations

import itertools
import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from ...cluster.model.allowed_agents import why_not_allowed
from ...cluster.model.jobs import Job, JobEnd, JobKind, Sight
from ...cluster.model.report import Outcome
from ...cluster.model.service import Resource, Service
from ...errors import AgentError, HoldfastError, StorageError
from ...ocf.agent import SEARCH_PATH, AgentCall, AgentName, locate, parse_agent
from ...ocf.call import MEANINGS, PERMISSION, OcfResult, call
from ...ocf.metadata import load_metadata, why_not_supported
from ...ocf.secret_sources import SecretReader, parameter_of
from ...process.family import MARK as RUN
from ...process.family import Family, carried, carries, process_table
from ..cluster_storage import ClusterStorage
from ..configuration import MARK, NodeConfiguration

RETRY_WAIT = 1.0
"""Seconds between a failed start and the next try on the same node."""

METADATA_WAIT = 5.0
"""Seconds that an agent gets to print its metadata before a start.  They took up to 2 s."""


class AgentWork:
    """Carries out jobs on this node by calling resource agents."""

    def __init__(
        self,
        configuration: NodeConfiguration,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        wait: Callable[[float], None] = time.sleep,
        forbidden: Callable[[], str] = str,
        ran_here: Callable[[str], bool] = lambda service_id: False,
    ) -> None:
        """Prepare; *clock* is monotonic seconds, *wall* seconds since 1970.

        *forbidden* returns why nothing may be started here now, or "".  It is asked just before
        each start, as a job may have waited for long.  *ran_here* returns whether a service was
        seen to run here, and not to end since.
        """
        self._configuration = configuration
        self._clock = clock
        self._wall = wall
        self._wait = wait
        self._forbidden = forbidden
        self._ran_here = ran_here
        self._secrets = SecretReader(configuration.secrets_folder)
        self._not_supported: dict[tuple[str, int, int], str] = {}

    def carry_out(self, job: Job) -> JobEnd:
        """Do a job and return how it ended; raises no error of an agent."""
        begun = self._clock()
        try:
            outcome, sight, text = self._do(job)
        except HoldfastError as error:
            outcome, sight, text = Outcome.BLOCKED, Sight.PARTLY, str(error)
        return JobEnd(job, outcome, sight, text, self._wall(), self._clock() - begun)

    def _do(self, job: Job) -> tuple[Outcome, Sight, str]:
        if job.kind is JobKind.PROBE:
            # Every node probes a new service: a failover finds the answer of each agent here.
            self._missing_agents(job.service)
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
        """Start all resources in order; after a failure stop them all.

        A service is not started without all of its agents and secrets: it could not be stopped
        either.
        """
        missing = self._missing_agents(service) or self._missing_secrets(service)
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
        """Migrate a service to another node while it runs.

        Only with one resource: of several, some would run here and some there.  After success the
        service may run on the target, where it is probed.
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
        # A migration that timed out may go on without the agent, and still take it away.
        if sight is Sight.RUNNING and result.exit_status is not None:
            return Outcome.FAILED, sight, f"{resource.name}: {result}"
        return Outcome.BLOCKED, sight, f"{resource.name}: {result}; and now {text}"

    def _migrate_from(self, service: Service, source: str) -> bool:
        """Accept a migrating service; False if it is to be started instead."""
        if self._forbidden() or len(service.resources) > 1:
            return False
        resource = service.resources[0]
        meta = {"migrate_target": self._configuration.node, "migrate_source": source}
        timeout = resource.start_timeout + resource.stop_timeout
        result = self._call(service, resource, "migrate_from", timeout, meta=meta)
        return result.succeeded and self._look(service, health=False)[0] is Sight.RUNNING

    def _missing_agents(self, service: Service) -> str:
        """Return why an agent of the service cannot be called, or ""."""
        refused = why_not_allowed(service.agents, self._configuration.allowed_agents)
        if refused:
            return refused
        for resource in service.resources:
            try:
                agent = parse_agent(resource.agent)
                path = locate(agent, self._configuration.agent_directories)
                missing = self._why_not_supported(agent, path)
            except (HoldfastError, OSError) as error:
                missing = str(error)
            if missing:
                return f"{resource.name}: {missing}"
        return ""

    def _why_not_supported(self, agent: AgentName, path: str) -> str:
        """Return why the agent is not supported, or ""; kept until its file changes.

        An agent that prints no metadata is not refused: on a busy node that may be for lack of
        time, and the start reports what is wrong with it.
        """
        file = Path(path).stat()
        key = (path, file.st_ino, file.st_mtime_ns)
        if key not in self._not_supported:
            try:
                metadata = load_metadata(path, agent=agent, deadline=METADATA_WAIT)
            except AgentError:
                self._not_supported[key] = ""
            else:
                self._not_supported[key] = why_not_supported(metadata, str(agent))
        return self._not_supported[key]

    def _missing_secrets(self, service: Service) -> str:
        """Return why a secret of the service cannot be read, or ""."""
        for resource in service.resources:
            _filled, missing = self._secrets.fill(
                resource.parameters, resource.sources, resource.start_timeout, fresh=True
            )
            if missing:
                return f"{resource.name}: {missing}"
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
        """Stop all resources in reverse order, and check each stop by a probe.

        *timeout* is the operator's for each of them, in seconds; 0 for their own.
        """
        for resource in reversed(service.resources):
            seconds = timeout or resource.stop_timeout
            result = self._call(service, resource, "stop", seconds)
            if not result.succeeded:
                return Outcome.BLOCKED, Sight.PARTLY, f"{resource.name}: {result}"
            left = self._call(service, resource, "monitor", resource.monitor_timeout)
            if left.active_or_failed:
                text = f"{resource.name}: stop succeeded, but a probe returns {left}"
                return Outcome.BLOCKED, Sight.PARTLY, text
        return Outcome.OK, Sight.STOPPED, "stopped"

    def _look(self, service: Service, *, health: bool) -> tuple[Sight, str]:
        """Return what of the service runs; a *health* check asks the agents for more than a probe.

        Where the service never ran, an agent that cannot work counts as stopped.  Where it ran,
        only "not running" does: a service that lost its agent, or a file of it, may run on.
        """
        running, reasons = 0, list[str]()
        failed = False
        ran_here = self._ran_here(service.id)
        for resource in service.resources:
            seconds = resource.monitor_timeout
            result = self._call(service, resource, "monitor", seconds, health=health)
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
        meta: Mapping[str, str] | None = None,
        health: bool = False,
    ) -> OcfResult:
        """Call an agent, with the secrets of this node; a *health* check is as deep as declared.

        Without a secret that cannot be read a service is not touched.  A monitor may still see
        that something of it runs; that nothing does counts only where it never ran.
        """
        parameters, missing = self._secrets.fill(
            resource.parameters, resource.sources, timeout, fresh=action == "start"
        )
        request = AgentCall(
            parse_agent(resource.agent),
            action,
            instance=f"{service.id}.{resource.name}",
            timeout=timeout,
            interval=resource.monitor_interval if health else 0.0,
            check_level=(resource.check_level or None) if health else None,
            parameters=parameters,
            meta=meta or {},
            node_name=self._configuration.node,
            run_directory=str(self._configuration.run_directory),
            extra=agent_extras(self._configuration),
            secrets=(*resource.secrets, *map(parameter_of, resource.sources)),
        )
        refused = why_not_allowed((resource.agent,), self._configuration.allowed_agents)
        if refused:
            return OcfResult(action, MEANINGS[PERMISSION], reason=refused)
        unknown = OcfResult(action, MEANINGS[PERMISSION], reason=missing)
        if missing and action != "monitor":
            return unknown
        result = call(self._locate(resource.agent), request)
        if not missing or result.running:
            return result
        # What fails without its secret may run all the same.
        return unknown if result.stopped else replace(result, reason=f"{result}; {missing}")

    def _locate(self, agent: str) -> str:
        """Return the agent's file; the call reports one that is missing."""
        try:
            return locate(parse_agent(agent), self._configuration.agent_directories)
        except HoldfastError:
            return f"/{agent}"


def agent_extras(configuration: NodeConfiguration) -> dict[str, str]:
    """Return what agents get beyond OCF's environment: this Python, and their node."""
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

    Only the agents say so; no daemon and no report is read.
    """
    storage = ClusterStorage(configuration)
    try:
        desired, _slot = storage.read_desired()
    finally:
        storage.close()
    work = AgentWork(configuration)
    sights: dict[str, Sight] = {}
    for service_id, service in sorted(desired.services.items()):
        sights[service_id] = work.carry_out(Job(JobKind.PROBE, service)).sight
    return {service_id: sight.value for service_id, sight in sights.items()}


_LATER = frozenset({JobKind.MONITOR, JobKind.PROBE})
_NOW = 0


class Workers:
    """Threads that never hold up the LRM's loop; a hung agent takes one of them at most."""

    def __init__(
        self, carry_out: Callable[[Job], JobEnd], wake: Callable[[], None], number: int = 4
    ) -> None:
        """Start *number* threads; *wake* is called from them whenever a job has ended."""
        self._carry_out = carry_out
        self._wake = wake
        self._waiting: queue.PriorityQueue[tuple[int, int, Job | None]] = queue.PriorityQueue()
        self._ended: queue.SimpleQueue[JobEnd] = queue.SimpleQueue()
        self._order = itertools.count()
        self._busy: set[str] = set()
        self._number = 0
        self.resize(number)

    def resize(self, number: int) -> None:
        """Work with *number* threads from now on; surplus ones end after their present job."""
        while self._number < number:
            self._number += 1
            threading.Thread(target=self._work, daemon=True).start()
        while self._number > number:
            self._number -= 1
            self._waiting.put((_NOW, next(self._order), None))

    def begin(self, job: Job) -> None:
        """Queue a job; its service is busy until ``take_ended`` returns its end."""
        self._busy.add(job.service.id)
        self._waiting.put((_NOW + 1 + (job.kind in _LATER), next(self._order), job))

    def take_ended(self) -> list[JobEnd]:
        """Return the jobs that ended since the last call; their services are no longer busy."""
        ended: list[JobEnd] = []
        while True:
            try:
                end = self._ended.get_nowait()
            except queue.Empty:
                return ended
            self._busy.discard(end.job.service.id)
            ended.append(end)

    def busy(self) -> frozenset[str]:
        """Return the ids of the services with a job that is queued, runs, or was not taken yet."""
        return frozenset(self._busy)

    def _work(self) -> None:
        while True:
            job = self._waiting.get()[2]
            if job is None:
                return
            try:
                end = self._carry_out(job)
            except Exception as error:
                # The state of the service is unknown: it does not count as stopped.
                text = f"the worker failed: {error!r}"
                end = JobEnd(job, Outcome.BLOCKED, Sight.PARTLY, text=text)
            self._ended.put(end)
            self._wake()


CALLER = "HOLDFAST_CALLER"
"""Environment variable that names the node folder for which an agent was called."""

DEADLINE = 10.0


def end_leftover_agents(configuration: NodeConfiguration) -> int:
    """Kill every agent of an earlier LRM that still runs; return how many there were.

    Raises ``StorageError`` when one is alive after ``DEADLINE`` seconds: then nothing on this node
    counts as stopped.
    """
    mark = os.fsencode(f"{CALLER}={configuration.folder.resolve()}")
    until = time.monotonic() + DEADLINE
    ended: set[int] = set()
    while True:
        agents = {
            pid: entry.start
            for pid, entry in process_table().items()
            if _is_agent(pid, mark, configuration)
        }
        if not agents:
            return len(ended)
        if time.monotonic() > until:
            raise StorageError(
                f"An agent of the LRM before this one does not end (process {min(agents)}); what it"
                " does to its service is not known, so restart the node."
            )
        for pid, start in agents.items():
            call = os.fsdecode(carried(pid, RUN))
            # Without one it ended by itself meanwhile: what it left behind is a service.
            if call:
                ended.add(pid)
                Family(pid, call, start).end(until, time.monotonic)
        time.sleep(0.02)


def _is_agent(pid: int, mark: bytes, configuration: NodeConfiguration) -> bool:
    """Return whether a process is an agent that was called for this node.

    What an agent started inherits the mark, but not the agent's command line.
    """
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:-1]
        if len(words) < 2 or not _is_agent_file(os.fsdecode(words[-2]), configuration):
            return False
    except OSError:
        return False
    return carries(pid, mark)


def _is_agent_file(path: str, configuration: NodeConfiguration) -> bool:
    folders = (f"{directory}/resource.d/" for directory in configuration.agent_directories)
    return path.startswith(tuple(folders))
