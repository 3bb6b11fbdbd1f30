# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read numbers and truth values from text as htools does: Haskell's ``reads``.

Blanks are allowed before a number and after its sign, round brackets around it.  Numbers may be
hexadecimal (``0x10``) or octal (``0o17``), decimal ones also ``NaN`` or ``Infinity``.  A plus
sign, or a point without a digit on either side, is not allowed.  Truth values are ``True`` and
``False``.
"""

from __future__ import annotations

from ...errors import ClusterDataError

BLANKS = (
    " \t\n\r\f\v\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u202f\u205f\u3000"
)
DIGITS = "0123456789"
DIGITS_OF = {"x": (16, "0123456789abcdefABCDEF"), "o": (8, "01234567")}
"""The base that a letter after a 0 names, and its digits."""


def read_whole(what: str, text: str) -> int:
    """Return the whole number that *text* is.

    *what* starts the error text.  Raises `ClusterDataError`, in htools' words, if it is none.
    """
    if text.isdigit() and text.isascii() and len(text) < 20:
        return int(text)
    found = start_of_whole(text)
    if found is None:
        raise ClusterDataError(f"{what}: cannot parse string '{text}'")
    number, rest = found
    _check_rest(what, text, rest)
    return number


def read_decimal(what: str, text: str) -> float:
    """Return the number that *text* is, like `read_whole`."""
    before, point, after = text.partition(".")
    if before.isdigit() and (after.isdigit() or not point) and text.isascii():
        return float(text)
    found = _start(text)
    if found is None:
        raise ClusterDataError(f"{what}: cannot parse string '{text}'")
    negative, word, rest = found
    _check_rest(what, text, rest)
    try:
        number = float(word)
    except ValueError:
        number = _float_of(_whole_of(word))
    return -number if negative else number


def start_of_whole(text: str) -> tuple[int, str] | None:
    """Return the whole number at the start of *text* and what follows, None if none is there."""
    found = _start(text)
    if found is None:
        return None
    negative, word, rest = found
    number = _whole_of(word)
    return None if number is None else ((-1 if negative else 1) * number, rest)


def read_truth(what: str, text: str) -> bool:
    """Return whether *text* is true, like `read_whole`."""
    brackets, rest = _opened(text)
    word = next((name for name in ("True", "False") if _is_word(name, rest)), "")
    left = _closed(brackets, rest[len(word) :]) if word else None
    if left is None:
        raise ClusterDataError(f"{what}: cannot parse string '{text}'")
    _check_rest(what, text, left)
    return word == "True"


def _check_rest(what: str, text: str, rest: str) -> None:
    if rest:
        raise ClusterDataError(f"{what}: leftover characters when parsing '{text}': '{rest}'")


def _float_of(number: int | None) -> float:
    try:
        return float(number or 0)
    except OverflowError:
        return float("inf")


def _whole_of(word: str) -> int | None:
    """Return the whole number that *word*, an unsigned number, is, None if it is none."""
    base = DIGITS_OF.get(word[1:2].lower(), (10, DIGITS))[0]
    try:
        return int(word if base == 10 else word[2:], base)
    except ValueError:
        return None


def _start(text: str) -> tuple[bool, str, str] | None:
    """Return whether the number at the start of *text* has a minus, its word, what follows."""
    brackets, rest = _opened(text)
    negative = rest.startswith("-")
    if negative:
        rest = rest[1:].lstrip(BLANKS)
    length = _length(rest)
    word, left = rest[:length], _closed(brackets, rest[length:])
    return (negative, word, left) if word and left is not None else None


def _opened(text: str) -> tuple[int, str]:
    """Return how many brackets are open at the start of *text*, and what follows them."""
    rest = text.lstrip(BLANKS)
    brackets = 0
    while rest.startswith("("):
        brackets += 1
        rest = rest[1:].lstrip(BLANKS)
    return brackets, rest


def _closed(brackets: int, rest: str) -> str | None:
    """Return what follows as many closing *brackets* in *rest*, None if there are fewer."""
    for _bracket in range(brackets):
        rest = rest.lstrip(BLANKS)
        if not rest.startswith(")"):
            return None
        rest = rest[1:]
    return rest


def _is_word(name: str, text: str) -> bool:
    """Return whether *text* starts with *name*, and not with a longer word."""
    after = text[len(name) : len(name) + 1]
    return text.startswith(name) and not (after.isalnum() or after in ("_", "'"))


def _length(text: str) -> int:
    """Return how many characters of *text* are an unsigned number, 0 if it starts with none."""
    for name in ("NaN", "Infinity"):
        if _is_word(name, text):
            return len(name)
    if text[:1] == "0":
        _base, digits = DIGITS_OF.get(text[1:2].lower(), (10, ""))
        end = _end_of_digits(text, 2, digits)
        if end > 2:
            return end
    end = _end_of_digits(text, 0, DIGITS)
    if not end:
        return 0
    if text[end : end + 1] == ".":
        end = _end_of_digits(text, end + 1, DIGITS, end)
    if text[end : end + 1] in ("e", "E"):
        sign = text[end + 1 : end + 2] in ("+", "-")
        end = _end_of_digits(text, end + 1 + sign, DIGITS, end)
    return end


def _end_of_digits(text: str, start: int, digits: str, without: int = 0) -> int:
    """Return where the *digits* of *text* end that begin at *start*; *without* any, that."""
    end = start
    while text[end : end + 1] and text[end] in digits:
        end += 1
    return end if end > start else without
