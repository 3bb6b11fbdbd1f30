# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the four files of a cluster are in the folder on shared storage."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..errors import InputError
from ..names import cluster_name


@dataclass(frozen=True)
class ClusterPaths:
    """The paths of one cluster's files."""

    folder: str
    lockspace: str
    leases: str
    metadata: str
    state: str


def cluster_paths(folder: str, name: str) -> ClusterPaths:
    """Return the paths for the cluster *name* in *folder*, which has to be absolute.

    The names of lockspace and metadata are those of hosted engine.  Raises
    ``InputError`` for a name that is not acceptable and a relative folder.
    """
    cluster_name(name)
    if not Path(folder).is_absolute():
        raise InputError("path", folder, "the absolute path of a folder on the shared storage")
    base = Path(folder) / name
    return ClusterPaths(
        folder=folder,
        lockspace=f"{base}.lockspace",
        leases=f"{base}.leases",
        metadata=f"{base}.metadata",
        state=f"{base}.state",
    )
