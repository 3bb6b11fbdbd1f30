# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The LRM's workers: a few threads that carry out jobs, starts and stops before monitors."""

from __future__ import annotations

import itertools
import queue
import threading
from collections.abc import Callable
from typing import Optional

from ...cluster.model.jobs import Job, JobEnd, JobKind, Sight
from ...cluster.model.report import Outcome

_LATER = frozenset({JobKind.MONITOR, JobKind.PROBE})
_NOW = 0


class Workers:
    """Threads that never hold up the LRM's loop; a hung agent takes one of them at most."""

    def __init__(
        self, carry_out: Callable[[Job], JobEnd], wake: Callable[[], None], number: int = 4
    ) -> None:
        """Start *number* threads; *wake* is called from them whenever a job has ended."""
        self._carry_out = carry_out
        self._wake = wake
        self._waiting: queue.PriorityQueue[tuple[int, int, Optional[Job]]] = queue.PriorityQueue()
        self._ended: queue.SimpleQueue[JobEnd] = queue.SimpleQueue()
        self._order = itertools.count()
        self._busy: set[str] = set()
        self._number = 0
        self.resize(number)

    def resize(self, number: int) -> None:
        """Work with *number* threads from now on; one too many ends after what it has in hand."""
        while self._number < number:
            self._number += 1
            threading.Thread(target=self._work, daemon=True).start()
        while self._number > number:
            self._number -= 1
            self._waiting.put((_NOW, next(self._order), None))

    def begin(self, job: Job) -> None:
        """Queue a job; its service is busy until its end was taken."""
        self._busy.add(job.service.id)
        self._waiting.put((_NOW + 1 + (job.kind in _LATER), next(self._order), job))

    def take_ended(self) -> list[JobEnd]:
        """Return the jobs that ended since the last call; their services are free again."""
        ended: list[JobEnd] = []
        while True:
            try:
                end = self._ended.get_nowait()
            except queue.Empty:
                return ended
            self._busy.discard(end.job.service.id)
            ended.append(end)

    def busy(self) -> frozenset[str]:
        """Return the ids of the services that have a job waiting or in hand."""
        return frozenset(self._busy)

    def _work(self) -> None:
        while True:
            job = self._waiting.get()[2]
            if job is None:
                return
            try:
                end = self._carry_out(job)
            except Exception as error:
                # Nothing is known of the service then, least of all that it is stopped.
                text = f"the worker failed: {error!r}"
                end = JobEnd(job, Outcome.BLOCKED, Sight.PARTLY, text=text)
            self._ended.put(end)
            self._wake()
