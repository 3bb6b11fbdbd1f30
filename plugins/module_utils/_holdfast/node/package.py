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


def library_archive() -> bytes:
    """Return the library of which this file is a part as a zip archive."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for path in sorted(LIBRARY.rglob("*.py")):
            name = f"{PACKAGE}/{path.relative_to(LIBRARY).as_posix()}"
            entry = zipfile.ZipInfo(name, FIXED_DATE)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            file.writestr(entry, path.read_bytes())
    return buffer.getvalue()
