# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who changed the desired configuration, from where, when, and what."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ...documents import fields_of
from ...text import clean
from .maintenance import utc

LONGEST_PART = 64
"""The largest number of characters of each text; an event has all four."""


@dataclass(frozen=True)
class Author:
    """Who made a version of the configuration.

    *user* is the login name, *origin* the address from which the user came, empty for a console;
    *node* is where the change was written, *at* seconds since 1970, and *what* was changed.
    """

    user: str
    node: str
    at: float
    origin: str = ""
    what: str = ""


def author_document(author: Author) -> dict[str, Any]:
    """Return an author as plain data."""
    return asdict(author)


def author_from_document(value: object) -> Author:
    """Return the author of a document; raises ``DocumentError`` if it is wrong."""
    return Author(**_FIELDS.read(value))


def author_text(author: Author) -> str:
    """Return who changed what, from where and when, on one line."""
    user, node, origin, what = (
        clean(text)[:LONGEST_PART]
        for text in (author.user, author.node, author.origin, author.what)
    )
    place = f"{node}, from {origin}" if origin else node
    by = user or "an unknown user"
    return f"{what or 'written again'}, by {by} on {place} at {utc(author.at)}"


_FIELDS = fields_of(Author)
