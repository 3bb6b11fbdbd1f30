# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a stopped resource left behind: processes, ports, mounts, a control group.

A stop that succeeded is no proof: the agent of nginx reports "stopped" while a worker whose
master was killed still answers on the port.  This looks in /proc (proc.5) for what an operator
says must be gone, and changes nothing.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..errors import AgentError, InputError
from ..process.family import ProcessEntry, process_table

SETTLE = 2.0
"""Seconds to wait for remains to be gone: a killed process ends a moment after the kill."""

_PAUSE = 0.05
TCP_LISTEN = "0A"
UDP_BOUND = "07"
"""States in /proc/net/tcp and /proc/net/udp (include/net/tcp_states.h of Linux)."""

_ESCAPE = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True)
class Traces:
    """What must be gone once a resource is stopped.

    ``processes`` are regular expressions for a command line, its words joined by blanks;
    ``ports`` TCP or UDP ports of any address of this network namespace; ``mounts`` paths at or
    below which nothing may be mounted; ``cgroup`` a control group as in /proc/PID/cgroup, with
    those below it.
    """

    processes: tuple[str, ...] = ()
    ports: tuple[int, ...] = ()
    mounts: tuple[str, ...] = ()
    cgroup: str = ""

    def check(self, option: str = "verify") -> None:
        """Raise InputError for a value that makes no sense, and when all are empty."""
        if self == Traces():
            raise InputError(option, {}, "processes, ports, mounts or a control group")
        for pattern in self.processes:
            try:
                empty = re.compile(pattern).search("") is not None
            except re.error as error:
                expected = f"a regular expression ({error})"
                raise InputError(f"{option}.processes", pattern, expected) from None
            if empty:
                expected = "a regular expression that does not match just anything"
                raise InputError(f"{option}.processes", pattern, expected)
        for port in self.ports:
            if not 0 < port < 65536:
                raise InputError(f"{option}.ports", port, "a port number from 1 to 65535")
        for path in self.mounts:
            if not path.startswith("/"):
                raise InputError(f"{option}.mounts", path, "an absolute path")
        if self.cgroup and not re.match(r"/.*[^/]", self.cgroup):
            expected = "a control group such as /system.slice/web.service"
            raise InputError(f"{option}.cgroup", self.cgroup, expected)


def find_remains(traces: Traces) -> tuple[str, ...]:
    """Return what is there of *traces*, each as a few words such as ``TCP port 80 in use``.

    The caller and its ancestors do not count: their command lines may have the pattern.
    Raises AgentError when the kernel's tables cannot be read.
    """
    found = list(_processes(traces)) if traces.processes or traces.cgroup else []
    if traces.ports:
        found += _ports(frozenset(traces.ports))
    if traces.mounts:
        mounts = mounts_below(_table("self/mountinfo"), traces.mounts)
        found += [f"{point} mounted" for point in mounts]
    return tuple(found)


def require_no_remains(
    resource: object,
    traces: Traces,
    *,
    clock: Callable[[], float] = time.monotonic,
    wait: Callable[[float], None] = time.sleep,
) -> None:
    """Raise AgentError, naming the stopped *resource*, unless *traces* are gone in ``SETTLE``."""
    until = clock() + SETTLE
    remains = find_remains(traces)
    while remains and clock() < until:
        wait(_PAUSE)
        remains = find_remains(traces)
    if remains:
        raise AgentError(
            f"{resource} is stopped by its agent's word, but left: {'; '.join(remains)}."
            " End that by hand before it is started anywhere."
        )


def ports_in_use(table: str, state: str) -> set[int]:
    """Return the local ports in *state* of a *table* such as /proc/net/tcp."""
    rows = [line.split() for line in table.splitlines()[1:]]
    return {int(row[1].rsplit(":", 1)[1], 16) for row in rows if len(row) > 3 and row[3] == state}


def mounts_below(mountinfo: str, paths: Collection[str]) -> list[str]:
    """Return the mount points of *mountinfo* that are one of *paths* or below one."""
    rows = [line.split() for line in mountinfo.splitlines()]
    points = [_ESCAPE.sub(lambda code: chr(int(code[1], 8)), row[4]) for row in rows if row[4:]]
    return [point for point in points if any(_is_below(point, path) for path in paths)]


def in_control_group(lines: str, cgroup: str) -> bool:
    """Return whether *lines* of /proc/PID/cgroup name *cgroup* or one below it (cgroups.7)."""
    return any(_is_below(line.split(":", 2)[-1], cgroup) for line in lines.splitlines())


def _processes(traces: Traces) -> Iterator[str]:
    table = process_table()
    if 1 not in table:
        # With the mount option hidepid (proc.5) others' processes cannot be seen.
        text = "What a stop left running is not known: /proc hides processes; run this as root."
        raise AgentError(text)
    ours = _ancestry(table)
    patterns = [re.compile(pattern) for pattern in traces.processes]
    for pid, entry in sorted(table.items()):
        if pid in ours or not entry.alive:
            continue
        words = _of_process(pid, "cmdline").split("\0")
        line = " ".join(words).strip()
        # The words after the first may hold secrets.
        name = f"process {pid} ({words[0].strip()[:60]})"
        if line and any(pattern.search(line) for pattern in patterns):
            yield name
        elif traces.cgroup and in_control_group(_of_process(pid, "cgroup"), traces.cgroup):
            yield f"{name} in the control group {traces.cgroup}"


def _ancestry(table: Mapping[int, ProcessEntry]) -> set[int]:
    found, pid = set[int](), os.getpid()
    while pid in table and pid not in found:
        found.add(pid)
        pid = table[pid].parent
    return found


def _ports(desired: frozenset[int]) -> Iterator[str]:
    for kind, state in (("tcp", TCP_LISTEN), ("udp", UDP_BOUND)):
        used = ports_in_use(_table(f"net/{kind}"), state)
        # A kernel without IPv6 has no such table.
        if os.path.exists(f"/proc/net/{kind}6"):  # noqa: PTH110
            used |= ports_in_use(_table(f"net/{kind}6"), state)
        for port in sorted(used & desired):
            yield f"{kind.upper()} port {port} in use"


def _is_below(path: str, top: str) -> bool:
    top = top.rstrip("/")
    return path == top or path.startswith(f"{top}/")


def _of_process(pid: int, name: str) -> str:
    """Return a file of /proc/PID; that of a process which has just ended is empty."""
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes().decode("utf-8", "replace")
    except OSError:
        return ""


def _table(name: str) -> str:
    try:
        return Path(f"/proc/{name}").read_bytes().decode("utf-8", "replace")
    except OSError as error:
        text = f"What a stop left running is not known: /proc/{name}: {error.strerror}."
        raise AgentError(text) from None
