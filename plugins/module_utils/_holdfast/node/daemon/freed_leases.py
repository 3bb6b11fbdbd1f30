# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Setting the host lease of a node free that a fence device has verified to be off.

Whoever waits for a lease of the dead node has it at once then.  Mostly the lease has
not changed since the fence was sent, and it is freed on the proof.  A node that
renewed it once more before its power went is watched for longer than it leaves
between two renewals: if it is silent for so long after the proof, it is dead.

No host lease is freed before the storage records that this node is about to free it, see
``cluster/model/lease_freeing.py``.

A file in the run directory for as long as this node's CRM frees a host lease.

While it is there the LRM does not disarm the watchdog, so that a node whose host lease ends
by time has been reset, and its writes with it.  A CRM that was killed leaves the file; the next
one removes it once the kernel has no write of its predecessor left.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from ...cluster.model.observed import FenceReport
from ...errors import FormatError, LeaseError, StorageError
from ...lease.interface import HostLeaseView, HostState, Leases
from ...storage.lockspace.host_timing import LeaseTiming
from ..configuration import make_private
from ..log import Repeating, log


@dataclass
class _Proved:
    """A node that is proved to be off: its host lease as last seen, and since when it is so."""

    lease: HostLeaseView
    since: float
    told: bool = False


class FreedLeases:
    """The host leases that a CRM's own fences are to set free; not for several threads."""

    def __init__(
        self,
        leases: Leases,
        timing: LeaseTiming,
        clock: Callable[[], float] = time.monotonic,
        under_way: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        """Take the cluster's *leases* and the *timing* by which they are renewed.

        *under_way* is entered for as long as a host lease is being freed.
        """
        self._leases = leases
        self._under_way = under_way
        self._recorded: Mapping[str, int] = {}
        self._clock = clock
        self._silence = float(timing.renewal_seconds + timing.io_timeout)
        self._repeating = Repeating(clock)
        self._fenced: dict[str, HostLeaseView] = {}
        self._proved: dict[str, _Proved] = {}

    def fence_begins(self, node: str, host_id: int) -> None:
        """Remember which host lease a fence of *node*, not sent yet, is to prove dead.

        A damaged one cannot be set free, which is no reason to let the node live.  Raises
        ``StorageError`` or ``LeaseError`` when the storage cannot be read.
        """
        self._proved.pop(node, None)
        self._fenced.pop(node, None)
        try:
            self._fenced[node] = self._leases.host(host_id)
        except FormatError as error:
            log(f"the host lease of {node} will not be set free: {error}")

    def intended(self, proofs: Iterable[FenceReport] = ()) -> dict[str, int]:
        """Return what the storage has to record as about to be freed: node to generation.

        That is each host lease that is proved dead, or will be by one of *proofs*, and of what
        is recorded already each one whose fence has not ended.
        """
        found = {node: one.lease.generation for node, one in self._proved.items()}
        for fence in proofs:
            if fence.node in self._fenced and _proves_dead(fence):
                found[fence.node] = self._fenced[fence.node].generation
        for node, generation in self._recorded.items():
            lease = self._fenced.get(node)
            if lease is not None and lease.generation == generation:
                found[node] = generation
        return found

    def fenced(self, node: str) -> dict[str, int]:
        """Return ``intended`` together with the host lease of *node*, whose fence is to be sent."""
        lease = self._fenced.get(node)
        return {**self.intended(), **({node: lease.generation} if lease is not None else {})}

    def recorded(self, leases: Mapping[str, int]) -> None:
        """Note that the storage records *leases*, and nothing else, as about to be freed."""
        self._recorded = dict(leases)

    def forget(self, node: str) -> None:
        """Take back the beginning of a fence of *node* that was not sent, or proved nothing."""
        self._fenced.pop(node, None)

    def fence_ended(self, fence: FenceReport) -> None:
        """Free the host lease that *fence* proved dead; nothing if it proved none.

        Only a device's own word that the power is off is enough, of a node that wrote
        nothing since.
        """
        lease = self._fenced.pop(fence.node, None)
        if lease is None or not _proves_dead(fence):
            return
        self._proved[fence.node] = _Proved(lease, self._clock())
        self._free(fence.node)

    def watch(self) -> None:
        """Free what was renewed once more and has been silent since; to be called each round."""
        now = self._clock()
        for node, proved in list(self._proved.items()):
            try:
                view = self._leases.host(proved.lease.host_id)
            except (StorageError, LeaseError):
                continue
            if view.generation != proved.lease.generation or view.state is HostState.FREE:
                # Freed by another, or the node is back with a host lease of its own.
                del self._proved[node]
            elif view.timestamp != proved.lease.timestamp:
                proved.lease, proved.since = view, now
                self._tell(node, proved)
            elif now - proved.since >= self._silence:
                self._free(node)

    def _free(self, node: str) -> None:
        proved = self._proved[node]
        lease = proved.lease
        if self._recorded.get(node) != lease.generation:
            # Freed by the first ``watch`` after the record was written.
            return
        try:
            with self._under_way():
                # The record counts for as long as this node's own host lease.
                self._leases.renew()
                self._leases.free_host(lease.host_id, lease.generation, lease.timestamp)
        except (StorageError, LeaseError) as error:
            self._repeating.log(f"host lease of {node} not set free yet: {error}")
            proved.since = self._clock()
        else:
            del self._proved[node]

    def _tell(self, node: str, proved: _Proved) -> None:
        """Say once why it takes longer: with a wrong plug it would never end."""
        if not proved.told:
            proved.told = True
            log(
                f"host lease of {node} was renewed after its fence was sent; it is set free once"
                f" it was not for {self._silence:.0f} s. If it still is renewed then, the fence"
                " device has switched off something else."
            )


def _proves_dead(fence: FenceReport) -> bool:
    """Return whether a device confirmed the power of a node off that was silent since."""
    return fence.confirmed and fence.verified and fence.quiet


NAME = "freeing-host-lease"


def is_under_way(run_directory: Path) -> bool:
    """Return whether this node's CRM may be freeing a host lease."""
    return (run_directory / NAME).exists()


@contextmanager
def under_way(run_directory: Path) -> Iterator[None]:
    """Note that a host lease is being freed; raises ``StorageError`` where that is not possible."""
    path = run_directory / NAME
    try:
        make_private(run_directory)
        path.touch(mode=0o600)
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror}.") from error
    try:
        yield
    finally:
        _remove(path)


def end_of_predecessor(run_directory: Path, lockspace: Path) -> None:
    """Wait for what a killed CRM of this node still writes to *lockspace*, and remove its file.

    A process ends only after its direct writes to a block device or a local file system.  An NFS
    client goes on with them; it finishes all direct writes to a file before a read through the
    page cache.  Raises ``StorageError`` when that read fails.
    """
    if not is_under_way(run_directory):
        return
    try:
        descriptor = os.open(lockspace, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.pread(descriptor, 1, 0)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise StorageError(f"{lockspace} cannot be read: {error.strerror}.") from error
    _remove(run_directory / NAME)


def _remove(path: Path) -> None:
    try:
        path.unlink()
    except FileNotFoundError:
        pass
    except OSError as error:
        raise StorageError(f"{path} cannot be removed: {error.strerror}.") from error
