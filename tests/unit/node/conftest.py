# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What tests of sockets share: a port of their own, and somebody who is no node."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
from ansible_collections.holdfast.ha.tests.unit.node.sample_node import HOST, free_ports


@pytest.fixture
def port() -> int:
    """Return the first of twelve UDP ports in a row that nobody listens on."""
    return free_ports()


@pytest.fixture
def stranger() -> Iterator[socket.socket]:
    """Send datagrams that no member sends, and wait 10 s for an answer."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as found:
        found.bind((HOST, 0))
        found.settimeout(60.0)
        yield found


@pytest.fixture
def n2(port: int) -> Iterator[socket.socket]:
    """Send datagrams from the first port of node n2, without its daemon."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as found:
        found.bind((HOST, port + 3))
        found.settimeout(60.0)
        yield found
