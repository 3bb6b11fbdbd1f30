# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node's configuration: its cluster, the members, and the paths.

``configuration_file.py`` reads and checks it.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from .. import names
from ..cluster.model.allowed_agents import DEFAULT_ALLOWED_AGENTS
from ..cluster.model.observed import Timing
from ..errors import StorageError
from ..storage.authentication import Policy
from ..storage.lockspace.host_timing import (
    FIXED_WATCHDOG_TIMEOUT,
)
from .paths import CLUSTER_KEY

EMBEDDED = "embedded"
SANLOCK = "sanlock"
MACHINE, LRM, CRM = range(3)
MARK = "HOLDFAST_MACHINE"
"""The environment variable by which all processes of a machine are found."""

PORTS_PER_NODE = 3
SHORTEST_BOND = 25.0
"""Shortest time in seconds that a node may be without its LRM before its watchdog acts.

An LRM that hangs is ended after at most 15 s then (``network.patience``), and the next one takes a
moment; and wdmd stops petting a watchdog of 60 s when less than 10 s are left (measured on sanlock
3.8.5: with 8 s, three of three healthy nodes were reset)."""

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
RUN_DIRECTORY = Path("/run/holdfast")
"""Folder of the agents' state on a real node: in memory, so a power cut empties it."""


@dataclass(frozen=True)
class Member:
    """A node of the cluster: its host id, and where its daemons listen (UDP).

    The node's machine listens on *port*, its LRM on the next, its CRM on the one after that.
    *lease_proof* is whether an expired host lease of a node with a watchdog proves it dead; None
    for automatic: not for a virtual machine.
    """

    name: str
    host_id: int
    address: str
    port: int
    lease_proof: bool | None = None

    def at(self, place: int) -> tuple[str, int]:
        """Return address and port of the node's ``MACHINE``, ``LRM`` or ``CRM``."""
        return self.address, self.port + place

    def ports(self) -> range:
        """Return the ports that belong to this node."""
        return range(self.port, self.port + PORTS_PER_NODE)

    def document(self) -> dict[str, Any]:
        """Return the member as plain data; what is not set is left out."""
        return {key: value for key, value in asdict(self).items() if value is not None}


@dataclass(frozen=True)
class SanlockSettings:
    """Settings of the nodes' sanlock; all nodes must have the same times, in seconds.

    *io_timeout* is that of the lockspace.  A node whose sanlock lost the lockspace is reset after
    *watchdog_timeout*; 0 is for no watchdog, and then an expired host lease proves nothing.
    *run_directory* is that of the own daemon of a machine of a cluster on one computer, empty for
    the distribution's.
    """

    io_timeout: int = 2
    watchdog_timeout: int = FIXED_WATCHDOG_TIMEOUT
    run_directory: str = ""


@dataclass(frozen=True)
class NodeConfiguration:
    """A node's view of its cluster.

    *storage* is the folder on shared storage, or a block device; *storage_id* is the id in the
    device's header, "" for any.  *folder* is the node's own; *backend* grants the leases, *sanlock*
    has its settings.  *allowed_agents* are the patterns of the resource agents that may
    run here, see ``cluster/model/allowed_agents.py``.  *cluster_key* is the file with the keys for
    *authentication*.
    """

    cluster: str
    node: str
    storage: Path
    folder: Path
    members: Mapping[str, Member]
    backend: str = EMBEDDED
    sanlock: SanlockSettings = field(default_factory=SanlockSettings)
    agent_directories: tuple[str, ...] = ("/usr/lib/ocf",)
    allowed_agents: tuple[str, ...] = DEFAULT_ALLOWED_AGENTS
    fence_configuration: Path = Path("/etc/holdfast/fence.json")
    authentication: Policy = Policy.OFF
    cluster_key: Path = Path(CLUSTER_KEY)
    timing: Timing = field(default_factory=Timing)
    storage_id: str = ""

    @property
    def watchdog_timeout(self) -> int:
        """Return after how many seconds a node's watchdog resets it, 0 without one."""
        return 0 if self.backend == EMBEDDED else self.sanlock.watchdog_timeout

    @property
    def secrets_folder(self) -> Path:
        """Return the folder with the secrets of services, beside the cluster key."""
        return self.cluster_key.parent / "secrets"

    @property
    def me(self) -> Member:
        """Return this node as a member."""
        return self.members[self.node]

    @property
    def lockspace_path(self) -> Path:
        """Return where the host leases are."""
        return self.storage / f"{self.cluster}.lockspace"

    @property
    def leases_path(self) -> Path:
        """Return where the resource leases are."""
        return self.storage / f"{self.cluster}.leases"

    @property
    def metadata_path(self) -> Path:
        """Return where the whiteboard is."""
        return self.storage / f"{self.cluster}.metadata"

    @property
    def state_path(self) -> Path:
        """Return where the records are."""
        return self.storage / f"{self.cluster}.state"

    @property
    def is_machine(self) -> bool:
        """Return whether the node is a machine of a cluster on one computer, no computer itself."""
        return self.backend == EMBEDDED or bool(self.sanlock.run_directory)

    @property
    def run_directory(self) -> Path:
        """Return the folder of the agents' state, which is empty after the node was off.

        Agents in shell, also the distribution's, do not quote this path.  So for a machine's
        folder with a blank in its path it is one in the temporary folder.
        """
        return run_directory(self.folder.resolve()) if self.is_machine else RUN_DIRECTORY

    def boot(self) -> str:
        """Return the id of the node's present boot."""
        path = self.folder / "boot" if self.is_machine else BOOT_ID
        try:
            return path.read_text(encoding="utf-8").strip()
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not text"
            raise StorageError(
                f"{path} cannot be read ({why}); it is written when the node's machine"
                " starts, so start the machine."
            ) from error

    def host_ids(self) -> dict[str, int]:
        """Return the host id of each member."""
        return {name: member.host_id for name, member in self.members.items()}

    def require_member(self, node: str, option: str = "node") -> None:
        """Raise ``InputError`` for the value *node* of an *option* unless it is a member."""
        names.require_known(node, option, self.members, "one of the cluster's nodes")


def run_directory(folder: Path) -> Path:
    """Return the run directory that belongs to the *folder* of a machine."""
    if not any(character.isspace() for character in str(folder)):
        return folder / "run"
    # Here, as loading it costs more than reading a configuration.
    import tempfile

    digest = hashlib.sha256(str(folder).encode()).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"holdfast-run-{os.geteuid()}-{digest}"


def make_private(directory: Path) -> None:
    """Make a folder for this user alone; raises ``StorageError`` if it is another user's."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = directory.lstat()
    except OSError as error:
        raise StorageError(f"{directory} cannot be made: {error.strerror}.") from error
    if found.st_uid != os.geteuid() or not stat.S_ISDIR(found.st_mode):
        raise StorageError(f"{directory} belongs to somebody else; remove it, and start again.")
