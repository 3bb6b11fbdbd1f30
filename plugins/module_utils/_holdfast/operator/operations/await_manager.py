# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waiting until the manager has done what was declared."""

from __future__ import annotations

import time
from collections.abc import Callable

from ...cluster.model.state import ClusterState
from ...errors import HoldfastError, StorageError
from ...node.cluster_storage import ClusterStorage
from ...node.configuration import NodeConfiguration

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
    with what has *failed*, where waiting longer is of no use.  A read that fails, as it may while
    a path to the storage fails over, is tried again until then.
    """
    until = time.monotonic() + timeout
    storage = ClusterStorage(configuration)
    try:
        while True:
            try:
                state = storage.read_manager() or ClusterState()
                missing = _missing(state, version, done, why, failed)
            except StorageError as error:
                missing = f"What came of it is not known ({error})"
            if not missing:
                return state
            if time.monotonic() > until:
                raise HoldfastError(f"{missing} after {timeout:g} s; see holdfast status.")
            time.sleep(POLL)
    finally:
        storage.close()


def _missing(
    state: ClusterState,
    version: int,
    done: Callable[[ClusterState], bool],
    why: Callable[[ClusterState], str],
    failed: Callable[[ClusterState], str],
) -> str:
    """Return what is still to come, nothing if it is *done*; raise for what has *failed*."""
    if state.config_version < version:
        return "The manager has not taken up the change"
    if done(state):
        return ""
    failure = failed(state)
    if failure:
        raise HoldfastError(f"{failure}; see holdfast why.")
    return why(state)
