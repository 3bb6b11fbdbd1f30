# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The states of a service, and a table of their properties."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass


class ServiceState(str, enum.Enum):
    """The states of a service, with the names of Proxmox VE's HA manager where it has them.

    probe (ours): every node is asked whether the service runs there. request_start: its node has
    the command to start it. request_start_balance: it starts on its target once its last node has
    confirmed that it is not there. migrate: it is being live-migrated. relocate: it is stopped to
    be started elsewhere. fence: its node is being fenced. recovery: its node is confirmed dead.
    freeze: it is left alone while its node's LRM restarts or the cluster is disarmed.
    """

    PROBE = "probe"
    STOPPED = "stopped"
    REQUEST_START = "request_start"
    REQUEST_START_BALANCE = "request_start_balance"
    STARTED = "started"
    REQUEST_STOP = "request_stop"
    RELOCATE = "relocate"
    MIGRATE = "migrate"
    FENCE = "fence"
    RECOVERY = "recovery"
    FREEZE = "freeze"
    ERROR = "error"


@dataclass(frozen=True)
class Traits:
    """The properties of a state.

    *active*: the service is, or may be, active on its node.  *local*: that node's LRM manages it.
    *stops*: its command orders a stop; in error, another attempt.  *moving*: it leaves its node for
    its target.  *overlay*: the state covers another one, to which the service returns.
    *freezable*: it can be frozen.  *changing*: it leaves the state without an operator.
    *anywhere*: once unmanaged, it may run on any node.  *movable*: a request to move is accepted.
    *progress* is what is being done, in words.
    """

    active: bool = False
    local: bool = False
    stops: bool = False
    moving: bool = False
    overlay: bool = False
    freezable: bool = False
    changing: bool = False
    anywhere: bool = False
    movable: bool = False
    progress: str = ""


TRAITS = {
    ServiceState.PROBE: Traits(changing=True, anywhere=True, progress="being probed on all nodes"),
    ServiceState.STOPPED: Traits(freezable=True, movable=True),
    ServiceState.REQUEST_START: Traits(
        active=True,
        local=True,
        freezable=True,
        changing=True,
        movable=True,
        progress="being started",
    ),
    ServiceState.REQUEST_START_BALANCE: Traits(
        active=True,
        local=True,
        stops=True,
        moving=True,
        changing=True,
        progress="being started elsewhere",
    ),
    ServiceState.STARTED: Traits(active=True, local=True, freezable=True, movable=True),
    ServiceState.REQUEST_STOP: Traits(
        active=True, local=True, stops=True, freezable=True, changing=True, progress="being stopped"
    ),
    ServiceState.RELOCATE: Traits(
        active=True, local=True, stops=True, moving=True, changing=True, progress="being moved"
    ),
    ServiceState.MIGRATE: Traits(
        active=True, local=True, moving=True, changing=True, progress="being moved while it runs"
    ),
    ServiceState.FENCE: Traits(active=True, local=True, overlay=True, changing=True, anywhere=True),
    ServiceState.RECOVERY: Traits(active=True, changing=True, anywhere=True),
    ServiceState.FREEZE: Traits(
        active=True, local=True, overlay=True, anywhere=True, progress="left alone for the moment"
    ),
    ServiceState.ERROR: Traits(active=True, local=True, stops=True, anywhere=True),
}
"""The properties of each state.  No other file lists states."""


def _states(has: Callable[[Traits], bool]) -> frozenset[ServiceState]:
    return frozenset(state for state, traits in TRAITS.items() if has(traits))


ACTIVE = _states(lambda one: one.active)
LOCAL = _states(lambda one: one.local)
STOPS = _states(lambda one: one.stops)
MOVING = _states(lambda one: one.moving)
HELD = _states(lambda one: one.overlay)
FREEZABLE = _states(lambda one: one.freezable)
CHANGING = _states(lambda one: one.changing)
ANYWHERE = _states(lambda one: one.anywhere)
MOVABLE = _states(lambda one: one.movable)
PASSING = _states(lambda one: one.changing and not one.movable and bool(one.progress))
"""States that soon end in a movable one, such as a return from maintenance."""
