# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The power switch of a machine: nothing of it survives, and nothing else is touched.

All with real processes, each a ``sleep`` for a time that names it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import (
    FenceError,
    InputError,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.machine import power

DEADLINE = 30.0


class Machines:
    """Folders of machines, and shell scripts that run for them."""

    def __init__(self, folder):
        self.folder = folder
        self.tag = f"{os.getpid()}"
        self.children = []
        for name in ("n1", "n10"):
            (folder / name).mkdir()
            (folder / name / "node.json").write_text("{}")

    def run(self, script, name="n1", number=1):
        """Run a script marked as of a machine, until *number* of its sleeps are there."""
        environment = {key: one for key, one in os.environ.items() if key != power.MARK}
        if name:
            environment[power.MARK] = str((self.folder / name).resolve())
        text = script.replace("SLEEP", f"sleep 9{self.tag}.")
        before = len(self.sleeps())
        child = subprocess.Popen(
            ["/bin/sh", "-c", text],
            env=environment,
            stdin=subprocess.DEVNULL,
            # Under nohup the tests ignore it, and so would all that they start.
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
        )
        self.children.append(child)
        until(lambda: len(self.sleeps()) >= before + number)
        return child.pid

    def sleeps(self):
        """Return the pids of our sleeps by what names them, zombies left out."""
        found = {}
        for entry in Path("/proc").iterdir():
            words = command_line(entry) if entry.name.isdigit() else []
            if words[:1] == ["sleep"] and words[1].startswith(f"9{self.tag}."):
                found[words[1].partition(".")[2]] = int(entry.name)
        return found

    def of(self, name):
        """Return what names the sleeps that belong to a machine."""
        members = power.processes((self.folder / name).resolve())
        return sorted(key for key, pid in self.sleeps().items() if pid in members)

    def end(self):
        """Kill all that is left."""
        for child in self.children:
            child.kill()
        while self.sleeps():
            for pid in self.sleeps().values():
                kill(pid)
            time.sleep(0.01)
        for child in self.children:
            child.wait()


def until(done):
    """Wait until something is so."""
    deadline = time.monotonic() + DEADLINE
    while not done():
        if time.monotonic() > deadline:
            raise RuntimeError("it did not come to be")
        time.sleep(0.005)


def command_line(entry):
    try:
        return (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
    except OSError:
        return []


def state(pid):
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def kill(pid, number=signal.SIGKILL):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


@pytest.fixture
def machines(tmp_path):
    found = Machines(tmp_path)
    yield found
    found.end()


HIDING = {
    "a plain child": "SLEEP1 & wait",
    "a session of its own": "setsid SLEEP1 & wait",
    "a double fork": "( ( SLEEP1 & ) & ); SLEEP2 & wait",
    "a double fork in a new session": "setsid sh -c '( SLEEP1 & )' & SLEEP2 & wait",
    "a cleared environment": "env -i SLEEP1 & wait",
    "a cleared environment below a cleared one": "env -i sh -c 'SLEEP1 & wait' & wait",
    "one that ignores signals": "trap '' HUP INT TERM; SLEEP1 & wait",
}


@pytest.mark.parametrize("script", HIDING.values(), ids=HIDING)
@pytest.mark.parametrize("frozen", [False, True], ids=["running", "frozen"])
def test_nothing_that_runs_for_a_machine_survives_its_power_off(machines, script, frozen):
    machines.run(script, number=1 + script.count("SLEEP2"))
    assert power.is_on(machines.folder, "n1")
    if frozen:
        power.freeze(machines.folder, "n1")
    power.power_off(machines.folder, "n1", DEADLINE)
    assert machines.sleeps() == {}
    assert not power.is_on(machines.folder, "n1")


def test_a_machine_that_goes_on_giving_birth_is_switched_off_all_the_same(machines):
    script = "n=0; while [ $n -lt 3000 ]; do n=$((n + 1)); setsid SLEEP$n & sleep 0.002; done"
    machines.run(script, number=5)
    power.power_off(machines.folder, "n1", DEADLINE)
    assert machines.sleeps() == {}


def test_what_runs_for_nobody_or_for_another_machine_is_not_touched(machines):
    machines.run("SLEEP1 & wait")
    machines.run("SLEEP2 & env -i SLEEP3 & wait", name="n10", number=2)
    machines.run("SLEEP4 & wait", name="")
    power.power_off(machines.folder, "n1", DEADLINE)
    assert sorted(machines.sleeps()) == ["2", "3", "4"]
    assert power.is_on(machines.folder, "n10")


def test_a_machine_that_was_started_from_another_one_is_not_part_of_it(machines):
    other = (machines.folder / "n10").resolve()
    script = f"{power.MARK}='{other}' sh -c 'SLEEP1 & env -i SLEEP2 & wait' & SLEEP3 & wait"
    machines.run(script, number=3)
    assert (machines.of("n1"), machines.of("n10")) == (["3"], ["1", "2"])
    power.power_off(machines.folder, "n1", DEADLINE)
    assert sorted(machines.sleeps()) == ["1", "2"]
    power.power_off(machines.folder, "n10", DEADLINE)
    assert machines.sleeps() == {}


def test_a_frozen_machine_is_on_and_goes_on_when_it_is_thawed(machines):
    machines.run("SLEEP1 & setsid SLEEP2 & wait", number=2)
    power.freeze(machines.folder, "n1")
    sleeps = machines.sleeps()
    until(lambda: {state(pid) for pid in sleeps.values()} == {"T"})
    assert power.is_on(machines.folder, "n1")
    power.thaw(machines.folder, "n1")
    until(lambda: {state(pid) for pid in sleeps.values()} == {"S"})


def test_a_zombie_is_off(machines):
    pid = machines.run("SLEEP1 & wait")
    power._signal(power.processes((machines.folder / "n1").resolve()), signal.SIGKILL)
    until(lambda: state(pid) == "Z")
    # What the zombie had started gets its signal a moment later.
    until(lambda: not power.is_on(machines.folder, "n1"))
    assert state(pid) == "Z"
    power.power_off(machines.folder, "n1", 0.0)


def test_what_cannot_be_killed_in_time_is_an_error_and_keeps_its_run_folder(machines, monkeypatch):
    pid = machines.run("exec SLEEP1")
    run = machines.folder / "n1" / "run"
    run.mkdir()
    monkeypatch.setattr(power, "_signal", lambda *_rest: None)
    with pytest.raises(FenceError) as caught:
        power.power_off(machines.folder, "n1", 0.05)
    assert str(caught.value) == (
        "Machine 'n1' cannot be switched off: 1 of its processes are still there after 0 s,"
        f" such as {pid}."
    )
    assert run.is_dir()


@pytest.mark.parametrize("name", ["n1", "with blank"])
def test_what_a_machine_kept_in_its_run_folder_is_lost_with_its_power(machines, name):
    folder = machines.folder / name
    folder.mkdir(exist_ok=True)
    (folder / "node.json").write_text("{}")
    run = power.run_directory(folder.resolve())
    run.mkdir()
    (run / "state").write_text("running")
    power.power_off(machines.folder, name, DEADLINE)
    assert not run.exists()
    assert (folder / "node.json").exists()


@pytest.mark.parametrize("name", ["", "n2", "n1/..", "../n1", "."])
@pytest.mark.parametrize(
    "act",
    [
        power.is_on,
        power.freeze,
        power.thaw,
        lambda folder, name: power.power_off(folder, name, DEADLINE),
        lambda folder, name: power.power_on(folder, name, DEADLINE),
    ],
    ids=["is on", "freeze", "thaw", "off", "on"],
)
def test_a_machine_that_is_not_there_is_refused_with_those_that_are(machines, act, name):
    with pytest.raises(InputError) as caught:
        act(machines.folder, name)
    assert (caught.value.option, caught.value.value) == ("plug", name)
    assert "one of the machines below" in str(caught.value)
    assert "(n1, n10)" in str(caught.value)


def test_the_mark_is_of_the_real_folder_even_by_a_link(machines):
    machines.run("SLEEP1 & wait")
    link = machines.folder.parent / f"{machines.folder.name}-link"
    link.symlink_to(machines.folder)
    assert power.is_on(link, "n1")
    power.power_off(link, "n1", DEADLINE)
    assert machines.sleeps() == {}


def test_a_machine_that_does_not_come_up_says_its_last_words(machines):
    with pytest.raises(FenceError) as caught:
        power.power_on(machines.folder, "n1", DEADLINE)
    assert str(caught.value).startswith("Machine 'n1' did not come up: holdfast: members: None")


def test_a_machine_that_cannot_even_be_started_is_one_sentence(machines):
    (machines.folder / "n1" / "console.log").mkdir()
    with pytest.raises(FenceError, match=r"Machine 'n1' cannot be started: .*console\.log"):
        power.power_on(machines.folder, "n1", DEADLINE)


def test_a_machine_that_is_on_is_not_started_again(machines):
    machines.run("SLEEP1 & wait")
    (machines.folder / "n1" / "ready").write_text("1\n")
    power.power_on(machines.folder, "n1", DEADLINE)
    assert not (machines.folder / "n1" / "console.log").exists()
    assert (machines.folder / "n1" / "ready").exists()


def test_only_the_machines_own_process_is_told_to_restart_its_daemons(machines):
    file = machines.folder / "n1" / "machine.pid"
    foreign = machines.run("exec SLEEP1", name="n10")
    for content in (str(foreign), "1", "nonsense", ""):
        file.write_text(content)
        power.restart_daemons(machines.folder, "n1")
    assert state(foreign) != "Z"
    own = machines.run("exec SLEEP2")
    file.write_text(f"{own}\n")
    power.restart_daemons(machines.folder, "n1")
    until(lambda: state(own) == "Z")
    assert state(foreign) != "Z"


def test_a_machine_goes_down_in_order_and_one_that_does_not_is_one_sentence(machines):
    power.shut_down(machines.folder, "n1", DEADLINE)
    own = machines.run("exec SLEEP1")
    (machines.folder / "n1" / "machine.pid").write_text(f"{own}\n")
    power.shut_down(machines.folder, "n1", DEADLINE)
    assert state(own) == "Z"
    stubborn = machines.run("trap '' TERM; SLEEP2 & wait; wait")
    (machines.folder / "n1" / "machine.pid").write_text(f"{stubborn}\n")
    with pytest.raises(FenceError, match="'n1' is still on its way down after 0 s"):
        power.shut_down(machines.folder, "n1", 0.2)


@pytest.mark.parametrize("marked", [True, False])
def test_a_daemon_dies_with_its_machine_and_only_there(monkeypatch, marked):
    asked = []

    class Library:
        @staticmethod
        def prctl(*arguments):
            asked.append(arguments)

    monkeypatch.setattr("ctypes.CDLL", lambda *_rest, **_more: Library)
    monkeypatch.delenv(power.MARK, raising=False)
    if marked:
        monkeypatch.setenv(power.MARK, "/srv/nodes/n1")
    power.die_with_parent()
    assert asked == ([(1, signal.SIGKILL, 0, 0, 0)] if marked else [])
