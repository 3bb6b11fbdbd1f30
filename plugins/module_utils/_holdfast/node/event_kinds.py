# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kinds of the history's events, for whoever asks for some of them."""

from __future__ import annotations

EVENT_KINDS = (
    "adopted",
    "again",
    "armed",
    "balance",
    "blocked",
    "contradiction",
    "disarmed",
    "disarming",
    "error",
    "failed",
    "fence",
    "fence_cancelled",
    "fence_failed",
    "forgotten",
    "gone",
    "left_off",
    "lost",
    "maintenance",
    "maintenance_ended",
    "manager",
    "membership",
    "migration_failed",
    "mode",
    "move",
    "offline",
    "online",
    "power_on",
    "power_on_failed",
    "probe",
    "proof",
    "refused",
    "request",
    "restart",
    "start",
    "started",
    "stop",
    "stopped",
    "suspected",
    "waiting",
)
"""The kinds of all events that a manager of this version writes."""
