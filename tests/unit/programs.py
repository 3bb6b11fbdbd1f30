# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs for tests: shells, Ansible, and a look at whether a process is there."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.process.family import (
    process_entry,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.process.run import run

ROOT = Path(__file__).resolve().parents[2]


def shell(text, **options):
    """Run *text* in a shell, within 10 seconds if nothing else is said."""
    return run(["/bin/sh", "-c", text], **{"deadline": 10.0, **options})


def run_ansible(program, *words, folder, **more):
    """Run a *program* of Ansible, such as ``playbook``, in *folder*, with this collection.

    *more* is added to the environment.
    """
    return subprocess.run(
        [sys.executable, "-m", f"ansible.cli.{program}", *words],
        env={
            **os.environ,
            "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".collections"),
            "ANSIBLE_HOME": str(folder / "home"),
            "ANSIBLE_LOCAL_TEMP": str(folder / "home" / "tmp"),
            "LC_ALL": "C.UTF-8",
            **more,
        },
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def is_running(pid):
    """Say whether *pid* is a process that has not ended; a zombie has."""
    entry = process_entry(pid)
    return entry is not None and entry.alive


def wait_until(condition, seconds=120.0):
    """Return once *condition* holds; fail when it does not within *seconds*."""
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            raise AssertionError("it did not happen in time")
        time.sleep(0.01)
