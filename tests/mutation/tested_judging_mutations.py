# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mistakes in judging nodes, in fences and in host leases, with the unit tests that find them.

More than one guard is there against what they lead to, so random faults seldom show them.
"""

from __future__ import annotations

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm import (
    candidate,
    commands,
    cycle,
    fencing,
    freed_leases,
    health,
    last_look,
    nodes,
    pausing,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model import (
    lease_freeing,
    state_codec,
    versions,
)
from ansible_collections.holdfast.ha.tests.mutation.making import FoundByTest, Mutation, edited

_EDITS = (
    # By its number of commands an older record is recognised.
    (
        "count-no-permission-to-migrate",
        commands,
        "_wait_for_target",
        "        round_.count_command()\n",
        "",
        "cluster/crm/test_started.py",
        "test_a_source_lets_a_service_go_only_once_its_target_expects_it",
    ),
    (
        "count-no-end-of-a-disarming",
        pausing,
        "update_disarm",
        "            round_.count_command()\n",
        "",
        "cluster/crm/test_pausing.py",
        "test_disarming_freezes_first_and_ends_with_the_last_lrm",
    ),
    # What is read may be old.
    (
        "fence-by-old-reads",
        fencing,
        "order_fences",
        " or round_.seen.storage_trouble",
        "",
        "cluster/crm/test_nodes.py",
        "test_an_ill_manager_fences_nobody",
    ),
    (
        "fence-without-reading-back",
        last_look,
        "why_not_sent",
        "if not (yield from perform(OwnRecordStands())):",
        "if False:",
        "node/test_crm.py",
        "test_a_candidate_that_does_not_read_back_its_intent_does_not_fence",
    ),
    (
        "fence-a-node-that-writes-again",
        last_look,
        "why_not_sent",
        "if (yield from perform(HasNewHeartbeat(node))):",
        "if False:",
        "node/test_crm.py",
        "test_a_candidate_does_not_fence_a_manager_that_writes_again",
    ),
    (
        "fence-as-a-candidate-without-a-last-look",
        candidate,
        "_fence",
        "obstacle = yield from why_not_sent([node])",
        'obstacle = ""',
        "node/test_crm.py",
        "test_a_candidate_does_not_fence_a_manager_that_writes_again",
    ),
    (
        "fence-by-the-records-before-the-intent",
        candidate,
        "_fence",
        "obstacle or (yield from _record_obstacle(crm, observation))",
        "obstacle",
        "node/test_crm.py",
        "test_a_candidate_reads_after_its_intent_whether_the_cluster_was_disarmed",
    ),
    (
        "fence-as-a-manager-without-a-last-look",
        cycle,
        "_may_act",
        '(yield from why_not_sent(silent)) if fenced else ""',
        '""',
        "node/test_crm.py",
        "test_a_manager_that_does_not_read_back_what_it_wrote_fences_nobody",
    ),
    # A turn, and the host lease under which it is played.
    (
        "look-at-the-clock-before-the-lease",
        cycle,
        "_may_act",
        "    if not (yield from perform(HoldsManagerLease())):\n"
        '        raise LeaseError("the manager lease was lost before the orders were given")\n'
        "    if (yield from perform(IsEnding())):\n"
        "        # This process would not wait for the end of the orders.\n"
        "        return False\n"
        "    if (yield from crm.is_late()):",
        "    late = yield from crm.is_late()\n"
        "    if not (yield from perform(HoldsManagerLease())):\n"
        '        raise LeaseError("the manager lease was lost before the orders were given")\n'
        "    if late:",
        "node/test_crm.py",
        "test_who_was_held_up_in_the_last_look_at_the_lease_gives_no_orders",
    ),
    (
        "confirm-the-host-lease-seldom",
        cycle,
        "_has_host_lease",
        "crm.begun + CONFIRM",
        "crm.begun + 60.0 * CONFIRM",
        "node/test_crm.py",
        "test_a_host_lease_is_freed_under_a_new_own_one_only_once_that_is_recorded",
    ),
    (
        "manage-on-after-the-host-lease-is-lost",
        cycle,
        "_resign",
        "    crm.stop_managing()\n",
        "",
        "node/test_crm.py",
        "test_a_manager_whose_host_lease_is_lost_is_none_at_once_and_again_once_it_is_back",
    ),
    (
        "take-over-before-a-heartbeat-was-seen",
        versions,
        "not_heard_yet",
        "        if not seen.beats:",
        "        if False:",
        "cluster/model/test_versions.py",
        "test_a_new_manager_hears_every_node_that_is_alive_first",
    ),
    # What a CRM observes.
    (
        "keep-beats-from-before-a-gap",
        health.Watch,
        "begin_look",
        "        self.beating.clear()\n",
        "",
        "node/test_observer.py",
        "test_silence_while_nobody_looked_is_none_but_is_no_sign_of_life_either",
    ),
    (
        "take-every-node-for-beating",
        health.Watch,
        "observe",
        "node in self.beating,",
        "True,",
        "node/test_observer.py",
        "test_an_old_block_alone_is_no_sign_of_life",
    ),
    (
        "ask-on-for-ever",
        health.Watch,
        "ask",
        "        self.asked.pop(node, None)\n",
        "",
        "node/test_observer.py",
        "test_a_node_that_was_fresh_in_between_is_asked_anew",
    ),
    (
        "take-a-node-with-services-for-left",
        health,
        "_stopped_all",
        "report is None or report.running() or report.coming",
        "report is None",
        "cluster/crm/test_health.py",
        "test_only_who_stopped_all_and_gave_its_lease_back_has_left",
    ),
    (
        "take-a-disarmed-lease-for-a-proof",
        nodes,
        "_lease_is_proof",
        " and not disarmed",
        "",
        "cluster/crm/test_nodes.py",
        "test_the_lease_of_a_node_that_was_disarmed_is_no_proof_once_it_ran_out",
    ),
    # Fences and their proofs.
    (
        "forget-how-long-the-look-took",
        health,
        "sort_ends",
        "now - observation.took - changed",
        "now - changed",
        "cluster/crm/test_fence_ends.py",
        "test_a_proof_waits_for_silence_that_was_seen_until_the_look_began",
    ),
    (
        "allow-writes-for-rounds-after-a-fence",
        health,
        "sort_ends",
        "end.ended + ROUND",
        "end.ended + 10 * ROUND",
        "cluster/crm/test_fence_ends.py",
        "test_a_proof_waits_for_silence_that_was_seen_until_the_look_began",
    ),
    (
        "count-any-answer-against-a-proof",
        health,
        "sort_ends",
        "(answers and now - end.ended > ANSWER_WAIT)",
        "answers",
        "cluster/crm/test_fence_ends.py",
        "test_an_answer_speaks_against_a_proof_only_if_it_may_have_come_after_the_fence",
    ),
    (
        "decide-by-proofs-that-are-held-back",
        cycle,
        "_observe",
        "fences=tuple(crm.fences),",
        "fences=(*crm.fences, *(end.report for end in crm.held_back)),",
        "node/test_crm.py",
        "test_the_proof_of_a_node_that_wrote_after_the_fence_waits_until_it_is_quiet",
    ),
    (
        "fence-while-disarmed",
        nodes,
        "update_nodes",
        ' and round_.state.disarm != "disarmed"',
        "",
        "cluster/crm/test_pausing.py",
        "test_a_fence_without_services_at_stake_is_not_sent_while_all_is_disarmed",
    ),
    (
        "fence-who-writes-again",
        fencing,
        "order_fences",
        "        if seen.heartbeat_age < round_.timing.suspect_after and not status.demanded:",
        "        if False:",
        "cluster/crm/test_nodes.py",
        "test_a_fence_inherited_from_the_last_manager_waits_for_an_own_look",
    ),
    (
        "cancel-a-fence-that-is-under-way",
        nodes,
        "_handle_healthy",
        "        if name in round_.seen.fencing:",
        "        if False:",
        "cluster/crm/test_nodes.py",
        "test_a_fence_under_way_is_waited_for_although_the_heartbeat_returns",
    ),
    (
        "let-fences-pass-by-any-clock",
        fencing,
        "_passing",
        "    if not round_.seen.wall_even:",
        "    if False:",
        "cluster/crm/test_nodes.py",
        "test_a_fence_does_nothing_any_more_in_the_end_by_a_clock_that_ran_evenly",
    ),
    (
        "drop-the-kind-of-a-proof-from-the-record",
        state_codec,
        "_proof_row",
        'row["proof"], row["proof_kind"] = status.proof.by, status.proof.kind.value',
        'row["proof"] = status.proof.by',
        "cluster/model/test_proof_records.py",
        "test_a_proof_is_read_back_as_it_was_written",
    ),
    # Host leases that are freed.
    (
        "free-by-a-proof-that-was-not-accepted",
        cycle,
        "_manage",
        "one if _is_off(decided.state, one.node) else replace(one, confirmed=False)",
        "one",
        "node/test_crm.py",
        "test_a_proof_that_the_manager_does_not_accept_frees_no_host_lease",
    ),
    (
        "announce-a-fence-and-not-what-it-frees",
        candidate,
        "_fence",
        "crm.freed_leases.to_record_with(node)",
        "crm.freed_leases.to_record()",
        "node/test_crm.py",
        "test_a_candidate_that_was_held_up_in_writing_its_intent_does_not_fence",
    ),
    (
        "free-by-a-record-of-an-earlier-host-lease",
        cycle,
        "_resign",
        "    crm.freed_leases.recorded = {}\n",
        "",
        "node/test_crm.py",
        "test_a_host_lease_is_freed_under_a_new_own_one_only_once_that_is_recorded",
    ),
    (
        "free-without-a-verified-end",
        freed_leases,
        "proves_off",
        "fence.confirmed and fence.verified and fence.quiet",
        "fence.confirmed and fence.quiet",
        "node/test_freed_leases.py",
        "test_nothing_less_than_a_devices_word_on_a_silent_node_sets_anything_free",
    ),
    (
        "free-of-a-node-that-was-not-quiet",
        freed_leases,
        "proves_off",
        "fence.confirmed and fence.verified and fence.quiet",
        "fence.confirmed and fence.verified",
        "node/test_freed_leases.py",
        "test_nothing_less_than_a_devices_word_on_a_silent_node_sets_anything_free",
    ),
    (
        "wait-for-a-free-for-ever",
        lease_freeing,
        "awaited_writers",
        "and not has_ended(writer, record.generation)",
        "",
        "cluster/model/test_lease_freeing.py",
        "test_a_node_waits_for_each_write_against_another_of_its_host_leases",
    ),
)

TESTED_JUDGING_MUTATIONS = tuple(
    FoundByTest(Mutation(name, edited(home, function, old, new)), file, test)
    for name, home, function, old, new, file, test in _EDITS
)
"""Each is an edit of the shipped code that a unit test finds."""
