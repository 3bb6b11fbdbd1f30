# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Deliberate mistakes in where services are placed by the resources and locations of nodes."""

from __future__ import annotations

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm import (
    locations,
    rebalance,
    reservations,
    selection,
    steady,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.resources import (
    Occupancy,
)
from ansible_collections.holdfast.ha.tests.mutation.making import (
    FoundByTest,
    Mutation,
    changed,
    edited,
    returns,
)
from ansible_collections.holdfast.ha.tests.simulation.random_scenario import SCARCE

RESOURCES = "cluster/crm/test_declared_resources.py"
LOCATIONS = "cluster/crm/test_locations.py"
BOTH_NODES = "nodes = [status.node, status.target]"

PLACEMENT_MUTATIONS = (
    Mutation("place-without-the-resource", changed(Occupancy, "shortage", returns("")), SCARCE),
    Mutation(
        "leave-the-target-out-while-it-moves",
        edited(reservations, "_nodes_of", BOTH_NODES, "nodes = [status.node]"),
        SCARCE,
    ),
    Mutation(
        "leave-the-source-out-while-it-moves",
        edited(reservations, "_nodes_of", BOTH_NODES, "nodes = [status.target or status.node]"),
        SCARCE,
    ),
    Mutation(
        "return-to-a-full-node",
        edited(steady, "_starts_where_it_was", "taken.shortage([service_id], node)", "''"),
        SCARCE,
    ),
    Mutation(
        "move-on-request-to-a-full-node",
        edited(selection, "refusal", "observed.desired.limits is None", "True"),
        SCARCE,
    ),
)
"""Random faults find each of them where resources are scarce."""

TESTED_PLACEMENT = (
    FoundByTest(
        Mutation(
            "forget-where-a-migration-may-have-ended",
            edited(reservations, "_nodes_of", "nodes = [status.target]\n", "nodes = []\n"),
            SCARCE,
        ),
        RESOURCES,
        "test_a_node_that_lacks_a_resource_is_never_chosen",
    ),
    FoundByTest(
        Mutation(
            "forget-what-a-probe-found",
            edited(
                reservations,
                "_nodes_of",
                "return tuple(observed.nodes_that_run(status.probe(service_id)))",
                "return ()",
            ),
            SCARCE,
        ),
        RESOURCES,
        "test_what_is_found_in_a_probe_and_what_is_unmanaged_counts",
    ),
    FoundByTest(
        Mutation(
            "forget-what-is-being-removed",
            changed(reservations, "_needs_of_removed", returns({})),
            SCARCE,
        ),
        RESOURCES,
        "test_what_is_removed_counts_until_it_has_stopped",
    ),
    FoundByTest(
        Mutation(
            "forget-unmanaged-services", changed(reservations, "_unmanaged", returns({})), SCARCE
        ),
        RESOURCES,
        "test_what_is_found_in_a_probe_and_what_is_unmanaged_counts",
    ),
    FoundByTest(
        Mutation(
            "place-the-first-without-its-partners",
            edited(selection, "_with_room_for_partners", "not taken.shortage(group, node)", "True"),
            SCARCE,
        ),
        RESOURCES,
        "test_the_first_of_a_group_goes_where_all_of_it_fit",
    ),
    FoundByTest(
        Mutation("ignore-safety-capacities", changed(Occupancy, "excess", returns(0.0)), SCARCE),
        RESOURCES,
        "test_a_node_within_its_safety_capacity_is_better",
    ),
    FoundByTest(
        Mutation(
            "balance-beyond-safety-capacities",
            changed(rebalance, "_stays_within", returns(True)),
            SCARCE,
        ),
        "cluster/crm/test_rebalance.py",
        "test_no_move_exceeds_a_capacity_or_leaves_a_location_rule",
    ),
    FoundByTest(
        Mutation(
            "exchange-without-room",
            changed(rebalance, "_may_exchange", returns(True)),
            SCARCE,
        ),
        "cluster/crm/test_exchanges.py",
        "test_two_nodes_exchange_services_at_once_if_both_have_room",
    ),
    FoundByTest(
        Mutation("ignore-locations", changed(locations, "location_cost", returns(0)), SCARCE),
        LOCATIONS,
        "test_a_running_service_moves_only_if_that_brings_a_rule_closer",
    ),
    FoundByTest(
        Mutation(
            "ignore-strict-locations", changed(locations, "location_refusal", returns("")), SCARCE
        ),
        LOCATIONS,
        "test_a_service_is_started_where_its_rules_are_kept_best",
    ),
    FoundByTest(
        Mutation(
            "start-in-any-location",
            edited(
                selection,
                "_best",
                "best_located(service_id, preferred, state, observed.desired)",
                "preferred",
            ),
            SCARCE,
        ),
        LOCATIONS,
        "test_a_service_is_started_where_its_rules_are_kept_best",
    ),
)
"""Mistakes that other guards cover, or that no rule of the simulator is about."""
