# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Deliberate mistakes about records that went back in time, and about what a report says."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm import (
    fencing,
    freeze,
    repair_plan,
    services,
    step,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.round import Round
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.lrm import (
    commands,
    results,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.lrm import (
    step as lrm_step,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model import versions
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired import (
    Wanted,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.jobs import (
    Purpose,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    Outcome,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    HELD,
    ServiceState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon import crm, lrm
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon import (
    observer as daemon_observer,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.simulator import (
    cluster_daemon,
    local_daemon,
    observer,
    random_scenario,
)
from ansible_collections.holdfast.ha.tests.mutation.making import (
    Mutation,
    Patch,
    changed,
    nothing,
    returns,
)

STALE = random_scenario.STALE
RUNS_NOWHERE = (
    ServiceState.PROBE,
    ServiceState.STOPPED,
    ServiceState.RECOVERY,
    ServiceState.ERROR,
)


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


def _commands_do_not_count(original: Any, state: Any, floor: Any) -> Any:
    return original(state, replace(floor, commands=0))


def _any_configuration_will_do(
    original: Any, state: Any, wanted: Any, *more: Any, **options: Any
) -> Any:
    return original(state, replace(wanted, generation=1 << 30), *more, **options)


def _any_generation(original: Any, report: Any, state: Any) -> str:
    return original(replace(report, generation=state.generation), state)


def _any_generation_of_floors(original: Any, state: Any, floor: Any) -> Any:
    return original(state, replace(floor, generation=state.generation))


def _version_alone(original: Any, wanted: Any, _generation: int, version: int) -> bool:
    return wanted.version >= version


def _keeps_nodes(original: Any, status: Any, _wall: float) -> Any:
    return status


def _keeps_places(original: Any, last: Any, *more: Any) -> Any:
    state = original(last, *more)
    return replace(state, services={**state.services, **last.services}, probes=last.probes)


def _stored_report_alone(original: Any, _number: int, stored: Any, *_kept: Any) -> Any:
    return stored


def _believed(original: Any, self: Any, name: str, silent: bool) -> Any:
    slot = self._fleet.world.storage.reports[name]
    if self._machine.name in self._fleet.stale or slot.damaged:
        return original(self, name, silent)
    return slot.value, ""


def _not_looked_at(original: Any, _self: Any, state: Any, *_now: Any) -> Any:
    return state


def _believes_suspects(original: Any, round_: Any, service_id: str) -> None:
    """The result in the report of a silent node counts as if it were online."""
    before = round_.state.services.get(service_id)
    original(round_, service_id)
    wanted = round_.seen.wanted.services.get(service_id)
    if before is None or round_.state.services.get(service_id) is not before:
        return
    if before.state in HELD or before.state in RUNS_NOWHERE or freeze.is_held(round_, before):
        return
    seen = round_.seen.nodes.get(before.node)
    if seen is None or seen.report is None or freeze.online(round_, before.node):
        return
    services._active(round_, service_id, before, wanted, seen.report)


def _own_stop_answers(original: Any, round_: Any, local_: Any, end: Any) -> None:
    original(round_, local_, end)
    if end.outcome is Outcome.OK and end.job.purpose is Purpose.AWAY:
        results._resolve(round_, local_, Outcome.OK, end.text, end)


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
        expired=before.expired,
        up_again=before.up_again,
    )
    return after.with_node(intent.node, status)


RECORD_MUTATIONS = (
    Mutation(
        "count-no-commands-as-a-manager",
        changed(versions, "_below", _commands_do_not_count),
        STALE,
    ),
    Mutation("notice-no-older-record", changed(versions, "_below", returns(None)), STALE),
    Mutation(
        "notice-no-older-configuration",
        changed(versions, "regressions", _any_configuration_will_do),
        STALE,
    ),
    Mutation(
        "ignore-the-local-copy", changed(versions, "newer_report", _stored_report_alone), STALE
    ),
)
"""Mistakes that random faults find within 1,000 runs."""

SELDOM_FOUND = (
    Mutation(
        "compare-epochs-before-commands",
        changed(versions, "why_not_followed", _lexicographic),
        STALE,
    ),
    Mutation("ignore-the-base", changed(versions, "why_not_followed", _without_base), STALE),
    Mutation(
        "believe-a-report-older-than-its-heartbeat",
        _both(
            changed(observer.Observer, "_report", _believed),
            changed(daemon_observer, "report_older_than_told", returns("")),
        ),
        STALE,
    ),
    Mutation("take-over-unheard", changed(versions, "not_heard_yet", returns("")), STALE),
    Mutation(
        "start-what-is-reported-elsewhere", changed(Round, "reported_elsewhere", returns("")), STALE
    ),
    Mutation(
        "look-at-no-own-record-as-a-manager",
        _both(
            changed(cluster_daemon.ClusterDaemon, "_look_at_own_record", _not_looked_at),
            changed(crm.ClusterDaemon, "_look_at_own_record", _not_looked_at),
        ),
        STALE,
    ),
    Mutation(
        "look-at-no-own-report",
        _both(
            changed(local_daemon.LocalDaemon, "_look_at_own_record", nothing),
            changed(lrm.LocalDaemon, "_note_refusal", nothing),
        ),
        STALE,
    ),
    Mutation(
        "follow-any-generation", changed(versions, "why_not_followed", _any_generation), STALE
    ),
    Mutation(
        "compare-floors-of-any-generation",
        changed(versions, "_below", _any_generation_of_floors),
        STALE,
    ),
    Mutation(
        "compare-configurations-of-any-generation",
        changed(Wanted, "at_least", _version_alone),
        STALE,
    ),
    Mutation(
        "repair-and-keep-proofs", changed(repair_plan, "_observed_again", _keeps_nodes), STALE
    ),
    Mutation(
        "repair-and-keep-places",
        _both(changed(repair_plan, "repaired", _keeps_places)),
        STALE,
    ),
    Mutation("believe-the-report-of-a-suspect", changed(services, "_look_at", _believes_suspects)),
    Mutation("answer-by-a-stop-of-its-own", changed(results, "_stopped", _own_stop_answers)),
    Mutation("forget-what-comes-at-a-start", changed(lrm_step, "resume", _without_coming)),
    Mutation("keep-what-was-found-at-a-start", changed(lrm_step, "resume", _with_found)),
    Mutation("keep-all-that-was-found", changed(commands, "prune", _keeps_found)),
    Mutation(
        "take-writing-again-for-no-sign-of-life",
        changed(fencing, "_sign_of_life", _writing_is_no_sign),
    ),
    Mutation(
        "take-over-without-the-power-on-that-was-sent",
        changed(step, "take_over", _fence_without_up_again),
    ),
    Mutation(
        "take-over-a-fence-with-the-old-proof", changed(step, "_with_intent", _with_old_proof)
    ),
)
"""Mistakes that random faults did not find in 600 to 1,000 runs, or seldom: other guards cover
them.  The stage ``mutations`` does not look for them; ``find NAME`` looks for one of them."""
