# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changing the wanted configuration: read, plan, and write under the configuration lease.

Waiting until the manager has done what was declared.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace

from ...cluster.crm.global_maintenance import has_maintenance, in_force
from ...cluster.model.desired import Wanted
from ...cluster.model.state import ClusterState
from ...cluster.model.versions import WAY_OUT
from ...errors import HoldfastError, LeaseError, StorageError
from ...node.cluster_storage import CONFIGURATION_LEASE, ClusterStorage
from ...node.configuration import NodeConfiguration
from .size_limit import refuse_too_large

WAIT = 10.0
"""Seconds to wait for the configuration lease while another change is being written."""


def read_cluster(configuration: NodeConfiguration) -> tuple[Wanted, ClusterState]:
    """Return the newest wanted configuration, and the manager's record."""
    with closing(ClusterStorage(configuration)) as storage:
        return storage.read_wanted()[0], storage.read_manager() or ClusterState()


@dataclass(frozen=True)
class Change:
    """The configuration before and after; applied, or only planned in check mode."""

    before: Wanted
    after: Wanted

    @property
    def changed(self) -> bool:
        """Return whether anything but the version differs."""
        return replace(self.after, version=self.before.version) != self.before


def change_wanted(
    configuration: NodeConfiguration,
    plan: Callable[[Wanted], Wanted],
    *,
    check: bool,
    wait: float = WAIT,
    again: bool = False,
) -> Change:
    """Apply *plan* to the newest wanted configuration and return what it changed.

    Nothing is written when nothing changes, unless *again* asks for that, or when *check* is set.
    Otherwise the lease is taken, the newest configuration read again, *plan* applied to
    that, and the result written into this node's slot with the lease's version.
    A maintenance that the manager has ended counts as gone, before and after.

    Raises ``LeaseError`` when the lease cannot be had within *wait* seconds, or was
    lost before the change stood: then it is not applied; ``StorageError``, in check
    mode too, when the new configuration would not fit the file of records.
    """
    with closing(ClusterStorage(configuration)) as storage:
        change = _planned(storage, configuration, plan, storage.read_wanted()[0])
        if check or not (change.changed or again):
            return change
        storage.adopt_host_lease()
        version = acquire_configuration(storage, wait)
        try:
            newest, _slot = storage.search_wanted(acquired=version)
            _refuse_older(newest, version)
            change = _planned(storage, configuration, plan, newest)
            if change.changed or again:
                change = replace(change, after=replace(change.after, version=version))
                storage.write_wanted(change.after)
                _verify(storage, change.after)
        finally:
            storage.leases.release(CONFIGURATION_LEASE)
        return change


def _planned(
    storage: ClusterStorage,
    configuration: NodeConfiguration,
    plan: Callable[[Wanted], Wanted],
    newest: Wanted,
) -> Change:
    """Return what *plan* makes of the *newest* configuration; refused if it has no room."""
    state = storage.read_manager() or ClusterState()
    _refuse_lost(newest, state)
    before = in_force(newest, state.ended if has_maintenance(newest) else {})
    change = Change(before, plan(before))
    if change.changed:
        refuse_too_large(storage, change.after, configuration.members)
    return change


def acquire_configuration(storage: ClusterStorage, wait: float) -> int:
    """Take the configuration lease and return its version.

    Raises ``LeaseError`` when it cannot be had within *wait* seconds.
    """
    until = time.monotonic() + wait
    while True:
        version = storage.leases.acquire(CONFIGURATION_LEASE)
        if version is not None:
            return version
        if time.monotonic() > until:
            holder = storage.leases.holder(CONFIGURATION_LEASE)
            raise LeaseError(
                f"The configuration lease is still held by host id {holder.host_id} after"
                f" {wait:g} s; nothing was changed, try again."
            )
        time.sleep(0.05)


def _refuse_older(newest: Wanted, version: int) -> None:
    """Refuse a version that another slot has passed: readers trust the lease's to be highest."""
    if newest.version >= version:
        raise LeaseError(
            f"The configuration lease is older (version {version}) than the configuration (version"
            f" {newest.version}): the leases went back. Nothing was changed; {WAY_OUT}."
        )


def _refuse_lost(newest: Wanted, state: ClusterState) -> None:
    """Refuse to build on a configuration that is older than the one the manager works from."""
    if not newest.at_least(state.generation, state.config_version):
        raise LeaseError(
            f"The configuration on storage is older (version {newest.version}) than the one that"
            f" the manager works from (version {state.config_version}): what was declared since"
            f" would be lost. Nothing was changed; {WAY_OUT}."
        )


def _verify(storage: ClusterStorage, written: Wanted) -> None:
    """Make sure that what was written is the newest, under a lease that was ours all along."""
    newest, _slot = storage.search_wanted()
    if newest.version != written.version or not storage.leases.held(CONFIGURATION_LEASE):
        raise LeaseError(
            f"The change to version {written.version} of the wanted configuration lost against"
            f" version {newest.version} and is not applied; try again."
        )


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
    with closing(ClusterStorage(configuration)) as storage:
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
