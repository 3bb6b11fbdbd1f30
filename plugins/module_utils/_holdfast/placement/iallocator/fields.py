# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read typed fields of JSON objects, with the error texts of htools.

Ganeti's operators and its own tools know these texts; what is wrong, in which object
and under which key is in each.  Numbers with a fraction are rounded where a whole one
is expected, half to even, as htools does.
"""

from __future__ import annotations

from ...errors import ClusterDataError
from ..model.show import quoted, quoted_list

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, TypeVar

    Value = TypeVar("Value")
    Record = dict[str, Any]


def required(owner: str, record: Record, key: str, read: Callable[[Any], Value]) -> Value:
    """Return the field *key* of *record* as *read* takes it.

    *owner* starts the error text.  Raises `ClusterDataError` if the key is missing or
    its value is not what *read* wants.
    """
    before = f"{owner}: " if owner else ""
    if key not in record:
        keys = quoted_list(record)
        raise ClusterDataError(f"{before}key '{key}' not found, object contains only {keys}")
    try:
        return read(record[key])
    except ClusterDataError as error:
        raise ClusterDataError(f"{before}key '{key}': {error}") from None


def optional(owner: str, record: Record, key: str, read: Callable[[Any], Value]) -> Value | None:
    """Return the field *key* like `required`, or None where it is missing or null."""
    if record.get(key) is None:
        return None
    return required(owner, record, key, read)


def part(data: Record, key: str, read: Callable[[Any], Value]) -> Value:
    """Return a field like `required`, in the words that htools has for policies and reports."""
    if key not in data:
        keys = quoted_list(data)
        raise ClusterDataError(f"key '{key}' not found, object contains only {keys}")
    try:
        return read(data[key])
    except ClusterDataError as error:
        raise ClusterDataError(f"Can't parse value for '{key}': {error}") from None


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


def truth(value: Any) -> bool:
    """Take true or false."""
    if value is True or value is False:
        return bool(value)
    raise ClusterDataError("Unable to read Bool")


def text(value: Any) -> str:
    """Take a string, or as htools does a list of single characters."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        if all(isinstance(each, str) and len(each) == 1 for each in value):
            return "".join(value)
        raise ClusterDataError("Unable to read Char")
    raise ClusterDataError("Unable to read String")


def record(value: Any) -> Record:
    """Take an object."""
    if isinstance(value, dict):
        return value
    raise ClusterDataError("Unable to read JSObject")


def texts(value: Any) -> list[str]:
    """Take a list of strings."""
    return [text(item) for item in items(value)]


def items(value: Any) -> list[Any]:
    """Take a list."""
    if isinstance(value, list):
        return value
    raise ClusterDataError("Unable to read list")


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


def some_object(value: Any) -> Record:
    """Take an object where htools says only that it is none."""
    if isinstance(value, dict):
        return value
    raise ClusterDataError("not an object")
