# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A whole question to the allocator and its answer as data, for callers in this process.

The command in hail's place does the same step by step (`node/iallocator_command`), since
it prints between the steps and must not wait for what it does not need.

What no arithmetic holds out, said in a sentence: numbers too large, data nested too deeply.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from ...errors import ClusterDataError
from ..allocate.solution import Options
from ..explain.reasons import reasons
from .answer import answer
from .request import read_request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def oddities_refused(what: str) -> Iterator[None]:
    """Raise `ClusterDataError` about *what* where a computation inside cannot be done."""
    try:
        yield
    except RecursionError:
        raise ClusterDataError(f"{what} is nested too deeply") from None
    except (OverflowError, MemoryError) as error:
        raise ClusterDataError(f"a number in {what}, or all of it, is too large: {error}") from None


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
