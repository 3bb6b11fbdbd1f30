# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The holdfast command: what ``python3 -m holdfast`` runs."""

from __future__ import annotations

import sys

if __name__ == "__main__":
    if sys.argv[1:2] == ["iallocator"]:
        # A process for each question: nothing is imported that an answer does not need.
        from .node.iallocator_command import main_and_exit

        main_and_exit(sys.argv[2:])
    if sys.argv[1:2] == ["balance"]:
        from .node.balance_command import main_and_exit

        main_and_exit(sys.argv[2:])
    from .node.command import main

    raise SystemExit(main(sys.argv[1:]))
