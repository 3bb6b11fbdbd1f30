# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The holdfast library: high availability on shared storage.

PRIVATE to the collection: the modules of ``holdfast.ha`` import it, and the
same tree is what a node gets as the Python package ``holdfast``.  Standard
library only, relative imports only.  This file pulls in nothing on purpose: a
module pays for every line that it imports.
"""

from __future__ import annotations

__version__ = "0.1.0"
