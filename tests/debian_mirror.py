# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where this machine gets Debian's packages from, for tests that need those of a release."""

from __future__ import annotations

import subprocess

DEFAULT = "http://deb.debian.org/debian"
DEADLINE = 120.0


def mirror() -> str:
    """Return the mirror that this machine has for Debian itself."""
    words = [
        "apt-get",
        "indextargets",
        "--format",
        "$(REPO_URI)",
        "Origin: Debian",
        "Label: Debian",
    ]
    found = subprocess.run(words, capture_output=True, text=True, timeout=DEADLINE, check=False)
    uris = [line.rstrip("/") for line in found.stdout.splitlines() if line]
    return uris[0] if uris else DEFAULT
