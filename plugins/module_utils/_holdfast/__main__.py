# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""``python3 -m holdfast`` in a checkout, through a link to this folder.

Galaxy takes no file of this name, so that it is not in the collection's archive (``galaxy.yml``).
"""

from __future__ import annotations

from .program import main

if __name__ == "__main__":
    main()
