# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mistakes in the control loops, in what a CRM observes, and in how leases are handled."""

from __future__ import annotations

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm import (
    candidate,
    cycle,
    freed_leases,
    standbys,
    watch,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.lrm import (
    cycle as lrm_cycle,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.lrm import host_lease
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model import (
    lease_freeing,
    news,
    versions,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage import news_index
from ansible_collections.holdfast.ha.tests.mutation.making import Mutation, edited
from ansible_collections.holdfast.ha.tests.simulation import random_scenario

MIXED = random_scenario.MIXED
CLOSE = random_scenario.CLOSE
LEFT = random_scenario.LEFT
PAUSES = random_scenario.PAUSES
STALE = random_scenario.STALE
OPERATORS = random_scenario.OPERATORS
HELD = random_scenario.HELD
FENCES = random_scenario.FENCES
CROWDS = random_scenario.CROWDS
STARVED = random_scenario.STARVED

_EDITS = (
    # The manager: look, decide, write the record, confirm the lease, act.
    (
        "give-orders-without-the-lease",
        cycle,
        "_may_act",
        "if not (yield from perform(HoldsManagerLease())):",
        "if False:",
        PAUSES,
    ),
    (
        "give-orders-though-late",
        cycle,
        "_may_act",
        "if (yield from crm.is_late()):",
        "if False:",
        MIXED,
    ),
    (
        "keep-old-ends-of-fences",
        cycle,
        "_manage",
        "    crm.drop_ends()\n",
        "",
        MIXED,
    ),
    (
        "manage-by-an-older-configuration",
        cycle,
        "_observe",
        "    if older:",
        "    if False:",
        STALE,
    ),
    (
        "forget-the-trouble-of-this-node",
        cycle,
        "_observe",
        "storage_trouble=observation.trouble or crm.trouble,",
        'storage_trouble="",',
        HELD,
    ),
    (
        "forget-the-hold-of-the-board",
        cycle,
        "_observe",
        "held=observation.held,",
        'held="",',
        CLOSE,
    ),
    (
        "forget-fences-under-way",
        cycle,
        "_observe",
        "fencing=crm.fencing | {end.report.node for end in crm.held_back},",
        "fencing=frozenset(),",
        MIXED,
    ),
    (
        "write-and-do-not-remember-it",
        cycle,
        "_write",
        "        crm.state = crm.written = state\n",
        "        crm.written = None\n",
        MIXED,
    ),
    # The order of a turn, and who is manager.
    (
        "manage-on-after-the-lease-is-lost",
        cycle,
        "_turn",
        "if crm.state is not None and not (yield from perform(HoldsManagerLease())):",
        "if False:",
        PAUSES,
    ),
    (
        "take-over-without-a-repair",
        cycle,
        "_take_over",
        "    if records.repaired:",
        "    if False:",
        STALE,
    ),
    (
        "take-over-without-an-announced-fence",
        cycle,
        "_take_over",
        "intent = yield from perform(ReadIntent())",
        "intent = None",
        PAUSES,
    ),
    (
        "forget-held-back-proofs",
        cycle,
        "_collect",
        "ends = [*crm.held_back, *ended.fences]",
        "ends = [*ended.fences]",
        FENCES,
    ),
    (
        "free-no-host-lease-that-was-renewed-once-more",
        cycle,
        "_turn",
        "    yield from crm.freed_leases.watch(clocks.mono)\n",
        "",
        OPERATORS,
    ),
    (
        "record-nothing-of-what-a-candidate-frees",
        cycle,
        "_turn",
        "        yield from crm.record_freeing(record)\n",
        "        pass\n",
        FENCES,
    ),
    (
        "manage-on-by-the-state-before-the-lease-was-lost",
        cycle,
        "_turn",
        "        crm.stop_managing()\n",
        "",
        FENCES,
    ),
    (
        "forget-which-fences-are-under-way",
        cycle,
        "_collect",
        "    crm.fencing = ended.fencing\n",
        "",
        HELD,
    ),
    (
        "forget-how-power-ons-ended",
        cycle,
        "_collect",
        "    crm.powers.extend(ended.powers)\n",
        "",
        OPERATORS,
    ),
    (
        "take-every-record-for-a-repaired-one",
        cycle,
        "_take_over",
        "    if records.repaired:",
        "    if True:",
        FENCES,
    ),
    # The candidate.
    (
        "fence-before-it-is-announced",
        candidate,
        "_fence",
        "        yield from perform(WriteIntent(intent, record))",
        "        yield from perform(Fence(node))\n"
        "        yield from perform(WriteIntent(intent, record))",
        MIXED,
    ),
    (
        "announce-no-fence",
        candidate,
        "_fence",
        "        yield from perform(WriteIntent(intent, record))",
        "        pass",
        MIXED,
    ),
    (
        "fence-again-and-again-as-a-candidate",
        candidate,
        "watch_manager",
        " or clocks.mono < crm.fence_not_before",
        "",
        MIXED,
    ),
    (
        "fence-whoever-is-manager",
        candidate,
        "watch_manager",
        "not candidacy.fence or ",
        "",
        MIXED,
    ),
    (
        "forget-the-proofs-of-a-candidate",
        candidate,
        "watch_manager",
        "        yield from _sort_own_fences(crm, lease.version, observation, clocks.mono)",
        "        crm.fences = []",
        MIXED,
    ),
    # What a CRM observes.
    (
        "take-a-failed-lease-for-dead",
        watch.Watch,
        "lease_sight",
        "    if lease.state is HostState.FAIL:\n        return LeaseSight.FAILED",
        "    if lease.state is HostState.FAIL:\n        return LeaseSight.DEAD",
        HELD,
    ),
    (
        "trust-reads-that-are-old",
        watch.Watch,
        "own_trouble",
        "    if own.unchanged_for >= late_seconds:",
        "    if False:",
        HELD,
    ),
    # Host leases that are freed.
    (
        "free-by-an-assumed-proof",
        freed_leases,
        "proves_off",
        "return fence.confirmed and fence.verified and fence.quiet",
        "return True",
        PAUSES,
    ),
    (
        "join-while-a-late-free-is-awaited",
        lease_freeing,
        "awaited_writers",
        "    return ",
        "    return [] and ",
        MIXED,
    ),
    # The LRM.
    (
        "stop-nothing-while-no-report-can-be-written",
        lrm_cycle,
        "_decide",
        "current.mono)) and not trouble:",
        "current.mono)):",
        MIXED,
    ),
    (
        "look-at-the-host-lease-only-once",
        host_lease.HostLease,
        "look",
        "self.lost or (yield from self._confirm(clocks.mono))",
        "self.lost",
        MIXED,
    ),
    (
        "read-not-why-to-end",
        lrm_cycle,
        "_note_terms",
        "    if terms and",
        "    if False and",
        MIXED,
    ),
    (
        "write-no-heartbeat",
        lrm_cycle,
        "_write_heartbeat",
        "        yield from perform(effect)",
        "        pass",
        MIXED,
    ),
    (
        "write-no-report-that-changed",
        lrm_cycle,
        "_write",
        "    if not changed and now",
        "    if now",
        STALE,
    ),
    (
        "stop-nothing-on-lease-loss",
        lrm_cycle,
        "_decide",
        "lease_trouble=trouble,",
        'lease_trouble="",',
        LEFT,
    ),
    (
        "forget-jobs-that-ended",
        lrm_cycle,
        "_take_jobs",
        "lrm.pending = (*lrm.pending, *jobs.ended)",
        "lrm.pending = lrm.pending",
        MIXED,
    ),
    (
        "count-jobs-twice",
        lrm_cycle,
        "_decide",
        "    lrm.pending = ()\n",
        "",
        MIXED,
    ),
    (
        "forget-what-is-under-way",
        lrm_cycle,
        "_decide",
        "busy=jobs.busy,",
        "busy=frozenset(),",
        LEFT,
    ),
    (
        "go-on-from-the-storage-alone",
        lrm_cycle,
        "_last_report",
        "newer = newer_report(stored.number, stored.report, kept.number, kept.report)",
        "newer = stored.report",
        STALE,
    ),
    (
        "keep-no-report-on-the-local-disk",
        lrm_cycle,
        "_write",
        "        yield from perform(KeepReport(report))",
        "        pass",
        STALE,
    ),
    (
        "take-no-silence-of-the-storage-for-a-loss",
        host_lease.HostLease,
        "_confirm",
        "        too_long = silent >= self.fail_seconds\n",
        "        too_long = False\n",
        LEFT,
    ),
    (
        "run-on-with-a-lease-that-failed",
        host_lease.HostLease,
        "_trouble_of",
        "    if lease.state is not HostState.LIVE:",
        "    if False:",
        PAUSES,
    ),
    (
        "never-join-again",
        host_lease.HostLease,
        "come_back",
        "    text = yield from perform(BeginJoin())\n    self.joining = True\n",
        "    text = ''\n",
        LEFT,
    ),
    # Who observes all nodes.
    (
        "leave-a-silent-manager-to-others",
        standbys,
        "_look",
        "observes = known.observed is not None and now - known.observed > patience",
        "observes = False",
        CROWDS,
    ),
    (
        "observe-only-as-a-standby",
        standbys,
        "stands_back",
        "return crm.is_reserve",
        "return crm.reserve is not None",
        CROWDS,
    ),
    # Whom a record concerns.
    (
        "tell-nobody-of-a-probe",
        news,
        "_nodes",
        "if any(_is_probed(state, one) for one in services for state in (before, after)):",
        "if False:",
        MIXED,
    ),
    (
        "tell-only-the-new-place",
        news,
        "_nodes",
        "found |= _places(before, service_id) | _places(after, service_id)",
        "found |= _places(after, service_id)",
        MIXED,
    ),
    (
        "tell-no-node-of-its-own-status",
        news,
        "_nodes",
        "return frozenset(found)",
        "return frozenset(found - set(_changed(before.nodes, after.nodes)))",
        MIXED,
    ),
    (
        "give-a-service-without-its-definition",
        news,
        "_configured",
        "found |= _places(after, service_id) - _places(before, service_id)",
        "pass",
        OPERATORS,
    ),
    (
        "keep-a-record-whatever-is-new",
        news_index,
        "is_old_news",
        "return entry.sequence <= known",
        "return True",
        MIXED,
    ),
    # Floors.
    (
        "follow-an-older-epoch",
        versions,
        "why_not_followed",
        "    if below is None:",
        '    if below is None or below[0] == "epoch":',
        STALE,
    ),
)


CYCLE_MUTATIONS = tuple(
    Mutation(name, edited(home, function, old, new), drawing)
    for name, home, function, old, new, drawing in _EDITS
)
"""Each is an edit of the shipped code that the simulator plays."""
