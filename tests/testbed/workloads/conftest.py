# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes with databases and virtual machines, in a lab of their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from testbed import lab
from testbed.whole import Testbed


@pytest.fixture(scope="session")
def testbed() -> Iterator[Testbed]:
    """Three nodes with PostgreSQL, libvirt and QEMU."""
    if lab.folder() is None:
        pytest.skip(lab.missing() or "it runs in a lab: tests/testbed/testbed test")
    with Testbed(layer="workloads") as made:
        yield made
