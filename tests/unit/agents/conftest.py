# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the tests of the collection's own agents share."""

from __future__ import annotations

import socket

import pytest
from ansible_collections.holdfast.ha.tests.unit.agents.command_service import Service


@pytest.fixture
def service(tmp_path):
    """A service of ``ocf:holdfast:command`` that is stopped in the end."""
    made = Service(tmp_path)
    yield made
    made("stop", stop_timeout=0)


@pytest.fixture
def free_port():
    """A TCP port on which nobody listens."""
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        return trial.getsockname()[1]
