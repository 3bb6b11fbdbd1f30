# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The collection's own agents as the role ``agents`` installs them, for tests.

Their sources have no interpreter line and are not executable; the role adds both.
"""

from __future__ import annotations

from pathlib import Path

FILES = Path(__file__).resolve().parents[3] / "roles" / "agents" / "files"
INTERPRETER = "#!/usr/bin/env python3\n"


def install_command(directory: Path) -> Path:
    """Install the resource agent below *directory*, as a folder of resource agents; return it."""
    return _install("command.py", directory / "resource.d" / "holdfast" / "command")


def install_fence_agent(directory: Path) -> Path:
    """Install the fence agent for machines in *directory*; return it."""
    return _install("fence_holdfast_machine.py", directory / "fence_holdfast_machine")


def _install(source: str, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(INTERPRETER + (FILES / source).read_text(encoding="utf-8"), encoding="utf-8")
    path.chmod(0o755)
    return path
