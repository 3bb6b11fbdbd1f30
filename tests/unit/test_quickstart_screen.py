# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the quickstart shows: steps with seconds, messages, the reason of a failure."""

from __future__ import annotations

import io
import itertools
import re
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import quickstart_screen  # noqa: E402

OUTPUT = """\

PLAY [Check the variables] *****************************************************

TASK [Check the settings and the ports] ****************************************
included: /x/tasks/quickstart_check.yml for localhost

PLAY [Build a cluster of three nodes on this machine] **************************

TASK [holdfast.ha.storage : Make the folder] ***********************************
ok: [n1]

TASK [Drain a node, and bring it back] *****************************************
included: /x/tasks/quickstart_drain.yml for n1

TASK [Show where the services went] ********************************************
ok: [n1] =>
    msg: |-
        n1 is drained: test
        web runs on n2 now

TASK [Show the cluster] ********************************************************
ok: [n1] =>
    msg: a table that only the log has

TASK [Declare the services] ****************************************************
"""
FAILED = """\
fatal: [n1]: FAILED! => (item=web) =>
    changed: false
    msg: 'The cluster is not as asked after 60 s: Node n2 is suspect.'

PLAY RECAP *********************************************************************
"""


def shown(output, seconds=1.0):
    """Show *output*; each of its steps takes *seconds*."""
    stream = io.StringIO()
    screen = quickstart_screen.Screen(stream, itertools.count(step=seconds).__next__)
    for part in quickstart_screen.parts(output.splitlines(keepends=True)):
        screen.take(part)
    return screen, stream


def test_the_screen_has_each_step_with_its_seconds_and_the_messages_for_people():
    screen, stream = shown(OUTPUT)
    screen.end_step()
    assert [re.sub(r"^ +[0-9]+ s", "S", line) for line in stream.getvalue().splitlines()] == [
        "S  Check the variables",
        "S  Build a cluster of three nodes on this machine",
        "S  Drain a node, and bring it back",
        "         n1 is drained: test",
        "         web runs on n2 now",
    ]


def test_a_step_that_did_nothing_is_not_shown():
    screen, stream = shown(OUTPUT, seconds=0.1)
    screen.end_step()
    assert stream.getvalue().splitlines() == [
        "    0 s  Drain a node, and bring it back",
        "         n1 is drained: test",
        "         web runs on n2 now",
    ]


@pytest.mark.parametrize(
    "failed",
    [
        FAILED,
        FAILED.replace(" => (item=web)", ""),
        FAILED.replace("fatal: [n1]: FAILED! => (item=web)", "failed: [n1] (item=web)"),
    ],
)
def test_a_failure_is_shown_with_its_step_its_reason_and_the_log(failed, monkeypatch):
    busy = "The likely reason is that this machine is too busy: load 20 on 2 CPUs."
    monkeypatch.setattr(quickstart_screen, "why_busy", lambda proc: busy)
    screen, stream = shown(OUTPUT + failed)
    screen.fail(Path("/x/quickstart.log"))
    text = stream.getvalue()
    assert "FAILED in: Drain a node, and bring it back" in text
    assert "  The cluster is not as asked after 60 s: Node n2 is suspect." in text
    assert busy in text
    assert "/x/quickstart.log" in text and "./quickstart --remove" in text


def test_a_busy_machine_is_not_blamed_for_a_value_that_is_refused(monkeypatch):
    monkeypatch.setattr(quickstart_screen, "why_busy", lambda proc: "too busy")
    reason = "The cluster is not as asked after 60 s: Node n2 is suspect."
    screen, stream = shown(OUTPUT + FAILED.replace(reason, "cluster: a/b is not accepted"))
    screen.fail(Path("/x/quickstart.log"))
    assert "a/b is not accepted" in stream.getvalue()
    assert "too busy" not in stream.getvalue()


@pytest.mark.parametrize(
    ("load", "waited", "free", "said"),
    [
        ("0.50", 3.0, 4_000_000, ""),
        ("900.00", 3.0, 4_000_000, "load 900 on"),
        ("0.50", 61.0, 4_000_000, "waited for a CPU in 61 %"),
        ("0.50", 3.0, 100_000, "98 MiB of memory left"),
    ],
)
def test_a_starved_machine_is_named_as_the_reason(tmp_path, load, waited, free, said):
    (tmp_path / "pressure").mkdir()
    (tmp_path / "loadavg").write_text(f"{load} 0.40 0.30 1/200 4711\n")
    (tmp_path / "pressure/cpu").write_text(f"some avg10=0.00 avg60={waited:.2f} avg300=0.00\n")
    (tmp_path / "meminfo").write_text(f"MemTotal: 8000000 kB\nMemAvailable:   {free} kB\n")
    found = quickstart_screen.why_busy(tmp_path)
    assert said in found
    assert bool(found) is bool(said)


def test_a_machine_that_does_not_tell_its_load_is_not_blamed(tmp_path):
    assert quickstart_screen.why_busy(tmp_path) == ""


def test_what_the_screen_waits_for_is_in_the_playbook():
    names = set()
    for path in [ROOT / "playbooks/quickstart.yml", *ROOT.glob("playbooks/tasks/quickstart_*.yml")]:
        for one in yaml.safe_load(path.read_text(encoding="utf-8")):
            names |= {one["name"], *(task["name"] for task in one.get("tasks", ()))}
    assert {*quickstart_screen.STEPS, *quickstart_screen.SHOWN} <= names


def test_the_exit_status_is_that_of_the_playbook_and_the_log_has_its_output(tmp_path, capsys):
    log = tmp_path / "new" / "log"
    script = "echo 'PLAY [Check the variables] ***'; echo é; exit 4"
    assert quickstart_screen.main([str(log), "sh", "-c", script]) == 4
    assert log.read_text(encoding="utf-8") == "PLAY [Check the variables] ***\né\n"
    assert "FAILED in: Check the variables" in capsys.readouterr().out


def test_a_run_that_ends_before_its_first_task_is_told_with_the_last_line_of_its_log(tmp_path):
    log = tmp_path / "log"
    for content, told in (
        ("", "It printed nothing."),
        ("a\n[ERROR]: no memory\n\n", "[ERROR]: no memory"),
    ):
        log.write_text(content)
        screen, stream = shown("")
        screen.fail(log)
        assert stream.getvalue().splitlines()[1] == f"  {told}"
