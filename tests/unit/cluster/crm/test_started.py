# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A service that runs: moved while it runs, as asked, back after a maintenance, slowed down."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.commands import (
    EXPECTED_WITHIN,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired import (
    MOVE,
    STOP,
    Request,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired_codec import (  # noqa: E501
    desired_document,
    desired_from_document,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.maintenance import (  # noqa: E501
    Maintenance,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (
    Answer,
    LeaseSight,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.policy import (
    Policy,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    LocalService,
    LocalState,
    Mode,
    Outcome,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.rules import (
    NodeRule,
    ServiceRule,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    NodeState,
    NodeStatus,
    ServiceStatus,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.states import (
    ServiceState,
)
from ansible_collections.holdfast.ha.tests.unit.cluster.samples import (
    desired,
    kinds,
    observed,
    observed_node,
    report,
    says,
    service,
    started,
    state,
    step,
    verified_off,
    web,
)

WEB = service(live_migration=True)
DB = service("db", live_migration=True)
ASKED = started("n1", state=ServiceState.MIGRATE, target="n2", since=1000.0)
MIGRATING = replace(ASKED, expected=True)
DRAINED = {"n1": Maintenance()}


def test_a_drained_node_lets_its_service_go_while_it_runs() -> None:
    taken = step(state({"web": started("n1")}), observed(desired(WEB, maintenance=DRAINED)))
    assert (web(taken).state, web(taken).target) == (ServiceState.MIGRATE, "n2")
    assert web(taken).maintenance_node == "n1"


def test_a_source_lets_a_service_go_only_once_its_target_expects_it() -> None:
    waits = step(state({"web": ASKED}), observed(desired(WEB), {"n1": says("n1")}))
    assert (web(waits).state, web(waits).expected) == (ServiceState.MIGRATE, False)
    expects = observed_node("n2", report=report("n2", coming=("web",)))
    goes = step(waits.state, observed(desired(WEB), {"n1": says("n1"), "n2": expects}))
    assert (web(goes).state, web(goes).expected, web(goes).uid) == (
        ServiceState.MIGRATE,
        True,
        web(waits).uid,
    )
    # By that number an older copy of the record, without the permission, is recognised.
    assert goes.state.commands > waits.state.commands


def test_a_service_stays_where_it_is_when_its_target_is_lost_before_it_expects_it() -> None:
    silent = observed_node("n2", heartbeat_age=5.0)
    nodes = {"n2": NodeStatus(NodeState.SUSPECT, boot="n2-boot1")}
    taken = step(
        state({"web": ASKED}, nodes), observed(desired(WEB), {"n1": says("n1"), "n2": silent})
    )
    assert (web(taken).state, web(taken).node, web(taken).target) == (
        ServiceState.STARTED,
        "n1",
        "",
    )


def test_a_target_that_never_says_that_it_expects_a_service_gets_it_by_stop_and_start() -> None:
    since = replace(ASKED, since=1000.0 - EXPECTED_WITHIN)
    taken = step(state({"web": since}), observed(desired(WEB), {"n1": says("n1")}))
    assert (web(taken).state, web(taken).target) == (ServiceState.RELOCATE, "n2")


def test_what_was_not_yet_let_go_by_a_node_that_died_is_nowhere_else() -> None:
    nodes = {"n1": NodeStatus(NodeState.FENCE), "n2": NodeStatus(NodeState.SUSPECT)}
    dead = observed_node("n1", heartbeat_age=99.0, answer=Answer.NO, lease=LeaseSight.DEAD)
    looks = {"n1": dead, "n2": observed_node("n2", heartbeat_age=5.0)}
    taken = step(state({"web": ASKED}, nodes), observed(desired(WEB), looks))
    assert (web(taken).state, web(taken).node) == (ServiceState.REQUEST_START, "n3")


def test_what_went_over_is_taken_in_on_its_target() -> None:
    taken = step(state({"web": MIGRATING}), observed(desired(WEB), {"n1": says("n1", Outcome.OK)}))
    assert (web(taken).state, web(taken).node) == (ServiceState.REQUEST_START, "n2")
    assert web(taken).from_node == "n1"


def test_a_migration_that_failed_is_followed_by_a_stop_and_a_start() -> None:
    look = observed(desired(WEB, maintenance=DRAINED), {"n1": says("n1", Outcome.FAILED)})
    taken = step(state({"web": MIGRATING}), look)
    assert web(taken).state is ServiceState.RELOCATE
    assert "migration_failed" in kinds(taken.state)


def test_a_migration_that_nobody_needs_is_not_forced_after_it_failed() -> None:
    look = observed(desired(WEB), {"n1": says("n1", Outcome.FAILED)})
    taken = step(state({"web": MIGRATING}), look)
    assert (web(taken).state, web(taken).node) == (ServiceState.STARTED, "n1")


@pytest.mark.parametrize("target", [NodeState.ONLINE, NodeState.SUSPECT])
def test_what_was_migrating_from_a_dead_node_runs_on_its_target_or_nowhere(target) -> None:
    nodes = {"n1": NodeStatus(NodeState.FENCE), "n2": NodeStatus(target, boot="n2-boot1")}
    dead = observed_node("n1", heartbeat_age=99.0, answer=Answer.NO, lease=LeaseSight.DEAD)
    silent = observed_node("n2", heartbeat_age=5.0)
    looks = {"n1": dead} if target is NodeState.ONLINE else {"n1": dead, "n2": silent}
    taken = step(state({"web": MIGRATING}, nodes), observed(desired(WEB), looks))
    if target is NodeState.ONLINE:
        assert (web(taken).state, web(taken).node) == (ServiceState.REQUEST_START, "n2")
    else:
        assert web(taken).state is ServiceState.RECOVERY
        assert "may run it" in web(taken).reason


def test_a_service_returns_when_the_maintenance_of_its_node_is_over() -> None:
    away = started("n2", maintenance_node="n1")
    taken = step(state({"web": away}), observed(desired(WEB)))
    assert (web(taken).state, web(taken).target) == (ServiceState.MIGRATE, "n1")
    stays = step(state({"web": away}), observed(desired(replace(WEB, failback=False))))
    assert web(stays).state is ServiceState.STARTED


def test_a_service_is_recovered_where_it_would_return_to_anyway() -> None:
    lost = started("n2", state=ServiceState.RECOVERY, maintenance_node="n3")
    off = {"n2": NodeStatus(NodeState.OFF, boot="n2-boot1", proof=verified_off())}
    dead = {"n2": observed_node("n2", heartbeat_age=99.0)}
    taken = step(state({"web": lost}, off), observed(desired(WEB), dead))
    assert (web(taken).state, web(taken).node) == (ServiceState.REQUEST_START, "n3")
    other = step(state({"web": lost}, off), observed(desired(replace(WEB, failback=False)), dead))
    assert web(other).node == "n1"


def test_it_does_not_return_to_a_node_that_its_rule_prefers_less() -> None:
    rule = {"where": NodeRule("where", ("web",), {"n2": 2, "n1": 1})}
    away = started("n2", maintenance_node="n1")
    taken = step(state({"web": away}), observed(desired(WEB, node_rules=rule)))
    assert web(taken).state is ServiceState.STARTED


@pytest.mark.parametrize(
    ("node", "changes", "why"),
    [
        ("n1", {}, "it is there already"),
        ("n9", {}, "not a node of this cluster"),
        ("n2", {"maintenance": {"n2": Maintenance()}}, "in maintenance"),
        ("n2", {"service_rules": {"p": ServiceRule("p", ("db", "web"), "apart")}}, "apart"),
    ],
)
def test_a_request_that_cannot_be_done_is_refused_once_with_its_reason(node, changes, why) -> None:
    asked = desired(WEB, DB, requests={"web": Request(MOVE, 5.0, node)}, **changes)
    before = state({"web": started("n1"), "db": started("n2", DB)})
    taken = step(before, observed(asked))
    refused = [event.text for event in taken.state.events if event.kind == "refused"]
    assert len(refused) == 1
    assert why in refused[0]
    assert web(taken).state is ServiceState.STARTED
    assert step(taken.state, observed(asked)).state.events == taken.state.events


@pytest.mark.parametrize("status", [started("n1"), started("n1", state=ServiceState.STOPPED)])
def test_a_move_waits_until_it_is_known_whether_its_node_is_still_there(status) -> None:
    asked = desired(WEB, requests={"web": Request(MOVE, 5.0, "n2")})
    unwatched = observed(asked, {"n2": observed_node("n2", heartbeat_age=1.0, beats=False)})
    waiting = step(state({"web": status}), unwatched)
    assert web(waiting) == status
    moved = step(waiting.state, observed(asked))
    assert "refused" not in kinds(moved.state)
    assert web(moved).request == 5.0
    gone = replace(
        unwatched, nodes={**unwatched.nodes, "n2": observed_node("n2", heartbeat_age=9.0)}
    )
    refused = step(step(waiting.state, gone).state, gone)
    assert "refused" in kinds(refused.state)


def test_a_request_takes_along_what_is_kept_together() -> None:
    together = {"p": ServiceRule("p", ("db", "web"), "together")}
    asked = desired(WEB, DB, requests={"web": Request(MOVE, 5.0, "n3")}, service_rules=together)
    taken = step(state({"web": started("n1"), "db": started("n1", DB)}), observed(asked))
    assert {one.target for one in taken.state.services.values()} == {"n3"}


def test_a_stop_with_a_timeout_hands_it_to_the_node() -> None:
    asked = desired(
        replace(WEB, state="stopped"), requests={"web": Request(STOP, 5.0, timeout=7.0)}
    )
    taken = step(state({"web": started("n1")}), observed(asked))
    assert (web(taken).state, web(taken).stop_timeout) == (ServiceState.REQUEST_STOP, 7.0)


def test_a_stop_with_a_timeout_that_was_taken_back_leaves_later_stops_their_own() -> None:
    asked = desired(WEB, requests={"web": Request(STOP, 5.0, timeout=7.0)})
    taken = step(state({"web": started("n1")}), observed(asked))
    assert (web(taken).state, web(taken).stop_timeout) == (ServiceState.STARTED, None)
    assert "refused" in kinds(taken.state)


def test_what_fails_again_and_again_while_it_runs_waits_longer_and_longer() -> None:
    often = service(max_relocate=99)
    status, waits = started("n1", often), []
    for _crash in range(9):
        look = observed(desired(often), {"n1": says("n1", local=LocalState.FAILED, one=often)})
        taken = step(state({"web": replace(status, state=ServiceState.STARTED)}), look)
        waits.append(max(web(taken).not_before - 1000.0, 0.0))
        status = started("n1", often, crashes=web(taken).crashes)
    assert waits == [0.0, 0.0, 10.0, 20.0, 40.0, 80.0, 160.0, 300.0, 300.0]


def test_what_waits_after_a_crash_is_started_when_its_time_has_come() -> None:
    waiting = ServiceStatus(
        ServiceState.STOPPED, last_node="n1", crashes=3, not_before=1010.0, digest=WEB.digest()
    )
    taken = step(state({"web": waiting}), observed(desired(WEB)))
    assert web(taken).state is ServiceState.STOPPED
    later = replace(observed(desired(WEB)), wall=1010.0)
    assert web(step(taken.state, later)).state is ServiceState.REQUEST_START
    # A wall clock that went back by hours holds nothing up for longer than the longest wait.
    back = replace(observed(desired(WEB)), wall=10.0)
    assert web(step(taken.state, back)).state is ServiceState.REQUEST_START


def test_a_service_starts_after_those_that_it_comes_after() -> None:
    later = replace(WEB, after=("db",))
    nowhere = ServiceStatus(ServiceState.STOPPED)
    taken = step(state({"web": nowhere, "db": nowhere}), observed(desired(later, DB)))
    assert web(taken).state is ServiceState.STOPPED
    assert "waits for 'db'" in web(taken).reason
    runs = {**taken.state.services, "db": started("n1", DB)}
    assert web(step(replace(taken.state, services=runs), observed(desired(later, DB)))).uid


def test_who_comes_gives_way_to_who_is_there() -> None:
    apart = {"p": ServiceRule("p", ("db", "web"), "apart")}
    before = {
        "web": ServiceStatus(ServiceState.STOPPED, last_node="n1"),
        "db": started("n1", DB),
    }
    taken = step(state(before), observed(desired(WEB, DB, service_rules=apart)))
    assert taken.state.services["db"] == started("n1", DB)
    assert (web(taken).state, web(taken).target) == (ServiceState.RELOCATE, "n2")


def test_a_stopped_service_starts_where_it_was_unless_it_is_to_be_rebalanced() -> None:
    before = {
        "web": ServiceStatus(ServiceState.STOPPED, last_node="n1"),
        "db": started("n1", DB),
    }
    assert web(step(state(before), observed(desired(WEB, DB)))).node == "n1"
    even = desired(WEB, DB, policy=Policy(rebalance_on_start=True))
    leaving = step(state(before), observed(even))
    assert web(leaving).state is ServiceState.REQUEST_START_BALANCE
    assert (web(leaving).node, web(leaving).target) == ("n1", "n2")
    left = says("n1", Outcome.OK, uid=web(leaving).uid)
    begun = step(leaving.state, observed(even, {"n1": left}))
    assert (web(begun).state, web(begun).node) == (ServiceState.REQUEST_START, "n2")


@pytest.mark.parametrize("last", [("n1",), ("n1", "n2"), ("n1", "n2", "n3"), ("",)])
def test_services_that_are_rebalanced_at_their_start_leave_no_node_empty(last) -> None:
    named = [service(f"s{number:02}") for number in range(50)]
    before = {
        one.id: ServiceStatus(ServiceState.STOPPED, last_node=last[index % len(last)])
        for index, one in enumerate(named)
    }
    even = desired(*named, policy=Policy(rebalance_on_start=True))
    taken = step(state(before), observed(even)).state.services
    starts = Counter(one.target or one.node for one in taken.values())
    assert sorted(starts.values()) == [16, 17, 17]


def test_what_may_still_run_on_its_last_node_starts_nowhere_else_for_the_loads_sake() -> None:
    balancing = started("n1", state=ServiceState.REQUEST_START_BALANCE, target="n2")
    even = desired(WEB, policy=Policy(rebalance_on_start=True))
    blocked = step(state({"web": balancing}), observed(even, {"n1": says("n1", Outcome.BLOCKED)}))
    assert (web(blocked).state, web(blocked).node) == (ServiceState.ERROR, "n1")
    silent = observed_node("n1", heartbeat_age=9.0, answer=Answer.NO, lease=LeaseSight.STALE)
    dead = step(state({"web": balancing}), observed(even, {"n1": silent}))
    assert web(dead).state is ServiceState.FENCE


def test_a_service_whose_last_node_can_do_nothing_starts_where_it_is_best_at_once() -> None:
    before = {"web": ServiceStatus(ServiceState.STOPPED, last_node="n1")}
    even = desired(WEB, policy=Policy(rebalance_on_start=True), maintenance=DRAINED)
    taken = step(state(before), observed(even))
    assert (web(taken).state, web(taken).node) == (ServiceState.REQUEST_START, "n2")


@pytest.mark.parametrize("lost", [{"lease_lost": True}, {"mode": Mode.SHUTDOWN}])
def test_a_stopped_service_is_not_given_back_to_a_node_that_may_start_nothing(lost) -> None:
    before = ServiceStatus(ServiceState.STOPPED, last_node="n2")
    look = observed(desired(WEB), {"n2": observed_node("n2", report=report("n2", **lost))})
    taken = step(state({"web": before}), look)
    assert web(taken).state is ServiceState.REQUEST_START
    assert web(taken).node != "n2"


def test_partners_follow_the_one_rule_that_names_any_of_them() -> None:
    rules = {"where": NodeRule("where", ("db",), {"n3": 1})}
    together = {"p": ServiceRule("p", ("db", "web"), "together")}
    both = desired(WEB, DB, node_rules=rules, service_rules=together)
    before = state({"web": started("n1"), "db": started("n1", DB)})
    taken = step(before, observed(both))
    assert {one.target for one in taken.state.services.values()} == {"n3"}


def test_an_ignored_service_is_left_as_it_is_and_found_again() -> None:
    ignored = desired(replace(WEB, ignored=True))
    taken = step(state({"web": started("n1")}), observed(ignored))
    assert "web" not in taken.state.services
    again = step(taken.state, observed(desired(WEB)))
    assert web(again).state is ServiceState.PROBE


def test_a_configuration_without_anything_new_is_written_as_older_versions_know_it() -> None:
    document = desired_document(desired(service()))
    assert set(document) == {"version", "services", "node_rules", "service_rules", "maintenance"}
    assert "live_migration" not in document["services"][0]


def test_all_that_is_new_is_read_back() -> None:
    whole = desired(
        service(
            node="n2", ignored=True, live_migration=True, after=("db",), fence_on_stop_failure=True
        ),
        DB,
        requests={"web": Request(MOVE, 5.0, "n3"), "db": Request(STOP, 6.0, timeout=2.0)},
        policy=Policy(
            shutdown="migrate", placement="load", rebalance=True, rebalance_threshold=0.2
        ),
        disarm="ignore",
    )
    assert desired_from_document(desired_document(whole)) == whole


def test_a_service_says_itself_how_long_it_waits_after_it_failed() -> None:
    often = service(max_relocate=99, backoff=1.0, backoff_max=3.0)
    for crashes, wait in ((1, 0.0), (2, 1.0), (3, 2.0), (4, 3.0), (900, 3.0)):
        look = observed(desired(often), {"n1": says("n1", local=LocalState.FAILED, one=often)})
        taken = step(state({"web": started("n1", often, crashes=crashes)}), look)
        assert max(web(taken).not_before - 1000.0, 0.0) == wait


CLINGING = service(fence_on_stop_failure=True)


@pytest.mark.parametrize(("crashes", "after"), [(1, ServiceState.FENCE), (2, ServiceState.ERROR)])
def test_not_one_node_after_the_other_is_fenced_for_what_cannot_be_stopped(crashes, after) -> None:
    leaving = started("n1", CLINGING, state=ServiceState.RELOCATE, target="n2", crashes=crashes)
    look = observed(desired(CLINGING), {"n1": says("n1", Outcome.BLOCKED)})
    taken = step(state({"web": leaving}), look, rounds=2)
    assert web(taken).state is after
    if after is ServiceState.FENCE:
        assert web(taken).crashes == crashes + 1
    else:
        assert "no other node is fenced for it" in web(taken).reason


def test_a_node_is_fenced_for_a_service_that_cannot_be_stopped_and_asks_for_it() -> None:
    leaving = started("n1", CLINGING, state=ServiceState.RELOCATE, target="n2")
    look = observed(desired(CLINGING), {"n1": says("n1", Outcome.BLOCKED)})
    taken = step(state({"web": leaving}), look)
    assert (taken.state.nodes["n1"].state, web(taken).state) == (
        NodeState.FENCE,
        ServiceState.FENCE,
    )
    failover = taken.state.open_failover("n1")
    assert failover is not None
    assert "'web' could not be stopped and asks for this" in failover.reason
    # It is alive, and its heartbeat calls nothing off.
    sent = step(taken.state, look)
    assert [order.node for order in sent.fences] == ["n1"]
    assert "asks for this" in sent.fences[0].reason


def test_a_manager_does_not_fence_its_own_node_for_a_service() -> None:
    leaving = started("n3", CLINGING, state=ServiceState.RELOCATE, target="n2")
    look = observed(desired(CLINGING), {"n3": says("n3", Outcome.BLOCKED, LocalState.BLOCKED)})
    taken = step(state({"web": leaving}), look)
    assert (web(taken).state, web(taken).node) == (ServiceState.ERROR, "n3")
    other = step(replace(taken.state, manager="n1"), look)
    assert other.state.nodes["n3"].state is NodeState.FENCE


def test_no_node_is_fenced_for_a_stop_that_nobody_tried() -> None:
    # It was not declared when its node was to stop it; now it is again.
    error = started("n1", CLINGING, state=ServiceState.ERROR)
    taken = step(state({"web": error}), observed(desired(CLINGING)), rounds=2)
    assert taken.state.nodes["n1"].state is NodeState.ONLINE


def test_what_cannot_be_stopped_is_in_error_when_its_fence_is_called_off() -> None:
    # The start that it owes its uid to went well, which is no word on its stop.
    blocked = says("n1", Outcome.OK, LocalState.BLOCKED)
    look = observed(desired(CLINGING), {"n1": blocked})
    demanded = step(state({"web": started("n1", CLINGING)}), look)
    assert demanded.state.nodes["n1"].state is NodeState.FENCE
    own = step(replace(demanded.state, manager="n1"), look, rounds=3)
    assert own.state.nodes["n1"].state is NodeState.ONLINE
    assert (web(own).state, web(own).node) == (ServiceState.ERROR, "n1")


@pytest.mark.parametrize(
    ("mode", "blocked", "expected"),
    [
        (Mode.SHUTDOWN, False, (ServiceState.STARTED, "n1")),
        (Mode.SHUTDOWN, True, (ServiceState.REQUEST_START, "n2")),
        (Mode.RESTART, True, (ServiceState.FREEZE, "n1")),
    ],
)
def test_what_was_stopped_for_a_shutdown_goes_elsewhere_if_another_blocks_that(
    mode, blocked, expected
) -> None:
    services = {"web": LocalService(WEB, LocalState.STOPPED, "7.1")}
    if blocked:
        services["db"] = LocalService(DB, LocalState.BLOCKED, "7.2")
    there = observed_node("n1", report=report("n1", mode=mode, services=services))
    taken = step(state({"web": started("n1", WEB)}), observed(desired(WEB), {"n1": there}))
    assert (web(taken).state, web(taken).node) == expected


@pytest.mark.parametrize("mode", list(Mode))
def test_a_service_that_its_node_does_not_know_is_probed_once_the_node_follows(mode) -> None:
    before = state({"web": started("n1")})
    before = replace(before, commands=5)
    follows = report("n1", epoch=before.epoch, commands=before.commands, mode=mode)
    active = mode in (Mode.ACTIVE, Mode.MAINTENANCE)
    # What was commanded for other nodes since is no news for this one.
    only_its_own = replace(follows, commands=1)
    before_it = replace(follows, commands=0)
    other_manager = replace(follows, epoch=before.epoch - 1)
    cases = ((follows, active), (only_its_own, active), (before_it, False), (other_manager, False))
    for known, probed in cases:
        taken = step(before, observed(desired(WEB), {"n1": observed_node("n1", report=known)}))
        assert (web(taken).state is ServiceState.PROBE) is probed
