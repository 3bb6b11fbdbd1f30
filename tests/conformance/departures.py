# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where our managers knowingly do something else than Proxmox VE's, each with its reason.

The tests of the corpus take a scenario that is named here for right only as long as it
really differs, so that this list never holds more than it must.
"""

from __future__ import annotations

DEPARTURES = {
    "crm-maintenance-request2": (
        "A node that is off can be put into maintenance: it stays empty when it comes back."
        " The peer refuses the command, and the node that was to be left alone gets services."
    ),
    "disarm-failing-service1": (
        "A service whose stop failed stays in error, as it still runs; the stop is tried again."
        " The peer calls it stopped once it is disabled, while it goes on running."
    ),
    "resource-failure4": (
        "A service whose stop failed stays in error until it is stopped or removed."
        " The peer calls it stopped once it is disabled, while it goes on running."
    ),
    "disarm-fence1": (
        "A recovery that was under way when the cluster was disarmed is ended: the service runs"
        " before it is frozen. The peer leaves it down until the cluster is armed again."
    ),
    "disarm-fence2": (
        "A recovery that was under way when the cluster was disarmed is ended: the service runs"
        " before it is frozen. The peer leaves it down until the cluster is armed again."
    ),
    "resource-affinity-strict-mixed2": (
        "A service that is already leaving its node keeps no other from staying there, so one"
        " service less has to move."
    ),
    "resource-affinity-strict-mixed4": (
        "A service that is already leaving its node keeps no other from staying there, so three"
        " services less have to move."
    ),
    "service-command7": (
        "A migration that a node knows nothing of is ended by making sure that nothing of the"
        " service runs there; then it starts on the target. The peer leaves it down in error."
    ),
    "shutdown-policy-migrate-fail1": (
        "When a live migration failed once the service is stopped and started elsewhere, so that"
        " a shutdown does not wait for it. The peer tries the same migration again and again."
    ),
    "service-ignore2": (
        "A service that was unmanaged is looked for on all nodes before anything is started. Its"
        " silent node is fenced for that, and then it starts where it is best. The peer takes it"
        " to run on that node at once, and recovers it from there after the fence."
    ),
    "shutdown-policy4": (
        "A service that is to be started while its node is off starts on another node at once."
        " The peer gives it to the node that is off, fences that, and recovers it from there."
    ),
    "stale-maintenance-node": (
        "A node that was restarted does nothing on what its earlier start was told, as that may"
        " have been recovered elsewhere since and be read late: the manager sees it first, and"
        " starts the service where it is best. The peer's node acts on the old order at once."
    ),
}

COMPARED_OTHERWISE = {
    "crs-": (
        "Where nodes are compared by the load that services declare or cause, another choice may be"
        " as good. What is compared is how uneven the load is, before each fault and at the end."
    ),
    "locked-service": (
        "The peer's guests can be locked; services have no such locks here, and the command that"
        " locks one does nothing. These scenarios only have to be safe."
    ),
}
"""Beginnings of names of scenarios whose traces are not compared, each with the reason."""

SAME_CHOICE = frozenset(
    {
        "crs-dynamic-auto-rebalance-topsis0",
        "crs-dynamic-auto-rebalance-topsis1",
        "crs-dynamic-auto-rebalance0",
        "crs-static-auto-rebalance1",
        "crs-static5",
    }
)
"""Those of them in which the choice is the same all the same: their traces are compared, too."""
