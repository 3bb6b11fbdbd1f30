# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The profiles of timing: sets of times that go together.

``default`` rests on the storage alone, and asks a silent node over the network.  ``fast`` has
keepalives besides, so that a node is suspected within a second of silence on both ways.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from .observed import Timing

DEFAULT, FAST = "default", "fast"

LARGE = 64
"""With more members the whiteboard is larger: heartbeats and looks come once a second."""

PROFILES: Mapping[str, Timing] = {
    DEFAULT: Timing(),
    FAST: Timing(heartbeat=0.25, keepalive=0.1, look=0.2),
}


def profile_timing(name: str, members: int) -> Timing:
    """Return the times of a profile for a cluster of so many members."""
    timing = PROFILES[name]
    if members <= LARGE or timing.keepalive:
        return timing
    return replace(timing, suspect_after=3.0, heartbeat=1.0, look=1.0)
