# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Other versions of the collection for tests of upgrades."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from testbed.deployment import CHECKOUT

MODEL = "plugins/module_utils/_holdfast/cluster/model"
RECORDS = {"report.py": "report_document", "state_codec.py": "state_document"}
"""The files that encode the records of LRM and manager, and the function in each."""

ADDED = """

_as_before = {function}


def {function}(*arguments, **more):
    return {{**_as_before(*arguments, **more), "only in another version": [1]}}
"""


UPGRADE_FROM = os.environ.get("HOLDFAST_UPGRADE_FROM", "")
"""A git revision of the checkout to deploy first; by default the current version."""


def other_version(folder: Path) -> Path:
    """Return a copy of the collection as another version, with a further field in its records."""
    copy = _place(folder)
    for name in ("plugins", "roles", "playbooks", "meta"):
        shutil.copytree(CHECKOUT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(CHECKOUT / "galaxy.yml", copy)
    _use_itself(copy, CHECKOUT / "ansible.cfg")
    package = copy / "plugins/module_utils/_holdfast/__init__.py"
    package.write_text(package.read_text() + '\nOTHER = "another version"\n')
    for name, function in RECORDS.items():
        path = copy / MODEL / name
        assert f"def {function}(" in path.read_text()
        path.write_text(path.read_text() + ADDED.format(function=function))
    return copy


def first_version(folder: Path) -> Path:
    """Return the checkout to deploy first: this one, or a copy of ``UPGRADE_FROM``."""
    if not UPGRADE_FROM:
        return CHECKOUT
    copy = _place(folder)
    parts = ("plugins", "roles", "playbooks", "meta", "galaxy.yml", "ansible.cfg")
    command = ("git", "-C", CHECKOUT, "archive", UPGRADE_FROM, *parts)
    with subprocess.Popen(command, stdout=subprocess.PIPE) as git:
        subprocess.run(["tar", "-x", "-C", copy], stdin=git.stdout, check=True)
    assert git.returncode == 0
    _use_itself(copy, copy / "ansible.cfg")
    return copy


def _place(folder: Path) -> Path:
    """Create the folder below *folder* where Ansible searches the collection."""
    copy = folder / "collections" / "ansible_collections" / "holdfast" / "ha"
    copy.mkdir(parents=True)
    return copy


def _use_itself(copy: Path, settings: Path) -> None:
    """Let a copy of the collection find itself, with the *settings* of a checkout."""
    text = settings.read_text().replace(".collections", "../../..")
    (copy / "ansible.cfg").write_text(text)
    (copy / ".collections").symlink_to("../../..")
