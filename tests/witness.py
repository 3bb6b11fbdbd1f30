# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A service that records its own life, and the judge of what such services recorded.

As a program, it is what a service runs: ``witness.py FOLDER SERVICE [STOP_SECONDS]``.  It
takes an exclusive lock on a file in FOLDER and appends to the ledger of the service there: the
time, the node, its process and a word.  A second instance cannot get the lock and writes
``DOUBLE``.  On SIGTERM it writes ``stopping``, keeps the lock for STOP_SECONDS, writes
``stopped`` and ends.  It needs nothing but Python, so that it runs on the nodes of a testbed.

As a module, it reads ledgers: ``violations`` returns what must never be in one, ``running``
the instances that are alive on this computer.
"""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import sys
import time
from collections import namedtuple

STARTED, STOPPING, STOPPED, DOUBLE = "started", "stopping", "stopped", "DOUBLE"

LEDGER, LOCK = ".ledger", ".lock"

MACHINE = "HOLDFAST_MACHINE"
"""The variable of a machine of a cluster on one computer; its last part is the node's name."""

Line = namedtuple("Line", "at node process word")
"""One line of a ledger: seconds since 1970, the node, ``PID.START`` of the process, the word."""


class Ledger:
    """The lock and the ledger of one service, as one instance of the service uses them."""

    def __init__(self, folder, service):
        os.makedirs(folder, exist_ok=True)  # noqa: PTH103
        path = os.path.join(folder, service)  # noqa: PTH118
        self._lock = os.open(path + LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        self._file = os.open(path + LEDGER, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._owner = f"{node_name()} {own_process()}"

    def start(self):
        """Take the lock and record the start; record ``DOUBLE`` when another holds the lock."""
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            # It goes on: the cluster has to see a service that runs, as any other would.
            self.add(DOUBLE)
            return
        self.add(STARTED)

    def add(self, word):
        """Append one line; it is on the storage when this returns."""
        os.write(self._file, f"{time.time():.3f} {self._owner} {word}\n".encode())
        os.fdatasync(self._file)


def node_name():
    """Return the node on which this runs."""
    machine = os.environ.get(MACHINE, "")
    return os.path.basename(machine) or socket.gethostname()  # noqa: PTH119


def own_process():
    """Return number and start of this process: numbers come again after a restart of the node."""
    return f"{os.getpid()}.{process_start(os.getpid())}"


def process_start(pid):
    """Return when a process started, in ticks since boot; "" if there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
            text = file.read()
    except OSError:
        return ""
    fields = text[text.rfind(b")") + 2 :].split()
    return "" if len(fields) < 20 or fields[0] in (b"Z", b"X") else fields[19].decode()


def read_ledgers(folder):
    """Return the lines of each service's ledger, by service, in the order of their writing."""
    found = {}
    try:
        names = sorted(os.listdir(folder))  # noqa: PTH208
    except FileNotFoundError:
        return found
    for name in names:
        if name.endswith(LEDGER):
            path = os.path.join(folder, name)  # noqa: PTH118
            with open(path, encoding="ascii") as file:  # noqa: PTH123
                # The last one may be on its way.
                whole = [one for one in file if one.endswith("\n")]
            found[name[: -len(LEDGER)]] = [parse_line(one) for one in whole]
    return found


def parse_line(text):
    """Return one line of a ledger."""
    at, node, process, word = text.split()
    return Line(float(at), node, process, word)


def show_line(line):
    """Return a line of a ledger for people."""
    return f"{line.at:.3f} {line.node} {line.process} {line.word}"


def violations(folder):
    """Return a sentence for everything in the ledgers that says that a service ran twice."""
    return [
        f"{service}: {sentence}"
        for service, lines in read_ledgers(folder).items()
        for sentence in judge(lines)
    ]


def judge(lines):
    """Return a sentence for each line that says that two instances ran at the same time.

    An instance without ``stopped`` was killed.  The next one got the lock, so the killed one
    was dead by then; it must not write again.
    """
    found = []
    owner = None
    earlier = set()
    for number, line in enumerate(lines):
        who = (line.node, line.process)
        if line.word == DOUBLE:
            before = show_line(lines[number - 1]) if number else "nothing"
            found.append(f"two instances at once: {show_line(line)}, after {before}")
            # It goes on without the lock, so that it may write beside the owner.
            continue
        if line.word == STARTED:
            if owner is not None:
                earlier.add(owner)
            owner = who
        elif who in earlier:
            found.append(f"written after the next instance had started: {show_line(line)}")
    return found


def instances(lines):
    """Return node and process of each instance that did not record its end."""
    left = {}
    for line in lines:
        who = (line.node, line.process)
        if line.word == STOPPED:
            left.pop(who, None)
        elif line.word in (STARTED, DOUBLE):
            left[who] = line
    return list(left)


def running(folder):
    """Return the nodes on which each service has an instance that is alive on this computer.

    A service that runs on a node twice has that node twice.
    """
    return {
        service: sorted(node for node, process in instances(lines) if _is_alive(process))
        for service, lines in read_ledgers(folder).items()
    }


def _is_alive(process):
    pid, _dot, started = process.partition(".")
    return process_start(pid) == started


def main():
    """Be an instance of a service until SIGTERM."""
    folder, service = sys.argv[1:3]
    seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 0.0
    # Blocked before the first line: the signal may come at any time after that one.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    ledger = Ledger(folder, service)
    ledger.start()
    signal.sigwait({signal.SIGTERM})
    ledger.add(STOPPING)
    time.sleep(seconds)
    ledger.add(STOPPED)


if __name__ == "__main__":
    main()
