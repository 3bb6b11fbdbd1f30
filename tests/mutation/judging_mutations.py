# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mistakes in how nodes are judged, in fences and their proofs, and in what a CRM remembers."""

from __future__ import annotations

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm import (
    candidate,
    cycle,
    fencing,
    freed_leases,
    health,
    memory,
    watch,
)
from ansible_collections.holdfast.ha.tests.mutation.making import Mutation, edited
from ansible_collections.holdfast.ha.tests.simulation import random_scenario

MIXED = random_scenario.MIXED
LEFT = random_scenario.LEFT
OPERATORS = random_scenario.OPERATORS
HELD = random_scenario.HELD
STARVED = random_scenario.STARVED
FENCES = random_scenario.FENCES

_EDITS = (
    # A turn that is late.
    (
        "count-a-turn-only-from-the-end-of-its-look",
        cycle,
        "_turn",
        "    yield from _collect(crm, observation, clocks.mono)",
        "    crm.begun = clocks.mono\n    yield from _collect(crm, observation, clocks.mono)",
        HELD,
    ),
    (
        "be-late-only-after-three-seconds",
        memory.Crm,
        "is_late",
        "clocks.mono - self.begun <= LATE:",
        "clocks.mono - self.begun <= 2 * LATE:",
        HELD,
    ),
    # What is read may be old.
    (
        "judge-by-old-reads",
        health,
        "judge",
        "    if storage_trouble:",
        "    if False:",
        HELD,
    ),
    (
        "fence-by-old-reads-as-a-candidate",
        candidate,
        "watch_manager",
        "observation.trouble or crm.trouble",
        "crm.trouble",
        HELD,
    ),
    (
        "let-the-own-renewal-be-four-times-as-late",
        watch.Watch,
        "own_trouble",
        "own.unchanged_for >= late_seconds",
        "own.unchanged_for >= 4 * late_seconds",
        HELD,
    ),
    # Deadlines and fences.
    (
        "fence-a-node-twice-at-once",
        fencing,
        "order_fences",
        " or name in round_.observed.fencing",
        "",
        MIXED,
    ),
    (
        "fence-again-while-the-last-fence-is-under-way-as-a-candidate",
        candidate,
        "watch_manager",
        " or crm.is_fencing(lease.node)",
        "",
        MIXED,
    ),
    (
        "fence-in-a-hold-as-a-candidate",
        candidate,
        "consider",
        "    if held:",
        "    if False:",
        OPERATORS,
    ),
    (
        "take-a-disarm-that-is-asked-for-as-over",
        candidate,
        "kept_from_fencing",
        "desired.disarm == state.disarm_mode",
        "desired.disarm != state.disarm_mode",
        LEFT,
    ),
    (
        "fence-again-without-a-wait",
        fencing,
        "order_fences",
        "        if round_.observed.now < status.retry_after:",
        "        if False:",
        FENCES,
    ),
    (
        "wait-for-the-next-fence-by-the-wall-clock",
        cycle,
        "_observe",
        "now=clocks.mono,",
        "now=clocks.wall,",
        FENCES,
    ),
    (
        "try-to-free-for-ever",
        freed_leases.FreedLeases,
        "watch",
        "            del self._proved[node]\n",
        "            pass\n",
        OPERATORS,
    ),
)


JUDGING_MUTATIONS = tuple(
    Mutation(name, edited(home, function, old, new), drawing)
    for name, home, function, old, new, drawing in _EDITS
)
"""Each is an edit of the shipped code that the simulator plays."""
