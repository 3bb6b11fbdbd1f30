# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What all unit tests share: examples are judged by what they find, not by how long they take."""

from __future__ import annotations

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.operations import (
    agent_checks,
)
from hypothesis import HealthCheck, settings

# A busy machine stands still for longer than the 0.2 s that an example has otherwise.
settings.register_profile("holdfast", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("holdfast")


@pytest.fixture
def an_earlier_version(monkeypatch):
    """Take secrets in declarations, as versions did that had no other way for them."""
    monkeypatch.setattr(agent_checks, "has_secret", lambda *_arguments: False)
