# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the quickstart's playbook: its output goes into a log, and the screen gets what matters.

Use: python3 scripts/quickstart_screen.py LOG COMMAND...

The screen shows each step with its seconds, the messages of the tasks in ``SHOWN``, and after a
failure the reason and, if this machine is too busy for three nodes, that.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import yaml  # type: ignore[import-untyped]

STEPS = (
    "Check the variables",
    "Build a cluster of three nodes on this machine",
    "Undo what was done to the cluster since the last run",
    "Declare services and rules",
    "Drain a node, and bring it back",
    "Cut the power of the node on which web runs",
    "Freeze the node of the manager, or the next one that runs services",
    "Show how it all stands now",
)
"""Plays and tasks whose seconds are shown; a step lasts until the next one begins."""

SHOWN = ("Show where the services went", "Show the timeline", "Show what there is to see")
"""Tasks whose message is shown."""

LEAST_SHOWN = 0.5
"""Seconds of a step that is shown although it has no message."""

_ABOUT_TIME = re.compile(r"(after|within) [0-9.]+ s|time|suspect|fence|silent|answer|^$")
"""Failures that a machine without a free CPU can cause; others have a reason of their own."""

_HEADING = re.compile(r"(?:PLAY|TASK|RUNNING HANDLER) \[(?:[\w.]+ : )?(.*)\] \**$")
_RESULT = re.compile(
    r"(ok|fatal|failed): \[([^\]]*)\](?:: (?:FAILED|UNREACHABLE)!)? ?(?:\(.*\) )?=> ?(.*)"
)


@dataclass(frozen=True)
class Heading:
    """The beginning of a play or a task."""

    name: str


@dataclass(frozen=True)
class Message:
    """The message of a task that was *ok* or failed."""

    text: str
    ok: bool


def parts(lines: Iterable[str]) -> Iterator[Heading | Message]:
    """Yield the headings and messages in the output of ansible-playbook."""
    block: list[str] | None = None
    ok = True
    for line in lines:
        if block is not None and (line.startswith(" ") or not line.strip()) and line.strip():
            block.append(line)
            continue
        if block is not None:
            yield from _message(block, ok)
            block = None
        heading, result = _HEADING.match(line), _RESULT.match(line)
        if heading is not None:
            yield Heading(heading[1])
        elif result is not None:
            block, ok = [], result[1] == "ok"
    if block is not None:
        yield from _message(block, ok)


def _message(block: list[str], ok: bool) -> Iterator[Message]:
    try:
        found = yaml.safe_load("".join(block))
    except yaml.YAMLError:
        return
    if isinstance(found, dict) and found.get("msg"):
        yield Message(str(found["msg"]).strip(), ok)


class Screen:
    """What is shown while the playbook runs."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self._step = ""
        self._begun = clock()
        self._task = ""
        self._texts: list[str] = []
        self.failure = ""

    def take(self, part: Heading | Message) -> None:
        """Show what *part* has for the screen."""
        if isinstance(part, Heading):
            self._task = part.name
            if part.name in STEPS:
                self.end_step()
                self._step, self._begun = part.name, self._clock()
        elif not part.ok:
            self.failure = self.failure or part.text
        elif self._task in SHOWN:
            self._texts += part.text.splitlines()

    def end_step(self) -> None:
        """Show the step that ended, with its seconds and messages; not one that did nothing."""
        seconds = self._clock() - self._begun
        if self._step and (seconds >= LEAST_SHOWN or self._texts):
            self._print(f"{seconds:5.0f} s  {self._step}")
        for line in self._texts:
            self._print(f"         {line}".rstrip())
        self._step, self._texts = "", []

    def fail(self, log: Path) -> None:
        """Show why the run failed."""
        where = self._step or "the beginning"
        self._print(f"FAILED in: {where}")
        self._print(f"  {self.failure or last_line(log)}")
        busy = why_busy(Path("/proc")) if _ABOUT_TIME.search(self.failure) else ""
        if busy:
            self._print(f"  {busy}")
        self._print(f"  Details: {log}. Next: run ./quickstart again, or ./quickstart --remove.")

    def _print(self, line: str) -> None:
        self._stream.write(line + "\n")
        self._stream.flush()


def last_line(log: Path) -> str:
    """Return the last line that ansible-playbook printed before it ended without a failed task."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError as error:
        return f"{log} cannot be read: {error.strerror}."
    return next((one.strip() for one in reversed(lines) if one.strip()), "It printed nothing.")


BUSY_SHARE = 40.0
"""Percent of the last minute in which processes waited for a CPU; nodes are fenced from then on."""

LEAST_MEMORY = 300
"""MiB of memory that three nodes with their services need."""


def why_busy(proc: Path) -> str:
    """Return why this machine is too busy for the quickstart, by its *proc*; empty if it is not."""
    load = _numbers(proc / "loadavg", r"^([0-9.]+)")
    waited = _numbers(proc / "pressure" / "cpu", r"some .*avg60=([0-9.]+)")
    free = _numbers(proc / "meminfo", r"MemAvailable: +([0-9]+) kB")
    cpus = len(os.sched_getaffinity(0))
    found = []
    if load > 2 * cpus or waited > BUSY_SHARE:
        found.append(
            f"load {load:g} on {cpus} CPUs, and processes waited for a CPU in {waited:.0f} % of the"
            " last minute"
        )
    if 0 < free < LEAST_MEMORY * 1024:
        found.append(f"{free / 1024:.0f} MiB of memory left")
    if not found:
        return ""
    return (
        f"The likely reason is that this machine is too busy: {'; '.join(found)}. Nodes that do not"
        " get a CPU for seconds are fenced. Stop other work, and run it again."
    )


def _numbers(path: Path, pattern: str) -> float:
    """Return the first number of *pattern* in a file, 0 if there is none."""
    try:
        found = re.search(pattern, path.read_text(encoding="ascii"), re.MULTILINE)
    except OSError:
        return 0.0
    return float(found[1]) if found is not None else 0.0


def main(words: list[str]) -> int:
    """Run the command of *words* with its output in a log; return its exit status."""
    log = Path(words[0])
    log.parent.mkdir(parents=True, exist_ok=True)
    screen = Screen(sys.stdout)
    # Ctrl-C goes to the playbook too, which ends by it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with (
        log.open("w", encoding="utf-8") as file,
        subprocess.Popen(
            words[1:],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        ) as process,
    ):
        assert process.stdout is not None
        for part in parts(_copied(process.stdout, file)):
            screen.take(part)
    if process.returncode:
        screen.fail(log)
    else:
        screen.end_step()
    return process.returncode


def _copied(lines: Iterable[str], file: TextIO) -> Iterator[str]:
    for line in lines:
        file.write(line)
        file.flush()
        yield line


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
