# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""``holdfast balance --budget``: search a better plan within a budget of time."""

from __future__ import annotations

from time import monotonic

from ....hints import Callable
from ....placement.annealing import Budget
from ....placement.balance.improve import improve
from ....placement.balance.search import PlanLimits
from ....placement.balance.state import MoveLimits, Plan
from ....placement.model.cluster import Cluster
from ...streams import Progress
from .search_options import Signals, say_how_it_ended, watch_of

Question = tuple[Cluster, list[int], MoveLimits, PlanLimits, Callable[[str], bool]]
"""The cluster, its nodes, what may move, the limits of the plan, and which instances may move."""


def improved(question: Question, plan: Plan, seconds: float, seed: int, progress: Progress) -> Plan:
    """Return a better plan than *plan*, or *plan*; SIGINT and SIGTERM end the search.

    It takes about so many *seconds*.
    """
    budget = Budget(seconds, monotonic)
    watch = watch_of(progress, "score", ".6f")
    with Signals() as signals:
        best = improve(*question, plan, seed, budget, signals.caught, watch)
    say_how_it_ended(signals.caught(), best.by_time, "plan")
    return best
