# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The machine of an embedded cluster: what it refuses, and how it looks after its daemons.

That it runs a node at all is tested with a whole cluster in ``tests/system``.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import (
    InputError,
    LeaseError,
    StorageError,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.cluster_storage import (
    ClusterStorage,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.network import (
    Network,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.supervision import (
    Notifier,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.system import (
    why_ending,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.machine import (
    machine as machine_machine,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.machine import power
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.machine.machine import (
    HANG,
    Machine,
    _hear,
    make_private,
)
from ansible_collections.holdfast.ha.tests.unit.node.sample_node import (
    configuration,
    correspondence,
    create_storage,
    free_ports,
    join,
)
from ansible_collections.holdfast.ha.tests.unit.node.stand_ins import given

START = Machine._start


@pytest.fixture
def node(tmp_path, monkeypatch):
    """The configuration of a node whose storage is there."""
    # A machine puts its own mark into the environment; this restores it afterwards.
    monkeypatch.setenv(power.MARK, "")
    create_storage(tmp_path)
    return configuration(tmp_path, first_port=free_ports())


class Child:
    """A daemon's process: alive until a test says how it ended."""

    def __init__(self):
        self.returncode = None
        self.killed = self.terminated = 0

    def terminate(self):
        self.terminated += 1

    def kill(self):
        self.killed += 1


class Tended:
    """A machine that starts children which are no processes."""

    def __init__(self, configuration_, monkeypatch):
        monkeypatch.setattr(Machine, "_start", self.start)
        self.starts = []
        self.machine = Machine(configuration_)
        self.daemon = self.machine._daemons[0]

    def start(self, daemon, now):
        self.starts.append(now)
        daemon.child = Child()
        daemon.begun = daemon.heard = now

    def look(self, now):
        self.machine._look_after(self.daemon, now)

    def close(self):
        self.machine._network.close()
        self.machine._lease._leases.close()
        for daemon in self.machine._daemons:
            daemon.channel.close()


@pytest.fixture
def tended(node, monkeypatch):
    found = Tended(node, monkeypatch)
    yield found
    found.close()


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_port_in_use_is_said_before_the_host_lease_is_taken(node, place):
    port = node.me.port + place
    taken = Network("127.0.0.1", port, correspondence("n1", port))
    expected = f"port: {port} is not accepted; expected a port that is free on 127.0.0.1; node n1"
    with pytest.raises(InputError, match=expected):
        Machine(node)
    taken.close()
    storage = ClusterStorage(node)
    assert storage.leases.hosts() == {}
    storage.close()


def test_a_host_id_that_another_process_has_is_refused(node):
    other = join(node)
    with pytest.raises(LeaseError, match="host id 1 is already held by node n1"):
        Machine(node)
    other.close()


def test_a_machine_that_cannot_renew_its_host_lease_goes_on_for_the_lrm_to_stop_the_services(
    tended, monkeypatch, capsys
):
    for number, error in enumerate((StorageError("no answer"), LeaseError("no longer ours"))):

        def renew(error=error):
            raise error

        monkeypatch.setattr(tended.machine._lease, "renew", renew)
        tended.machine._renew(1000.0 + number)
        assert f"host lease not renewed: {error}" in capsys.readouterr().err


def test_the_host_lease_is_renewed_once_a_second(tended, monkeypatch):
    renewals = []
    monkeypatch.setattr(tended.machine._lease, "renew", lambda: renewals.append(now))
    for now in (1000.0, 1000.5, 1000.9, 1001.0, 1001.5, 1002.5):
        tended.machine._renew(now)
    assert renewals == [1000.0, 1001.0, 1002.5]


@pytest.mark.parametrize(
    ("lives", "waits"),
    [
        ([0.1], [0.0]),
        ([0.1] * 7, [0.0, 1.0, 2.0, 4.0, 5.0, 5.0, 5.0]),
        ([4.9, 4.9, 4.9], [0.0, 1.0, 2.0]),
        ([0.1, 0.1, 5.0, 0.1, 0.1], [0.0, 1.0, 0.0, 0.0, 1.0]),
        ([3600.0] * 3, [0.0] * 3),
    ],
)
def test_a_daemon_that_dies_again_and_again_is_started_ever_more_slowly(tended, lives, waits):
    now = 1000.0
    tended.look(now)
    for lived, wait in zip(lives, waits):
        now = tended.starts[-1] + lived
        tended.daemon.child.returncode = -9
        number = len(tended.starts)
        tended.look(now)
        if wait:
            tended.look(now + wait - 0.01)
            assert len(tended.starts) == number
            tended.look(now + wait)
        assert tended.starts[number:] == [now + wait]


def test_a_machine_without_a_process_to_spare_stays_on_and_starts_its_daemons_later(
    tended, monkeypatch, capsys
):
    """The end of the machine would be the end of its services."""
    monkeypatch.setattr(Machine, "_start", START)
    machine, daemon = tended.machine, tended.daemon
    started = [OSError(errno.EAGAIN, "Resource temporarily unavailable"), Child()]
    monkeypatch.setattr(machine_machine.subprocess, "Popen", lambda *_, **__: given(started.pop(0)))
    machine._look_after(daemon, 1000.0)
    assert "lrm cannot be started: Resource temporarily" in capsys.readouterr().err
    machine._look_after(daemon, 1000.5)
    assert daemon.child is None
    machine._look_after(daemon, 1001.0)
    assert daemon.child is not None
    assert daemon.begun == 1001.0


def test_a_daemon_that_hangs_is_killed_once_and_then_started_again(tended):
    tended.look(1000.0)
    child = tended.daemon.child
    tended.look(1000.0 + HANG)
    assert child.killed == 0
    for seconds in (HANG + 0.1, HANG + 0.3, HANG + 5.0):
        tended.look(1000.0 + seconds)
    assert (child.killed, len(tended.starts)) == (1, 1)
    child.returncode = -9
    tended.look(1000.0 + HANG + 5.1)
    assert len(tended.starts) == 2


@pytest.mark.parametrize(("steps", "killed"), [([HANG + 50.0], 0), ([0.25] * 60, 1)])
def test_a_machine_that_stood_still_itself_kills_no_daemon_for_its_silence(
    tended, monkeypatch, steps, killed
):
    """As after a freeze: what nobody listened to is no silence."""
    now = [time.monotonic()]
    monkeypatch.setattr(machine_machine.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(machine_machine, "TICK", 0.0)
    monkeypatch.setattr(machine_machine, "_collect_children", lambda daemons: None)
    tended.machine._tick()
    for step in steps:
        now[0] += step
        tended.machine._tick()
    assert tended.daemon.child.killed == killed


def test_a_daemon_is_heard_and_ready_only_when_it_says_so(tended):
    notifier = Notifier("@" + tended.daemon.address)
    _hear(tended.daemon)
    assert (tended.daemon.heard, tended.daemon.ready) == (0.0, False)
    notifier.alive()
    _hear(tended.daemon)
    assert tended.daemon.heard > 0
    assert not tended.daemon.ready
    notifier.ready()
    notifier.alive()
    _hear(tended.daemon)
    assert tended.daemon.ready


def test_a_machine_begins_with_a_new_boot_and_a_run_folder_of_its_own(tended, node):
    boots = set()
    for _turn in range(2):
        tended.machine._write_files()
        boots.add(node.boot())
    assert len(boots) == 2
    assert stat.S_IMODE(node.run_directory.stat().st_mode) == 0o700
    assert (node.folder / "machine.pid").read_text() == f"{os.getpid()}\n"


@pytest.mark.parametrize(("act", "why"), [("_on_poweroff", "poweroff"), ("_on_reboot", "reboot")])
def test_a_machine_that_goes_down_lets_its_lrm_end_first_and_starts_no_other(
    tended, node, act, why
):
    machine = tended.machine
    machine._write_files()
    tended.look(1000.0)
    assert not machine._is_down()
    assert why_ending(node) == "restart"
    getattr(machine, act)()
    assert not machine._is_down()
    assert not machine._is_down()
    assert (why_ending(node), tended.daemon.child.terminated) == (why, 1)
    tended.daemon.child.returncode = 0
    tended.look(2000.0)
    assert len(tended.starts) == 1
    assert machine._is_down()
    machine._write_files()
    assert why_ending(node) == "restart"


def test_a_machine_that_is_told_twice_to_go_down_does_not_wait_for_its_lrm(tended):
    tended.look(1000.0)
    for down in (False, True):
        tended.machine._on_poweroff()
        assert tended.machine._is_down() is down


def test_a_private_folder_is_for_this_user_alone(tmp_path):
    for _turn in range(2):
        make_private(tmp_path / "a" / "b")
    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o700


def test_a_link_in_the_place_of_a_private_folder_is_refused(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(StorageError, match="link belongs to somebody else; remove it"):
        make_private(tmp_path / "link")


def test_a_private_folder_of_somebody_else_is_refused(tmp_path):
    folder = tmp_path / "foreign"
    if os.geteuid() == 0:
        folder.mkdir()
        os.chown(folder, 65534, 65534)
    else:
        folder = Path("/")
    with pytest.raises(StorageError, match="belongs to somebody else; remove it"):
        make_private(folder)


@pytest.mark.parametrize("place", ["file", "file/below", "dangling"])
def test_a_private_folder_that_cannot_be_made_is_one_sentence(tmp_path, place):
    (tmp_path / "file").touch()
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    with pytest.raises(StorageError, match="cannot be made: "):
        make_private(tmp_path / place)
