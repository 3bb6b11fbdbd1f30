# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What users ask for beside "keep it running", on real daemons: moves, policies, disarming, order.

The agent of these tests keeps what runs where in files, together with the boot of the node,
so that it ends with its node as a process does.  A file beside them lets it fail on a node.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import HoldfastError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.machine import power
from cluster import NODES, PATIENCE, EmbeddedCluster

AGENT = """#!/bin/sh
me=$HOLDFAST_NODE base=$OCF_RESKEY_base id=$OCF_RESOURCE_INSTANCE
if [ "$1" = meta-data ]; then
cat <<'XML'
<?xml version="1.0"?>
<resource-agent name="guest" version="1.0">
<version>1.1</version>
<longdesc lang="en">A guest.</longdesc><shortdesc lang="en">A guest</shortdesc>
<parameters><parameter name="base" required="1"><longdesc lang="en">Where.</longdesc>
<shortdesc lang="en">Where</shortdesc><content type="string"/></parameter></parameters>
<actions>
<action name="start" timeout="20"/><action name="stop" timeout="20"/>
<action name="monitor" timeout="20" interval="10"/>
<action name="migrate_to" timeout="20"/><action name="migrate_from" timeout="20"/>
<action name="meta-data" timeout="5"/>
</actions>
</resource-agent>
XML
exit 0
fi
there() { [ -e "$base/guests/$1@$me" ]; }
runs() { there "$id" && [ "$(cat "$base/guests/$id@$me")" = "$(cat "$base/nodes/$me/boot")" ]; }
[ "$1" = monitor ] || echo "$1 ${id%%.*} $me" >> "$base/guests/calls"
case $1 in
start) there broken && exit 1; cat "$base/nodes/$me/boot" > "$base/guests/$id@$me";;
stop) there stuck && exit 1; rm -f "$base/guests/$id@$me";;
monitor|migrate_from) runs || exit 7;;
migrate_to)
    there lost && exit 1
    target=$OCF_RESKEY_CRM_meta_migrate_target
    cat "$base/nodes/$target/boot" > "$base/guests/$id@$target"
    rm -f "$base/guests/$id@$me";;
*) exit 3;;
esac
"""


class Guests:
    """Services of the agent above in a cluster, and how they are to fail."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self.cluster = cluster
        self.folder = cluster.folder / "guests"
        self.folder.mkdir(exist_ok=True)
        self._names: list[str] = []
        path = cluster.folder / "ocf" / "resource.d" / "test" / "guest"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(AGENT)
        path.chmod(0o755)

    def declare(self, name: str, **more: Any) -> Any:
        self._names.append(name)
        resource = {
            "name": "r",
            "agent": "ocf:test:guest",
            "parameters": {"base": str(self.cluster.folder)},
            "monitor_interval": 1.0,
        }
        given = {"max_restart": 0, "wait": True, **more}
        return self.cluster.declare_resources(name, [resource], **given)

    def calls(self, name: str = "") -> list[str]:
        """Return what the agent was asked to do, but for monitors: action, service and node."""
        path = self.folder / "calls"
        lines = path.read_text().splitlines() if path.exists() else []
        return [line for line in lines if not name or line.split()[1] == name]

    def forget_calls(self) -> None:
        (self.folder / "calls").write_text("")

    def fails(self, how: str, *nodes: str) -> None:
        """Let the guests fail on these nodes from now on, and on no other."""
        for path in self.folder.glob(f"{how}@*"):
            path.unlink()
        for node in nodes:
            (self.folder / f"{how}@{node}").touch()

    def node_of(self, name: str) -> str:
        return str(self.cluster.status()["services"][name]["node"])

    def remove(self) -> None:
        for how in ("broken", "stuck", "lost"):
            self.fails(how)
        for name in dict.fromkeys(reversed(self._names)):
            self.cluster.remove(name)


@pytest.fixture
def guests(cluster: EmbeddedCluster) -> Iterator[Guests]:
    made = Guests(cluster)
    made.forget_calls()
    yield made
    cluster.maintain("absent")
    cluster.policy(shutdown="conditional")
    for node in NODES:
        cluster.switch_on(node)
    cluster.wait(lambda status: status["manager"]["active"], PATIENCE, "managed")
    made.remove()


def other_than(*nodes: str) -> str:
    return next(node for node in NODES if node not in nodes)


def not_managing(cluster: EmbeddedCluster) -> str:
    return other_than(str(cluster.status()["manager"]["node"]))


def test_a_service_is_stopped_and_started_where_it_was_asked_to_go(guests: Guests) -> None:
    guests.declare("guest", node="n1")
    guests.forget_calls()
    moved = guests.cluster.move("guest", "n2")
    assert (moved.changed, moved.values["status"]["node"]) == (True, "n2")
    assert guests.calls() == ["stop guest n1", "start guest n2"]
    assert not guests.cluster.move("guest", "n2").changed
    assert guests.cluster.running()["guest"] == ["n2"]


def test_a_service_that_can_goes_over_while_it_runs(guests: Guests) -> None:
    guests.declare("guest", node="n1", live_migration=True)
    guests.forget_calls()
    guests.cluster.move("guest", "n2")
    assert guests.calls() == ["migrate_to guest n1", "migrate_from guest n2"]
    assert guests.cluster.running()["guest"] == ["n2"]


def test_a_live_migration_that_fails_leaves_it_running_and_the_next_move_stops_it(
    guests: Guests,
) -> None:
    guests.declare("guest", node="n1", live_migration=True)
    guests.fails("lost", "n1")
    with pytest.raises(HoldfastError, match="'guest' was not moved to n2: its live migration"):
        guests.cluster.move("guest", "n2")
    assert guests.cluster.running()["guest"] == ["n1"]
    guests.forget_calls()
    guests.cluster.move("guest", "n2")
    assert guests.calls() == ["stop guest n1", "start guest n2"]


def test_a_service_that_does_not_start_is_tried_elsewhere_and_says_where_it_failed(
    guests: Guests,
) -> None:
    guests.fails("broken", "n1")
    result = guests.declare("guest", node="n1")
    assert result.values["status"]["node"] != "n1"
    starts = [line for line in guests.calls() if line.startswith("start")]
    assert starts == ["start guest n1", f"start guest {guests.node_of('guest')}"]
    service = guests.cluster.status()["services"]["guest"]
    assert service["failed_nodes"] == ["n1"]
    assert ["n1", "its start failed there"] in service["choice"]["rejected"]


def test_a_service_that_failed_everywhere_runs_again_once_its_error_is_cleared(
    guests: Guests,
) -> None:
    guests.fails("broken", *NODES)
    begun = time.monotonic()
    with pytest.raises(HoldfastError, match=r"'guest' is error: .*tried on .*see holdfast why"):
        guests.declare("guest", timeout=120.0)
    assert time.monotonic() - begun < 100.0, "an error ends the wait"
    guests.fails("broken")
    result = guests.declare("guest", clear_error=True)
    assert result.values["status"]["state"] == "started"
    assert len(guests.cluster.running()["guest"]) == 1


def test_services_start_in_their_order_and_wait_for_what_does_not_run(guests: Guests) -> None:
    guests.fails("broken", *NODES)
    guests.declare("first", wait=False, max_relocate=0)
    guests.declare("second", wait=False, after=["first"])
    guests.declare("third", wait=False, after=["second"])
    guests.cluster.wait(
        lambda status: (
            status["services"]["first"]["state"] == "error"
            and "waits for 'first'" in status["services"]["second"]["reason"]
            and "waits for 'second'" in status["services"]["third"]["reason"]
        ),
        PATIENCE,
        "waiting in their order",
    )
    guests.fails("broken")
    guests.forget_calls()
    guests.declare("first", clear_error=True)
    guests.declare("third", after=["second"])
    starts = [line.split()[1] for line in guests.calls() if line.startswith("start")]
    assert starts == ["first", "second", "third"]


def test_a_disarmed_cluster_survives_new_daemons_and_goes_on_where_it_was(guests: Guests) -> None:
    cluster = guests.cluster
    guests.declare("guest")
    before, processes = cluster.fences(), {one: cluster.lasting_processes(one) for one in NODES}
    cluster.maintain("present", mode="freeze")
    guests.forget_calls()
    daemons = {node: cluster.daemon(node, "lrm") for node in NODES}
    for node in NODES:
        power.restart_daemons(cluster.nodes, node)
    cluster.hold_still(6.0)
    status = cluster.wait(
        lambda status: (
            status["manager"]["active"]
            and all(cluster.daemon(node, "lrm") != daemons[node] for node in NODES)
        ),
        PATIENCE,
        "managed by new daemons",
    )
    disarmed = (status["disarm"][key] for key in ("state", "mode", "waits_for"))
    assert tuple(disarmed) == ("disarmed", "freeze", "")
    assert status["services"]["guest"]["state"] == "freeze"
    cluster.maintain("absent")
    cluster.wait_settled()
    assert {one: cluster.lasting_processes(one) for one in NODES} == processes
    assert (cluster.fences(), guests.calls()) == (before, [])


def test_a_node_that_dies_in_a_disarmed_cluster_is_recovered_once_it_is_armed(
    guests: Guests,
) -> None:
    cluster = guests.cluster
    node = not_managing(cluster)
    guests.declare("guest", node=node)
    cluster.maintain("present", mode="freeze")
    before, since = cluster.fences(), time.time()
    cluster.cut(node)
    cluster.hold_still(6.0)
    assert cluster.fences() == before
    assert guests.node_of("guest") == node
    # It waits: the dead node cannot say that it is armed, and is fenced for that.
    cluster.maintain("absent", wait=False)
    failover = cluster.wait_failover(node, since)
    assert "guest" in failover["services"]
    cluster.wait_settled()
    assert len(cluster.running()["guest"]) == 1


def test_in_a_disarmed_cluster_services_may_be_moved_by_hand(guests: Guests) -> None:
    cluster = guests.cluster
    guests.declare("guest", node="n1")
    cluster.maintain("present", mode="ignore")
    by_hand = next(guests.folder.glob("guest.*@n1"))
    boot = (cluster.nodes / "n3" / "boot").read_text()
    by_hand.rename(by_hand.with_name(by_hand.name.replace("@n1", "@n3"))).write_text(boot)
    guests.forget_calls()
    cluster.maintain("absent")
    cluster.wait_settled()
    assert guests.node_of("guest") == "n3"
    assert guests.calls() == []


def test_a_node_that_is_shut_down_is_emptied_first_if_the_policy_says_so(guests: Guests) -> None:
    cluster = guests.cluster
    node = not_managing(cluster)
    guests.declare("guest", node=node, live_migration=True)
    cluster.policy(shutdown="migrate")
    before = cluster.fences()
    guests.forget_calls()
    power.shut_down(cluster.nodes, node, 60.0)
    status = cluster.wait(
        lambda status: status["services"]["guest"]["state"] == "started", PATIENCE, "moved"
    )
    there = status["services"]["guest"]["node"]
    assert guests.calls() == [f"migrate_to guest {node}", f"migrate_from guest {there}"]
    cluster.hold_still(5.0)
    assert cluster.fences() == before
    assert not power.is_on(cluster.nodes, node)
    cluster.switch_on(node)
    cluster.wait(lambda _status: guests.node_of("guest") == node, PATIENCE, "back on its node")


def test_a_poweroff_has_the_services_started_elsewhere_without_a_fence(guests: Guests) -> None:
    cluster = guests.cluster
    node = str(cluster.status()["manager"]["node"])
    guests.declare("guest", node=node)
    before, since = cluster.fences(), time.time()
    power.shut_down(cluster.nodes, node, 60.0)
    failover = cluster.wait_failover(node, since)
    assert failover["started"]["guest"]["node"] != node
    assert "gave its host lease back" in failover["proof"]
    cluster.hold_still(3.0)
    assert cluster.fences() == before
    assert not power.is_on(cluster.nodes, node), "who was shut down is left off"


def test_a_reboot_has_the_services_wait_for_their_node(guests: Guests) -> None:
    cluster = guests.cluster
    node = not_managing(cluster)
    guests.declare("guest", node=node)
    before = cluster.fences()
    guests.forget_calls()
    power.shut_down(cluster.nodes, node, 60.0, reboot=True)
    cluster.wait_settled()
    assert guests.calls() == [f"stop guest {node}", f"start guest {node}"]
    assert cluster.fences() == before


@pytest.mark.parametrize("escalates", [True, False])
def test_a_stop_that_fails_has_its_node_fenced_only_if_the_service_asks_for_it(
    guests: Guests, escalates: bool
) -> None:
    cluster = guests.cluster
    node = not_managing(cluster)
    guests.declare("guest", node=node, fence_on_stop_failure=escalates)
    guests.fails("stuck", node)
    before, since = cluster.fences(), time.time()
    cluster.move("guest", other_than(node), wait=False)
    if escalates:
        failover = cluster.wait_failover(node, since)
        assert "could not be stopped and asks for this" in failover["reason"]
        assert failover["started"]["guest"]["node"] != node
        cluster.wait_settled()
        assert cluster.running()["guest"] == [guests.node_of("guest")]
        return
    cluster.wait(
        lambda status: status["services"]["guest"]["state"] == "error", PATIENCE, "in error"
    )
    cluster.hold_still(3.0)
    assert cluster.fences() == before
    assert Path(cluster.config(node)).exists()
    assert cluster.running()["guest"] == [node]
    guests.fails("stuck")
    guests.declare("guest", clear_error=True, node=node, fence_on_stop_failure=False)
    assert len(cluster.running()["guest"]) == 1


def test_a_service_that_is_started_on_a_better_node_is_looked_for_on_its_last_one_first(
    guests: Guests,
) -> None:
    cluster = guests.cluster
    loads = {node: len(one["services"]) for node, one in cluster.status()["nodes"].items()}
    full = max(sorted(loads), key=lambda node: loads[node])
    guests.declare("guest", node=full)
    guests.declare("guest", state="stopped")
    guests.forget_calls()
    cluster.policy(rebalance_on_start=True)
    try:
        guests.declare("guest")
    finally:
        cluster.policy(rebalance_on_start=False)
    there = guests.node_of("guest")
    assert there != full
    assert guests.calls() == [f"stop guest {full}", f"start guest {there}"]
