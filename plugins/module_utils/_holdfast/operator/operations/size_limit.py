# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a wanted configuration fits its record, and what the manager makes of it fits too.

A record that does not fit can never be written, and a manager that cannot write decides
nothing.  So a change that would lead there is refused before it is written.  The
arithmetic with measured numbers is in docs/records.md.
"""

from __future__ import annotations

from collections.abc import Collection

from ...cluster.crm.recovery import GIVEN_UP
from ...cluster.model.desired import Wanted, wanted_document
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
    NodeState,
    NodeStatus,
    ServiceState,
    ServiceStatus,
)
from ...cluster.model.state_codec import state_document
from ...errors import StorageError
from ...node.cluster_storage import ClusterStorage, payload
from ...storage.records import Kind

REASON = "x" * 160
"""What a reason is allowed for on average, over all services and nodes."""

WALL = 1790000000.123456
"""A time in seconds since 1970 takes as many bytes as this one."""

LONGEST_ID = "x" * 64
"""A service's id is no longer than this."""

LONGEST_ADDRESS = "2001:0db8:0000:0000:0000:0000:0000:0001"
"""An address of a node is no longer than this."""

UID = "1000000.10000000"
"""A command's uid after a million managers and ten million commands."""


def refuse_too_large(storage: ClusterStorage, wanted: Wanted, nodes: Collection[str]) -> None:
    """Raise ``StorageError`` unless *wanted* and the manager's record for it have room.

    *nodes* are the cluster's nodes.  Both are compared with what the file of records
    was made for.
    """
    needed = {
        Kind.CONFIGURATION: len(payload(wanted_document(wanted))),
        Kind.CRM: manager_bytes(wanted, nodes),
    }
    what = {
        Kind.CONFIGURATION: ("The wanted configuration", "configuration_size"),
        Kind.CRM: ("The manager's record for this wanted configuration", "manager_record_size"),
    }
    for kind, size in needed.items():
        room = storage.room(kind)
        if size > room:
            name, option = what[kind]
            raise StorageError(
                f"{name} would need {size} bytes for {len(wanted.services)} services, but the"
                f" file of records has room for {room}; nothing was changed. Give it more with"
                f" {option} of the module metadata."
            )


def manager_bytes(wanted: Wanted, nodes: Collection[str]) -> int:
    """Return how many bytes the manager's record may come to need for *wanted*.

    Every service is counted as being started elsewhere after a failed start, every node as fenced
    and dead, the history and the failovers as full, and each reason as ``REASON``.
    """
    longest = max(nodes, key=len, default="")
    moved = ServiceStatus(
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
        left_since=10**9,
    )
    dead = NodeStatus(
        state=NodeState.OFF,
        since=WALL,
        reason=REASON,
        boot="0" * 36,
        proof=REASON,
        fenced=(WALL,) * 10,
        fence_sent=WALL,
        inherited_fence=WALL,
        slower_fence=WALL,
        expired=True,
        up_again=True,
        attempt=10,
        retry_after=WALL,
        power=GIVEN_UP,
        mode="maintenance",
        demanded=True,
        kept=REASON,
    )
    others = ((longest, REASON),) * 2
    event = Event(WALL, "maintenance_ended", longest, LONGEST_ID, REASON, others)
    failover = Failover(longest, REASON, *(WALL,) * 5, REASON, finished=WALL)
    ids = [len(payload({name: ""})) for name in wanted.services]
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
        + REMOVED_KEPT * _grows(ignored=(LONGEST_ID,), ignored_since={LONGEST_ID: 10**9})
        + named * (in_failover + 2 * longest_id)
        + sum(len(payload(one)) for one in wanted_document(wanted)["maintenance"].values())
        + 2 * len(longest) * len(wanted.maintenance)
        + 4 * len(REASON)
    )


def _grows(**fields: object) -> int:
    """Return by how many bytes an empty record grows with these *fields*."""
    # The comma that stands between two of a kind is counted with each.
    state = ClusterState(**fields)  # type: ignore[arg-type]
    return len(payload(state_document(state))) - len(payload(state_document(ClusterState()))) + 1
