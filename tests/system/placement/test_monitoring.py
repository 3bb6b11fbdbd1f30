# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The load that monitoring daemons tell: from real servers on loopback, beside hbal and hail."""

from __future__ import annotations

import http.server
import json
import random
import shutil
import socket
import subprocess
import threading
import time
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.cli.htools import (
    hail,
    hbal,
    mond,
)
from ansible_collections.holdfast.ha.tests.unit.placement.clusters import (
    instance,
    new,
    node,
    request,
)

HAIL = Path("/usr/lib/ganeti/iallocators/hail")
NAMES = ["127.0.0.2", "127.0.0.3", "127.0.0.4"]
LOADS = dict(zip(NAMES, (3.5, 0.25, 1.0)))
POLICY = "128,1,1024,1,1,1|1,1,1,1,1,1;65536,16,1048576,16,8,12|drbd,plain|4.0|32.0"

needs_hbal = pytest.mark.skipif(
    shutil.which("hbal") is None, reason="hbal is not here (Debian package ganeti-htools)"
)
needs_hail = pytest.mark.skipif(
    not HAIL.exists(), reason="hail is not here (Debian package ganeti-htools)"
)


def report(load):
    data = {"cpu_number": 4, "cpus": [0.1, 0.2], "cpu_total": load}
    whole = {"name": "cpu-avg-load", "version": "B", "format_version": 1, "timestamp": 1}
    return json.dumps({**whole, "category": None, "kind": 0, "data": data}).encode()


class Daemon(http.server.ThreadingHTTPServer):
    """A monitoring daemon: *status* and *body* of what it says, after *delay* seconds."""

    daemon_threads = True

    def __init__(self, address, body, status=200, delay=0.0):
        super().__init__(address, Answer)
        self.body, self.status, self.delay = body, status, delay
        self.length = len(body)
        self.asked = []
        self.ended = threading.Event()
        # How long it takes to end is how often it looks whether it has to.
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def end(self):
        self.ended.set()
        self.shutdown()
        self.server_close()


class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        if self.server.ended.wait(self.server.delay):
            # Nobody listens any more, and to say so would be in the way of the next test.
            return
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(self.server.length))
        self.end_headers()
        self.wfile.write(self.server.body)

    def log_message(self, *_words):
        pass


@pytest.fixture
def daemons():
    """Return a function that starts a daemon; all are ended afterwards."""
    running = []

    def start(name, body, port=mond.PORT, **how):
        try:
            running.append(Daemon((name, port), body, **how))
        except OSError as error:
            pytest.skip(f"{name} port {port} cannot be served here: {error.strerror}")
        return running[-1]

    yield start
    for daemon in running:
        daemon.end()


def told(*words):
    """Return exit status, output and errors of one of htools' programs."""
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout, done.stderr


def told_by_us(command, words, capsys):
    """Return the same of our *command*, called in this process."""
    status = command.main(words)
    printed = capsys.readouterr()
    return status, printed.out, printed.err


BODIES = {
    "all answer": [report(load) for load in LOADS.values()],
    "one says something else": [report(3.5), b"garbage", report(1.0)],
    "one tells no load": [report(3.5), b'{"data": {"cpus": []}}', report(1.0)],
    "one is silent": [report(3.5), None, report(1.0)],
    "one lacks a field": [report(3.5), report(0.25).replace(b'"kind"', b'"sort"'), report(1.0)],
    "one tells more of the load": [
        report(3.5),
        report(0.25).replace(b'"cpus"', b'"more": 1, "cpus"'),
        report(1.0),
    ],
    "one has a negative load": [report(3.5), report(-0.25), report(1.0)],
}


def balanced_text():
    rng = random.Random(1)
    nodes = [f"{name}|65536|4096|40960|1000000|900000|16|N|u|1" for name in NAMES]
    rows = []
    for number in range(12):
        primary, secondary = rng.sample([NAMES[0], *NAMES], 2)
        if primary == secondary:
            secondary = NAMES[1]
        rows.append(
            f"i{number}|{rng.choice([1024, 2048])}|10240|{rng.choice([1, 2, 4])}|running|Y|"
            f"{primary}|{secondary}|drbd||1"
        )
    parts = [["g|u|preferred||"], nodes, rows, [], [f"|{POLICY}", f"g|{POLICY}"]]
    return "\n\n".join(["\n".join(lines) for lines in parts]) + "\n"


@needs_hbal
@pytest.mark.parametrize("bodies", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize("options", [[], ["--exit-on-missing-mond-data"]])
def test_hbal_balances_alike_by_what_the_daemons_tell(daemons, tmp_path, capsys, bodies, options):
    for name, body in zip(NAMES, bodies):
        if body is not None:
            daemons(name, body)
    path = tmp_path / "cluster.data"
    path.write_text(balanced_text())
    options = ["-t", str(path), "--mond=yes", "-v", "-v", "-p", "--print-instances", *options]
    assert told_by_us(hbal, ["--like-hbal", *options], capsys) == told("hbal", *options)


@needs_hail
@pytest.mark.parametrize("bodies", BODIES.values(), ids=BODIES)
def test_hail_places_alike_by_what_the_daemons_tell(daemons, tmp_path, capsys, bodies):
    for name, body in zip(NAMES, bodies):
        if body is not None:
            daemons(name, body)
    there = {f"i{number}": instance("rbd", (NAMES[number % 2],)) for number in range(4)}
    message = request(new("rbd"), {name: node() for name in NAMES}, there)
    path = tmp_path / "request.json"
    path.write_text(json.dumps(message))
    options = ["--mond=yes", "-p", str(path)]
    assert told_by_us(hail, options, capsys) == told(HAIL, *options)


def xen_report(loads):
    whole = {"name": "xen-cpu-avg-load", "version": "B", "format_version": 1, "timestamp": 1}
    return json.dumps({**whole, "category": None, "kind": 0, "data": loads}).encode()


XEN = {
    "all tell": [{"i0": 3.5, "i2": 0.25}, {"i1": 1, "i3": 2.0}, {}],
    "one tells of another's": [{"i0": 3.5, "i2": 0.2, "z": 4}, {"i1": 1.0, "i3": 2.0, "i0": 7}, {}],
    "one instance is left out": [{"i0": 3.5}, {"i1": 1.0, "i3": 2.0}, {}],
    "one load is a word": [{"i0": 3.5, "i2": "x"}, {"i1": 1.0, "i3": 2.0}, {}],
    "one tells a list": [[1], {"i1": 1.0, "i3": 2.0}, {}],
    "one is silent": [None, {"i1": 1.0, "i3": 2.0}, {}],
}


@needs_hail
@pytest.mark.parametrize("tell", XEN.values(), ids=XEN)
def test_hail_places_alike_by_the_load_of_each_instance_under_xen(daemons, tmp_path, capsys, tell):
    for name, loads in zip(NAMES, tell):
        if loads is not None:
            daemons(name, xen_report(loads))
    there = {f"i{number}": instance("rbd", (NAMES[number % 2],)) for number in range(4)}
    path = tmp_path / "request.json"
    path.write_text(json.dumps(request(new("rbd"), {name: node() for name in NAMES}, there)))
    options = ["--mond=yes", "--mond-xen", "-pname,pcnt,cload", str(path)]
    assert told_by_us(hail, options, capsys) == told(HAIL, *options)


def entry(name, *reports):
    return {"node": name, "reports": [json.loads(one) for one in reports]}


WHOLE = [entry(name, report(load)) for name, load in LOADS.items()]
UNDER_XEN = [entry(NAMES[0], xen_report({f"i{number}": number / 4 for number in range(12)}))]
KEPT = {
    "all": WHOLE,
    "one node lacks": WHOLE[:2],
    "one too many": [*WHOLE, entry("elsewhere", report(9.0))],
    "one tells no load": [
        *WHOLE[:2],
        entry(NAMES[2], report("none")),
    ],
    "other collectors, and one twice": [
        entry(NAMES[0], xen_report([1]), report(3.5), report(9.0)),
        *WHOLE[1:],
    ],
    "a node twice": [entry(NAMES[0], report(9.0)), *WHOLE],
    "of each instance too": [
        {**one, "reports": [*one["reports"], *other["reports"]]}
        for one, other in zip(WHOLE, [*UNDER_XEN, *(entry(n, xen_report({})) for n in NAMES[1:])])
    ],
    "nothing": [],
    "no list": {},
    "no object in it": [3],
    "no node": [{"reports": []}],
    "a node that is a number": [{"node": 3, "reports": []}],
    "no reports": [{"node": NAMES[0]}],
    "reports that are a word": [{"node": NAMES[0], "reports": "x"}],
    "a report that is a word": [{"node": NAMES[0], "reports": ["x"]}],
}


@needs_hbal
@pytest.mark.parametrize("kept", KEPT.values(), ids=KEPT)
@pytest.mark.parametrize("xen", [[], ["--mond-xen"]], ids=["nodes", "instances"])
def test_hbal_balances_alike_by_what_a_file_keeps_of_the_daemons(tmp_path, capsys, kept, xen):
    (tmp_path / "cluster.data").write_text(balanced_text())
    (tmp_path / "kept.json").write_text(json.dumps(kept))
    options = ["-t", str(tmp_path / "cluster.data"), "--mond=yes", "-p", "--print-instances", *xen]
    options += [f"--mond-data={tmp_path / 'kept.json'}", "--exit-on-missing-mond-data"]
    assert told_by_us(hbal, ["--like-hbal", *options], capsys) == told("hbal", *options)


@needs_hbal
def test_what_a_file_keeps_is_not_looked_at_unless_the_daemons_are_wanted(tmp_path, capsys):
    (tmp_path / "cluster.data").write_text(balanced_text())
    options = ["-t", str(tmp_path / "cluster.data"), "--mond-data=/nonexistent", "-p"]
    assert told_by_us(hbal, ["--like-hbal", *options], capsys) == told("hbal", *options)


def test_a_daemon_that_hangs_does_not_hold_up_the_answer(daemons):
    port = free_port()
    daemons("127.0.0.2", report(1.0), port)
    daemons("127.0.0.3", report(1.0), port, delay=20.0)
    said = []
    began = time.monotonic()
    loads = mond.processor_loads(["127.0.0.2", "127.0.0.3"], said.append, None, port, 1.0)
    assert loads is None
    assert time.monotonic() - began < 10
    assert "127.0.0.3" in said[0]


def test_many_nodes_are_asked_each_once(daemons):
    port = free_port()
    names = [f"127.0.0.{number}" for number in range(2, 60)]
    running = [daemons(name, report(number), port) for number, name in enumerate(names)]
    loads = mond.processor_loads(names, pytest.fail, None, port)
    page = "/1/report/default/cpu-avg-load"
    assert loads == {name: float(number) for number, name in enumerate(names)}
    assert all(daemon.asked == [page] for daemon in running)


@needs_hail
@pytest.mark.parametrize(("status", "length"), [(201, 0), (302, 0), (404, 0), (200, 1)])
def test_hail_takes_alike_what_is_answered_in_another_way(
    daemons, tmp_path, capsys, status, length
):
    for name, load in LOADS.items():
        daemons(name, report(load), status=status).length += length
    path = tmp_path / "request.json"
    path.write_text(json.dumps(request(new("rbd"), {name: node() for name in NAMES})))
    options = ["--mond=yes", "-p", str(path)]
    assert told_by_us(hail, options, capsys) == told(HAIL, *options)


def test_a_refusal_is_a_node_that_cannot_be_reached(daemons):
    port = free_port()
    daemons("127.0.0.2", report(1.0), port, status=404)
    said = []
    assert mond.processor_loads(["127.0.0.2"], said.append, None, port) is None
    assert said[0].startswith("Failed to contact node's 127.0.0.2 MonD")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
