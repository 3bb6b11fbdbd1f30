# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A daemon tells its supervisor that it is alive, and never fails because of it."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.supervision import (
    Notifier,
    inherited_file,
)
from ansible_collections.holdfast.ha.tests.unit.node.sample_node import Clock


@pytest.fixture
def supervisor():
    """A supervisor that listens on an abstract name; returns its socket and that name."""
    name = f"holdfast-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as found:
        found.bind("\0" + name)
        found.setblocking(False)
        yield found, "@" + name


def test_without_a_supervisor_nothing_is_said_and_nothing_fails(monkeypatch):
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    for notifier in (Notifier(), Notifier(""), Notifier("@nobody"), Notifier("/no/such/socket")):
        notifier.ready()
        notifier.alive()


def test_a_loop_that_waits_is_spoken_for_until_patience_ends_and_never_before_it_began(supervisor):
    found, address = supervisor
    clock = Clock(100.0)
    notifier = Notifier(address, clock)

    def spoken_for():
        notifier.waits(6.0)
        try:
            return found.recv(100) == b"WATCHDOG=1"
        except BlockingIOError:
            return False

    notifier.ready()
    assert found.recv(100) == b"READY=1"
    assert not spoken_for(), "no round yet"
    for _second in range(11):
        notifier.alive()
        found.recv(100)
        assert not spoken_for(), "who rolls it out still watches it"
        clock.go(1.0)
    clock.go(1.0)
    for _round in range(2):
        notifier.alive()
        found.recv(100)
        clock.go(5.9)
        assert spoken_for()
        clock.go(0.1)
        assert not spoken_for()


def test_a_supervisor_that_does_not_listen_holds_up_nothing(supervisor):
    found, address = supervisor
    notifier = Notifier(address)
    for _turn in range(10_000):
        notifier.alive()
    assert found.recv(100) == b"WATCHDOG=1"


def test_the_address_is_what_the_supervisor_put_into_the_environment(supervisor, monkeypatch):
    found, address = supervisor
    monkeypatch.setenv("NOTIFY_SOCKET", address)
    notifier = Notifier()
    notifier.ready()
    notifier.alive()
    assert [found.recv(100), found.recv(100)] == [b"READY=1", b"WATCHDOG=1"]


def test_a_socket_in_the_file_system_is_as_good(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as found:
        found.bind("notify")
        Notifier("notify").ready()
        assert found.recv(100) == b"READY=1"


def test_an_open_file_is_handed_over_to_be_kept_in_place_of_the_one_before(supervisor, tmp_path):
    found, address = supervisor
    with (tmp_path / "kept").open("w") as file:
        Notifier(address).keep("watchdog", file.fileno())
    assert found.recv(100) == b"FDSTOREREMOVE=1\nFDNAME=watchdog"
    text, handed, _flags, _sender = socket.recv_fds(found, 100, 2)
    assert text == b"FDSTORE=1\nFDNAME=watchdog"
    (descriptor,) = handed
    assert Path(f"/proc/self/fd/{descriptor}").readlink() == tmp_path / "kept"
    os.close(descriptor)


@pytest.mark.parametrize(
    ("environment", "number"),
    [
        ({}, None),
        ({"LISTEN_PID": "1", "LISTEN_FDS": "1", "LISTEN_FDNAMES": "watchdog"}, None),
        ({"LISTEN_PID": "mine", "LISTEN_FDS": "1", "LISTEN_FDNAMES": "other"}, None),
        ({"LISTEN_PID": "mine", "LISTEN_FDS": "0"}, None),
        ({"LISTEN_PID": "mine", "LISTEN_FDS": "2", "LISTEN_FDNAMES": "other:watchdog"}, 4),
    ],
    ids=["nothing", "another's", "another name", "none", "ours"],
)
def test_what_was_kept_is_found_by_name_and_is_for_this_process_alone(
    environment, number, monkeypatch
):
    closed = []
    monkeypatch.setattr(os, "set_inheritable", lambda one, how: closed.append((one, how)))
    for name in ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, str(os.getpid()) if value == "mine" else value)
    assert inherited_file("watchdog") == number
    if number is not None:
        assert closed == [(3, False), (4, False)]
