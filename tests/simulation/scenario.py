# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A scenario as plain data: a cluster, the actions on it, and the expectations.

``scenario_text.py`` reads and writes scenarios, ``play.py`` plays them, ``random_scenario.py``
draws one from a seed, and ``shrink.py`` makes one shorter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired import (
    DesiredState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.simulator.settings import (
    Settings,
)

FROM, AT, ONCE, NEVER = "from", "at", "once", "never"
WHENS = (FROM, AT, ONCE, NEVER)


@dataclass(frozen=True)
class Action:
    """A fault, or an act of an operator, after *at* seconds."""

    at: float
    verb: str
    words: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Expectation:
    """What must be true: ``from`` a time on, ``at`` a time, ``once`` until a time, or ``never``."""

    when: str
    at: float
    words: tuple[str, ...]


@dataclass(frozen=True)
class Scenario:
    """A cluster, what happens to it and what is expected, for *length* seconds.

    *seed* determines all chances.  *room* has the CPUs and MiB of memory of nodes, *virtual* the
    nodes that are virtual machines.
    """

    name: str
    title: str = ""
    nodes: tuple[str, ...] = ("n1", "n2", "n3")
    settings: Settings = field(default_factory=Settings)
    desired: DesiredState = field(default_factory=DesiredState)
    room: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    actions: tuple[Action, ...] = ()
    expectations: tuple[Expectation, ...] = ()
    seed: int = 1
    length: float = 120.0
    running: bool = True
    virtual: tuple[str, ...] = ()
