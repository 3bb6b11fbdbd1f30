# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a program under our own deadline and keep what it said.

Agents hang, ignore signals, flood their output, and leave services behind that
hold their pipes open.  ``run`` survives all of it: the child has a session of
its own, the whole group and every descendant that is still known is killed at
the deadline, and the output is drained when the child exits instead of waited
for to its end.  A service that a successful call left behind is never touched.
"""

from __future__ import annotations

import os
import selectors
import signal as signals
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from .errors import AgentError
from .process_table import ProcessEntry, descendants, is_alive, process_table

KEEP = 1 << 20
"""At most this many bytes of each stream are kept."""

GRACE = 2.0
"""Seconds that a killed child gets to be gone; one in an uninterruptible wait never is."""

_CHUNK = 1 << 16
_DRAIN = 1 << 20
"""What an ended child can have left in a pipe: /proc/sys/fs/pipe-max-size is 1 MiB."""

_FIRST_SCAN = 1.0
_SCAN_COST = 20.0
_POLL_WITHOUT_PIDFD = 0.01


@dataclass(frozen=True)
class Outcome:
    """How a program ended.

    ``exit_status`` is None when it did not end by itself: then ``signal`` says what
    killed it, or both are None when its end could not be learned (it would not die,
    or somebody else collected its status).  ``duration`` is in seconds.
    """

    argv: tuple[str, ...]
    exit_status: int | None
    signal: int | None
    timed_out: bool
    duration: float
    stdout: str
    stderr: str


def run(
    argv: Sequence[str],
    *,
    deadline: float,
    stdin: bytes = b"",
    environment: Mapping[str, str] | None = None,
    directory: str | None = None,
    keep: int = KEEP,
    clock: Callable[[], float] = time.monotonic,
) -> Outcome:
    """Run *argv* for at most *deadline* seconds from now and return its Outcome.

    *stdin* is written to the program and closed; without it the program reads an
    empty file.  *environment* is all that the program gets; None means ours.
    Of each stream the first and last half of *keep* bytes are kept, with a line
    between that says how much was dropped.

    Past the deadline the process group is killed without a SIGTERM before
    (pacemaker, services_linux.c, does the same), and so are descendants that left
    the group.  A child that cannot die does not hold the caller for more than
    ``GRACE`` seconds.

    Raises AgentError when the program is missing or cannot be executed.
    """
    if not 0 < deadline < float("inf"):
        raise AgentError(
            f"{_program(argv)} was not run: a deadline of {deadline!r} seconds makes no sense."
        )
    started = clock()
    child = _start(argv, bool(stdin), environment, directory)
    watch = _Watch(child, stdin, keep)
    try:
        code, timed_out = watch.follow(started + deadline, clock)
    finally:
        watch.close()
    return Outcome(
        argv=tuple(argv),
        exit_status=code if code is not None and code >= 0 else None,
        signal=-code if code is not None and code < 0 else None,
        timed_out=timed_out,
        duration=clock() - started,
        stdout=watch.stdout.text(),
        stderr=watch.stderr.text(),
    )


def _program(argv: Sequence[str]) -> str:
    return argv[0] if argv else "an empty command"


def _start(
    argv: Sequence[str],
    with_stdin: bool,
    environment: Mapping[str, str] | None,
    directory: str | None,
) -> subprocess.Popen[bytes]:
    """Start the child in a session of its own, without code of ours between fork and exec."""
    try:
        return subprocess.Popen(
            list(argv),
            stdin=subprocess.PIPE if with_stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=None if environment is None else dict(environment),
            cwd=directory,
            start_new_session=True,
        )
    except FileNotFoundError:
        what = _program(argv)
        if directory is not None and not os.path.isdir(directory):  # noqa: PTH112
            what = f"the working directory {directory} of {what}"
        raise AgentError(f"{what} does not exist.") from None
    except PermissionError:
        raise AgentError(f"{_program(argv)} is not executable for this user.") from None
    except (OSError, ValueError, IndexError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise AgentError(f"{_program(argv)} could not be started: {reason}.") from None


class _Kept:
    """The beginning and the end of a stream, however long it is."""

    def __init__(self, limit: int) -> None:
        self._head_limit = limit - limit // 2
        self._tail_limit = limit // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._dropped = 0

    def add(self, data: bytes) -> None:
        room = self._head_limit - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if not data:
            return
        self._tail += data
        over = len(self._tail) - self._tail_limit
        if over > 0:
            del self._tail[:over]
            self._dropped += over

    def text(self) -> str:
        parts = [bytes(self._head)]
        if self._dropped:
            parts.append(b"\n[%d bytes dropped]\n" % self._dropped)
        parts.append(bytes(self._tail))
        return b"".join(parts).decode("utf-8", "replace")


class _Watch:
    """One running child: its pipes, its end, and the descendants that were seen of it."""

    def __init__(self, child: subprocess.Popen[bytes], stdin: bytes, keep: int) -> None:
        self._child = child
        self._unsent = memoryview(stdin)
        self.stdout = _Kept(keep)
        self.stderr = _Kept(keep)
        self._known: dict[int, ProcessEntry] = {}
        self._selector = selectors.DefaultSelector()
        self._pidfd = _open_pidfd(child.pid)
        if self._pidfd is not None:
            self._selector.register(self._pidfd, selectors.EVENT_READ)
        for pipe, kept in ((child.stdout, self.stdout), (child.stderr, self.stderr)):
            if pipe is not None:
                os.set_blocking(pipe.fileno(), False)
                self._selector.register(pipe, selectors.EVENT_READ, kept)
        if child.stdin is not None:
            os.set_blocking(child.stdin.fileno(), False)
            self._selector.register(child.stdin, selectors.EVENT_WRITE)

    def follow(self, until: float, clock: Callable[[], float]) -> tuple[int | None, bool]:
        """Serve the child until it ends or time is up; return its code and "timed out"."""
        next_scan = clock() + _FIRST_SCAN
        while True:
            ended, code = self._collect()
            if ended:
                self._drain()
                return code, False
            now = clock()
            if now >= until:
                code = self._kill(clock)
                self._drain()
                return code, True
            if now >= next_scan:
                self._remember_descendants()
                # A machine with thousands of processes must not be scanned all the time.
                next_scan = clock() + max(_FIRST_SCAN, _SCAN_COST * (clock() - now))
            self._serve(min(until, next_scan) - now)

    def _serve(self, seconds: float) -> None:
        if self._pidfd is None:
            seconds = min(seconds, _POLL_WITHOUT_PIDFD)
        for key, _events in self._selector.select(max(0.0, seconds)):
            if isinstance(key.data, _Kept):
                self._read(key, key.data)
            elif key.fileobj is self._child.stdin:
                self._write()

    def _read(self, key: selectors.SelectorKey, kept: _Kept) -> int:
        try:
            data = os.read(key.fd, _CHUNK)
        except BlockingIOError:
            return 0
        except OSError:
            data = b""
        if not data:
            self._selector.unregister(key.fileobj)
        kept.add(data)
        return len(data)

    def _write(self) -> None:
        stdin = self._child.stdin
        if stdin is None:
            return
        try:
            self._unsent = self._unsent[os.write(stdin.fileno(), self._unsent[:_CHUNK]) :]
        except BlockingIOError:
            return
        except OSError:
            # The child closed its standard input: it does not want the rest.
            self._unsent = self._unsent[:0]
        if not self._unsent:
            self._selector.unregister(stdin)
            stdin.close()

    def _drain(self) -> None:
        """Take what the ended child left in its pipes, without waiting for their other holders."""
        for key in list(self._selector.get_map().values()):
            taken = 0
            while isinstance(key.data, _Kept) and taken < _DRAIN:
                length = self._read(key, key.data)
                if not length:
                    break
                taken += length

    def _collect(self) -> tuple[bool, int | None]:
        """Say whether the child has ended, with its code (negative: the signal).

        This does not use Popen.poll, which takes a status that somebody else collected
        (or that an ignored SIGCHLD threw away) for success.
        """
        try:
            pid, status = os.waitpid(self._child.pid, os.WNOHANG)
        except ChildProcessError:
            self._child.returncode = 0
            return True, None
        if pid == 0:
            return False, None
        self._child.returncode = code = os.waitstatus_to_exitcode(status)
        return True, code

    def _remember_descendants(self) -> None:
        table = process_table()
        self._known.update(descendants(table, self._child.pid, self._known))

    def _kill(self, clock: Callable[[], float]) -> int | None:
        """Kill the child, its group and its known descendants; return the child's code."""
        until = clock() + GRACE
        while True:
            # Descendants are looked up before the kill: an orphan no longer tells its parent.
            self._remember_descendants()
            # The child is not collected yet, so its number cannot belong to another group.
            _send_kill(os.killpg, self._child.pid)
            for pid, entry in self._known.items():
                if pid != self._child.pid and is_alive(pid, entry.start):
                    _send_kill(os.kill, pid)
            survivors = any(
                is_alive(pid, entry.start)
                for pid, entry in self._known.items()
                if pid != self._child.pid
            )
            if not survivors or clock() >= until:
                break
            time.sleep(0.01)
        while clock() < until:
            ended, code = self._collect()
            if ended:
                return code
            self._serve(min(0.05, until - clock()))
        ended, code = self._collect()
        return code if ended else None

    def close(self) -> None:
        self._selector.close()
        if self._pidfd is not None:
            os.close(self._pidfd)
        for pipe in (self._child.stdin, self._child.stdout, self._child.stderr):
            if pipe is not None:
                pipe.close()


def _open_pidfd(pid: int) -> int | None:
    """Return a descriptor that is readable once *pid* has ended, where the kernel has that."""
    opener = getattr(os, "pidfd_open", None)
    if opener is None:
        return None
    try:
        return int(opener(pid))
    except OSError:
        return None


def _send_kill(kill: Callable[[int, int], None], pid: int) -> None:
    try:
        kill(pid, signals.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
