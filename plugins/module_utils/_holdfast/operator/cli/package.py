# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The library as one file, from which Python on a node imports the package ``holdfast``.

The archive is the same, byte for byte, for the same sources: whoever installs it can
tell from the content alone whether anything changed.
"""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

PACKAGE = "holdfast"
LIBRARY = Path(__file__).resolve().parent.parent
FIXED_DATE = (2026, 1, 1, 0, 0, 0)

PROGRAM = "program.py"
"""What ``python3 -m holdfast`` runs; Galaxy takes no file of the name that Python wants for it."""


def library_archive() -> bytes:
    """Return the library of which this file is a part as a zip archive."""
    files = {
        path.relative_to(LIBRARY).as_posix(): path.read_bytes() for path in LIBRARY.rglob("*.py")
    }
    files["__main__.py"] = files[PROGRAM]
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in sorted(files.items()):
            entry = zipfile.ZipInfo(f"{PACKAGE}/{name}", FIXED_DATE)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            file.writestr(entry, content)
    return buffer.getvalue()
