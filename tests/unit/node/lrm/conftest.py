# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The LRM of n1 as a test finds it."""

from __future__ import annotations

import pytest
from ansible_collections.holdfast.ha.tests.unit.node.lrm.lrm_daemon import (
    Daemon,
)


@pytest.fixture
def daemon(tmp_path):
    return Daemon(tmp_path)
