# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""sanlock as it was measured to behave, with real daemons: six machines of one cluster.

Each machine has its own part: 1 and 2 look on and wait for leases, 4 crashes and comes
back, 5 leaves, 7 and 8 lose the lockspace.
"""

from __future__ import annotations

import signal
import time
from dataclasses import replace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (
    HostState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import LeaseError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.lease.sanlock_command import (
    CommandDaemon,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.lease.sanlock_daemon import (
    Progress,
    Resource,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.lockspace.delta_lease import (  # noqa: E501
    LeaseArea,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.lockspace.host_timing import (  # noqa: E501
    LeaseTiming,
)
from ansible_collections.holdfast.ha.tests.system.leases.lease_backends import (
    IO_TIMEOUT,
    Cluster,
    Kind,
    children,
    eventually,
    has_binding,
    needs_sanlock,
    timed,
)

pytestmark = needs_sanlock

RENEWAL = 2 * IO_TIMEOUT


@pytest.fixture(scope="module")
def cluster():
    made = Cluster(Kind("command"))
    try:
        made.join(1, 2, 4, 5, 7, 8)
        yield made
    finally:
        made.end()


@pytest.fixture
def node(cluster):
    made = []

    def make(host_id, backend=""):
        made.append(cluster.node(host_id, backend))
        return made[-1]

    yield make
    for worker in made:
        if worker.child.poll() is None:
            worker.close()
        worker.end()


def _daemon(cluster, host_id):
    return CommandDaemon(str(cluster.run_directory(host_id)))


def test_hosts_are_seen_from_the_storage_while_sanlock_does_not_know_any_yet(cluster, node):
    cluster.join(9)
    # Until its next renewal, some seconds from now, sanlock knows of none.
    views = node(9).hosts()
    assert (views[1].state, views[1].host_name) == (HostState.LIVE, "n1")
    told = eventually(lambda: _daemon(cluster, 9).hosts("c1"), 2 * RENEWAL)
    assert told[9].state is HostState.LIVE
    assert (told[1].generation, told[1].timestamp > 0) == (1, True)


def test_a_host_that_sanlock_calls_live_but_never_saw_renew_is_not_known_to_be(request):
    """As the last manager to the first node that is back after all lost their power.

    sanlock 3.9.5 calls it live from its second look on, until the time of its lease is over;
    3.8.5 says that it does not know.
    """
    cluster = Cluster(Kind("command", debian_13=True))
    request.addfinalizer(cluster.end)
    cluster.join(1)
    cluster.cut_power(1)
    cluster.join(2)
    daemon = _daemon(cluster, 2)

    def called_live():
        told = daemon.hosts("c1").get(1)
        return told is not None and told.state is HostState.LIVE

    assert eventually(called_live, 4 * RENEWAL)
    view = cluster.node(2).hosts()[1]
    assert (view.state, view.active) == (HostState.LIVE, None)
    assert 0.0 < daemon.held_for("c1") < LeaseTiming(IO_TIMEOUT).fail_seconds + 2 * RENEWAL


def test_a_node_that_crashed_rejoins_in_seconds_and_its_old_leases_are_free(cluster, node):
    crashed, first = node(4), node(1)
    version = eventually(lambda: crashed.acquire("configuration"))
    before = first.host(4)
    cluster.cut_power(4)
    crashed.kill()
    [generation], seconds = timed(cluster.join, 4)
    assert generation == before.generation + 1
    assert seconds < 40.0 < LeaseTiming(IO_TIMEOUT).dead_seconds
    taken = eventually(lambda: first.acquire("configuration"))
    assert taken is not None and taken > version


def test_a_machine_of_the_same_name_cannot_take_the_host_lease_of_a_living_one(cluster):
    """sanlock itself lets a host of the same name in at once, and the living one loses."""
    cluster.switch_on(11, "n2")
    other = Cluster.worker(_Elsewhere(cluster, 11), 2)
    with pytest.raises(LeaseError, match="held by node n2 on another machine, which renews it"):
        other.join("n2")
    other.end()


class _Elsewhere:
    """The cluster as seen from another machine, whatever the host id."""

    def __init__(self, cluster, machine):
        self._cluster, self._machine = cluster, machine

    def __getattr__(self, name):
        return getattr(self._cluster, name)

    def environment(self, _host_id):
        return self._cluster.environment(self._machine)


def test_a_daemon_under_another_name_than_the_nodes_is_refused(cluster):
    cluster.switch_on(10, "some-uuid")
    worker = cluster.worker(10)
    with pytest.raises(LeaseError, match=r"runs under the name some-uuid.*our_host_name = n10"):
        worker.join("n10")
    worker.end()


def test_a_host_id_of_another_node_is_refused_before_sanlock_waits_for_its_death(cluster):
    cluster.switch_on(12, "n12")
    other = Cluster.worker(_Elsewhere(cluster, 12), 1)
    error, seconds = timed(pytest.raises, LeaseError, lambda: other.join("n12"))
    assert "host id 1 is already held by node n1, which did not leave" in str(error.value)
    assert seconds < 20.0
    other.end()


def test_stopping_sanlock_frees_nothing_and_withdrawing_does(cluster, node):
    cluster.daemons[5].send_signal(signal.SIGTERM)
    with pytest.raises(Exception, match="timed out"):
        cluster.daemons[5].wait(timeout=1)
    first = node(1)
    assert first.host(5).state is HostState.LIVE
    leaving = node(5)
    leaving.leave()
    assert first.host(5).state is HostState.LIVE
    node(5).withdraw()
    assert first.host(5).state is HostState.FREE


def _take_away(cluster, host_id):
    """Write a host lease free under its holder; a renewal on its way would write it back."""
    with LeaseArea(cluster.lockspace) as area:
        while not area.read_host(host_id).free:
            area.write_host(host_id, replace(area.read_host(host_id), timestamp=0))
            time.sleep(0.2)


def _refusal(services):
    """Return what a node is told that looks whether it still has its host lease."""
    try:
        services.renew()
    except LeaseError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("host_id", "backend", "name"),
    [
        (7, "command", "configuration"),
        pytest.param(
            8,
            "binding",
            "manager",
            marks=pytest.mark.skipif(not has_binding(), reason="python3-sanlock is not installed"),
        ),
    ],
)
def test_whoever_holds_a_lease_is_told_when_the_lockspace_is_lost(
    cluster, node, host_id, backend, name
):
    """And the lockspace counts as used until the services have stopped: no watchdog is let go."""
    holder, services = node(host_id, backend), node(host_id)
    assert eventually(lambda: holder.acquire(name)) is not None
    _take_away(cluster, host_id)
    with pytest.raises(LeaseError, match="no longer held"):
        services.renew()
    if backend == "binding":
        assert holder.child.wait(timeout=40.0) == -signal.SIGTERM
    else:
        assert not holder.held(name)
        assert eventually(lambda: children(holder) == 0, 40.0)
        assert eventually(lambda: "no longer held" in _refusal(services), 40.0)
        with pytest.raises(LeaseError, match=r"no longer held|has lost it"):
            holder.acquire(name)
    time.sleep(1.0)
    assert "external_used=1" in cluster.client(host_id, "status", "-D")
    services.disarm_watchdog()
    assert eventually(lambda: not cluster.client(host_id, "gets").strip(), 40.0)


def test_the_exit_status_of_a_command_without_a_daemon_is_not_believed(tmp_path):
    nobody = CommandDaemon(str(tmp_path))
    for ask in (nobody.status, nobody.lockspaces, lambda: nobody.set_used("c1", True)):
        with pytest.raises(LeaseError, match="does not answer"):
            ask()
    holding = nobody.acquire(Resource("c1", "manager", str(tmp_path / "c1.leases"), 0))
    with pytest.raises(LeaseError, match="does not answer"):
        eventually(lambda: holding.wait(1.0) is Progress.ENDED)


def test_a_daemon_that_hangs_holds_nobody_up(cluster, node):
    waiting = node(2)
    daemon = cluster.daemons[2]
    daemon.send_signal(signal.SIGSTOP)
    try:
        answer, seconds = timed(waiting.acquire, "manager")
        assert answer is None and seconds < 30.0
        for host_id in (2, 1):
            view, seconds = timed(waiting.host, host_id)
            assert view.state is HostState.LIVE and seconds < 30.0
        # Who asked the daemon each time would wait for GLANCE, a second, each time.
        views, seconds = timed(lambda: [waiting.host(1) for _turn in range(40)])
        assert {view.state for view in views} == {HostState.LIVE} and seconds < 30.0
    finally:
        daemon.send_signal(signal.SIGCONT)
    waiting.release("manager")
    assert eventually(lambda: node(2).acquire("manager"))


def test_what_the_daemon_says_of_itself_is_understood(cluster):
    status = _daemon(cluster, 1).status()
    assert status.host_name == "n1"
    assert status.version >= (3, 8)
    assert status.watchdog_timeout is None, "it was started without a watchdog"
    [joined] = _daemon(cluster, 1).lockspaces()
    assert (joined.lockspace.name, joined.lockspace.host_id, joined.changing) == ("c1", 1, False)
    assert joined.lockspace.path == cluster.lockspace
