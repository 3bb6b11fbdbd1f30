# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Deliberate mistakes that random faults seldom find, with the unit tests that find them.

Other guards cover them, or what they need is seldom drawn: random faults did not find them in
1,000 runs, or hardly.  ``find NAME`` looks for one of them by random faults all the same.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm import (
    commands as crm_commands,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm import (
    cycle,
    fencing,
    pausing,
    steady,
    step,
    takeover,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.round import Round
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.lrm import commands
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.lrm import (
    cycle as lrm_cycle,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.lrm import (
    results as lrm_results,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.lrm import (
    step as lrm_step,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model import versions
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired import (
    DesiredState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.jobs import (
    Purpose,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    Outcome,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.states import (
    HELD,
    ServiceState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon import (
    observer as node_observer,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.simulator import observer
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage import records
from ansible_collections.holdfast.ha.tests.mutation.making import (
    FoundByTest,
    Mutation,
    Patch,
    changed,
    edited,
    returns,
)
from ansible_collections.holdfast.ha.tests.mutation.placement_mutations import TESTED_PLACEMENT
from ansible_collections.holdfast.ha.tests.mutation.tested_cycle_mutations import (
    TESTED_CYCLE_MUTATIONS,
)
from ansible_collections.holdfast.ha.tests.mutation.tested_driver_mutations import (
    TESTED_DRIVER_MUTATIONS,
)
from ansible_collections.holdfast.ha.tests.mutation.tested_judging_mutations import (
    TESTED_JUDGING_MUTATIONS,
)
from ansible_collections.holdfast.ha.tests.mutation.tested_keepalive_mutations import (
    TESTED_KEEPALIVE_MUTATIONS,
)
from ansible_collections.holdfast.ha.tests.mutation.tested_local_mutations import (
    TESTED_LOCAL_MUTATIONS,
)
from ansible_collections.holdfast.ha.tests.simulation import random_scenario

STALE = random_scenario.STALE
RUNS_NOWHERE = (
    ServiceState.PROBE,
    ServiceState.STOPPED,
    ServiceState.RECOVERY,
    ServiceState.ERROR,
)

VERSIONS = "cluster/model/test_versions.py"
BELIEVED = "cluster/crm/test_results.py"
REPAIR = "cluster/crm/test_repair_plan.py"


def _both(*patches: Patch) -> Patch:
    """Return several patches as one."""

    def made() -> ExitStack:
        stack = ExitStack()
        for one in patches:
            stack.enter_context(one())
        return stack

    return made


def _lexicographic(original: Any, report: Any, state: Any) -> str:
    """A higher epoch makes a record with fewer commands acceptable."""
    if (state.generation, state.epoch, state.commands) >= (
        report.generation,
        report.epoch,
        report.commands,
    ):
        return ""
    return original(report, state) or "older"


def _without_base(original: Any, report: Any, state: Any) -> str:
    return original(report, replace(state, base=None))


def _any_generation(original: Any, report: Any, state: Any) -> str:
    return original(replace(report, generation=state.generation), state)


def _any_generation_of_floors(original: Any, state: Any, floor: Any) -> Any:
    return original(state, replace(floor, generation=state.generation))


def _version_alone(original: Any, desired: Any, _generation: int, version: int) -> bool:
    return desired.version >= version


def _keeps_nodes(original: Any, status: Any, _wall: float) -> Any:
    return status


def _keeps_places(original: Any, last: Any, *more: Any) -> Any:
    state = original(last, *more)
    return replace(state, services={**state.services, **last.services}, probes=last.probes)


def _believed(original: Any, self: Any, name: str, silent: bool) -> Any:
    slot = self._world.storage.reports[name]
    if self._machine.name in self._world.stale or slot.damaged:
        return original(self, name, silent)
    return slot.value, ""


def _believes_suspects(original: Any, round_: Any, service_id: str) -> None:
    """The result in the report of a silent node counts as if it were online."""
    before = round_.state.services.get(service_id)
    original(round_, service_id)
    desired = round_.observed.desired.services.get(service_id)
    if before is None or round_.state.services.get(service_id) is not before:
        return
    if (
        before.state in HELD
        or before.state in RUNS_NOWHERE
        or pausing.needs_overlay(round_, before)
    ):
        return
    observed = round_.observed.nodes.get(before.node)
    if observed is None or observed.report is None or round_.online(before.node):
        return
    running = before.state is ServiceState.STARTED
    handle = steady.handle_started if running else crm_commands.take_result
    handle(round_, service_id, before, desired, observed.report)


def _own_stop_answers(original: Any, round_: Any, local_: Any, end: Any) -> None:
    original(round_, local_, end)
    if end.outcome is Outcome.OK and end.job.purpose is Purpose.AWAY:
        lrm_results._resolve(round_, local_, Outcome.OK, end.text, end)


def _without_coming(original: Any, last: Any, *more: Any) -> Any:
    report, memory = original(last, *more)
    return replace(report, coming=()), memory


def _with_found(original: Any, last: Any, *more: Any) -> Any:
    report, memory = original(last, *more)
    return replace(report, found=last.found if last is not None else {}), memory


def _keeps_found(original: Any, round_: Any, *more: Any) -> None:
    found = round_.report.found
    original(round_, *more)
    round_.set(found={**found, **round_.report.found})


def _writing_is_no_sign(original: Any, round_: Any, fence: Any) -> str:
    sign = original(round_, fence)
    return "" if sign == "it writes again" else sign


def _fence_without_up_again(original: Any, last: Any, *more: Any) -> Any:
    state = original(last, *more)
    nodes = {
        key: replace(one, up_again=last.nodes[key].up_again) for key, one in last.nodes.items()
    }
    return replace(
        state,
        nodes={
            key: replace(one, up_again=nodes[key].up_again if key in nodes else one.up_again)
            for key, one in state.nodes.items()
        },
    )


def _with_old_proof(original: Any, state: Any, intent: Any, wall: float) -> Any:
    before = state.nodes.get(intent.node)
    after = original(state, intent, wall)
    if before is None or after is state:
        return after
    status = replace(
        after.nodes[intent.node],
        proof=before.proof,
        up_again=before.up_again,
    )
    return after.with_node(intent.node, status)


def _writes_over_the_newest(original: Any, copies: Any) -> Any:
    found = [copy.record for copy in copies if copy.record is not None]
    return min(found, key=lambda record: record.sequence, default=None)


def _blocked_is_stopped(
    original: Any, round_: Any, service_id: str, status: Any, desired: Any, report: Any
) -> None:
    result = report.results.get(status.uid)
    if result is not None and result.outcome is Outcome.BLOCKED:
        round_.finish_stop(service_id, status)
        return
    original(round_, service_id, status, desired, report)


TESTED = (
    *TESTED_CYCLE_MUTATIONS,
    *TESTED_JUDGING_MUTATIONS,
    *TESTED_DRIVER_MUTATIONS,
    *TESTED_KEEPALIVE_MUTATIONS,
    *TESTED_LOCAL_MUTATIONS,
    *TESTED_PLACEMENT,
    FoundByTest(
        Mutation(
            "compare-epochs-before-commands",
            changed(versions, "why_not_followed", _lexicographic),
            STALE,
        ),
        VERSIONS,
        "test_an_lrm_follows_a_record_that_knows_all_it_has_acted_on",
    ),
    FoundByTest(
        Mutation("ignore-the-base", changed(versions, "why_not_followed", _without_base), STALE),
        VERSIONS,
        "test_an_lrm_follows_a_record_that_knows_all_it_has_acted_on",
    ),
    FoundByTest(
        Mutation(
            "believe-a-report-older-than-its-heartbeat",
            _both(
                changed(observer.Observer, "_report", _believed),
                changed(node_observer, "report_older_than_told", returns("")),
            ),
            STALE,
        ),
        "node/test_observer.py",
        "test_a_report_that_is_older_than_its_nodes_heartbeat_says_is_not_believed",
    ),
    FoundByTest(
        Mutation("take-over-unheard", changed(versions, "not_heard_yet", returns("")), STALE),
        VERSIONS,
        "test_a_new_manager_hears_every_node_that_is_alive_first",
    ),
    FoundByTest(
        Mutation(
            "start-what-is-reported-elsewhere",
            changed(Round, "reported_elsewhere", returns("")),
            STALE,
        ),
        "cluster/crm/test_stopped.py",
        "test_a_start_waits_for_the_node_that_reports_the_service",
    ),
    FoundByTest(
        Mutation(
            "look-at-no-own-record-as-a-manager",
            edited(
                cycle,
                "_look_at_own_record",
                "if (yield from perform(OwnRecordStands())):",
                "if True:",
            ),
            STALE,
        ),
        "node/crm/test_stale_records.py",
        "test_a_managers_record_that_is_not_as_it_was_written_is_written_again",
    ),
    FoundByTest(
        Mutation(
            "look-at-no-own-report",
            edited(lrm_cycle, "_note_refusal", "    if not stands:", "    if False:"),
            STALE,
        ),
        "node/lrm/test_written_first.py",
        "test_an_own_record_that_is_not_as_it_was_written_is_written_again",
    ),
    FoundByTest(
        Mutation(
            "follow-any-generation", changed(versions, "why_not_followed", _any_generation), STALE
        ),
        VERSIONS,
        "test_an_lrm_follows_a_record_that_knows_all_it_has_acted_on",
    ),
    FoundByTest(
        Mutation(
            "compare-floors-of-any-generation",
            changed(versions, "_below", _any_generation_of_floors),
            STALE,
        ),
        VERSIONS,
        "test_floors_from_before_a_repair_do_not_count",
    ),
    FoundByTest(
        Mutation(
            "compare-configurations-of-any-generation",
            changed(DesiredState, "at_least", _version_alone),
            STALE,
        ),
        VERSIONS,
        "test_floors_from_before_a_repair_do_not_count",
    ),
    FoundByTest(
        Mutation(
            "repair-and-keep-proofs", changed(takeover, "_observed_again", _keeps_nodes), STALE
        ),
        REPAIR,
        "test_no_place_and_no_proof_of_the_old_record_is_believed",
    ),
    FoundByTest(
        Mutation("repair-and-keep-places", changed(takeover, "repaired", _keeps_places), STALE),
        REPAIR,
        "test_nothing_is_started_until_every_node_has_answered",
    ),
    FoundByTest(
        Mutation("believe-the-report-of-a-suspect", changed(step, "_handle", _believes_suspects)),
        BELIEVED,
        "test_the_result_in_the_report_of_a_suspect_is_not_believed",
    ),
    FoundByTest(
        Mutation(
            "answer-by-a-stop-of-its-own", changed(lrm_results, "_end_stop", _own_stop_answers)
        ),
        BELIEVED,
        "test_a_stop_for_a_reason_of_the_nodes_own_does_not_answer_the_managers_command",
    ),
    FoundByTest(
        Mutation("forget-what-comes-at-a-start", changed(lrm_step, "resume", _without_coming)),
        BELIEVED,
        "test_a_new_lrm_answers_no_probe_by_its_predecessor_and_knows_what_comes_live",
    ),
    FoundByTest(
        Mutation("keep-what-was-found-at-a-start", changed(lrm_step, "resume", _with_found)),
        BELIEVED,
        "test_a_new_lrm_answers_no_probe_by_its_predecessor_and_knows_what_comes_live",
    ),
    FoundByTest(
        Mutation("keep-all-that-was-found", changed(commands, "prune", _keeps_found)),
        BELIEVED,
        "test_the_answer_to_a_probe_is_kept_for_as_long_as_it_is_asked",
    ),
    FoundByTest(
        Mutation(
            "take-writing-again-for-no-sign-of-life",
            changed(fencing, "_sign_of_life", _writing_is_no_sign),
        ),
        BELIEVED,
        "test_a_node_whose_same_start_writes_again_is_not_dead_whatever_its_device_says",
    ),
    FoundByTest(
        Mutation(
            "take-over-without-the-power-on-that-was-sent",
            changed(takeover, "take_over", _fence_without_up_again),
        ),
        "cluster/crm/test_probing.py",
        "test_a_node_that_the_last_manager_was_about_to_switch_on_is_not_off_as_it_is_silent",
    ),
    FoundByTest(
        Mutation(
            "take-over-a-fence-with-the-old-proof",
            changed(takeover, "_with_intent", _with_old_proof),
        ),
        "cluster/crm/test_step.py",
        "test_a_manager_that_is_fenced_may_run_what_it_reports_whatever_proved_it_dead_before",
    ),
    FoundByTest(
        Mutation(
            "write-over-the-newest-copy",
            changed(records, "_newest", _writes_over_the_newest),
            random_scenario.OPERATORS,
        ),
        "storage/test_torn_records.py",
        "test_every_prefix_of_every_write_leaves_the_previous_or_the_new_record",
    ),
    FoundByTest(
        Mutation(
            "take-a-blocked-stop-for-one",
            changed(crm_commands, "take_result", _blocked_is_stopped),
            random_scenario.OPERATORS,
        ),
        "cluster/crm/test_started.py",
        "test_a_node_is_fenced_for_a_service_that_cannot_be_stopped_and_asks_for_it",
    ),
)
"""The unit test ``simulator/test_mutations.py`` makes each mistake and sees its test fail."""
