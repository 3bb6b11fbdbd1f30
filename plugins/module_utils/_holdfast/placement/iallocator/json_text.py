# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read and write JSON without the start of the ``json`` package.

An allocator is a process for each question, and importing ``json`` (with the regular
expressions that it needs) takes longer than answering for a cluster of forty nodes.
The parser itself is the one of the standard library, ``_json``; where it is missing,
or wants more than is given here, ``json`` is used.
"""

from __future__ import annotations

from math import isfinite

from ...errors import ClusterDataError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

BLANKS = " \t\n\r"


class _Settings:
    """What the parser of ``_json`` asks for: the hooks of ``json.JSONDecoder``."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int

    def __init__(self) -> None:
        self.memo: dict[str, str] = {}

    @staticmethod
    def parse_constant(word: str) -> Any:
        """Refuse NaN and Infinity, which JSON does not have."""
        raise ValueError(f"{word} is not a JSON value")


def _scanner() -> Callable[[str, int], tuple[Any, int]]:
    """Return the function that reads one value from a text at a position."""
    settings: Any = _Settings()
    try:
        from _json import make_scanner

        return make_scanner(settings)
    except (ImportError, AttributeError, TypeError):
        from json import JSONDecoder

        decoder = JSONDecoder(parse_constant=settings.parse_constant)
        return decoder.raw_decode


def _scan(text: str, start: int) -> tuple[Any, int]:
    """Return the value at *start* of *text*, and where it ends."""
    try:
        return _scanner()(text, start)
    except SystemError:
        # The parser takes the error that it raises from a package that was not started.
        from importlib import import_module

        import_module("json.decoder")
        return _scanner()(text, start)


def parse(text: str, what: str) -> Any:
    """Return the value that *text* holds: an object or a list at the top level.

    *what* says in an error what was being read.  Raises `ClusterDataError` for
    anything else, at whatever depth or size.
    """
    start = 0
    while start < len(text) and text[start] in BLANKS:
        start += 1
    if text[start : start + 1] not in ("{", "["):
        raise ClusterDataError(
            f"{what}: Invalid JSON: a JSON text a serialized object or array at the top level."
        )
    try:
        value, end = _scan(text, start)
    except StopIteration as stop:
        raise ClusterDataError(
            f"{what}: Malformed JSON: invalid token in this context {_near(text, stop.value)}"
        ) from None
    except RecursionError:
        raise ClusterDataError(
            f"{what}: Malformed JSON: nested too deeply; expected a request of an allocator."
        ) from None
    except ValueError as error:
        # What follows a semicolon is advice for who wrote a program.
        problem = str(error).partition(";")[0]
        raise ClusterDataError(f"{what}: Malformed JSON: {problem}") from None
    rest = text[end:].strip(BLANKS)
    if rest:
        raise ClusterDataError(
            f"{what}: Invalid tokens at end of JSON string: {_near(text, len(text) - len(rest))}"
        )
    return value


def _near(text: str, position: object) -> str:
    """Return a few characters of *text* at *position*, for an error."""
    at = position if isinstance(position, int) else 0
    return text[at : at + 10]


def encode(value: Any) -> str:
    """Return *value*, made of plain data, as compact JSON on one line."""
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, str):
        return _quote(value)
    if isinstance(value, (list, tuple)):
        return "[" + ",".join([encode(item) for item in value]) + "]"
    if isinstance(value, dict):
        return "{" + ",".join([f"{_quote(k)}:{encode(v)}" for k, v in value.items()]) + "}"
    if isinstance(value, float) and not isfinite(value):
        # JSON has no word for what is no number, or is without end.
        return "null"
    return repr(value)


def _quote(text: str) -> str:
    try:
        from _json import encode_basestring
    except ImportError:
        from json import dumps

        return dumps(text, ensure_ascii=False)
    return encode_basestring(text)
