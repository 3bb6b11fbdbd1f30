# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Leave out the tests on data that is kept outside the project, where it is not beside it."""

from __future__ import annotations

from pathlib import Path

VECTORS = Path(__file__).resolve().parents[4] / "shared" / "corpus" / "hosted-engine"

collect_ignore = [] if VECTORS.is_dir() else ["test_hosted_engine_vectors.py"]
