# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""One build of each module's archive for all runs of ansible-playbook in a test session."""

from __future__ import annotations

from pathlib import Path

PLUGINS = Path(__file__).resolve().parent / "callback"


def shared_in(archives: Path, python: str = "") -> dict[str, str]:
    """Return environment variables with which Ansible keeps and finds archives in *archives*.

    An archive is found by its module's name: only runs with the same code may share a folder.
    *python* is the command of the Python that modules run with, if it is another than Ansible's.
    """
    archives.mkdir(exist_ok=True)
    return {
        "ANSIBLE_CALLBACK_PLUGINS": str(PLUGINS),
        "HOLDFAST_MODULE_ARCHIVES": str(archives),
        "HOLDFAST_MODULE_PYTHON": python,
    }
