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


_CONTROL_CODES = (
    *(one for one in range(0x20) if chr(one) not in "\n\t"),
    *range(0x7F, 0xA0),
    *(0x061C, 0x200E, 0x200F, 0x2028, 0x2029, 0xFEFF),
    *range(0x202A, 0x202F),
    *range(0x2066, 0x206A),
)
_CONTROLS = dict.fromkeys(_CONTROL_CODES, " ")
"""C0, DEL, C1 and the characters that reorder a line."""

_OWN = r"(\x1b\[(?:[0-9;]*m|[HJK]|\?(?:25|1049)[hl]))"
"""The sequences that the command itself writes: colours, and drawing again."""


def printable(text: str) -> str:
    """Return *text* with blanks for control characters, except line feeds and tabs."""
    return text.translate(_CONTROLS)


def for_terminal(text: str) -> str:
    """Return *text* like ``printable``, but with the command's own sequences for a terminal.

    What comes from others is made ``clean`` where it is put into a line; this is for the rest.
    """
    if "\x1b" not in text:
        return printable(text)
    # Only here: importing it would be a large part of an allocator's start.
    import re

    parts = re.split(_OWN, text)
    return "".join(one if at % 2 else printable(one) for at, one in enumerate(parts))


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
