# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a simulated cluster can be checked: calls at each event that a rule of safety is about.

``tests/simulation/rules.py`` has the rules.  A forecast for an operator checks nothing: it begins
in the middle of a cluster's life, and the rules need all that happened before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..cluster.model.jobs import Job
from ..cluster.model.state import ClusterState
from .machine import Machine

if TYPE_CHECKING:
    from .crm import CrmDaemon


class Checks:
    """Checks nothing; a subclass raises an error for an event that must not happen."""

    def activated(self, service_id: str) -> None:
        """Check a service that was just activated somewhere."""

    def starts(self, machine: Machine, job: Job) -> None:
        """Check the start or restart that *job* is about to do."""

    def migrates(self, machine: Machine, job: Job) -> None:
        """Check the migration that *job* is about to do."""

    def records(self, crm: CrmDaemon, before: ClusterState | None, state: ClusterState) -> None:
        """Check the record *state* that a manager is about to write after *before*."""

    def announces(self, crm: CrmDaemon, node: str) -> None:
        """Check the fence of *node* that a candidate is about to announce."""

    def orders(self, crm: CrmDaemon, what: str) -> None:
        """Check that a CRM may order something now; *what* says what, for an error."""

    def fences(self, crm: CrmDaemon, node: str) -> None:
        """Check a fence that a CRM is about to send."""

    def frees(self, by: str, machine: Machine) -> None:
        """Check that node *by* may free the host lease of another machine."""
