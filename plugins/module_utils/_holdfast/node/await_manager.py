# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waiting until the manager has done what was declared."""

from __future__ import annotations

import time
from collections.abc import Callable

from ..errors import HoldfastError
from ..manager.state import ClusterState
from .cluster_storage import ClusterStorage
from .configuration import NodeConfiguration

POLL = 0.2


def await_manager(
    configuration: NodeConfiguration,
    version: int,
    timeout: float,
    done: Callable[[ClusterState], bool],
    why: Callable[[ClusterState], str],
    failed: Callable[[ClusterState], str] = lambda _state: "",
) -> ClusterState:
    """Wait until the manager has taken up *version* and *done*, and return its record.

    Raises ``HoldfastError`` with *why* it is not so after *timeout* seconds; or at once
    with what has *failed*, where waiting longer is of no use.
    """
    until = time.monotonic() + timeout
    storage = ClusterStorage(configuration)
    try:
        while True:
            state = storage.read_manager() or ClusterState()
            taken_up = state.config_version >= version
            if taken_up and done(state):
                return state
            failure = failed(state) if taken_up else ""
            if failure:
                raise HoldfastError(f"{failure}; see holdfast why.")
            if time.monotonic() > until:
                reason = why(state) if taken_up else "The manager has not taken up the change"
                raise HoldfastError(f"{reason} after {timeout:g} s; see holdfast status.")
            time.sleep(POLL)
    finally:
        storage.close()
