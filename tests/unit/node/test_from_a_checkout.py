# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command runs from a checkout, through a link, as an installed one does."""

from __future__ import annotations

import io
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.cli.install import (
    library_archive,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.version import PACKAGE

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--version"], "holdfast "),
        (["status", "--config", "/nonexistent"], "config: '/nonexistent' is not accepted"),
        (["iallocator", "-h"], "usage"),
    ],
)
def test_the_library_of_a_checkout_is_a_command_through_a_link(tmp_path, words, said):
    (tmp_path / "holdfast").symlink_to(PACKAGE)
    command = [sys.executable, "-m", "holdfast", *words]
    found = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert said.lower() in (found.stdout + found.stderr).lower()


def test_what_galaxy_refuses_is_in_no_archive_and_changes_no_installed_library():
    name = (PACKAGE / "__main__.py").relative_to(ROOT).as_posix()
    assert name in yaml.safe_load((ROOT / "galaxy.yml").read_text())["build_ignore"]
    with zipfile.ZipFile(io.BytesIO(library_archive())) as library:
        installed = library.read("holdfast/__main__.py")
    assert installed == (PACKAGE / "program.py").read_bytes()
