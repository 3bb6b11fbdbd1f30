# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nobody counts as dead before its watchdog has fired: sanlock 3.9 and wdmd, 2 s and 10 s.

Two clusters in which something breaks at the same time; then both are watched for as
long as a lease of a dead node can take.  A machine whose watchdog fires loses its power.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import dataclass, field

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (
    HostState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.lease.sanlock_command import (
    CommandDaemon,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.lockspace.host_timing import (  # noqa: E501
    LeaseTiming,
)
from ansible_collections.holdfast.ha.tests.system.leases.lease_backends import (
    Cluster,
    Kind,
    eventually,
    has_binding,
)

TIMING = LeaseTiming(2, 10)
FAST = Kind("command", TIMING.io_timeout, TIMING.watchdog_timeout, debian_13=True)

OBSERVER, KILLED, HUNG, OFF = 1, 2, 3, 4
"""Of the first cluster: looks on; its sanlock is killed; its sanlock hangs; loses its power."""

STOPPED, RUNNING = 1, 2
"""Of the second cluster, whose storage fails: its services stop in time; they do not."""

SERVICES_STOP = TIMING.fail_seconds + 2


@dataclass
class Story:
    """What happened, in seconds after everything broke; what never happened is absent.

    ``fired_without_storage`` is of the second cluster, as is ``ended``: when the process
    with the manager lease of ``STOPPED`` ended, and how.
    """

    began: float
    first: dict[tuple[int, HostState], float] = field(default_factory=dict)
    fired: dict[int, float] = field(default_factory=dict)
    taken: dict[str, float] = field(default_factory=dict)
    fired_without_storage: dict[int, float] = field(default_factory=dict)
    ended: tuple[float, int] | None = None

    def now(self):
        return time.monotonic() - self.began

    def complete(self):
        """Whether both leases are granted and all deaths seen, in whatever order we look."""
        dead = {host_id for host_id, state in self.first if state is HostState.DEAD}
        return len(self.taken) == 2 and dead == {KILLED, HUNG, OFF}

    def reset(self, cluster, fired):
        """Cut the power of those whose watchdog fired, and note when it did."""
        for host_id in list(cluster.daemons):
            when = cluster.fired(host_id)
            if when is not None:
                fired[host_id] = when - self.began
                cluster.cut_power(host_id)


@pytest.fixture(scope="module")
def story():
    cluster, lost = Cluster(FAST), Cluster(FAST)
    try:
        cluster.join(OBSERVER, KILLED, HUNG, OFF)
        lost.join(STOPPED, RUNNING)
        yield _told(cluster, lost)
    finally:
        cluster.end()
        lost.end()


def _told(cluster, lost):
    observer, waiting = cluster.node(OBSERVER), cluster.node(OBSERVER)
    _hold(cluster.machines[KILLED], "manager")
    _hold(cluster.machines[HUNG], "configuration")
    holder = lost.node(STOPPED, "binding" if has_binding() else "command")
    _hold(holder, "manager")
    stopping = lost.node(STOPPED)
    assert eventually(lambda: all(one.active for one in observer.hosts().values()), 40.0)

    told = Story(time.monotonic())
    # Beside our looks, which may take long; nobody else calls this process meanwhile.
    disarming = threading.Timer(SERVICES_STOP, stopping.disarm_watchdog)
    disarming.start()
    try:
        _break_and_watch(told, cluster, lost, observer, waiting, holder)
    finally:
        disarming.cancel()
        disarming.join()
    return told


def _break_and_watch(told, cluster, lost, observer, waiting, holder):
    cluster.kill_daemon(KILLED)
    cluster.daemons[HUNG].send_signal(signal.SIGSTOP)
    cluster.cut_power(OFF)
    os.truncate(lost.lockspace, 0)
    while told.now() < TIMING.longest_takeover_seconds and not told.complete():
        for host_id, view in observer.hosts().items():
            told.first.setdefault((host_id, view.state), told.now())
        told.reset(cluster, told.fired)
        told.reset(lost, told.fired_without_storage)
        for worker, name in ((observer, "manager"), (waiting, "configuration")):
            if name not in told.taken and worker.acquire(name) is not None:
                told.taken[name] = told.now()
        if told.ended is None and holder.child.poll() is not None:
            told.ended = told.now(), holder.child.returncode
        time.sleep(0.1)


def _hold(worker, name):
    assert eventually(lambda: worker.acquire(name)) is not None


@pytest.mark.parametrize(("host_id", "name"), [(KILLED, "manager"), (HUNG, "configuration")])
def test_the_watchdog_fires_before_the_node_counts_as_dead_and_its_lease_is_granted(
    story, host_id, name
):
    fired, dead = story.fired[host_id], story.first[host_id, HostState.DEAD]
    print(f"fired {fired:.1f} s, dead {dead:.1f} s, lease granted {story.taken[name]:.1f} s")
    assert fired < dead
    assert fired < story.taken[name]
    earliest = TIMING.dead_seconds - TIMING.renewal_seconds - 1
    assert earliest <= dead
    assert earliest <= story.taken[name] <= TIMING.longest_takeover_seconds


@pytest.mark.parametrize("host_id", [KILLED, HUNG, OFF])
def test_a_silent_node_fails_after_eight_io_timeouts_and_is_dead_ten_seconds_later(story, host_id):
    failed = story.first[host_id, HostState.FAIL]
    assert failed >= TIMING.fail_seconds - TIMING.renewal_seconds - 1
    dead = story.first[host_id, HostState.DEAD]
    assert dead - failed >= TIMING.watchdog_timeout - TIMING.renewal_seconds - 1


def test_a_node_without_storage_is_reset_unless_its_services_have_stopped(story):
    print(f"fired without storage: {story.fired_without_storage}")
    assert list(story.fired_without_storage) == [RUNNING]
    assert story.fired_without_storage[RUNNING] >= TIMING.fail_seconds - TIMING.renewal_seconds


@pytest.mark.skipif(not has_binding(), reason="python3-sanlock is not installed")
def test_a_holder_without_storage_has_no_grace_when_the_watchdog_timeout_is_short(story):
    """Under 30 s there is none: it is killed as soon as the host lease has failed."""
    seconds, status = story.ended
    print(f"holder killed {seconds:.1f} s")
    assert status == -signal.SIGKILL
    assert TIMING.fail_seconds - TIMING.renewal_seconds - 1 <= seconds
    assert seconds < story.fired_without_storage[RUNNING]


def test_no_healthy_node_is_reset(story):
    assert set(story.fired) == {KILLED, HUNG}
    assert (OBSERVER, HostState.FAIL) not in story.first


@pytest.mark.parametrize(
    ("kind", "timeout"),
    [(Kind("command", 2, 10), 60), (FAST, 10), (Kind("command", 5, 30, debian_13=True), 30)],
    ids=str,
)
def test_a_short_watchdog_timeout_is_believed_from_sanlock_3_9_on(kind, timeout):
    cluster = Cluster(kind)
    try:
        cluster.switch_on(1)
        status = CommandDaemon(str(cluster.run_directory(1))).status()
    finally:
        cluster.end()
    if not kind.debian_13 and status.version >= (3, 9):
        timeout = kind.watchdog_timeout
    assert status.watchdog_timeout == timeout
