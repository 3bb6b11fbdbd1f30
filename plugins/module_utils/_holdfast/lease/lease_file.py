# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The leases file of a cluster, by the names of its leases."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import FormatError, LeaseError
from ..storage.block_file import SECTOR, HeldFile
from ..storage.resource_lease import (
    ResourceLease,
    area_offset,
    read_leader,
    write_leader,
)


class LeaseFile:
    """The leaders of all leases; the file is kept open.  Not for several threads."""

    def __init__(self, path: str, names: Sequence[str]) -> None:
        """Describe the file; *names* are its leases in the order of their areas."""
        self.path = path
        self.names = tuple(names)
        self._file = HeldFile(path, SECTOR)

    def index(self, name: str) -> int:
        """Return the number of a lease's area; ``LeaseError`` for a name that is none."""
        if name not in self.names:
            raise LeaseError(
                f"there is no lease {name!r}; expected one of {', '.join(self.names)}."
            )
        return self.names.index(name)

    def offset(self, name: str) -> int:
        """Return where a lease's area begins."""
        return area_offset(self.index(name))

    def read(self, name: str) -> ResourceLease:
        """Return the leader of a lease from the storage, which must be of that name."""
        index = self.index(name)
        leader = read_leader(self._file.for_reading(), index)
        if leader.name != name:
            raise FormatError(f"{self.path}: area {index} is lease {leader.name!r}, not {name!r}.")
        return leader

    def write(self, leader: ResourceLease) -> None:
        """Write a leader; only who has won the lease may do that."""
        write_leader(self._file.for_writing(), self.index(leader.name), leader)

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        self._file.close()
