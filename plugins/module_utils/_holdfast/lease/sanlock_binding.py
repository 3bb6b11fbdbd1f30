# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The client of the sanlock daemon by its Python binding, python3-sanlock of the distribution.

Here this process holds the leases: when the lockspace is lost, sanlock sends it SIGTERM and then
SIGKILL, so it cannot go on without knowing.  A call into the binding cannot be interrupted, so
each one has a thread and a deadline.  What the binding does not offer (the daemon's name and
settings, the flag USED) the command does, which comes with the daemon.
"""

from __future__ import annotations

import errno
import importlib
import os
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from ..cluster.model.observed import HostState
from ..errors import LeaseError, NoAnswerError
from .sanlock_command import CommandDaemon
from .sanlock_daemon import (
    ANSWER,
    GLANCE,
    NOT_FOUND,
    DaemonStatus,
    HostStatus,
    Joined,
    Lockspace,
    Progress,
    Resource,
    refused,
)

MOST_HANGING = 4
"""When so many calls hang, no more threads are given to a daemon that does not answer."""

_T = TypeVar("_T")


def load_binding() -> Any:
    """Return the module ``sanlock``, or None where this Python has none."""
    try:
        return importlib.import_module("sanlock")
    except ImportError:
        return None


class Bounded:
    """Calls that may hang, each in a thread that is abandoned after its deadline."""

    def __init__(self) -> None:
        """Begin with nothing hanging."""
        self._hanging = threading.BoundedSemaphore(MOST_HANGING)

    def call(self, what: str, work: Callable[[], _T], deadline: float) -> _T:
        """Return what *work* returns, or raise what it raises.

        ``NoAnswerError`` after *deadline* seconds, when too many earlier calls still hang, and
        when no thread can be started.
        """
        if not self._hanging.acquire(blocking=False):
            raise NoAnswerError(
                f"sanlock did not {what}: it does not answer for some time already."
            )
        answers: list[_T] = []
        errors: list[BaseException] = []

        def run() -> None:
            try:
                answers.append(work())
            except BaseException as error:
                errors.append(error)
            finally:
                self._hanging.release()

        thread = threading.Thread(target=run, daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            self._hanging.release()
            raise NoAnswerError(f"sanlock was not asked to {what}: {error}.") from error
        thread.join(deadline)
        if errors:
            raise errors[0]
        if not answers:
            raise NoAnswerError(f"sanlock did not {what} within {deadline:.0f} s.")
        return answers[0]


class BindingDaemon:
    """A ``SanlockDaemon`` by the binding, which finds it by ``SANLOCK_RUN_DIR`` alone."""

    def __init__(self, binding: Any) -> None:
        """Use *binding*, the module that ``load_binding`` found."""
        self._binding = binding
        self._command = CommandDaemon()
        self._bounded = Bounded()
        self._states = {
            binding.HOST_FREE: HostState.FREE,
            binding.HOST_LIVE: HostState.LIVE,
            binding.HOST_FAIL: HostState.FAIL,
            binding.HOST_DEAD: HostState.DEAD,
        }

    def status(self, deadline: float = ANSWER) -> DaemonStatus:
        """Return what the daemon says of itself."""
        return self._command.status(deadline)

    def lockspaces(self) -> list[Joined]:
        """Return the lockspaces that the daemon has joined."""
        found = self._do("list its lockspaces", self._binding.get_lockspaces)
        return [
            Joined(
                Lockspace(one["lockspace"].decode(), one["host_id"], one["path"], one["offset"]),
                bool(one["flags"]),
            )
            for one in found
        ]

    def add_lockspace(self, lockspace: Lockspace, io_timeout: int, deadline: float) -> None:
        """Join the lockspace."""
        space = (lockspace.name.encode(), lockspace.host_id, lockspace.path, lockspace.offset)
        self._do(
            f"join lockspace {lockspace.name} as host id {lockspace.host_id}",
            lambda: self._binding.add_lockspace(*space, iotimeout=io_timeout),
            deadline,
        )

    def remove_lockspace(self, lockspace: Lockspace, deadline: float) -> None:
        """Leave the lockspace."""
        space = (lockspace.name.encode(), lockspace.host_id, lockspace.path, lockspace.offset)
        self._do(
            f"leave lockspace {lockspace.name}",
            lambda: self._binding.rem_lockspace(*space),
            deadline,
        )

    def set_used(self, lockspace: str, used: bool) -> None:
        """Set or clear the lockspace's flag USED."""
        self._command.set_used(lockspace, used)

    def has_lost(self, lockspace: str) -> bool:
        """Return whether the daemon has given the lockspace up, or does not have it."""
        return self._command.has_lost(lockspace)

    def held_for(self, lockspace: str) -> float:
        """Return for how many seconds it has had its host lease."""
        return self._command.held_for(lockspace)

    def hosts(self, lockspace: str) -> dict[int, HostStatus]:
        """Return the daemon's view of each host; {} while it has none yet."""
        binding = self._binding
        try:
            found = self._bounded.call(
                "list the hosts", lambda: binding.get_hosts(lockspace.encode()), GLANCE
            )
        except binding.SanlockException as error:
            code = _code(error)
            if code in (NOT_FOUND, _TRY_AGAIN):
                return {}
            raise refused("list the hosts", code) from error
        return {
            one["host_id"]: HostStatus(
                one["generation"], one["timestamp"], self._states.get(one["flags"])
            )
            for one in found
        }

    def acquire(self, resource: Resource) -> ThreadHolding:
        """Begin to try for a lease, in a thread."""
        return ThreadHolding(self._binding, self._bounded, resource)

    def _do(self, what: str, work: Callable[[], Any], deadline: float = ANSWER) -> Any:
        """Call into the binding; its errors become ``LeaseError``."""
        try:
            return self._bounded.call(what, work, deadline)
        except self._binding.SanlockException as error:
            code = _code(error)
            if code in (NOT_FOUND, _REFUSED):
                self.status()
            raise refused(what, code) from error


class ThreadHolding:
    """A ``Holding`` of this process, whose acquire blocks in a thread of its own."""

    def __init__(self, binding: Any, bounded: Bounded, resource: Resource) -> None:
        """Start the thread."""
        self.code = 0
        self._binding = binding
        self._bounded = bounded
        self._names = (resource.lockspace.encode(), resource.name.encode())
        self._disks = [(resource.path, resource.offset)]
        self._lock = threading.Lock()
        self._answered = threading.Event()
        self._descriptor = -1
        self._abandoned = False
        threading.Thread(target=self._try, daemon=True).start()

    def wait(self, seconds: float) -> Progress:
        """Return the progress; a lease that was had is looked up again."""
        if not self._answered.wait(seconds):
            return Progress.TRYING
        with self._lock:
            descriptor = self._descriptor
        if descriptor < 0:
            return Progress.ENDED
        binding = self._binding
        try:
            found = self._bounded.call(
                "say what this process holds", lambda: binding.inquire(slkfd=descriptor), ANSWER
            )
        except binding.SanlockException:
            found = []
        if any((one["lockspace"], one["resource"]) == self._names for one in found):
            return Progress.HELD
        self._drop()
        return Progress.ENDED

    def end(self) -> None:
        """Release the lease, or have the thread release one that comes late."""
        with self._lock:
            self._abandoned = True
            descriptor = self._descriptor
        if descriptor < 0:
            return
        binding = self._binding
        try:
            self._bounded.call(
                "release a lease",
                lambda: binding.release(*self._names, self._disks, slkfd=descriptor),
                ANSWER,
            )
        except (binding.SanlockException, LeaseError):
            # Closing the connection is enough: sanlock takes the lease back then.
            pass
        self._drop()

    def _try(self) -> None:
        """Register and acquire; runs in the thread."""
        descriptor = -1
        try:
            descriptor = self._binding.register()
            self._binding.acquire(*self._names, self._disks, slkfd=descriptor)
        except self._binding.SanlockException as error:
            self.code = _code(error)
            _close(descriptor)
        else:
            with self._lock:
                if not self._abandoned:
                    self._descriptor, descriptor = descriptor, -1
            _close(descriptor)
        finally:
            self._answered.set()

    def _drop(self) -> None:
        """Close the connection to the daemon, which ends every claim to the lease."""
        with self._lock:
            descriptor, self._descriptor = self._descriptor, -1
        _close(descriptor)


_TRY_AGAIN = -11

_REFUSED = -errno.ECONNREFUSED
"""The socket of a daemon that was killed is still there, and refuses connections."""


def _code(error: Any) -> int:
    """Return sanlock's answer; the binding inverts its sign."""
    return -abs(int(error.errno or 1))


def _close(descriptor: int) -> None:
    if descriptor >= 0:
        os.close(descriptor)
