# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is declared beside services and rules: requests, moves, policies, a disarmed cluster."""

from __future__ import annotations

from itertools import chain, repeat

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.maintenance import (  # noqa: E501
    Maintenance,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    Report,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    ClusterState,
    Event,
    NodeState,
    NodeStatus,
    ServiceStatus,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.states import (
    ServiceState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import (
    HoldfastError,
    InputError,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.cluster_storage import (
    ClusterStorage,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.forecast.rebalance import (  # noqa: E501
    rebalance_info,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.operations import (
    change as operations_change,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.operations import (
    move as operations_move,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.operations.change import (  # noqa: E501
    change_desired,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.operations.disarm import (  # noqa: E501
    declare_cluster_maintenance,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.operations.maintenance import (  # noqa: E501
    declare_maintenance,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.operations.move import (  # noqa: E501
    declare_move,
    evacuate,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.operations.policy import (  # noqa: E501
    declare_policy,
)
from ansible_collections.holdfast.ha.tests.unit.node.declaring import RESOURCE, Cluster
from ansible_collections.holdfast.ha.tests.unit.node.sample_node import (
    configuration,
)


@pytest.fixture
def cluster(tmp_path):
    found = Cluster(tmp_path)
    yield found
    found.close()


def test_an_error_is_cleared_by_a_request_and_only_where_there_is_one(cluster):
    cluster.service(resources=[RESOURCE])
    cluster.manager_says(1, {"web": ServiceStatus(ServiceState.ERROR, reason="it failed")})
    told = cluster.service(check=True, clear_error=True)
    assert (told.changed, told.values["cleared"], cluster.desired().requests) == (True, True, {})
    assert cluster.service(clear_error=True).changed
    assert cluster.desired().requests["web"].kind == "clear"
    cluster.manager_says(2, {"web": ServiceStatus(ServiceState.STARTED, "n1")})
    assert not cluster.service(clear_error=True).changed


def test_a_stop_with_a_timeout_is_asked_for_once(cluster):
    cluster.service(resources=[RESOURCE])
    assert cluster.service(state="stopped", stop_within=7.0).changed
    request = cluster.desired().requests["web"]
    assert (request.kind, request.timeout) == ("stop", 7.0)
    assert not cluster.service(state="stopped", stop_within=9.0).changed


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"stop_within": 5.0}, "stop_within: 5.0 is not accepted; expected it only with state"),
        ({"state": "stopped", "clear_error": True}, "expected it only with state=started"),
        ({"node": "n9"}, "node: 'n9' is not accepted; expected one of the cluster's nodes (n1,"),
        ({"after": ["db"]}, "after: 'db' is not accepted; expected the id of a declared service"),
        ({"live_migration": True}, "ocf:test:thing has no action migrate_to and migrate_from"),
        ({"cpus": -1.0}, "cpus: -1.0 is not accepted; expected a number of CPUs from 0 to 10000"),
        ({"backoff": 400.0}, "expected seconds from backoff, which is 400, on"),
    ],
)
@pytest.mark.parametrize("check", [True, False])
def test_what_a_service_cannot_be_is_refused_in_check_mode_too(cluster, changes, part, check):
    with pytest.raises(InputError) as caught:
        cluster.service(resources=[RESOURCE], check=check, **changes)
    assert part in str(caught.value)
    assert cluster.desired().version == 0


def test_no_more_services_are_kept_apart_than_there_are_nodes(cluster):
    for name in ("a", "b", "c", "d"):
        cluster.service(name, resources=[RESOURCE])
    cluster.rule(services=["a", "b", "c"], affinity="apart")
    with pytest.raises(InputError, match="at most 3 services to be kept apart"):
        cluster.rule(services=["a", "b", "c", "d"], affinity="apart")
    cluster.rule("near", services=["a", "d"], affinity="together")


def test_a_node_is_in_use_again_once_its_lrm_does_not_keep_it_empty_any_more(cluster):
    cluster.maintenance()
    drained = NodeStatus(NodeState.ONLINE, reason="back", mode="maintenance")
    cluster.manager_says(2, nodes={"n2": drained})
    with pytest.raises(HoldfastError, match="'n2' is online: back; its LRM still keeps it empty"):
        cluster.maintenance("active", wait=True)
    cluster.manager_says(2, nodes={"n2": NodeStatus(NodeState.ONLINE)})
    assert not cluster.maintenance("active", wait=True).changed


def policy(cluster, check=False, **changes):
    options = {"config": str(cluster.path), "wait": False, "timeout": 0.3}
    return declare_policy({**options, **changes}, check)


def test_a_policy_changes_only_where_it_is_given(cluster):
    told = policy(cluster, check=True, shutdown="migrate", rebalance_hold=5)
    done = policy(cluster, shutdown="migrate", rebalance_hold=5)
    assert (told.before, told.after) == (done.before, done.after)
    assert (done.after["shutdown"], done.after["rebalance_hold"]) == ("migrate", 5)
    assert {**done.after, "shutdown": "conditional", "rebalance_hold": 3} == done.before
    again = policy(cluster, rebalance_hold=5, max_workers=None)
    assert (again.changed, again.after) == (False, done.after)


def test_a_policy_is_waited_for_until_the_manager_has_taken_it_up(cluster):
    with pytest.raises(HoldfastError, match=r"has not applied the change after 0\.3 s"):
        policy(cluster, shutdown="migrate", wait=True)
    told = policy(cluster, check=True, shutdown="freeze", wait=True)
    assert told.changed, "nothing is waited for that is not done"
    cluster.manager_says(1)
    assert not policy(cluster, shutdown="migrate", wait=True).changed


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"shutdown": "never"}, "shutdown: 'never' is not accepted; expected one of conditional"),
        ({"max_workers": 0}, "max_workers: 0 is not accepted; expected a whole number of workers"),
        ({"rebalance_hold": 2.5}, "expected a whole number of rounds"),
        ({"rebalance_margin": 1.5}, "expected a share from 0 to 1"),
        ({"rebalance": "maybe"}, "rebalance: 'maybe' is not accepted; expected true or false"),
        ({"shutdown_timeout": -1}, "expected seconds from 0 to 86400"),
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(cluster, changes, part):
    with pytest.raises(InputError) as caught:
        policy(cluster, **changes)
    assert part in str(caught.value)


def move(cluster, check=False, **changes):
    options = {"config": str(cluster.path), "name": "web", "node": "n2", "live": True}
    return declare_move({**options, "wait": False, "timeout": 0.3, **changes}, check)


@pytest.fixture
def movable(cluster):
    """The cluster with web on n1, all nodes online, and n3 being drained."""
    cluster.service(resources=[RESOURCE])
    cluster.service("off", state="stopped", resources=[RESOURCE])
    drained = {
        **{"config": str(cluster.path), "node": "n3", "state": "drained", "reason": "x"},
        **{"owner": "x", "wait": False, "timeout": 0.3},
    }
    declare_maintenance(drained, False)
    for node in ("n1", "n2", "n3"):
        there = ClusterStorage(configuration(cluster.folder, node))
        there.write_report(Report(node))
        there.close()
    cluster.web = {"web": ServiceStatus(ServiceState.STARTED, "n1")}
    cluster.online = {name: NodeStatus(NodeState.ONLINE) for name in ("n1", "n2", "n3")}
    cluster.manager_says(3, cluster.web, cluster.online)
    return cluster


def test_a_move_is_told_in_check_mode_and_asked_for_once(movable):
    told = move(movable, check=True)
    assert (told.changed, movable.desired().requests) == (True, {})
    done = move(movable, live=False)
    assert (told.before, told.after) == (done.before, done.after)
    assert done.before == {"web": {"node": "n1"}}
    request = movable.desired().requests["web"]
    assert (request.kind, request.node, request.live) == ("move", "n2", False)
    assert not move(movable, node="n1").changed


@pytest.mark.parametrize(
    "status",
    [
        ServiceStatus(ServiceState.STARTED, "n2"),
        ServiceStatus(ServiceState.RELOCATE, "n1", target="n2"),
        ServiceStatus(ServiceState.STOPPED, last_node="n2"),
    ],
)
def test_what_is_there_or_on_its_way_is_left_alone(movable, status):
    movable.manager_says(3, {"web": status}, movable.online)
    assert not move(movable).changed


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"node": "n9"}, "node: 'n9' is not accepted; expected one of the cluster's nodes"),
        (
            {"node": "n3"},
            "a node that can take service 'web' now; n3: it is in maintenance",
        ),
        (
            {"name": "nobody"},
            "name: 'nobody' is not accepted; expected the id of a declared",
        ),
        ({"name": "off"}, "Service 'off' is not applied by the manager yet"),
    ],
)
@pytest.mark.parametrize("check", [True, False])
def test_a_move_that_the_manager_would_refuse_is_refused_before(movable, changes, part, check):
    with pytest.raises(HoldfastError) as caught:
        move(movable, check, **changes)
    assert part in str(caught.value)
    assert not movable.desired().requests


@pytest.mark.parametrize(
    ("state", "why"),
    [
        (ServiceState.ERROR, "so it is"),
        (ServiceState.FENCE, "waits until the fencing of n1 is confirmed"),
        (ServiceState.FREEZE, "so it is"),
    ],
)
def test_what_can_not_be_moved_just_now_says_what_it_is(movable, state, why):
    status = ServiceStatus(state, "n1", reason="so it is")
    movable.manager_says(3, {"web": status}, movable.online)
    with pytest.raises(HoldfastError, match=f"it is {state.value}: {why}"):
        move(movable)


@pytest.mark.parametrize(
    ("held", "why"),
    [
        ({"hold": Maintenance("switches", "ada")}, "is in global maintenance (by ada: switches)."),
        ({"disarm": "disarming", "disarm_mode": "freeze"}, "the cluster is disarming (freeze)."),
    ],
)
def test_no_move_is_asked_for_that_would_come_after_the_cluster_is_let_go(movable, held, why):
    movable.manager_says(3, movable.web, movable.online, **held)
    with pytest.raises(HoldfastError) as caught:
        move(movable)
    assert str(caught.value).startswith("Service 'web' is not moved: the cluster is ")
    assert str(caught.value).endswith(why)
    options = {"config": str(movable.path), "nodes": ["n1"], "partial": False, "live": True}
    options.update(wait=False, timeout=0.3)
    assert evacuate(options, True).values["moves"][0]["target"] == "n2"
    with pytest.raises(HoldfastError) as caught:
        evacuate(options, False)
    assert str(caught.value).startswith("Nothing was moved off n1: the cluster is ")
    assert str(caught.value).endswith(why)
    assert not movable.desired().requests
    frozen = {"web": ServiceStatus(ServiceState.FREEZE, "n1", reason="so it is")}
    movable.manager_says(4, frozen, movable.online, **held)
    with pytest.raises(HoldfastError) as caught:
        evacuate(options, False)
    assert str(caught.value).endswith(why)
    planned = {"config": str(movable.path), "nodes": None, "threshold": None, "most": -1}
    told = rebalance_info(planned, False).values["reason"]
    assert (told.startswith("Nothing would be moved: the cluster is "), told.endswith(why)) == (
        True,
        True,
    )


def test_that_no_step_is_worth_it_is_said_by_the_plan(movable):
    def reason(threshold):
        options = {"config": str(movable.path), "nodes": None, "threshold": threshold, "most": -1}
        return rebalance_info(options, False).values["reason"]

    movable.manager_says(3, movable.web, movable.online)
    assert "and only above 9.00 a move is sought." in reason(9.0)
    assert "but no move that rules and room allow takes away 10% of it." in reason(0.0)


RETURNS = ServiceStatus(ServiceState.RELOCATE, "n1", target="n3", reason="so it is")


def test_a_service_that_is_on_its_way_elsewhere_is_moved_once_it_has_arrived(movable, monkeypatch):
    movable.manager_says(3, {"web": RETURNS}, movable.online)

    def arrive(_seconds):
        movable.manager_says(3, movable.web, movable.online)

    monkeypatch.setattr(operations_move.time, "sleep", arrive)
    with pytest.raises(HoldfastError, match="has not applied the change"):
        move(movable, wait=True, timeout=0.3)
    assert movable.desired().requests["web"].node == "n2"


def test_a_move_that_could_be_asked_for_only_at_the_end_of_its_time_is_still_waited_for(
    movable, monkeypatch
):
    waited = []

    def await_manager(_configuration, _version, timeout, _missing):
        waited.append(timeout)
        return ClusterState(services=movable.web)

    monkeypatch.setattr(operations_move, "await_manager", await_manager)
    clock = chain([0.0], repeat(59.9))
    monkeypatch.setattr(operations_move.time, "monotonic", lambda: next(clock))
    move(movable, wait=True, timeout=60.0)
    assert waited == [operations_move.TAKES_UP]


@pytest.mark.parametrize("wait", [True, False])
def test_a_service_that_stays_on_its_way_elsewhere_is_not_moved(movable, wait):
    movable.manager_says(3, {"web": RETURNS}, movable.online)
    with pytest.raises(HoldfastError, match="it is relocate: so it is"):
        move(movable, wait=wait)
    assert not movable.desired().requests


def test_check_mode_tells_of_a_move_that_would_be_waited_for(movable):
    movable.manager_says(3, {"web": RETURNS}, movable.online)
    assert move(movable, check=True, wait=True).changed
    with pytest.raises(HoldfastError, match="it is relocate: so it is"):
        move(movable, check=True)
    held = Maintenance("switches", "ada")
    movable.manager_says(3, {"web": RETURNS}, movable.online, hold=held)
    with pytest.raises(HoldfastError, match="is in global maintenance"):
        move(movable, wait=True, timeout=60.0)


def test_a_refusal_ends_the_wait_for_a_move_at_once(movable, monkeypatch):
    def refuse(_configuration, plan, **more):
        change = change_desired(_configuration, plan, **more)
        event = Event(5.0, "refused", "n2", "web", "asked to move to n2: it is off")
        says = ClusterState(movable.epoch, "n1", 4, 1, 1, movable.web, movable.online)
        movable.storage.write_manager(says.with_event(event))
        return change

    monkeypatch.setattr(operations_move, "change_desired", refuse)
    with pytest.raises(HoldfastError) as caught:
        move(movable, wait=True, timeout=60.0)
    assert str(caught.value) == (
        "Service 'web' was not moved to n2: asked to move to n2: it is off; see holdfast why."
    )


def disarm(cluster, check=False, **changes):
    options = {
        **{"config": str(cluster.path), "state": "present", "mode": "freeze", "reason": "disks"},
        **{"owner": "ada", "until": None, "duration": None, "wait": False, "timeout": 0.3},
    }
    return declare_cluster_maintenance({**options, **changes}, check)


def test_a_cluster_is_disarmed_once_and_armed_once(cluster):
    told, done = disarm(cluster, check=True), disarm(cluster)
    assert (told.changed, done.changed) == (True, True)
    assert cluster.desired().disarm == "freeze"
    assert done.values["disarm"]["owner"] == "ada"
    assert not disarm(cluster, reason=None, owner=None).changed
    told, armed = disarm(cluster, check=True, state="absent"), disarm(cluster, state="absent")
    assert (told.changed, told.before, told.after) == (armed.changed, armed.before, armed.after)
    assert (cluster.desired().disarm, cluster.desired().disarmed_by) == ("", None)
    assert not disarm(cluster, state="absent").changed


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"duration": 5.0}, "duration: 5.0 is not accepted; expected it only with mode=hold"),
        ({"until": "2090-01-01T10:00:00Z"}, "expected it only with mode=hold"),
    ],
)
def test_a_disarmed_cluster_has_no_expiry(cluster, changes, part):
    with pytest.raises(InputError) as caught:
        disarm(cluster, **changes)
    assert part in str(caught.value)


def test_a_cluster_is_not_disarmed_in_two_ways_nor_in_maintenance(cluster):
    disarm(cluster)
    with pytest.raises(InputError, match="'freeze', as the cluster is disarmed already"):
        disarm(cluster, mode="ignore")
    disarm(cluster, state="absent")
    disarm(cluster, mode="hold")
    with pytest.raises(InputError, match="global maintenance is in force: end that first"):
        disarm(cluster, check=True)


def test_a_wait_for_disarming_says_what_is_under_way(cluster, monkeypatch):
    monkeypatch.setattr(operations_change, "POLL", 0.02)
    cluster.manager_says(1, {"web": ServiceStatus(ServiceState.RELOCATE, "n1", target="n2")})
    with pytest.raises(HoldfastError) as caught:
        disarm(cluster, wait=True)
    assert str(caught.value).startswith("The cluster is armed; under way: web (relocate) after 0.3")


@pytest.fixture
def homesick(movable):
    """The same, with a rule that prefers n1 for web."""
    movable.rule("home", nodes={"n1": 1})
    movable.manager_says(4, movable.web, movable.online)
    return movable


@pytest.mark.parametrize("check", [True, False], ids=["dry run", "for real"])
def test_a_move_that_a_rule_would_undo_is_refused_unless_it_is_forced(homesick, check):
    with pytest.raises(InputError) as caught:
        move(homesick, check)
    assert str(caught.value) == (
        "node: 'n2' is not accepted; expected a node on which service 'web' would stay; 'web'"
        " would go from n2 to n1 at once: rule 'home' prefers it. Change that, pin the service to"
        " the node (pin: true, --pin), or move it all the same (force: true, --force)."
    )
    assert not homesick.desired().requests
    assert move(homesick, check, force=True).changed
    assert len(homesick.desired().requests) == (0 if check else 1)
    assert not homesick.desired().pins


@pytest.mark.parametrize("check", [True, False], ids=["dry run", "for real"])
def test_a_pinned_service_is_moved_and_its_node_recorded(homesick, check):
    done = move(homesick, check, pin=True)
    assert (done.before, done.after) == (
        {"web": {"node": "n1", "pinned": ""}},
        {"web": {"node": "n2", "pinned": "n2"}},
    )
    assert homesick.desired().pins == ({} if check else {"web": "n2"})


def test_a_pin_is_kept_by_other_moves_and_taken_away_without_one(homesick):
    move(homesick, pin=True)
    there = {"web": ServiceStatus(ServiceState.STARTED, "n2")}
    homesick.manager_says(5, there, homesick.online)
    with pytest.raises(InputError, match="rule 'pin to n2' prefers it"):
        move(homesick, node="n1")
    assert not move(homesick, pin=True).changed
    assert move(homesick, node="n1", pin=False).changed
    move(homesick, node="n2", pin=True)
    made = homesick.desired().requests["web"]
    assert move(homesick, True, node=None, pin=False).before == {"web": {"pinned": "n2"}}
    done = move(homesick, node=None, pin=False, wait=True)
    assert (done.changed, done.values["pinned"]) == (True, "")
    assert not homesick.desired().pins
    assert homesick.desired().requests["web"] == made
    assert not move(homesick, node=None, pin=False).changed
    with pytest.raises(InputError, match="name: 'nobody' is not accepted"):
        move(homesick, name="nobody", node=None, pin=False)
