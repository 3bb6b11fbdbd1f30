# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""``holdfast balance --like-hbal`` against the real hbal: everything that is printed, byte by byte.

``HOLDFAST_HBAL_CLUSTERS`` sets how many random clusters (400), ``HOLDFAST_HBAL_SEED`` the
first.  What is not compared stands in `hbal_differences`.
"""

from __future__ import annotations

import collections
import json
import os
import random
import shutil
import subprocess

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.cli.htools import hbal
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.iallocator.request import (  # noqa: E501
    read_request,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.iallocator.text_format import (  # noqa: E501
    write_text,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.model.cluster import (
    INSTANCE_STATES,
)
from ansible_collections.holdfast.ha.tests.unit.placement.clusters import (
    instance,
    new,
    node,
    request,
)
from ansible_collections.holdfast.ha.tests.unit.placement.random_clusters import uneven_cluster
from ansible_collections.holdfast.ha.tests.unit.placement.random_requests import random_request

COUNT = int(os.environ.get("HOLDFAST_HBAL_CLUSTERS", "150"))
FIRST = int(os.environ.get("HOLDFAST_HBAL_SEED", "0"))

WHOLE_RUNS = [(1, 20, 6)]
if os.environ.get("HOLDFAST_HBAL_LONG"):
    # Here hbal alone needs minutes.
    WHOLE_RUNS += [(2, 30, 4), (3, 40, 3)]

pytestmark = pytest.mark.skipif(
    shutil.which("hbal") is None, reason="hbal is not here (Debian package ganeti-htools)"
)


class Both:
    """Both programs, asked the same in turn; ours in this process."""

    def __init__(self, capsys, folder):
        self.capsys = capsys
        self.path = folder / "cluster.data"

    def __call__(self, text, options):
        self.path.write_text(text)
        command = ["hbal", "-t", str(self.path), *options]
        # Not as text: Python would take a carriage return for the end of a line.
        done = subprocess.run(
            command,
            capture_output=True,
            timeout=600,
            check=False,
            env={**os.environ, "LC_ALL": "C.UTF-8"},
        )
        status = hbal.main(["--like-hbal", "-t", str(self.path), *options])
        printed = self.capsys.readouterr()
        theirs = (done.returncode, done.stdout.decode(), done.stderr.decode())
        return theirs, (status, printed.out, printed.err)


@pytest.fixture
def both(capsys, tmp_path):
    return Both(capsys, tmp_path)


def odd_cluster(seed):
    """Return a small cluster full of oddities: empty, out of service, of several groups."""
    cluster, _asked, _warnings = read_request(json.dumps(random_request(seed)), 4096)
    return write_text(cluster)


SIZES = (1, 3, 4, 5, 6, 9, 14)
"""The fields of a node that say how much it has of something, and how fast it is."""


def cluster_of_wrong_sizes(seed):
    """Return a cluster in which some nodes have nothing of something, or less.

    Its instances are in every state that there is.
    """
    rng = random.Random(f"sizes {seed}")
    parts = uneven_cluster(seed, rng.choice([0, 3, 4])).split("\n\n")
    nodes = [line.split("|") for line in parts[1].splitlines()]
    for fields in nodes:
        if rng.random() < 0.25:
            fields[rng.choice(SIZES)] = rng.choice(["0", "-1"])
    instances = [line.split("|") for line in parts[2].splitlines()]
    for fields in instances:
        if rng.random() < 0.3:
            fields[4] = rng.choice(INSTANCE_STATES)
    parts[1:3] = ["\n".join(["|".join(line) for line in part]) for part in (nodes, instances)]
    return "\n\n".join(parts)


FLAGS = [
    "--no-disk-moves",
    "--no-instance-moves",
    "--restricted-migration",
    "--evac-mode",
    "--ignore-soft-errors",
    "--ignore-dynu",
    "--print-instances",
    "--exclusion-tags=service",
    "-C",
    "-C",
    "-p",
    "-v",
    "-v",
    "-v",
    "-q",
    "-q",
]
VALUES = {
    "-l": ["0", "1", "3", "8", "x"],
    "-e": ["1", "0.5", "1e-3", "-1"],
    "-g": ["0", "0.1", "1e-3"],
    "--min-gain-limit": ["10", "0.5", "100"],
    "--max-cpu": ["2.5", "64", "0"],
    "--min-disk": ["0.1", "0.5"],
}


def some_options(seed, text):
    """Return random options for the cluster *text*, some with a name that it lacks."""
    rng = random.Random(f"options {seed}")
    parts = [
        [line.split("|")[0] for line in part.splitlines()] for part in text.split("\n\n", 3)[:3]
    ]
    groups, nodes, instances = parts + [[]] * (3 - len(parts))
    options = [flag for flag in FLAGS if rng.random() < 0.1]
    for name, values in VALUES.items():
        if rng.random() < 0.12:
            options += [name, rng.choice(values)]
    if rng.random() < 0.9 and len(groups) > 1:
        options += ["-G", rng.choice(groups)]
    if rng.random() < 0.15:
        options += ["-O", rng.choice([*nodes, "nowhere"])]
    for name in ("--select-instances", "--exclude-instances"):
        if rng.random() < 0.1 and instances:
            chosen = rng.sample(instances, min(3, len(instances)))
            chosen = [each.partition(".")[0] if rng.random() < 0.3 else each for each in chosen]
            options.append(f"{name}={','.join(chosen)}{',nothing' if rng.random() < 0.1 else ''}")
    return options


@pytest.mark.parametrize("cluster", [odd_cluster, uneven_cluster])
def test_everything_that_hbal_prints_is_printed_alike(both, cluster):
    moved = 0
    for seed in range(FIRST, FIRST + COUNT):
        text = cluster(seed)
        options = some_options(seed, text)
        theirs, ours = both(text, options)
        assert ours == theirs, (seed, options)
        moved += " => " in theirs[1]
    assert COUNT < 100 or moved > COUNT // 10


def test_nodes_with_nothing_of_something_are_no_obstacle(both):
    scores = collections.Counter()
    for seed in range(FIRST, FIRST + COUNT):
        text = cluster_of_wrong_sizes(seed)
        theirs, ours = both(text, ["-l", "4", "-p", *some_options(seed, text)])
        assert ours == theirs, seed
        scores["Initial score: NaN" in theirs[1]] += 1
        assert hbal.main(["-t", str(both.path), "-l", "4", "--json"]) < 2
        both.capsys.readouterr()
    assert COUNT < 100 or min(scores[True], scores[False]) > COUNT // 10


def test_policies_that_allow_no_cores_at_all_are_violated_alike(both, tmp_path):
    # In a request only: in the text format nodes have the usual ratio.
    message = request(new(), {name: node() for name in "ab"}, {"i": instance("rbd", ("a",))})
    message["nodegroups"]["g"]["ipolicy"]["vcpu-ratio"] = -1
    path = tmp_path / "request.json"
    path.write_text(json.dumps(message))
    done = subprocess.run(["hbal", "-I", path], capture_output=True, text=True, check=False)
    assert hbal.main(["--like-hbal", "-I", str(path)]) == done.returncode == 0
    line = "The cluster contains 2 policy-violating nodes.\n"
    assert line in done.stdout
    assert line in both.capsys.readouterr().out


@pytest.mark.parametrize("options", [[], ["-q"], ["-q", "-q"], ["-q", "-q", "-q"], ["-v"]])
def test_data_that_do_not_fit_together_are_told_as_loudly(both, options):
    theirs, ours = both(cluster_of_wrong_sizes(5), ["-l", "1", *options])
    assert ours == theirs
    assert ("inconsistent data" in theirs[2]) == (options != ["-q"])


@pytest.mark.parametrize(("seed", "size", "per_node"), WHOLE_RUNS)
def test_a_whole_run_on_up_to_forty_nodes_is_reproduced_move_by_move(both, seed, size, per_node):
    theirs, ours = both(uneven_cluster(seed, size, per_node, odd=False), ["-C"])
    assert ours == theirs
    assert theirs[1].count(" => ") > 20


def test_the_first_moves_among_a_hundred_nodes_are_hbals(both):
    theirs, ours = both(uneven_cluster(4, 100, 4, plain=True), ["-l", "1"])
    assert ours == theirs
    assert " => " in theirs[1]


def test_loads_from_a_file_decide_alike(both, tmp_path):
    rng = random.Random(5)
    loads = tmp_path / "loads"
    for seed in range(FIRST, FIRST + 20):
        text = uneven_cluster(seed)
        names = [line.split("|")[0] for line in text.split("\n\n")[2].splitlines()]
        lines = [
            " ".join([name, *[f"{rng.random() * 3:.3f}" for _load in range(4)]])
            for name in names
            if rng.random() < 0.8
        ]
        loads.write_text("\n".join(lines) + "\n")
        theirs, ours = both(text, ["-U", str(loads), "-v", "-v"])
        assert ours == theirs, seed


@pytest.mark.parametrize(
    "text",
    [
        "inst0000.example.com 1 2 3\n",
        "x 1 2 3 y\n",
        "x 1 2 3 4 5\n",
        "\n",
        "x 1 2 3 -4.5e1\n",
        "inst0000.example.com 1e400 -1e-4 0.0005 2.5e-4\n",
        "",
        "inst0000.example.com\t1 2 3 4\n",
        " inst0000.example.com 1 2 3 4\n",
        "inst0000.example.com 1 2  3 4\n",
        "inst0000.example.com 1 2 3 4\r\n",
        "inst0000.example.com 0x10 (2) -3 1e\n",
        "inst0000.example.com 0x10 (2) -3 1e1\n",
        "inst0000.example.com NaN 1 1 1\n",
        "inst0000.example.com 1 Infinity 1 1\n",
    ],
)
@pytest.mark.parametrize("options", [[], ["-v", "-v"], ["--ignore-dynu"]])
def test_what_is_wrong_with_a_file_of_loads_is_said_alike(both, tmp_path, text, options):
    loads = tmp_path / "loads"
    loads.write_text(text)
    theirs, ours = both(uneven_cluster(6), ["-U", str(loads), "-l", "1", "-p", *options])
    assert ours == theirs


def test_the_file_of_commands_is_the_same(both, tmp_path):
    written = []
    for seed in range(FIRST, FIRST + 20):
        path = tmp_path / "commands"
        theirs, ours = both(uneven_cluster(seed), ["-l", "6", f"-C{path}"])
        assert ours == theirs
        mine = path.read_text()
        command = ["hbal", "-t", str(both.path), "-l", "6", f"-C{path}"]
        subprocess.run(command, capture_output=True, timeout=60, check=True)
        assert mine == path.read_text()
        written.append(mine)
    assert any("replace-disks" in text for text in written)


@pytest.mark.parametrize(
    "options",
    [
        ["-G", "nothing"],
        ["-O", "nothing,node000"],
        ["--priority=x"],
        ["--max-cpu=-1"],
        ["-e", "x"],
        ["-l", "1.5"],
        ["-g", "nan"],
        ["-e", "1e400"],
        ["--mond=x"],
        ["name"],
        ["-q", "-q"],
        ["-l", "x", "-l3"],
        ["-l3", "-ex", "-gy", "--priority=z"],
        ["--max-cpu=0", "--max-cpu=3"],
        ["--mond=x", "-lx"],
        ["--min-gain-limit=x", "--mond=x"],
        ["--priority=x", "--priority=low"],
        ["name", "--min-disk=x"],
    ],
)
def test_what_is_wrong_with_the_options_is_said_alike(both, options):
    theirs, ours = both(uneven_cluster(7), options)
    assert ours == theirs


NUMBERS = (
    *("5", "-5", "5x", "1_0", "5.", ".5", "+1", "0x10", "0XfG", "0o17", "0o8", "0b11", "0x"),
    *("(5)", "((5)", "((-5))", "(-5)x", "-(5)", "--5", "-.5", "5'", "5,6", "0x1.8", "5-", "-"),
    *("NaN", "-NaN", "(NaN)", "NaN5", "nan", "Infinity", "-Infinity", "1e3", "1E+2", "1e", "1e+"),
    *("1.5e-x", "1.0", "1.0.0", "1e400", "\u0665", "5\u00e9", "", " ", "5 ", " 5", "- 5", "-\t5"),
    *("( 5 )", "( - 5 ) ", "5\r", "\u00a05", "\u20285", "\x1c5"),
)


@pytest.mark.parametrize("option", ["-l", "-g", "-e", "--min-gain-limit=", "--max-cpu="])
def test_numbers_are_read_alike_in_options(both, option):
    text = uneven_cluster(7)
    for number in NUMBERS:
        options = ["-l1", *([option + number] if number else [option.rstrip("="), ""])]
        theirs, ours = both(text, options)
        assert ours == theirs, number
        if number != "--5":
            # Our own plan ends as well, whatever is no number.
            assert hbal.main(["-t", str(both.path), *options]) == ours[0]
            both.capsys.readouterr()


@pytest.mark.parametrize(
    ("section", "field"), [(1, 3), (1, 5), (1, 6), (1, 14), (2, 1), (2, 10), (4, 4), (4, 5)]
)
def test_numbers_are_read_alike_in_the_text_format(both, section, field):
    parts = [part.split("\n") for part in uneven_cluster(7).split("\n\n")]
    fields = parts[section][0].split("|")
    for number in NUMBERS:
        parts[section][0] = "|".join([*fields[:field], number, *fields[field + 1 :]])
        text = "\n\n".join(["\n".join(part) for part in parts])
        theirs, ours = both(text, ["-l1", "-p"])
        assert ours == theirs, number


def test_the_files_that_are_saved_are_the_same(both, tmp_path):
    for seed in range(FIRST, FIRST + 15):
        ours, theirs = tmp_path / "ours", tmp_path / "theirs"
        both(uneven_cluster(seed), ["-l", "5", "-S", str(ours)])
        mine = [(tmp_path / f"ours.{ending}").read_text() for ending in ("original", "balanced")]
        command = ["hbal", "-t", str(both.path), "-l", "5", "-S", str(theirs)]
        subprocess.run(command, capture_output=True, timeout=60, check=True)
        for ending, text in zip(("original", "balanced"), mine):
            assert text == (tmp_path / f"theirs.{ending}").read_text(), (seed, ending)
