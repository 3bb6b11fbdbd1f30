# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A daemon tells its supervisor that it is alive, and never fails because of it."""

from __future__ import annotations

import os
import socket

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.notify import Notifier


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
