# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Clusters of several machines on this one, for each way to have leases.

A machine is a sanlock daemon of its own, unprivileged and in its own run directory, or
for the embedded leases a process that holds the host lease.  sanlock is the installed
one without a watchdog, or that of another release, or one with wdmd and a watchdog made
of a file.
"""

from __future__ import annotations

import contextlib
import grp
import os
import pickle
import pwd
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast import errors
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.process.family import (
    process_entry,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.lockspace.delta_lease import (  # noqa: E501
    initial_lockspace,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.lockspace.leader_record import (  # noqa: E501
    DEFAULT_LAYOUT,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.lockspace.resource_lease import (  # noqa: E501
    initial_leases,
)
from ansible_collections.holdfast.ha.tests.system.leases import debian_13

IO_TIMEOUT = 2
SANLOCK = shutil.which("sanlock") or shutil.which("/usr/sbin/sanlock")
SYSTEM_PYTHON = "/usr/bin/python3"
WORKER = Path(__file__).with_name("lease_worker.py")
WITH_WATCHDOG = Path(__file__).with_name("machine_with_watchdog.sh")
ANSWER = 60.0

needs_sanlock = pytest.mark.skipif(SANLOCK is None, reason="the sanlock daemon is not installed")


def has_binding():
    """Whether the system's Python has the binding; the one that runs the tests need not."""
    if SANLOCK is None or not Path(SYSTEM_PYTHON).exists():
        return False
    try_it = [SYSTEM_PYTHON, "-c", "import sanlock"]
    return subprocess.run(try_it, stderr=subprocess.DEVNULL, check=False).returncode == 0


@dataclass(frozen=True)
class Kind:
    """A way to have leases: the backend, the times, and whose sanlock.

    ``watchdog_timeout`` is what its settings ask for, None for a daemon without a
    watchdog; ``debian_13`` is for the sanlock of that release, else the installed one.
    """

    backend: str
    io_timeout: int = IO_TIMEOUT
    watchdog_timeout: int | None = None
    debian_13: bool = False

    def __str__(self):
        """Return a name for the reports of tests."""
        if self.watchdog_timeout is None:
            return self.backend
        release = "3.9" if self.debian_13 else "installed"
        return f"{self.backend}-{release}-{self.io_timeout}/{self.watchdog_timeout}"

    def skip_if_impossible(self):
        """Skip the test, with the reason, on a machine that has not what this takes."""
        if self.backend != "embedded" and SANLOCK is None:
            pytest.skip("the sanlock daemon is not installed")
        if self.backend == "binding" and not has_binding():
            pytest.skip("python3-sanlock is not installed")
        if self.watchdog_timeout is not None:
            if os.geteuid() != 0 or shutil.which("unshare") is None:
                pytest.skip("a machine with a watchdog takes root and unshare")
            if not os.access("/dev/fuse", os.W_OK):
                pytest.skip("a watchdog made of a file takes /dev/fuse")

    def programs(self):
        """Return the folder of other programs than the installed ones, empty for these."""
        return str(debian_13.programs()) if self.debian_13 else ""


class RemoteLeases:
    """The leases of a process of its own; every method is one of ``Leases`` there."""

    def __init__(self, cluster, host_id, backend):
        python = SYSTEM_PYTHON if backend == "binding" else sys.executable
        self.child = subprocess.Popen(
            [python, WORKER, backend, cluster.lockspace, cluster.leases, str(host_id)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=cluster.environment(host_id),
        )

    def __getattr__(self, method):
        def call(*arguments):
            pickle.dump((method, arguments), self.child.stdin)
            self.child.stdin.flush()
            if not select.select([self.child.stdout], [], [], ANSWER)[0]:
                raise TimeoutError(f"{method} did not return within {ANSWER} s")
            answer = pickle.load(self.child.stdout)
            if answer[0] == "ok":
                return answer[1]
            kind = getattr(errors, answer[1])
            error = kind.__new__(kind)
            error.args = (answer[2],)
            raise error

        return call

    def kill(self):
        self.child.send_signal(signal.SIGKILL)
        self.child.wait(timeout=60)

    def end(self):
        self.child.kill()
        self.child.wait(timeout=60)
        self.child.stdin.close()
        self.child.stdout.close()


class Cluster:
    """Files and machines of one cluster; ``end`` takes all of it away."""

    def __init__(self, kind, layout=DEFAULT_LAYOUT):
        kind.skip_if_impossible()
        self.kind = kind
        self.backend = kind.backend
        self.programs = kind.programs()
        self.sanlock = f"{self.programs}/sanlock" if self.programs else SANLOCK
        # Not pytest's folder: the path of a Unix socket has at most 107 bytes.
        self.folder = Path(tempfile.mkdtemp(prefix="hf-"))
        self.lockspace = str(self.folder / "c1.lockspace")
        self.leases = str(self.folder / "c1.leases")
        Path(self.lockspace).write_bytes(initial_lockspace("c1", kind.io_timeout, layout=layout))
        leases = initial_leases("c1", max_hosts=layout.max_hosts, layout=layout)
        Path(self.leases).write_bytes(leases)
        self.daemons = {}
        self.workers = []
        self.machines = {}

    def environment(self, host_id):
        programs = [self.programs] if self.programs else []
        return {
            **os.environ,
            "PATH": os.pathsep.join([*programs, os.environ["PATH"], "/usr/sbin"]),
            "PYTHONPATH": os.pathsep.join(sys.path),
            "SANLOCK_RUN_DIR": str(self.run_directory(host_id)),
        }

    def run_directory(self, host_id):
        return self.folder / f"run{host_id}"

    def worker(self, host_id, backend=""):
        """Return a new process of a machine, which has neither joined nor adopted."""
        worker = RemoteLeases(self, host_id, backend or self.backend)
        self.workers.append(worker)
        return worker

    def switch_on(self, host_id, host_name=""):
        """Start what a machine has before anybody joins."""
        if self.backend == "embedded":
            return
        run_directory = self.run_directory(host_id)
        shutil.rmtree(run_directory, ignore_errors=True)
        run_directory.mkdir()
        user = ["-U", pwd.getpwuid(os.geteuid()).pw_name, "-G", grp.getgrgid(os.getegid()).gr_name]
        watchdog = self.kind.watchdog_timeout
        command = [self.sanlock, "daemon", "-D", *user, "-e", host_name or f"n{host_id}"]
        if watchdog is None:
            command += ["-w", "0"]
        else:
            settings = run_directory / "etc" / "sanlock" / "sanlock.conf"
            settings.parent.mkdir(parents=True)
            settings.write_text(f"watchdog_fire_timeout = {watchdog}\n")
            namespace = ["unshare", "--mount", "--propagation", "private"]
            command = [*namespace, WITH_WATCHDOG, run_directory, sys.executable, *command]
        with (run_directory / "said").open("wb") as said:
            self.daemons[host_id] = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                env={**self.environment(host_id), "SANLOCK_PRIVILEGED": "0"},
            )
        until = time.monotonic() + 60
        while "daemon" not in self.client(host_id, "status"):
            assert time.monotonic() < until, (run_directory / "said").read_text()
            time.sleep(0.02)

    def fired(self, host_id):
        """Return when the watchdog of a machine fired, None while it did not."""
        log = (self.run_directory(host_id) / "watchdog.log").read_text()
        times = [float(line.split()[1]) for line in log.splitlines() if line.startswith("fired")]
        return times[0] if times else None

    def join(self, *host_ids):
        """Switch machines on and let them join, all at once."""
        for host_id in host_ids:
            self.switch_on(host_id)
            self.machines[host_id] = self.worker(host_id)
        with ThreadPoolExecutor(len(host_ids)) as pool:
            return list(pool.map(lambda one: self.machines[one].join(f"n{one}"), host_ids))

    def node(self, host_id, backend=""):
        """Return a new process that works under a machine's host lease, like our daemons."""
        worker = self.worker(host_id, backend)
        worker.adopt(f"n{host_id}")
        return worker

    def client(self, host_id, *arguments):
        done = subprocess.run(
            [self.sanlock, "client", *arguments],
            check=False,
            env=self.environment(host_id),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=30,
            text=True,
        )
        return done.stdout

    def cut_power(self, host_id):
        """End a machine without warning: its sanlock and wdmd, and the process that joined."""
        self._end_daemons(host_id)
        self.machines.pop(host_id).kill()

    def kill_daemon(self, host_id):
        """End sanlock alone, without warning."""
        daemon = self.daemons[host_id]
        daemon.kill()
        daemon.wait(timeout=60)

    def end(self):
        for worker in self.workers:
            worker.end()
        for host_id in list(self.daemons):
            self._end_daemons(host_id)
        shutil.rmtree(self.folder)

    def _end_daemons(self, host_id):
        if host_id not in self.daemons:
            return
        pids = self.run_directory(host_id) / "pids"
        for pid in pids.read_text().split() if pids.exists() else ():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        self.kill_daemon(host_id)
        del self.daemons[host_id]


def eventually(look, seconds=20.0):
    """Return the first true answer of *look*, or its last one; the machine may be slow."""
    until = time.monotonic() + seconds
    while True:
        answer = look()
        if answer or time.monotonic() > until:
            return answer
        time.sleep(0.02)


def timed(work, *arguments):
    """Return what *work* returns, and the seconds it took."""
    begun = time.monotonic()
    return work(*arguments), time.monotonic() - begun


def children(worker):
    """Return how many children of a worker run; those that ended may not be collected yet."""
    own = Path(f"/proc/{worker.child.pid}/task/{worker.child.pid}/children")
    entries = [process_entry(int(pid)) for pid in own.read_text().split()]
    return len([entry for entry in entries if entry is not None and entry.alive])
