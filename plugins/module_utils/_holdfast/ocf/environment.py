# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The environment in which a resource agent runs, and the values of its parameters as text.

It is built from nothing, so that no setting of ours or of an operator's shell gets
in: OCF 1.1, Parameter passing; the names beyond it are those that pacemaker's
executor sets and that agents have come to expect.  Left out on purpose: HA_LOGFILE and
HA_LOGFACILITY, so that agents log to their standard error, which we keep; OCF_TRACE_RA,
which makes agents write every secret that they are given into a file.

The type of a parameter in an agent's metadata is advice.  Some agents give a parameter a type
that its own default does not have; for such a parameter nothing is checked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ..errors import InputError
from ..names import did_you_mean
from ..process.run import EXIT_REASON
from .locate import OCF_ROOT, AgentName

RUN_DIRECTORY = "/run/resource-agents"
"""HA_RSCTMP: where agents keep state that must not survive a boot."""

SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

FEATURE_SET = "3.18.0"
"""Whose variables these are (CRM_FEATURE_SET in pacemaker's crm.h of 2023).  Agents take
it for the newer spelling of pacemaker's commands, and none at all for a very old one."""

_ROLES = (
    *("start", "stop", "promote", "demote", "active", "inactive", "available"),
    *("master", "slave", "promoted", "unpromoted", "all"),
)

META_NAMES = frozenset(
    {
        *("clone", "clone_max", "clone_node_max", "globally_unique", "interleave", "ordered"),
        *("promotable", "promoted_max", "promoted_node_max", "master_max", "master_node_max"),
        *("notify", "notify_type", "notify_operation", "notify_all_hosts"),
        *(f"notify_{role}_{what}" for role in _ROLES for what in ("resource", "uname")),
        *("migrate_source", "migrate_target"),
        *("role", "physical_host", "container_attribute_target"),
    }
)
"""What a cluster tells an agent of a resource's place in it (pacemaker's executor sets
them as OCF_RESKEY_CRM_meta_NAME; those that hang on a single call are not among them)."""

_NEEDED = {
    "notify": ("notify_type", "notify_operation"),
    "migrate_to": ("migrate_target",),
    "migrate_from": ("migrate_source",),
}


def agent_environment(
    agent: AgentName,
    *,
    instance: str,
    action: str,
    timeout: float,
    interval: float = 0.0,
    check_level: int | None = None,
    parameters: Mapping[str, str] | None = None,
    meta: Mapping[str, str] | None = None,
    ocf_root: str = OCF_ROOT,
    node_name: str = "",
    run_directory: str = RUN_DIRECTORY,
    extra: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return all variables for one call; *timeout* and *interval* are in seconds.

    Without OCF_ROOT most agents fail, and some print nothing and say success, so it is
    always there.  The interval tells a probe (0) from a health check; agents answer
    differently to the two.  Agents that escalate by themselves read the timeout.
    *meta* has names of ``META_NAMES``.
    """
    environment = {
        "PATH": SEARCH_PATH,
        "LC_ALL": "C",
        "OCF_ROOT": ocf_root,
        "OCF_RA_VERSION_MAJOR": "1",
        "OCF_RA_VERSION_MINOR": "1",
        "OCF_OUTPUT_FORMAT": "text",
        "OCF_EXIT_REASON_PREFIX": EXIT_REASON,
        "OCF_RESOURCE_INSTANCE": instance,
        "OCF_RESOURCE_TYPE": agent.type,
        "OCF_RESOURCE_PROVIDER": agent.provider,
        "OCF_RESKEY_crm_feature_set": FEATURE_SET,
        "OCF_RESKEY_CRM_meta_timeout": _milliseconds(timeout),
        "OCF_RESKEY_CRM_meta_interval": _milliseconds(interval),
        "OCF_RESKEY_CRM_meta_name": action,
        "HA_RSCTMP": run_directory,
    }
    if node_name:
        environment["OCF_RESKEY_CRM_meta_on_node"] = node_name
        environment["OCF_RESKEY_CRM_meta_on_node_uuid"] = node_name
    if check_level is not None:
        environment["OCF_CHECK_LEVEL"] = str(check_level)
    for name, value in (meta or {}).items():
        environment[f"OCF_RESKEY_CRM_meta_{name}"] = value
    for name, value in (parameters or {}).items():
        environment[f"OCF_RESKEY_{name}"] = value
    environment.update(extra or {})
    return environment


def check_meta(meta: Mapping[str, object], option: str = "meta") -> dict[str, str]:
    """Return *meta* as the texts that an agent gets; one that is None is left out.

    Raises InputError for a name that is none of ``META_NAMES``, and for a value that is
    not a text, a number or a boolean.
    """
    texts = {}
    for name, value in meta.items():
        if name not in META_NAMES:
            known = ", ".join(sorted(META_NAMES))
            hint = did_you_mean(name, META_NAMES)
            raise InputError(option, name, f"one of {known}{hint}")
        if value is None:
            continue
        text = written(value)
        if text is None or "\0" in text:
            raise InputError(f"{option}.{name}", value, "a text, a number or a boolean")
        texts[name] = text
    return texts


def check_meta_of_action(action: str, meta: Mapping[str, str], option: str = "meta") -> None:
    """Raise InputError when *meta* lacks what *action* makes no sense without."""
    for name in _NEEDED.get(action, ()):
        if not meta.get(name):
            raise InputError(option, sorted(meta), f"also {name}, which the action {action} needs")


def _milliseconds(seconds: float) -> str:
    """Write a time as agents get it; one above 0 must not become a probe's 0."""
    return str(max(1, round(seconds * 1000)) if seconds > 0 else 0)


TRUE_WORDS = ("yes", "true", "1", "YES", "TRUE", "True", "on", "ON")
"""What the function ocf_is_true of resource-agents takes for true (its "ja" left out)."""


FALSE_WORDS = ("no", "false", "0", "NO", "FALSE", "False", "off", "OFF")


_INTEGER = re.compile(r"[+-]?[0-9]+\Z")


_DURATION = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-zA-Z]*)")


_UNITS = {
    "ms": 0.001,
    "msec": 0.001,
    "us": 0.000001,
    "usec": 0.000001,
    "": 1.0,
    "s": 1.0,
    "sec": 1.0,
    "m": 60.0,
    "min": 60.0,
    "h": 3600.0,
    "hr": 3600.0,
    "d": 86400.0,
}


def seconds(text: str | None) -> float | None:
    """Return a duration such as ``20``, ``20s``, ``2m30s`` or ``1d`` in seconds, else None."""
    if text is None or not text.strip():
        return None
    total, position = 0.0, 0
    text = text.strip()
    while position < len(text):
        part = _DURATION.match(text, position)
        if part is None or part.group(2).lower() not in _UNITS:
            return None
        total += float(part.group(1)) * _UNITS[part.group(2).lower()]
        position = part.end()
    return total


def written(value: object) -> str | None:
    """Return *value* as an agent gets it, or None for what cannot be a parameter's value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, int, float)):
        return str(value)
    return None


def expectation(kind: str, options: Sequence[str], value: str) -> str | None:
    """Return what was expected when *value* is not of the type *kind*, else None."""
    if kind == "boolean":
        if value in TRUE_WORDS or value in FALSE_WORDS:
            return None
        # The agents' shell function knows only some spellings: "Yes" would mean false.
        return "true or false"
    if kind == "integer":
        return None if _INTEGER.match(value) else "a whole number"
    if kind in ("second", "time"):
        return None if seconds(value) is not None else "a duration such as 30 or 2m30s"
    if kind == "select" and options:
        return None if value in options else "one of " + ", ".join(options)
    return None
