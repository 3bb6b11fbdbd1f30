# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Add the bytecode of each source file to an archive, from standard input to standard output.

It is run by the Python that is to import from the archive: another version ignores the bytecode and
compiles the sources.
"""

from __future__ import annotations

import importlib.util
import io
import marshal
import sys
import zipfile

UNCHECKED_HASH = (1).to_bytes(4, "little")
"""The flags of bytecode that is not checked against its source (PEP 552)."""


def with_bytecode(archive: bytes) -> bytes:
    """Return *archive* with the bytecode of each source file beside it."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as sources, zipfile.ZipFile(buffer, "w") as both:
        for member in sources.infolist():
            source = sources.read(member)
            both.writestr(member, source)
            code = compile(source, member.filename, "exec", dont_inherit=True)
            mark = importlib.util.MAGIC_NUMBER + UNCHECKED_HASH
            content = mark + importlib.util.source_hash(source) + marshal.dumps(code)
            both.writestr(f"{member.filename}c", content, member.compress_type)
    return buffer.getvalue()


if __name__ == "__main__":
    sys.stdout.buffer.write(with_bytecode(sys.stdin.buffer.read()))
