# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The version and the folder of the library.

PRIVATE to the collection: the modules of ``holdfast.ha`` import the library, and nodes get the
same tree as the Python package ``holdfast``.  Standard library only, relative imports only.  Each
``__init__.py`` below is empty: a module pays for every line that it imports.
"""

from __future__ import annotations

from pathlib import Path

VERSION = "0.1.0"

PACKAGE = Path(__file__).resolve().parent
"""The folder of the library, with the name of the Python package."""
