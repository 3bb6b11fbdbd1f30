# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Many nodes at once: as fast as the slowest device, and one failure stops no other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, TypeVar

from ..errors import HoldfastError

T = TypeVar("T")

MOST_AT_ONCE = 128
"""Each is an agent's process of some 20 MB; nobody fences more nodes in one breath."""


@dataclass(frozen=True)
class Ends(Generic[T]):
    """What came of each name: in ``done`` what was returned, in ``failed`` the error."""

    done: Mapping[str, T]
    failed: Mapping[str, HoldfastError]


def together(
    names: Iterable[str], act: Callable[[str], T], most_at_once: int = MOST_AT_ONCE
) -> Ends[T]:
    """Call *act* with each of *names*, once, all at the same time.

    A HoldfastError is the end of that one name alone; any other error is raised once all
    are through.
    """
    each = list(dict.fromkeys(names))
    done: dict[str, T] = {}
    failed: dict[str, HoldfastError] = {}
    with ThreadPoolExecutor(max(1, min(len(each), most_at_once))) as pool:
        for name, future in [(name, pool.submit(act, name)) for name in each]:
            try:
                done[name] = future.result()
            except HoldfastError as error:
                failed[name] = error
    return Ends(done, failed)
