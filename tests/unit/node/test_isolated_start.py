# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command runs nothing that lies in the working directory or that PYTHONPATH names."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import jinja2
import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.cli.install import (
    compile_library,
    library_archive,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.process.own_program import (
    own_program,
)

TEMPLATE = Path(__file__).resolve().parents[3] / "roles/node/templates/holdfast.j2"
NAMES = (
    *("json", "runpy", "sitecustomize", "usercustomize", "argparse", "zipimport", "pathlib"),
    *("holdfast/__init__", "holdfast/__main__", "holdfast/program", "_holdfast/program"),
    *("__main__", "_json", "os", "re"),
)
"""Modules of the standard library and of this one, as somebody may leave them in a folder."""

NOBODY = 65534


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user may read, which pytest's own is not."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture
def hostile(open_folder: Path) -> Path:
    """A folder for anybody with modules that leave a mark when they are imported."""
    folder = open_folder / "hostile"
    folder.mkdir()
    for name in NAMES:
        path = folder / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"open({str(folder / 'ran')!r}, 'a').write({name!r} + '\\n')\n")
    folder.chmod(0o777)
    return folder


def start(words: list[str], hostile: Path, user: int | None) -> subprocess.CompletedProcess[str]:
    """Run a command in the *hostile* folder, with each variable that adds to Python's path."""
    return subprocess.run(
        words,
        cwd=hostile,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(hostile),
            "PYTHONPATH": f"{hostile}:.:",
            "PYTHONSTARTUP": str(hostile / "os.py"),
        },
        user=user,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def users() -> list[int | None]:
    """Return whom to run it as: this user, and nobody if this is root."""
    return [None, NOBODY] if os.geteuid() == 0 else [None]


def python_for(user: int | None) -> str:
    """Return a Python that *user* may run: that of the tests may lie below root's home."""
    own = str(Path(sys.executable).resolve())
    words = ["test", "-x", own]
    runs = subprocess.run(words, user=user, check=False).returncode == 0
    return own if runs else "/usr/bin/python3"


def install_command(library: Path, python: str) -> Path:
    """Write the command of *library* beside it, as the role does, and return it."""
    command = library.with_name("holdfast")
    surroundings = jinja2.Environment(trim_blocks=True, keep_trailing_newline=True)
    surroundings.filters["quote"] = shlex.quote
    text = surroundings.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        node_config="/etc/holdfast/node.json",
        node_library=str(library),
        ansible_python_interpreter=python,
    )
    command.write_text(text)
    command.chmod(0o755)
    return command


def test_the_command_of_a_new_version_runs_beside_what_was_compiled_of_the_one_before(
    tmp_path: Path, hostile: Path
) -> None:
    compiled = tmp_path / "holdfast.pyzc"
    with zipfile.ZipFile(compiled, "w") as archive:
        archive.writestr("holdfast/__init__.py", "raise SystemExit('the version before')")
    os.utime(compiled, (1e9, 1e9))
    library = tmp_path / "holdfast.pyz"
    library.write_bytes(library_archive())
    command = str(install_command(library, sys.executable))
    found = start([command, "bytecode", str(library)], hostile, None)
    assert found.returncode == 0, found.stderr
    assert found.stdout.endswith(" written\n")
    assert start([command, "--version"], hostile, None).stdout.startswith("holdfast ")


@pytest.mark.parametrize("user", users())
@pytest.mark.parametrize("archive", ["library", "compiled", "outdated"])
def test_the_installed_command_imports_nothing_from_the_working_directory(
    archive: str, user: int | None, hostile: Path, open_folder: Path
) -> None:
    library = open_folder / "holdfast.pyz"
    library.write_bytes(library_archive())
    if archive != "library":
        compile_library(library)
    if archive == "outdated":
        os.utime(library, ns=(1, 1))
    command = install_command(library, python_for(user))
    for words in (["--version"], ["status", "--json"], ["iallocator", "-h"], ["balance", "-h"]):
        found = start([str(command), *words], hostile, user)
        assert not (hostile / "ran").exists(), (words, (hostile / "ran").read_text())
        assert "Traceback" not in found.stderr
        if words == ["--version"]:
            assert found.stdout.startswith("holdfast "), found.stderr


def test_a_daemon_of_a_machine_imports_nothing_from_the_working_directory(hostile: Path) -> None:
    found = start(own_program("--version"), hostile, None)
    assert not (hostile / "ran").exists(), (hostile / "ran").read_text()
    assert found.stdout.startswith("holdfast "), found.stderr
