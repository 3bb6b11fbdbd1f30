# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""One session at a time for each device, one run for equal requests, and many nodes at once.

Management boards and outlets fail a second session, and two requests to switch the same node off
are one.  Both hold for all threads of a process: the manager's fences, or all nodes of one task.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ..errors import FenceError, HoldfastError

T = TypeVar("T")

LONGEST_WAIT = 600.0
"""Seconds that a request waits for its device, or for an equal request, before it fails."""


@dataclass(frozen=True)
class _Running:
    request: object
    future: Future[Any]


class Turns:
    """One action at a time for each device, one run for requests that are the same."""

    def __init__(self, longest_wait: float = LONGEST_WAIT) -> None:
        """Start with no device busy; waiting for one fails after *longest_wait* seconds."""
        self._longest_wait = longest_wait
        self._guard = threading.Lock()
        self._devices: dict[object, threading.Lock] = {}
        self._running: list[_Running] = []

    @contextmanager
    def turn(self, device: object, name: str, patience: float = math.inf) -> Iterator[None]:
        """Hold *device* (its identity) for one action.

        Raises FenceError with its *name* when it stays busy, at the latest after *patience*
        seconds.
        """
        longest = min(self._longest_wait, patience)
        with self._guard:
            lock = self._devices.setdefault(device, threading.Lock())
        if not lock.acquire(timeout=longest):
            raise FenceError(
                f"The fence device {name} was busy with others for {longest:g} seconds."
            )
        try:
            yield
        finally:
            lock.release()

    def joined(self, request: object, act: Callable[[], T]) -> T:
        """Return the result of *act*, or of an equal *request* that is under way.

        Raises the error of *act*, and FenceError when the other one does not end.
        """
        with self._guard:
            other = next((one for one in self._running if one.request == request), None)
            if other is None:
                mine = _Running(request, Future())
                self._running.append(mine)
        if other is not None:
            if not wait([other.future], timeout=self._longest_wait).done:
                raise FenceError(
                    f"The same request was under way for {self._longest_wait:g} seconds already."
                )
            shared: T = other.future.result()
            return shared
        try:
            mine.future.set_result(act())
        except BaseException as error:
            mine.future.set_exception(error)
        finally:
            with self._guard:
                # By identity: an equal one can only have come after this one was taken out.
                self._running = [one for one in self._running if one is not mine]
        result: T = mine.future.result()
        return result


TURNS = Turns()
"""The turns of this process."""

Answer = TypeVar("Answer")

MOST_AT_ONCE = 128
"""Each is an agent's process of some 20 MB."""


@dataclass(frozen=True)
class Ends(Generic[Answer]):
    """The result of each name in ``done``, or its error in ``failed``."""

    done: Mapping[str, Answer]
    failed: Mapping[str, HoldfastError]


def together(
    names: Iterable[str], act: Callable[[str], Answer], most_at_once: int = MOST_AT_ONCE
) -> Ends[Answer]:
    """Call *act* once with each of *names*, all at the same time.

    A HoldfastError stops no other name; any other error is raised once all have ended.
    """
    each = list(dict.fromkeys(names))
    done: dict[str, Answer] = {}
    failed: dict[str, HoldfastError] = {}
    with ThreadPoolExecutor(max(1, min(len(each), most_at_once))) as pool:
        for name, future in [(name, pool.submit(act, name)) for name in each]:
            try:
                done[name] = future.result()
            except HoldfastError as error:
                failed[name] = error
    return Ends(done, failed)
