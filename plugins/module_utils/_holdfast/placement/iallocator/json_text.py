# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read and write JSON without the ``json`` package, and typed fields with htools' error texts.

An allocator is a process for each request, and importing ``json`` takes longer than the answer
for a cluster of forty nodes.  The parser is the standard library's ``_json``; ``json`` is used
where that is missing or wants more than is given here.

The error texts are those of htools, with the object and the key.  Where a whole number is
expected, numbers are rounded half to even, as in htools.
"""

from __future__ import annotations

from math import isfinite

from ...errors import ClusterDataError
from ...hints import Any, Callable, Iterable, TypeVar
from ..model.show import quoted, quoted_list

Value = TypeVar("Value")
Record = dict[str, Any]

BLANKS = " \t\n\r"


class _Settings:
    """The attributes that the parser of ``_json`` needs: those of ``json.JSONDecoder``."""

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
    """Return the object or list in the JSON *text*.

    Raises `ClusterDataError`, which names *what* was read, for anything else.
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
        # What follows a semicolon is advice for programmers.
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
        # JSON has no NaN and no infinity.
        return "null"
    return repr(value)


def _quote(text: str) -> str:
    try:
        from _json import encode_basestring
    except ImportError:
        from json import dumps

        return dumps(text, ensure_ascii=False)
    return encode_basestring(text)


def required(owner: str, record: Record, key: str, read: Callable[[Any], Value]) -> Value:
    """Return the field *key* of *record*, converted by *read*.

    Raises `ClusterDataError`, whose text starts with *owner*, if the key is missing or *read*
    does not accept its value.
    """
    before = f"{owner}: " if owner else ""
    return _field(record, key, read, before, f"{before}key '{key}'")


def _field(record: Record, key: str, read: Callable[[Any], Value], start: str, wrong: str) -> Value:
    """Return a field; errors begin with *start* if it is missing, with *wrong* if *read* fails."""
    if key not in record:
        keys = quoted_list(record)
        raise ClusterDataError(f"{start}key '{key}' not found, object contains only {keys}")
    try:
        return read(record[key])
    except ClusterDataError as error:
        raise ClusterDataError(f"{wrong}: {error}") from None


def optional(owner: str, record: Record, key: str, read: Callable[[Any], Value]) -> Value | None:
    """Return the field *key* like `required`, or None where it is missing or null."""
    if record.get(key) is None:
        return None
    return required(owner, record, key, read)


def part(data: Record, key: str, read: Callable[[Any], Value]) -> Value:
    """Return a field like `required`, with htools' error texts for policies and reports."""
    return _field(data, key, read, "", f"Can't parse value for '{key}'")


def no_others(data: Record, known: tuple[str, ...]) -> None:
    """Raise `ClusterDataError` if *data* has other keys than those *known*, which are sorted."""
    others = sorted(set(data) - set(known))
    if others:
        raise ClusterDataError(
            f"Superfluous dictionary keys: {quoted_list(others)}, but only "
            f"{quoted_list(known)} allowed."
        )


def whole(value: Any) -> int:
    """Take a number for a whole one."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, float) and abs(value) < 1e300:
        return round(value)
    raise ClusterDataError("Unable to read Int")


def number(value: Any) -> float:
    """Take a number."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            pass
    raise ClusterDataError("Unable to read Double")


def _taking(desired: type[Value], refusal: str) -> Callable[[Any], Value]:
    """Return a reader that takes a value of one type, and refuses others with *refusal*."""

    def read(value: Any) -> Value:
        if isinstance(value, desired):
            return value
        raise ClusterDataError(refusal)

    return read


truth = _taking(bool, "Unable to read Bool")
record: Callable[[Any], Record] = _taking(dict, "Unable to read JSObject")
some_object: Callable[[Any], Record] = _taking(dict, "not an object")
items: Callable[[Any], list[Any]] = _taking(list, "Unable to read list")


def text(value: Any) -> str:
    """Take a string, or as htools does a list of single characters."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        if all(isinstance(each, str) and len(each) == 1 for each in value):
            return "".join(value)
        raise ClusterDataError("Unable to read Char")
    raise ClusterDataError("Unable to read String")


def list_of(read: Callable[[Any], Value]) -> Callable[[Any], list[Value]]:
    """Return a reader of a list whose items *read* takes."""
    return lambda value: [read(item) for item in items(value)]


texts = list_of(text)


def one_of(kind: str, known: Iterable[str]) -> Callable[[Any], str]:
    """Return a reader that takes one of the words *known*, which make the type *kind*."""

    def read(value: Any) -> str:
        try:
            word = text(value)
        except ClusterDataError as error:
            raise ClusterDataError(f"Can't parse value for '{kind}': {error}") from None
        if word not in known:
            raise ClusterDataError(f"Invalid string value for type {kind}: {quoted(word)}")
        return word

    return read
