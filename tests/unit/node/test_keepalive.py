# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sender of keepalives as a process: it sends what is asked for, and ends with its LRM."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import replace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (
    Timing,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.configuration import (
    LRM,
    Member,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.keepalive import (
    START_AGAIN,
    KeepaliveSender,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.network import (
    Network,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.authentication import (
    KEY_BYTES,
    Authentication,
    Policy,
)
from ansible_collections.holdfast.ha.tests.unit.node.sample_node import (
    CLUSTER,
    HOST,
    configuration,
    correspondence,
    free_ports,
)

SOON = 20.0
SIGNED = Authentication(Policy.WARN, CLUSTER, (b"k" * KEY_BYTES,))


class Lrm:
    """The LRM of n2 with its sender, and a CRM of n1 that asks for keepalives."""

    def __init__(self, folder):
        first = free_ports()
        node = configuration(folder, "n2", first - 3)
        self.network = Network(HOST, first + 3 + LRM, correspondence("n2", first, SIGNED))
        self.crm = Network(HOST, first + 2, correspondence("n1", first, SIGNED))
        self.member = Member("n2", 2, HOST, first + 3)
        fast = replace(node, timing=replace(Timing(), keepalive=0.02))
        fileno = self.network.port_fileno()
        self.sender = KeepaliveSender(fast, fileno, lambda: SIGNED)
        self.network.on_request = self.sender.ask

    def keepalives(self, number=1, *, works=True, asks=True):
        """Return at least so many keepalives that say whether the LRM works."""
        found, until = [], time.monotonic() + SOON
        while len(found) < number and time.monotonic() < until:
            if asks:
                self.crm.request_keepalives(self.member)
            self.network.listen(0.02)
            self.crm.listen(0.05)
            taken = self.crm.take_keepalives().get("n2", [])
            found += [one for one in taken if one.works is works]
        return found

    def close(self):
        self.sender.close()
        self.network.close()
        self.crm.close()


@pytest.fixture
def lrm(tmp_path):
    found = Lrm(tmp_path)
    yield found
    found.close()


def process_of(lrm):
    return lrm.sender._process.pid


def test_keepalives_come_while_the_lrm_makes_turns(lrm):
    lrm.sender.turned()
    found = lrm.keepalives(5)
    assert len(found) >= 5
    assert [one.at for one in found] == sorted(one.at for one in found)


def test_an_lrm_that_never_made_a_turn_is_told_not_to_work(lrm):
    assert lrm.keepalives(2, works=False)
    assert not lrm.crm.take_keepalives()


def test_the_sender_ends_with_its_lrm_and_tells_that(lrm):
    lrm.sender.turned()
    assert lrm.keepalives()
    process = lrm.sender._process
    # As when the LRM is killed: the kernel closes its end.
    lrm.sender._channel.close()
    lrm.sender._channel = None
    assert lrm.keepalives(1, works=False, asks=False)
    assert process.wait(SOON) == 0


def test_a_sender_that_was_killed_is_started_again(lrm):
    first = process_of(lrm)
    os.kill(first, signal.SIGKILL)
    lrm.sender._process.wait(SOON)
    time.sleep(START_AGAIN)
    lrm.sender.turned()
    assert process_of(lrm) != first
    lrm.sender.turned()
    assert lrm.keepalives()


def test_a_port_that_the_last_sender_still_has_is_waited_for(tmp_path):
    port = free_ports()
    taken = Network(HOST, port, correspondence("n1", port))
    with pytest.raises(Exception, match="a port that is free"):
        Network(HOST, port, correspondence("n1", port))
    begun = time.monotonic()
    with pytest.raises(Exception, match="a port that is free"):
        Network(HOST, port, correspondence("n1", port), patience=0.2)
    assert time.monotonic() - begun >= 0.2
    taken.close()
    Network(HOST, port, correspondence("n1", port), patience=0.2).close()
