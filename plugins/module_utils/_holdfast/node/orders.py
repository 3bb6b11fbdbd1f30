# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Carrying out the manager's orders: fences and switching on, each in a thread of its own.

A fence device may take a minute; the manager's rounds go on meanwhile.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from ..errors import HoldfastError
from ..fence import prove
from ..fence.kinds import VERIFIED
from ..fence.topology import FenceConfiguration, load_fence_configuration
from ..manager.seen import FenceReport, PowerReport
from .configuration import NodeConfiguration

T = TypeVar("T")


@dataclass(frozen=True)
class FenceEnd:
    """A fence that ended, with the monotonic seconds at which it was sent and ended."""

    report: FenceReport
    sent: float
    ended: float


class Orders:
    """Runs fences and switchings-on, and hands back how they ended."""

    def __init__(self, configuration: NodeConfiguration, wake: Callable[[], None]) -> None:
        """Remember where the fence configuration is; it is read anew for each order."""
        self._configuration = configuration
        self._wake = wake
        self._fences: queue.SimpleQueue[FenceEnd] = queue.SimpleQueue()
        self._powers: queue.SimpleQueue[PowerReport] = queue.SimpleQueue()
        self._fencing: set[str] = set()

    def fence(self, node: str) -> None:
        """Begin to switch a node off and prove it; one at a time for each node."""
        if node not in self._fencing:
            self._fencing.add(node)
            threading.Thread(target=self._fence, args=(node,), daemon=True).start()

    def power_on(self, node: str) -> None:
        """Begin to switch a node on."""
        threading.Thread(target=self._power_on, args=(node,), daemon=True).start()

    def fencing(self) -> frozenset[str]:
        """Return the nodes whose fence is under way, or whose end was not taken yet."""
        return frozenset(self._fencing)

    def take_fences(self) -> list[FenceEnd]:
        """Return the fences that ended since the last call."""
        ended = _drain(self._fences)
        self._fencing.difference_update(end.report.node for end in ended)
        return ended

    def take_powers(self) -> list[PowerReport]:
        """Return the switchings-on that ended since the last call."""
        return _drain(self._powers)

    def _fence(self, node: str) -> None:
        sent, sent_wall = time.monotonic(), time.time()
        confirmed, text = False, ""
        try:
            result = prove.power_off(self._topology(), node)
            confirmed = result.confirmed and result.evidence == VERIFIED
            text = result.reason
        except HoldfastError as error:
            text = str(error)
        except Exception as error:
            text = f"the fence failed unexpectedly: {error!r}"
        ended = time.monotonic()
        report = FenceReport(node, confirmed, text, sent_wall, sent_wall + ended - sent)
        self._fences.put(FenceEnd(report, sent, ended))
        self._wake()

    def _power_on(self, node: str) -> None:
        try:
            result = prove.power_on(self._topology(), node)
            report = PowerReport(node, result.confirmed, result.reason)
        except HoldfastError as error:
            report = PowerReport(node, False, str(error))
        except Exception as error:
            report = PowerReport(node, False, f"switching on failed unexpectedly: {error!r}")
        self._powers.put(report)
        self._wake()

    def _topology(self) -> FenceConfiguration:
        return load_fence_configuration(str(self._configuration.fence_configuration))


def _drain(waiting: queue.SimpleQueue[T]) -> list[T]:
    """Return all that is in a queue, without waiting."""
    ended: list[T] = []
    while True:
        try:
            ended.append(waiting.get_nowait())
        except queue.Empty:
            return ended
