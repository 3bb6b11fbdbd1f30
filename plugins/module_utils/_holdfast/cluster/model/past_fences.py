# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fences of a node that have ended, and the rule by which it is left off.

A node that is fenced again and again is not powered on again.  Each cause has a count of its own:
a fence that failed, one for a service, or one for certainty says nothing of a node that dies by
itself.  A loop repeats its cause, so every loop ends; with the four causes a node is fenced at most
four times the limit, less three, before.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from itertools import chain, repeat


class FenceCause(str, enum.Enum):
    """Why a node was fenced, or that the fence is not known to have worked.

    SILENT: the node died, hung, or lost storage and network.  DEMANDED: a service could not be
    stopped there.  CERTAINTY: nothing was to be recovered from it, but an earlier fence might have
    powered it off.  UNCONFIRMED: no device confirmed it, so another proof was awaited.
    """

    SILENT = "silent"
    DEMANDED = "demanded"
    CERTAINTY = "certainty"
    UNCONFIRMED = "unconfirmed"

    @property
    def words(self) -> str:
        """The cause in a sentence that begins with how often the node was fenced."""
        return _WORDS[self]


_WORDS = {
    FenceCause.SILENT: "as it was silent",
    FenceCause.DEMANDED: "for services that could not be stopped",
    FenceCause.CERTAINTY: "as an earlier fence might have powered it off",
    FenceCause.UNCONFIRMED: "without a confirmation by its device",
}

FENCES_KEPT = 10
"""How many fences of each cause are remembered; a larger limit is never reached."""


def past_fences(times: Iterable[float], causes: Iterable[FenceCause]) -> dict[float, FenceCause]:
    """Return the cause of each fence by its time; those of an older version were silent."""
    return dict(zip(times, chain(causes, repeat(FenceCause.SILENT))))


def with_past_fence(
    fences: Mapping[float, FenceCause], at: float, cause: FenceCause
) -> dict[float, FenceCause]:
    """Return *fences* with one more; one that is there already may only become confirmed."""
    known = fences.get(at)
    if known is not None and cause is FenceCause.UNCONFIRMED:
        cause = known
    every = {**fences, at: cause}
    kept = {
        one
        for each in FenceCause
        for one in sorted(when for when, why in every.items() if why is each)[-FENCES_KEPT:]
    }
    return {one: every[one] for one in sorted(kept)}


def most_frequent(fences: Mapping[float, FenceCause], since: float) -> tuple[int, FenceCause]:
    """Return how many fences after *since* the most frequent cause has, and that cause."""
    recent = [cause for at, cause in fences.items() if at > since]
    counts = [(recent.count(cause), cause) for cause in FenceCause]
    return max(counts, key=lambda one: one[0])
