# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of resource agents, and where their files are.

An agent is named ``ocf:PROVIDER:TYPE`` and lies at DIR/resource.d/PROVIDER/TYPE.
OCF 1.1 leaves DIR to the installer and allows several; the first that has the
file wins, as in pacemaker.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import AgentError, InputError

OCF_ROOT = "/usr/lib/ocf"
"""Where distributions install resource agents and the functions these share."""

_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]*\Z")

_PACKAGES = {
    "heartbeat": "the package resource-agents of the distribution",
    "pacemaker": "the package pacemaker-resource-agents (Debian) or pacemaker (EL)",
    "openstack": "the package openstack-resource-agents",
    "holdfast": "the collection's own agents with the role holdfast.ha.agents",
}


@dataclass(frozen=True)
class AgentName:
    """A resource agent: standard (always ``ocf``), provider and type."""

    standard: str
    provider: str
    type: str

    def __str__(self) -> str:
        return f"{self.standard}:{self.provider}:{self.type}"


def parse_agent(value: object, option: str = "agent") -> AgentName:
    """Return *value* such as ``ocf:heartbeat:Dummy`` as an AgentName.

    Provider and type become parts of a path, so a slash, ``..`` and empty parts are
    refused with an InputError.
    """
    parts = value.split(":") if isinstance(value, str) else []
    if len(parts) == 3 and parts[0] == "ocf" and all(_is_part(part) for part in parts[1:]):
        return AgentName(*parts)
    raise InputError(option, value, "a resource agent's name such as ocf:heartbeat:IPaddr2")


def locate(name: AgentName, directories: Sequence[str] = (OCF_ROOT,)) -> str:
    """Return the path of the agent *name*, looked for in DIR/resource.d of *directories*.

    Raises AgentError, with where it looked and what to install, when no directory has it,
    or when the file that has its name cannot be executed.
    """
    looked = [_path(directory, name) for directory in directories]
    for path in looked:
        if os.path.isfile(path):  # noqa: PTH113
            if os.access(path, os.X_OK):
                return path
            raise AgentError(
                f"The resource agent {name} at {path} is not executable for this user;"
                " make it mode 0755."
            )
    install = _PACKAGES.get(
        name.provider, f"whatever provides the resource agents of {name.provider}"
    )
    raise AgentError(
        f"The resource agent {name} is not installed: looked for"
        f" {', '.join(looked) or 'it in no directory at all'}. Install {install}."
    )


def installed_agents(directories: Sequence[str] = (OCF_ROOT,)) -> dict[AgentName, str]:
    """Return all agents below DIR/resource.d of *directories* with their paths, by name.

    As pacemaker lists them: hidden files and those that cannot be executed are none, and
    the first directory that has an agent wins.  A directory that is not there has none.
    Raises AgentError when one cannot be read.
    """
    found: dict[AgentName, str] = {}
    for directory in directories:
        top = f"{directory.rstrip('/')}/resource.d"
        for provider in _names(top):
            for kind in _names(f"{top}/{provider}"):
                path = f"{top}/{provider}/{kind}"
                if os.path.isfile(path) and os.access(path, os.X_OK):  # noqa: PTH113
                    found.setdefault(AgentName("ocf", provider, kind), path)
    return dict(sorted(found.items(), key=lambda item: str(item[0])))


def _names(directory: str) -> list[str]:
    """Return what in *directory* can be part of an agent's name."""
    try:
        entries = os.listdir(directory)  # noqa: PTH208
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise AgentError(
            f"The resource agents in {directory} cannot be listed: {error.strerror}."
        ) from None
    return [entry for entry in entries if _is_part(entry)]


def _is_part(text: str) -> bool:
    return bool(_PART.match(text)) and ".." not in text


def _path(directory: str, name: AgentName) -> str:
    return f"{directory.rstrip('/')}/resource.d/{name.provider}/{name.type}"
