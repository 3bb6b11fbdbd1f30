# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The library as one file, and the same compiled for this node's Python, which starts sooner.

The archive is reproducible: the same sources make the same bytes.

Python does not cache bytecode of what it imports from an archive.  So a second archive beside the
library has the sources with their bytecode (PEP 552, unchecked hash-based), and a note of the
library it was made of: ``program.py`` does not use it for another one.  Another version of Python
ignores the bytecode and compiles the sources, as zipimport does.
"""

from __future__ import annotations

import importlib.util
import io
import json
import marshal
import os
import zipfile
from pathlib import Path
from typing import Any

from ...documents import read_document
from ...errors import DocumentError, HoldfastError
from ...storage.whole_file import write_bytes
from ...version import PACKAGE

NAME = "holdfast"
FIXED_DATE = (2026, 1, 1, 0, 0, 0)

PROGRAM = "program.py"
"""Becomes ``__main__.py`` of the package, which a checkout has and an archive of Galaxy not.

Only the command of an older version, while it is being updated, still runs ``-m holdfast``.
"""

START = f"from {NAME}.program import main\n\nmain()\n".encode()
"""The ``__main__.py`` of the archive: Python runs the archive itself, isolated.

With ``-m holdfast`` the working directory would be searched for modules before the archive.
"""


def library_archive() -> bytes:
    """Return the library of which this file is a part as a zip archive."""
    files = {
        path.relative_to(PACKAGE).as_posix(): path.read_bytes() for path in PACKAGE.rglob("*.py")
    }
    files["__main__.py"] = files[PROGRAM]
    members = {f"{NAME}/{name}": content for name, content in files.items()}
    members["__main__.py"] = START
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in sorted(members.items()):
            entry = zipfile.ZipInfo(name, FIXED_DATE)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            file.writestr(entry, content)
    return buffer.getvalue()


MADE_OF = f"{NAME}/made_of.json"
UNCHECKED_HASH = (1).to_bytes(4, "little")
"""The flags of bytecode that is not checked against its source (PEP 552)."""


def compile_library(library: Path) -> bool:
    """Write the compiled form of *library* beside it; return False if it was there already.

    Raises ``HoldfastError`` for a library that cannot be read, or a folder that cannot be written.
    """
    try:
        seen = library.stat()
        content = library.read_bytes()
        note = note_of(seen)
        if made_of(compiled_path(library)) == note:
            return False
        write_bytes(compiled_path(library), compiled(content, note), 0o644)
    except (OSError, zipfile.BadZipFile) as error:
        raise HoldfastError(f"Library {library} cannot be compiled: {error}.") from error
    return True


def compiled_path(library: Path) -> Path:
    """Return the path of a library's compiled form."""
    return library.with_name(f"{library.name}c")


def note_of(seen: os.stat_result) -> dict[str, Any]:
    """Return what identifies a library, and the Python that it is compiled for."""
    python = importlib.util.MAGIC_NUMBER.hex()
    return {"size": seen.st_size, "mtime": seen.st_mtime_ns, "inode": seen.st_ino, "python": python}


def made_of(path: Path) -> dict[str, Any] | None:
    """Return the note in a compiled library; None if there is none."""
    try:
        with zipfile.ZipFile(path) as archive:
            found = read_document(archive.read(MADE_OF), MADE_OF)
    except (OSError, KeyError, DocumentError, zipfile.BadZipFile):
        return None
    return found if isinstance(found, dict) else None


def compiled(content: bytes, note: dict[str, Any]) -> bytes:
    """Return the library *content* with the bytecode of each of its files, and a note."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as sources, zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(zipfile.ZipInfo(MADE_OF, FIXED_DATE), json.dumps(note))
        for name in sources.namelist():
            source = sources.read(name)
            code = compile(source, name, "exec", dont_inherit=True)
            mark = importlib.util.MAGIC_NUMBER + UNCHECKED_HASH
            bytecode = mark + importlib.util.source_hash(source) + marshal.dumps(code)
            archive.writestr(zipfile.ZipInfo(f"{name}c", FIXED_DATE), bytecode)
            archive.writestr(zipfile.ZipInfo(name, FIXED_DATE), source)
    return buffer.getvalue()
