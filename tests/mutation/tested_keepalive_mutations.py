# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mistakes about keepalives, with the unit tests that find them.

A node that is suspected too soon is still asked over the network, so random faults seldom show one
of these mistakes alone.
"""

from __future__ import annotations

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm import (
    rhythm,
    watch,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.lrm import keepalives
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon import datagrams
from ansible_collections.holdfast.ha.tests.mutation.making import FoundByTest, Mutation, edited

_RHYTHM = "cluster/crm/test_rhythm.py"
_SENDER = "cluster/lrm/test_keepalives.py"
_DATAGRAMS = "node/test_datagrams.py"

_EDITS = (
    (
        "judge-by-one-way-after-the-other-has-failed",
        rhythm,
        "short_limit",
        "    if abs(rhythm.heard - changed) > timing.suspect_soonest:",
        "    if False:",
        _RHYTHM,
        "test_the_short_limit_counts_while_both_ways_worked",
    ),
    (
        "count-the-silence-of-heartbeats-alone",
        rhythm,
        "short_limit",
        "max(changed, rhythm.heard, answered, steady_since)",
        "changed",
        _RHYTHM,
        "test_the_short_limit_counts_while_both_ways_worked",
    ),
    (
        "shorten-the-limit-with-the-first-keepalive",
        rhythm,
        "short_limit",
        " < LEARNING:",
        " < 0.0:",
        _RHYTHM,
        "test_without_keepalives_for_long_enough_heartbeats_alone_count",
    ),
    (
        "forget-how-irregular-the-signs-of-life-were",
        rhythm.Rhythm,
        "limit",
        "MULTIPLE * longest",
        "0.0",
        _RHYTHM,
        "test_the_limit_follows_the_longest_silence_within_what_the_operator_set",
    ),
    (
        "suspect-at-half-of-the-soonest",
        rhythm.Rhythm,
        "limit",
        "timing.suspect_soonest",
        "timing.suspect_soonest / 2",
        _RHYTHM,
        "test_the_limit_follows_the_longest_silence_within_what_the_operator_set",
    ),
    (
        "keep-the-rhythm-of-another-start",
        rhythm.Rhythm,
        "note_boot",
        "    if self.boot:",
        "    if False:",
        _RHYTHM,
        "test_another_start_of_the_node_is_learned_anew",
    ),
    (
        "take-no-keepalive-for-an-answer",
        watch.Watch,
        "_answered_at",
        "    if rhythm is not None and rhythm.sends:",
        "    if False:",
        _RHYTHM,
        "test_a_node_that_only_lost_its_storage_is_never_fenced_while_it_sends",
    ),
    (
        "count-a-silence-in-which-nobody-looked",
        watch.Watch,
        "begin_look",
        "self.steady_since = now",
        "pass",
        _RHYTHM,
        "test_an_observer_that_did_not_look_counts_no_silence",
    ),
    (
        "take-the-restart-of-an-lrm-for-death",
        watch.Watch,
        "_short_limit_by",
        " or report.mode is not Mode.ACTIVE",
        "",
        _RHYTHM,
        "test_an_lrm_that_restarts_or_leaves_has_the_long_limit",
    ),
    (
        "say-that-a-hanging-lrm-works",
        keepalives.Keepalives,
        "take_due",
        "now - self.turned <= TURN_WITHIN",
        "True",
        _SENDER,
        "test_a_keepalive_says_whether_the_lrm_made_a_turn",
    ),
    (
        "believe-a-keepalive-that-is-repeated",
        datagrams.Correspondence,
        "_counts",
        " or message.beat <= highest",
        "",
        _DATAGRAMS,
        "test_keepalives_count_once_each_in_their_order",
    ),
    (
        "believe-a-keepalive-that-was-recorded",
        datagrams.Correspondence,
        "_counts",
        "now - when > ASKED_FOR or ",
        "",
        _DATAGRAMS,
        "test_a_recorded_keepalive_shows_a_dead_node_alive_for_seconds_only",
    ),
    (
        "believe-a-keepalive-without-the-key",
        datagrams.Correspondence,
        "believed",
        "if self._is_signed(message, mac):",
        "if True:",
        _DATAGRAMS,
        "test_no_policy_believes_a_keepalive_or_a_request_without_the_key",
    ),
)

TESTED_KEEPALIVE_MUTATIONS = tuple(
    FoundByTest(Mutation(name, edited(home, function, old, new)), file, test)
    for name, home, function, old, new, file, test in _EDITS
)
"""Each is an edit of the shipped code, the file of a test below ``tests/unit``, and the test."""
