# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A lab that runs from the command ``up`` until ``down``, and how to enter it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from argparse import Namespace as Options
from collections.abc import Callable, Sequence
from pathlib import Path

from testbed import lab


class PersistentLab:
    """The persistent lab of the Python module *name*; its subcommand ``serve`` runs inside."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._record = Path(f"/run/holdfast-{name}.json")

    def found(self) -> int:
        """Return the id of the process that keeps the lab, 0 if the lab is not up."""
        try:
            keeper = int(json.loads(self._record.read_text())["keeper"])
            words = Path(f"/proc/{keeper}/cmdline").read_bytes().split(b"\0")
        except (OSError, ValueError):
            return 0
        return keeper if self._name.encode() in words else 0

    def up(self, serve: Sequence[str]) -> int:
        """Start the lab with the command line *serve*; return when it has printed "ready"."""
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.setsid()
            os.dup2(writer, 1)
            os._exit(self._keep(serve))
        os.close(writer)
        with os.fdopen(reader) as output:
            for line in output:
                sys.stdout.write(line)
                if line.startswith("ready"):
                    return 0
        return 1

    def down(self) -> int:
        """Stop the lab."""
        keeper = self.found()
        if not keeper:
            sys.stderr.write(f"{self._name}: the lab is not up; start it with: {self._name} up\n")
            return 0
        os.kill(keeper, signal.SIGTERM)
        until = time.monotonic() + lab.CLEANING
        while self._record.exists() and time.monotonic() < until:
            time.sleep(0.05)
        return 0

    def enter(self, command: Sequence[str]) -> int:
        """Run a command in the lab and return its exit status."""
        keeper = self.found()
        if not keeper:
            sys.stderr.write(f"{self._name}: the lab is not up; start it with: {self._name} up\n")
            return 2
        place, first = _lab_of(keeper)
        namespaces = ("-m", "-n", "-p", "-C", "-i", "-u")
        words = ["nsenter", "-t", str(first), *namespaces, f"--wdns={Path.cwd()}", "--", *command]
        environment = {**os.environ, lab.FOLDER: str(place)}
        return subprocess.run(words, env=environment, check=False).returncode

    def in_lab(self, act: Callable[[Options], int]) -> Callable[[Options], int]:
        """Return *act*; outside of the lab the whole command is run again inside."""
        again = [sys.executable, "-m", self._name, *sys.argv[1:]]
        return lambda options: act(options) if lab.folder() else self.enter(again)

    def _keep(self, serve: Sequence[str]) -> int:
        """Keep the lab until ``down`` ends this process."""
        self._record.write_text(json.dumps({"keeper": os.getpid()}))
        try:
            return lab.run([sys.executable, "-m", self._name, *serve])
        finally:
            self._record.unlink(missing_ok=True)


def _lab_of(keeper: int) -> tuple[Path, int]:
    """Return folder and first process of the lab of the process *keeper*."""
    (janitor,) = _children(keeper)
    (unshare,) = _children(janitor)
    (first,) = _children(unshare)
    words = Path(f"/proc/{first}/cmdline").read_bytes().split(b"\0")
    return Path(os.fsdecode(words[words.index(b"testbed.inside") + 1])), first


def _children(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
