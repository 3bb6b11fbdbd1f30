# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""holdfast: high availability for any set of Linux nodes.

PRIVATE to the collection.  Where things are is in ``docs/contributing-map.md``.
"""

import atexit
import gc
from zipimport import zipimporter

LOADER = __spec__.loader if __spec__ else None

# In the archive that Ansible sends; the one on a node has its bytecode in it.
if __name__.startswith("ansible_collections.") and isinstance(LOADER, zipimporter):
    from .kept_bytecode import keep_bytecode

    keep_bytecode(__name__, __path__[0], LOADER)
    # A task ends soon: to look for garbage meanwhile, and in everything at its end, takes a tenth
    # of its time.
    gc.set_threshold(100_000)
    atexit.register(gc.freeze)
