# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Calling resource agents: the environment they get, and what is made of their answers."""

from __future__ import annotations

import os
import re
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import (
    AgentError,
    InputError,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.ocf.agent import (
    FEATURE_SET,
    AgentCall,
    AgentName,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.ocf.call import (
    MEANINGS,
    UNKNOWN_STATUS,
    call,
    meaning_of,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.ocf.metadata import (
    META_NAMES,
    check_meta,
    check_meta_of_action,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.process.family import (
    process_entry,
)
from ansible_collections.holdfast.ha.tests.unit.ocf.agent_script import write_agent
from hypothesis import given
from hypothesis import strategies as some

NAME = AgentName("ocf", "test", "thing")


@pytest.fixture
def ask(tmp_path):
    def ask(body, action="monitor", **options):
        path = write_agent(tmp_path, body)
        settings = {
            "instance": "web:0",
            "agent": NAME,
            "parameters": {"path": "/x"},
            "timeout": 5.0,
            "run_directory": str(tmp_path / "run"),
            **options,
        }
        runner = {"run": settings.pop("run")} if "run" in settings else {}
        return call(path, AgentCall(action=action, **settings), **runner)

    return ask


@pytest.mark.parametrize(
    "body",
    ["sleep 60", "trap '' TERM; while :; do sleep 1; done", "while :; do :; done"],
)
def test_an_agent_that_hangs_is_a_failure_and_neither_running_nor_stopped(ask, body):
    result = ask(body, timeout=0.3)
    assert result.timed_out
    assert result.code == 1
    assert "no answer within 0.3 seconds" in result.reason
    assert not (result.running or result.stopped or result.succeeded)
    assert result.duration < 15.0


@pytest.mark.parametrize(
    ("body", "part"),
    [
        ("exit 127", "exit status 127, unknown to OCF"),
        ("exit 10", "exit status 10, unknown to OCF"),
        ("kill -9 $$", "killed by signal 9"),
    ],
)
def test_an_end_that_ocf_does_not_know_is_a_failure_with_its_reason(ask, body, part):
    result = ask(body)
    assert result.code == 1
    assert part in result.reason
    assert result.recovery == "soft"


@pytest.mark.parametrize(
    ("code", "running", "stopped", "promoted", "recovery"),
    [
        (0, True, False, False, "none"),
        (1, False, False, False, "soft"),
        (2, False, False, False, "hard"),
        (3, False, False, False, "hard"),
        (4, False, False, False, "hard"),
        (5, False, False, False, "hard"),
        (6, False, False, False, "fatal"),
        (7, False, True, False, "none"),
        (8, True, False, True, "none"),
        (9, False, False, False, "soft"),
        (190, True, False, False, "none"),
        (191, True, False, True, "none"),
    ],
)
def test_each_code_of_a_monitor_has_its_meaning(ask, code, running, stopped, promoted, recovery):
    result = ask(f"exit {code}")
    assert result.code == code
    assert result.meaning == MEANINGS[code]
    assert result.exit_status == code
    assert (result.running, result.stopped) == (running, stopped)
    assert result.promoted == promoted
    assert result.recovery == recovery
    assert result.succeeded == running


def test_a_stop_that_says_not_running_has_not_done_what_was_asked(ask):
    assert ask("exit 0", "stop").stopped
    assert not ask("exit 7", "stop").stopped
    assert not ask("exit 7", "stop").succeeded


def test_a_start_alone_does_not_say_that_a_resource_runs(ask):
    result = ask("exit 0", "start")
    assert result.succeeded
    assert not result.running


@pytest.mark.parametrize(
    ("status", "code", "running", "stopped", "to_clean_up"),
    [
        (0, 0, True, False, True),
        (1, 1, False, False, True),
        (2, 2, False, False, False),
        (3, 7, False, True, False),
        (4, 1, False, False, False),
        (7, 7, False, True, False),
    ],
)
def test_the_action_status_is_read_in_the_codes_of_its_own_text(
    ask, status, code, running, stopped, to_clean_up
):
    result = ask(f"exit {status}", "status")
    assert (result.code, result.exit_status) == (code, status)
    assert (result.running, result.stopped) == (running, stopped)
    assert result.active_or_failed == to_clean_up


def test_what_an_agent_leaves_in_its_own_process_group_lives_on_after_a_success(ask, tmp_path):
    result = ask("sleep 300 & echo $! > $HA_RSCTMP/pid; exit 0", "start")
    assert result.succeeded
    pid = int((tmp_path / "run" / "pid").read_text())
    try:
        entry = process_entry(pid)
        assert entry is not None
        assert entry.alive
        assert entry.group != os.getpgrp()
    finally:
        os.kill(pid, signal.SIGKILL)


def test_an_output_that_never_ends_is_cut_and_ends_at_the_deadline(ask):
    result = ask("yes", timeout=0.5)
    assert result.timed_out
    assert len(result.stdout) < 2_000_000


def test_the_last_reason_counts(ask):
    text = "echo ocf-exit-reason:first >&2; echo noise >&2; echo 'ocf-exit-reason: why it is' >&2"
    assert ask(f"{text}; exit 1").reason == "why it is"


def test_a_missing_agent_and_one_that_cannot_run_are_answers_and_no_accident(ask, tmp_path):
    request = AgentCall(NAME, "monitor", "a", timeout=30.0, run_directory=str(tmp_path))
    missing = call("/nonexistent/agent", request)
    assert (missing.code, missing.recovery) == (5, "hard")
    file = tmp_path / "file"
    file.write_text("")
    assert call(str(file), request).code == 4
    file.write_text("not a program")
    file.chmod(0o755)
    assert call(str(file), request).code == 1


def test_an_agent_gets_the_whole_environment_of_a_cluster_and_nothing_else(
    ask, monkeypatch, tmp_path
):
    monkeypatch.setenv("OCF_RESKEY_path", "of the operator")
    monkeypatch.setenv("OCF_TRACE_RA", "1")
    result = ask(
        "env -0 | tr '\\0\\n' '\\n@'",
        interval=10.0,
        timeout=2.5,
        check_level=10,
        node_name="n1",
        meta={"notify_type": "pre"},
        extra={"OWN": "one"},
    )
    found = dict(line.split("=", 1) for line in result.stdout.splitlines())
    # What the shell adds, and the mark by which the runner finds what left its group.
    for own in ("PWD", "_", "SHLVL", "OLDPWD", "HOLDFAST_RUN"):
        found.pop(own, None)
    assert found.pop("PATH").split(":")[-4:] == ["/usr/sbin", "/usr/bin", "/sbin", "/bin"]
    assert found == {
        "LC_ALL": "C",
        "OCF_ROOT": "/usr/lib/ocf",
        "OCF_RA_VERSION_MAJOR": "1",
        "OCF_RA_VERSION_MINOR": "1",
        "OCF_OUTPUT_FORMAT": "text",
        "OCF_EXIT_REASON_PREFIX": "ocf-exit-reason:",
        "OCF_RESOURCE_INSTANCE": "web:0",
        "OCF_RESOURCE_TYPE": "thing",
        "OCF_RESOURCE_PROVIDER": "test",
        "OCF_RESKEY_path": "/x",
        "OCF_RESKEY_CRM_meta_timeout": "2500",
        "OCF_RESKEY_CRM_meta_interval": "10000",
        "OCF_RESKEY_CRM_meta_name": "monitor",
        "OCF_RESKEY_CRM_meta_on_node": "n1",
        "OCF_RESKEY_CRM_meta_on_node_uuid": "n1",
        "OCF_RESKEY_CRM_meta_notify_type": "pre",
        "OCF_RESKEY_crm_feature_set": FEATURE_SET,
        "OCF_CHECK_LEVEL": "10",
        "OWN": "one",
        "HA_RSCTMP": str(tmp_path / "run"),
    }


def test_the_deadline_is_the_timeout_that_the_agent_is_told(ask):
    told = {}

    def run(argv, **options):
        told.update(options)
        raise AgentError("enough")

    result = ask("exit 0", timeout=7.0, run=run)
    assert told["deadline"] == 7.0
    assert told["environment"]["OCF_RESKEY_CRM_meta_timeout"] == "7000"
    assert (result.code, result.reason) == (1, "enough")


@pytest.mark.parametrize(
    ("timeout", "told"), [(1.001, "1001"), (2.3, "2300"), (0.0004, "1"), (86399.0, "86399000")]
)
def test_times_are_told_in_whole_milliseconds(timeout, told):
    found = AgentCall(NAME, "stop", "a", timeout=timeout, interval=timeout).environment()
    assert found["OCF_RESKEY_CRM_meta_timeout"] == told
    assert found["OCF_RESKEY_CRM_meta_interval"] == told


@pytest.mark.parametrize(
    ("meta", "part"),
    [
        ({"clonemax": 3}, "did you mean clone_max"),
        ({"timeout": 3}, "timeout"),
        ({"clone_max": [3]}, "meta.clone_max"),
        ({"clone_max": "a\0b"}, "meta.clone_max"),
    ],
)
def test_what_no_cluster_tells_an_agent_is_refused(meta, part):
    with pytest.raises(InputError, match=part):
        check_meta(meta)


def test_what_a_cluster_tells_is_written_as_agents_read_it():
    assert check_meta({"clone_max": 3, "promotable": True, "role": None}) == {
        "clone_max": "3",
        "promotable": "true",
    }


@pytest.mark.parametrize(
    ("action", "meta", "missing"),
    [
        ("migrate_to", {}, "migrate_target"),
        ("migrate_from", {"migrate_target": "n1"}, "migrate_source"),
        ("notify", {"notify_type": "pre"}, "notify_operation"),
    ],
)
def test_an_action_that_must_be_told_more_is_not_called_without(action, meta, missing):
    with pytest.raises(InputError, match=missing):
        check_meta_of_action(action, meta)


def test_the_installed_agents_read_nothing_that_cannot_be_told():
    folder = Path("/usr/lib/ocf")
    if not folder.is_dir():
        pytest.skip("resource-agents is not installed")
    texts = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    found = {
        name.decode()
        for text in texts
        if not text.startswith((b"\x7fELF", b"\xa7"))
        for name in re.findall(rb"OCF_RESKEY_CRM_meta_([a-z_]+)", text)
    }
    # Defaults that an agent sets for itself, and the beginning of a name that it puts together.
    own = {"timeout_default", "interval_default", "notify_pre", "notify_post"}
    own |= {"notify_start", "notify_stop"}
    assert len(found) > 20
    assert found - own - {"timeout", "interval", "name", "on_node"} <= META_NAMES


def test_what_an_agent_says_of_its_secrets_is_in_no_part_of_the_result(ask):
    says = "echo $OCF_RESKEY_password; echo ocf-exit-reason:login with hunter2 failed >&2; exit 1"
    result = ask(says, parameters={"password": "hunter2"})
    assert "hunter2" not in f"{result!r}{result}"
    assert result.reason == "login with ******** failed"


def test_parameters_are_not_on_the_command_line(ask):
    result = ask("tr '\\0' ' ' < /proc/$$/cmdline", parameters={"word": "hunter2"})
    assert "monitor" in result.stdout
    assert "hunter2" not in result.stdout


def test_a_run_directory_that_cannot_be_made_is_said_so(ask, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(AgentError, match="cannot be made"):
        ask("exit 0", run_directory=str(tmp_path / "file" / "run"))


def test_a_real_agent_starts_is_found_running_and_stops(tmp_path):
    path = "/usr/lib/ocf/resource.d/heartbeat/Dummy"
    if not Path(path).exists():
        pytest.skip("resource-agents is not installed")
    request = AgentCall(
        AgentName("ocf", "heartbeat", "Dummy"),
        "monitor",
        instance="d1",
        parameters={"state": str(tmp_path / "state")},
        timeout=20.0,
        run_directory=str(tmp_path / "run"),
    )
    assert call(path, request).stopped
    assert call(path, replace(request, action="start")).succeeded
    assert call(path, replace(request, interval=10.0)).running
    assert call(path, replace(request, action="stop")).stopped
    assert call(path, request).stopped


PROBE, HEALTH = 0.0, 10.0


@pytest.mark.parametrize(
    ("action", "interval", "status", "code", "name", "recovery"),
    [
        # The same number says different things to a probe and to a check of health.
        ("monitor", PROBE, 7, 7, "not running", "none"),
        ("monitor", HEALTH, 7, 7, "not running", "soft"),
        ("monitor", PROBE, 3, 3, "unimplemented", "hard"),
        ("monitor", HEALTH, 3, 3, "unimplemented", "none"),
        ("monitor", HEALTH, 9, 9, "failed promoted", "soft"),
        ("monitor", HEALTH, 190, 190, "degraded", "none"),
        ("monitor", HEALTH, 6, 6, "misconfigured", "fatal"),
        # In the older text's status, 3 and 4 are what 7 and "no idea" are elsewhere.
        ("status", PROBE, 3, 7, "not running", "none"),
        ("status", HEALTH, 3, 7, "not running", "soft"),
        ("status", PROBE, 4, 1, "unknown", "soft"),
        ("status", PROBE, 7, 7, "not running", "none"),
        ("status", PROBE, 2, 2, "bad arguments", "hard"),
        # For any other action what only a monitor can say is a failure.
        ("stop", PROBE, 7, 7, "not running", "soft"),
        ("start", PROBE, 8, 8, "promoted", "soft"),
        ("start", PROBE, 3, 3, "unimplemented", "hard"),
        ("start", PROBE, 4, 4, "no permission", "hard"),
        ("start", PROBE, 0, 0, "success", "none"),
    ],
)
def test_a_number_means_what_its_action_makes_of_it(action, interval, status, code, name, recovery):
    meaning = meaning_of(action, status, interval)
    assert (meaning.code, meaning.name, meaning.recovery) == (code, name, recovery)


@given(
    action=some.sampled_from(["monitor", "status", "start", "stop", "promote"]),
    status=some.integers(0, 255),
    interval=some.sampled_from([PROBE, HEALTH]),
)
def test_every_number_has_a_meaning_and_an_unknown_one_is_a_failure(action, status, interval):
    meaning = meaning_of(action, status, interval)
    assert meaning.code in MEANINGS
    assert meaning.recovery in ("none", "soft", "hard", "fatal")
    if status not in MEANINGS:
        assert (meaning.code, meaning.recovery) == (1, "soft")
    if action not in ("monitor", "status") and status != 0:
        assert meaning.recovery != "none"


def test_a_state_that_an_agent_cannot_tell_is_not_taken_for_a_failed_resource():
    assert meaning_of("status", 4) == UNKNOWN_STATUS
    assert meaning_of("monitor", 1) != UNKNOWN_STATUS
