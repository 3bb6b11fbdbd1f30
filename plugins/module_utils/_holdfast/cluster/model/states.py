# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The states of a service, and one table of what each of them means."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass


class ServiceState(str, enum.Enum):
    """The states of a service, as Proxmox VE's HA manager names them where it has them.

    probe (ours): where a newly declared service runs already is being asked.
    request_start: its node was told to start it; request_start_balance: it starts on its
    target once its last node has made sure that nothing of it is there; migrate: it goes
    over to another node while it runs; relocate: it is stopped here to be started there;
    fence: its node is to be fenced; recovery: its node is proved dead; freeze: left as it
    is, while its node's LRM is away or the cluster is disarmed.
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
    """What holds for a service in one state.

    *active*: it is, or may be, active on the node it names.  *local*: the LRM of that node has it
    in its care.  *stops*: its command asks that LRM for a stop; in error, for another try of it.
    *moving*: it leaves its node for its target.  *overlay*: the state only lies over another one,
    to which the service returns.  *freezable*: it can be left alone as it is.  *changing*: it
    leaves the state without an operator.  *anywhere*: once it was left to its operator, it may run
    on any node.  *movable*: a request to move is heard, at once or once it runs.  *progress* is
    what is being done, in words.
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
    ServiceState.PROBE: Traits(
        changing=True, anywhere=True, progress="being looked for on all nodes"
    ),
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
"""Each state with its traits; no other file keeps a list of states of its own."""


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
"""States that soon end in a movable one, such as a return from a maintenance."""
