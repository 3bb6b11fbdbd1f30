# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Export, drift, backup and restore of the desired configuration."""

from __future__ import annotations

import json

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired import (
    DesiredState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.maintenance import (  # noqa: E501
    Maintenance,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.policy import (
    Policy,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.rules import (
    NodeRule,
    ServiceRule,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.service import (
    Resource,
    Service,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import (
    InputError,
    StorageError,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.operations.export import (  # noqa: E501
    back_up,
    backup_document,
    differences,
    exported,
    read_backup,
    restore,
    restored,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.operations.policy import (  # noqa: E501
    declare_policy,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.secrets import HIDDEN
from ansible_collections.holdfast.ha.tests.unit.node.declaring import RESOURCE, Cluster
from ansible_collections.holdfast.ha.tests.unit.node.sample_node import configuration

SECRET = "hunter2-and-more"


def service(name, **more):
    resource = Resource("r", "ocf:test:thing", {"port": "80", "password": SECRET})
    return Service(name, (resource,), **more)


def desired():
    found = DesiredState(version=7)
    for one in ("a", "b", "c"):
        found = found.with_service(service(one))
    found = found.with_rule(ServiceRule("sides", ("a", "b"), "apart"))
    found = found.with_rule(NodeRule("home", ("c",), {"n1": 2, "n2": 1}))
    return found.with_maintenance("n2", Maintenance("work", "ada", 5.0))


def test_an_export_has_each_service_and_rule_and_no_secret():
    live = exported(desired())
    assert SECRET not in json.dumps(live)
    assert [one["name"] for one in live["services"]] == ["a", "b", "c"]
    assert [one["name"] for one in live["rules"]] == ["home", "sides"]


@pytest.fixture
def cluster(tmp_path):
    found = Cluster(tmp_path)
    yield found
    found.close()


def guarded(password, name="r", agent="ocf:test:thing"):
    """Return the options of a resource with a password."""
    return {"name": name, "agent": agent, "parameters": {"path": "/srv/x", "password": password}}


def passwords_of(cluster):
    return [one.parameters["password"] for one in cluster.desired().services["web"].resources]


@pytest.mark.usefixtures("an_earlier_version")
def test_a_secret_stays_what_it_is_when_an_export_is_declared_again(cluster):
    cluster.service(resources=[guarded("1111"), guarded("2222", "s")])
    (row,) = exported(cluster.desired())["services"]
    assert not cluster.service(**row).changed
    assert passwords_of(cluster) == ["1111", "2222"]
    digest = cluster.desired().services["web"].digest()
    assert cluster.service(**{**row, "max_restart": 5}).changed
    assert passwords_of(cluster) == ["1111", "2222"]
    assert cluster.desired().services["web"].digest() == digest, "it is not restarted"
    row["resources"] = [row["resources"][1], guarded("3333")]
    assert cluster.service(**row).changed
    assert passwords_of(cluster) == ["2222", "3333"]


@pytest.mark.usefixtures("an_earlier_version")
@pytest.mark.parametrize(
    "resource",
    [guarded(HIDDEN, "other"), guarded(HIDDEN, agent="ocf:test:other"), guarded(HIDDEN)],
    ids=["another resource", "another agent", "none declared with it"],
)
@pytest.mark.parametrize("check", [True, False], ids=["check mode", "for real"])
def test_what_hides_a_secret_never_becomes_the_secret(cluster, resource, check):
    has = {"path": "/srv/x"} if resource == guarded(HIDDEN) else guarded("1111")["parameters"]
    cluster.service(resources=[{**guarded(""), "parameters": has}])
    before = cluster.desired()
    with pytest.raises(InputError, match=r"parameters\.password: .* expected the secret itself"):
        cluster.service(resources=[resource], check=check)
    with pytest.raises(InputError, match="expected the secret itself"):
        cluster.service("new", resources=[resource], check=check)
    assert cluster.desired() == before


@pytest.fixture
def kept(tmp_path):
    """Write a backup of the cluster in the folder; returns its path."""
    path = tmp_path / "backup.json"
    path.write_text(json.dumps(backup_document(configuration(tmp_path), desired())))
    path.chmod(0o600)
    return path


def test_a_backup_has_everything_and_is_read_back(kept, tmp_path):
    assert read_backup(kept, configuration(tmp_path)) == desired()
    assert SECRET in kept.read_text()


def test_a_restore_brings_back_what_the_backup_has_and_leaves_the_rest():
    now = (
        DesiredState(version=9).with_service(service("a", max_restart=5)).with_service(service("x"))
    )
    now = now.with_rule(ServiceRule("more", ("a", "x"), "apart"))
    now = now.with_maintenance("n3", Maintenance("now"))
    result = restored(now, desired(), exact=False)
    assert sorted(result.services) == ["a", "b", "c", "x"]
    assert result.services["a"] == service("a")
    assert {rule.name for rule in result.rules()} == {"sides", "home", "more"}
    assert list(result.maintenance) == ["n3"], "maintenance is of its moment"
    assert restored(result, desired(), exact=False) == result


def test_what_comes_after_what_is_restored_also_where_it_was_turned_round():
    now = DesiredState().with_service(service("a")).with_service(service("b", after=("a",)))
    kept = DesiredState().with_services([service("a", after=("b",)), service("b")])
    assert restored(now, kept, exact=False).services == kept.services


def test_a_change_is_told_also_where_it_is_back_to_the_default_or_in_a_secret_alone():
    before = DesiredState().with_service(service("a", backoff=20.0)).with_service(service("b"))
    resource = Resource("r", "ocf:test:thing", {"port": "80", "password": "another"})
    after = DesiredState().with_service(service("a")).with_service(Service("b", (resource,)))
    assert [(one.name, one.how) for one in differences(before, after)] == [
        ("a", "backoff: 20.0 instead of 10.0"),
        ("b", "resources: another secret"),
    ]
    assert differences(after, after) == []


def test_an_exact_restore_leaves_nothing_else():
    now = DesiredState(version=9).with_service(service("a")).with_service(service("x"))
    now = now.with_rule(ServiceRule("more", ("a", "x"), "apart"))
    result = restored(now, desired(), exact=True)
    assert sorted(result.services) == ["a", "b", "c"]
    assert {rule.name for rule in result.rules()} == {"sides", "home"}


def test_what_an_exact_restore_removes_is_told_as_removed(cluster, kept):
    cluster.service("x", resources=[RESOURCE])
    options = {"config": str(cluster.path), "path": str(kept), "exact": True}
    told = restore(options, True).values["differences"]
    removed = "removed, as the backup does not have it"
    assert ("service", "x", removed) in [(one["kind"], one["name"], one["how"]) for one in told]


def test_the_policy_is_restored_where_the_backup_has_one():
    other = DesiredState(policy=Policy(placement="load"))
    assert restored(other, DesiredState(), exact=False).policy == other.policy
    assert restored(other, DesiredState(), exact=True).policy == Policy()
    assert restored(DesiredState(), other, exact=False).policy == other.policy


@pytest.mark.parametrize("check", [True, False], ids=["check mode", "for real"])
def test_a_restore_that_changes_the_policy_alone_says_so(cluster, kept, check):
    document = backup_document(
        cluster.configuration, DesiredState(policy=Policy(shutdown="migrate"))
    )
    kept.write_text(json.dumps(document))
    live = {"shutdown": "migrate", "placement": "score", "rebalance": True}
    declare_policy({"config": str(cluster.path), "wait": False, **live}, False)
    options = {"config": str(cluster.path), "path": str(kept), "exact": False}
    result = restore(options, check)
    assert result.changed
    assert [(one["kind"], one["name"], one["how"]) for one in result.values["differences"]] == [
        ("policy", "placement", "'score' instead of 'count'"),
        ("policy", "rebalance", "True instead of False"),
    ]
    assert (result.before["policy"]["placement"], result.after["policy"]["placement"]) == (
        "score",
        "count",
    )
    assert cluster.desired().policy == (Policy(**live) if check else Policy(shutdown="migrate"))


def test_a_backup_shows_the_policy_that_it_keeps(cluster, tmp_path):
    declare_policy({"config": str(cluster.path), "wait": False, "placement": "load"}, False)
    options = {"config": str(cluster.path), "path": str(tmp_path / "b.json")}
    assert back_up(options, True).after["policy"]["placement"] == "load"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": "other"}, "a backup of version 1"),
        ({"version": 2}, "a backup of version 1"),
        ({"cluster": "other"}, "a backup of cluster 'c1', not 'other'"),
        ({"wanted": None}, "a whole backup"),
        ({"wanted": {"services": [{"name": "a"}]}}, "at least one resource"),
    ],
)
def test_what_is_no_backup_of_this_cluster_is_refused(kept, tmp_path, change, said):
    kept.write_text(json.dumps({**json.loads(kept.read_text()), **change}))
    with pytest.raises(InputError, match=said):
        read_backup(kept, configuration(tmp_path))


def test_a_backup_that_others_can_write_is_refused(kept, tmp_path):
    kept.chmod(0o620)
    with pytest.raises(InputError, match="nobody else can write"):
        read_backup(kept, configuration(tmp_path))


def test_a_backup_that_is_not_there_is_named(tmp_path):
    with pytest.raises(StorageError, match=r"none\.json cannot be read"):
        read_backup(tmp_path / "none.json", configuration(tmp_path))


def test_services_are_restored_whatever_the_order_in_which_they_depend_on_each_other():
    kept = DesiredState().with_service(service("z")).with_service(service("a", after=("z",)))
    assert restored(DesiredState(), kept, exact=False).services == kept.services
