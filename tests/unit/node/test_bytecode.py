# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The installed library is compiled once, and never run in place of another."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import HoldfastError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.cli.install import (
    compile_library,
    compiled_path,
    library_archive,
)


@pytest.fixture
def library(tmp_path: Path) -> Path:
    path = tmp_path / "holdfast.pyz"
    path.write_bytes(library_archive())
    return path


IN_ITS_PLACE = (
    "import os, sys; sys.path.insert(0, sys.argv[1]);"
    " os.execv = lambda program, words: sys.exit(words[2]);"
    " from holdfast import program; program.main()"
)
"""Shows which archive the one that was given would be replaced by."""


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-I", *words], capture_output=True, text=True, check=False
    )


def archive_run(path: Path) -> str:
    """Run the command from an archive; return the archive from which it came in the end."""
    found = run("-v", str(path), "--version")
    assert found.stdout.startswith("holdfast ")
    lines = [
        one for one in found.stderr.splitlines() if "import 'holdfast.operator.cli.main'" in one
    ]
    if lines:
        return lines[-1].partition('"')[2].partition("/holdfast/operator")[0]
    return run("-c", IN_ITS_PLACE, str(path)).stderr.strip()


def file_imported(path: Path) -> str:
    """Return the file of an archive from which a part of the library is imported."""
    text = "import sys; sys.path.insert(0, sys.argv[1]); from holdfast import names"
    text += "; print(names.__file__)"
    return run("-c", text, str(path)).stdout.strip()


def test_the_compiled_library_is_run_without_compiling_anything(library: Path) -> None:
    assert compile_library(library)
    path = compiled_path(library)
    assert archive_run(path) == str(path)
    assert file_imported(path) == f"{path}/holdfast/names.pyc"


def test_nothing_is_written_twice_and_a_new_library_is_compiled_again(library: Path) -> None:
    compile_library(library)
    before = compiled_path(library).stat()
    assert not compile_library(library)
    assert compiled_path(library).stat().st_mtime_ns == before.st_mtime_ns
    os.utime(library, ns=(1, 1))
    assert compile_library(library)


@pytest.mark.parametrize("how", ["touched", "replaced", "another size"])
def test_a_library_that_was_replaced_is_run_itself(library: Path, how: str) -> None:
    compile_library(library)
    if how == "touched":
        os.utime(library, ns=(1, 1))
    if how == "replaced":
        observed = library.stat()
        other = library.with_name("new")
        other.write_bytes(library.read_bytes())
        os.utime(other, ns=(observed.st_atime_ns, observed.st_mtime_ns))
        other.rename(library)
    if how == "another size":
        with zipfile.ZipFile(library, "a") as archive:
            archive.writestr("more", "x")
    assert archive_run(compiled_path(library)) == str(library)


def test_bytecode_of_another_python_is_passed_over(library: Path) -> None:
    compile_library(library)
    path = compiled_path(library)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            old = name.endswith(".pyc")
            archive.writestr(name, b"\x00\x00\r\n" + content[4:] if old else content)
    assert archive_run(path) == str(path)
    assert file_imported(path) == f"{path}/holdfast/names.py"


def test_a_library_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HoldfastError, match="cannot be compiled"):
        compile_library(tmp_path / "holdfast.pyz")
    (tmp_path / "holdfast.pyz").write_text("no archive")
    with pytest.raises(HoldfastError, match="cannot be compiled"):
        compile_library(tmp_path / "holdfast.pyz")
    assert not compiled_path(tmp_path / "holdfast.pyz").exists()
