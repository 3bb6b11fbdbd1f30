# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finding and calling fence agents: secrets stay secret, and only exit statuses are believed."""

from __future__ import annotations

import time

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import (
    AgentError,
    InputError,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.call import (
    FenceCall,
    call_fence_agent,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.known_agents import (
    fence_environment,
    installed_fence_agents,
    locate_fence_agent,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.metadata import (
    evidence_of,
    kind_of,
    load_fence_metadata,
    parse_fence_metadata,
    wait_for_proof,
    weakest,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.secrets import (
    hide,
    is_secret_name,
)
from ansible_collections.holdfast.ha.tests.unit.fence.device_script import (
    device_metadata,
    write_device,
)


def ask(path, action="off", timeout=5.0, **parameters):
    metadata = load_fence_metadata(path)
    given = {"ip": "192.0.2.1", **parameters}
    return call_fence_agent(path, metadata, action, given, plug="1", timeout=timeout)


def test_a_password_is_on_no_command_line(tmp_path):
    path = write_device(tmp_path)
    ask(path, password="hunter2")
    assert "password=hunter2|" in (tmp_path / "lines").read_text()
    assert "hunter2" not in (tmp_path / "argv").read_text()


@pytest.mark.parametrize("secret", ["hunter2", "with 'quotes' & signs", "umläut", "a\\b"])
def test_a_password_that_the_agent_repeats_is_hidden(tmp_path, secret):
    path = write_device(tmp_path, off='printf "%s\\n" "trying $password"; echo "$password" >&2')
    answer = ask(path, password=secret)
    assert "trying ********" in answer.text
    assert secret not in answer.text + answer.output


def test_hidden_spellings_include_quoted_and_encoded_ones():
    secret = "a b&c"
    for text in ("x 'a b&c'", "https://u:a%20b%26c@host", "p=a+b%26c"):
        assert "b" not in hide(text, [secret]).replace("http", "")


@pytest.mark.parametrize("name", ["password", "passwd", "snmp_priv_passwd", "token", "secret_key"])
def test_names_of_secrets_are_known(name):
    assert is_secret_name(name)


@pytest.mark.parametrize("name", ["ip", "plug", "password_script", "identity_file", "auth"])
def test_what_is_no_secret_can_be_shown(name):
    assert not is_secret_name(name)


@pytest.mark.parametrize(
    ("status", "power"),
    [("exit 0", "on"), ("exit 2", "off"), ("exit 1", "unknown"), ("kill -9 $$", "unknown")],
)
def test_a_status_is_on_off_or_unknown_by_its_exit_status_alone(tmp_path, status, power):
    path = write_device(tmp_path, status=f"echo 'Status: OFF'; {status}")
    assert ask(path, "status").power == power


@pytest.mark.parametrize("action", ["off", "monitor"])
def test_only_a_status_says_what_the_power_is(action):
    assert FenceCall(action, 2, False, 0.1, "").power == "unknown"


@pytest.mark.parametrize("hang", ["sleep 60", "trap '' TERM HUP; while :; do sleep 1; done"])
def test_an_agent_that_hangs_is_killed_and_has_said_nothing(tmp_path, hang):
    path = write_device(tmp_path, status=hang)
    began = time.monotonic()
    answer = ask(path, "status", timeout=0.3)
    assert time.monotonic() - began < 45.0
    assert answer.timed_out
    assert answer.power == "unknown"
    assert "no answer within 0.3 seconds" in answer.text


def test_much_text_is_cut_and_its_end_kept(tmp_path):
    path = write_device(tmp_path, off="yes | head -c 9000000; echo; echo the reason >&2")
    text = ask(path).text
    assert len(text) <= 2000
    assert text.endswith("the reason")


def test_pacemakers_switch_for_endless_agents_is_not_inherited(monkeypatch):
    monkeypatch.setenv("PCMK_service", "pacemaker-fenced")
    assert "PCMK_service" not in fence_environment()


def test_metadata_is_asked_for_once_for_each_version_of_an_agent(tmp_path):
    path = write_device(tmp_path)
    first = load_fence_metadata(path)
    assert load_fence_metadata(path) is first
    assert len((tmp_path / "argv").read_text().split("fence_test")) == 2
    write_device(tmp_path, actions=("off", "metadata"))
    assert not load_fence_metadata(path).supports("status")


@pytest.mark.parametrize(
    ("body", "deadline", "part"),
    [
        ("exit 1", 30.0, "exit status 1"),
        ("echo 'Please type yes'; exit 0", 30.0, "printed no metadata"),
        ("exec sleep 60", 0.3, "within 0.3 seconds"),
    ],
)
def test_an_agent_without_metadata_is_not_used(tmp_path, body, deadline, part):
    agent = tmp_path / "fence_x"
    agent.write_text(f"#!/bin/sh\n{body}\n")
    agent.chmod(0o755)
    with pytest.raises(AgentError, match=part):
        load_fence_metadata(str(agent), deadline=deadline)


def test_old_and_new_names_belong_together():
    metadata = parse_fence_metadata(device_metadata())
    assert metadata.spellings("login") == metadata.spellings("username") == {"login", "username"}
    assert metadata.spellings("password") == {"password"}
    assert metadata.host_argument == "plug"


def test_an_agent_is_found_by_name_or_path(tmp_path):
    path = write_device(tmp_path)
    assert locate_fence_agent("fence_test", ["/nonexistent", str(tmp_path)]) == path
    assert locate_fence_agent(path) == path


@pytest.mark.parametrize("name", ["", "../fence_x", "a/b", "-x", "fence x", None, 3])
def test_what_is_no_agents_name_is_refused(name):
    with pytest.raises(InputError, match="fence_ipmilan"):
        locate_fence_agent(name)


def test_a_missing_agent_says_where_it_was_looked_for_and_what_to_install(tmp_path):
    with pytest.raises(AgentError, match=r"searched /nonexistent/fence_x\. .*fence-agents"):
        locate_fence_agent("fence_x", ["/nonexistent"])
    (tmp_path / "fence_x").write_text("")
    with pytest.raises(AgentError, match="not executable"):
        locate_fence_agent("fence_x", [str(tmp_path)])


@pytest.mark.parametrize(
    ("agent", "automatic_on", "evidence"),
    [
        ("fence_ipmilan", False, "device-verified"),
        ("/usr/lib/holdfast/fence_holdfast_machine", False, "device-verified"),
        ("fence_sbd", False, "assumed"),
        ("/usr/sbin/fence_sanlock", False, "assumed"),
        ("fence_scsi", False, "assumed"),
        ("fence_of_tomorrow", True, "assumed"),
        ("fence_heuristics_ping", False, "gate"),
        ("fence_kdump", False, "gate"),
    ],
)
def test_an_off_is_worth_what_its_kind_of_device_can_know(agent, automatic_on, evidence):
    metadata = parse_fence_metadata(device_metadata("x", automatic_on=automatic_on))
    assert evidence_of(agent, metadata) == evidence


def test_a_renamed_agent_is_still_known_by_its_metadata():
    assert evidence_of("fence_mine", parse_fence_metadata(device_metadata("fence_sbd"))) == (
        "assumed"
    )


@pytest.mark.parametrize(
    ("kinds", "worth"),
    [
        ([], "none"),
        (["gate"], "gate"),
        (["gate", "device-verified"], "device-verified"),
        (["assumed", "device-verified"], "assumed"),
        (["none", "device-verified"], "none"),
    ],
)
def test_a_level_is_worth_its_weakest_device_and_gates_do_not_count(kinds, worth):
    assert weakest(kinds) == worth


METADATA_FLOOD = "while :; do echo '<resource-agent>'; done"


@pytest.mark.parametrize(
    ("body", "deadline", "part"),
    [
        ("echo '<resource-agent><parameters>'; echo '</resource-agent>'", 30.0, "not well-formed"),
        ("echo '<resource-agent name=\"a\">&unknown;</resource-agent>'", 30.0, "not well-formed"),
        ("head -c 2000 /dev/urandom", 30.0, "printed no metadata"),
        (METADATA_FLOOD, 0.5, "within 0.5 seconds"),
        ("head -c 3000000000 /dev/zero", 0.5, "within 0.5 seconds|printed no metadata"),
        ("trap '' TERM HUP INT; while :; do sleep 1; done", 0.5, "within 0.5 seconds"),
    ],
)
def test_garbage_floods_and_deaf_agents_are_refused_in_time(tmp_path, body, deadline, part):
    agent = tmp_path / "fence_x"
    agent.write_text(f"#!/bin/sh\n{body}\n")
    agent.chmod(0o755)
    began = time.monotonic()
    with pytest.raises(AgentError, match=part):
        load_fence_metadata(str(agent), deadline=deadline)
    assert time.monotonic() - began < 45.0


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("warning: old Python\n{}", "log lines before it"),
        ("{}\ntrailing words", "words after it"),
        ("<!DOCTYPE resource-agent SYSTEM 'http://192.0.2.1/x.dtd'>\n{}", "a document type"),
    ],
)
def test_metadata_is_found_whatever_stands_around_it(text, says):
    metadata = parse_fence_metadata(text.format(device_metadata().split("?>", 1)[1]))
    assert metadata.parameter("ip") is not None, says


def test_metadata_may_leave_out_much_and_repeat_actions():
    metadata = parse_fence_metadata(
        """<resource-agent name="fence_x"><version>9.9</version><parameters>
        <parameter name="a"><shortdesc>no content</shortdesc></parameter>
        <parameter name="b"><content/></parameter>
        <parameter name="c"><content type="integer" default="soon"/></parameter>
        <parameter name="tls1.0"><content type="boolean" default="True"/></parameter>
        </parameters><actions><action name="off"/><action name="off" timeout="5"/></actions>
        </resource-agent>"""
    )
    assert [one.type for one in metadata.parameters] == ["string", "string", "integer", "boolean"]
    assert metadata.parameters[3].true_by_default
    assert [one.name for one in metadata.actions] == ["off", "off"]


def test_an_unanswered_ping_over_a_cable_is_only_a_gate():
    metadata = parse_fence_metadata(device_metadata("fence_crosslink"))
    assert kind_of("fence_crosslink", metadata) == "gate"


def test_an_agent_that_cannot_say_how_a_plug_is_proves_nothing():
    metadata = parse_fence_metadata(device_metadata(actions=("on", "off", "metadata")))
    assert evidence_of("fence_x", metadata) == "none"


@pytest.mark.parametrize(
    ("kind", "assumed_after", "wait"),
    [
        ("power", None, 0.0),
        ("power", 30.0, 0.0),
        ("watchdog", None, None),
        ("watchdog", 30.0, 30.0),
        ("fabric", 30.0, None),
        ("gate", 30.0, None),
        ("stand-in", 30.0, None),
    ],
)
def test_only_a_verified_off_is_proof_at_once_and_an_assumed_one_after_its_wait(
    kind, assumed_after, wait
):
    assert wait_for_proof(kind, assumed_after) == wait


def test_installed_agents_are_those_that_can_be_executed(tmp_path):
    for name in ("fence_a", "fence_b", "fence_virtd", "other"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "fence_b").chmod(0o644)
    (tmp_path / "fence_folder").mkdir()
    assert installed_fence_agents(["/nonexistent", str(tmp_path)]) == (str(tmp_path / "fence_a"),)


@pytest.mark.parametrize("separated", ["status", "monitor"])
def test_a_machine_that_is_off_answers_with_two_and_that_is_an_answer(separated):
    assert FenceCall(separated, 2, False, 0.1, "").succeeded
    assert not FenceCall(separated, 1, False, 0.1, "").succeeded
    assert not FenceCall("off", 2, False, 0.1, "").succeeded
