# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plain data as YAML: block style, texts quoted as in JSON, which is YAML too."""

from __future__ import annotations

import json
from collections.abc import Iterator


def yaml_text(document: object) -> str:
    """Return *document*, which JSON can have, as a YAML document ended by a newline."""
    return "\n".join(_lines(document)) + "\n"


def _lines(value: object) -> Iterator[str]:
    if isinstance(value, dict) and value:
        for key, one in value.items():
            yield from _entry(f"{json.dumps(str(key))}:", one, "  ")
    elif isinstance(value, (list, tuple)) and value:
        for one in value:
            yield from _entry("-", one, "  ")
    else:
        yield json.dumps(value)


def _entry(mark: str, value: object, indent: str) -> Iterator[str]:
    if isinstance(value, (dict, list, tuple)) and value:
        yield mark
        for line in _lines(value):
            yield f"{indent}{line}"
    else:
        yield f"{mark} {json.dumps(value)}"
