# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine is bound to a process for as long as that said last, and no longer than it wants."""

from __future__ import annotations

import errno
import os
import socket

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import LeaseError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.supervision import (
    WatchdogBond,
)


class WdmdStandIn:
    """libwdmd, which notes what it is told; ``broken`` are the calls that fail."""

    def __init__(self):
        self.told = []
        self.broken = set()
        self.connections = 0

    def wdmd_connect(self):
        if "connect" in self.broken:
            return -errno.ECONNREFUSED
        self.connections += 1
        ours, theirs = socket.socketpair()
        theirs.close()
        return ours.detach()

    def wdmd_register(self, connection, name):
        return -errno.EPIPE if "register" in self.broken else 0

    def wdmd_test_live(self, connection, renewed, expires):
        if "live" in self.broken:
            return -errno.EPIPE
        self.told.append((renewed, expires))
        return 0


@pytest.fixture
def wdmd():
    return WdmdStandIn()


def bond(wdmd, kept=None, connection=None, now=1000.9):
    return WatchdogBond(
        30.0,
        connection=connection,
        keep=(kept if kept is not None else []).append,
        clock=lambda: now,
        load=lambda: wdmd,
    )


def test_who_was_never_bound_tells_the_watchdog_daemon_nothing(wdmd):
    bond(wdmd).let_go()
    assert (wdmd.connections, wdmd.told) == (0, [])


def test_the_machine_may_go_on_for_the_time_given_and_without_end_after_it_is_let_go(wdmd):
    made = bond(wdmd)
    made.hold()
    made.let_go()
    made.let_go()
    assert wdmd.told == [(1000, 1030), (0, 0)]


def test_one_connection_is_made_kept_for_the_next_process_and_closed_to_children(wdmd):
    kept = []
    made = bond(wdmd, kept)
    made.hold()
    made.hold()
    assert wdmd.connections == len(kept) == 1
    assert not os.get_inheritable(kept[0])


def test_a_process_that_takes_over_a_bond_without_services_ends_it(wdmd):
    ours, theirs = socket.socketpair()
    made = bond(wdmd, connection=ours.detach())
    made.let_go()
    theirs.close()
    assert (wdmd.connections, wdmd.told) == (0, [(0, 0)])


@pytest.mark.parametrize(("call", "words"), [("connect", "start wdmd"), ("register", "client")])
def test_a_watchdog_daemon_that_takes_no_client_is_told_about_and_tried_again(wdmd, call, words):
    made = bond(wdmd)
    wdmd.broken.add(call)
    with pytest.raises(LeaseError, match=words):
        made.hold()
    wdmd.broken.clear()
    made.hold()
    assert wdmd.told == [(1000, 1030)]


def test_after_a_lost_connection_another_is_made_and_kept(wdmd):
    kept = []
    made = bond(wdmd, kept)
    made.hold()
    wdmd.broken.add("live")
    with pytest.raises(LeaseError, match="does not accept"):
        made.hold()
    wdmd.broken.clear()
    made.hold()
    assert (wdmd.connections, len(kept)) == (2, 2)
