# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Secrets from files and programs reach the agent, and nobody else."""

from __future__ import annotations

import os

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import (
    AgentError,
    FenceError,
    HoldfastError,
    InputError,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.call import (
    call_fence_agent,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.metadata import (
    load_fence_metadata,
    parse_fence_metadata,
)
from ansible_collections.holdfast.ha.tests.unit.fence.device_script import (
    OFF,
    PLUGS,
    calls,
    device_metadata,
    write_device,
)

SCRIPT = """<parameter name="password_script"><content type="string" />
<shortdesc>Script to run to retrieve password</shortdesc></parameter>
<parameter name="identity_file"><content type="string" /><shortdesc>x</shortdesc></parameter>
<parameter name="passphrase_of_card"><content type="string" /></parameter>
<parameter name="pass_code"><content type="string" /><shortdesc>A secret</shortdesc></parameter>
"""


@pytest.fixture
def ask(tmp_path):
    """Return a function that calls an agent which repeats its password wherever it can."""
    repeat = f'echo "I have $password"; echo "$lines" >&2; {OFF}'
    path = write_device(tmp_path / "a", off=repeat, plugs=PLUGS + SCRIPT)
    metadata = load_fence_metadata(path)

    def ask(**parameters):
        given = {"ip": "x", **parameters}
        return call_fence_agent(path, metadata, "off", given, plug="1", timeout=20.0)

    return ask


def sent(tmp_path):
    return (tmp_path / "a" / "lines").read_text()


def private(tmp_path, content, mode=0o600):
    path = tmp_path / "secret"
    path.write_bytes(content)
    path.chmod(mode)
    return str(path)


def program(tmp_path, body):
    path = tmp_path / "program"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


def test_a_secret_in_a_file_is_sent_and_hidden(tmp_path, ask):
    answer = ask(password_file=private(tmp_path, b"hunter 2\n"))
    assert "|password=hunter 2|" in sent(tmp_path)
    assert "password_file" not in sent(tmp_path)
    assert "I have ********" in answer.text
    assert "hunter" not in answer.text + answer.output


def test_a_secret_that_a_program_prints_is_sent_and_hidden(tmp_path, ask):
    answer = ask(password_script=f"{program(tmp_path, 'echo hunter$1')} 2")
    assert "|password=hunter2|" in sent(tmp_path)
    assert "password_script" not in sent(tmp_path), "the agent must not run it through a shell"
    assert "hunter2" not in answer.text + answer.output
    assert "hunter2" not in (tmp_path / "a" / "argv").read_text()


def test_a_program_is_run_without_a_shell(tmp_path, ask):
    ask(password_script=f"{program(tmp_path, 'echo $#')} ; touch {tmp_path}/made")
    assert "|password=3|" in sent(tmp_path)
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("body", "timeout", "part"),
    [
        ("echo hunter2; exit 3", 30.0, r"failed \(exit status 3\)"),
        ("exit 0", 30.0, "printed nothing"),
        ("echo hunter2; echo a", 30.0, "one line"),
        ("exec sleep 60", 1.5, "did not end within 1.5 seconds"),
    ],
)
def test_a_program_that_fails_keeps_the_agent_from_being_called(tmp_path, body, timeout, part):
    path = write_device(tmp_path / "a", plugs=PLUGS + SCRIPT)
    given = {"ip": "x", "password_script": program(tmp_path, body)}
    with pytest.raises(HoldfastError, match=part) as caught:
        call_fence_agent(path, load_fence_metadata(path), "off", given, plug="1", timeout=timeout)
    assert "hunter2" not in str(caught.value)
    assert calls(tmp_path / "a") == []


def test_an_agent_whose_time_went_into_its_secrets_is_not_called(tmp_path):
    """Of several programs each may take all of it, and what is sent late arrives late."""
    path = write_device(tmp_path / "a", plugs=PLUGS + SCRIPT)
    given = {"ip": "x", "password_script": program(tmp_path, "echo hunter2")}
    times = iter([10.0, 13.0])
    with pytest.raises(FenceError, match="took all of its 3 seconds; it is not called"):
        call_fence_agent(
            path,
            load_fence_metadata(path),
            "off",
            given,
            plug="1",
            timeout=3.0,
            clock=lambda: next(times),
        )
    assert calls(tmp_path / "a") == []


@pytest.mark.parametrize("command", ["echo x", "", "/bin/echo 'x", 3, "./program"])
def test_only_a_program_by_its_whole_path_is_run(ask, command):
    with pytest.raises(InputError, match="the absolute path of a program"):
        ask(password_script=command)


@pytest.mark.parametrize("option", ["password_file", "password_script"])
def test_a_secret_in_the_place_of_its_source_is_refused_and_not_repeated(ask, option):
    with pytest.raises(InputError, match="the absolute path") as refused:
        ask(**{option: "hunter2"})
    assert "hunter2" not in str(refused.value)


def test_a_file_that_others_can_read_or_that_is_none_is_refused(tmp_path, ask):
    with pytest.raises(FenceError, match="make it 0600"):
        ask(password_file=private(tmp_path, b"hunter2", 0o640))
    with pytest.raises(FenceError, match="No such file"):
        ask(password_file=str(tmp_path / "none"))
    with pytest.raises(FenceError, match="not a regular file"):
        ask(password_file=str(tmp_path))
    with pytest.raises(InputError, match="the absolute path of a file"):
        ask(password_file="secret")
    with pytest.raises(FenceError, match="UTF-8"):
        ask(password_file=private(tmp_path, b"\xff\xfe"))
    with pytest.raises(FenceError, match="longer than"):
        ask(password_file=private(tmp_path, b"x" * 100000))
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(FenceError, match="not a regular file"):
        ask(password_file=str(tmp_path / "pipe"))
    assert calls(tmp_path / "a") == []


def test_a_secret_has_one_source(tmp_path, ask):
    path = private(tmp_path, b"hunter2")
    for other in ({"password": "hunter3"}, {"password_script": "/bin/true"}):
        with pytest.raises((InputError, AgentError)) as caught:
            ask(password_file=path, **other)
        assert "hunter" not in str(caught.value)


def test_what_the_agent_itself_calls_a_file_is_its_own(tmp_path, ask):
    ask(identity_file="/etc/key")
    assert "|identity_file=/etc/key|" in sent(tmp_path)


def test_a_secret_is_known_by_its_name_or_by_what_the_agent_says_of_it():
    metadata = parse_fence_metadata(device_metadata(plugs=SCRIPT))
    secret = {one.name for one in metadata.parameters if one.secret}
    assert secret == {"password", "passphrase_of_card", "pass_code"}
    found = metadata.secrets_in({"pass_code": "x1", "password": "x2", "ip": "x3"})
    assert set(found) == {"x1", "x2"}
