# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A program that cannot run is named with what stands in its way, and with no secret."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
import traceback

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import AgentError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.process.family import (
    process_table,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.process.run import run
from ansible_collections.holdfast.ha.tests.unit.programs import shell

SECRET = "correct horse"


@pytest.mark.parametrize(
    ("argv", "options", "part"),
    [
        (["/nonexistent/agent"], {}, "/nonexistent/agent does not exist"),
        (["no-such-program-here"], {}, "no-such-program-here does not exist"),
        (["/etc/passwd"], {}, "/etc/passwd is not executable for this user"),
        (["/etc"], {}, "/etc may not be executed here"),
        (["/etc/passwd/agent"], {}, "could not be run: Not a directory"),
        (["/bin/true", "x" * (3 << 20)], {}, "could not be run: Argument list too long"),
        (["/bin/true", "a\0b"], {}, "could not be started"),
        ([], {}, "an empty command could not be started"),
        (["/bin/true"], {"deadline": 0}, "deadline of 0 seconds"),
        (["/bin/true"], {"deadline": float("inf")}, "deadline of inf seconds"),
        (["/bin/true"], {"deadline": float("nan")}, "deadline of nan seconds"),
    ],
)
def test_a_program_that_cannot_run_is_named_with_the_reason(argv, options, part):
    with pytest.raises(AgentError, match=part) as caught:
        run(argv, **{"deadline": 5.0, "stdin": SECRET.encode(), **options})
    assert SECRET not in "".join(traceback.format_exception(*caught._excinfo))


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (b"#!/nonexistent/python3 -u\n", "its interpreter /nonexistent/python3 does not exist"),
        (b"#! /etc/passwd\n", "though it is executable: look at its interpreter /etc/passwd"),
        (b"neither script nor program\n", "with an interpreter in its first line"),
        (b"", "with an interpreter in its first line"),
    ],
)
def test_a_script_that_nothing_can_interpret_is_told_from_a_missing_one(tmp_path, content, part):
    agent = tmp_path / "agent"
    agent.write_bytes(content)
    agent.chmod(0o755)
    with pytest.raises(AgentError, match=part):
        run([str(agent)], deadline=60.0)


@pytest.mark.parametrize("number", [errno.ENOMEM, errno.EAGAIN])
def test_a_machine_that_cannot_start_another_process_says_so(monkeypatch, number):
    def refuse(*_arguments, **_options):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(subprocess, "Popen", refuse)
    with pytest.raises(AgentError, match=os.strerror(number)) as caught:
        run(["/bin/true"], deadline=60.0, stdin=SECRET.encode())
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("spare", range(14))
def test_without_descriptors_a_program_runs_or_is_refused_and_nothing_is_left(spare):
    before = os.listdir("/proc/self/fd"), children()  # noqa: PTH208
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 256), hard))
    taken = []
    try:
        while True:
            try:
                taken.append(os.open("/dev/null", os.O_RDONLY))
            except OSError:
                break
        for _turn in range(spare):
            os.close(taken.pop())
        try:
            outcome = shell("exec /bin/cat", stdin=b"read")
            said = outcome.stdout
        except AgentError as error:
            said = str(error)
    finally:
        for descriptor in taken:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert said in ("read", "/bin/sh could not be run: Too many open files.")
    assert said == "read" or spare < 13
    assert (os.listdir("/proc/self/fd"), children()) == before  # noqa: PTH208


def children():
    return {pid for pid, one in process_table().items() if one.parent == os.getpid()}


def test_an_outcome_shows_nothing_of_what_was_sent():
    assert SECRET not in repr(shell("cat > /dev/null", stdin=SECRET.encode()))


def test_what_a_spared_daemon_starts_is_not_spared_when_memory_runs_out():
    script = (
        "import sys\n"
        "open('/proc/self/oom_score_adj', 'w').write('300')\n"
        f"from {run.__module__} import run\n"
        "wait = 'sleep 0.5; cat /proc/self/oom_score_adj'\n"
        "sys.stdout.write(run(['/bin/sh', '-c', wait], deadline=60.0).stdout)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "0\n"
