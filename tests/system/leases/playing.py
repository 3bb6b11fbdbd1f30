# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs tasks through the real Ansible, on this machine, and returns what each one reported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[3]
DEADLINE = 120.0


class Play:
    """A playbook that runs from now on; ``results`` waits for its end."""

    def __init__(self, *tasks):
        self._folder = tempfile.TemporaryDirectory(prefix="hf-play-")
        folder = Path(self._folder.name)
        self._results = folder / "results.json"
        names = [f"task_{number}" for number in range(len(tasks))]
        steps = [
            {"name": name, "register": name, "ignore_errors": True, **one}
            for name, one in zip(names, tasks)
        ]
        kept = f"{{{{ [{', '.join(names)}] | to_json }}}}"
        steps.append({"ansible.builtin.copy": {"dest": str(self._results), "content": kept}})
        book = [{"hosts": "localhost", "gather_facts": False, "tasks": steps}]
        (folder / "book.json").write_text(json.dumps(book))
        self._child = subprocess.Popen(
            [sys.executable, "-m", "ansible", "playbook", folder / "book.json"],
            cwd=CHECKOUT,
            env={
                **os.environ,
                "ANSIBLE_CONFIG": str(CHECKOUT / "ansible.cfg"),
                "ANSIBLE_COLLECTIONS_PATH": str(CHECKOUT / ".collections"),
                "ANSIBLE_LOCAL_TEMP": str(folder / "local"),
                "ANSIBLE_REMOTE_TEMP": str(folder / "remote"),
                "ANSIBLE_PYTHON_INTERPRETER": sys.executable,
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def results(self):
        """Return the results of the tasks, in their order."""
        try:
            said, _nothing = self._child.communicate(timeout=DEADLINE)
            assert self._results.exists(), said
            return json.loads(self._results.read_text())
        finally:
            self._child.kill()
            self._child.wait(timeout=60)
            self._folder.cleanup()


def play(*tasks):
    """Run tasks one after the other and return their results; a failure does not end the play."""
    return Play(*tasks).results()


def task(module, options, *, check=False):
    """Return a task with one of the collection's modules, with its diff."""
    return {f"holdfast.ha.{module}": options, "check_mode": check, "diff": True}
