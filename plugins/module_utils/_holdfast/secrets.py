# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which agent parameters are secrets, and hiding their values in texts.

Fence agents and resource agents take passwords as ordinary parameters and repeat them in verbose
output.  Some parameters have a secret in a longer text: the password of a URL, an option string
with ``-e DB_PASSWORD=...``.  Only that part is hidden then.

The patterns are texts, which ``re`` compiles when it first uses them and keeps: most tasks and
commands load this file and look for no secret.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from urllib.parse import quote, quote_plus

HIDDEN = "********"
"""The replacement of a secret in a text."""

NAMED = "secrets"
"""Beside ``parameters`` in plain data: the names of further parameters that are secrets."""

_SECRET_NAME = (
    r"(?i)passw|pwd|passphrase|secret|token|credential|community|private[-_]?key|api[-_]?key"
    r"|access[-_]?key|cookie$|(^|[-_])(key|kg|pin|pass|pw)$"
)
_CONNECTION = r"(?i)conn(ection)?[-_]?(info|str(ing)?)|(^|[-_])dsn$"
"""A name whose value may have a password among other words."""

_NO_SECRET = r"(?i)(script|file|path|folder|[-_]dir|prompt|timeout|use_empty)$"

_KEY_FILE = r"(?i)(key|secret|credentials?)$"
"""A name whose value is often the path of a file, such as ``ssl_key``."""

_QUOTED = r"\"[^\"]*\"|'[^']*'"
_NAME = r"(?P<name>[A-Za-z_][\w.-]{0,63})"
"""Of limited length, so that a search takes time in proportion to the text."""

_PASSWORD_OF_URL = r"://[^\s/:@]*:(?P<secret>[^\s/]+)@"

_ASSIGNMENTS = (
    rf"(?P<quote>[\"']){_NAME}=(?P<secret>.*?)(?P=quote)",
    rf"{_NAME}[\"']?\s*[=:]\s*(?P<secret>{_QUOTED}|[^\s,;&\"']+)",
    rf"(?:^|\s)--?{_NAME}\s+(?P<secret>{_QUOTED}|[^\s\"'-]\S*)",
)
"""Texts in which a name and its value are: a secret if the name is that of one."""

_HINT = r"(?i)pass|pwd|pw|secret|token|cred|community|key|kg|pin|cookie|conn|dsn"
"""In each name of a secret; a text without it is not searched further, as most have none."""

_POSSIBLE = (
    r"(?:^|\s)(?:-e|--env)[\s=]*(?P<quote>[\"'])\w+=(?P<secret>.*?)(?P=quote)",
    rf"(?:^|\s)(?:-e|--env)[\s=]*\w+=(?P<secret>{_QUOTED}|[^\s\"']+)",
    rf"(?:^|\s)-p(?:[\s=]+|(?=\S*[^a-z\s-]))(?P<secret>{_QUOTED}|[^\s\"'-]\S*)",
)
"""What may be a secret: a variable of a container, and what many programs call ``-p``."""

_PORTS_OR_PATH = r"[\d.:\[\]-]+(/(tcp|udp|sctp))?\Z|/"
"""What follows a ``-p`` that is no password."""

_SHORTEST_POSSIBLE = 6
"""Characters: a shorter value that only may be a secret is hidden in its place alone."""


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Return whether the parameter *name* holds a secret, by its name.

    A path to a secret (``identity_file``, ``password_script``) is none.
    """
    found = re.search(_SECRET_NAME, name) or re.search(_CONNECTION, name)
    return bool(found) and not re.search(_NO_SECRET, name)


def secret_values(parameters: Mapping[str, object], named: Collection[str] = ()) -> tuple[str, ...]:
    """Return the texts in *parameters* that must never be shown; *named* are secrets too.

    Of a list or mapping, given for a secret by mistake, all parts are secrets.
    """
    found: list[str] = []
    for name, value in parameters.items():
        if name in named or is_secret_name(name):
            found.extend(_texts(value))
        if isinstance(value, str):
            found.extend(value[begin:end] for begin, end in _certain(value))
            possible = (value[begin:end] for begin, end in _possible(value))
            found.extend(text for text in possible if len(text) >= _SHORTEST_POSSIBLE)
    return tuple(found)


def has_secret(name: str, value: str, named: Collection[str] = ()) -> bool:
    """Return whether the *value* of a parameter is, or has in it, what is certainly a secret.

    The path of a file is none, nor are the other words of a connection string.
    """
    if not value:
        return False
    certain = is_secret_name(name) and not (re.search(_CONNECTION, name) or _is_path(name, value))
    return certain or name in named or any(_certain(value))


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
    """Return plain data with the values of all secret names hidden, and secrets in texts."""
    if isinstance(value, Mapping):
        named = value.get(NAMED)
        further = named if isinstance(named, (list, tuple)) else ()
        return {
            key: _parameters(one, further)
            if key == "parameters"
            else one
            if key == NAMED and further
            else shown(str(key), one)
            for key, one in value.items()
        }
    if isinstance(value, list):
        return [without_secrets(one) for one in value]
    return _without_parts(value) if isinstance(value, str) else value


def shown(name: str, value: object, named: Collection[str] = ()) -> object:
    """Return the *value* of a parameter for people, hidden when *name* holds a secret."""
    if name in named or is_secret_name(name):
        return HIDDEN
    return without_secrets(value)


def _parameters(value: object, named: Collection[str]) -> object:
    if not isinstance(value, Mapping):
        return without_secrets(value)
    return {key: shown(str(key), one, named) for key, one in value.items()}


def _without_parts(text: str) -> str:
    """Return *text* with what is, or may be, a secret in it hidden."""
    done, pieces = 0, list[str]()
    spans = {*_certain(text), *_possible(text)}
    for begin, end in sorted(spans, key=lambda span: (span[0], -span[1])):
        if begin >= done:
            pieces += [text[done:begin], HIDDEN]
        done = max(done, end)
    return "".join([*pieces, text[done:]])


def _certain(text: str) -> Iterator[tuple[int, int]]:
    """Return begin and end of each part of *text* that is a secret."""
    for match in re.finditer(_PASSWORD_OF_URL, text):
        yield match.span("secret")
    for pattern in _ASSIGNMENTS if re.search(_HINT, text) else ():
        for match in re.finditer(pattern, text):
            name, value = match.group("name"), match.group("secret")
            if value and is_secret_name(name) and not _is_path(name, value):
                yield _unquoted(match)


def _possible(text: str) -> Iterator[tuple[int, int]]:
    """Return begin and end of each part of *text* that may be a secret."""
    for pattern in _POSSIBLE if "-e" in text or "-p" in text else ():
        for match in re.finditer(pattern, text):
            if match.group("secret") and not re.match(_PORTS_OR_PATH, match.group("secret")):
                yield _unquoted(match)


def _unquoted(match: re.Match[str]) -> tuple[int, int]:
    """Return begin and end of the secret of *match* without its quotation marks."""
    begin, end = match.span("secret")
    if end - begin > 1 and match.string[begin] in "\"'" and match.string[end - 1] in "\"'":
        return begin + 1, end - 1
    return begin, end


def _is_path(name: str, value: str) -> bool:
    return value.startswith("/") and bool(re.search(_KEY_FILE, name))


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for one in value:
            yield from _texts(one)
    elif value is not None and not isinstance(value, bool) and str(value):
        yield str(value)
