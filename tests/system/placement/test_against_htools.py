# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What fits and which nodes are rebooted together, beside the real hspace and hroller.

Not compared, as the answers differ and it is not settled why: exclusive storage, clusters in
which some node cannot be lost to begin with, tiered placing (all of the corpus agree, some
random clusters with mirrored disks do not), and rounds with moves in several node groups.
"""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.capacity import (
    Size,
    fill,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.options import Options
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.reboot_groups import (
    reboot_rounds,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.redundancy import (
    not_redundant,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.request import (
    read_request,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.text_format import (
    read_text,
    write_text,
)
from ansible_collections.holdfast.ha.tests.unit.placement.random_requests import random_request

needs_htools = pytest.mark.skipif(
    shutil.which("hspace") is None or shutil.which("hroller") is None,
    reason="hspace and hroller are not here (Debian package ganeti-htools)",
)


def text_of(seed):
    cluster, _asked, _warnings = read_request(json.dumps(random_request(seed)), 4096)
    return write_text(cluster)


def run(command):
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=5, check=False)
    except subprocess.TimeoutExpired:
        return None


def placed_in(path):
    """Return the nodes of the new instances in the cluster that hspace saved.

    In which order equal nodes were taken is not compared.
    """
    rows = [line.split("|") for line in path.read_text().split("\n\n")[2].splitlines()]
    return sorted(tuple(filter(None, row[6:8])) for row in rows if row[0].startswith("new-"))


def nodes_of(filled):
    return sorted(nodes for _size, nodes in filled.placed)


@needs_htools
def test_as_many_fit_as_hspace_says_and_in_the_same_places(tmp_path):
    compared = 0
    path, saved = tmp_path / "cluster.data", tmp_path / "out"
    for seed in range(30):
        text = text_of(seed)
        cluster, _warnings = read_text(text)
        if not_redundant(cluster, range(len(cluster.nodes))):
            continue
        if any(node.exclusive for node in cluster.nodes):
            continue
        path.write_text(text)
        for template in ("drbd", "plain", "rbd"):
            command = ["hspace", "-t", path, "--machine-readable=yes", "-S", saved]
            command += [f"--disk-template={template}", "--standard-alloc=40960,2048,2"]
            # Tiered placing takes hspace long, and comes first: one small size is soon done.
            command.append("--tiered-alloc=256,64,1")
            done = run(command)
            if done is None or "HTS_FIN_INST_CNT" not in done.stdout:
                continue
            said = dict(line.split("=", 1) for line in done.stdout.split("\n") if "=" in line)
            size = Size(2048, 40960, 2, 1, cluster.policy.standard.spindles)
            standard = fill(cluster, size, template, Options())
            count = int(said["HTS_FIN_INST_CNT"]) - len(cluster.names)
            assert len(standard.placed) == count, (seed, template)
            assert standard.reason.upper() == said["HTS_ALLOC_FAIL_REASON"], (seed, template)
            assert nodes_of(standard) == placed_in(tmp_path / "out.standard"), (seed, template)
            compared += 1
    assert compared >= 10


@needs_htools
@pytest.mark.parametrize(
    ("options", "offline", "move"),
    [
        (["--ignore-non-redundant"], False, False),
        (["--ignore-non-redundant", "--offline-maintenance"], True, False),
        ([], False, True),
    ],
)
def test_there_are_never_more_rounds_than_hrollers(tmp_path, options, offline, move):
    path = tmp_path / "cluster.data"
    compared = 0
    for seed in range(150):
        text = text_of(seed)
        cluster, _warnings = read_text(text)
        if move and len({node.group for node in cluster.nodes}) > 1:
            continue
        path.write_text(text)
        done = run(["hroller", "-t", path, "--no-headers", "--force", *options])
        if done is None or done.returncode:
            continue
        ours = reboot_rounds(cluster, offline, move)
        assert not ours.stuck
        assert len(ours.rounds) <= len(done.stdout.split()), seed
        compared += 1
    assert compared >= 40
