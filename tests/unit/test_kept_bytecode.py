# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the library keeps compiled between tasks is used, and never believed without reason."""

from __future__ import annotations

import marshal
import os
import subprocess
import sys
import zipfile

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast import kept_bytecode
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.version import PACKAGE

STRANGER = 65534
LIBRARY = "ansible_collections/lib"
FIRST = "from .inner.second import word\nprint(word)\n"
SECOND = "word = 'from the source'\n"
OTHER = compile("word = 'from the kept file'\n", "second.py", "exec")


class Payload:
    """An archive with the beginning of the library and two modules, as Ansible sends it."""

    def __init__(self, folder):
        self.archive = folder / "payload.zip"
        self.cache = folder / "cache"
        self.kept = self.cache / "holdfast" / "bytecode"
        self.environment = {"XDG_CACHE_HOME": str(self.cache)}
        self.send(SECOND)

    def send(self, second):
        files = {
            "ansible_collections/__init__.py": "",
            f"{LIBRARY}/__init__.py": (PACKAGE / "__init__.py").read_text(),
            f"{LIBRARY}/kept_bytecode.py": (PACKAGE / "kept_bytecode.py").read_text(),
            f"{LIBRARY}/first.py": FIRST,
            f"{LIBRARY}/inner/__init__.py": "",
            f"{LIBRARY}/inner/second.py": second,
        }
        with zipfile.ZipFile(self.archive, "w") as file:
            for name, content in files.items():
                file.writestr(name, content)

    def run(self, statement="import ansible_collections.lib.first", *options):
        code = f"import sys; sys.path.insert(0, {str(self.archive)!r}); {statement}"
        return subprocess.run(
            [sys.executable, *options, "-c", code],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def says(self):
        done = self.run()
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.strip()

    @property
    def file(self):
        return self.kept / f"inner.second.{sys.implementation.cache_tag}"

    def exchange_code(self):
        """Put other code into the kept file, under the mark of the source."""
        content = self.file.read_bytes()
        mark = len(kept_bytecode.MAGIC_NUMBER) + 32
        self.file.write_bytes(content[:mark] + marshal.dumps(OTHER))


@pytest.fixture
def payload(tmp_path):
    return Payload(tmp_path)


@pytest.fixture
def kept(payload):
    """A payload that ran once, and whose kept code can be told from its source."""
    assert payload.says() == "from the source"
    payload.exchange_code()
    return payload


def test_the_second_task_uses_what_the_first_compiled(kept):
    assert kept.says() == "from the kept file"
    names = {path.name.split(".cpython")[0] for path in kept.kept.iterdir()}
    assert names == {"first", "inner", "inner.second"}
    assert kept.kept.stat().st_mode & 0o777 == 0o700


def test_another_source_is_compiled_and_kept_instead(kept):
    kept.send("word = 'from a newer source'\n")
    assert kept.says() == "from a newer source"
    kept.send(SECOND)
    assert kept.says() == "from the source"


@pytest.mark.parametrize(
    "content", [b"", b"\0" * 10, None], ids=["empty", "no code", "cut off in the code"]
)
def test_a_damaged_file_is_compiled_anew(kept, content):
    damaged = kept.file.read_bytes()[:60] if content is None else content
    kept.file.write_bytes(damaged)
    assert kept.says() == "from the source"
    assert kept.file.read_bytes() != damaged


def writable_folder(payload):
    payload.kept.chmod(0o770)


def writable_file(payload):
    payload.file.chmod(0o602)


def linked_folder(payload):
    payload.kept.rename(payload.cache / "elsewhere")
    payload.kept.symlink_to(payload.cache / "elsewhere")


def linked_file(payload):
    payload.file.rename(payload.cache / "elsewhere")
    payload.file.symlink_to(payload.cache / "elsewhere")


def relative_folder(payload):
    payload.environment["XDG_CACHE_HOME"] = os.path.relpath(payload.cache)


@pytest.mark.parametrize(
    "spoil", [writable_folder, writable_file, linked_folder, linked_file, relative_folder]
)
def test_code_that_others_can_have_put_there_is_not_run(kept, spoil):
    spoil(kept)
    assert kept.says() == "from the source"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("of", ["file", "kept"], ids=["file", "folder"])
def test_code_of_another_user_is_not_run(kept, of):
    os.chown(getattr(kept, of), STRANGER, STRANGER)
    assert kept.says() == "from the source"


def test_without_a_folder_everything_works(payload):
    payload.cache.write_text("a file is in the way")
    assert payload.says() == "from the source"


def test_what_python_optimizes_is_not_mixed_with_what_it_does_not(kept):
    assert (
        kept.run("import ansible_collections.lib.first", "-O").stdout.strip() == "from the source"
    )


def test_a_traceback_shows_the_line_of_the_source(payload):
    payload.send("word = 1 / 0  # impossible\n")
    shown = (
        "import traceback\ntry: import ansible_collections.lib.first\n"
        "except ZeroDivisionError: traceback.print_exc()"
    )
    for _run in range(2):
        said = payload.run(shown).stderr
        assert f'File "{LIBRARY}/inner/second.py", line 1' in said
        assert "word = 1 / 0  # impossible" in said


COLLECTIONS = "import gc, ansible_collections.lib.first; print(gc.get_threshold()[0] >= 100000)"
AT_THE_END = (
    "import atexit, gc; atexit.register(lambda: print(gc.get_freeze_count() > 0));"
    " import ansible_collections.lib.first"
)


@pytest.mark.parametrize("statement", [COLLECTIONS, AT_THE_END], ids=["meanwhile", "at the end"])
def test_a_task_looks_for_little_garbage(payload, statement):
    payload.send("word = ''\n")
    assert payload.run(statement).stdout.split() == ["True"]


def test_the_archive_on_a_node_keeps_none(payload):
    with zipfile.ZipFile(payload.archive) as file:
        members = {name: file.read(name) for name in file.namelist()}
    with zipfile.ZipFile(payload.archive, "w") as file:
        for name, content in members.items():
            file.writestr(name.replace(LIBRARY, "holdfast"), content)
    assert payload.run("import holdfast.first").stdout.strip() == "from the source"
    assert not payload.cache.exists()


def test_a_module_that_is_not_there_is_missed(payload):
    assert (
        "No module named 'ansible_collections.lib.third'"
        in payload.run("import ansible_collections.lib.third").stderr
    )
