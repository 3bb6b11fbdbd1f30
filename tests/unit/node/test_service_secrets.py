# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Secrets of services stay in files of the nodes; what was on the storage before is wiped."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.jobs import (
    Job,
    JobKind,
    Sight,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    Outcome,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.rules import (
    NodeRule,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import InputError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.cluster_key import (
    ClusterKey,
    keys_text,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.cluster_storage import (
    ClusterStorage,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.configuration_file import (
    load,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.agent_work import (
    AgentWork,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.service_secrets import (
    ServiceSecrets,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.operations.cluster_key import (  # noqa: E501
    sign_configuration,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.operations.export import (  # noqa: E501
    exported,
)
from ansible_collections.holdfast.ha.tests.unit.node.declaring import Cluster
from ansible_collections.holdfast.ha.tests.unit.ocf.agent_script import SHARED, write_agent

SECRET = "4711007"
OTHER = "1234567"
FIRST, SECOND = bytes(range(32)), bytes(range(32, 64))

AGENT = """
running="$HA_RSCTMP/$OCF_RESOURCE_INSTANCE"
echo "$1 $OCF_RESKEY_password $OCF_RESKEY_password_file" >> "$HA_RSCTMP/calls"
echo "I have $OCF_RESKEY_password" >&2
case $1 in
start) [ "$OCF_RESKEY_password" = 4711007 ] && touch "$running";;
stop) rm -f "$running";;
monitor) [ -e "$running" ] || exit 7; [ -n "$OCF_RESKEY_password" ] || exit 1;;
esac
"""


@pytest.fixture
def cluster(tmp_path):
    cluster = Cluster(tmp_path)
    key = tmp_path / "key" / "cluster.key"
    key.parent.mkdir()
    document = json.loads(cluster.path.read_text())
    cluster.path.write_text(json.dumps({**document, "cluster_key": str(key)}))
    put(key, keys_text([FIRST]))
    authenticate(cluster, "warn")
    write_agent(tmp_path / "ocf", AGENT, metadata=SHARED)
    (key.parent / "secrets").mkdir()
    put(key.parent / "secrets" / "web", SECRET + "\n")
    yield cluster
    cluster.close()


def authenticate(cluster, policy):
    document = json.loads(cluster.path.read_text())
    cluster.path.write_text(json.dumps({**document, "authentication": policy}))
    cluster.configuration = load(cluster.path)


def put(path, text):
    path.write_text(text)
    path.chmod(0o600)


def file_of(cluster):
    return cluster.configuration.secrets_folder / "web"


def resource(**parameters):
    return {
        "name": "r",
        "agent": "ocf:test:thing",
        "parameters": {"path": "/srv/x", **parameters},
    }


FROM_FILE = [resource(password_file="web")]


def secrets(cluster):
    return ServiceSecrets(cluster.configuration, ClusterKey(cluster.configuration).authentication)


def stored(cluster):
    return (cluster.configuration.state_path).read_bytes()


def test_only_the_name_of_the_file_and_a_keyed_digest_are_on_the_storage(cluster):
    told = cluster.service(resources=FROM_FILE, check=True)
    done = cluster.service(resources=FROM_FILE)
    assert told.after == done.after
    assert not cluster.service(resources=FROM_FILE).changed
    assert SECRET.encode() not in stored(cluster)
    (declared,) = cluster.desired().services["web"].resources
    assert declared.parameters == {"path": "/srv/x", "password_file": "web"}
    (digest,) = declared.sources.values()
    assert len(digest) == 40
    # With another key, cluster, service, resource or parameter it is another one.
    put(cluster.configuration.cluster_key, keys_text([SECOND]))
    (row,) = exported(cluster.desired())["services"]
    assert "sources" not in row["resources"][0]
    assert cluster.service(**row).changed
    assert cluster.desired().services["web"].resources[0].sources["password_file"] != digest


def test_a_file_with_another_content_is_told_and_declaring_it_again_settles_it(cluster):
    cluster.service(resources=FROM_FILE)
    look, desired = secrets(cluster), cluster.desired()
    digest = desired.services["web"].digest()
    assert look.problems(desired) == {}
    put(file_of(cluster), OTHER)
    problems = look.problems(desired)
    assert set(problems) == {"web/r/password_file"}
    told = problems["web/r/password_file"]
    assert "is not the one that the service was declared with" in told
    assert OTHER not in told
    assert SECRET not in told
    assert cluster.service(resources=FROM_FILE, check=True).changed
    assert cluster.service(resources=FROM_FILE).changed
    assert look.problems(cluster.desired()) == {}
    assert cluster.desired().services["web"].digest() == digest, "it is not restarted"


def test_a_file_that_is_missing_or_open_is_told_where_the_service_may_run(cluster):
    cluster.service(resources=FROM_FILE)
    look, desired = secrets(cluster), cluster.desired()
    file_of(cluster).chmod(0o644)
    assert "make it 0600" in look.problems(desired)["web/r/password_file"]
    file_of(cluster).unlink()
    assert "No such file" in look.problems(desired)["web/r/password_file"]
    elsewhere = desired.with_rule(NodeRule("home", ("web",), {"n2": 1}, strict=True))
    assert look.problems(elsewhere) == {}
    # Declared where the file is not, the digest made before stays.
    assert not cluster.service(resources=FROM_FILE).changed


def test_the_digests_move_to_a_new_key_and_away_from_none(cluster):
    cluster.service(resources=FROM_FILE)
    put(cluster.configuration.cluster_key, keys_text([SECOND, FIRST]))
    assert secrets(cluster).problems(cluster.desired()) == {}
    assert sign_configuration(cluster.configuration)
    put(cluster.configuration.cluster_key, keys_text([SECOND]))
    assert secrets(cluster).problems(cluster.desired()) == {}
    authenticate(cluster, "off")
    assert secrets(cluster).problems(cluster.desired()) == {}


def test_a_secret_itself_is_not_declared_and_the_way_to_do_it_is_told(cluster):
    with pytest.raises(InputError) as refused:
        cluster.service(resources=[resource(password=SECRET)], check=True)
    folder = cluster.configuration.secrets_folder
    assert f"write the value into {folder}/web.r.password on each node" in str(refused.value)
    assert "declare password_file: web.r.password instead" in str(refused.value)
    assert SECRET not in str(refused.value)
    for more in ({"bare": "http://a:x@b"}, {"bare": "-e TOKEN=x"}):
        with pytest.raises(InputError, match=r"declare bare_file: web\.r\.bare instead"):
            cluster.service(resources=[resource(**more)])
    named = {**resource(bare=SECRET), "secrets": ["bare"]}
    with pytest.raises(InputError, match=r"declare bare_file: web\.r\.bare instead"):
        cluster.service(resources=[named])
    with pytest.raises(InputError, match="a parameter of ocf:test:thing"):
        cluster.service(resources=[{**resource(), "secrets": ["nothing"]}])


def declared_by_an_earlier_version(cluster, monkeypatch, **parameters):
    with monkeypatch.context() as patched:
        name = "ansible_collections.holdfast.ha.plugins.module_utils._holdfast"
        patched.setattr(f"{name}.operator.operations.agent_checks.has_secret", lambda *_: False)
        cluster.service(resources=[resource(**parameters)])


def test_one_that_is_declared_already_stays_but_is_not_changed(cluster, monkeypatch):
    declared_by_an_earlier_version(cluster, monkeypatch, password=SECRET, bare="-e TOKEN=abcdef")
    assert not cluster.service(
        resources=[resource(password=SECRET, bare="-e TOKEN=abcdef")]
    ).changed
    (row,) = exported(cluster.desired())["services"]
    assert row["resources"][0]["parameters"]["bare"] == "-e TOKEN=********"
    assert not cluster.service(**row).changed
    assert cluster.service(**{**row, "max_restart": 7}).changed
    assert cluster.desired().services["web"].resources[0].parameters["password"] == SECRET
    with pytest.raises(InputError, match="write the value into"):
        cluster.service(resources=[resource(password=OTHER)])


def test_no_copy_of_any_node_has_a_secret_that_is_not_declared_any_more(cluster, monkeypatch):
    # In the slots of two nodes, beside more that makes their records longer.
    declared_by_an_earlier_version(cluster, monkeypatch, password=SECRET, bare="x" * 9000)
    document = json.loads(cluster.path.read_text())
    other = cluster.folder / "n2.json"
    other.write_text(json.dumps({**document, "node": "n2"}))
    second = ClusterStorage(load(other))
    older = replace(cluster.desired(), version=0)
    second.write_desired(older)
    assert stored(cluster).count(SECRET.encode()) == 4
    cluster.service("mail", resources=[resource()])
    assert stored(cluster).count(SECRET.encode()) == 4, "it is still declared"
    cluster.service(resources=FROM_FILE)
    assert stored(cluster).count(SECRET.encode()) == 0
    assert second.read_desired_from(2).services["web"].resources[0].parameters["bare"] == "x" * 9000
    second.close()


def test_a_shorter_configuration_leaves_nothing_of_a_longer_one_behind(cluster):
    cluster.service(resources=[resource(bare="y" * 9000)])
    assert stored(cluster).count(b"y" * 1000) > 0
    cluster.service(resources=[resource()])
    assert stored(cluster).count(b"y" * 100) == 0


@pytest.fixture
def work(cluster):
    cluster.service(resources=FROM_FILE)
    work = AgentWork(cluster.configuration, ran_here=lambda _service: True)
    work.service = cluster.desired().services["web"]
    work.do = lambda kind: work.carry_out(Job(kind, work.service))
    work.calls = (cluster.configuration.run_directory / "calls").read_text
    return work


def test_the_agent_gets_the_secret_and_not_its_file(work):
    assert work.do(JobKind.START).outcome is Outcome.OK
    assert work.do(JobKind.MONITOR).sight is Sight.RUNNING
    assert work.do(JobKind.STOP).outcome is Outcome.OK
    assert {line.split()[1] for line in work.calls().splitlines()} == {SECRET}
    assert "web" not in work.calls()


def test_a_start_without_the_secret_fails_and_calls_no_agent(work, cluster):
    assert work.do(JobKind.START).outcome is Outcome.OK
    work.do(JobKind.STOP)
    before = work.calls()
    file_of(cluster).unlink()
    end = work.do(JobKind.START)
    assert (end.outcome, end.sight) == (Outcome.FAILED, Sight.STOPPED)
    assert "No such file" in end.text
    assert work.calls() == before


def test_a_wrong_secret_that_the_agent_repeats_is_hidden(work, cluster):
    put(file_of(cluster), OTHER)
    end = work.do(JobKind.START)
    assert end.outcome is Outcome.FAILED
    assert "I have ********" in end.text


def test_a_service_whose_secret_is_lost_runs_on_and_is_stopped_with_the_last_one(work, cluster):
    work.do(JobKind.START)
    file_of(cluster).unlink()
    assert work.do(JobKind.MONITOR).sight is Sight.RUNNING
    assert work.do(JobKind.STOP).outcome is Outcome.OK


def test_without_any_secret_a_service_is_neither_stopped_nor_taken_for_stopped(work, cluster):
    work.do(JobKind.START)
    before = work.calls()
    file_of(cluster).unlink()
    anew = AgentWork(cluster.configuration, ran_here=lambda _service: True)
    end = anew.carry_out(Job(JobKind.MONITOR, work.service))
    assert end.sight is Sight.PARTLY
    assert "No such file" in end.text
    never = AgentWork(cluster.configuration)
    end = never.carry_out(Job(JobKind.PROBE, work.service))
    assert end.sight is Sight.PARTLY, "it may run, although it never did here"
    assert "No such file" in end.text
    (cluster.configuration.run_directory / "web.r").unlink()
    assert anew.carry_out(Job(JobKind.PROBE, work.service)).sight is Sight.PARTLY
    assert anew.carry_out(Job(JobKind.STOP, work.service)).outcome is Outcome.BLOCKED
    assert "stop" not in work.calls()[len(before) :]
    # Where it never ran, and nothing of it is there, it does not hold up a start elsewhere.
    assert never.carry_out(Job(JobKind.PROBE, work.service)).sight is Sight.STOPPED
