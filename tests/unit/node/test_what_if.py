# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What would happen to the cluster whose storage this is: the module's answer and the command's."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired import (
    DesiredState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.maintenance import (  # noqa: E501
    Maintenance,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    CommandResult,
    LocalService,
    LocalState,
    Outcome,
    Phase,
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
    HoldfastError,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.cluster_storage import (
    MANAGER_LEASE,
    ClusterStorage,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.cli.main import (
    NO_ANSWER,
    main,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.cli.questions import (
    WELL,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.forecast import what_if
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.forecast.what_if import (  # noqa: E501
    read_now,
    render_answer,
    simulate_failover,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.simulator.what_if import (
    Answer,
    ServiceFate,
    Step,
)
from ansible_collections.holdfast.ha.tests.unit.node.sample_node import (
    NODES,
    configuration,
    create_storage,
    document,
    join,
)

WEB = Service("web", (Resource("r", "ocf:holdfast:command"),))


@pytest.fixture
def config(tmp_path):
    """The configuration file of a node of a cluster in which web runs on n3."""
    create_storage(tmp_path)
    nodes = [configuration(tmp_path, name) for name in NODES]
    leases = [join(node) for node in nodes]
    storages = [ClusterStorage(node) for node in nodes]
    for storage in storages:
        storage.adopt_host_lease()
    epoch = storages[0].leases.acquire(MANAGER_LEASE)
    for name, storage in zip(NODES, storages):
        here = name == "n3"
        local = LocalService(WEB, LocalState.RUNNING, f"{epoch}.1", settled=True)
        result = CommandResult("web", Outcome.OK, "started", 1.0, 7.5)
        storage.write_report(
            Report(
                name,
                f"{name}-boot1",
                epoch=epoch,
                commands=1,
                config_version=5,
                phase=Phase.ACTIVE if here else Phase.WAIT,
                accepted={f"{epoch}.1": "web"} if here else {},
                results={f"{epoch}.1": result} if here else {},
                services={"web": local} if here else {},
            )
        )
    status = ServiceStatus(
        ServiceState.STARTED, "n3", uid=f"{epoch}.1", digest=WEB.digest(), last_node="n3"
    )
    storages[0].write_desired(DesiredState(5, {"web": WEB}))
    online = {name: NodeStatus(NodeState.ONLINE, boot=f"{name}-boot1") for name in NODES}
    storages[0].write_manager(ClusterState(epoch, "n1", 5, 1, 1, {"web": status}, online))
    path = tmp_path / "node.json"
    path.write_text(json.dumps(document(tmp_path)))
    yield path
    for one in (*storages, *leases):
        one.close()


def ask(config, **options):
    return simulate_failover({"config": str(config), **options}, False).values


def test_a_service_is_told_to_run_elsewhere_after_its_node_died(config):
    values = ask(config, dies=["n3"])
    web = values["services"]["web"]
    assert (web["before"], web["state"]) == ("n3", "started")
    assert web["after"] in ("n1", "n2")
    assert web["down"] > 7.5 + 3.0, "its last start took 7.5 s, and a silence is 3 s long"
    assert [one["kind"] for one in values["steps"]][-1] in ("online", "started", "power_on")
    assert values["not_running"] == []
    assert any("proof" in line for line in values["text"])


def test_the_death_of_all_nodes_leaves_nothing_that_could_switch_them_on(config):
    values = ask(config, dies=list(NODES), within=60.0)
    assert values["not_running"] == ["web"]
    assert not values["ended"]


def test_a_rule_is_asked_about_without_being_declared(config):
    rule = {"name": "home", "services": ["web"], "nodes": {"n2": 1}, "strict": True}
    values = ask(config, rules=[rule])
    assert values["services"]["web"]["after"] == "n2"
    assert ask(config, drained=["n1"])["services"]["web"]["after"] == "n3"


def test_a_move_is_asked_about_and_refused_as_the_move_itself(config):
    web = ask(config, moves={"web": "n1"})["services"]["web"]
    assert (web["before"], web["after"], web["state"]) == ("n3", "n1", "started")
    home = [{"name": "home", "services": ["web"], "nodes": {"n3": 1}}]
    with pytest.raises(HoldfastError, match="'web' would go from n1 to n3 at once: rule 'home'"):
        ask(config, moves={"web": "n1"}, rules=home)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"dies": ["nowhere"]}, "dies"),
        ({}, "name nodes with dies, loses_storage, loses_network, drained, moves, or rules"),
        ({"moves": {"web": "n9"}}, "moves"),
        ({"moves": {"x": "n1"}}, "moves: 'x' is not accepted; expected the id of a service"),
        ({"rules": [{"name": "r", "services": ["web"], "nodes": {"n9": 1}}]}, "nodes"),
        ({"rules": [{"name": "r", "services": ["x"], "nodes": {"n1": 1}}]}, "services"),
    ],
)
def test_a_question_that_makes_no_sense_is_refused(config, options, named):
    with pytest.raises(HoldfastError, match=named):
        ask(config, **options)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"disarm": "disarmed", "disarm_mode": "ignore"}, "the cluster is disarmed"),
        ({"hold": Maintenance("new switches", "ada")}, "new switches"),
    ],
)
def test_while_nothing_would_be_recovered_that_is_the_answer(config, changes, named):
    node = configuration(config.parent, "n1")
    observed = read_now(node)
    held = replace(observed, state=replace(observed.state, **changes))
    with pytest.raises(HoldfastError, match=named):
        what_if.ask(node, held, {"dies": ["n3"]})


def test_a_cluster_in_which_nothing_was_decided_yet_says_so(tmp_path):
    create_storage(tmp_path)
    path = tmp_path / "node.json"
    path.write_text(json.dumps(document(tmp_path)))
    with pytest.raises(HoldfastError, match="No manager"):
        ask(path, dies=["n1"])


def test_what_an_agent_printed_drives_no_terminal():
    nasty = "agent said: \x1b[2Jno\nway"
    answer = Answer(
        (Step(1.0, "failed", "n1", "web", nasty),),
        {"web": ServiceFate("n3", "", "error", nasty, 0.0)},
        {},
        "n1",
        True,
        5.0,
    )
    assert render_answer(answer) == [
        "    1.0 s  failed web n1: agent said: [2Jno way",
        "",
        "web: not running (agent said: [2Jno way); was on n3",
    ]


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("n3", "n3", "on n3; as before"),
        ("n3", "n1", "on n1; was on n3"),
        ("", "n1", "on n1; was not running"),
        ("", "", "not running (it fails); as before"),
    ],
)
def test_as_before_is_said_only_of_what_stays_as_it_is(before, after, told):
    fate = ServiceFate(before, after, "started", "it fails", 0.0)
    assert render_answer(Answer((), {"web": fate}, {}, "n1", True, 5.0))[-1] == f"web: {told}"


def test_the_command_answers_for_people_and_for_programs(config, capsys):
    assert main(["what-if", "--config", str(config), "--dies", "n3"]) == WELL
    assert "web: on n" in capsys.readouterr().out
    asked = ["what-if", "--config", str(config), "--drained", "n3", "--json"]
    assert main(asked) == WELL
    answer = json.loads(capsys.readouterr().out)
    assert answer["services"]["web"]["after"] in ("n1", "n2")
    assert "fence" not in {one["kind"] for one in answer["steps"]}


def test_the_command_says_how_to_ask_whoever_asks_nothing(config, capsys):
    assert main(["what-if", "--config", str(config)]) == NO_ANSWER
    assert capsys.readouterr().err == (
        "holdfast: Nothing is asked: name a node with one of --dies, --loses-storage,"
        " --loses-network, --drained, --moves.\n"
    )


def test_a_service_that_blocks_a_drain_is_named_with_the_reason(config, capsys):
    drained = [word for name in NODES for word in ("--drained", name)]
    assert main(["what-if", "--config", str(config), *drained]) == WELL
    told = capsys.readouterr().out.splitlines()
    assert told[-1].startswith("web: on n3; as before; it blocks the drain: should leave n3 (")
    answer = ask(config, drained=["n1", "n2"])["text"]
    assert answer[-1] == "web: on n3; as before", "n3 is not to be drained"
