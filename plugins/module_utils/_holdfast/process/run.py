# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a program with a deadline and keep its output.

Agents hang, ignore signals, flood their output, and leave services behind that hold their pipes
open.  So the child has a session of its own, all its descendants are killed at the deadline
(``family.py``), and the output is drained when the child exits instead of read to its end.  A
service that a program left behind when it ended by itself is never touched; as the pipes are
closed then, it must write elsewhere.
"""

from __future__ import annotations

import errno
import os
import selectors
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import AgentError
from .family import GRACE, MARK, Family

KEEP = 1 << 20
"""At most this many bytes of each stream are kept."""

EXIT_REASON = "ocf-exit-reason:"
"""The prefix of a resource agent's reason for a failure (OCF 1.1, Exit reason)."""

_CHUNK = 1 << 16
_DRAIN = 1 << 20
"""The most that an ended child can have left in a pipe: /proc/sys/fs/pipe-max-size is 1 MiB."""

_DESCRIPTORS = 9
"""At most this many are open while a program is started: four pipes and /dev/null."""

_FIRST_SCAN = 1.0
_SCAN_COST = 20.0
_POLL_WITHOUT_PIDFD = 0.01


@dataclass(frozen=True)
class Outcome:
    """How a program ended; ``duration`` is in seconds.

    ``exit_status`` is None when it did not end by itself: then ``signal`` is what killed it, or
    both are None when its end is unknown (it did not die, or its status was collected elsewhere).
    """

    argv: tuple[str, ...]
    exit_status: int | None
    signal: int | None
    timed_out: bool
    duration: float
    stdout: str
    stderr: str

    @property
    def exit_reason(self) -> str:
        """The last exit reason of a resource agent, as in pacemaker; "" if there is none."""
        lines = [line for line in self.stderr.splitlines() if EXIT_REASON in line]
        return lines[-1].split(EXIT_REASON, 1)[1].strip() if lines else ""


def run(
    argv: Sequence[str],
    *,
    deadline: float,
    stdin: bytes = b"",
    environment: Mapping[str, str] | None = None,
    keep: int = KEEP,
    clock: Callable[[], float] = time.monotonic,
) -> Outcome:
    """Run *argv* for at most *deadline* seconds from now and return its Outcome.

    *stdin* is written to the program and closed; without it the program reads an empty file.
    *environment* is all that the program gets, besides the variable that marks its processes;
    None means ours.  Of each stream the first and last half of *keep* bytes are kept, with a
    line between that has the number of dropped bytes.

    At the deadline the program and all its descendants are killed without a SIGTERM before
    (pacemaker, services_linux.c, does the same), and so are the descendants of a program that a
    signal killed, and all of it when the caller is interrupted.  A process that does not die
    delays the return by at most ``GRACE`` seconds.

    It may be called from several threads at once.  Raises AgentError when the program is missing
    or cannot be executed.
    """
    if not 0 < deadline < float("inf"):
        raise AgentError(
            f"{_program(argv)} was not run: a deadline of {deadline!r} seconds makes no sense."
        )
    started = clock()
    mark = os.urandom(12).hex()
    variables = {**(os.environ if environment is None else environment), MARK: mark}
    try:
        with selectors.DefaultSelector() as selector:
            _require_descriptors(selector.fileno())
            child = _start(argv, bool(stdin), variables)
            watch = _Watch(child, mark, selector, stdin, keep)
            try:
                code, timed_out = watch.follow(started + deadline, clock)
            except BaseException:
                watch.end(clock)
                raise
            finally:
                watch.close()
    except OSError as error:
        raise AgentError(_why_not(argv, error)) from None
    exit_status, signal_number = _ended(code)
    return Outcome(
        argv=tuple(argv),
        exit_status=exit_status,
        signal=signal_number,
        timed_out=timed_out,
        duration=clock() - started,
        stdout=watch.stdout.text(),
        stderr=watch.stderr.text(),
    )


def _program(argv: Sequence[str]) -> str:
    return argv[0] if argv else "an empty command"


def _require_descriptors(descriptor: int) -> None:
    """Raise OSError when there are too few to start a program; *descriptor* is any open one.

    Popen would raise it too, but before Python 3.11.4 it leaks the pipes that it has by then.
    """
    copies: list[int] = []
    try:
        while len(copies) < _DESCRIPTORS:
            copies.append(os.dup(descriptor))
    finally:
        for copy in copies:
            os.close(copy)


def _start(
    argv: Sequence[str], with_stdin: bool, environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    """Start the child in a session of its own, without code of ours between fork and exec."""
    try:
        child = subprocess.Popen(  # pylint: disable=ansible-bad-function
            list(argv),
            stdin=subprocess.PIPE if with_stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=environment,
            start_new_session=True,
        )
    except (ValueError, IndexError) as error:
        raise AgentError(
            f"{_program(argv)} could not be started: {type(error).__name__}."
        ) from None
    _make_ordinary(child.pid)
    return child


def _make_ordinary(pid: int) -> None:
    """Reset the OOM score of a child.

    A daemon's unit sets OOMScoreAdjust=, and its children inherit that: then a service that
    takes all memory would be the last one to be killed.
    """
    try:
        if int(Path("/proc/self/oom_score_adj").read_text()) != 0:
            Path(f"/proc/{pid}/oom_score_adj").write_text("0")
    except (OSError, ValueError):
        # It has ended already, or this system has no such file.
        return


def _ended(code: int | None) -> tuple[int | None, int | None]:
    """Return the exit status and the signal of a child that ended with *code*, None if unknown."""
    if code is None:
        return None, None
    return (code, None) if code >= 0 else (None, -code)


def _why_not(argv: Sequence[str], error: OSError) -> str:
    """Return as a sentence why the program *argv* could not be run."""
    program = _program(argv)
    if isinstance(error, FileNotFoundError):
        interpreter = _interpreter(program)
        if interpreter:
            return f"{program} cannot run: its interpreter {interpreter} does not exist."
        return f"{program} does not exist."
    if isinstance(error, PermissionError):
        if os.access(program, os.X_OK):
            interpreter = _interpreter(program)
            return (
                f"{program} may not be executed here, though it is executable: look at"
                f" {f'its interpreter {interpreter}' if interpreter else 'how it is mounted'}."
            )
        return f"{program} is not executable for this user."
    if error.errno == errno.ENOEXEC:
        return (
            f"{program} is neither a program for this machine nor a script with an interpreter"
            " in its first line."
        )
    return f"{program} could not be run: {error.strerror}."


def _interpreter(program: str) -> str:
    """Return the interpreter in the first line of the script *program*, or ""."""
    try:
        with open(program, "rb") as file:  # noqa: PTH123
            first_line = file.read(256).split(b"\n", 1)[0]
    except OSError:
        return ""
    words = first_line[2:].split() if first_line.startswith(b"#!") else []
    return os.fsdecode(words[0]) if words else ""


class _Kept:
    """The beginning and the end of a stream of any length."""

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
    """One running child: its pipes, its end, and its descendants."""

    def __init__(
        self,
        child: subprocess.Popen[bytes],
        mark: str,
        selector: selectors.BaseSelector,
        stdin: bytes,
        keep: int,
    ) -> None:
        self._child = child
        self._family = Family(child.pid, mark)
        self._selector = selector
        self._unsent = memoryview(stdin)
        self.stdout = _Kept(keep)
        self.stderr = _Kept(keep)
        self._pidfd: int | None = None

    def follow(self, until: float, clock: Callable[[], float]) -> tuple[int | None, bool]:
        """Serve the child until its end or *until*; return its code and whether it timed out."""
        self._register()
        next_scan = clock() + _FIRST_SCAN
        while True:
            ended = self._ended()
            now = clock()
            if ended is None and now < until:
                if now >= next_scan:
                    self._family.look()
                    # A machine with thousands of processes must not be scanned all the time.
                    next_scan = clock() + max(_FIRST_SCAN, _SCAN_COST * (clock() - now))
                self._serve(min(until, next_scan) - now)
                continue
            if ended in (None, os.CLD_KILLED, os.CLD_DUMPED):
                self.end(clock)
            self._drain()
            return self._collect(), ended is None

    def end(self, clock: Callable[[], float]) -> None:
        """Kill the child and all its descendants, within ``GRACE`` seconds."""
        until = clock() + GRACE
        self._family.end(until, clock)
        while self._ended() is None and clock() < until:
            time.sleep(0.01)

    def _register(self) -> None:
        selector = self._selector
        self._pidfd = _open_pidfd(self._child.pid)
        if self._pidfd is not None:
            selector.register(self._pidfd, selectors.EVENT_READ)
        for pipe, kept in ((self._child.stdout, self.stdout), (self._child.stderr, self.stderr)):
            if pipe is not None:
                os.set_blocking(pipe.fileno(), False)
                selector.register(pipe, selectors.EVENT_READ, kept)
        if self._child.stdin is not None:
            os.set_blocking(self._child.stdin.fileno(), False)
            selector.register(self._child.stdin, selectors.EVENT_WRITE)

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
            # The child closed its standard input.
            self._unsent = self._unsent[:0]
        if not self._unsent:
            self._selector.unregister(stdin)
            stdin.close()

    def _drain(self) -> None:
        """Read what the ended child left in its pipes, without waiting for other writers."""
        for key in list(self._selector.get_map().values()):
            taken = 0
            while isinstance(key.data, _Kept) and taken < _DRAIN:
                length = self._read(key, key.data)
                if not length:
                    break
                taken += length

    def _ended(self) -> int | None:
        """Return how the child ended (one of os.CLD_...), or None if it has not; not collected."""
        try:
            found = os.waitid(os.P_PID, self._child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            # Another thread collected it: its number may be another process's, so none is killed.
            return os.CLD_EXITED
        return None if found is None else found.si_code

    def _collect(self) -> int | None:
        """Return the ended child's code (negative: the signal), None when it is unknown.

        Popen.poll would take a status that was collected elsewhere, or lost by an ignored
        SIGCHLD, for success.
        """
        try:
            pid, status = os.waitpid(self._child.pid, os.WNOHANG)
        except ChildProcessError:
            self._child.returncode = 0
            return None
        if pid == 0:
            return None
        self._child.returncode = code = os.waitstatus_to_exitcode(status)
        return code

    def close(self) -> None:
        """Collect the child and close all pipes."""
        if self._child.returncode is None:
            self._collect()
        if self._pidfd is not None:
            os.close(self._pidfd)
        for pipe in (self._child.stdin, self._child.stdout, self._child.stderr):
            if pipe is not None:
                pipe.close()


def _open_pidfd(pid: int) -> int | None:
    """Return a descriptor that is readable once *pid* has ended; None where there are none."""
    opener = getattr(os, "pidfd_open", None)
    if opener is None:
        return None
    try:
        return int(opener(pid))
    except OSError:
        return None
