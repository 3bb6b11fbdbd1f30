# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A whole question to the allocator and its answer as data, for callers in this process.

The command in hail's place does the same step by step (`node/iallocator_command`), since
it prints between the steps and must not wait for what it does not need.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..allocate.options import Options
from ..explain.reasons import reasons
from .answer import answer
from .arithmetic_limits import oddities_refused
from .request import read_request


@dataclass(frozen=True)
class Asked:
    """A request as JSON *text* and how to answer it.

    *problems* are what is known to stand in its way beforehand, one sentence each.
    """

    text: str
    static_node_memory: int
    options: Options
    why: bool = False
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Answered:
    """The answer: ``success``, ``info``, ``result``, and ``reasons`` if they were asked for."""

    values: dict[str, Any]
    warnings: list[str]


def allocate(asked: Asked) -> Answered:
    """Answer a request; raises `ClusterDataError` if it cannot be read or reckoned with."""
    with oddities_refused("the request"):
        return _answered(asked)


def _answered(asked: Asked) -> Answered:
    cluster, request, warnings = read_request(asked.text, asked.static_node_memory)
    if asked.problems:
        info = f"Request failed: {'; '.join(asked.problems)}"
        return Answered({"success": False, "info": info, "result": []}, warnings)
    found = answer(cluster, request, asked.options)
    values = found.document()
    if asked.why:
        values["reasons"] = reasons(cluster, request, asked.options, found)
    return Answered(values, warnings)
