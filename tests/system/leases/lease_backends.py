# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Clusters of several machines on this one, for each way to have leases.

A machine is a sanlock daemon of its own (unprivileged, without a watchdog, in its own
run directory), or for the embedded leases a process that holds the host lease.
"""

from __future__ import annotations

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
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast import errors
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.host_lease import (
    initial_lockspace,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.resource_lease import (
    initial_leases,
)

IO_TIMEOUT = 2
SANLOCK = shutil.which("sanlock") or shutil.which("/usr/sbin/sanlock")
SYSTEM_PYTHON = "/usr/bin/python3"
WORKER = Path(__file__).with_name("lease_worker.py")
ANSWER = 60.0

needs_sanlock = pytest.mark.skipif(SANLOCK is None, reason="the sanlock daemon is not installed")


def has_binding():
    """Whether the system's Python has the binding; the one that runs the tests need not."""
    if SANLOCK is None or not Path(SYSTEM_PYTHON).exists():
        return False
    try_it = [SYSTEM_PYTHON, "-c", "import sanlock"]
    return subprocess.run(try_it, stderr=subprocess.DEVNULL, check=False).returncode == 0


def skip_without(backend):
    if backend != "embedded" and SANLOCK is None:
        pytest.skip("the sanlock daemon is not installed")
    if backend == "binding" and not has_binding():
        pytest.skip("python3-sanlock is not installed")


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
        self.child.wait(timeout=10)

    def end(self):
        self.child.kill()
        self.child.wait(timeout=10)
        self.child.stdin.close()
        self.child.stdout.close()


class Cluster:
    """Files and machines of one cluster; ``end`` takes all of it away."""

    def __init__(self, backend, io_timeout=IO_TIMEOUT):
        self.backend = backend
        # Not pytest's folder: the path of a Unix socket has at most 107 bytes.
        self.folder = Path(tempfile.mkdtemp(prefix="hf-"))
        self.lockspace = str(self.folder / "c1.lockspace")
        self.leases = str(self.folder / "c1.leases")
        Path(self.lockspace).write_bytes(initial_lockspace("c1", io_timeout))
        Path(self.leases).write_bytes(initial_leases("c1"))
        self.daemons = {}
        self.workers = []
        self.machines = {}

    def environment(self, host_id):
        return {
            **os.environ,
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
        self.daemons[host_id] = subprocess.Popen(
            [SANLOCK, "daemon", "-D", "-w", "0", *user, "-e", host_name or f"n{host_id}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**self.environment(host_id), "SANLOCK_PRIVILEGED": "0"},
        )
        until = time.monotonic() + 10
        while "daemon" not in self.client(host_id, "status"):
            assert time.monotonic() < until, "the sanlock daemon does not answer"
            time.sleep(0.02)

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
            [SANLOCK, "client", *arguments],
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
        """End a machine without warning: its sanlock, and the process that joined."""
        if host_id in self.daemons:
            self.daemons[host_id].kill()
            self.daemons.pop(host_id).wait(timeout=10)
        self.machines.pop(host_id).kill()

    def end(self):
        for worker in self.workers:
            worker.end()
        for daemon in self.daemons.values():
            daemon.kill()
            daemon.wait(timeout=10)
        shutil.rmtree(self.folder)


def eventually(look, seconds=3.0):
    """Return the first true answer of *look*, or its last one."""
    until = time.monotonic() + seconds
    while True:
        answer = look()
        if answer or time.monotonic() > until:
            return answer
        time.sleep(0.02)
