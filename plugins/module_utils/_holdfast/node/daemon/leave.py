# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node leaves its cluster in an orderly way: its host lease is free at once after that.

Stopping sanlock frees nothing, so without this the others would have to wait for the
node's death, or fence it, before anything of it is taken for free.
"""

from __future__ import annotations

from ...errors import InputError, LeaseError
from ..cluster_storage import ClusterStorage
from ..configuration import LRM, NodeConfiguration
from .free_under_way import is_under_way
from .network import own_network


def leave_cluster(configuration: NodeConfiguration) -> None:
    """Give this node's host lease back; for the node's shutdown, after its daemons have ended.

    Raises ``LeaseError`` when the node has no host lease, while its LRM runs, and while
    services of this start of the node are not known to have stopped: drain the node first.
    """
    me = configuration.me
    try:
        # Held until the end, so that no LRM starts meanwhile.
        place_of_the_lrm = own_network(configuration, LRM)
    except InputError as error:
        raise LeaseError(
            f"The LRM of {configuration.node} still runs; stop the daemons before the node leaves."
        ) from error
    storage = ClusterStorage(configuration)
    try:
        report = storage.read_report(me.host_id)
        left = [*report.running(), *report.coming] if report is not None else []
        if report is not None and report.boot == configuration.boot() and left:
            raise LeaseError(
                f"Node {configuration.node} keeps its host lease: {', '.join(left)} may still run"
                " here; drain the node before it leaves."
            )
        if is_under_way(configuration.run_directory):
            raise LeaseError(
                f"Node {configuration.node} keeps its host lease: its CRM has not finished freeing"
                " another node's host lease."
            )
        storage.adopt_host_lease()
        storage.leases.withdraw()
    finally:
        storage.close()
        place_of_the_lrm.close()
