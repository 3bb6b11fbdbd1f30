# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Playing a cycle on a node: each effect is performed at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ...cluster.model.effects import Clocks, Cycle, ForgetRepeated, Log, ReadClocks
from ...errors import HoldfastError
from ..log import Repeating, log

T = TypeVar("T")

Performers = Mapping[type, Callable[[Any], Any]]
"""What performs an effect, by the effect's type; its result or error goes back to the cycle."""


def play(cycle: Cycle[T], performers: Performers) -> T:
    """Perform all effects of *cycle* and return its result.

    An error of the library is thrown into the cycle; any other error ends the process.
    """
    try:
        effect = next(cycle)
        while True:
            try:
                result = performers[type(effect)](effect)
            except HoldfastError as error:
                effect = cycle.throw(error)
            else:
                effect = cycle.send(result)
    except StopIteration as end:
        returned: T = end.value
        return returned


def read_clocks() -> Clocks:
    """Return all clocks of this node."""
    boottime = time.clock_gettime(time.CLOCK_BOOTTIME)
    return Clocks(time.monotonic(), time.time(), boottime)


def clocks_and_journal(
    clocks: Callable[[], Clocks], repeating: Repeating
) -> dict[type, Callable[[Any], Any]]:
    """Return what performs the effects that all cycles have."""
    return {
        ReadClocks: lambda _: clocks(),
        Log: lambda line: _write_line(line, repeating),
        ForgetRepeated: lambda _: repeating.forget(),
    }


def _write_line(line: Log, repeating: Repeating) -> None:
    if line.repeated:
        repeating.log(line.text, node=line.node)
        return
    log(
        line.text,
        node=line.node,
        service=line.service,
        uid=line.uid,
        epoch=line.epoch,
        reason=line.reason,
    )
