# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The manager's history as plain data, and what it last chose for each service."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from ...cluster.model.state import Event

CHOICES = ("start", "move")
"""The kinds of events that say which node was chosen for a service, and which were not."""


def event_document(event: Event) -> dict[str, Any]:
    """Return one line of the history as plain data."""
    return {**asdict(event), "rejected": [list(one) for one in event.rejected]}


def last_choices(events: Iterable[Event]) -> dict[str, dict[str, Any]]:
    """Return for each service which node was last chosen and why, and why others were not."""
    chosen = {one.service: one for one in events if one.kind in CHOICES}
    return {service: event_document(one) for service, one in chosen.items()}
