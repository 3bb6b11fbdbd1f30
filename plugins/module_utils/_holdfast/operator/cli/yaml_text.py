# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plain data as YAML: block style, texts quoted as in JSON, which is YAML too."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator


def yaml_text(document: object) -> str:
    """Return *document*, which JSON can have, as a YAML document ended by a newline."""
    return "\n".join(_lines(document)) + "\n"


def _lines(value: object) -> Iterator[str]:
    if isinstance(value, dict) and value:
        for key, one in value.items():
            yield from _entry(f"{_scalar(str(key))}:", one, "  ")
    elif isinstance(value, (list, tuple)) and value:
        for one in value:
            yield from _entry("-", one, "  ")
    else:
        yield _scalar(value)


def _entry(mark: str, value: object, indent: str) -> Iterator[str]:
    if isinstance(value, (dict, list, tuple)) and value:
        yield mark
        for line in _lines(value):
            yield f"{indent}{line}"
    else:
        yield f"{mark} {_scalar(value)}"


def _scalar(value: object) -> str:
    """Return a scalar of JSON as readers of YAML 1.1 read it back; also an empty collection."""
    text = json.dumps(value, ensure_ascii=False)
    if isinstance(value, float):
        # They take a number such as 1e-05 for a string.
        return re.sub(r"^(-?\d+)e", r"\1.0e", text)
    # They do not join the two halves by which JSON escapes a character beyond U+FFFF.
    return re.sub("[^ -~]", lambda one: f"\\U{ord(one[0]):08x}", text)
