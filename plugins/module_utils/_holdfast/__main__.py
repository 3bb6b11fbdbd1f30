# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""``python3 -m holdfast``: the holdfast command."""

from __future__ import annotations

import sys

from .node.command import main

if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
