# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What fits and which nodes are rebooted together, beside the real hspace and hroller.

``HOLDFAST_HSPACE_CLUSTERS`` sets on how many random clusters hspace is asked (30).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.allocate.solution import (  # noqa: E501
    Options,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.capacity.capacity import (  # noqa: E501
    Size,
    fill,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.capacity.reboot_groups import (  # noqa: E501
    reboot_rounds,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.capacity.tiered import (  # noqa: E501
    fill_tiered,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.iallocator.request import (  # noqa: E501
    read_request,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.iallocator.text_format import (  # noqa: E501
    read_text,
    write_text,
)
from ansible_collections.holdfast.ha.tests.unit.placement.random_requests import random_request

CLUSTERS = int(os.environ.get("HOLDFAST_HSPACE_CLUSTERS", "30"))

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
    """Return the sizes and nodes of the new instances in the cluster that hspace saved.

    In which order equal nodes were taken is not compared.
    """
    rows = [line.split("|") for line in path.read_text().split("\n\n")[2].splitlines()]
    return sorted(
        (int(row[1]), int(row[2]), int(row[3]), *filter(None, row[6:8]))
        for row in rows
        if row[0].startswith("new-")
    )


def sizes_and_nodes(filled):
    return sorted((size.memory, size.disk, size.vcpus, *nodes) for size, nodes in filled.placed)


@needs_htools
@pytest.mark.parametrize("template", ["drbd", "plain", "rbd"])
def test_as_many_fit_as_hspace_says_of_the_same_sizes_and_in_the_same_places(tmp_path, template):
    compared = 0
    path, saved = tmp_path / "cluster.data", tmp_path / "out"
    for seed in range(CLUSTERS):
        text = text_of(seed)
        cluster, _warnings = read_text(text)
        path.write_text(text)
        command = ["hspace", "-t", path, "--machine-readable=yes", "-S", saved]
        command += [f"--disk-template={template}", "--standard-alloc=40960,2048,2"]
        command.append("--tiered-alloc=61440,16384,6")
        # It may be refused for want of nodes, or go on for minutes.
        done = run(command)
        if done is None or "HTS_FIN_INST_CNT" not in done.stdout:
            continue
        said = dict(line.split("=", 1) for line in done.stdout.split("\n") if "=" in line)
        use = cluster.policy.standard.spindles
        standard = fill(cluster, Size(2048, 40960, 2, 1, use), template, Options())
        assert f"{standard.reason.upper()}" == said["HTS_ALLOC_FAIL_REASON"], seed
        assert sizes_and_nodes(standard) == placed_in(tmp_path / "out.standard"), seed
        tiered = fill_tiered(cluster, [Size(16384, 61440, 6, 1, use)], template, Options())
        assert sizes_and_nodes(tiered) == placed_in(tmp_path / "out.tiered"), seed
        compared += 1
    assert compared >= CLUSTERS // 3


@needs_htools
@pytest.mark.parametrize(
    ("options", "offline"),
    [
        (["--ignore-non-redundant", "--offline-maintenance"], True),
        ([], False),
    ],
)
def test_there_are_never_more_rounds_than_hrollers(tmp_path, options, offline):
    path = tmp_path / "cluster.data"
    compared = 0
    for seed in range(150):
        text = text_of(seed)
        cluster, _warnings = read_text(text)
        path.write_text(text)
        done = run(["hroller", "-t", path, "--no-headers", "--force", *options])
        if done is None or done.returncode:
            continue
        ours = reboot_rounds(cluster, offline)
        assert not ours.stuck
        assert len(ours.rounds) <= len(done.stdout.split()), seed
        compared += 1
    assert compared >= 40
