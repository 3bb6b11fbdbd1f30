# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bytecode of the library that is kept between the tasks of Ansible.

Ansible sends a module and what it imports as one archive of sources, for every task, and
Python keeps no bytecode of what it imports from an archive: most of a task's CPU time went into
compiling.  Here it is kept in the user's cache folder, one file per module of the library, and
used as long as the source's SHA-256 and Python's bytecode version are those it was made for.

Code read from there is run, as root on a node, so nothing is read from or written to a folder
that others own or may write to.  The folder is opened once and its files relative to it: nobody
can exchange it in between.  Without such a folder everything works as before, only slower.
"""

from __future__ import annotations

import marshal
import os
import pwd
import stat
import sys
import zipimport
from hashlib import sha256
from importlib.machinery import ModuleSpec
from importlib.util import MAGIC_NUMBER
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

FOLDER = "holdfast/bytecode"
"""Below the user's cache folder (XDG Base Directory Specification 0.8)."""

LARGEST = 4 * 1024 * 1024
"""Bytes read of a file; the largest module's bytecode has a fiftieth of that."""

WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def keep_bytecode(package: str, path: str, loader: zipimport.zipimporter) -> None:
    """Import the modules of *package*, whose files are below *path*, by their kept bytecode."""
    if sys.flags.optimize:
        return
    folder = _open_folder()
    if folder is not None:
        sys.meta_path.insert(0, KeptBytecode(package, path, loader, folder))


class KeptBytecode:
    """Finds and loads the modules of one package in an archive."""

    def __init__(
        self, package: str, path: str, archive: zipimport.zipimporter, folder: int
    ) -> None:
        """Take modules of *package* from below *path*; *folder* is a descriptor of the cache."""
        self._prefix = f"{package}."
        self._path = path
        self._archive = archive
        self._folder = folder

    def find_spec(
        self, name: str, path: object = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return how a module of the package is loaded, None for any other."""
        if not name.startswith(self._prefix):
            return None
        place = f"{self._path}/{name[len(self._prefix) :].replace('.', '/')}"
        for file, is_package in ((f"{place}/__init__.py", True), (f"{place}.py", False)):
            try:
                source = self._archive.get_data(file)
            except OSError:
                continue
            # No subclass of importlib.abc.Loader: importing that costs more than this does.
            loader: Any = self
            spec = ModuleSpec(name, loader, origin=file, is_package=is_package, loader_state=source)
            spec.has_location = True
            if is_package:
                spec.submodule_search_locations = [place]
            return spec
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Leave the making of the module to Python."""
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Run the module's code: the kept one, or what its source compiles to."""
        spec = module.__spec__
        if spec is None or spec.origin is None:
            raise ImportError("a module without a source")
        source = bytes(spec.loader_state)
        name = f"{spec.name[len(self._prefix) :]}.{sys.implementation.cache_tag}"
        mark = MAGIC_NUMBER + sha256(source).digest()
        code = self._cached(name, mark)
        if code is None:
            # Named as in the archive, which lies elsewhere next time.
            place = f"{spec.name.replace('.', '/')}.py"
            code = compile(source, place, "exec", dont_inherit=True)
            self._keep(name, mark + marshal.dumps(code))
        exec(code, module.__dict__)

    def get_source(self, name: str) -> str | None:
        """Return a module's source, which Python shows in a traceback."""
        spec = self.find_spec(name)
        return None if spec is None else bytes(spec.loader_state).decode()

    def _cached(self, name: str, mark: bytes) -> CodeType | None:
        """Return the code that was kept of a module; None if there is none of this source."""
        try:
            file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._folder)
            try:
                seen = os.fstat(file)
                content = os.read(file, min(seen.st_size, LARGEST)) if _is_ours(seen) else b""
            finally:
                os.close(file)
            if not content.startswith(mark):
                return None
            code = marshal.loads(content[len(mark) :])
        except (OSError, EOFError, ValueError, TypeError):
            return None
        return code if isinstance(code, CodeType) else None

    def _keep(self, name: str, content: bytes) -> None:
        """Write the file of a module whole, if it can be written."""
        new = f"{name}.{os.getpid()}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            file = os.open(new, flags, 0o600, dir_fd=self._folder)
            try:
                written = os.write(file, content)
            finally:
                os.close(file)
            if written == len(content):
                os.replace(new, name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
            else:
                os.unlink(new, dir_fd=self._folder)
        except OSError:
            return


def _open_folder() -> int | None:
    """Return a descriptor of this user's folder, made if need be; None without one to trust."""
    try:
        home = os.environ.get("XDG_CACHE_HOME") or f"{pwd.getpwuid(os.geteuid()).pw_dir}/.cache"
        if not home.startswith("/"):
            return None
        path = f"{home}/{FOLDER}"
        Path(path).mkdir(0o700, parents=True, exist_ok=True)
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (OSError, KeyError):
        return None
    if _is_ours(os.fstat(folder)):
        return folder
    os.close(folder)
    return None


def _is_ours(seen: os.stat_result) -> bool:
    """Return whether only this user can have written what was *observed*."""
    return seen.st_uid == os.geteuid() and not seen.st_mode & WRITABLE_BY_OTHERS
