# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A look at the storage that ends within a few seconds, though the storage may not answer.

For whoever must not hang with the storage: metrics, monitoring, and people who look.

The cluster as it is now, or within a few seconds that its storage does not answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...errors import StorageError
from ...node.configuration import NodeConfiguration
from ...process.apart import TimeUpError, run_apart
from .status import read_status

LONGEST = 6.0
"""Seconds for a look at the storage, which takes a fraction of one even at hundreds of nodes.

With the time to end one that hangs it is less than the 10 s after which many a monitoring gives up.
"""

LOCK = "status.lock"
"""In the node's own folder: held by the process that looks, so that not many hang there."""


def in_time(configuration: NodeConfiguration, read: Callable[[], Any]) -> Any:
    """Return what *read* finds on the storage, which has to be plain data (JSON).

    Raises ``StorageError`` if that takes more than ``LONGEST``, and ``HoldfastError`` with the
    text of the one that *read* raised.
    """
    try:
        return run_apart(read, LONGEST, configuration.folder / LOCK)
    except TimeUpError as late:
        before = "; an earlier look is not done either" if late.earlier else ""
        raise StorageError(
            f"The storage {configuration.storage} does not answer within {LONGEST:g} s{before};"
            " see to its mount or its paths."
        ) from None


def read_status_in_time(configuration: NodeConfiguration) -> dict[str, Any]:
    """Return what ``read_status`` does; ``StorageError`` if that takes longer than ``LONGEST``.

    Whatever else is wrong is a ``HoldfastError``.
    """
    status: dict[str, Any] = in_time(configuration, lambda: read_status(configuration))
    return status
