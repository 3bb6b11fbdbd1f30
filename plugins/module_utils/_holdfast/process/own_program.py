# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command line of another process of this library.

Python runs isolated (``-I``): the working directory, ``PYTHONPATH`` and a user's own packages are
not searched for modules.  So a file that somebody leaves in a folder never runs as root.
"""

from __future__ import annotations

import sys

from ..version import PACKAGE

_FROM_FOLDER = (
    "import runpy, sys; sys.path.insert(0, sys.argv.pop(1));"
    " runpy.run_module(sys.argv.pop(1), run_name='__main__', alter_sys=True)"
)
"""Runs a module by its folder and name: the first two words."""


def own_program(*words: str) -> list[str]:
    """Return the command line that runs the ``holdfast`` command of this library with *words*."""
    library = PACKAGE.parent
    if library.is_file():
        return [sys.executable, "-I", str(library), *words]
    bytecode = ["-X", f"pycache_prefix={sys.pycache_prefix}"] if sys.pycache_prefix else []
    module = f"{PACKAGE.name}.program"
    return [sys.executable, "-I", *bytecode, "-c", _FROM_FOLDER, str(library), module, *words]
