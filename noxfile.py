# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
# /// script
# dependencies = ["nox>=2026.10.20", "antsibull-nox>=1.10.0"]
# ///
"""Checks of the collection that antsibull-nox has, by ``antsibull-nox.toml``.

``./run_tests`` calls the sessions with tools of locked versions; see ``scripts/sessions.py``.
"""

from __future__ import annotations

import antsibull_nox
import nox

antsibull_nox.load_antsibull_nox_toml()

if __name__ == "__main__":
    nox.main()
