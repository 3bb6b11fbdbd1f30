# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The simplest placement: the node that has the fewest services, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def rank(candidates: Iterable[str], load: Mapping[str, int]) -> list[str]:
    """Return *candidates* with the least loaded first, by name where the load is equal.

    *load* is the number of services that run, start or are on their way to each
    node.  The cost is that of sorting the candidates.
    """
    return sorted(candidates, key=lambda node: (load.get(node, 0), node))
