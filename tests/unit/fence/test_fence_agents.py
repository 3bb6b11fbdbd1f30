# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finding and calling fence agents: secrets stay secret, and only exit statuses are believed."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import (
    AgentError,
    InputError,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.call import (
    FenceCall,
    call_fence_agent,
    listed_plugs,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.kinds import (
    evidence_of,
    weakest,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.locate import (
    fence_environment,
    locate_fence_agent,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.metadata import (
    load_fence_metadata,
    parse_fence_metadata,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.secrets import (
    hide,
    is_secret_name,
)
from ansible_collections.holdfast.ha.tests.unit.fence.device_script import (
    device_metadata,
    write_device,
)

FEW = ("fence_ipmilan", "fence_apc_snmp", "fence_scsi", "fence_sbd", "fence_kdump", "fence_dummy")


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
    assert time.monotonic() - began < 3.0
    assert answer.timed_out
    assert answer.power == "unknown"
    assert "no answer within 0.3 seconds" in answer.text


def test_much_text_is_cut_and_its_end_kept(tmp_path):
    path = write_device(tmp_path, off="yes | head -c 9000000; echo; echo the reason >&2")
    text = ask(path).text
    assert len(text) <= 2000
    assert text.endswith("the reason")


def test_a_list_is_plugs_with_aliases(tmp_path):
    path = write_device(tmp_path)
    metadata = load_fence_metadata(path)
    answer = call_fence_agent(path, metadata, "list", {"ip": "x"}, timeout=5.0)
    assert listed_plugs(answer) == {"1": "web", "2": ""}


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
    ("body", "part"),
    [
        ("exit 1", "exit status 1"),
        ("echo 'Please type yes'; exit 0", "printed no metadata"),
        ("exec sleep 60", "within 0.3 seconds"),
    ],
)
def test_an_agent_without_metadata_is_not_used(tmp_path, body, part):
    agent = tmp_path / "fence_x"
    agent.write_text(f"#!/bin/sh\n{body}\n")
    agent.chmod(0o755)
    with pytest.raises(AgentError, match=part):
        load_fence_metadata(str(agent), deadline=0.3)


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
    with pytest.raises(AgentError, match=r"looked for /nonexistent/fence_x\. .*fence-agents"):
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


def test_installed_agents_are_read():
    everyone = os.environ.get("HOLDFAST_ALL_AGENTS") == "1"
    paths = sorted(
        path
        for path in Path("/usr/sbin").glob("fence_*")
        # fence_ack_manual asks a person instead of answering.
        if path.name != "fence_ack_manual"
        and not path.name.endswith("d")
        and (everyone or path.name in FEW)
    )
    if not paths:
        pytest.skip("fence-agents is not installed")
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda path: load_fence_metadata(str(path)), paths))
    for path, metadata in zip(paths, found):
        # One of them, fence_rcd_serial, can do nothing but reset.
        assert metadata.supports("off") or metadata.supports("reboot"), path
        assert metadata.supports("metadata"), path
        assert evidence_of(str(path), metadata) in ("device-verified", "assumed", "gate")
        for one in metadata.parameters:
            assert one.name
            if one.obsoletes:
                assert metadata.parameter(one.obsoletes) is not None, (path, one.obsoletes)
