# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which agent parameters are secrets, and hiding their values in texts.

Fence agents and resource agents take passwords as ordinary parameters and repeat them in verbose
output.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import quote, quote_plus

HIDDEN = "********"
"""The replacement of a secret in a text."""

_SECRET_NAME = re.compile(
    r"passw|pwd|passphrase|secret|token|credential|community|private[-_]?key|api[-_]?key"
    r"|access[-_]?key|(^|[-_])(key|kg|pin|pass)$",
    re.IGNORECASE,
)
_NO_SECRET = re.compile(r"(script|file|path|folder|prompt|timeout|use_empty)$", re.IGNORECASE)


def is_secret_name(name: str) -> bool:
    """Return whether the parameter *name* holds a secret, by its name.

    A path to a secret (``identity_file``, ``password_script``) is none.
    """
    return bool(_SECRET_NAME.search(name)) and not _NO_SECRET.search(name)


def secret_values(parameters: Mapping[str, object]) -> tuple[str, ...]:
    """Return the values in *parameters* that must never be shown.

    Of a list or mapping, given for a secret by mistake, all parts are secrets.
    """
    return tuple(
        text for name, value in parameters.items() if is_secret_name(name) for text in _texts(value)
    )


def hide(text: str, secrets: Iterable[str]) -> str:
    """Return *text* with each of *secrets* hidden, also in its quoted and URL spellings."""
    spellings = set()
    for secret in secrets:
        spellings.update(
            {secret, shlex.quote(secret), quote(secret), quote(secret, safe=""), quote_plus(secret)}
        )
        spellings.add(repr(secret)[1:-1])
    spellings.discard("")
    for spelling in sorted(spellings, key=len, reverse=True):
        text = text.replace(spelling, HIDDEN)
    return text


def without_secrets(value: object) -> object:
    """Return plain data with the values of all secret names hidden."""
    if isinstance(value, Mapping):
        return {
            key: HIDDEN if is_secret_name(str(key)) else without_secrets(one)
            for key, one in value.items()
        }
    return [without_secrets(one) for one in value] if isinstance(value, list) else value


def shown(name: str, value: object) -> object:
    """Return *value* for an error message, hidden when *name* holds a secret."""
    return HIDDEN if is_secret_name(name) else value


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for one in value:
            yield from _texts(one)
    elif value is not None and not isinstance(value, bool) and str(value):
        yield str(value)
