# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""This node's host lease: joining its lockspace, keeping the lease for the LRM, giving it back.

Joining takes seconds to minutes, so it has a thread and leases of its own; meanwhile the daemon's
turns go on.  Fabric devices give a node its access back before it joins: some agents do that on
the node itself alone (FenceAgentAPI, on_target), and without access there may be no storage to
join on.  It is safe then, as nothing that was taken over from this node runs here any more.

Stopping sanlock frees no host lease.  So a node that leaves in order sets its own free; otherwise
the others would have to wait for its death, or fence it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ...cluster.lrm import effects
from ...errors import HoldfastError, InputError, LeaseError, StorageError
from ...fence.conversation import TOOLS, Conversation, FenceTools
from ...fence.metadata import FABRIC, NONE, kind_by_name
from ...fence.prove import unfence
from ...fence.topology import FenceConfiguration, FenceDevice, load_fence_configuration
from ...lease.sanlock_daemon import DaemonStatus
from ...storage.lockspace.host_timing import LeaseTiming
from ..cluster_storage import ClusterStorage, check_storage, make_leases
from ..configuration import LRM, NodeConfiguration, SanlockSettings
from ..log import log
from ..run_notes import is_freeing
from .network import own_network


class HostLeaseKeeper:
    """Performs the effects of ``cluster/lrm/host_lease.py``; for one thread."""

    def __init__(
        self,
        configuration: NodeConfiguration,
        storage: ClusterStorage,
        clock: Callable[[], float],
        join: Callable[[NodeConfiguration], Joining] | None = None,
    ) -> None:
        """Prepare; *join* begins to join the lockspace."""
        self._configuration = configuration
        self._storage = storage
        self._join = join or (lambda configuration: Joining(configuration, clock))
        self._joining: Joining | None = None

    def performers(self) -> dict[type, Callable[[Any], Any]]:
        """Return what performs each kind of effect."""
        storage, leases = self._storage, self._storage.leases
        return {
            effects.AdoptHostLease: lambda _: self._adopt(),
            effects.ConfirmHostLease: lambda _: leases.renew(),
            effects.DisarmWatchdog: lambda _: leases.disarm_watchdog(),
            effects.LeaveHostLease: lambda _: leases.leave(),
            effects.BeginJoin: lambda _: self._begin_join(),
            effects.FollowJoin: lambda _: self._follow_join(),
            effects.ReadLateFree: lambda _: storage.late_free(),
            effects.IsFreeingHostLease: lambda _: is_freeing(self._configuration.run_directory),
        }

    def _adopt(self) -> effects.Adopted:
        """Adopt the host lease and arm the watchdog; if one fails, do neither."""
        generation = self._storage.adopt_host_lease()
        try:
            self._storage.leases.arm_watchdog()
        except (LeaseError, StorageError):
            self._storage.leases.leave()
            raise
        return effects.Adopted(generation, self._storage.leases.fail_seconds)

    def read_own(self) -> effects.OwnHostLease:
        """Return this node's host lease as it is on the storage."""
        view = self._storage.leases.host(self._configuration.me.host_id)
        return effects.OwnHostLease(view.host_name, view.generation, view.state, view.unchanged_for)

    def _begin_join(self) -> str:
        self._joining = self._join(self._configuration)
        return str(self._joining)

    def _follow_join(self) -> effects.JoinEnd:
        joining = self._joining
        if joining is None or not joining.ended():
            return effects.JoinEnd(False)
        error = joining.error()
        self._joining = None
        return effects.JoinEnd(True, "" if error is None else str(error))


WITHIN = 120.0
"""Seconds for all devices of the node together to give access back."""


def give_access_back(configuration: NodeConfiguration, tools: FenceTools = TOOLS) -> None:
    """Have all fabric devices of this node give its access back, and check it.

    Raises ``LeaseError`` with the reason when one did not within ``WITHIN`` seconds.  Without a
    usable fence configuration nothing is done, so that the node can join.
    """
    devices = _fabric_devices(configuration, tools)
    if devices is None:
        return
    result = unfence(devices, configuration.node, tools, WITHIN)
    if not result.confirmed:
        raise LeaseError(f"access not given back: {result.reason}.")
    log(f"access given back by {', '.join(devices.devices_of(configuration.node))}")


def _fabric_devices(
    configuration: NodeConfiguration, tools: FenceTools
) -> FenceConfiguration | None:
    """Return the levels of this node with its fabric devices only; None if it has none."""
    node = configuration.node
    if not configuration.fence_configuration.exists():
        return None
    try:
        fence = load_fence_configuration(str(configuration.fence_configuration))
    except HoldfastError as error:
        log(f"whether a device cuts this node's access is not known: {error}")
        return None
    if node not in fence.levels:
        return None
    talk = Conversation(fence, tools)
    cutting = {name for name in fence.devices_of(node) if _cuts_access(talk, fence.devices[name])}
    levels = [
        tuple(step for step in level if step.device in cutting) for level in fence.levels[node]
    ]
    if not cutting:
        return None
    return replace(fence, levels={node: tuple(level for level in levels if level)})


def _cuts_access(talk: Conversation, device: FenceDevice) -> bool:
    """Return whether *device* is a fabric device; only an unknown agent is asked."""
    kind = kind_by_name(device.agent)
    if kind != NONE:
        return kind == FABRIC
    try:
        return talk.agent(device).metadata.unfences
    except HoldfastError as error:
        log(f"whether {device.name} cuts this node's access is not known: {error}")
        return False


SLACK = 60.0 + WITHIN
"""Seconds beyond the longest join before it counts as hung: for giving access back first, and
for leaving after a failure, which has 30 s."""


class Joining:
    """One try to join, with a deadline."""

    def __init__(
        self,
        configuration: NodeConfiguration,
        clock: Callable[[], float] = time.monotonic,
        work: Callable[[NodeConfiguration], None] | None = None,
    ) -> None:
        """Begin; *work* joins, or raises the error that says why it cannot."""
        timing = LeaseTiming(configuration.sanlock.io_timeout)
        self._configuration = configuration
        self._clock = clock
        self._seconds = timing.late_seconds + 1 + timing.longest_join_seconds + SLACK
        self._until = clock() + self._seconds
        self._work = work or join_lockspace
        self._errors: list[Exception] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def __str__(self) -> str:
        """Return what the join does, for the log."""
        return (
            f"joins the lockspace {self._configuration.lockspace_path} as host id"
            f" {self._configuration.me.host_id}; that takes up to {self._seconds - SLACK:.0f} s"
        )

    def ended(self) -> bool:
        """Return whether the join has ended; ``LeaseError`` if it hangs."""
        if self._thread.is_alive() and self._clock() >= self._until:
            raise LeaseError(
                f"Joining as host id {self._configuration.me.host_id} did not end within"
                f" {self._seconds:.0f} s: sanlock or the storage hangs. This daemon ends, so that"
                " it is restarted."
            )
        return not self._thread.is_alive()

    def error(self) -> Exception | None:
        """Return why the join failed, once it has ended."""
        return self._errors[0] if self._errors else None

    def _run(self) -> None:
        try:
            self._work(self._configuration)
        except Exception as error:
            self._errors.append(error)


def join_lockspace(configuration: NodeConfiguration) -> None:
    """Give this node its access back and have sanlock take its host lease.

    Raises the error that says why it cannot.
    """
    from ...lease.sanlock import installed_daemon

    check_storage(configuration)
    give_access_back(configuration)
    settings = configuration.sanlock
    refuse_other_watchdog(settings, installed_daemon(settings.run_directory).status())
    leases = make_leases(configuration)
    try:
        leases.join(configuration.node)
    finally:
        # The host lease stays with sanlock.
        leases.close()


def refuse_other_watchdog(settings: SanlockSettings, status: DaemonStatus) -> None:
    """Raise ``LeaseError`` if sanlock resets this machine later than the others assume.

    Each node counts the others as dead after the configured time, and then starts their services.
    """
    if not settings.watchdog_timeout or settings.watchdog_timeout == status.watchdog_timeout:
        return
    version = ".".join(map(str, status.version))
    if status.watchdog_timeout is None:
        raise LeaseError(
            f"sanlock {version} on this machine runs without a watchdog, but the cluster is"
            f" configured for one that resets a node after {settings.watchdog_timeout} s; start"
            " wdmd and set use_watchdog = 1, or configure watchdog_timeout 0 on all nodes."
        )
    raise LeaseError(
        f"sanlock {version} on this machine has a watchdog timeout of {status.watchdog_timeout} s,"
        f" but the cluster is configured for {settings.watchdog_timeout} s; set"
        " watchdog_fire_timeout in /etc/sanlock/sanlock.conf (sanlock 3.9 or newer; before that"
        " it is always 60 s) or configure the other value on all nodes."
    )


def leave_cluster(configuration: NodeConfiguration) -> None:
    """Give this node's host lease back at its shutdown, after its daemons have ended.

    Raises ``LeaseError`` when the node has no host lease, while its LRM runs, and while services
    of this boot may still run: drain the node first.
    """
    me = configuration.me
    try:
        # Held until the end, so that no LRM starts meanwhile.
        place_of_the_lrm = own_network(configuration, LRM)
    except InputError as error:
        raise LeaseError(
            f"The LRM of {configuration.node} still runs; stop the daemons before the node leaves."
        ) from error
    storage = ClusterStorage(configuration)
    try:
        report = storage.read_report(me.host_id)
        left = [*report.running(), *report.coming] if report is not None else []
        if report is not None and report.boot == configuration.boot() and left:
            raise LeaseError(
                f"Node {configuration.node} keeps its host lease: {', '.join(left)} may still run"
                " here; drain the node before it leaves."
            )
        if is_freeing(configuration.run_directory):
            raise LeaseError(
                f"Node {configuration.node} keeps its host lease: its CRM has not finished freeing"
                " another node's host lease."
            )
        storage.adopt_host_lease()
        storage.leases.withdraw()
    finally:
        storage.close()
        place_of_the_lrm.close()
