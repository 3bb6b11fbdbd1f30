# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command ``holdfast``: its exit status, and which stream says what."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.service import (
    Resource,
    Service,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    ClusterState,
    Event,
    NodeState,
    NodeStatus,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import FenceError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node import record_faults
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.cluster_storage import (
    MANAGER_LEASE,
    ClusterStorage,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.telemetry import (
    telemetry_path,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.machine import (
    machine,
    power,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.cli import look
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.cli.main import (
    INTERRUPTED,
    NO_ANSWER,
    main,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.cli.questions import (
    NOT_AS_WANTED,
    WELL,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.forecast import (
    rebalance,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.operations.change import (  # noqa: E501
    change_desired,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.report import status
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.version import VERSION
from ansible_collections.holdfast.ha.tests.unit.cluster.samples import verified_off
from ansible_collections.holdfast.ha.tests.unit.node.sample_node import (
    NODES,
    configuration,
    create_storage,
    document,
    join,
)
from ansible_collections.holdfast.ha.tests.unit.ocf.agent_script import SWITCH, write_agent


@pytest.fixture
def config(tmp_path):
    """The path of the configuration of n1, whose storage is there."""
    create_storage(tmp_path)
    node = configuration(tmp_path)
    path = node.folder / "node.json"
    path.write_text(json.dumps(document(tmp_path)))
    return path


@pytest.fixture
def cluster(config, tmp_path):
    """A cluster whose manager n1 has all nodes online; returns the manager's storage."""
    node = configuration(tmp_path)
    leases = join(node)
    storage = ClusterStorage(node)
    storage.adopt_host_lease()
    epoch = storage.leases.acquire(MANAGER_LEASE)
    nodes = {name: NodeStatus(NodeState.ONLINE) for name in NODES}
    storage.write_manager(ClusterState(epoch=epoch, manager="n1", nodes=nodes))
    yield storage
    storage.close()
    leases.close()


def test_a_configuration_that_is_not_there_is_one_sentence_on_standard_error(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.delenv(power.MARK, raising=False)
    path = tmp_path / "node.json"
    for words in (["status", "--config"], ["probe", "--config"], ["machine", "cut"], ["lrm"]):
        assert main([*words, str(path)]) == NO_ANSWER
        said = capsys.readouterr()
        assert said.out == ""
        assert said.err == (
            f"holdfast: config: '{path}' is not accepted; expected the readable configuration of"
            " a node (No such file or directory).\n"
        )


def test_a_storage_that_is_gone_is_no_answer(config, tmp_path, capsys):
    (tmp_path / "storage" / "c1.metadata").unlink()
    assert main(["status", "--config", str(config)]) == NO_ANSWER
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("holdfast: ") and "c1.metadata" in said.err
    assert said.err.count("\n") == 1


@pytest.mark.parametrize("words", [[], ["dance"], ["status", "--dance"], ["machine", "dance", "x"]])
def test_a_command_that_is_none_is_no_answer_either(words, capsys):
    assert main(words) == NO_ANSWER
    said = capsys.readouterr()
    assert said.out == ""
    assert re.fullmatch(r"holdfast: .*[Ss]ee holdfast( [a-z]+)? --help\.\n", said.err)


def test_a_cluster_without_a_manager_is_shown_and_is_not_as_wanted(config, capsys):
    assert main(["status", "--config", str(config), "--json"]) == NOT_AS_WANTED
    said = capsys.readouterr()
    status = json.loads(said.out)
    assert status["problems"][0].startswith("No node holds the manager lease")
    assert said.err == ""
    assert main(["status", "--config", str(config)]) == NOT_AS_WANTED
    assert "No node holds the manager lease" in capsys.readouterr().out


def test_a_cluster_in_which_all_is_well_is_exit_status_0(config, cluster, capsys):
    assert main(["status", "--config", str(config), "--json"]) == WELL
    status = json.loads(capsys.readouterr().out)
    assert (status["cluster"], status["problems"]) == ("c1", [])
    assert status["manager"] == {"node": "n1", "epoch": 1, "active": True}


def test_the_configuration_may_be_named_in_the_environment(config, cluster, capsys, monkeypatch):
    monkeypatch.setenv("HOLDFAST_CONFIG", str(config))
    assert main(["status"]) == WELL
    assert "\x1b" not in capsys.readouterr().out, "no colours but on a terminal"


def test_an_empty_environment_names_no_configuration(monkeypatch, capsys):
    monkeypatch.setenv("HOLDFAST_CONFIG", "")
    main(["status"])
    assert "/etc/holdfast" in capsys.readouterr().err


def test_a_page_is_written_beside_the_text(config, cluster, tmp_path, capsys):
    page = tmp_path / "page.html"
    assert main(["status", "--config", str(config), "--html", str(page)]) == WELL
    assert page.read_text().startswith("<!DOCTYPE html>")
    assert "Nothing would be moved: the imbalance is" in page.read_text()
    assert "n1" in capsys.readouterr().out
    nowhere = tmp_path / "nowhere" / "page.html"
    assert main(["status", "--config", str(config), "--html", str(nowhere)]) == NO_ANSWER
    complained = capsys.readouterr().err
    assert f"{nowhere} cannot be created: folder {nowhere.parent} does not exist; " in complained
    assert "shared storage" not in complained, "a page may be anywhere"


@pytest.mark.parametrize("words", [["status", "--json"], ["watch", "--times", "1"]])
def test_a_rebalance_is_planned_only_for_a_page(words, config, cluster, capsys, monkeypatch):
    monkeypatch.setattr(rebalance, "look", None)
    assert main([words[0], "--config", str(config), *words[1:]]) == WELL


def test_a_reader_that_went_away_is_no_crash(config, cluster, monkeypatch):
    def broken(_text):
        raise BrokenPipeError

    monkeypatch.setattr(sys.stdout, "write", broken)
    assert main(["status", "--config", str(config)]) == NO_ANSWER


def test_an_interrupt_is_one_sentence_that_says_what_becomes_of_it(
    config, cluster, tmp_path, capsys, monkeypatch
):
    def interrupted(_seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr(look.time, "sleep", interrupted)
    written = str(tmp_path / "holdfast.prom")
    words = ["metrics", "--config", str(config), "--write", written, "--every", "15"]
    assert main(words) == INTERRUPTED
    complained = capsys.readouterr().err
    assert complained.startswith("holdfast: interrupted; ")
    assert complained.count("\n") == 1


def test_a_probe_tells_what_the_agents_find_whatever_the_records_say(
    config, cluster, tmp_path, capsys
):
    write_agent(tmp_path / "ocf", SWITCH)
    node = configuration(tmp_path)
    for name in ("up", "down"):
        one = Service(name, (Resource("r", "ocf:test:thing"),))
        change_desired(node, lambda desired, one=one: desired.with_service(one), check=False)
    node.run_directory.mkdir()
    (node.run_directory / "thing-up.r").write_text("0")
    assert main(["probe", "--config", str(config)]) == WELL
    assert json.loads(capsys.readouterr().out) == {"down": "stopped", "up": "running"}


@pytest.mark.parametrize(
    ("word", "function"),
    [
        ("cut", "power_off"),
        ("freeze", "freeze"),
        ("thaw", "thaw"),
        ("restart", "restart_daemons"),
        ("shutdown", "shut_down"),
        ("reboot", "shut_down"),
    ],
)
def test_the_power_switch_works_on_the_machine_of_the_configuration(
    config, monkeypatch, capsys, word, function
):
    acted = []

    def act(*arguments, reboot=False):
        assert reboot == (word == "reboot")
        acted.append(arguments[:2])
        if len(acted) == 2:
            raise FenceError("Machine 'n1' cannot be switched off.")

    monkeypatch.setattr(power, function, act)
    assert main(["machine", word, str(config)]) == WELL
    assert acted == [(config.parent.parent, "n1")]
    assert main(["machine", word, str(config)]) == NO_ANSWER
    assert capsys.readouterr().err == "holdfast: Machine 'n1' cannot be switched off.\n"


def test_what_an_agent_printed_drives_no_terminal_through_an_error(config, monkeypatch, capsys):
    def refuse(*_arguments):
        raise FenceError("fence_x said: \x1b[2Jno\nway")

    monkeypatch.setattr(power, "power_off", refuse)
    assert main(["machine", "cut", str(config)]) == NO_ANSWER
    assert capsys.readouterr().err == "holdfast: fence_x said: [2Jno way\n"


def test_a_machine_runs_only_in_a_process_that_its_power_switch_finds(config, monkeypatch):
    executed = []

    class Executed(Exception):
        """The process was replaced."""

    def execve(*arguments):
        executed.append(arguments)
        raise Executed

    def unmarked(_configuration):
        raise RuntimeError("it runs in a process that its power switch does not find")

    monkeypatch.setattr(os, "execve", execve)
    monkeypatch.setattr(machine, "Machine", unmarked)
    monkeypatch.setenv(power.MARK, "/some/other/machine")
    with pytest.raises(Executed):
        main(["machine", "run", str(config)])
    (program, words, environment) = executed[0]
    assert (program, words[-3:]) == (sys.executable, ["machine", "run", str(config)])
    assert environment[power.MARK] == str(config.parent.resolve())


def test_the_version_is_that_of_the_library(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == WELL
    assert capsys.readouterr().out == f"holdfast {VERSION}\n"


def test_metrics_are_printed_or_written_as_a_whole_file(config, cluster, tmp_path, capsys):
    assert main(["metrics", "--config", str(config)]) == WELL
    printed = capsys.readouterr().out
    assert '\nholdfast_manager_lease_held{cluster="c1"} 1\n' in printed
    written = tmp_path / "holdfast.prom"
    words = ["metrics", "--config", str(config), "--write", str(written)]
    assert main(words) == WELL
    assert capsys.readouterr().out == ""
    assert len(written.read_text().splitlines()) == len(printed.splitlines())
    assert written.stat().st_mode & 0o444 == 0o444, "the node exporter is another user"


@pytest.mark.parametrize(
    "words",
    [
        ["--write", "holdfast.txt"],
        ["--every", "5"],
        ["--write", "a.prom", "--every", "0"],
        ["--write", "/nowhere/a.prom"],
    ],
)
def test_metrics_that_nobody_would_read_are_refused(config, words, capsys):
    assert main(["metrics", "--config", str(config), *words]) == NO_ANSWER
    assert capsys.readouterr().err.startswith("holdfast: ")


@pytest.fixture
def hanging_storage(monkeypatch):
    """A storage of which no read ever returns, and little patience with it."""
    monkeypatch.setattr(status, "read_status", lambda _node: signal.pause())
    monkeypatch.setattr(ClusterStorage, "read_manager", lambda _storage: signal.pause())
    monkeypatch.setattr(record_faults, "damaged_records", lambda _storage: signal.pause())
    monkeypatch.setattr(status, "LONGEST", 0.3)


def test_metrics_are_told_while_the_storage_hangs(config, tmp_path, capsys, hanging_storage):
    measured = telemetry_path(configuration(tmp_path).run_directory, "lrm")
    measured.parent.mkdir(parents=True)
    now = float(int(time.monotonic()))
    values = [["lease_renewed_at", {}, now - 2.0], ["lease_fail_seconds", {}, 16.0]]
    measured.write_text(json.dumps({"kept_at": now, "values": values, "spans": []}))
    assert main(["metrics", "--config", str(config)]) == WELL
    told = capsys.readouterr().out.splitlines()
    assert 'holdfast_status_readable{cluster="c1"} 0' in told
    assert 'holdfast_lease_age_seconds{cluster="c1"} 2' in told
    assert 'holdfast_lease_margin_seconds{cluster="c1"} 14' in told


def test_who_looks_while_the_storage_hangs_is_told_so_in_time(config, capsys, hanging_storage):
    sentence = "does not answer within 0.3 s; see to its mount or its paths."
    assert main(["check", "--config", str(config)]) == 3
    told = capsys.readouterr().out
    assert told.startswith("HOLDFAST UNKNOWN - The storage ") and sentence in told
    assert main(["watch", "--config", str(config), "--times", "1"]) == WELL
    told = capsys.readouterr().out
    assert told.startswith("holdfast: The storage ") and sentence in told
    questions = (["why", "web"], ["history"], ["what-if", "--dies", "n1"], ["lint"])
    for words in (["status"], ["list", "services"], *questions):
        assert main([*words, "--config", str(config)]) == NO_ANSWER
        assert sentence in capsys.readouterr().err


def test_the_history_is_told_with_its_reasons(config, cluster, capsys):
    state = cluster.read_manager()
    for event in (
        Event(100.0, "fence", "n2", "", "it is silent"),
        Event(101.0, "start", "n1", "web", "the fewest", (("n3", "in maintenance"),)),
    ):
        state = state.with_event(event)
    cluster.write_manager(state)
    words = ["history", "--config", str(config)]
    assert main([*words, "--node", "n3"]) == WELL
    assert capsys.readouterr().out == (
        "1970-01-01T00:01:41Z  start  web on n1: the fewest\n"
        "                      not n3: in maintenance\n"
    )
    assert main([*words, "--json", "--last", "1"]) == WELL
    assert [one["kind"] for one in json.loads(capsys.readouterr().out)] == ["start"]
    assert main([*words, "--since", "1h"]) == WELL
    assert capsys.readouterr().out == ""
    assert main([*words, "--since", "soon"]) == NO_ANSWER


def test_a_history_of_what_can_have_none_is_refused_with_what_there_is(
    config, cluster, tmp_path, capsys
):
    state = cluster.read_manager()
    for event in (
        Event(100.0, "gone", "n7", "", "it was taken out"),
        Event(101.0, "brewed", "n1", "tea", "by a newer manager", (("n8", "no beans"),)),
    ):
        state = state.with_event(event)
    cluster.write_manager(state)
    web = Service("web", (Resource("r", "ocf:test:thing"),))
    change_desired(configuration(tmp_path), lambda desired: desired.with_service(web), check=False)
    words = ["history", "--config", str(config)]
    of_nodes = [("--node", one) for one in ("n2", "n7", "n8")]
    for more in (*of_nodes, ("--kind", "brewed"), ("--service", "web"), ("--service", "tea")):
        assert main([*words, *more]) == WELL
    capsys.readouterr()
    for option, known in (
        ("node", "(n1, n2, n3, n7, n8)"),
        ("service", "(tea, web)"),
        ("kind", "blocked, brewed, "),
    ):
        assert main([*words, f"--{option}", "nosuch"]) == NO_ANSWER
        said = capsys.readouterr()
        assert (said.out, said.err.count("\n")) == ("", 1)
        assert f"--{option}: 'nosuch' is not accepted" in said.err and known in said.err


def test_a_check_has_the_exit_statuses_of_monitoring_plugins(config, cluster, tmp_path, capsys):
    words = ["check", "--config", str(config)]
    assert main(words) == 0
    assert capsys.readouterr().out.startswith("HOLDFAST OK - Cluster c1: 3 nodes, 3 online")
    state = cluster.read_manager()
    cluster.write_manager(state.with_node("n2", NodeStatus(NodeState.OFF, proof=verified_off())))
    assert main(words) == 2
    capsys.readouterr()
    (tmp_path / "storage" / "c1.metadata").unlink()
    assert main(words) == 3
    assert capsys.readouterr().out.startswith("HOLDFAST UNKNOWN - ")


@pytest.mark.parametrize(
    "more", [["--nosuch"], ["--timeout", "1"], ["--rehearsals"], ["more words"]]
)
def test_a_check_that_is_not_understood_is_unknown_to_monitoring_and_not_critical(
    config, cluster, capsys, more
):
    assert main(["check", *more]) == 3
    said = capsys.readouterr()
    assert said.out.startswith("HOLDFAST UNKNOWN - The command line is not understood: ")
    assert more[0] in said.out and said.out.count("\n") == 1
    assert said.err == ""


def test_names_are_listed_one_in_a_line(config, cluster, tmp_path, capsys):
    change_desired(
        configuration(tmp_path),
        lambda desired: desired.with_service(Service("web", (Resource("r", "ocf:test:thing"),))),
        check=False,
    )
    for what, listed in (("nodes", "n1\nn2\nn3\n"), ("services", "web\n"), ("manager", "n1\n")):
        assert main(["list", what, "--config", str(config)]) == WELL
        assert capsys.readouterr().out == listed


def test_watching_tells_changes_keeps_a_page_and_survives_a_storage_that_is_gone(
    config, cluster, tmp_path, capsys, monkeypatch
):
    board = tmp_path / "storage" / "c1.metadata"
    kept = board.read_bytes()
    looks = []

    def sleep(seconds):
        looks.append(seconds)
        if len(looks) == 1:
            board.unlink()
        else:
            board.write_bytes(kept)

    monkeypatch.setattr(look.time, "sleep", sleep)
    page = tmp_path / "page.html"
    words = ["watch", "--config", str(config), "--every", "0.5", "--times", "3"]
    assert main([*words, "--html", str(page)]) == WELL
    told = capsys.readouterr().out.splitlines()
    assert "cluster c1: healthy" in told[0]
    assert told[1].startswith("holdfast: ") and "c1.metadata" in told[1]
    assert (len(told), looks) == (2, [0.5, 0.5])
    assert "Nothing would be moved: the imbalance is" in page.read_text()
    assert main(["watch", "--config", str(config), "--every", "0"]) == NO_ANSWER


@pytest.mark.parametrize(
    ("environment", "coloured"),
    [
        ({}, True),
        ({"NO_COLOR": ""}, True),
        ({"NO_COLOR": "1"}, False),
        ({"NO_COLOR": "0"}, False),
        ({"TERM": "dumb"}, False),
    ],
)
def test_a_terminal_is_coloured_unless_it_or_its_user_wants_none(
    config, cluster, capsys, monkeypatch, environment, coloured
):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    for name, value in {"TERM": "xterm", "NO_COLOR": "", **environment}.items():
        monkeypatch.setenv(name, value)
    for words in (["status"], ["watch", "--times", "1"]):
        assert main([*words, "--config", str(config)]) == WELL
        assert ("\x1b[32m" in capsys.readouterr().out) == coloured


def test_watching_on_a_dumb_terminal_tells_lines(config, cluster, capsys, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "dumb")
    assert main(["watch", "--config", str(config), "--times", "1"]) == WELL
    assert "\x1b" not in capsys.readouterr().out


def test_watching_on_a_terminal_gives_the_screen_back_when_it_is_interrupted(
    config, cluster, capsys, monkeypatch
):
    def interrupted(_seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr(look.time, "sleep", interrupted)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert main(["watch", "--config", str(config)]) == WELL
    shown = capsys.readouterr().out
    assert shown.startswith("\x1b[?1049h") and shown.endswith("\x1b[?1049l")
    assert "Cluster c1: \x1b[32mhealthy\x1b[0m" in shown
