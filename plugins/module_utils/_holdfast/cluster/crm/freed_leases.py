# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Freeing the host lease of a node that a fence device confirmed off.

A service that holds a sanlock lease of the dead node can then start at once.  Usually the host
lease has not changed since the fence was sent and is freed with the proof.  A node that renewed it
once more is watched until it has been silent for longer than the time between two renewals.

A host lease is freed only after storage records that this node is about to free it, see
``model/lease_freeing.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from ...errors import FormatError, LeaseError, StorageError
from ..model.effects import Cycle, Log, perform, shallow_copy
from ..model.observed import FenceReport
from .effects import FreeHostLease, HostLease, ReadHostLease


@dataclass(frozen=True)
class _Proved:
    """A node confirmed off, with its host lease as last read, unchanged since *since* (monotonic).

    *logged* says that the wait was logged.
    """

    lease: HostLease
    since: float
    logged: bool = False


@dataclass
class FreedLeases:
    """The host leases that the fences of one CRM will free.

    After *silence* seconds without a renewal, a node that is confirmed off is dead.
    """

    silence: float
    recorded: Mapping[str, int] = field(default_factory=dict)
    """What storage records as about to be freed: a generation for each node."""
    _fenced: dict[str, HostLease] = field(default_factory=dict)
    _proved: dict[str, _Proved] = field(default_factory=dict)

    def is_busy(self) -> bool:
        """Return whether a host lease may still have to be freed, or is recorded for it."""
        return bool(self.recorded or self._fenced or self._proved)

    def copy(self) -> FreedLeases:
        """Return a copy that can change independently."""
        after = shallow_copy(self)
        after._fenced, after._proved = dict(self._fenced), dict(self._proved)
        return after

    def fence_begins(self, node: str, host_id: int) -> Cycle[None]:
        """Remember the host lease that a fence of *node*, not yet sent, will prove dead.

        A damaged host lease cannot be freed, but the node is fenced all the same.
        """
        self._proved.pop(node, None)
        self._fenced.pop(node, None)
        try:
            self._fenced[node] = yield from perform(ReadHostLease(host_id))
        except FormatError as error:
            yield from perform(Log(f"the host lease of {node} will not be freed: {error}"))

    def to_record(self, proofs: Iterable[FenceReport] = ()) -> dict[str, int]:
        """Return what storage must record as about to be freed: a generation for each node.

        That is each host lease confirmed dead, or proved by one of *proofs*, and each recorded one
        whose fence has not ended.
        """
        leases = {node: one.lease.generation for node, one in self._proved.items()}
        for fence in proofs:
            if fence.node in self._fenced and proves_off(fence):
                leases[fence.node] = self._fenced[fence.node].generation
        for node, generation in self.recorded.items():
            lease = self._fenced.get(node)
            if lease is not None and lease.generation == generation:
                leases[node] = generation
        return leases

    def to_record_with(self, node: str) -> dict[str, int]:
        """Return ``to_record`` with the host lease of *node*, which is about to be fenced."""
        lease = self._fenced.get(node)
        return {**self.to_record(), **({node: lease.generation} if lease is not None else {})}

    def forget(self, node: str) -> None:
        """Forget a fence of *node* that was not sent or proved nothing."""
        self._fenced.pop(node, None)

    def fence_ended(self, fence: FenceReport, now: float) -> Cycle[None]:
        """Free the host lease that *fence* confirmed dead; do nothing if it proved none."""
        lease = self._fenced.pop(fence.node, None)
        if lease is None or not proves_off(fence):
            return
        self._proved[fence.node] = _Proved(lease, now)
        yield from self._free(fence.node, now)

    def watch(self, now: float) -> Cycle[None]:
        """Free the leases that were renewed once more and are silent since; once a turn."""
        for node, proved in list(self._proved.items()):
            try:
                lease = yield from perform(ReadHostLease(proved.lease.host_id))
            except (StorageError, LeaseError):
                continue
            if lease.generation != proved.lease.generation or lease.free:
                # Another CRM freed it, or the node is back with a new host lease.
                del self._proved[node]
            elif lease.timestamp != proved.lease.timestamp:
                self._proved[node] = _Proved(lease, now, logged=True)
                if not proved.logged:
                    yield from perform(Log(self._why_it_takes_longer(node)))
            elif now - proved.since >= self.silence:
                yield from self._free(node, now)

    def _free(self, node: str, now: float) -> Cycle[None]:
        proved = self._proved[node]
        if self.recorded.get(node) != proved.lease.generation:
            # ``watch`` frees it once the record is written.
            return
        try:
            yield from perform(FreeHostLease(proved.lease))
        except (StorageError, LeaseError) as error:
            text = f"host lease of {node} not freed yet: {error}"
            yield from perform(Log(text, repeated=True))
            self._proved[node] = replace(proved, since=now)
        else:
            del self._proved[node]

    def _why_it_takes_longer(self, node: str) -> str:
        return (
            f"host lease of {node} was renewed after its fence was sent; it is freed after"
            f" {self.silence:.0f} s without a renewal. If it is still renewed then, the fence"
            " device has powered off another machine: check its plug."
        )


def proves_off(fence: FenceReport) -> bool:
    """Return whether a device confirmed a node off and the node was quiet afterwards."""
    return fence.confirmed and fence.verified and fence.quiet
