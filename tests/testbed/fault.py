# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a fault of a soak is, and the faults that both labs have.

The full lists are in ``testbed.soak_faults`` and ``vmlab.soak``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from enum import Enum
from typing import Any

from testbed.deployment import Deployment
from testbed.node import Node, wait_until
from testbed.services import install_program

ANY_DURATION = math.inf
"""``harmless_below`` of a fault that never justifies a fence or a reset."""

WITHOUT_STORAGE = 10.0
"""Seconds for which a node without storage must not be fenced.  It answers on the network until its
host lease fails, 16 s after the last renewal.  Renewals are 4 s apart."""


class Reach(Enum):
    """Which nodes a fault affects."""

    NODE = "one node"
    STORAGE = "the storage of all nodes"
    """Each node may be reset by its own watchdog, but no node may be fenced."""
    SITE = "all nodes"


@dataclass(frozen=True)
class Fault:
    """Something that a soak does to one node or all nodes, for up to *longest* seconds.

    *bound* is the longest outage of a service, in seconds, that the fault explains on a busy
    machine.  If the fault *isolates_clients*, its own duration is added.  *begin* and *end* start
    and end the fault, *during* is active between the two.  A fault shorter than *harmless_below*
    seconds does not justify a fence or a reset.  A *delayed* fault may take effect only after the
    cluster is healthy again, so *bound* is also added to what the next faults explain.
    """

    name: str
    bound: float
    longest: float
    begin: Callable[[Any, Any], None] = lambda deployment, node: None
    end: Callable[[Any, Any], None] = lambda deployment, node: None
    during: Callable[[Any], AbstractContextManager[object]] = lambda node: nullcontext()
    reach: Reach = Reach.NODE
    harmless_below: float = 0.0
    isolates_clients: bool = False
    delayed: bool = False

    def is_harmless(self, duration: float) -> bool:
        """Return whether the fault, for *duration* seconds, justifies no fence and no reset."""
        return duration < self.harmless_below


def thaw(_deployment: Deployment, node: Node) -> None:
    """Let a frozen node continue, unless it was fenced meanwhile."""
    try:
        node.thaw()
    except ProcessLookupError:
        return


def cut_off(name: str, way: str, bound: float, longest: float = 40.0) -> Fault:
    """Return the fault that cuts a node's network cable one way or both."""
    return Fault(
        name,
        bound,
        longest,
        lambda deployment, node: node.cut_network(way),
        lambda deployment, node: node.heal_network(),
        harmless_below=ANY_DURATION,
        isolates_clients=True,
    )


def kill(unit: str, bound: float, **more: Any) -> Fault:
    """Return the fault that kills the main process of a systemd unit."""
    name = unit.removeprefix("holdfast-")
    shown = name.upper() if name != unit else name
    return Fault(
        f"{shown} killed",
        bound,
        0.0,
        lambda deployment, node: node.kill(f"{unit}.service"),
        **more,
    )


def disk_full(bound: float) -> Fault:
    """Return the fault that fills a node's own disk."""
    return Fault(
        "disk full",
        bound,
        20.0,
        lambda deployment, node: node.fill_disk(),
        lambda deployment, node: node.free_disk(),
        harmless_below=ANY_DURATION,
    )


def reinstalled(
    bound: float, attach: Callable[[Any, Any], None] = lambda deployment, node: None
) -> Fault:
    """Return the fault that replaces a node's disk by a blank one.

    It ends when ``deploy`` has run again, with the old name and host id.  *attach* connects the new
    system to the shared storage.
    """

    def begin(_deployment: Deployment, node: Node) -> None:
        node.cut_power()
        node.reinstall()

    def end(deployment: Deployment, node: Node) -> None:
        def has_no_service() -> bool:
            return not deployment.status()["nodes"][node.name]["services"]

        wait_until(has_no_service, bound, f"{node.name} without a service")
        node.switch_on()
        node.wait_booted()
        attach(deployment, node)
        install_program(node)
        played = deployment.play("deploy")
        assert played.status == 0, f"deploy failed after a reinstallation: {played.output[-3000:]}"

    return Fault("node reinstalled", bound, 20.0, begin, end)
