# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The client of the sanlock daemon by the ``sanlock`` command.

Its exit status is useless (``client command`` without a daemon ends with 0), so the line
"... done CODE" that it writes counts.

A lease belongs to a process that sanlock knows.  Here that is a child: ``sanlock client command``
registers, acquires, and becomes a shell that says "held" and then ``cat``, which ends when its
standard input does.  So the lease goes with the child, the child goes with us, and a lease that
comes late is found by the next ``wait`` or dropped by the child itself.

A machine of a cluster on one computer has its own daemon: run by an ordinary user, in its own run
directory, without a watchdog.
"""

from __future__ import annotations

import grp
import os
import pwd
import re
import selectors
import shutil
import subprocess
import time
from collections.abc import Mapping

from ..cluster.model.observed import HostState
from ..errors import AgentError, LeaseError, NoAnswerError
from ..process.run import run
from ..storage.lockspace.host_timing import FIXED_WATCHDOG_TIMEOUT, kept_watchdog_timeout
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
    not_running,
    refused,
)

ENDING = 2.0
"""Seconds for the child to end after its standard input did."""

_DONE = re.compile(r"\bdone (-?\d+)")
_LOCKSPACE = re.compile(r"s ([^:\n]+):(\d+):(.*):(\d+) ?([A-Z]*) *$", re.MULTILINE)
_HOST = re.compile(r"h (\d+) gen (\d+) timestamp (\d+) (\w+)")
_STATES = {state.name: state for state in HostState}
_HELD = b"held\n"
_HOLD = "echo held && exec cat > /dev/null"
_CHUNK = 4096


class CommandDaemon:
    """A ``SanlockDaemon`` by the ``sanlock`` command."""

    def __init__(self, run_directory: str = "") -> None:
        """Describe the daemon; *run_directory* is its ``SANLOCK_RUN_DIR`` if it has its own."""
        self.run_directory = run_directory or os.environ.get("SANLOCK_RUN_DIR", "")
        self._environment = dict(os.environ)
        if self.run_directory:
            self._environment["SANLOCK_RUN_DIR"] = self.run_directory

    def status(self, deadline: float = ANSWER) -> DaemonStatus:
        """Return what the daemon says of itself."""
        fields = _fields(self._client("status", "-D", deadline=deadline))
        if "our_host_name" not in fields:
            raise not_running(self.run_directory)
        version = tuple(int(part) for part in re.findall(r"\d+", fields.get("version_num", "0")))
        used = fields.get("use_watchdog") != "0"
        return DaemonStatus(
            fields["our_host_name"], version, _watchdog_timeout(fields, version) if used else None
        )

    def lockspaces(self) -> list[Joined]:
        """Return the lockspaces that the daemon has joined."""
        found = _LOCKSPACE.findall(self._client("gets"))
        if not found:
            self.status()
        return [
            Joined(Lockspace(name, int(host_id), path, int(offset)), bool(changing))
            for name, host_id, path, offset, changing in found
        ]

    def add_lockspace(self, lockspace: Lockspace, io_timeout: int, deadline: float) -> None:
        """Join the lockspace."""
        self._do(
            f"join lockspace {lockspace.name} as host id {lockspace.host_id}",
            "add_lockspace",
            *("-s", _lockspace_word(lockspace), "-o", str(io_timeout)),
            deadline=deadline,
        )

    def remove_lockspace(self, lockspace: Lockspace, deadline: float) -> None:
        """Leave the lockspace."""
        self._do(
            f"leave lockspace {lockspace.name}",
            *("rem_lockspace", "-s", _lockspace_word(lockspace)),
            deadline=deadline,
        )

    def set_used(self, lockspace: str, used: bool) -> None:
        """Set or clear the lockspace's flag USED."""
        self._do(
            f"mark lockspace {lockspace} as {'used' if used else 'unused'}",
            *("set_config", "-s", lockspace, "-u", "1" if used else "0"),
        )

    def has_lost(self, lockspace: str) -> bool:
        """Return whether the daemon has given the lockspace up, or does not have it."""
        _daemon, own = self._status_of(lockspace)
        return re.search(r"^ +space_dead=0$", own, re.MULTILINE) is None

    def held_for(self, lockspace: str) -> float:
        """Return for how many seconds it has had its host lease, by its own clock."""
        daemon, own = self._status_of(lockspace)
        now = _fields(daemon).get("monotime", "")
        since = re.search(r"^ +acquire_last_success=([1-9]\d*)$", own, re.MULTILINE)
        return max(0.0, float(now) - float(since[1])) if now.isdecimal() and since else 0.0

    def _status_of(self, lockspace: str) -> tuple[str, str]:
        """Return what the daemon says of itself and of a lockspace, "" for one it does not have."""
        said = self._client("status", "-D", "-s", lockspace, deadline=GLANCE)
        if "our_host_name=" not in said:
            raise not_running(self.run_directory)
        daemon, _found, rest = said.partition(f"\ns {lockspace}:")
        return daemon, re.split(r"\n\S", rest, maxsplit=1)[0]

    def hosts(self, lockspace: str) -> dict[int, HostStatus]:
        """Return the daemon's view of each host."""
        found: dict[int, HostStatus] = {}
        ours = False
        for line in self._client("gets", "-h", "1", deadline=GLANCE).splitlines():
            if line.startswith("s "):
                ours = line.startswith(f"s {lockspace}:")
            host = _HOST.match(line)
            if ours and host is not None:
                host_id, generation, timestamp = (int(host[at]) for at in (1, 2, 3))
                found[host_id] = HostStatus(generation, timestamp, _STATES.get(host[4]))
        return found

    def acquire(self, resource: Resource) -> ChildHolding:
        """Begin to try for a lease, in a child process."""
        word = f"{resource.lockspace}:{resource.name}:{_escaped(resource.path)}:{resource.offset}"
        return ChildHolding(
            [sanlock_program(), "client", "command", "-r", word, "-c", "/bin/sh", "-c", _HOLD],
            self._environment,
            self.run_directory,
        )

    def _do(self, what: str, *arguments: str, deadline: float = ANSWER) -> None:
        """Have the daemon do something; ``LeaseError`` unless it says that it is done."""
        codes = _DONE.findall(self._client(*arguments, deadline=deadline))
        if not codes:
            raise not_running(self.run_directory)
        code = int(codes[-1])
        if code == NOT_FOUND:
            self.status()
        if code < 0:
            raise refused(what, code)

    def _client(self, *arguments: str, deadline: float = ANSWER) -> str:
        """Run ``sanlock client`` and return all that it said.

        ``NoAnswerError`` when it could not be run, for lack of memory or processes, or did not
        end: the state of the leases is unknown then.
        """
        try:
            outcome = run(
                [sanlock_program(), "client", *arguments],
                deadline=deadline,
                environment=self._environment,
            )
        except AgentError as error:
            raise NoAnswerError(f"sanlock cannot be asked: {error}") from error
        if outcome.timed_out:
            raise NoAnswerError(
                f"sanlock did not answer to {arguments[0]} within {deadline:.0f} s."
            )
        if outcome.exit_status is None:
            raise NoAnswerError(f"sanlock client {arguments[0]} was ended before it had answered.")
        return outcome.stdout + outcome.stderr


class ChildHolding:
    """A ``Holding`` whose lease belongs to a child process."""

    def __init__(
        self, arguments: list[str], environment: Mapping[str, str], run_directory: str
    ) -> None:
        """Start the child; ``LeaseError`` if there is no such program."""
        self.code = 0
        self._run_directory = run_directory
        self._said = b""
        self._open = True
        try:
            self._child = subprocess.Popen(  # pylint: disable=ansible-bad-function
                arguments,
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=dict(environment),
                cwd="/",
                start_new_session=True,
            )
        except OSError as error:
            raise LeaseError(f"{arguments[0]} cannot be started: {error.strerror}.") from error
        self._selector = selectors.DefaultSelector()
        if self._child.stdout is not None:
            os.set_blocking(self._child.stdout.fileno(), False)
            self._selector.register(self._child.stdout, selectors.EVENT_READ)

    def wait(self, seconds: float) -> Progress:
        """Return the progress; ``LeaseError`` if the child found no daemon."""
        until = time.monotonic() + seconds
        while self._open and not self._said.endswith(_HELD):
            left = until - time.monotonic()
            if not self._selector.select(max(left, 0.0)):
                break
            if not self._listen():
                # It closed its output, so it is at its end.
                self._close()
        if self._open and self._child.poll() is not None:
            self._close()
        if self._open:
            return Progress.HELD if self._said.endswith(_HELD) else Progress.TRYING
        codes = _DONE.findall(self._said.decode("utf-8", "replace"))
        if not self._said.endswith(_HELD):
            if len(codes) < 2:
                raise not_running(self._run_directory)
            self.code = int(codes[-1])
        return Progress.ENDED

    def end(self) -> None:
        """End the child; sanlock takes a lease back from a process that ended."""
        if not self._open:
            return
        if not self._said.endswith(_HELD):
            # In sanlock it does not see the end of its input.
            self._child.kill()
        self._close()

    def _listen(self) -> bool:
        """Read what the child has written; False at the end of its output."""
        output = self._child.stdout
        try:
            said = output.read(_CHUNK) if output is not None else b""
        except OSError:
            said = b""
        self._said += said or b""
        return said != b""

    def _close(self) -> None:
        """End the child's input, then the child if it goes on."""
        self._open = False
        if self._child.stdin is not None:
            self._child.stdin.close()
        for _turn in range(2):
            try:
                self._child.wait(ENDING)
                break
            except subprocess.TimeoutExpired:
                self._child.kill()
        self._selector.close()
        if self._child.stdout is not None:
            self._child.stdout.close()


def sanlock_program() -> str:
    """Return the sanlock command, which an ordinary user's path often misses."""
    return shutil.which("sanlock") or "/usr/sbin/sanlock"


def _lockspace_word(lockspace: Lockspace) -> str:
    """Return a lockspace as the command wants it."""
    path = _escaped(lockspace.path)
    return f"{lockspace.name}:{lockspace.host_id}:{path}:{lockspace.offset}"


def _escaped(path: str) -> str:
    """Return *path* with its colons escaped, as sanlock_str_to_lockspace reads it."""
    return path.replace(":", "\\:")


def _fields(text: str) -> dict[str, str]:
    """Return the indented name=value lines of the first part, which is the daemon's own."""
    fields: dict[str, str] = {}
    for line in text.splitlines():
        if line.startswith("p ") or line.startswith("s "):
            break
        name, separator, value = line.strip().partition("=")
        if separator:
            fields[name] = value
    return fields


def _watchdog_timeout(fields: Mapping[str, str], version: tuple[int, ...]) -> int:
    """Return after how many seconds the watchdog fires, 60 when the daemon does not say.

    Only the daemon knows: its settings file may have changed since it started.
    """
    said = fields.get("watchdog_fire_timeout", "")
    return kept_watchdog_timeout(version, int(said) if said.isdigit() else FIXED_WATCHDOG_TIMEOUT)


START = 10.0
"""Seconds for the daemon to answer; it takes about 50 ms."""


def start_daemon(run_directory: str, host_name: str) -> subprocess.Popen[bytes]:
    """Start a daemon as the user that we are; ``LeaseError`` if there is no such program."""
    user = pwd.getpwuid(os.geteuid()).pw_name
    group = grp.getgrgid(os.getegid()).gr_name
    environment = {
        **os.environ,
        "SANLOCK_RUN_DIR": run_directory,
        "SANLOCK_PRIVILEGED": "0",
    }
    arguments = [sanlock_program(), "daemon", "-D", "-w", "0", "-U", user, "-G", group]
    try:
        return subprocess.Popen(  # pylint: disable=ansible-bad-function
            [*arguments, "-e", host_name],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment,
            cwd="/",
        )
    except OSError as error:
        raise LeaseError(f"a sanlock of our own cannot be started: {error.strerror}.") from error


def await_daemon(run_directory: str) -> CommandDaemon:
    """Return the daemon once it answers; ``LeaseError`` if it does not in time."""
    daemon = CommandDaemon(run_directory)
    until = time.monotonic() + START
    while True:
        try:
            daemon.status()
            return daemon
        except LeaseError:
            if time.monotonic() >= until:
                raise
        time.sleep(0.05)
