# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an operation reports to whoever asked for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Result:
    """The outcome of one operation: before and after come from its plan, as plain data.

    ``failure`` says in a sentence what went wrong where there are results all the same, as
    when one of many nodes failed; "" when nothing did.
    """

    changed: bool = False
    values: Mapping[str, Any] = field(default_factory=dict)
    before: object | None = None
    after: object | None = None
    warnings: Sequence[str] = ()
    failure: str = ""
