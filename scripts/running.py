# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How stages of ``./run_tests`` are run: one after the other in lanes, and the summary."""

from __future__ import annotations

import contextlib
import io
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TextIO

import workplace
from share import WHOLE, Share

COMMAND_DEADLINE = 5000.0
"""Seconds after which a command counts as hung.  One that gets only what CPU time is left over ends
last of all, after an hour on a slow machine."""

SHOWN_AGAIN = 50
"""How many lines of a stage that failed are shown again before the summary: its own stand hours of
output above it."""

LEFT_OVER = 19
"""The nice value of a command that is to get out of the way of all others."""

SKIPPED_LINE = re.compile(
    r"^(?:SKIPPED \[\d+\] (?P<test>.*)"
    r"|WARNING: (?P<tool>(?:Skipping|Excluding) .*)"
    r"|(?P<all>All targets skipped\.))$"
)
"""How pytest (``-rs``) and ansible-test say that they left something out."""


Stage = Callable[["Run"], None]
"""A function that runs commands; its name and first line are what is shown of it."""


class StageFailed(Exception):
    """A stage found something wrong; the text says what."""


class StageSkipped(Exception):
    """A stage cannot run here; the text says why."""


def _last_lines() -> deque[str]:
    """Return what keeps the lines that are shown again."""
    return deque(maxlen=SHOWN_AGAIN)


@dataclass
class Run:
    """One run of the tests: where things lie, and what the current stage skipped."""

    scratch: Path
    environment: Mapping[str, str]
    stages: frozenset[Stage] = frozenset()
    """All stages of this run."""
    share: Share = WHOLE
    """What is played of the stages that take long."""
    skipped: list[str] = field(default_factory=list)
    said: deque[str] = field(default_factory=_last_lines)
    """The last lines of the current stage."""
    out: TextIO = sys.stdout
    nice: int = 0
    """The nice value of its commands."""
    process: subprocess.Popen[str] | None = None
    ended: bool = False
    """Whether it was told to end, so that nothing more may begin."""
    cpu: float = 0.0
    """Seconds of CPU that the commands of the current stage took, with all that they waited for."""

    @property
    def collection(self) -> Path:
        """The copy of the checkout, on which most tools run."""
        return workplace.collection(self.scratch)

    @property
    def python_version(self) -> str:
        """The version of the test tools' Python as ansible-test names it, such as 3.11."""
        return f"{sys.version_info[0]}.{sys.version_info[1]}"

    def command(
        self, *words: str | Path, folder: Path | None = None, **environment: str | Path
    ) -> None:
        """Run a command, show what it says, note what it skipped; raise ``StageFailed``."""
        arguments = [str(word) for word in words]
        if self.ended:
            raise StageFailed(f"not begun any more: {_shortened(arguments)}")
        process = self.process = subprocess.Popen(
            arguments,
            cwd=folder or self.collection,
            env={**self.environment, **{name: str(value) for name, value in environment.items()}},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        _set_nice(process.pid, self.nice)
        if self.ended:
            # It was told so just now.
            self.kill()
        reader = threading.Thread(target=self._read, args=(process,), daemon=True)
        reader.start()
        try:
            status = self._await(process)
        except BaseException:
            self.kill()
            raise
        if status is None:
            self.kill()
            text = f"no end after {COMMAND_DEADLINE:.0f} s: {_shortened(arguments)}"
            raise StageFailed(text)
        reader.join(5.0)
        if status != 0:
            raise StageFailed(f"exit status {status}: {_shortened(arguments)}")

    def python(
        self, *words: str | Path, folder: Path | None = None, **environment: str | Path
    ) -> None:
        """Run a command of the test tools' Python, such as ``-m pytest``."""
        self.command("python", *words, folder=folder, **environment)

    def end(self) -> None:
        """Let nothing more begin, and kill the command that runs."""
        self.ended = True
        self.kill()

    def kill(self) -> None:
        """Kill the command that runs, with all that it has started."""
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)

    def _await(self, process: subprocess.Popen[str]) -> int | None:
        """Return the exit status of a command, None after its deadline; count its CPU time."""
        until = time.monotonic() + COMMAND_DEADLINE
        while time.monotonic() < until:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                process.returncode = os.waitstatus_to_exitcode(status)
                self.cpu += usage.ru_utime + usage.ru_stime
                return process.returncode
            time.sleep(0.05)
        return None

    def _read(self, process: subprocess.Popen[str]) -> None:
        for line in process.stdout or ():
            self.out.write(line)
            self.out.flush()
            self.said.append(line)
            match = SKIPPED_LINE.match(line.rstrip())
            if match:
                self.skipped.append(match["test"] or match["tool"] or match["all"])


@dataclass(frozen=True)
class Outcome:
    """How one stage ended: passed, skipped or failed, after so many seconds, and why.

    *cpu* is what its commands took of both cores, in seconds; *said* is the end of its output.
    """

    stage: str
    word: str
    seconds: float
    cpu: float = 0.0
    why: str = ""
    skipped: Sequence[str] = ()
    said: str = ""


@dataclass(frozen=True)
class Lane:
    """Stages that run one after the other beside those of no lane.

    *nice* is the nice value of their commands.
    """

    stages: Collection[Stage]
    nice: int = 0


class Beside:
    """The stages of a lane while they run; what they print is shown once all have ended."""

    def __init__(self, stages: Sequence[Stage], run: Run, nice: int, no_skips: bool) -> None:
        """Begin the first stage."""
        self._run = replace(
            run, skipped=[], said=_last_lines(), out=io.StringIO(), nice=nice, process=None
        )
        self._outcomes: list[Outcome] = []
        self._thread = threading.Thread(target=self._go, args=(stages, no_skips), daemon=True)
        self._thread.start()

    def _go(self, stages: Sequence[Stage], no_skips: bool) -> None:
        for stage in stages:
            try:
                outcome = outcome_of(stage, self._run, no_skips)
            except Exception as error:
                # Shown with the others, which all ran meanwhile.
                outcome = Outcome(stage.__name__, "failed", 0.0, why=repr(error))
            self._outcomes.append(outcome)

    def outcomes(self) -> list[Outcome]:
        """Wait for the end of all stages, show their output, and return how each ended."""
        self._thread.join()
        assert isinstance(self._run.out, io.StringIO)
        sys.stdout.write(self._run.out.getvalue())
        return self._outcomes

    def end(self) -> None:
        """End the stage that still runs: the whole run is given up."""
        self._run.end()


def outcomes_of(
    stages: Sequence[Stage], lanes: Sequence[Lane], run: Run, no_skips: bool
) -> list[Outcome]:
    """Run the stages in their order; a lane begins where its first stage would.

    Stages that are all of one lane have nothing beside which to run.
    """
    if any(all(stage in lane.stages for stage in stages) for lane in lanes):
        lanes = ()
    beside: list[Beside] = []
    begun: set[Lane] = set()
    outcomes = []
    try:
        for stage in stages:
            lane = next((one for one in lanes if stage in one.stages), None)
            if lane is None:
                outcomes.append(outcome_of(stage, run, no_skips))
            elif lane not in begun:
                begun.add(lane)
                its_own = [one for one in stages if one in lane.stages]
                names = ", ".join(one.__name__ for one in its_own)
                print(f"\n=== begins beside the others, shown at the end: {names}", flush=True)
                beside.append(Beside(its_own, run, lane.nice, no_skips))
        return [*outcomes, *(outcome for one in beside for outcome in one.outcomes())]
    finally:
        for one in beside:
            one.end()


def outcome_of(stage: Stage, run: Run, no_skips: bool) -> Outcome:
    """Run one stage and say how it ended."""
    print(f"\n=== {stage.__name__}: {stage.__doc__}", file=run.out, flush=True)
    run.skipped.clear()
    run.said.clear()
    run.cpu = 0.0
    word, why = "passed", ""
    began = time.monotonic()
    try:
        stage(run)
    except StageFailed as error:
        word, why = "failed", str(error)
    except StageSkipped as error:
        word = "skipped"
        run.skipped.append(str(error))
    if no_skips and run.skipped and word != "failed":
        word, why = "failed", "something was skipped, and in this run nothing may be"
    if why:
        print(f"=== {stage.__name__} failed: {why}", file=run.out, flush=True)
    skipped = list(dict.fromkeys(run.skipped))
    seconds = time.monotonic() - began
    return Outcome(stage.__name__, word, seconds, run.cpu, why, skipped, "".join(run.said))


def summarise(outcomes: Sequence[Outcome]) -> int:
    """Print a line for each stage, what was skipped and the totals; return the exit status.

    Before them, what the stages that failed said last.
    """
    for outcome in outcomes:
        if outcome.word == "failed" and outcome.said:
            print(f"\n=== {outcome.stage} failed; the end of its output:\n{outcome.said}", end="")
    print("\n=== summary")
    for outcome in outcomes:
        print(
            f"{outcome.stage:12} {outcome.word:8} {outcome.seconds:6.1f} s {outcome.cpu:7.1f} s CPU"
            f"  {outcome.why}".rstrip()
        )
    skips = [f"{outcome.stage}: {skip}" for outcome in outcomes for skip in outcome.skipped]
    print("\nSkipped:" if skips else "\nNothing was skipped.")
    for skip in skips:
        print(f"  {skip}")
    words = [outcome.word for outcome in outcomes]
    totals = [f"{words.count(word)} {word}" for word in ("passed", "failed", "skipped")]
    print(", ".join(totals if "skipped" in words else totals[:2]))
    return 1 if "failed" in words else 0


def _set_nice(pid: int, nice: int) -> None:
    """Set the nice value of a process that has just begun as the first of a session of its own.

    Where Linux groups processes by session (sched_autogroup_enabled, see sched(7)), the value of a
    process counts among those of its session only; the session has one of its own beside others.
    """
    # It may have ended already, and a kernel may be without such groups.
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PGRP, pid, nice)
        Path(f"/proc/{pid}/autogroup").write_text(str(nice), encoding="ascii")


def _shortened(arguments: Sequence[str]) -> str:
    """Return a command as a summary line has room for."""
    text = " ".join(arguments)
    return text if len(text) <= 70 else f"{text[:70]} ..."
