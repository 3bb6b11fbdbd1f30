# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""holdfast: high availability for any set of Linux nodes.

PRIVATE to the collection.  Where things are is in ``docs/contributing-map.md``.
"""

from .kept_bytecode import keep_bytecode

if __file__.endswith(".py"):
    # Not for the archive on a node, which has the bytecode in it.
    keep_bytecode(__name__, __path__[0], __spec__.loader if __spec__ else None)
