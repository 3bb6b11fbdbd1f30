# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changing the desired configuration: read, plan, write under the configuration lease, and wait.

A record that is too large cannot be written, and a manager that cannot write decides nothing.  So
a change that would lead there is refused; docs/records.md has the measured sizes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

from ...cluster.model.desired import DesiredState
from ...cluster.model.desired_codec import desired_document
from ...cluster.model.membership import Membership, Place
from ...cluster.model.state import (
    EVENTS_KEPT,
    FAILOVER_SERVICES_KEPT,
    FAILOVERS_KEPT,
    FOREIGN_KEPT,
    REMOVED_KEPT,
    ClusterState,
    Event,
    Failover,
    FenceSender,
    NodeState,
    NodeStatus,
    PendingFence,
    Power,
    Proof,
    ProofKind,
    ServiceStatus,
)
from ...cluster.model.state_codec import state_document
from ...cluster.model.states import ServiceState
from ...cluster.model.versions import WAY_OUT
from ...errors import HoldfastError, LeaseError, StorageError
from ...node.cluster_storage import CONFIGURATION_LEASE, ClusterStorage
from ...node.configuration import NodeConfiguration
from ...node.record_slots import payload
from ...storage.record_format import Kind
from .author import author_of

WAIT = 10.0
"""Seconds to wait for the configuration lease while another change is being written."""


def read_cluster(configuration: NodeConfiguration) -> tuple[DesiredState, ClusterState]:
    """Return the newest desired configuration and the manager's record."""
    with closing(ClusterStorage(configuration)) as storage:
        return storage.read_desired()[0], storage.read_manager() or ClusterState()


@dataclass(frozen=True)
class Change:
    """The configuration before and after; applied, or only planned in check mode."""

    before: DesiredState
    after: DesiredState

    @property
    def changed(self) -> bool:
        """Return whether anything but the version and its author differs."""
        before = self.before
        after = replace(self.after, version=before.version, changed_by=before.changed_by)
        return after != before


def change_desired(
    configuration: NodeConfiguration,
    plan: Callable[[DesiredState], DesiredState],
    *,
    check: bool,
    wait: float = WAIT,
    again: bool = False,
) -> Change:
    """Apply *plan* to the newest desired configuration and return the change.

    Without a change, unless *again* is set, and with *check* nothing is written.  Otherwise *plan*
    is applied to the newest configuration under the lease, and the result written into this
    node's slot with the lease's version.  A maintenance that the manager has ended counts as
    gone, before and after.

    Raises ``LeaseError`` when this node does not get the lease within *wait* seconds, or loses it
    before the change is written: then it is not applied.  ``StorageError``, with *check* too, when
    the new configuration would not fit the file of records.
    """
    with closing(ClusterStorage(configuration)) as storage:
        change = _planned(storage, configuration, plan, storage.read_desired()[0])
        if check or not (change.changed or again):
            return change
        storage.adopt_host_lease()
        version = acquire_configuration(storage, wait)
        try:
            newest, _slot = storage.search_desired(acquired=version)
            _refuse_older(newest, version)
            change = _planned(storage, configuration, plan, newest)
            if change.changed or again:
                author = author_of(change.before, change.after, configuration.node)
                after = replace(change.after, version=version, changed_by=author)
                change = replace(change, after=after)
                storage.write_desired(change.after)
                _verify(storage, change.after)
                storage.forget_secrets(change.after)
        finally:
            storage.leases.release(CONFIGURATION_LEASE)
        return change


def _planned(
    storage: ClusterStorage,
    configuration: NodeConfiguration,
    plan: Callable[[DesiredState], DesiredState],
    newest: DesiredState,
) -> Change:
    """Return the change of *plan* to the *newest* configuration; refused if it has no room."""
    state = storage.read_manager() or ClusterState()
    _refuse_lost(newest, state)
    before = newest.in_force(state.ended)
    change = Change(before, plan(before))
    if change.changed:
        refuse_too_large(storage, change.after, configuration.members)
    return change


def acquire_configuration(storage: ClusterStorage, wait: float) -> int:
    """Take the configuration lease and return its version; ``LeaseError`` after *wait* seconds."""
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


def _refuse_older(newest: DesiredState, version: int) -> None:
    """Refuse a version below that of a slot: for readers the lease's version is the highest."""
    if newest.version >= version:
        raise LeaseError(
            f"The configuration lease is older (version {version}) than the configuration (version"
            f" {newest.version}): the leases went back. Nothing was changed; {WAY_OUT}."
        )


def _refuse_lost(newest: DesiredState, state: ClusterState) -> None:
    """Refuse a change of a configuration that is older than the one the manager works from."""
    if not newest.at_least(state.generation, state.config_version):
        raise LeaseError(
            f"The configuration on storage is older (version {newest.version}) than the one that"
            f" the manager works from (version {state.config_version}): what was declared since"
            f" would be lost. Nothing was changed; {WAY_OUT}."
        )


def _verify(storage: ClusterStorage, written: DesiredState) -> None:
    """Check that the newest configuration is the *written* one and that the lease is still ours."""
    newest, _slot = storage.search_desired()
    if newest.version != written.version or not storage.leases.held(CONFIGURATION_LEASE):
        raise LeaseError(
            f"The change to version {written.version} of the desired configuration lost against"
            f" version {newest.version} and is not applied; try again."
        )


POLL = 0.2

Missing = Callable[[ClusterState], str]
"""Returns what is still missing in the manager's record, "" if nothing is.

Raises ``HoldfastError`` where waiting longer is of no use.
"""


def change_and_wait(
    configuration: NodeConfiguration,
    options: Mapping[str, Any],
    plan: Callable[[DesiredState], DesiredState],
    check: bool,
    missing: Missing,
) -> tuple[Change, ClusterState | None]:
    """Apply *plan* as ``change_desired`` does, then wait as ``wait`` and ``timeout`` say.

    Returns the manager's record too, None where nothing was waited for.
    """
    change = change_desired(configuration, plan, check=check)
    if check or not options["wait"]:
        return change, None
    return change, await_manager(configuration, change.after.version, options["timeout"], missing)


def await_manager(
    configuration: NodeConfiguration, version: int, timeout: float, missing: Missing
) -> ClusterState:
    """Wait until the manager has taken up *version* and nothing is *missing*; return its record.

    Raises ``HoldfastError`` with what is missing after *timeout* seconds.  A read that fails, as
    it may while a path to the storage fails over, is tried again until then.
    """
    until = time.monotonic() + timeout
    with closing(ClusterStorage(configuration)) as storage:
        while True:
            try:
                state = storage.read_manager() or ClusterState()
                text = "The manager has not applied the change"
                if state.config_version >= version:
                    text = missing(state)
            except StorageError as error:
                text = f"What came of it is not known ({error})"
            if not text:
                return state
            if time.monotonic() > until:
                raise HoldfastError(f"{text} after {timeout:g} s; see holdfast status.")
            time.sleep(POLL)


def no_use(failure: str) -> HoldfastError:
    """Return the error that ends a wait at once for a *failure*."""
    return HoldfastError(f"{failure}; see holdfast why.")


REASON = "x" * 160
"""The average length of a reason that is allowed for, over all services and nodes."""

WALL = 1790000000.123456
"""A time in seconds since 1970 takes as many bytes as this one."""

LONGEST_ID = "x" * 64
"""A service's id is no longer than this."""

LONGEST_ADDRESS = "2001:0db8:0000:0000:0000:0000:0000:0001"
"""An address of a node is no longer than this."""

UID = "1000000.10000000"
"""A command's uid after a million managers and ten million commands."""


def refuse_too_large(
    storage: ClusterStorage, desired: DesiredState, nodes: Collection[str]
) -> None:
    """Raise ``StorageError`` unless the file of records has room for *desired*.

    The manager's record for it and the cluster's *nodes* must fit too.
    """
    needed = {
        Kind.CONFIGURATION: len(payload(desired_document(desired))),
        Kind.CRM: manager_bytes(desired, nodes),
    }
    what = {
        Kind.CONFIGURATION: ("The desired configuration", "configuration_size"),
        Kind.CRM: ("The manager's record for this desired configuration", "manager_record_size"),
    }
    for kind, size in needed.items():
        room = storage.room(kind)
        if size > room:
            name, option = what[kind]
            raise StorageError(
                f"{name} would need {size} bytes for {len(desired.services)} services, but the"
                f" file of records has room for {room}; nothing was changed. Give it more with"
                f" {option} of the module metadata."
            )


def manager_bytes(desired: DesiredState, nodes: Collection[str]) -> int:
    """Return how many bytes the manager's record may need for *desired*.

    Every service counts as being started elsewhere after a failed start, every node as fenced and
    dead, the history and the failovers as full, and each reason as ``REASON``.
    """
    longest = max(nodes, key=len, default="")
    moved, dead = _longest_service(longest), _longest_node()
    others = ((longest, REASON),) * 2
    event = Event(WALL, "maintenance_ended", longest, LONGEST_ID, REASON, others)
    failover = Failover(longest, REASON, *(WALL,) * 5, REASON, finished=WALL)
    ids = [len(payload({name: ""})) for name in desired.services]
    service, node = _grows(services={"": moved}), _grows(nodes={"": dead})
    recovered = Failover(longest, services=("",), started={"": (longest, WALL)})
    in_failover = _grows(failovers=(recovered,)) - _grows(failovers=(Failover(longest),))
    named = len(ids) + min(len(ids) * FAILOVERS_KEPT, FAILOVER_SERVICES_KEPT)
    longest_id = max(ids, default=0)
    alone = _grows(membership=Membership(10**6, "0" * 32, {}, "0" * 16))
    member = Membership(10**6, "0" * 32, {longest: Place(2000, LONGEST_ADDRESS, 65535)}, "0" * 16)
    foreign = {str(host_id): LONGEST_ID for host_id in range(2000 - FOREIGN_KEPT, 2000)}
    return (
        len(payload(state_document(ClusterState())))
        + sum(ids)
        + len(ids) * service
        + len(nodes) * (node + len(longest))
        + alone
        + len(nodes) * (_grows(membership=member) - alone + 1)
        + _grows(foreign_hosts=foreign)
        + EVENTS_KEPT * _grows(events=(event,))
        + FAILOVERS_KEPT * _grows(failovers=(failover,))
        + REMOVED_KEPT * _grows(ignored=(LONGEST_ID,))
        + named * (in_failover + 2 * longest_id)
        + sum(len(payload(one)) for one in desired_document(desired)["maintenance"].values())
        + 2 * len(longest) * len(desired.maintenance)
        + 4 * len(REASON)
    )


def _longest_service(longest: str) -> ServiceStatus:
    """Return a service that is started elsewhere after a failed start; *longest* is a node."""
    return ServiceStatus(
        state=ServiceState.REQUEST_START_BALANCE,
        node=longest,
        target=longest,
        uid=UID,
        since=WALL,
        reason=REASON,
        digest="0" * 16,
        failed_nodes=(longest,),
        no_failback=(longest,),
        last_node=longest,
        maintenance_node=longest,
        request=WALL,
        from_node=longest,
        expected=True,
        crashes=10,
        not_before=WALL,
    )


def _longest_node() -> NodeStatus:
    """Return a node that was fenced and is dead."""
    return NodeStatus(
        state=NodeState.OFF,
        since=WALL,
        reason=REASON,
        boot="0" * 36,
        proof=Proof(ProofKind.LEASE_EXPIRED, WALL, REASON),
        fenced=(WALL,) * 10,
        pending_fences=tuple(PendingFence(sender, WALL) for sender in FenceSender),
        up_again=True,
        attempt=10,
        retry_after=WALL,
        power=Power.GIVEN_UP,
        mode="maintenance",
        demanded=True,
        kept=REASON,
    )


def _grows(**fields: object) -> int:
    """Return by how many bytes an empty record grows with these *fields*."""
    # The comma between two of a kind is counted with each.
    state = ClusterState(**fields)  # type: ignore[arg-type]
    return len(payload(state_document(state))) - len(payload(state_document(ClusterState()))) + 1
