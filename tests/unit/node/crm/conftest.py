# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The CRM of n1 as a test finds it: starting, manager, or candidate."""

from __future__ import annotations

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.lease.interface import (
    LeaseHolder,
)
from ansible_collections.holdfast.ha.tests.unit.node.crm.crm_daemon import (
    Daemon,
    kinds,
)


@pytest.fixture
def daemon(tmp_path):
    return Daemon(tmp_path)


@pytest.fixture
def manager(daemon):
    """A manager that has just written its first record."""
    assert kinds(daemon.round()) == ["state"]
    return daemon


@pytest.fixture
def candidate(daemon):
    """A CRM that does not get the lease: n2 has it, with the lease's version 12."""
    daemon.storage.leases.epoch = None
    daemon.storage.leases.manager = LeaseHolder(2, 4, 12, True)
    return daemon
