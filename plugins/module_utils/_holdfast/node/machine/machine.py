# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine of a cluster on one computer: one process that stands for a whole node.

It does what a real node's hardware, kernel and systemd do: it keeps the node's host lease or the
sanlock that does, starts the two daemons again when they die or hang, answers on the network, and
collects orphans of its services.  It decides nothing about services.  As for systemd, SIGTERM is a
poweroff and SIGINT a reboot: the LRM ends first, and after a second signal nothing is waited for.

A sanlock of the machine is started once: one that died stays dead, since on a real node its
watchdog resets the machine then.
"""

from __future__ import annotations

import ctypes
import math
import os
import select
import signal
import socket
import subprocess
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from ...cluster.model.report import POWEROFF, REBOOT
from ...errors import HoldfastError, InputError, LeaseError, StorageError
from ...lease.embedded import EmbeddedLeases
from ...lease.sanlock_command import CommandDaemon, await_daemon, start_daemon
from ...process.own_program import own_program
from ..cluster_storage import ClusterStorage
from ..configuration import (
    CRM,
    EMBEDDED,
    LRM,
    MACHINE,
    MARK,
    SANLOCK,
    NodeConfiguration,
    make_private,
)
from ..daemon.host_lease import give_access_back, leave_cluster
from ..daemon.network import Network, own_network
from ..daemon.system import leave_word
from ..daemon.telemetry import LEASE_RENEWAL, Telemetry, telemetry_path
from ..log import Repeating, log
from . import power

TICK = 0.25
RENEWAL = 1.0

HANG = 10.0
"""Seconds without a report after which a daemon is killed and started again."""

HELD_UP = HANG / 2
"""Seconds without a look after which this process itself stood still and heard no daemon."""

START_AGAIN = 1.0
"""Seconds until the next try to start a daemon."""

READY_WAIT = 20.0
ENDING = 5.0
"""Seconds for a daemon to end when the machine is shut down in order."""

SHUTDOWN_WAIT = 900.0
"""Seconds for the LRM to stop its services, or to have them moved, before the machine goes down."""

_SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER of prctl(2): orphans of this machine become its children."""


@dataclass
class Daemon:
    """One of the two daemons, and the socket for its reports."""

    name: str
    address: str
    channel: socket.socket
    child: subprocess.Popen[bytes] | None = None
    begun: float = 0.0
    heard: float = 0.0
    ready: bool = False
    deaths: int = 0
    not_before: float = 0.0
    log: Path = field(default_factory=Path)


class Machine:
    """Runs until SIGTERM, or until it is killed, which is what a power cut does."""

    def __init__(self, configuration: NodeConfiguration) -> None:
        """Take the node's port and host lease; raises the error that says why it cannot."""
        self._configuration = configuration
        self._folder = configuration.folder
        os.environ[MARK] = str(self._folder.resolve())
        for place in (MACHINE, LRM, CRM):
            # The daemons need theirs too: an error here is clearer than daemons that die again.
            own_network(configuration, place).close()
        self._network = own_network(configuration, MACHINE)
        self._lease = take_machine_lease(configuration)
        log(f"machine of {configuration.node} is on: host id {configuration.me.host_id}")
        self._daemons = [self._daemon("lrm"), self._daemon("crm")]
        self._next_renewal = 0.0
        self._looked = time.monotonic()
        self._repeating = Repeating()
        self._going_down = ""
        self._down_at = math.inf
        self._telemetry = Telemetry(telemetry_path(configuration.run_directory, "machine"))

    def run(self) -> bool:
        """Serve until SIGTERM or SIGINT, then power this machine off.

        Return whether it is to be started again at once.
        """
        ctypes.CDLL(None, use_errno=True).prctl(_SUBREAPER, 1, 0, 0, 0)
        signal.signal(signal.SIGTERM, self._on_poweroff)
        signal.signal(signal.SIGINT, self._on_reboot)
        signal.signal(signal.SIGHUP, self._on_hangup)
        self._write_files()
        begun = time.monotonic()
        announced = False
        while not self._is_down():
            self._tick()
            if not announced and all(daemon.ready for daemon in self._daemons):
                (self._folder / "ready").write_text(f"{os.getpid()}\n", encoding="ascii")
                announced = True
            if not announced and time.monotonic() - begun > READY_WAIT:
                raise HoldfastError(
                    f"The daemons of {self._configuration.node} are not ready after"
                    f" {READY_WAIT:.0f} s; see lrm.log and crm.log in {self._folder}."
                )
        self._switch_off()
        return self._going_down == REBOOT

    def _is_down(self) -> bool:
        """Return whether the machine is to go down and its LRM has ended; end the LRM, once."""
        if not self._going_down:
            return False
        now, lrm = time.monotonic(), self._daemons[0]
        if self._down_at == math.inf:
            log(f"machine is to go down: {self._going_down}")
            self._down_at = now + SHUTDOWN_WAIT
            leave_word(self._folder, self._going_down)
            if lrm.child is not None and lrm.child.returncode is None:
                lrm.child.terminate()
        return now >= self._down_at or lrm.child is None or lrm.child.returncode is not None

    def _tick(self) -> None:
        now = time.monotonic()
        if now - self._looked > HELD_UP:
            for daemon in self._daemons:
                daemon.heard = now
        self._looked = now
        for daemon in self._daemons:
            self._look_after(daemon, now)
        self._renew(now)
        _collect_children(self._daemons)
        channels: list[Network | socket.socket] = [self._network]
        channels.extend(daemon.channel for daemon in self._daemons)
        ready, _writable, _failed = select.select(channels, [], [], TICK)
        if self._network in ready:
            self._network.drain()
        for daemon in self._daemons:
            if daemon.channel in ready:
                _hear(daemon)

    def _look_after(self, daemon: Daemon, now: float) -> None:
        """Start a daemon that does not run, and kill one that hangs."""
        child = daemon.child
        if self._down_at != math.inf and daemon is self._daemons[0]:
            return
        if child is not None and child.returncode is None:
            if now - daemon.heard > HANG:
                log(f"{daemon.name} did not report for {HANG:.0f} s: killed")
                child.kill()
                daemon.heard = now
            return
        if child is not None:
            lived = now - daemon.begun
            daemon.deaths = daemon.deaths + 1 if lived < 5.0 else 0
            wait = 0.0 if daemon.deaths < 2 else min(0.25 * 2**daemon.deaths, 5.0)
            log(f"{daemon.name} ended with {child.returncode}; started again in {wait:.1f} s")
            daemon.child, daemon.not_before = None, now + wait
        if now >= daemon.not_before:
            self._start(daemon, now)

    def _start(self, daemon: Daemon, now: float) -> None:
        """Start a daemon; without a process or a file for it, try again later."""
        try:
            daemon.child = self._started(daemon)
        except OSError as error:
            self._repeating.log(f"{daemon.name} cannot be started: {error.strerror}")
            daemon.not_before = now + START_AGAIN
        else:
            daemon.begun = daemon.heard = now

    def _started(self, daemon: Daemon) -> subprocess.Popen[bytes]:
        config = str(self._folder / "node.json")
        with daemon.log.open("ab") as output:
            return subprocess.Popen(  # pylint: disable=ansible-bad-function
                own_program(daemon.name, config),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, "NOTIFY_SOCKET": "@" + daemon.address},
                cwd="/",
            )

    def _renew(self, now: float) -> None:
        if now < self._next_renewal:
            return
        self._next_renewal = now + RENEWAL
        try:
            self._lease.renew()
        except (StorageError, LeaseError) as error:
            # The LRM sees it too, and stops the services; so this process must not end.
            self._repeating.log(f"host lease not renewed: {error}")
        if self._configuration.backend == EMBEDDED:
            self._telemetry.timed(LEASE_RENEWAL, time.monotonic() - now)
            self._telemetry.keep()

    def _write_files(self) -> None:
        """Begin as after a power-on: an empty run folder, a new boot, our process id."""
        leave_word(self._folder, "")
        make_private(self._configuration.run_directory)
        (self._folder / "boot").write_text(f"{uuid.uuid4().hex}\n", encoding="ascii")
        (self._folder / "machine.pid").write_text(f"{os.getpid()}\n", encoding="ascii")

    def _switch_off(self) -> None:
        log("machine is switched off")
        for daemon in self._daemons:
            _end(daemon)
        self._lease.switch_off(
            lambda: power.power_off(self._folder.parent, self._folder.name, 10.0)
        )

    def _daemon(self, name: str) -> Daemon:
        address = f"holdfast-{os.getpid()}-{name}"
        channel = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        channel.bind("\0" + address)
        channel.setblocking(False)
        return Daemon(name, address, channel, log=self._folder / f"{name}.log")

    def _on_hangup(self, *_arguments: object) -> None:
        """End both daemons; they are started again like any that ended."""
        for daemon in self._daemons:
            if daemon.child is not None and daemon.child.returncode is None:
                daemon.child.terminate()

    def _on_poweroff(self, *_arguments: object) -> None:
        self._go_down(POWEROFF)

    def _on_reboot(self, *_arguments: object) -> None:
        self._go_down(REBOOT)

    def _go_down(self, why: str) -> None:
        if self._going_down:
            self._down_at = 0.0
        self._going_down = self._going_down or why


def _end(daemon: Daemon) -> None:
    """End a daemon; the caller ends its services."""
    if daemon.child is None:
        return
    for end in (daemon.child.terminate, daemon.child.kill):
        end()
        try:
            daemon.child.wait(ENDING)
            return
        except subprocess.TimeoutExpired:
            continue


def _hear(daemon: Daemon) -> None:
    """Read a daemon's reports (sd_notify(3))."""
    while True:
        try:
            message = daemon.channel.recv(4096)
        except BlockingIOError:
            return
        daemon.heard = time.monotonic()
        daemon.ready = daemon.ready or b"READY=1" in message


def _collect_children(daemons: list[Daemon]) -> None:
    """Collect every child that ended: the daemons, and the orphans that became ours."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        for daemon in daemons:
            if daemon.child is not None and daemon.child.pid == pid:
                daemon.child.returncode = os.waitstatus_to_exitcode(status)


LOOK = 0.25
"""Seconds between two looks whether an earlier host lease is still being freed."""


class MachineLease(Protocol):
    """The keeper of the host lease while the machine is on."""

    def renew(self) -> None:
        """Do the work of each second; raises the error that says why it cannot be done."""

    def switch_off(self, power_off: Callable[[], None]) -> None:
        """Have *power_off* end all else, and free the host lease if nothing uses it."""


def take_machine_lease(configuration: NodeConfiguration) -> MachineLease:
    """Return the keeper, which has begun; raises the error that says why it cannot."""
    if configuration.backend == SANLOCK:
        return _OwnSanlock(configuration)
    return _OwnLease(configuration)


class _OwnLease:
    """The host lease by kernel locks of this very process."""

    def __init__(self, configuration: NodeConfiguration) -> None:
        self._leases = EmbeddedLeases(
            str(configuration.lockspace_path),
            str(configuration.leases_path),
            configuration.me.host_id,
        )
        give_access_back(configuration)
        _await_late_free(configuration)
        generation = self._leases.join(configuration.node)
        log(f"host lease generation {generation}; embedded leases, for one machine only")

    def renew(self) -> None:
        self._leases.renew()

    def switch_off(self, power_off: Callable[[], None]) -> None:
        power_off()
        self._leases.leave()


class _OwnSanlock:
    """A sanlock daemon that this machine has to itself; the LRM joins with it."""

    def __init__(self, configuration: NodeConfiguration) -> None:
        self._configuration = configuration
        run_directory = configuration.sanlock.run_directory
        if not run_directory:
            raise InputError(
                "sanlock.run_directory", "", "a folder for the sanlock of this machine alone"
            )
        make_private(Path(run_directory))
        if _answers(CommandDaemon(run_directory)):
            raise LeaseError(f"Another sanlock runs in {run_directory}; end it first.")
        child = start_daemon(run_directory, configuration.node)
        await_daemon(run_directory)
        log(f"sanlock runs in {run_directory} (process {child.pid})")

    def renew(self) -> None:
        """Do nothing: sanlock renews."""

    def switch_off(self, power_off: Callable[[], None]) -> None:
        try:
            leave_cluster(self._configuration)
        except HoldfastError as error:
            log(f"the host lease is not given back: {error}")
        power_off()


def _await_late_free(configuration: NodeConfiguration) -> None:
    """Wait while a node may still be freeing an earlier host lease of this one."""
    storage, repeating = ClusterStorage(configuration), Repeating()
    try:
        while awaited := storage.late_free():
            repeating.log(f"the host lease is not joined yet: {awaited}")
            time.sleep(LOOK)
    finally:
        storage.close()


def _answers(daemon: CommandDaemon) -> bool:
    try:
        daemon.status()
    except LeaseError:
        return False
    return True
