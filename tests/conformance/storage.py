# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The shared storage of a scenario, as Python values, and who can reach it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TypeVar

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired import (
    DesiredState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.lease_freeing import (  # noqa: E501
    Freeing,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.membership import (  # noqa: E501
    Membership,
    Place,
    make_membership,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    Report,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    ClusterState,
    Intent,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.versions import (
    LeaseVersion,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import StorageError
from ansible_collections.holdfast.ha.tests.conformance.world import Machine, World

T = TypeVar("T")

SLOT = 1
"""The host id in whose slot the configuration is."""


@dataclass
class Storage:
    """The newest record of each kind; *manager_lease* counts how often that lease was acquired.

    *removed* are the services that were taken out of the configuration: there they become unmanaged
    first, so that they go on running as in Proxmox VE.
    """

    world: World
    desired: DesiredState
    state: ClusterState = field(default_factory=lambda: ClusterState(epoch=1))
    reports: dict[str, Report] = field(default_factory=dict)
    freeing: dict[str, Freeing] = field(default_factory=dict)
    intent: Intent | None = None
    manager_lease: LeaseVersion = field(default_factory=lambda: LeaseVersion(1))
    removed: set[str] = field(default_factory=set)

    def read(self, machine: Machine, record: T) -> T:
        """Return *record*; raises ``StorageError`` unless the machine can read all records."""
        self.check_writable(machine)
        if not (machine.reads and machine.updates):
            raise StorageError("the cluster file system of this node fails")
        return record

    def check_writable(self, machine: Machine) -> None:
        """Raise ``StorageError`` unless the machine can write its own record."""
        if not self.world.quorate(machine.name):
            raise StorageError("this node has no quorum")

    def write_freeing(self, name: str, record: Freeing) -> None:
        """Write which host leases *name* is about to free."""
        self.freeing[name] = record

    def note_manager(self, name: str) -> None:
        """Count one more version of the manager lease, which *name* acquired."""
        self.manager_lease = LeaseVersion(self.manager_lease.version + 1, name)

    def change(self, desired: DesiredState) -> None:
        """Write the next version of the configuration."""
        self.desired = replace(desired, version=self.desired.version + 1)


def boot_id(machine: Machine) -> str:
    """Return what identifies the current start of a machine."""
    return f"boot{machine.boot}"


def host_ids(world: World) -> dict[str, int]:
    """Return the host id of each node: its place in the order of names."""
    return {name: number for number, name in enumerate(sorted(world.machines), start=1)}


def membership(world: World) -> Membership:
    """Return the membership that all nodes are configured with."""
    return make_membership({name: Place(one) for name, one in host_ids(world).items()}, "")
