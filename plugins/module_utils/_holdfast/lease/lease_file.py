# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The leases file of a cluster, by the names of its leases."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import FormatError, LeaseError
from ..storage.block_file import SECTOR, BlockFile, HeldFile
from ..storage.lockspace.leader_record import Layout
from ..storage.lockspace.resource_lease import (
    ResourceLease,
    area_offset,
    leases_layout,
    read_leader,
    write_leader,
)


class LeaseFile:
    """The leaders of all leases; the file is kept open.  Not for several threads.

    Sector and area size are read from its own records at the first use.
    """

    def __init__(self, path: str, names: Sequence[str]) -> None:
        """Describe the file; *names* are its leases in the order of their areas."""
        self.path = path
        self.names = tuple(names)
        self._file = HeldFile(path, SECTOR)
        self._layout: Layout | None = None

    def index(self, name: str) -> int:
        """Return the number of a lease's area; ``LeaseError`` for a name that is none."""
        if name not in self.names:
            raise LeaseError(
                f"there is no lease {name!r}; expected one of {', '.join(self.names)}."
            )
        return self.names.index(name)

    def offset(self, name: str) -> int:
        """Return where a lease's area begins, in bytes."""
        return area_offset(self.index(name), self._known_layout(self._file.for_reading()))

    def read(self, name: str) -> ResourceLease:
        """Return the leader of a lease from the storage, which must be of that name."""
        index = self.index(name)
        file = self._file.for_reading()
        layout = self._known_layout(file)
        try:
            leader = read_leader(file, index, layout)
            if leader.name != name:
                raise FormatError(
                    f"{self.path}: area {index} is lease {leader.name!r}, not {name!r}."
                )
        except FormatError:
            # It may have been made anew with other sizes: the next look finds them.
            self._layout = None
            raise
        return leader

    def write(self, leader: ResourceLease) -> None:
        """Write a leader; only who has won the lease may do that."""
        write_leader(self._file.for_writing(), self.index(leader.name), leader)

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        self._layout = None
        self._file.close()

    def _known_layout(self, file: BlockFile) -> Layout:
        """Return the sizes of the file, read once."""
        if self._layout is None:
            self._layout = leases_layout(file)
        return self._layout
