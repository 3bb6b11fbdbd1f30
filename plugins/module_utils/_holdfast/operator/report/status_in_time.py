# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster as it is now, or within a few seconds that its storage does not answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...node.configuration import NodeConfiguration
from ...storage.whole_file import write_text
from .bounded_read import in_time
from .status import read_status


def read_status_in_time(configuration: NodeConfiguration) -> dict[str, Any]:
    """Return what ``read_status`` does; ``StorageError`` if that takes longer than ``LONGEST``.

    Whatever else is wrong is a ``HoldfastError``.
    """
    status: dict[str, Any] = in_time(configuration, lambda: read_status(configuration))
    return status


def write_page_in_time(
    path: Path, configuration: NodeConfiguration, *, refresh: float = 0.0
) -> dict[str, Any]:
    """Write the status page as the file *path* and return the status, as ``read_status_in_time``.

    *refresh* is that of ``render_page``.  A page that cannot be made leaves the last one.
    """

    def read() -> dict[str, Any]:
        from ..forecast.foreseen_rebalance import foresee
        from .page.page import render_page

        status = read_status(configuration)
        page = render_page(status, refresh=refresh, plan=foresee(configuration))
        return {"status": status, "page": page}

    made = in_time(configuration, read)
    write_text(path, made["page"])
    status: dict[str, Any] = made["status"]
    return status
