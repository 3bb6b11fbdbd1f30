# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A lab leaves nothing behind, however it ends; these tests run outside of a lab."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from testbed import lab
from testbed.node import wait_until


def has_no_process(group):
    """Return whether a control group is empty, or was removed by another lab meanwhile."""
    try:
        return "populated 0" in (group / "cgroup.events").read_text()
    except FileNotFoundError:
        return True


@pytest.mark.parametrize("who", ["starter", "janitor"])
def test_nothing_is_left_of_a_lab_whose_starter_or_janitor_is_killed(who, tmp_path):
    if lab.folder() is not None or lab.missing():
        pytest.skip(lab.missing() or "it runs outside of a lab only")
    words = [
        sys.executable,
        "-m",
        "testbed",
        "run",
        "--",
        "sh",
        "-c",
        "echo $HOLDFAST_LAB; sleep 1000",
    ]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parent.parent)}
    starter = subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True)
    place = Path(starter.stdout.readline().strip())
    group = next(
        one
        for one in (lab.CGROUP / "unified" / place.name, lab.CGROUP / place.name)
        if one.exists()
    )
    janitor = int(Path(f"/proc/{starter.pid}/task/{starter.pid}/children").read_text())
    os.kill(starter.pid if who == "starter" else janitor, signal.SIGKILL)
    starter.wait(timeout=60)
    if who == "janitor":
        wait_until(lambda: has_no_process(group), 20.0, "no process")
        lab.sweep()
    wait_until(lambda: not place.exists() and not group.exists(), 20.0, "nothing left")
