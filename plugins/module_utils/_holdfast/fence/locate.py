# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where fence agents are, which are installed, and the environment they run in."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from ..errors import AgentError, InputError

FENCE_DIRECTORIES = ("/usr/sbin",)
"""Where fence-agents installs (its configure option --sbindir)."""

_DAEMONS = frozenset({"fence_virtd", "fence_sanlockd"})

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\Z")


def locate_fence_agent(
    name_or_path: object,
    directories: Sequence[str] = FENCE_DIRECTORIES,
    option: str = "agent",
) -> str:
    """Return the path of a fence agent given by name (``fence_ipmilan``) or absolute path.

    Raises InputError for something that is neither, and AgentError, with where it looked
    and what to install, when the agent is not there or not executable.
    """
    text = name_or_path if isinstance(name_or_path, str) else ""
    absolute = text.startswith("/") and "\0" not in text
    if not absolute and not _NAME.match(text):
        raise InputError(
            option, name_or_path, "a fence agent's name such as fence_ipmilan, or its whole path"
        )
    paths = [text] if absolute else [f"{one.rstrip('/')}/{text}" for one in directories]
    for path in paths:
        if os.path.isfile(path):  # noqa: PTH113
            if os.access(path, os.X_OK):
                return path
            raise AgentError(f"The fence agent {path} is not executable for this user.")
    raise AgentError(
        f"The fence agent {text} is not installed: looked for {', '.join(paths)}. Install the"
        " package fence-agents (Debian) or fence-agents-all (EL), or give the agent's whole path."
    )


def installed_fence_agents(directories: Sequence[str] = FENCE_DIRECTORIES) -> tuple[str, ...]:
    """Return the paths of all fence agents in *directories*, sorted by name.

    Only what can be executed counts, and of two agents of one name the first directory's,
    as in ``locate_fence_agent``.  The daemons fence_virtd and fence_sanlockd are no agents.
    """
    found: dict[str, str] = {}
    for directory in directories:
        try:
            names = os.listdir(directory)  # noqa: PTH208
        except OSError:
            continue
        for name in names:
            path = f"{directory.rstrip('/')}/{name}"
            if (
                name.startswith("fence_")
                and name not in _DAEMONS
                and os.path.isfile(path)  # noqa: PTH113
                and os.access(path, os.X_OK)
            ):
                found.setdefault(name, path)
    return tuple(found[name] for name in sorted(found))


def fence_environment() -> dict[str, str]:
    """Return all variables that a fence agent gets.

    PCMK_service must not be among them: with it fencing.py switches its time limits off.
    HOME is there for agents that keep their credentials in a file below it.
    """
    return {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "LC_ALL": "C.UTF-8",
        "HOME": os.environ.get("HOME", "/root"),
    }
