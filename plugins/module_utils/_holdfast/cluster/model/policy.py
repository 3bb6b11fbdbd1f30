# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster's policy: shutdown of a node, placement, balancing and workers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from ... import names
from ...errors import InputError

CONDITIONAL = "conditional"
FREEZE = "freeze"
FAILOVER = "failover"
MIGRATE = "migrate"
SHUTDOWN_POLICIES = (CONDITIONAL, FREEZE, FAILOVER, MIGRATE)

COUNT = "count"
LOAD = "load"
SCORE = "score"
PLACEMENTS = (COUNT, LOAD, SCORE)

MOST_CPUS_PER_CORE = 4.0
"""The number of declared CPUs that fit on each CPU of a node (Ganeti 3.1's standard
``vcpu-ratio``)."""


@dataclass(frozen=True)
class Policy:
    """The cluster's policy; the defaults are those of Proxmox VE's HA manager.

    *shutdown* is what happens to services when their node is shut down: ``migrate`` moves them away
    first, ``failover`` stops them for recovery elsewhere, ``freeze`` stops them and leaves them
    alone, ``conditional`` is ``freeze`` for a reboot and ``failover`` for a poweroff.  Services not
    moved within *shutdown_timeout* seconds are stopped.  *placement* compares nodes by the number
    of services, by their load of CPU and memory, or by the score of Ganeti's allocator.
    *rebalance_on_start* allows a start on a better node than the last one.  *rebalance* moves
    services if the imbalance was above *rebalance_threshold* for *rebalance_hold* rounds and a move
    reduces it by at least the share *rebalance_margin*.  A node runs at most *max_workers* agents
    at a time.
    """

    shutdown: str = CONDITIONAL
    shutdown_timeout: float = 300.0
    placement: str = COUNT
    rebalance_on_start: bool = False
    rebalance: bool = False
    rebalance_threshold: float = 0.3
    rebalance_hold: int = 3
    rebalance_margin: float = 0.1
    max_workers: int = 4


_CHOICES = {"shutdown": SHUTDOWN_POLICIES, "placement": PLACEMENTS}
_NUMBERS = {
    "shutdown_timeout": (0.0, 86400.0, "seconds"),
    "rebalance_threshold": (0.0, 100.0, "an imbalance"),
    "rebalance_hold": (1.0, 1000.0, "a whole number of rounds"),
    "rebalance_margin": (0.0, 1.0, "a share"),
    "max_workers": (1.0, 64.0, "a whole number of workers"),
}
"""The numbers of a policy: minimum, maximum, and unit."""


def policy_document(policy: Policy) -> dict[str, Any]:
    """Return a policy as plain data."""
    return asdict(policy)


def policy_from_document(row: object) -> Policy:
    """Return the checked policy of a document or of module options, with defaults.

    Raises ``InputError`` naming the wrong option.
    """
    if not isinstance(row, Mapping):
        raise InputError("policy", row, "a dictionary")
    given: dict[str, Any] = {}
    for item in fields(Policy):
        value = row.get(item.name)
        if value is not None:
            given[item.name] = _checked(item.name, value)
    return Policy(**given)


def _checked(name: str, value: Any) -> Any:
    kind = type(getattr(Policy, name))
    if name in _CHOICES:
        if value not in _CHOICES[name]:
            raise InputError(name, value, f"one of {', '.join(_CHOICES[name])}")
        return value
    if name in _NUMBERS:
        number = names.number(value, name, *_NUMBERS[name])
        if kind is int and number != int(number):
            raise InputError(name, value, _NUMBERS[name][2])
        return kind(number)
    if not isinstance(value, bool):
        raise InputError(name, value, "true or false")
    return value
