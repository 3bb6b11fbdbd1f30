# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster as it is now, or within a few seconds that its storage does not answer.

For whoever must not hang with the storage: metrics, monitoring, and people who look.
"""

from __future__ import annotations

from typing import Any

from ..errors import StorageError
from ..process_apart import TimeUpError, run_apart
from .configuration import NodeConfiguration
from .status import read_status

LONGEST = 6.0
"""Seconds for a look at the storage, which takes a fraction of one even at hundreds of nodes.

With the time to end one that hangs it is less than the 10 s after which many a monitoring gives up.
"""

LOCK = "status.lock"
"""In the node's own folder: held by the process that looks, so that not many hang there."""


def read_status_in_time(configuration: NodeConfiguration) -> dict[str, Any]:
    """Return what ``read_status`` does; ``StorageError`` if that takes more than ``LONGEST``.

    Whatever else is wrong is a ``HoldfastError``.
    """
    try:
        status: dict[str, Any] = run_apart(
            lambda: read_status(configuration), LONGEST, configuration.folder / LOCK
        )
    except TimeUpError as late:
        before = "; an earlier look at it still hangs" if late.earlier else ""
        raise StorageError(
            f"The storage {configuration.storage} does not answer within {LONGEST:g} s{before};"
            " see to its mount or its paths."
        ) from None
    return status
