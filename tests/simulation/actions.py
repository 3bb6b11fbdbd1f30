# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""All actions of scenarios by name: faults, and acts of operators; see ``docs/simulator.md``."""

from __future__ import annotations

from collections.abc import Mapping

from ansible_collections.holdfast.ha.tests.simulation.action import Verb
from ansible_collections.holdfast.ha.tests.simulation.faults import FAULTS
from ansible_collections.holdfast.ha.tests.simulation.operators import OPERATIONS
from ansible_collections.holdfast.ha.tests.simulation.storage_faults import STORAGE_FAULTS

ACTIONS: Mapping[str, Verb] = {**FAULTS, **STORAGE_FAULTS, **OPERATIONS}
"""All actions but ``service``, ``rule`` and ``policy``, which declare: see ``play.py``."""
