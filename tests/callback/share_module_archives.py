# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A callback plugin by which many runs of ansible-playbook take two thirds of the CPU time.

Tests play hundreds of playbooks, and each run repeats work of the runs before it.  The plugin
handles no event.  Before a run begins it

- replaces the folder in which a run keeps the archives that Ansible sends to nodes by a link to
  one for the whole test session: building an archive takes longer than most modules run;
- adds bytecode to each archive: otherwise every task compiles what its module imports.  It is that
  of this Python, or of the one that modules run with;
- loads Ansible's filters and tests, which every worker would load for itself;
- makes Ansible poll its workers every 10 ms, not every 1 ms.
"""

from __future__ import annotations

import base64
import dataclasses
import shlex
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from ansible import constants
from ansible.executor import module_common
from ansible.plugins.callback import CallbackBase
from ansible.plugins.loader import filter_loader, test_loader

DOCUMENTATION = """
name: share_module_archives
type: aggregate
short_description: Build the archive of a module once for several runs
description: An archive is found by its module's name, so only runs of the same code share them.
author: The holdfast authors
options:
  folder:
    description: The folder of the archives.
    required: true
    env: [{name: HOLDFAST_MODULE_ARCHIVES}]
    ini: [{section: share_module_archives, key: folder}]
  python:
    description: The command of the Python that modules run with, if it is another than Ansible's.
    default: ""
    env: [{name: HOLDFAST_MODULE_PYTHON}]
"""

POLL_INTERVAL = 0.01
"""Seconds between two looks of Ansible at its workers."""

BYTECODE = Path(__file__).resolve().parent.parent / "module_bytecode.py"


class CallbackModule(CallbackBase):
    """Prepares the run before it begins; it handles no event."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "share_module_archives"
    # ansible-test sets the list of those that are enabled.
    CALLBACK_NEEDS_ENABLED = False

    def set_options(self, *arguments: Any, **options: Any) -> None:
        """Link the folder of the archives, unless one is there, and prepare the run."""
        super().set_options(*arguments, **options)
        place = Path(constants.DEFAULT_LOCAL_TMP) / "ansiballz_cache"
        with suppress(FileExistsError):
            place.symlink_to(self.get_option("folder"))
        constants.DEFAULT_INTERNAL_POLL_INTERVAL = POLL_INTERVAL
        # One of each kind loads all of its kind.
        filter_loader.get("bool")
        test_loader.get("changed")
        python = shlex.split(self.get_option("python") or "")
        _keep_archives_with_bytecode(python or [sys.executable])


def _keep_archives_with_bytecode(python: list[str]) -> None:
    """Make Ansible add bytecode of *python* to an archive before it writes it to the folder."""
    archive = getattr(module_common, "_CachedModule", None)
    if archive is None:
        # ansible-core 2.17 writes archives elsewhere; its runs are right without bytecode, too.
        return
    dump = archive.dump
    command = [*python, "-c", BYTECODE.read_text(encoding="utf-8")]

    def dump_with_bytecode(module: Any, path: str) -> None:
        sources = base64.b64decode(module.zip_data)
        done = subprocess.run(command, input=sources, stdout=subprocess.PIPE, check=True)
        dump(dataclasses.replace(module, zip_data=base64.b64encode(done.stdout)), path)

    archive.dump = dump_with_bytecode
