# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The result of an operation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Result:
    """The result of one operation; before and after come from its plan, as plain data.

    ``failure`` is a sentence, "" when nothing failed; with it there can be results all the same,
    as when one of many nodes failed.
    """

    changed: bool = False
    values: Mapping[str, Any] = field(default_factory=dict)
    before: object | None = None
    after: object | None = None
    warnings: Sequence[str] = ()
    failure: str = ""
