# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Resource agents: their names, their files, and the environment in which they run.

An agent is named ``ocf:PROVIDER:TYPE`` and its file is DIR/resource.d/PROVIDER/TYPE.  OCF 1.1
leaves DIR to the installer and allows several; the first that has the file wins, as in
pacemaker.

The environment of a call is built from nothing, so that no setting of an operator's shell gets
in: OCF 1.1, Parameter passing, and the further names that pacemaker's executor sets.  Two are
left out on purpose: HA_LOGFILE and HA_LOGFACILITY, so that agents log to their standard error,
and OCF_TRACE_RA, with which agents write every secret into a file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..errors import AgentError, InputError
from ..process.run import EXIT_REASON

OCF_ROOT = "/usr/lib/ocf"
"""Where distributions install resource agents and the functions these share."""

RUN_DIRECTORY = "/run/resource-agents"
"""HA_RSCTMP: where agents keep state that must not survive a boot."""

SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

FEATURE_SET = "3.18.0"
"""CRM_FEATURE_SET in pacemaker's crm.h of 2023.  Agents use the newer spelling of pacemaker's
commands with it, and a very old one without it."""

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
    """Return *value* such as ``ocf:heartbeat:Dummy`` as an AgentName, else raise InputError.

    Provider and type become parts of a path: no slash, no ``..`` and no empty part is allowed.
    """
    parts = value.split(":") if isinstance(value, str) else []
    if len(parts) == 3 and parts[0] == "ocf" and all(_is_part(part) for part in parts[1:]):
        return AgentName(*parts)
    raise InputError(option, value, "a resource agent's name such as ocf:heartbeat:IPaddr2")


def locate(name: AgentName, directories: Sequence[str] = (OCF_ROOT,)) -> str:
    """Return the path of the agent *name* in DIR/resource.d of *directories*.

    Raises AgentError with the places and the package to install when no directory has it,
    and when its file cannot be executed.
    """
    looked = [f"{one.rstrip('/')}/resource.d/{name.provider}/{name.type}" for one in directories]
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
        f"The resource agent {name} is not installed: searched"
        f" {', '.join(looked) or 'it in no directory at all'}. Install {install}."
    )


def installed_agents(directories: Sequence[str] = (OCF_ROOT,)) -> dict[AgentName, str]:
    """Return all agents below DIR/resource.d of *directories* with their paths, by name.

    As pacemaker lists them: without hidden files and files that cannot be executed; the first
    directory that has an agent wins.  Raises AgentError when a directory cannot be read.
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
    """Return the entries of *directory* that can be part of an agent's name."""
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


@dataclass(frozen=True)
class AgentCall:
    """One call of a resource agent for the resource ``instance``.

    ``timeout`` and ``interval`` are in seconds.  With interval 0 a monitor is a probe, with any
    other a health check; agents answer differently to the two.  ``meta`` has names of
    ``metadata.META_NAMES``.  ``ocf_root`` is where the shared functions of the distribution's
    agents are.  ``run_directory`` must be the same for all calls of a resource.  ``extra`` is
    added to the environment.  The parameters ``secrets`` are hidden in the agent's output, as are
    those that are secrets by their name.
    """

    agent: AgentName
    action: str
    instance: str
    timeout: float
    interval: float = 0.0
    check_level: int | None = None
    parameters: Mapping[str, str] = field(default_factory=dict, repr=False)
    meta: Mapping[str, str] = field(default_factory=dict)
    ocf_root: str = OCF_ROOT
    node_name: str = ""
    run_directory: str = RUN_DIRECTORY
    extra: Mapping[str, str] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()

    def environment(self) -> dict[str, str]:
        """Return all variables of the call.

        OCF_ROOT is among them: without it most agents fail, and some print nothing and report
        success.
        """
        variables = {
            "PATH": SEARCH_PATH,
            "LC_ALL": "C",
            "OCF_ROOT": self.ocf_root,
            "OCF_RA_VERSION_MAJOR": "1",
            "OCF_RA_VERSION_MINOR": "1",
            "OCF_OUTPUT_FORMAT": "text",
            "OCF_EXIT_REASON_PREFIX": EXIT_REASON,
            "OCF_RESOURCE_INSTANCE": self.instance,
            "OCF_RESOURCE_TYPE": self.agent.type,
            "OCF_RESOURCE_PROVIDER": self.agent.provider,
            "OCF_RESKEY_crm_feature_set": FEATURE_SET,
            "OCF_RESKEY_CRM_meta_timeout": _milliseconds(self.timeout),
            "OCF_RESKEY_CRM_meta_interval": _milliseconds(self.interval),
            "OCF_RESKEY_CRM_meta_name": self.action,
            "HA_RSCTMP": self.run_directory,
        }
        if self.node_name:
            variables["OCF_RESKEY_CRM_meta_on_node"] = self.node_name
            variables["OCF_RESKEY_CRM_meta_on_node_uuid"] = self.node_name
        if self.check_level is not None:
            variables["OCF_CHECK_LEVEL"] = str(self.check_level)
        for name, value in self.meta.items():
            variables[f"OCF_RESKEY_CRM_meta_{name}"] = value
        for name, value in self.parameters.items():
            variables[f"OCF_RESKEY_{name}"] = value
        return {**variables, **self.extra}


def _milliseconds(seconds: float) -> str:
    """Return a time as agents get it; one above 0 must not become a probe's 0."""
    return str(max(1, round(seconds * 1000)) if seconds > 0 else 0)
