# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node that is on, without daemons: enough for modules that declare and look."""

from __future__ import annotations

import json

import pytest
from ansible_collections.holdfast.ha.tests.unit.fence.device_script import write_device
from ansible_collections.holdfast.ha.tests.unit.node.sample_node import (
    configuration,
    create_storage,
    document,
    join,
)
from ansible_collections.holdfast.ha.tests.unit.ocf.agent_script import SHARED, write_agent


@pytest.fixture
def node_config(tmp_path):
    """The path of the configuration of n1, which is on, with the agent ocf:test:thing."""
    create_storage(tmp_path)
    write_agent(tmp_path / "ocf", '[ "$1" != monitor ] || exit 7', metadata=SHARED)
    node = configuration(tmp_path)
    path = node.folder / "node.json"
    path.write_text(json.dumps(document(tmp_path)))
    leases = join(node)
    yield str(path)
    leases.close()


@pytest.fixture
def agent(tmp_path):
    """A fence agent that switches files."""
    return write_device(tmp_path / "a")
