# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Playing a cycle on a node: each effect is performed at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ...cluster.model.effects import Cycle
from ...errors import HoldfastError

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
