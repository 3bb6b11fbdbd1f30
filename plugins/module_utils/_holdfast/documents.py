# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one reader of JSON documents, and typed readers for what is in them.

Documents come from shared storage, from files, from other nodes and from other programs.  Whatever
their bytes are, they are plain data within limits, or a ``DocumentError``.  So no decoder meets a
number that it cannot calculate with, or data too deep to walk through.

JSON's C scanner parses a document before anything else is known of it; what it cannot limit is
looked for in the bytes, by operations that are as fast.  Only a document in which something looks
suspicious, perhaps in a text, is examined value by value.
"""

from __future__ import annotations

import enum
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any, Generic, TypeVar

from .errors import DocumentError

T = TypeVar("T")
Choice = TypeVar("Choice", bound=enum.Enum)
Reader = Callable[[object], Any]
"""Returns a value checked, perhaps as another type; raises ``DocumentError``."""

MAX_BYTES = 64 << 20
"""The size of the largest document: the status of a cluster with 20,000 services has 20 MB."""

FILE_BYTES = 16 << 20
"""The size of the largest file of a node: its configuration, its own copies, a backup."""

MAX_DEPTH = 40
"""The depth of nested lists and objects; documents of this library have at most 10."""

MAX_NUMBER = (1 << 64) - 1
"""The largest amount of a whole number: storage has unsigned ones of 64 bits."""

MAX_FRACTION = 1e28
"""The largest amount of any other number."""

_SHOWN = 60
"""The number of characters of a wrong value that an error shows."""

_OTHERS = bytes(set(range(256)) - set(b"[]{}"))
_ALIKE = bytes.maketrans(b"123456789E]} \t\r\n", b"000000000e,,,,,,")
"""Makes all digits the same, and all that may follow a number."""

_MANY_DIGITS = b"0" * 19
_LARGE_EXPONENT = re.compile(rb"0e\+?00+,")
_TEXT = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)
"""A text, also one without an end: to look for the end again and again would take forever."""


def read_document(
    data: bytes | str, what: str, most: int = MAX_BYTES, *, unique: bool = False
) -> Any:
    """Return the value of the JSON document *data*; *what* it is begins the text of an error.

    Its size is at most *most* bytes, its depth ``MAX_DEPTH``, its whole numbers ``MAX_NUMBER`` and
    all others ``MAX_FRACTION``, and its texts can be encoded.  With *unique* no key occurs twice in
    an object: for what people write, as it is slower.  Raises ``DocumentError`` for anything else.
    """
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    if len(raw) > most:
        raise DocumentError(f"{what} is longer than {most} bytes.")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DocumentError(f"{what} is not UTF-8: {error.reason} at byte {error.start}.") from None
    if _is_too_deep(raw):
        raise DocumentError(f"{what} is nested deeper than {MAX_DEPTH} levels.")
    try:
        value = _DECODERS[unique, _may_have_large_numbers(raw)].decode(text)
        if "\\ud" in text or "\\uD" in text:
            # Half of a character: it could never be printed or stored.
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise DocumentError(f"{what} has a text that is not Unicode.") from None
    except (ValueError, RecursionError) as error:
        raise DocumentError(f"{what} is not JSON: {error}.") from None
    return value


def read_document_file(
    path: Path, what: str, most: int = FILE_BYTES, *, unique: bool = False
) -> Any:
    """Return the value of the JSON document in the file *path*, like ``read_document``.

    Raises ``OSError`` when the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            data = file.read(most + 1)
    except ValueError:
        raise DocumentError(f"{what} cannot be read: its path has a NUL in it.") from None
    return read_document(data, what, most, unique=unique)


def _is_too_deep(raw: bytes) -> bool:
    """Return whether lists and objects are nested too deep, by the brackets outside of texts."""
    if raw.count(b"[") + raw.count(b"{") <= MAX_DEPTH:
        return False
    if not _remain(raw):
        return False
    # Something remains: brackets in texts, or none that match, or too many levels.
    return bool(_remain(_TEXT.sub(b"", raw)))


def _remain(raw: bytes) -> bytes:
    """Return the brackets that remain when ``MAX_DEPTH`` levels, from the inside, are removed."""
    brackets = raw.translate(None, _OTHERS)
    for _level in range(MAX_DEPTH):
        if not brackets:
            break
        brackets = brackets.replace(b"[]", b"").replace(b"{}", b"")
    return brackets


def _may_have_large_numbers(raw: bytes) -> bool:
    """Return whether there may be a number beyond the limits; seldom true without one."""
    alike = raw.translate(_ALIKE) + b","
    return _MANY_DIGITS in alike or _LARGE_EXPONENT.search(alike) is not None


def _refuse(word: str) -> object:
    """Refuse NaN and the infinities, which JSON does not have."""
    raise ValueError(f"{word} is no number")


def _whole(digits: str) -> int:
    # Checked by length first: converting very many digits takes quadratic time.
    number = int(digits) if len(digits) <= 21 else MAX_NUMBER + 1
    if abs(number) > MAX_NUMBER:
        raise ValueError("a number in it is too large")
    return number


def _fraction(digits: str) -> float:
    number = float(digits)
    if not abs(number) <= MAX_FRACTION:
        raise ValueError("a number in it is too large")
    return number


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _value in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{_shown(twice)} occurs twice in one object")
    return found


def _decoder(unique: bool, careful: bool) -> json.JSONDecoder:
    """Return a decoder; a *careful* one looks at each number."""
    return json.JSONDecoder(
        parse_constant=_refuse,
        object_pairs_hook=_object if unique else None,
        parse_int=_whole if careful else None,
        parse_float=_fraction if careful else None,
    )


_DECODERS = {(one, other): _decoder(one, other) for one in (False, True) for other in (False, True)}


def _shown(value: object) -> str:
    """Return a value for an error, shortened, without control characters."""
    if isinstance(value, (dict, list)) and value:
        return "an object" if isinstance(value, dict) else "a list"
    if isinstance(value, str) and len(value) > _SHOWN:
        return f"{value[:_SHOWN]!a}..."
    return ascii(value)


def wrong(value: object, expected: str) -> DocumentError:
    """Return the error for a *value* in place of what is *expected*."""
    return DocumentError(f"{_shown(value)} is not accepted; expected {expected}.")


def text(value: object) -> str:
    """Return *value* as a text."""
    if isinstance(value, str):
        return value
    raise wrong(value, "a text")


def whole(value: object) -> int:
    """Return *value* as a whole number."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= MAX_NUMBER:
        return value
    raise wrong(value, "a whole number")


def number(value: object) -> float:
    """Return *value* as a number; a whole one stays one."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
        return value
    raise wrong(value, "a number")


def flag(value: object) -> bool:
    """Return *value* as true or false."""
    if isinstance(value, bool):
        return value
    raise wrong(value, "true or false")


def row(value: object) -> dict[str, Any]:
    """Return *value* as an object, whose keys are texts."""
    if isinstance(value, dict):
        return value
    raise wrong(value, "an object")


def items(value: object) -> list[Any]:
    """Return *value* as a list."""
    if isinstance(value, list):
        return value
    # The same data that was not written as JSON yet.
    if isinstance(value, tuple):
        return list(value)
    raise wrong(value, "a list")


def texts(value: object) -> tuple[str, ...]:
    """Return *value* as texts."""
    found = tuple(items(value))
    for one in found:
        if not isinstance(one, str):
            raise wrong(one, "a text")
    return found


def numbers(value: object) -> tuple[float, ...]:
    """Return *value* as numbers."""
    return tuple(number(one) for one in items(value))


def pair(first: Reader, second: Reader) -> Reader:
    """Return a reader of a list of two values."""

    def read(value: object) -> tuple[Any, Any]:
        found = items(value)
        if len(found) != 2:
            raise wrong(value, "a list of two values")
        return first(found[0]), second(found[1])

    return read


def list_of(reader: Callable[[object], T]) -> Callable[[object], tuple[T, ...]]:
    """Return a reader of a list of what *reader* takes."""
    return lambda value: tuple(reader(one) for one in items(value))


def mapping_of(reader: Callable[[object], T]) -> Callable[[object], dict[str, T]]:
    """Return a reader of an object with what *reader* takes; an error names the key."""

    def read(value: object) -> dict[str, T]:
        found: dict[str, T] = {}
        for key, one in row(value).items():
            try:
                found[key] = reader(one)
            except DocumentError as error:
                raise DocumentError(f"{_shown(key)}: {error}") from None
        return found

    return read


def optional(reader: Callable[[object], T]) -> Callable[[object], T | None]:
    """Return a reader of what *reader* takes, or null."""
    return lambda value: None if value is None else reader(value)


def one_of(kind: type[Choice]) -> Callable[[object], Choice]:
    """Return a reader of the values of an enumeration."""
    known = {one.value: one for one in kind}

    def read(value: object) -> Choice:
        found = known.get(value) if isinstance(value, (str, int)) else None
        if found is None:
            raise wrong(value, f"one of {', '.join(map(repr, known))}")
        return found

    return read


_READERS: Mapping[str, Reader] = {
    "str": text,
    "int": whole,
    "float": number,
    "bool": flag,
    "str | None": optional(text),
    "int | None": optional(whole),
    "float | None": optional(number),
    "bool | None": optional(flag),
    "tuple[str, ...]": texts,
    "tuple[float, ...]": numbers,
    "Mapping[str, str]": mapping_of(text),
    "Mapping[str, bool]": mapping_of(flag),
}
"""The readers of fields by their annotation."""

_EXACT: Mapping[str, type] = {"str": str, "bool": bool, "int": int, "float": float}
"""Annotations whose values are checked by type alone: the numbers of a document are limited."""


@dataclass(frozen=True)
class Fields(Generic[T]):
    """The fields of a dataclass, as objects in documents have them."""

    readers: Mapping[str, Reader]
    exact: Mapping[str, type]
    required: frozenset[str]

    def read(self, value: object) -> dict[str, Any]:
        """Return the checked fields in an object; unknown ones are left out.

        Raises ``DocumentError`` for a value of another type and for a missing field without
        default.
        """
        given = row(value)
        found: dict[str, Any] = {}
        exact, readers = self.exact, self.readers
        for name, one in given.items():
            if name not in readers:
                continue
            if one.__class__ is exact.get(name):
                found[name] = one
                continue
            try:
                found[name] = readers[name](one)
            except DocumentError as error:
                raise DocumentError(f"{name}: {error}") from None
        for name in self.required:
            if name not in found:
                raise DocumentError(f"{name} is missing.")
        return found


def fields_of(kind: type[T], **readers: Reader) -> Fields[T]:
    """Return the fields of the dataclass *kind*; *readers* are those that no type says enough of.

    A reader given for a field is used alone.
    """
    by_name: dict[str, Reader] = {}
    exact: dict[str, type] = {}
    required = set()
    for item in fields(kind):  # type: ignore[arg-type]
        annotation = str(item.type)
        by_name[item.name] = readers[item.name] if item.name in readers else _READERS[annotation]
        if item.name not in readers and annotation in _EXACT:
            exact[item.name] = _EXACT[annotation]
        if item.default is MISSING and item.default_factory is MISSING:
            required.add(item.name)
    return Fields(by_name, exact, frozenset(required))


def without_format(document: Mapping[str, Any], what: str, known: int) -> dict[str, Any]:
    """Return the document of a file without its format version, 1 where it has none.

    Raises ``DocumentError`` for a version above *known*, the newest that is understood here.
    """
    found = document.get("format", 1)
    if isinstance(found, bool) or not isinstance(found, int) or not 1 <= found <= known:
        raise DocumentError(
            f"{what} has format version {_shown(found)}; the holdfast on this machine knows 1 to"
            f" {known}: update it."
        )
    return {key: value for key, value in document.items() if key != "format"}


def check_keys(keys: Iterable[str], pattern: re.Pattern[str], what: str) -> None:
    """Raise ``DocumentError`` unless each key is *what* the regular expression *pattern* takes."""
    for key in keys:
        if not pattern.fullmatch(key):
            raise wrong(key, what)


def values_by_name(record: Any) -> dict[str, Any]:
    """Return the values of all fields of a dataclass by their names; they are not copied."""
    return {item.name: getattr(record, item.name) for item in fields(record)}
