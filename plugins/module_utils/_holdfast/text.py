# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Text for a terminal or a page: one line without control characters, and spans of time."""

from __future__ import annotations


def clean(value: object) -> str:
    """Return *value* as text on one line without control characters.

    Reasons can have output of agents, which must not control a terminal or reorder a line.
    """
    text = str(value)
    if not text.isprintable():
        text = "".join(one if one.isprintable() else " " for one in text)
    return " ".join(text.split())


def age(seconds: float) -> str:
    """Return a span of time by its two largest units, such as ``3m 12s``."""
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m {whole % 60}s"
    if whole < 86400:
        return f"{whole // 3600}h {whole % 3600 // 60}m"
    return f"{whole // 86400}d {whole % 86400 // 3600}h"
