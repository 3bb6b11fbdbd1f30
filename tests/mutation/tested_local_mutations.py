# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mistakes in what an LRM acts on and reports, with the unit tests that find them.

More than one guard is there against what they lead to, so random faults seldom show them.
"""

from __future__ import annotations

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.lrm import (
    commands,
    cycle,
    host_lease,
    results,
    step,
)
from ansible_collections.holdfast.ha.tests.mutation.making import FoundByTest, Mutation, edited

_EDITS = (
    # The host lease, and clocks that jump.
    (
        "take-a-look-for-a-renewal",
        host_lease.HostLease,
        "_confirm",
        "self.renewed_at = now - lease.unchanged_for",
        "self.renewed_at = now",
        "node/test_host_lease.py",
        "test_the_fail_time_counts_from_the_renewal_and_not_from_the_last_look_at_it",
    ),
    (
        "stop-a-round-later-than-the-fail-time",
        host_lease.HostLease,
        "_confirm",
        "silent >= self.fail_seconds",
        "silent >= self.fail_seconds + 1.0",
        "node/test_host_lease.py",
        "test_a_sanlock_that_does_not_answer_is_trouble_only_after_the_fail_time",
    ),
    (
        "sleep-through-a-suspension",
        host_lease.HostLease,
        "_note_suspension",
        "if may_have_failed(",
        "if False and may_have_failed(",
        "node/test_host_lease.py",
        "test_a_node_that_was_suspended_for_longer_than_its_lease_lasts_leaves_and_joins_again",
    ),
    (
        "doubt-no-renewal",
        host_lease.HostLease,
        "_trouble_of",
        'silent if lease.unchanged_for >= self.fail_seconds / 2 else ""',
        '""',
        "node/lrm/test_own_host_lease.py",
        "test_nothing_new_is_started_from_half_of_the_fail_time_without_a_renewal",
    ),
    (
        "start-under-a-doubtful-lease",
        step,
        "step",
        "not observed.lease_trouble and not observed.renewal_trouble",
        "not observed.lease_trouble",
        "node/lrm/test_own_host_lease.py",
        "test_a_lease_whose_next_renewal_is_in_doubt_lets_nothing_new_be_started",
    ),
    (
        "start-after-a-jump",
        cycle,
        "start_obstacle",
        "    if jump:",
        "    if False:",
        "node/lrm/test_own_host_lease.py",
        "test_workers_start_nothing_after_a_jump_until_lease_and_record_were_read_again",
    ),
    (
        "note-a-jump-as-over-at-once",
        cycle,
        "_note_jump",
        "lrm.clocks = clocks",
        "lrm.clocks = current",
        "node/lrm/test_own_host_lease.py",
        "test_a_jump_in_the_middle_of_a_turn_is_known_to_the_workers_until_the_next_one",
    ),
    (
        "go-on-in-the-phase-before-the-loss",
        step,
        "_next_phase",
        "        if not round_.may_start or fenced:\n            return Phase.LOST\n",
        "",
        "cluster/lrm/test_mode.py",
        "test_without_a_renewed_lease_nothing_is_started",
    ),
    # What an LRM follows and reports.
    (
        "go-on-by-the-last-record",
        cycle,
        "_read",
        "        lrm.state = None\n",
        "",
        "node/lrm/test_followed_records.py",
        "test_what_the_last_record_said_is_not_begun_while_the_next_cannot_be_read",
    ),
    (
        "live-on-though-proved-dead",
        step,
        "proved_dead",
        "    if not known.proved_dead:",
        "    if True:",
        "node/lrm/test_start.py",
        "test_a_node_whose_present_start_was_proved_dead_stops_all_it_runs",
    ),
    (
        "report-what-ran-in-an-earlier-start-as-running",
        step,
        "resume",
        "last.services if last.boot == boot else _with_unknown_states(last)",
        "last.services",
        "cluster/lrm/test_step.py",
        "test_what_ran_in_an_earlier_start_of_the_node_is_not_reported_to_run",
    ),
    (
        "take-what-is-left-of-a-migration-for-gone",
        results,
        "_end_migration_probe",
        "if end.sight is Sight.STOPPED:",
        "if end.sight is not Sight.RUNNING:",
        "cluster/lrm/test_step.py",
        "test_a_new_daemon_looks_before_it_concludes",
    ),
    (
        "leave-what-came-to-a-node-without-a-host-lease",
        step,
        "step",
        "            commands.stop_incoming(round_, state, why)\n",
        "            pass\n",
        "cluster/lrm/test_step.py",
        "test_what_came_to_a_node_that_lost_its_host_lease_is_stopped_and_then_binds_it_no_more",
    ),
    (
        "give-up-a-stop-without-a-host-lease",
        step,
        "_stop_everything",
        "in round_.report.running():",
        "in round_.report.to_be_stopped():",
        "cluster/lrm/test_step.py",
        "test_without_a_fresh_lease_what_could_not_be_stopped_is_tried_again_in_half_a_minute",
    ),
    (
        "let-a-node-go-that-was-not-told-to-stop-what-came",
        commands,
        "_is_incoming",
        "bool(status.from_node) or status.underlying in STOPS",
        "bool(status.from_node)",
        "cluster/lrm/test_mode.py",
        "test_what_may_come_while_it_runs_binds_its_target_to_the_watchdog",
    ),
    (
        "take-a-blocked-start-for-a-failed-one",
        results,
        "_end_start",
        "    elif end.outcome is Outcome.FAILED:",
        "    elif end.outcome in (Outcome.FAILED, Outcome.BLOCKED):",
        "cluster/lrm/test_step.py",
        "test_the_end_of_a_job_is_published_as_the_commands_result",
    ),
)

TESTED_LOCAL_MUTATIONS = tuple(
    FoundByTest(Mutation(name, edited(home, function, old, new)), file, test)
    for name, home, function, old, new, file, test in _EDITS
)
"""Each is an edit of the shipped code that a unit test finds."""
