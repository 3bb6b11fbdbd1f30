# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a stopped resource may have left is found, and nothing else is."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import (
    AgentError,
    InputError,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.ocf import remains
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.ocf.remains import (
    TCP_LISTEN,
    UDP_BOUND,
    Traces,
    find_remains,
    in_control_group,
    mounts_below,
    ports_in_use,
    require_no_remains,
)

NEVER = "word-that-is-in-no-command-line-{}"

TCP = """  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt
   0: 0100007F:1F91 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1
   1: 0100007F:1F92 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     0        0 2 1
   2: 00000000000000000000000001000000:0050 00000000000000000000000000000000:0000 0A 0:0 0:0 0
   3: broken
"""
MOUNTS = """36 35 98:0 / /srv rw,noatime shared:1 - ext4 /dev/a rw
37 36 98:1 / /srv/my\\040data rw - ext4 /dev/b rw
38 35 98:2 / /srv2 rw - ext4 /dev/c rw
"""


@pytest.fixture
def child():
    started = []

    def start(*words):
        process = subprocess.Popen(words, stdout=subprocess.PIPE)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


def test_a_port_counts_when_somebody_listens_on_it():
    assert ports_in_use(TCP, TCP_LISTEN) == {0x1F91, 80}
    assert ports_in_use(TCP, UDP_BOUND) == set()


@pytest.mark.parametrize(
    ("paths", "found"),
    [
        (["/srv"], ["/srv", "/srv/my data"]),
        (["/srv/"], ["/srv", "/srv/my data"]),
        (["/srv/my data"], ["/srv/my data"]),
        (["/sr", "/srv/my", "/var"], []),
        (["/srv2", "/var"], ["/srv2"]),
    ],
)
def test_a_mount_counts_at_a_path_and_below_it(paths, found):
    assert mounts_below(MOUNTS, paths) == found


@pytest.mark.parametrize(
    ("lines", "belongs"),
    [
        ("0::/system.slice/web.service\n", True),
        ("0::/system.slice/web.service/worker\n", True),
        ("5:memory:/system.slice/web.service\n0::/\n", True),
        ("0::/system.slice/web.service2\n", False),
        ("0::/a:b/system.slice/web.service\n", False),
        ("", False),
    ],
)
def test_a_control_group_has_what_is_in_it_and_below_it(lines, belongs):
    assert in_control_group(lines, "/system.slice/web.service/") == belongs


def test_a_process_is_found_by_its_command_line_of_which_only_the_first_word_is_told(child):
    word = NEVER.format(os.getpid())
    traces = Traces(processes=(f"{word}$",))
    assert find_remains(traces) == ()
    process = child(sys.executable, "-c", "import time; time.sleep(300)", "--password", word)
    assert find_remains(traces) == (f"process {process.pid} ({sys.executable[:60]})",)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert find_remains(traces) == (), "one that only waits to be collected has ended"


def test_whoever_asks_is_not_taken_for_a_remnant():
    word = NEVER.format("asks")
    script = (
        "import sys; from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.ocf"
        " import remains; print(remains.find_remains(remains.Traces(processes=(sys.argv[1],))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, word],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "()\n", done.stderr


@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM])
@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_a_port_that_is_in_use_is_found_until_it_is_closed(kind, address):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        server = socket.socket(family, kind)
        server.bind((address, 0))
    except OSError:
        pytest.skip(f"{address} is not there")
    with server:
        if kind == socket.SOCK_STREAM:
            server.listen()
        port = server.getsockname()[1]
        name = "TCP" if kind == socket.SOCK_STREAM else "UDP"
        assert find_remains(Traces(ports=(port,))) == (f"{name} port {port} in use",)
    assert find_remains(Traces(ports=(port,))) == ()


def test_the_mounts_of_this_machine_are_seen():
    assert "/proc mounted" in find_remains(Traces(mounts=("/proc",)))


def test_the_control_group_of_a_process_is_seen(child):
    process = child("sleep", "300")
    lines = Path(f"/proc/{process.pid}/cgroup").read_text().splitlines()
    group = max((line.split(":", 2)[2] for line in lines), key=len)
    desired = f"process {process.pid} (sleep) in the control group {group}"
    assert desired in find_remains(Traces(cgroup=group))
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    # The kernel moves one that has ended into the uppermost group, or leaves it where it was.
    ended = (*find_remains(Traces(cgroup=group)), *find_remains(Traces(cgroup="/")))
    assert not any(f"process {process.pid} " in one for one in ended)


def test_what_is_on_its_way_out_gets_a_moment():
    times = iter([0.0, 0.5, 1.0, 1.9, 3.0])
    waits = []
    with pytest.raises(AgentError, match=r"web .* left: /proc.* mounted.* by hand"):
        require_no_remains(
            "web", Traces(mounts=("/proc",)), clock=lambda: next(times), wait=waits.append
        )
    assert len(waits) == 3


def test_what_cannot_be_looked_at_is_not_taken_for_gone(monkeypatch):
    def refuse(self):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    monkeypatch.setattr(remains, "process_table", dict)
    for traces in (Traces(processes=("nginx",)), Traces(cgroup="/web")):
        with pytest.raises(AgentError, match="hides processes"):
            find_remains(traces)
    for traces in (Traces(ports=(1,)), Traces(mounts=("/srv",))):
        with pytest.raises(AgentError, match=r"is not known.*Permission denied"):
            find_remains(traces)


@pytest.mark.parametrize(
    ("traces", "part"),
    [
        (Traces(), "processes, ports, mounts or a control group"),
        (Traces(processes=("(",)), "verify.processes.*regular expression"),
        (Traces(processes=("nginx|",)), "does not match just anything"),
        (Traces(processes=("",)), "does not match just anything"),
        (Traces(ports=(0,)), "verify.ports"),
        (Traces(ports=(80, 65536)), "verify.ports"),
        (Traces(mounts=("srv",)), "verify.mounts"),
        (Traces(cgroup="/"), "verify.cgroup"),
        (Traces(cgroup="//"), "verify.cgroup"),
        (Traces(cgroup="web.service"), "verify.cgroup"),
    ],
)
def test_a_question_that_makes_no_sense_is_refused(traces, part):
    with pytest.raises(InputError, match=part):
        traces.check()
