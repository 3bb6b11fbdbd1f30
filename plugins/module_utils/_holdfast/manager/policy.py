# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the cluster behaves as a whole: at a node's shutdown, in placing, and in rebalancing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ..errors import InputError

CONDITIONAL = "conditional"
FREEZE = "freeze"
FAILOVER = "failover"
MIGRATE = "migrate"
SHUTDOWN_POLICIES = (CONDITIONAL, FREEZE, FAILOVER, MIGRATE)

COUNT = "count"
LOAD = "load"
PLACEMENTS = (COUNT, LOAD)


@dataclass(frozen=True)
class Policy:
    """The cluster's own choices; the defaults are those of Proxmox VE's HA manager.

    *shutdown* is what a node does with its services when it is shut down: ``migrate``
    moves them away first, ``failover`` stops them for others to recover, ``freeze`` stops
    them and nobody touches them, ``conditional`` is ``freeze`` for a reboot and
    ``failover`` for a poweroff.  What could not be moved away within *shutdown_timeout*
    seconds is stopped.  *placement* compares nodes by the number of services,
    or by their load of CPU and memory.  *rebalance_on_start* gives up a service's last
    node for a better one when it is started.  *rebalance* moves services by itself when
    the imbalance was above *threshold* for *hold* rounds, if a move takes away at least
    the share *margin* of it.
    """

    shutdown: str = CONDITIONAL
    shutdown_timeout: float = 300.0
    placement: str = COUNT
    rebalance_on_start: bool = False
    rebalance: bool = False
    threshold: float = 0.3
    hold: int = 3
    margin: float = 0.1


def policy_document(policy: Policy) -> dict[str, Any]:
    """Return a policy as plain data."""
    return asdict(policy)


def policy_from_document(row: Mapping[str, Any]) -> Policy:
    """Read back what ``policy_document`` made; what is missing has its default."""
    default = Policy()
    policy = Policy(
        shutdown=str(row.get("shutdown", default.shutdown)),
        shutdown_timeout=float(row.get("shutdown_timeout", default.shutdown_timeout)),
        placement=str(row.get("placement", default.placement)),
        rebalance_on_start=bool(row.get("rebalance_on_start", default.rebalance_on_start)),
        rebalance=bool(row.get("rebalance", default.rebalance)),
        threshold=float(row.get("threshold", default.threshold)),
        hold=int(row.get("hold", default.hold)),
        margin=float(row.get("margin", default.margin)),
    )
    if policy.shutdown not in SHUTDOWN_POLICIES:
        raise InputError("shutdown", policy.shutdown, f"one of {', '.join(SHUTDOWN_POLICIES)}")
    if policy.placement not in PLACEMENTS:
        raise InputError("placement", policy.placement, f"one of {', '.join(PLACEMENTS)}")
    return policy
