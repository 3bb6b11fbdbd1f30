# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Our allocator against the real hail: random requests of every kind, and wrong ones.

``HOLDFAST_HAIL_REQUESTS`` sets how many (2000), ``HOLDFAST_HAIL_SEED`` the first.
"""

from __future__ import annotations

import collections
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.cli.htools import (
    hail as htools_hail,
)
from ansible_collections.holdfast.ha.tests.system.placement.differences import Reply, explain
from ansible_collections.holdfast.ha.tests.unit.placement import clusters
from ansible_collections.holdfast.ha.tests.unit.placement.random_requests import random_request

HAIL = Path("/usr/lib/ganeti/iallocators/hail")
COUNT = int(os.environ.get("HOLDFAST_HAIL_REQUESTS", "2000"))
FIRST = int(os.environ.get("HOLDFAST_HAIL_SEED", "0"))
ODD_VALUES = [None, True, 0, -1, -5, 1, 1.5, 10**6, "", "x", "up", "drbd", [], ["x"], {}, {"a": 1}]

needs_hail = pytest.mark.skipif(
    not HAIL.exists(), reason="hail is not here (Debian package ganeti-htools)"
)


def hail(text, options=()):
    done = subprocess.run(
        [HAIL, *options, "-"], input=text, capture_output=True, text=True, timeout=60, check=False
    )
    return Reply(done.returncode, done.stdout, done.stderr)


class Asked:
    """Our command in this process, with a request on its standard input."""

    def __init__(self, capsys, monkeypatch, tmp_path):
        self.capsys = capsys
        self.path = tmp_path / "request.json"

    def __call__(self, text, options=()):
        self.path.write_text(text)
        status = htools_hail.main([*options, str(self.path)])
        printed = self.capsys.readouterr()
        return Reply(status, printed.out, printed.err)


@pytest.fixture
def ours(capsys, monkeypatch, tmp_path):
    return Asked(capsys, monkeypatch, tmp_path)


def some_options(seed):
    rng = random.Random(seed)
    known = ("--ignore-soft-errors", "--no-capacity-checks", "--static-kvm-node-memory=0")
    return [option for option in known if rng.random() < 0.12]


@needs_hail
def test_every_answer_is_hails_or_differs_for_a_known_reason(ours):
    unexplained = []
    observed = collections.Counter()
    for seed in range(FIRST, FIRST + COUNT):
        request = random_request(seed)
        text, options = json.dumps(request), some_options(seed)
        theirs, mine = hail(text, options), ours(text, options)
        observed[request["request"]["type"]] += 1
        if theirs != mine:
            reason = explain(theirs, mine, request)
            observed[f"different: {reason}"] += 1
            if reason is None:
                unexplained.append((seed, theirs, mine))
    sys.stdout.write(f"{dict(observed)}\n")
    assert not unexplained, unexplained[:3]
    assert COUNT < 500 or len(observed) >= 6


SIZES = (
    "total_memory",
    "free_memory",
    "total_disk",
    "free_disk",
    "total_cpus",
    "reserved_cpus",
    "total_spindles",
    "free_spindles",
)
RATIOS = ("vcpu-ratio", "spindle-ratio")


def take_away(request, seed):
    """Let some nodes of *request* have nothing of something, or less."""
    rng = random.Random(f"sizes {seed}")
    for node in request["nodes"].values():
        if rng.random() < 0.3:
            holder, key = rng.choice(
                [(node, key) for key in SIZES] + [(node["ndparams"], "spindle_count")]
            )
            holder[key] = rng.choice([0, 0, -1])
    for group in request["nodegroups"].values():
        if rng.random() < 0.05:
            group["ipolicy"][rng.choice(RATIOS)] = rng.choice([0, -1])


@needs_hail
def test_nodes_with_nothing_of_something_get_hails_answer(ours):
    undefined = 0
    for seed in range(FIRST, FIRST + COUNT // 5):
        request = random_request(seed)
        take_away(request, seed)
        text, options = json.dumps(request), some_options(seed)
        theirs, mine = hail(text, options), ours(text, options)
        assert theirs == mine or explain(theirs, mine, request), (seed, theirs, mine)
        undefined += "score: NaN" in mine.output
    assert COUNT < 500 or undefined > COUNT // 100


@needs_hail
def test_instances_whose_nodes_are_one_and_the_same_get_hails_answer(ours):
    for seed in range(FIRST, FIRST + COUNT // 20):
        request = random_request(seed)
        rng = random.Random(f"same {seed}")
        for instance in request["instances"].values():
            if rng.random() < 0.15:
                instance["nodes"] = instance["nodes"][:1] * 2
        text, options = json.dumps(request), [*some_options(seed), "-p"]
        theirs, mine = hail(text, options), ours(text, options)
        assert theirs == mine or explain(theirs, mine, request), (seed, theirs, mine)


def spoil(request, seed):
    """Put something that does not belong there into one place of *request*."""
    rng = random.Random(seed)
    places = list(inside(request))
    holder, key = rng.choice(places)
    if rng.random() < 0.2:
        del holder[key]
    else:
        holder[key] = rng.choice(ODD_VALUES)


def inside(value):
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, part in list(pairs):
        yield value, key
        if isinstance(part, (dict, list)):
            yield from inside(part)


@needs_hail
def test_a_request_with_something_wrong_in_it_gets_hails_words(ours):
    unexplained = []
    for seed in range(FIRST, FIRST + COUNT // 5):
        request = random_request(seed)
        spoil(request, seed)
        text = json.dumps(request)
        theirs, mine = hail(text), ours(text)
        if theirs != mine and explain(theirs, mine) is None:
            unexplained.append((seed, theirs, mine))
    assert not unexplained, unexplained[:3]


@needs_hail
@pytest.mark.parametrize(
    "options",
    [
        ["--static-kvm-node-memory=x", "--static-kvm-node-memory=5"],
        ["--static-kvm-node-memory=-5", "-p"],
        ["--mond=x", "--static-kvm-node-memory=y"],
        ["--mond="],
        *[
            [f"--static-kvm-node-memory={text}"]
            for text in ("5x", "1_0", "5 ", "0x10", "(5)", "- 5", "1e3", "+1", "NaN", "")
        ],
        *[
            [f"--simulate={groups}"]
            for groups in (
                "p,3x,900g,64g,8",
                "p,(3),0x100g,64g,8",
                "p,3,900g,(64)g,8 ",
                "p,3,9.5g,64g,8",
                "p,3,- 9 g,64g,8",
                "p,3,NaN,64g,8",
                "p,3,(9g,64g,8",
                "p,3,9_g,64g,8",
                "p,3,999999999999999999m,64g,8",
                "(p),3,900g,64g,8",
                *[
                    f"p,3,900g,64g,8,( 2 ),{truth}"
                    for truth in (
                        "(True)",
                        " ( False )",
                        "True ",
                        "(True)x",
                        "(True",
                        "Truex",
                        "()",
                    )
                ],
            )
        ],
        ["--simulate=p,3,900g,64g,8", "--simulate=p,2,900g,64g,8", "-p"],
        ["--simulate=p,3,900g,64g,x", "--simulate=p,y,900g,64g,8"],
        ["-pname,,fqdn"],
        ["-p+,name"],
        ["-p++name,"],
        ["-p"],
    ],
)
def test_options_are_read_alike(ours, options):
    nodes = {name: clusters.node(free_memory=60000) for name in ("a.example.com", "b.example.com")}
    text = json.dumps(clusters.request(clusters.new("plain"), nodes, enabled_hypervisors=["kvm"]))
    assert ours(text, options) == hail(text, options)


@needs_hail
@pytest.mark.parametrize(
    "options",
    [
        ["--foo=x"],
        ["-Z", "--foo"],
        ["--foo", "--save"],
        ["--foo", "--m", "-Y"],
        ["-V=1"],
        ["-Zv-Y"],
    ],
)
def test_unknown_options_are_told_alike_after_what_is_wrong_with_others(ours, options):
    text = json.dumps(clusters.request(clusters.new(), {}))
    theirs, mine = hail(text, options), ours(text, options)
    assert theirs.status == mine.status == 2
    unknown = [line for line in theirs.errors.splitlines() if "unrecognized" in line]
    assert unknown == [line for line in mine.errors.splitlines() if "unrecognized" in line]


@needs_hail
def test_the_text_format_that_hail_saves_is_read_and_written_alike(tmp_path):
    for seed in range(FIRST, FIRST + 40):
        request = tmp_path / "request.json"
        request.write_text(json.dumps(random_request(seed)))
        # It may die of its second file, written after the first.
        subprocess.run(
            [HAIL, "-S", tmp_path / "theirs", request], capture_output=True, check=False, timeout=60
        )
        htools_hail.main(["-S", str(tmp_path / "ours"), str(request)])
        theirs = (tmp_path / "theirs.pre-ialloc").read_text()
        assert (tmp_path / "ours.pre-ialloc").read_text() == theirs


@needs_hail
def test_the_cluster_after_the_answer_is_shown_and_saved_alike(ours, tmp_path):
    path, compared = tmp_path / "c.post-ialloc", 0
    options = ["-p+plist,slist,peermap,ptags,idx", "-S", str(tmp_path / "c")]
    for seed in range(FIRST, FIRST + 100):
        request = random_request(seed)
        text = json.dumps(request)
        replies, saved = [], []
        for asked in (hail, ours):
            path.unlink(missing_ok=True)
            replies.append(asked(text, options))
            saved.append(path.read_text() if path.exists() else "")
        if "CallStack" not in replies[0].errors and not explain(*replies, request):
            assert replies[0] == replies[1], seed
            assert saved[0] == saved[1], seed
            compared += 1
    assert compared >= 90


@needs_hail
def test_the_cluster_can_come_from_a_text_file_or_be_made_up(ours, tmp_path):
    for seed in range(FIRST, FIRST + 60):
        request = random_request(seed)
        (tmp_path / "request.json").write_text(json.dumps(request))
        htools_hail.main(["-S", str(tmp_path / "c"), str(tmp_path / "request.json")])
        ours.capsys.readouterr()
        text = json.dumps(request)
        for options in (["-t", str(tmp_path / "c.pre-ialloc")], ["--simulate=p,4,900g,64g,8"]):
            theirs, mine = hail(text, options), ours(text, options)
            assert theirs == mine or explain(theirs, mine), (seed, options)
