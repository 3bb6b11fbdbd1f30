# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A JSON document is plain data within limits, or an error of the library, and is read fast."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast import documents
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.documents import (
    MAX_DEPTH,
    MAX_NUMBER,
    fields_of,
    pair,
    read_document,
    read_document_file,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import DocumentError

HOSTILE = {
    "deep lists": b"[" * 100_000 + b"]" * 100_000,
    "deep objects": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "just too deep": b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1),
    "deep beside brackets in texts": b'["[{", ' + b"[" * MAX_DEPTH + b"]" * MAX_DEPTH + b"]",
    "unclosed": b"[" * 100_000,
    "unclosed text": b'["' + b'\\"' * 100_000,
    "very many digits": b'{"a": ' + b"9" * 100_000 + b"}",
    "a large whole number": b"[18446744073709551616]",
    "a large negative number": b"[-18446744073709551616]",
    "an infinite number": b"[1e999]",
    "an infinite number by its digits": b"[" + b"9" * 400 + b".0]",
    "a large exponent": b"[5E+30]",
    "a long exponent": b"[1e0000000000000000000000000030]",
    "NaN": b"[NaN]",
    "Infinity": b"[-Infinity]",
    "half a character": b'["\\ud800"]',
    "half a character in a key": b'{"\\uDc00": 1}',
    "another encoding": json.dumps(["a"]).encode("utf-16"),
    "no UTF-8": b'["\xff"]',
    "a byte order mark": b"\xef\xbb\xbf[]",
    "nothing": b"",
    "NULs": b"\0" * 100,
    "more than one value": b"[] []",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_document_is_refused_at_once(name: str) -> None:
    began = time.process_time()
    with pytest.raises(DocumentError, match="The record") as error:
        read_document(HOSTILE[name], "The record")
    assert time.process_time() - began < 1.0
    assert len(str(error.value)) < 200


@pytest.mark.parametrize(
    "value",
    [
        {"a": [1, -2.5, True, None, "[[{{}}]]" * 50]},
        [MAX_NUMBER, -MAX_NUMBER, 1764039360.1234567, 1e-300, 0.00012345678901234567, 1e20],
        ["1e999", "9" * 400, ", 1e999", "\U0001f600", "\\ud800", "\\", '"', "\n"],
        json.loads("[" * MAX_DEPTH + "]" * MAX_DEPTH),
        [["["] * 60, "}" * 60],
    ],
)
@pytest.mark.parametrize("ascii_only", [True, False])
def test_any_other_document_is_read_as_it_is(value: Any, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    assert read_document(text, "it") == read_document(text.encode(), "it") == value


def test_a_document_has_a_size(tmp_path: Path) -> None:
    assert read_document(b'"' + b"a" * 98 + b'"', "it", 100)
    with pytest.raises(DocumentError, match="longer than 100 bytes"):
        read_document(b'"' + b"a" * 99 + b'"', "it", 100)
    path = tmp_path / "file"
    path.write_bytes(b"[" + b" " * 100 + b"]")
    with pytest.raises(DocumentError, match="longer than 100 bytes"):
        read_document_file(path, "it", 100)
    with pytest.raises(DocumentError, match="NUL"):
        read_document_file(Path("a\0b"), "it")


def test_what_people_write_has_each_key_once() -> None:
    text = '{"levels": [{"a": 1, "a": 2}]}'
    assert read_document(text, "it") == {"levels": [{"a": 2}]}
    with pytest.raises(DocumentError, match="'a' occurs twice"):
        read_document(text, "it", unique=True)


def test_a_large_document_is_read_nearly_as_fast_as_without_limits() -> None:
    rows = {
        f"vm:{number}": {
            "state": "started",
            "node": f"n{number % 64}",
            "since": 1764039360.25 + number,
            "reason": "of all nodes it has the fewest services [2], {preferred}",
            "uid": f"n1.3.{number}",
            "digest": hashlib.sha256(str(number).encode()).hexdigest()[:16],
        }
        for number in range(20_000)
    }
    data = json.dumps({"services": rows}).encode()

    def seconds(read: Any) -> float:
        times = []
        for _time in range(5):
            began = time.process_time()
            read()
            times.append(time.process_time() - began)
        return min(times)

    plain = seconds(lambda: json.loads(data))
    assert seconds(lambda: read_document(data, "it")) < 3 * plain


@dataclass(frozen=True)
class Sample:
    name: str
    at: float = 0.0
    count: int | None = None
    nodes: tuple[str, ...] = ()
    ended: tuple[float, float] = field(default=(0.0, 0.0))


FIELDS = fields_of(Sample, ended=pair(documents.number, documents.number))


def test_fields_are_read_by_their_types() -> None:
    row = {"name": "a", "at": 2, "count": None, "nodes": ["n1"], "ended": [1, 2.5], "later": {}}
    assert Sample(**FIELDS.read(row)) == Sample("a", 2, None, ("n1",), (1, 2.5))


@pytest.mark.parametrize(
    ("row", "place"),
    [
        ([], "a list|\\[\\]"),
        ({}, "name is missing"),
        ({"name": 1}, "name: 1 "),
        ({"name": "a", "at": "1"}, "at: '1'"),
        ({"name": "a", "at": True}, "at: True"),
        ({"name": "a", "at": float("nan")}, "nan"),
        ({"name": "a", "count": 1.5}, "count: 1.5"),
        ({"name": "a", "nodes": "n1"}, "nodes: 'n1'"),
        ({"name": "a", "nodes": [["n1"]]}, "nodes: a list"),
        ({"name": "a", "ended": []}, "ended: \\[\\]"),
        ({"name": "a", "ended": [1]}, "ended: a list"),
        ({"name": "\x1b[31m" * 100, "at": "\x1b[31m" * 100}, "at: '.x1b"),
    ],
)
def test_a_field_of_another_type_is_named(row: Any, place: str) -> None:
    if place == "nan":
        # Within documents there is none: it cannot be read.
        with pytest.raises(DocumentError):
            read_document(json.dumps(row), "it")
        return
    with pytest.raises(DocumentError, match=place) as error:
        FIELDS.read(row)
    assert str(error.value).isprintable()
    assert len(str(error.value)) < 300
