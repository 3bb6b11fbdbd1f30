# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster as it is now, or within a few seconds that its storage does not answer.

For whoever must not hang with the storage: metrics, monitoring, and people who look.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..errors import HoldfastError, StorageError
from ..process_apart import TimeUpError, run_apart
from ..storage.whole_file import write_text
from .cluster_storage import ClusterStorage
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
    status: dict[str, Any] = _in_time(configuration, lambda: read_status(configuration))
    return status


def write_page_in_time(
    path: Path, configuration: NodeConfiguration, *, refresh: float = 0.0
) -> dict[str, Any]:
    """Write the status page as the file *path* and return the status, as ``read_status_in_time``.

    *refresh* is that of ``render_page``.  A page that cannot be made leaves the last one.
    """

    def read() -> dict[str, Any]:
        from .foreseen_rebalance import foresee
        from .status_page import render_page

        status = read_status(configuration)
        page = render_page(status, refresh=refresh, plan=foresee(configuration))
        return {"status": status, "page": page}

    made = _in_time(configuration, read)
    write_text(path, made["page"])
    status: dict[str, Any] = made["status"]
    return status


def check_storage_answers(configuration: NodeConfiguration) -> None:
    """Raise ``StorageError`` if a read of the storage takes more than ``LONGEST``.

    For who reads it next in this process; what else is wrong with it is found by that read.
    """

    def read() -> None:
        with contextlib.suppress(HoldfastError):
            storage = ClusterStorage(configuration)
            try:
                storage.read_manager()
            finally:
                storage.close()

    _in_time(configuration, read)


def _in_time(configuration: NodeConfiguration, read: Callable[[], Any]) -> Any:
    """Return what *read* finds on the storage, within ``LONGEST``."""
    try:
        return run_apart(read, LONGEST, configuration.folder / LOCK)
    except TimeUpError as late:
        before = "; an earlier look is not done either" if late.earlier else ""
        raise StorageError(
            f"The storage {configuration.storage} does not answer within {LONGEST:g} s{before};"
            " see to its mount or its paths."
        ) from None
