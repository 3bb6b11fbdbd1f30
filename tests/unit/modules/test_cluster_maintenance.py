# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Maintenance with reason, owner and expiry: cluster_maintenance, node_maintenance, metadata."""

from __future__ import annotations

import json
import multiprocessing
import time
from dataclasses import asdict
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.maintenance import (  # noqa: E501
    Maintenance,
    time_from_text,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    ClusterState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.cluster_storage import (
    MANAGER_LEASE,
    ClusterStorage,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.configuration_file import (
    load,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.operations.change import (  # noqa: E501
    change_desired,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.whiteboard.block import (  # noqa: E501
    GlobalBlock,
)
from ansible_collections.holdfast.ha.tests.unit.module_runner import run_failing, run_ok

BY_HAND = Maintenance("set on the whiteboard", "", 900.0)


@pytest.fixture
def options(node_config):
    return {"config": node_config, "reason": "switches", "owner": "ada", "wait": False}


@pytest.fixture
def storage(node_config):
    """The storage as the manager on n1 uses it."""
    found = ClusterStorage(load(Path(node_config)))
    found.adopt_host_lease()
    found.epoch = found.leases.acquire(MANAGER_LEASE)
    yield found
    found.close()


def manager_says(storage, **fields):
    storage.write_manager(ClusterState(storage.epoch, "n1", **fields))


def absent(options):
    return {"config": options["config"], "state": "absent", "wait": False}


def desired(storage):
    return storage.search_desired()[0]


def block(storage):
    return storage.board.read_global().maintenance


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (
            {"until": "soon"},
            "until: 'soon' is not accepted; expected seconds since 1970, or a time",
        ),
        ({"until": "2090-01-01T10:00:00"}, "with its zone such as"),
        ({"until": "2020-01-01T10:00:00Z"}, "expected an end that is yet to come"),
        ({"until": "17"}, "until: '17' is not accepted; expected an end that is yet to come"),
        (
            {"duration": -1},
            "duration: -1.0 is not accepted; expected seconds (0: no expiry)",
        ),
        ({"duration": 5, "until": "2090-01-01T10:00:00Z"}, "mutually exclusive"),
    ],
)
@pytest.mark.parametrize("module", ["cluster_maintenance", "node_maintenance"])
@pytest.mark.parametrize("check", [True, False])
def test_an_expiry_that_is_none_is_refused(options, storage, given, says, module, check):
    assert says in run_failing(module, {**options, **given}, check)
    assert desired(storage).version == 0


@pytest.mark.parametrize(
    ("given", "until"),
    [
        ({"until": "2090-01-01T10:00:00Z"}, 3786948000.0),
        ({"until": "2090-01-01T10:00:00+01:00"}, 3786944400.0),
        ({"until": "3786948000.5"}, 3786948000.5),
        ({"duration": 0}, 0.0),
        ({}, 0.0),
    ],
)
def test_an_expiry_is_a_time_wherever_it_was_written(options, given, until):
    made = run_ok("cluster_maintenance", {**options, **given})["maintenance"]
    assert made["until"] == until


def test_a_second_run_with_a_duration_does_not_put_the_end_off(options):
    first = run_ok("cluster_maintenance", {**options, "duration": 60})
    assert first["maintenance"]["until"] == first["maintenance"]["since"] + 60
    again = run_ok("cluster_maintenance", {**options, "duration": 60})
    assert (again["changed"], again["maintenance"]) == (False, first["maintenance"])
    assert not run_ok("cluster_maintenance", {**options, "reason": None, "owner": None})["changed"]
    longer = run_ok("cluster_maintenance", {**options, "duration": 90})
    assert longer["changed"]
    assert longer["maintenance"]["until"] == first["maintenance"]["since"] + 90
    endless = run_ok("cluster_maintenance", {**options, "duration": 0})
    assert endless["maintenance"]["until"] == 0


def test_check_then_begin_then_again_then_end(options, storage):
    told = run_ok("cluster_maintenance", {**options, "wait": True}, check=True, diff=True)
    assert (told["changed"], told["version"], desired(storage).version) == (True, 0, 0)
    done = run_ok("cluster_maintenance", options, diff=True)
    assert (done["changed"], done["version"]) == (True, 1)
    shown, expected = (json.loads(one["diff"]["after"]) for one in (done, told))
    times = {"since": shown["maintenance"]["since"], "until": None}
    assert shown == {"maintenance": {**done["maintenance"], **times}}
    assert time_from_text(times["since"]) == int(done["maintenance"]["since"])
    for one in (shown, expected):
        one["maintenance"].pop("since")
    assert (shown, done["diff"]["before"]) == (expected, told["diff"]["before"])
    assert asdict(desired(storage).global_maintenance) == done["maintenance"]
    for check in (True, False):
        again = run_ok("cluster_maintenance", options, check, diff=True)
        assert not again["changed"]
        assert again["diff"]["before"] == again["diff"]["after"] == done["diff"]["after"]
    told = run_ok("cluster_maintenance", absent(options), check=True, diff=True)
    ended = run_ok("cluster_maintenance", absent(options), diff=True)
    assert ended == {**told, "version": 2}
    assert (ended["changed"], ended["maintenance"]) == (True, None)
    assert ended["diff"]["before"] == done["diff"]["after"]
    for check in (True, False):
        assert not run_ok("cluster_maintenance", absent(options), check)["changed"]


@pytest.mark.parametrize("taken_up", [True, False])
def test_one_that_was_set_on_the_whiteboard_is_ended_there(options, storage, taken_up):
    storage.board.write_global(GlobalBlock(True))
    manager_says(storage, board=False)
    if taken_up:
        manager_says(storage, hold=BY_HAND, hold_from_board=True, board=True)
    told = run_ok("cluster_maintenance", absent(options), check=True, diff=True)
    assert (told["changed"], block(storage)) == (True, True)
    assert json.loads(told["diff"]["before"])["maintenance"]["reason"] == "set on the whiteboard"
    assert run_ok("cluster_maintenance", absent(options), diff=True) == told
    assert (block(storage), desired(storage).version) == (False, 0)
    assert not run_ok("cluster_maintenance", absent(options))["changed"]


def test_what_the_manager_is_about_to_take_back_from_the_whiteboard_is_left_to_it(options, storage):
    storage.board.write_global(GlobalBlock(True))
    manager_says(storage, board=True, board_pending=True)
    assert not run_ok("cluster_maintenance", absent(options))["changed"]
    assert block(storage)


def test_a_damaged_block_is_put_right_by_the_end(options, storage):
    manager_says(storage, board=False)
    storage.board.write_block(0, b"maintenance=x".ljust(4096, b"\0"))
    assert run_ok("cluster_maintenance", absent(options))["changed"]
    assert block(storage) is False


def test_one_that_the_manager_has_ended_is_no_more_and_can_begin_anew(options, storage):
    first = run_ok("cluster_maintenance", {**options, "duration": 60})["maintenance"]
    run_ok("node_maintenance", {**options, "node": "n2", "duration": 60})
    node = desired(storage).maintenance["n2"]
    ended = {"": (first["since"], first["until"]), "n2": node.identity}
    manager_says(storage, config_version=2, config_slot=1, board=False, ended=ended)
    assert not run_ok("cluster_maintenance", absent(options))["changed"]
    active = {"config": options["config"], "node": "n2", "state": "active", "wait": False}
    assert not run_ok("node_maintenance", active)["changed"]
    again = run_ok("cluster_maintenance", {**options, "duration": 60})
    assert again["changed"]
    assert again["maintenance"]["since"] > first["since"]
    assert desired(storage).maintenance == {}, "what ended is dropped with the next change"


@pytest.mark.parametrize(
    ("state", "says"),
    [
        ({}, "The cluster is not in maintenance after 0.1 s; see holdfast status."),
        (
            {"hold": BY_HAND, "board": True},
            "The cluster is in maintenance (set on the whiteboard) after 0.1 s; see holdfast",
        ),
        (
            {"config_version": 0},
            "The manager has not applied the change after 0.1 s; see holdfast",
        ),
    ],
)
def test_a_wait_in_vain_says_how_it_stands(options, storage, monkeypatch, state, says):
    def takes_up(_seconds):
        manager_says(storage, **{"config_version": 1, **state})

    monkeypatch.setattr("time.sleep", takes_up)
    message = run_failing("cluster_maintenance", {**options, "wait": True, "timeout": 0.1})
    assert message.startswith(says)


def test_a_wait_ends_once_manager_and_whiteboard_agree(options, storage, monkeypatch):
    def takes_up(_seconds):
        hold = desired(storage).global_maintenance
        manager_says(
            storage, config_version=desired(storage).version, hold=hold, board=hold is not None
        )

    manager_says(storage)
    monkeypatch.setattr("time.sleep", takes_up)
    for given in (options, absent(options)):
        assert run_ok("cluster_maintenance", {**given, "wait": True, "timeout": 20})["changed"]


def test_two_modules_at_once_lose_nothing(options, storage):
    def change(what):
        config = load(Path(options["config"]))
        one = Maintenance("at once", what, time.time())

        def plan(now):
            if what == "cluster":
                return now.with_global_maintenance(one)
            return now.with_maintenance(what, one)

        change_desired(config, plan, check=False)

    names = ["cluster", "n1", "n2", "n3"]
    context = multiprocessing.get_context("fork")
    running = [context.Process(target=change, args=(name,)) for name in names]
    for process in running:
        process.start()
    for process in running:
        process.join()
    found = desired(storage)
    assert [process.exitcode for process in running] == [0] * 4
    assert found.version == 4
    assert found.global_maintenance.owner == "cluster"
    assert sorted(found.maintenance) == ["n1", "n2", "n3"]


@pytest.fixture
def files(options):
    """The options of the module metadata for the same cluster."""
    configuration = load(Path(options["config"]))
    return {
        "name": configuration.cluster,
        "path": str(configuration.storage),
        "config": options["config"],
        "maintenance": True,
        "reason": "switches",
        "owner": "ada",
    }


@pytest.mark.parametrize("node", [None, "n2"])
def test_metadata_declares_once_what_it_is_told(files, storage, node):
    begin = {**files, "node": node, "duration": 60}
    told = run_ok("metadata", begin, check=True, diff=True)
    assert (told["changed"], desired(storage).version) == (True, 0)
    done = run_ok("metadata", begin, diff=True)
    assert (done["declared"]["reason"], done["declared"]["owner"]) == ("switches", "ada")
    found = desired(storage)
    made = found.maintenance["n2"] if node else found.global_maintenance
    assert asdict(made) == done["declared"]
    assert not block(storage), "the whiteboard is for the manager to write"
    for check in (True, False):
        again = run_ok("metadata", begin, check, diff=True)
        assert (again["changed"], again["declared"]) == (False, done["declared"])
        assert again["diff"]["before"] == again["diff"]["after"] == done["diff"]["after"]
    end = {key: files[key] for key in ("name", "path", "config")}
    end.update(maintenance=False, node=node)
    assert run_ok("metadata", end)["declared"] is None
    assert not run_ok("metadata", end)["changed"]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"config": None}, "reason: 'switches' is not accepted; expected it only beside config"),
        ({"maintenance": None}, "reason: 'switches' is not accepted; expected it only beside"),
        ({"name": "other"}, "of a node of cluster other in"),
        ({"state": "absent"}, "maintenance: True is not accepted; expected it only with state"),
        ({"node": "n9"}, "one of the cluster's nodes (n1, n2, n3"),
    ],
)
@pytest.mark.parametrize("check", [True, False])
def test_metadata_refuses_what_it_would_have_to_overlook(files, storage, changes, says, check):
    assert says in run_failing("metadata", {**files, **changes}, check)
    assert desired(storage).version == 0


def test_metadata_info_says_who_holds_the_cluster(files, storage):
    where = {"name": files["name"], "path": files["path"]}
    assert run_ok("metadata_info", where)["maintenance"] is None
    storage.board.write_global(GlobalBlock(True))
    assert run_ok("metadata_info", where)["maintenance"]["reason"] == "set on the whiteboard"
    made = run_ok("metadata", files)["declared"]
    assert run_ok("metadata_info", where)["maintenance"] == made
    ended = {"": (made["since"], made["until"])}
    manager_says(storage, config_version=1, board=True, board_pending=True, ended=ended)
    told = run_ok("metadata_info", where)["maintenance"]["reason"]
    assert told == "ended, but the whiteboard still shows it"


def test_cluster_info_says_who_holds_the_cluster_and_until_when(options, storage):
    assert run_ok("cluster_info", {"config": options["config"]})["maintenance"] is None
    made = run_ok("cluster_maintenance", {**options, "until": "2090-01-01T10:00:00Z"})
    found = run_ok("cluster_info", {"config": options["config"]})
    assert (found["global_maintenance"], found["maintenance"]) == (True, made["maintenance"])
    # A long sentence is wrapped, with an indent.
    text = " ".join(" ".join(found["text"]).split())
    assert "by ada, until 2090-01-01T10:00:00Z" in text
    assert ": switches." in text


def test_the_sizes_of_records_are_chosen_once_and_kept_when_not_told(tmp_path):
    where = {"name": "c9", "path": str(tmp_path), "max_hosts": 4}
    sized = {**where, "manager_record_size": 6, "configuration_size": 5}
    told = run_ok("metadata", sized, check=True, diff=True)
    made = run_ok("metadata", sized, diff=True)
    assert told == made
    sizes = {key: value for key, value in made["state"].items() if key.endswith("_size")}
    assert sizes == {"node_record_size": 1, "manager_record_size": 6, "configuration_size": 5}
    for given in (where, sized):
        assert not run_ok("metadata", given)["changed"]
    grown = run_ok("metadata", {**where, "node_record_size": 2}, diff=True)
    assert grown["changed"]
    assert '"node_record_size": 2.0' in grown["diff"]["after"]
    assert grown["state"]["manager_record_size"] == 6
    message = run_failing("metadata", {**where, "configuration_size": 65})
    assert "configuration_size: 65 is not accepted; expected a whole number of MiB" in message
