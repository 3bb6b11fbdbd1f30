# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A scenario: a cluster, what is done to it when, and what must be true of it.

It is plain data.  ``scenario_text.py`` reads and writes it as text, ``play.py`` plays it,
``random_scenario.py`` makes one of a seed, and ``shrink.py`` makes one shorter.

The times and limits that a simulated cluster is built with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..cluster.model.desired import Wanted
from ..cluster.model.observed import Figures, Timing


@dataclass(frozen=True)
class Settings:
    """What is the same for the whole cluster; all times are seconds.

    *watchdogs*: each node has one, so that a host lease that ran out proves its node dead.
    A host lease that was not renewed for *lease_fails* stops the node's services, after
    *watchdog_fires* the node is reset, after *lease_dead* it counts as dead; the defaults
    are sanlock's for an I/O timeout of 2 s and a watchdog timeout of 10 s (8 * 2 and
    8 * 2 + 10).  *boot* is how long a machine takes to come up, *off_at_boot* whether all
    begin to come up only then, *fence* and *agent* the shortest and longest time of an
    action of a fence device or a resource agent.  *even_for* is for how long a wall clock
    must not have jumped before an expiry is believed.
    """

    watchdogs: bool = True
    lease_fails: float = 16.0
    watchdog_fires: float = 24.0
    lease_dead: float = 26.0
    boot: float = 10.0
    fence: tuple[float, float] = (1.0, 3.0)
    agent: tuple[float, float] = (0.2, 2.0)
    even_for: float = 60.0
    power_on_works: float = 1.0
    timing: Timing = field(default_factory=Timing)


RENEWAL = 1.0
"""Seconds between two renewals of a host lease."""

ROUND = 0.5
HEARTBEAT_ROUNDS = 2
"""A daemon looks each half second, and its heartbeat is written every second round."""

MONITOR_TAKES = 0.1
"""Seconds that a look at a service takes when nothing is wrong with its agent."""


FROM, AT, ONCE, NEVER = "from", "at", "once", "never"
WHENS = (FROM, AT, ONCE, NEVER)


@dataclass(frozen=True)
class Action:
    """Something that is done at *at* seconds: a fault, or what an operator does."""

    at: float
    verb: str
    words: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Expectation:
    """What must be true: ``from`` a time to the end, ``at`` it, ``once`` by it, or ``never``."""

    when: str
    at: float
    words: tuple[str, ...]


@dataclass(frozen=True)
class Scenario:
    """A cluster and its fate; *length* seconds long, all chances decided by *seed*.

    *virtual* are the nodes that are virtual machines.
    """

    name: str
    title: str = ""
    nodes: tuple[str, ...] = ("n1", "n2", "n3")
    settings: Settings = field(default_factory=Settings)
    wanted: Wanted = field(default_factory=Wanted)
    figures: Figures | None = None
    actions: tuple[Action, ...] = ()
    expectations: tuple[Expectation, ...] = ()
    seed: int = 1
    length: float = 120.0
    running: bool = True
    virtual: tuple[str, ...] = ()
