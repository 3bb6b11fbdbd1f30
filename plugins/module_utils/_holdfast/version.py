# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which version of the library this is, and where it is.

PRIVATE to the collection: the modules of ``holdfast.ha`` import the library, and the same tree
is what a node gets as the Python package ``holdfast``.  Standard library only, relative imports
only.  No ``__init__.py`` holds anything: a module pays for every line that it imports.
"""

from __future__ import annotations

from pathlib import Path

VERSION = "0.1.0"

PACKAGE = Path(__file__).resolve().parent
"""The folder of the library; its name is that of the Python package."""
