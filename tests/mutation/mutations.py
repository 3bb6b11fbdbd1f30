# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Deliberate mistakes in the managers, each of which random faults must find.

A mutation patches one function in this process for as long as its context lasts.  It is the
kind of mistake that a hurried change could make; the simulator is worth what it finds of them.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm import (
    candidate,
    errors,
    fencing,
    health,
    lease_proof,
    nodes,
    pausing,
    probing,
    selection,
    steady,
    step,
    takeover,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm import (
    commands as crm_commands,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.health import (
    Judgement,
    Verdict,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.round import Round
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.lrm import (
    commands,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.lrm import (
    results as lrm_results,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.lrm import (
    step as lrm_step,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.lrm.round import (
    LocalRound,
    Memory,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model import (
    lease_freeing,
    versions,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired import (
    DesiredState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.jobs import Sight
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (
    LeaseSight,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    CommandResult,
    Outcome,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    Intent,
    NodeState,
    ProofKind,
    ServiceStatus,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.states import (
    MOVING,
    ServiceState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage import record_format
from ansible_collections.holdfast.ha.tests.mutation.cycle_mutations import CYCLE_MUTATIONS
from ansible_collections.holdfast.ha.tests.mutation.judging_mutations import JUDGING_MUTATIONS
from ansible_collections.holdfast.ha.tests.mutation.local_mutations import LOCAL_MUTATIONS
from ansible_collections.holdfast.ha.tests.mutation.making import (
    Mutation,
    changed,
    nothing,
    returns,
)
from ansible_collections.holdfast.ha.tests.mutation.placement_mutations import (
    PLACEMENT_MUTATIONS,
)
from ansible_collections.holdfast.ha.tests.mutation.record_mutations import RECORD_MUTATIONS
from ansible_collections.holdfast.ha.tests.simulation import random_scenario


def _dead_without_proof(original: Any, round_: Any) -> None:
    original(round_)
    for order in round_.fences:
        fencing.declare_dead(round_, order.node, ProofKind.VERIFIED_OFF, "it does not answer")


def _every_end_is_proof(original: Any, round_: Any, fence: Any) -> None:
    original(round_, replace(fence, confirmed=True, quiet=True))


def _silence_is_death(original: Any, observed: Any, *more: Any) -> Judgement:
    judgement = original(observed, *more)
    if judgement.verdict is Verdict.FENCE:
        return Judgement(Verdict.DEAD, judgement.reason)
    return judgement


def _failed_is_dead(original: Any, observed: Any, *more: Any) -> Judgement:
    if observed.lease is LeaseSight.FAILED:
        observed = replace(observed, lease=LeaseSight.DEAD)
    return original(observed, *more)


def _runs_uids_again(original: Any, round_: Any, service_id: str, status: Any, *more: Any) -> None:
    """A finished command is carried out once more whenever it is observed."""
    kept = round_.report
    round_.report = replace(kept, accepted={}, results={})
    before = len(round_.jobs)
    original(round_, service_id, status, *more)
    if len(round_.jobs) == before:
        round_.report = kept


def _no_doubts(original: Any, last: Any, *more: Any, **options: Any) -> Any:
    report, _memory = original(last, *more, **options)
    return report, Memory()


def _no_lease_needed(original: Any, report: Any, memory: Any, observed: Any) -> Any:
    return original(report, memory, replace(observed, lease_trouble="", renewal_trouble=""))


def _does_not_wait_for_the_stop(
    original: Any, round_: Any, service_id: str, status: Any, desired: Any, report: Any
) -> None:
    if status.state in MOVING and status.uid not in round_.fresh:
        crm_commands._finish_move(round_, service_id, status, desired)
        return
    original(round_, service_id, status, desired, report)


def _any_result_counts(
    original: Any, round_: Any, service_id: str, status: Any, desired: Any, report: Any
) -> None:
    for result in report.results.values():
        if result.service == service_id:
            report = replace(report, results={status.uid: result})
    original(round_, service_id, status, desired, report)


def _forgets_the_last_manager(original: Any, last: Any, *more: Any) -> Any:
    bare = replace(last, services={}, nodes={}, probes=())
    return original(bare, *more)


def _without_intent(
    original: Any, last: Any, epoch: int, name: str, wall: float, intent: Any
) -> Any:
    return original(last, epoch, name, wall, None)


def _not_held(original: Any, round_: Any) -> None:
    original(round_)
    round_.observed = replace(round_.observed, held="")


def _no_brake(original: Any, round_: Any) -> None:
    timing, round_.timing = round_.timing, replace(round_.timing, concurrent_fences=99)
    original(round_)
    round_.timing = timing


def _no_reason(original: Any, *arguments: Any) -> Intent:
    return original(arguments[0], "", *arguments[2:])


def _was_proved_dead(original: Any, node: Any, observed: Any) -> bool:
    """Take a host lease for a proof of what its LRM may not have known of."""
    return bool(node.state is NodeState.OFF)


def _probes_are_not_awaited(
    original: Any, round_: Any, service_id: str, status: Any, desired: Any
) -> None:
    """Who did not answer yet is taken to run nothing."""
    rows = {
        name: replace(
            observed,
            report=observed.report
            and replace(
                observed.report, found={status.probe(service_id): False, **observed.report.found}
            ),
        )
        for name, observed in round_.observed.nodes.items()
    }
    whole, round_.observed = round_.observed, replace(round_.observed, nodes=rows)
    original(round_, service_id, status, desired)
    round_.observed = whole


def _stop_is_said_before_it_is_done(
    original: Any, round_: Any, service_id: str, status: Any, *more: Any
) -> None:
    original(round_, service_id, status, *more)
    round_.resolve(
        status.uid, CommandResult(service_id, Outcome.OK, "stopped", round_.observed.wall)
    )


def _failed_stops_are_stops(original: Any, round_: Any, local_: Any, end: Any) -> None:
    original(round_, local_, replace(end, outcome=Outcome.OK))


def _recovers_from_the_silent(original: Any, round_: Any, *more: Any) -> None:
    """A suspect is as good as dead."""
    original(round_, *more)
    for name, status in list(round_.state.nodes.items()):
        if status.state is NodeState.SUSPECT:
            fencing.declare_dead(round_, name, ProofKind.VERIFIED_OFF, "suspected")


def _forgets_the_target(original: Any, round_: Any, service_id: str, name: str, proof: str) -> None:
    original(round_, service_id, name, proof)
    service = round_.state.services[service_id]
    if service.target:
        round_.set_service(service_id, replace(service, target=""))


def _gives_up_a_fence(original: Any, round_: Any, fence: Any) -> None:
    original(round_, fence)
    status = round_.node(fence.node)
    if status.state is NodeState.FENCE:
        round_.set_node(fence.node, replace(status, retry_after=1e12))


def _same_uid_again(original: Any, round_: Any, *more: Any) -> None:
    """Every second command gets the number of the one before."""
    if round_.state.commands % 2:
        round_.state = replace(round_.state, commands=round_.state.commands - 1)
    original(round_, *more)


def _skips_the_probe(original: Any, round_: Any, service_id: str) -> None:
    """What is newly declared is taken to run nowhere."""
    desired = round_.observed.desired.services.get(service_id)
    known = service_id in round_.state.services
    if known or desired is None or desired.ignored or round_.state.disarm:
        original(round_, service_id)
        return
    stopped = ServiceStatus(ServiceState.STOPPED, reason="declared", last_node=desired.node)
    round_.set_service(service_id, stopped)


def _starts_while_it_migrates(
    original: Any, round_: Any, service_id: str, status: Any, desired: Any, report: Any
) -> None:
    if status.state is ServiceState.MIGRATE and status.uid not in round_.fresh:
        crm_commands._finish_move(round_, service_id, status, desired)
        return
    original(round_, service_id, status, desired, report)


def _fences_its_own(original: Any, round_: Any, node: str, status: Any, desired: Any) -> bool:
    return bool(desired and desired.fence_on_stop_failure and node in round_.observed.nodes)


def _disarms_at_once(original: Any, round_: Any) -> None:
    """Nobody is waited for."""
    original(round_)
    if round_.state.disarm == pausing.DISARMING:
        round_.state = replace(round_.state, disarm=pausing.DISARMED)


def _doubt_ends_as(sight: Sight) -> Callable[..., None]:
    def change(original: Any, round_: Any, local_: Any, end: Any) -> None:
        original(round_, local_, replace(end, sight=sight))

    return change


MUTATIONS = (
    Mutation("skip-the-proof", changed(fencing, "order_fences", _dead_without_proof)),
    Mutation(
        "count-every-fence-as-proof",
        changed(fencing, "_handle_fence_end", _every_end_is_proof),
        random_scenario.PAUSES,
    ),
    Mutation(
        "believe-the-device-of-a-node-that-writes-on",
        changed(fencing, "_sign_of_life", returns("")),
    ),
    Mutation(
        "join-while-the-host-lease-is-being-freed",
        changed(lease_freeing, "awaited_writers", returns([])),
    ),
    Mutation("take-silence-for-death", changed(health, "judge", _silence_is_death)),
    Mutation("take-a-failed-lease-for-a-dead-one", changed(health, "judge", _failed_is_dead)),
    Mutation("recover-from-a-suspect", changed(nodes, "update_nodes", _recovers_from_the_silent)),
    Mutation("forget-the-epoch", changed(versions, "why_not_followed", returns(""))),
    Mutation("run-a-command-again", changed(commands, "_execute", _runs_uids_again)),
    Mutation("begin-before-it-is-written", changed(LocalRound, "accept", nothing)),
    Mutation("trust-what-a-dead-lrm-left", changed(lrm_step, "resume", _no_doubts)),
    Mutation("start-without-a-host-lease", changed(lrm_step, "step", _no_lease_needed)),
    Mutation(
        "start-before-the-stop-has-ended",
        changed(crm_commands, "take_result", _does_not_wait_for_the_stop),
    ),
    Mutation(
        "take-any-result-for-this-one", changed(crm_commands, "take_result", _any_result_counts)
    ),
    Mutation(
        "say-stopped-before-it-is",
        changed(commands, "_execute_stop", _stop_is_said_before_it_is_done),
    ),
    Mutation(
        "count-a-failed-stop-as-one", changed(lrm_results, "_end_stop", _failed_stops_are_stops)
    ),
    Mutation(
        "forget-the-last-manager",
        changed(takeover, "take_over", _forgets_the_last_manager),
        random_scenario.STALE,
    ),
    Mutation(
        "forget-a-candidates-fence",
        changed(takeover, "take_over", _without_intent),
        random_scenario.CLOSE,
    ),
    Mutation("ignore-global-maintenance", changed(pausing, "update_maintenance", _not_held)),
    Mutation(
        "forget-where-a-migration-went", changed(fencing, "_recover_service", _forgets_the_target)
    ),
    Mutation("take-a-return-for-a-reboot", changed(nodes, "_has_restarted", returns(True))),
    Mutation("give-a-number-twice", changed(Round, "command", _same_uid_again)),
    Mutation(
        "try-a-fence-once",
        changed(fencing, "_handle_fence_end", _gives_up_a_fence),
        random_scenario.FENCES,
    ),
    Mutation("look-at-no-service", changed(lrm_step, "_monitor", nothing), random_scenario.CLOSE),
    Mutation("keep-every-result", changed(commands, "prune", nothing)),
    Mutation("leave-failovers-open", changed(step, "_close_failovers", nothing)),
    Mutation("fence-without-a-brake", changed(fencing, "order_fences", _no_brake)),
    Mutation("fence-without-a-reason", changed(candidate, "Intent", _no_reason)),
    Mutation("place-beside-the-opposite", changed(selection, "_apart_nodes", returns({}))),
    Mutation("do-not-wait-for-probes", changed(probing, "handle", _probes_are_not_awaited)),
    Mutation(
        "trust-a-bad-checksum",
        lambda: patch.object(
            record_format,
            "zlib",
            SimpleNamespace(crc32=lambda data: 7 if data else zlib.crc32(data)),
        ),
        random_scenario.OPERATORS,
    ),
    Mutation("never-switch-on-again", changed(fencing, "power_on_again", nothing)),
    Mutation("leave-failed-services", changed(steady, "_count_failure", nothing)),
    Mutation("skip-the-probe", changed(step, "_handle", _skips_the_probe), random_scenario.LEFT),
    Mutation(
        "start-the-target-while-the-source-runs",
        changed(crm_commands, "take_result", _starts_while_it_migrates),
    ),
    Mutation(
        "fence-its-own-node",
        changed(errors, "may_demand_fence", _fences_its_own),
        random_scenario.FENCES,
    ),
    Mutation(
        "take-what-is-in-doubt-for-running",
        changed(lrm_results, "_end_first_probe", _doubt_ends_as(Sight.RUNNING)),
        random_scenario.STALE,
    ),
    Mutation(
        "take-what-is-in-doubt-for-stopped",
        changed(lrm_results, "_end_first_probe", _doubt_ends_as(Sight.STOPPED)),
        random_scenario.OPERATORS,
    ),
    Mutation("ignore-strict-rules", changed(DesiredState, "node_rule_for", returns(None))),
    Mutation("ignore-demands-for-a-fence", changed(errors, "_demand_fence", nothing)),
    Mutation(
        "ignore-what-is-asked-for",
        changed(steady, "answer_request", nothing),
        random_scenario.CLOSE,
    ),
    Mutation("leave-services-on-the-dead", changed(fencing, "_recover_service", nothing)),
    Mutation("run-on-without-a-host-lease", changed(lrm_step, "_stop_everything", nothing)),
    Mutation("leave-what-is-elsewhere", changed(commands, "_stop_misplaced", nothing)),
    Mutation(
        "take-any-proof-for-an-answer",
        changed(probing, "is_verified_off", _was_proved_dead),
        random_scenario.LEFT,
    ),
    Mutation("arm-without-looking", changed(pausing, "_probe_all", nothing)),
    Mutation(
        "fence-while-disarmed-as-a-candidate",
        changed(candidate, "kept_from_fencing", returns("")),
        random_scenario.LEFT,
    ),
    Mutation("disarm-at-once", changed(pausing, "update_disarm", _disarms_at_once)),
    Mutation("place-services-on-any-node", changed(selection, "unusable", returns(""))),
    Mutation(
        "believe-the-lease-of-a-virtual-machine",
        changed(lease_proof, "why_no_proof", returns("")),
        random_scenario.PAUSES,
    ),
    Mutation("go-on-when-shut-down", changed(lrm_step, "stops_all", returns(False))),
    *RECORD_MUTATIONS,
    *CYCLE_MUTATIONS,
    *JUDGING_MUTATIONS,
    *LOCAL_MUTATIONS,
    *PLACEMENT_MUTATIONS,
)
"""Each is drawn as it is found soonest, mostly within a few hundred runs."""
