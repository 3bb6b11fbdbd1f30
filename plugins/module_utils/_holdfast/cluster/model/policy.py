# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a cluster behaves as a whole: at a node's shutdown, in placing, rebalancing and working."""

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
"""So many declared CPUs for each of a node's fit there (Ganeti 3.1's standard ``vcpu-ratio``)."""


@dataclass(frozen=True)
class Policy:
    """The cluster's own choices; the defaults are those of Proxmox VE's HA manager.

    *shutdown* is what a node does with its services when it is shut down: ``migrate``
    moves them away first, ``failover`` stops them for others to recover, ``freeze`` stops
    them and nobody touches them, ``conditional`` is ``freeze`` for a reboot and
    ``failover`` for a poweroff.  What could not be moved away within *shutdown_timeout*
    seconds is stopped.  *placement* compares nodes by the number of services, by their
    load of CPU and memory, or by the score of Ganeti's allocator.  *rebalance_on_start*
    gives up a service's last node for a better one when it is started.  *rebalance* moves
    services by itself when the imbalance was above *rebalance_threshold* for
    *rebalance_hold* rounds, if a move takes away at least the share *rebalance_margin*.
    A node has at most *max_workers* agents at work at a time.
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
"""The numbers of a policy: the least, the most, and what they are."""


def policy_document(policy: Policy) -> dict[str, Any]:
    """Return a policy as plain data."""
    return asdict(policy)


def policy_from_document(row: Mapping[str, Any]) -> Policy:
    """Return the checked policy of a document or of module options; the rest has its default.

    Raises ``InputError`` naming the option that is wrong.
    """
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
