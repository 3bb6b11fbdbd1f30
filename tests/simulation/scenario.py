# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A scenario: a cluster, what is done to it when, and what must be true of it.

It is plain data.  ``scenario_text.py`` reads and writes it as text, ``play.py`` plays it,
``random_scenario.py`` makes one of a seed, and ``shrink.py`` makes one shorter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired import (
    Wanted,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.simulator.settings import (
    Settings,
)

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

    *room* is what nodes have of CPUs and MiB of memory, *virtual* are the nodes that are virtual
    machines.
    """

    name: str
    title: str = ""
    nodes: tuple[str, ...] = ("n1", "n2", "n3")
    settings: Settings = field(default_factory=Settings)
    wanted: Wanted = field(default_factory=Wanted)
    room: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    actions: tuple[Action, ...] = ()
    expectations: tuple[Expectation, ...] = ()
    seed: int = 1
    length: float = 120.0
    running: bool = True
    virtual: tuple[str, ...] = ()
