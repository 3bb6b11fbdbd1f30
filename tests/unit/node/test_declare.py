# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the modules declare: nothing that is wrong, nothing that was not given, and waited for."""

from __future__ import annotations

import getpass
import os
import time
from dataclasses import replace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    LocalService,
    LocalState,
    Report,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.service import (
    Resource,
    Service,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    ClusterState,
    NodeState,
    NodeStatus,
    ServiceStatus,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.states import (
    ServiceState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import (
    AgentError,
    HoldfastError,
    InputError,
    StorageError,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.cluster_storage import (
    ClusterStorage,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.operations import (
    change,
    node_files,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.operations.node_files import (  # noqa: E501
    declare_fence,
)
from ansible_collections.holdfast.ha.tests.unit.cluster.samples import verified_off
from ansible_collections.holdfast.ha.tests.unit.fence.device_script import write_device
from ansible_collections.holdfast.ha.tests.unit.node.declaring import RESOURCE, Cluster
from ansible_collections.holdfast.ha.tests.unit.node.sample_node import (
    configuration,
    create_storage,
    document,
    join,
)


@pytest.fixture
def cluster(tmp_path):
    found = Cluster(tmp_path)
    yield found
    found.close()


@pytest.mark.parametrize(
    ("changes", "error", "part"),
    [
        ({}, InputError, "at least one resource for service 'web'"),
        ({"name": "a b", "resources": [RESOURCE]}, InputError, "a service id of letters"),
        ({"resources": [{**RESOURCE, "agent": "ocf:test:absent"}]}, AgentError, "not installed"),
        ({"resources": [{**RESOURCE, "agent": "thing"}]}, InputError, "resources.agent: 'thing'"),
        ({"resources": [{**RESOURCE, "parameters": {}}]}, InputError, "resources.parameters"),
        (
            {"resources": [{**RESOURCE, "parameters": {"path": "/x", "speed": 3}}]},
            InputError,
            "resources.parameters",
        ),
        ({"resources": [RESOURCE, RESOURCE]}, InputError, "a resource name used once"),
        ({"resources": [{**RESOURCE, "stop_timeout": -1}]}, InputError, "resources.stop_timeout"),
        ({"resources": [RESOURCE], "max_restart": -1}, InputError, "max_restart: -1"),
    ],
)
@pytest.mark.parametrize("check", [True, False], ids=["check mode", "for real"])
def test_a_service_that_cannot_run_is_refused_in_check_mode_too(
    cluster, changes, error, part, check
):
    with pytest.raises(error) as caught:
        cluster.service(check=check, **changes)
    assert part in str(caught.value)
    assert cluster.desired().version == 0


def test_what_is_not_given_is_kept(cluster):
    cluster.service(resources=[RESOURCE], max_restart=3, max_relocate=2, failback=False)
    before = cluster.desired().services["web"]
    cases = [
        ({"state": "stopped"}, {"state": "stopped"}),
        ({"max_restart": 0}, {"state": "started", "max_restart": 0}),
        ({"failback": True}, {"failback": True}),
    ]
    for given, changed in cases:
        assert cluster.service(**given).changed
        before = replace(before, **changed)
        assert cluster.desired().services["web"] == before
    other = {**RESOURCE, "parameters": {"path": "/srv/y"}}
    cluster.service(resources=[other])
    after = cluster.desired().services["web"]
    assert after.resources[0].parameters == {"path": "/srv/y"}
    assert (after.max_restart, after.max_relocate, after.failback) == (0, 2, True)


def test_an_agent_that_was_removed_does_not_keep_a_service_from_being_stopped(cluster):
    cluster.service(resources=[RESOURCE])
    (cluster.folder / "ocf" / "resource.d" / "test" / "thing").unlink()
    assert cluster.service(state="stopped").changed
    assert cluster.service(state="absent").changed
    assert cluster.desired().services == {}


def test_a_service_that_a_rule_names_is_not_removed(cluster):
    cluster.service(resources=[RESOURCE])
    cluster.rule(nodes={"n1": 1})
    with pytest.raises(InputError, match="a service that no rule names; rule 'sides' does"):
        cluster.service(state="absent")
    cluster.rule(state="absent")
    assert cluster.service(state="absent").values["service"] is None


@pytest.mark.parametrize(
    ("changes", "how"),
    [
        (
            {"resources": [{**RESOURCE, "parameters": {"path": "/srv/y"}}], "max_restart": 4},
            "differs in resources, max_restart",
        ),
        ({"state": "stopped"}, "differs in state"),
        ({"state": "absent"}, "would be removed"),
    ],
)
@pytest.mark.parametrize("check", [True, False], ids=["check mode", "for real"])
def test_a_service_that_is_meant_to_be_new_replaces_none(cluster, changes, how, check):
    assert cluster.service(resources=[RESOURCE], replace=False).changed
    assert not cluster.service(resources=[RESOURCE], replace=False).changed
    before = cluster.desired()
    with pytest.raises(
        InputError, match=f"name: 'web' .* replace is false; it is declared, and {how}"
    ):
        cluster.service(replace=False, check=check, **changes)
    assert cluster.desired() == before
    assert not cluster.service("other", state="absent", replace=False).changed


def test_a_service_that_is_not_there_can_be_absent(cluster):
    result = cluster.service(state="absent")
    assert (result.changed, result.before, result.after) == (False, None, None)


@pytest.mark.parametrize(
    ("services", "so"),
    [
        ({}, "is not applied,"),
        ({"web": ServiceStatus(ServiceState.FREEZE, "n1")}, "is freeze, and left so,"),
    ],
)
def test_a_wait_in_a_cluster_that_does_nothing_says_so(cluster, monkeypatch, services, so):
    monkeypatch.setattr(change, "POLL", 0.02)
    cluster.manager_says(1, services, disarm="disarmed", disarm_mode="freeze")
    with pytest.raises(HoldfastError) as caught:
        cluster.service(resources=[RESOURCE], wait=True, timeout=0.3)
    assert str(caught.value) == (
        f"Service 'web' {so} as the cluster is disarmed (freeze); the request stays until then"
        " and had no effect yet after 0.3 s; see holdfast status."
    )


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (None, "Service 'web' is not applied by the manager after 0.3 s; see holdfast status."),
        (
            ServiceStatus(ServiceState.ERROR, "n1", reason="it failed on all nodes"),
            "Service 'web' is error: it failed on all nodes after 0.3 s; see holdfast status.",
        ),
        (
            ServiceStatus(ServiceState.ERROR, "n1", reason="it failed", digest="0"),
            "Service 'web' is error: it failed; see holdfast why.",
        ),
        (
            ServiceStatus(ServiceState.REQUEST_START, "n1", reason="the only node"),
            "Service 'web' is request_start: the only node after 0.3 s; see holdfast status.",
        ),
    ],
)
def test_a_wait_that_is_in_vain_says_what_the_service_is(cluster, monkeypatch, status, message):
    monkeypatch.setattr(change, "POLL", 0.02)
    cluster.manager_says(1, {"web": status} if status else {})
    with pytest.raises(HoldfastError) as caught:
        cluster.service(resources=[RESOURCE], wait=True)
    assert str(caught.value) == message
    assert "web" in cluster.desired().services, "what was declared stays declared"


def test_a_state_from_before_the_change_ends_no_wait(cluster, monkeypatch):
    monkeypatch.setattr(change, "POLL", 0.02)
    cluster.manager_says(0, {"web": ServiceStatus(ServiceState.STARTED, "n1")})
    message = "The manager has not applied the change after 0.3 s; see holdfast status."
    with pytest.raises(HoldfastError) as caught:
        cluster.service(resources=[RESOURCE], wait=True)
    assert str(caught.value) == message


@pytest.mark.parametrize("failing", [3, 10_000])
def test_a_wait_outlives_reads_that_fail_for_a_moment(cluster, monkeypatch, failing):
    monkeypatch.setattr(change, "POLL", 0.02)
    cluster.manager_says(1, {"web": ServiceStatus(ServiceState.STARTED, "n2", reason="free")})
    reads = []

    class Failing(change.ClusterStorage):
        def read_manager(self):
            if self.read_desired()[0].version:
                reads.append(self)
            if 0 < len(reads) <= failing:
                raise StorageError("a path fails over")
            return super().read_manager()

    monkeypatch.setattr(change, "ClusterStorage", Failing)
    if failing < 10:
        assert cluster.service(resources=[RESOURCE], wait=True).values["status"]["node"] == "n2"
        return
    message = "What came of it is not known (a path fails over) after 0.3 s; see holdfast status."
    with pytest.raises(HoldfastError) as caught:
        cluster.service(resources=[RESOURCE], wait=True)
    assert str(caught.value) == message


def test_a_wait_ends_with_where_the_service_is(cluster):
    cluster.manager_says(1, {"web": ServiceStatus(ServiceState.STARTED, "n2", reason="free")})
    result = cluster.service(resources=[RESOURCE], wait=True)
    assert result.values["status"] == {"state": "started", "node": "n2", "reason": "free"}
    cluster.manager_says(2)
    result = cluster.service(state="absent", wait=True)
    assert result.values["status"] == {"state": "absent", "node": "", "reason": ""}


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"services": ["web", "mail"], "affinity": "apart"}, "services: 'mail' is not accepted"),
        ({"services": ["web"], "affinity": "apart"}, "at least 2 different service ids"),
        ({"nodes": {"n1": 1, "n9": 2}}, "nodes: 'n9' is not accepted; expected one of"),
        ({"nodes": {}}, "a dictionary of node names"),
        ({"nodes": {"n1": "high"}}, "a whole number from 0 to 1000"),
        ({"nodes": {"n1": -1}}, "a whole number from 0 to 1000"),
        ({"nodes": {"n1": 1}, "name": "a b"}, "name: 'a b'"),
    ],
)
@pytest.mark.parametrize("check", [True, False], ids=["check mode", "for real"])
def test_a_rule_that_makes_no_sense_is_refused(cluster, changes, part, check):
    cluster.service(resources=[RESOURCE])
    with pytest.raises(InputError) as caught:
        cluster.rule(check=check, **changes)
    assert part in str(caught.value)
    assert cluster.desired().rules() == []


def test_a_priority_that_ansible_made_a_text_of_is_a_number(cluster):
    cluster.service(resources=[RESOURCE])
    result = cluster.rule(nodes={"n1": "2", "n2": 1})
    assert result.values["rule"]["nodes"] == {"n1": 2, "n2": 1}
    assert not cluster.rule(nodes={"n1": 2, "n2": 1}).changed


def test_a_rule_can_change_its_kind_and_is_then_one_rule_still(cluster):
    for name in ("web", "mail"):
        cluster.service(name=name, resources=[RESOURCE])
    cluster.rule(nodes={"n1": 1})
    result = cluster.rule(services=["web", "mail"], affinity="apart")
    assert (result.before["nodes"], result.after["affinity"]) == ({"n1": 1}, "apart")
    assert [rule.name for rule in cluster.desired().rules()] == ["sides"]


def test_a_rule_that_is_not_there_can_be_absent(cluster):
    result = cluster.rule(state="absent", services=None)
    assert (result.changed, result.values["rule"]) == (False, None)


def test_a_node_that_is_none_is_not_drained(cluster):
    with pytest.raises(InputError, match=r"node: 'n9' .* one of the cluster's nodes \(n1, n2, n3"):
        cluster.maintenance(node="n9")


def test_a_drained_node_keeps_since_when_it_is_and_who_asked_for_it(cluster, monkeypatch):
    monkeypatch.delenv("SUDO_USER", raising=False)
    before = time.time()
    first = cluster.maintenance().values["maintenance"]
    assert before <= first["since"] <= time.time()
    monkeypatch.setattr(getpass, "getuser", lambda: "eve")
    for owner in ("ada", ""):
        again = cluster.maintenance(owner=owner)
        assert (again.changed, again.values["maintenance"]) == (False, first)
    other = cluster.maintenance(reason="memory", owner="bob")
    assert other.changed
    assert other.values["maintenance"] == {
        "reason": "memory",
        "owner": "bob",
        "since": first["since"],
        "until": 0.0,
    }
    assert cluster.maintenance("active").after == {"n2": None}
    assert cluster.desired().maintenance == {}


def test_who_fences_a_node_that_somebody_drained_keeps_it_empty_from_then_on(cluster, monkeypatch):
    monkeypatch.delenv("SUDO_USER", raising=False)
    monkeypatch.setattr(getpass, "getuser", lambda: "eve")
    cluster.maintenance(reason="rolling update", owner="the playbook")
    for reason in ("fenced: smoke", None, "fenced: smoke and fire"):
        kept = cluster.maintenance(reason=reason, owner="").values["maintenance"]
        assert kept["owner"] == "eve"
        monkeypatch.setattr(getpass, "getuser", lambda: "bob")


def test_without_an_owner_it_is_the_user_even_one_without_a_name(cluster, monkeypatch):
    monkeypatch.delenv("SUDO_USER", raising=False)
    monkeypatch.setattr(getpass, "getuser", lambda: "eve")
    assert cluster.maintenance(owner="").values["maintenance"]["owner"] == "eve"
    cluster.maintenance("active")

    def nameless():
        raise KeyError("getpwuid(): uid not found: 12345")

    monkeypatch.setattr(getpass, "getuser", nameless)
    owner = cluster.maintenance(owner="").values["maintenance"]["owner"]
    assert owner == f"user id {os.geteuid()}"


@pytest.mark.parametrize(("user_id", "owner"), [(0, "alice"), (1000, "eve")])
def test_who_became_root_by_sudo_is_the_owner_and_not_root(cluster, monkeypatch, user_id, owner):
    monkeypatch.setenv("SUDO_USER", "alice")
    monkeypatch.setattr(getpass, "getuser", lambda: "eve")
    monkeypatch.setattr(os, "geteuid", lambda: user_id)
    assert cluster.maintenance(owner=None).values["maintenance"]["owner"] == owner
    assert cluster.maintenance(owner="ada").values["maintenance"]["owner"] == "ada"


def test_the_node_is_this_one_if_none_is_named(cluster):
    assert cluster.maintenance(node=None).values["node"] == "n1"


def on_n2(state, reason=""):
    return {"web": ServiceStatus(state, "n2", reason=reason)}


def test_a_wait_for_a_drain_names_what_blocks_it(cluster, monkeypatch):
    monkeypatch.setattr(change, "POLL", 0.02)
    cluster.manager_says(1, on_n2(ServiceState.STARTED, "no other node may run it"))
    with pytest.raises(HoldfastError) as caught:
        cluster.maintenance(wait=True)
    assert str(caught.value) == (
        "Node 'n2' is not drained, these are still on it: web (no other node may run it)"
        " after 0.3 s; see holdfast status."
    )


def test_a_drain_tells_where_each_service_went(cluster, monkeypatch):
    cluster.manager_says(0, on_n2(ServiceState.STARTED))

    def moves(_seconds):
        cluster.manager_says(1, {"web": ServiceStatus(ServiceState.STARTED, "n3")})

    monkeypatch.setattr("time.sleep", moves)
    assert cluster.maintenance(wait=True, timeout=120.0).values["moved"] == {"web": "n3"}


def test_a_drain_waits_for_the_starts_of_what_was_on_the_node_and_of_nothing_else(
    cluster, monkeypatch
):
    slow = {"db": ServiceStatus(ServiceState.REQUEST_START, "n1", reason="a long recovery")}
    cluster.manager_says(0, {**on_n2(ServiceState.STARTED), **slow})
    web = ServiceStatus(ServiceState.REQUEST_START, "n3", reason="n2 is in maintenance")

    def moves(_seconds):
        cluster.manager_says(1, {"web": web, **slow})

    monkeypatch.setattr("time.sleep", moves)
    with pytest.raises(HoldfastError) as caught:
        cluster.maintenance(wait=True)
    assert str(caught.value) == (
        "Node 'n2' is empty, but these are not started yet: web on n3 (n2 is in maintenance)"
        " after 0.3 s; see holdfast status."
    )
    cluster.manager_says(1, {"web": ServiceStatus(ServiceState.STARTED, "n3"), **slow})
    assert cluster.maintenance(wait=True).values["moved"] == {}


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (None, "Node 'n2' is unknown after 0.3 s; see holdfast status."),
        (
            NodeStatus(NodeState.OFF, reason="fenced", proof=verified_off()),
            "Node 'n2' is off: fenced after 0.3 s; see holdfast status.",
        ),
    ],
)
def test_a_wait_for_a_node_that_is_not_online_says_what_it_is(
    cluster, monkeypatch, status, message
):
    monkeypatch.setattr(change, "POLL", 0.02)
    cluster.manager_says(1, nodes={"n2": status} if status else {})
    with pytest.raises(HoldfastError) as caught:
        cluster.maintenance("active", wait=True)
    assert str(caught.value) == message
    cluster.manager_says(1, nodes={"n2": NodeStatus(NodeState.ONLINE)})
    assert not cluster.maintenance("active", wait=True).changed


def node_options(folder, **changes):
    return document(folder, config=str(folder / "etc" / "node.json"), **changes)


def test_a_node_configuration_that_is_wrong_writes_nothing(tmp_path):
    with pytest.raises(InputError):
        node_files.declare_node(node_options(tmp_path, node="n9"), False)
    assert not (tmp_path / "etc").exists()


@pytest.mark.parametrize(
    ("grace", "sanlock", "refused"),
    [
        (24.9, {"io_timeout": 2, "watchdog_timeout": 60}, True),
        (25, {"io_timeout": 2, "watchdog_timeout": 60}, False),
        (5, {"io_timeout": 2, "watchdog_timeout": 0}, False),
    ],
)
def test_no_node_is_declared_whose_watchdog_would_reset_it_while_it_is_well(
    tmp_path, grace, sanlock, refused
):
    options = node_options(
        tmp_path, backend="sanlock", sanlock=sanlock, timing={"daemon_grace": grace}
    )
    if refused:
        with pytest.raises(InputError, match=r"timing.daemon_grace: 24.9 .* 25 seconds or more"):
            node_files.declare_node(options, False)
    else:
        node_files.declare_node(options, False)
    assert (tmp_path / "etc").exists() != refused


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path):
    (tmp_path / "etc").touch()
    with pytest.raises(StorageError, match=r"The folder .*etc cannot be made: "):
        node_files.declare_node(node_options(tmp_path), False)


@pytest.mark.parametrize("content", [b"{", b"\xff", b"[]"])
def test_a_node_configuration_that_is_damaged_is_written_anew(tmp_path, content):
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "node.json").write_bytes(content)
    assert node_files.declare_node(node_options(tmp_path), False).changed
    assert not node_files.declare_node(node_options(tmp_path), False).changed


def fence_options(folder, **changes):
    device = {"agent": write_device(folder / "a"), "parameters": {"ip": "x"}, "timeout": 3}
    options = {
        "path": str(folder / "etc" / "fence.json"),
        "devices": {"d": device},
        "nodes": {"n1": {"levels": [[{"device": "d", "plug": "1"}]]}},
    }
    return {**options, **changes}


def test_a_fence_configuration_whose_agent_is_missing_is_refused_but_for_in_check_mode(tmp_path):
    options = fence_options(tmp_path)
    (tmp_path / "a" / "fence_test").unlink()
    with pytest.raises(AgentError):
        declare_fence(options, False)
    assert not (tmp_path / "etc").exists()
    assert declare_fence(options, True).changed
    assert not (tmp_path / "etc").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to somebody else")
def test_a_fence_configuration_of_somebody_else_is_made_ours(tmp_path):
    options = fence_options(tmp_path)
    assert declare_fence(options, False).changed
    os.chown(options["path"], 65534, 65534)
    assert declare_fence(options, True).changed
    assert declare_fence(options, False).changed
    assert not declare_fence(options, False).changed
    assert os.stat(options["path"]).st_uid == 0  # noqa: PTH116


@pytest.mark.parametrize("how", ["reported", "recorded", "none"])
def test_a_node_that_has_services_keeps_its_name_and_host_id(tmp_path, how):
    create_storage(tmp_path)
    node_files.declare_node(node_options(tmp_path), False)
    old = configuration(tmp_path)
    leases, storage = join(old), ClusterStorage(old)
    try:
        storage.adopt_host_lease()
        if how == "reported":
            runs = LocalService(
                Service("web", (Resource("r", "ocf:test:thing"),)), LocalState.RUNNING
            )
            storage.write_report(Report("n1", "boot", services={"web": runs}))
        elif how == "recorded":
            on = ServiceStatus(ServiceState.STARTED, "n1")
            storage.write_manager(ClusterState(1, "n1", services={"web": on}))
    finally:
        storage.close()
        leases.close()
    allowed = {**node_options(tmp_path), "allowed_agents": ["*", "!ocf:test:*"]}
    if how == "reported":
        with pytest.raises(
            InputError, match=r"agents of service 'web', which is on n1; .* ocf:test"
        ):
            node_files.declare_node(allowed, True)
    else:
        assert node_files.declare_node(allowed, True).changed
    members = node_options(tmp_path)["members"]
    renamed = [{**members[0], "name": "n7"}, *members[1:]]
    moved = [{**members[0], "host_id": 4}, *members[1:]]
    for changes in ({"node": "n7", "members": renamed}, {"members": moved}):
        options = {**node_options(tmp_path), **changes}
        if how == "none":
            assert node_files.declare_node(options, True).changed
        else:
            with pytest.raises(InputError, match=r"while the node has services \(web\): drain it"):
                node_files.declare_node(options, True)
    assert not node_files.declare_node(node_options(tmp_path), False).changed
