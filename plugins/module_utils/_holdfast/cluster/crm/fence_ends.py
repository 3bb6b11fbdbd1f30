# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""When the end of a fence counts: a proof is held back while the dead node may still be writing.

A node that is fenced because a service failed to stop was not silent before.  A device may answer
sooner than the node's next heartbeat is due, so silence since the fence alone proves nothing.  Nor
does an answer on the network from before the fence ended.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..model.observed import FenceReport
from .effects import FenceEnd, Observation

ANSWER_WAIT = 1.0
"""Seconds without an answer after which a node that is asked does not answer."""

ROUND = 0.5
"""Seconds between two rounds of a daemon."""


def just_answered(observation: Observation, node: str, now: float) -> bool:
    """Return whether *node* answered so recently that it counts as answering."""
    answered = observation.answered.get(node)
    return answered is not None and now - answered <= ANSWER_WAIT


def sort_ends(
    ends: Iterable[FenceEnd], observation: Observation, suspect_after: float, now: float
) -> tuple[list[FenceReport], list[FenceEnd]]:
    """Return the reports of the fences that count now, and the ends that are held back.

    Silence is known only until the look began: this process may have been held up in it.
    """
    reports: list[FenceReport] = []
    held_back: list[FenceEnd] = []
    for end in ends:
        node = end.report.node
        changed = observation.changed[node]
        answers = just_answered(observation, node, now)
        if not end.report.confirmed:
            reports.append(end.report)
        elif changed > end.ended + ROUND or (answers and now - end.ended > ANSWER_WAIT):
            reports.append(replace(end.report, quiet=False))
        elif now - observation.took - changed >= suspect_after and not answers:
            reports.append(end.report)
        else:
            held_back.append(end)
    return reports, held_back
