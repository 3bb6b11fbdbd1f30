# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Carrying out the manager's orders: fencing and powering on, each in its own thread.

A fence device may take a minute, and a node's watchdog another; the manager's turns go on.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from ...cluster.crm.effects import FenceEnd
from ...cluster.model.observed import FenceReport, PowerReport
from ...cluster.model.state import FENCE_ARRIVES
from ...errors import HoldfastError
from ...fence import prove
from ...fence.conversation import TOOLS, FenceTools
from ...fence.metadata import VERIFIED
from ...fence.topology import FenceConfiguration, load_fence_configuration
from ..configuration import NodeConfiguration

T = TypeVar("T")


class Orders:
    """Runs fences and power-ons, and returns how they ended."""

    def __init__(
        self,
        configuration: NodeConfiguration,
        wake: Callable[[], None],
        tools: FenceTools = TOOLS,
    ) -> None:
        """Prepare for orders; the fence configuration is read again for each."""
        self._configuration = configuration
        self._wake = wake
        self._tools = tools
        self._fences: queue.SimpleQueue[FenceEnd] = queue.SimpleQueue()
        self._powers: queue.SimpleQueue[PowerReport] = queue.SimpleQueue()
        self._fencing: set[str] = set()

    def fence(self, node: str) -> None:
        """Begin to power a node off and prove it; one fence at a time for each node."""
        if node not in self._fencing:
            self._fencing.add(node)
            threading.Thread(target=self._fence, args=(node,), daemon=True).start()

    def power_on(self, node: str) -> None:
        """Begin to power a node on."""
        threading.Thread(target=self._power_on, args=(node,), daemon=True).start()

    def fencing(self) -> frozenset[str]:
        """Return the nodes whose fence is under way, or ended and was not taken yet."""
        return frozenset(self._fencing)

    def take_fences(self) -> list[FenceEnd]:
        """Return the fences that ended since the last call."""
        ended = _drain(self._fences)
        self._fencing.difference_update(end.report.node for end in ended)
        return ended

    def take_powers(self) -> list[PowerReport]:
        """Return the power-ons that ended since the last call."""
        return _drain(self._powers)

    def _fence(self, node: str) -> None:
        sent, sent_wall = self._tools.clock(), time.time()
        confirmed, verified, text = False, False, ""
        try:
            result = prove.power_off(self._topology(), node, self._tools, FENCE_ARRIVES)
            confirmed, text = self._await_proof(result)
            verified = result.evidence == VERIFIED
        except HoldfastError as error:
            text = str(error)
        except Exception as error:
            text = f"the fence failed unexpectedly: {error!r}"
        ended = self._tools.clock()
        report = FenceReport(
            node, confirmed, text, sent_wall, sent_wall + ended - sent, verified=verified
        )
        self._fences.put(FenceEnd(report, sent, ended))
        self._wake()

    def _await_proof(self, result: prove.FenceResult) -> tuple[bool, str]:
        """Return whether *result* is proof, and the reason for people.

        An assumed power-off is proof after the wait that the operator configured for the node's
        watchdog, which passes here.
        """
        if not result.confirmed or result.confirmed_at is None:
            return False, result.reason
        if result.proof_at is None:
            return False, f"{result.reason}, which never is proof"
        given = result.proof_at - result.confirmed_at
        if given > 0:
            self._tools.sleep(max(0.0, result.proof_at - self._tools.clock()))
            return True, f"{result.reason}, and its watchdog had {given:g} s since"
        return True, result.reason

    def _power_on(self, node: str) -> None:
        try:
            result = prove.power_on(self._topology(), node, self._tools)
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
    """Return all items of a queue, without waiting."""
    ended: list[T] = []
    while True:
        try:
            ended.append(waiting.get_nowait())
        except queue.Empty:
            return ended
