# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The file of a node's configuration, and what may stand in it.

The file is JSON, written by the role ``node``, and the same on all nodes but for ``node``,
``folder`` and the run directory of a sanlock that has its own.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

from .. import names
from ..cluster.model.allowed_agents import DEFAULT_ALLOWED_AGENTS
from ..cluster.model.observed import Timing
from ..cluster.model.profiles import DEFAULT, LARGE, PROFILES, profile_timing
from ..documents import read_document_file, without_format
from ..errors import DocumentError, InputError
from ..storage.authentication import Policy
from ..storage.lockspace.host_timing import (
    WATCHDOG_SETTING_SINCE,
    checked_io_timeout,
    checked_timing,
)
from .configuration import (
    EMBEDDED,
    PORTS_PER_NODE,
    SANLOCK,
    SHORTEST_BOND,
    Member,
    NodeConfiguration,
    SanlockSettings,
)
from .paths import CLUSTER_KEY

FORMAT = 1
"""The format version of a node's configuration file."""

BACKENDS = (EMBEDDED, SANLOCK)

PROFILE = "profile"
"""Key of the timing with the name of a profile, whose times count where no other is given."""

SOCKET_DIRECTORY_BYTES = 107 - len("/sanlock.sock")
"""Longest path of sanlock's run directory: that of a Unix socket has 107 bytes (unix.7)."""

_PATTERN = re.compile(r"!?[A-Za-z0-9_.:+*?\[\]-]{1,200}")
"""A pattern of allowed agents; a pattern after ``!`` refuses."""

STORAGE_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""The id in the header of a device."""


def load(path: Path) -> NodeConfiguration:
    """Return a node's checked configuration file; raises ``InputError`` naming what is wrong."""
    try:
        document = read_document_file(path, "it", unique=True)
    except OSError as error:
        text = f"the readable configuration of a node ({error.strerror})"
        raise InputError("config", str(path), text) from error
    except DocumentError as error:
        text = f"a file of valid JSON ({str(error).rstrip('.')})"
        raise InputError("config", str(path), text) from error
    if not isinstance(document, dict):
        raise InputError("config", str(path), "a file that holds one JSON object")
    try:
        return from_document(without_format(document, "It", FORMAT))
    except DocumentError as error:
        text = f"a configuration that is understood here ({str(error).rstrip('.')})"
        raise InputError("config", str(path), text) from error


def from_document(document: Mapping[str, Any]) -> NodeConfiguration:
    """Return the checked configuration of a document or of module options."""
    members = _members(document.get("members"))
    node = names.node_name(document.get("node"), "node")
    if node not in members:
        raise InputError("node", node, f"one of the members ({', '.join(sorted(members))})")
    backend = document.get("backend", EMBEDDED)
    if backend not in BACKENDS:
        raise InputError("backend", backend, f"one of {', '.join(BACKENDS)}")
    return NodeConfiguration(
        cluster=names.cluster_name(document.get("cluster"), "cluster"),
        node=node,
        storage=names.absolute_path(document.get("storage"), "storage"),
        folder=names.absolute_path(document.get("folder"), "folder"),
        members=members,
        backend=backend,
        sanlock=_sanlock(document.get("sanlock") or {}),
        agent_directories=_directories(document.get("agent_directories") or ["/usr/lib/ocf"]),
        allowed_agents=_patterns(document.get("allowed_agents")),
        fence_configuration=names.absolute_path(
            document.get("fence_configuration") or "/etc/holdfast/fence.json",
            "fence_configuration",
        ),
        authentication=_policy(document.get("authentication") or Policy.OFF.value),
        cluster_key=names.absolute_path(document.get("cluster_key") or CLUSTER_KEY, "cluster_key"),
        timing=_timing(document.get("timing") or {}, len(members)),
        storage_id=_storage_id(document.get("storage_id") or ""),
    )


def _storage_id(value: object) -> str:
    """Return *value* as the id of a device, "" for any."""
    if value == "" or (isinstance(value, str) and STORAGE_ID.fullmatch(value)):
        return value
    raise InputError("storage_id", value, "the id that storage_device_info shows")


def check_declared(configuration: NodeConfiguration) -> None:
    """Raise ``InputError`` for values that must not be declared; existing nodes run with them."""
    grace = configuration.timing.daemon_grace
    if configuration.watchdog_timeout and grace < SHORTEST_BOND:
        raise InputError(
            "timing.daemon_grace",
            grace,
            f"{SHORTEST_BOND:.0f} seconds or more where nodes have a watchdog: it would reset"
            " those that run services before systemd has replaced a daemon that hangs",
        )
    _check_silence(configuration.timing)
    if configuration.timing.keepalive:
        _check_keepalives(configuration)


def _check_silence(timing: Timing) -> None:
    """Raise ``InputError`` for heartbeats so rare that a healthy node would be a suspect."""
    most = timing.suspect_after / 2
    for name in ("heartbeat", "look"):
        value = getattr(timing, name)
        if value > most:
            expected = f"at most {most:g}, half of timing.suspect_after"
            raise InputError(f"timing.{name}", value, expected)


def _check_keepalives(configuration: NodeConfiguration) -> None:
    """Raise ``InputError`` for a cluster that cannot have keepalives, or has too few of them."""
    timing, members = configuration.timing, len(configuration.members)
    if configuration.authentication is Policy.OFF:
        expected = "0 (profile default), or authentication warn or enforce: keepalives are signed"
        raise InputError("timing.keepalive", timing.keepalive, expected)
    if members > LARGE:
        expected = f"0 (profile default) with more than {LARGE} members; there are {members}"
        raise InputError("timing.keepalive", timing.keepalive, expected)
    least = 2.5 * max(timing.heartbeat, timing.look, 2 * timing.keepalive)
    if not least <= timing.suspect_soonest <= timing.suspect_after:
        expected = (
            f"{least:g} to {timing.suspect_after:g}: two and a half times the longest of heartbeat,"
            " look and two keepalives, at most timing.suspect_after"
        )
        raise InputError("timing.suspect_soonest", timing.suspect_soonest, expected)


def to_document(configuration: NodeConfiguration) -> dict[str, Any]:
    """Return the configuration as plain data, as in its file."""
    device = {"storage_id": configuration.storage_id} if configuration.storage_id else {}
    return {
        **device,
        "format": FORMAT,
        "cluster": configuration.cluster,
        "node": configuration.node,
        "storage": str(configuration.storage),
        "folder": str(configuration.folder),
        "backend": configuration.backend,
        "sanlock": asdict(configuration.sanlock),
        "members": [one.document() for _name, one in sorted(configuration.members.items())],
        "agent_directories": list(configuration.agent_directories),
        "allowed_agents": list(configuration.allowed_agents),
        "fence_configuration": str(configuration.fence_configuration),
        "authentication": configuration.authentication.value,
        "cluster_key": str(configuration.cluster_key),
        "timing": asdict(configuration.timing),
    }


def _members(rows: object) -> dict[str, Member]:
    if not isinstance(rows, list) or not rows:
        raise InputError("members", rows, "a list of nodes with name, host_id, address and port")
    members: dict[str, Member] = {}
    taken: dict[tuple[str, int], str] = {}
    ids: dict[int, str] = {}
    for row in rows:
        member = _member(row)
        if member.name in members:
            raise InputError("members.name", member.name, "a name that no other node has")
        if member.host_id in ids:
            other = ids[member.host_id]
            raise InputError(
                "members.host_id",
                member.host_id,
                f"a host id that no other node has; nodes {other!r} and {member.name!r} share it",
            )
        for port in member.ports():
            if (member.address, port) in taken:
                raise InputError(
                    "members.port",
                    member.port,
                    f"a port whose next {PORTS_PER_NODE} are free on {member.address};"
                    f" node {taken[(member.address, port)]!r} uses {port}",
                )
            taken[(member.address, port)] = member.name
        ids[member.host_id] = member.name
        members[member.name] = member
    return members


def _member(row: object) -> Member:
    if not isinstance(row, Mapping):
        raise InputError("members", row, "a dictionary with name, host_id, address and port")
    port = names.port(row.get("port"), "members.port")
    last = names.MAX_PORT - PORTS_PER_NODE + 1
    if port > last:
        expected = f"a port of at most {last}, as the next {PORTS_PER_NODE - 1} are the node's too"
        raise InputError("members.port", port, expected)
    lease_proof = row.get("lease_proof")
    if lease_proof is not None and not isinstance(lease_proof, bool):
        expected = "true, false, or nothing for automatic: false for a virtual machine"
        raise InputError("members.lease_proof", lease_proof, expected)
    return Member(
        name=names.node_name(row.get("name"), "members.name"),
        host_id=names.host_id(row.get("host_id"), "members.host_id"),
        address=names.ip_address(row.get("address") or "127.0.0.1", "members.address"),
        port=port,
        lease_proof=lease_proof,
    )


def _policy(value: object) -> Policy:
    try:
        return Policy(value)
    except ValueError:
        known = ", ".join(one.value for one in Policy)
        raise InputError("authentication", value, f"one of {known}") from None


def _sanlock(values: object) -> SanlockSettings:
    known = [item.name for item in fields(SanlockSettings)]
    values = _known_values("sanlock", values, known)
    given = SanlockSettings(**{name: value for name, value in values.items() if value is not None})
    for name in ("io_timeout", "watchdog_timeout"):
        value = getattr(given, name)
        if isinstance(value, bool) or not isinstance(value, int):
            raise InputError(f"sanlock.{name}", value, "a whole number of seconds")
    if given.watchdog_timeout:
        # The installed version is checked when the node joins.
        checked_timing(given.io_timeout, given.watchdog_timeout, WATCHDOG_SETTING_SINCE)
    else:
        checked_io_timeout(given.io_timeout)
    if given.run_directory:
        _check_run_directory(given)
    return given


def _check_run_directory(given: SanlockSettings) -> None:
    path = str(names.absolute_path(given.run_directory, "sanlock.run_directory"))
    if len(os.fsencode(path)) > SOCKET_DIRECTORY_BYTES:
        expected = f"a path of at most {SOCKET_DIRECTORY_BYTES} bytes, for the socket in it"
        raise InputError("sanlock.run_directory", path, expected)
    if given.watchdog_timeout:
        raise InputError(
            "sanlock.watchdog_timeout",
            given.watchdog_timeout,
            "0 beside a run directory: a sanlock that a machine has to itself has no watchdog",
        )


def _timing(values: object, members: int) -> Timing:
    """Return the times of a profile for so many members, with those that differ from it."""
    known = {item.name: type(getattr(Timing(), item.name)) for item in fields(Timing)}
    given = dict(_known_values("timing", values, [PROFILE, *sorted(known)]))
    profile = given.pop(PROFILE, DEFAULT)
    if profile not in PROFILES:
        raise InputError(f"timing.{PROFILE}", profile, f"one of {', '.join(PROFILES)}")
    differ = {name: _time_or_limit(name, one, known[name]) for name, one in given.items()}
    return replace(profile_timing(profile, members), **differ)


def _known_values(option: str, values: object, known: Sequence[str]) -> Mapping[str, Any]:
    """Return the values of an option if they are a dictionary with the *known* names only."""
    if not isinstance(values, Mapping):
        raise InputError(option, values, f"a dictionary of {', '.join(known)}")
    for name in values:
        if name not in known:
            raise InputError(option, name, f"one of {', '.join(known)}")
    return values


def _time_or_limit(name: str, value: object, kind: type) -> Any:
    """Return one value of the timing, checked, as its *kind*."""
    if kind is bool:
        if isinstance(value, bool):
            return value
        raise InputError(f"timing.{name}", value, "true or false")
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float))
        or not math.isfinite(value)
        or value < 0
        or (value == 0 and name != "keepalive")
    ):
        raise InputError(f"timing.{name}", value, "a number above 0")
    if kind is int and value != int(value):
        raise InputError(f"timing.{name}", value, "a whole number above 0")
    return kind(value)


def _directories(value: object) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)):
        raise InputError("agent_directories", value, "a list of absolute paths")
    return tuple(str(names.absolute_path(one, "agent_directories")) for one in value)


def _patterns(value: object) -> tuple[str, ...]:
    """Return the patterns of allowed agents; without a value those of the default."""
    if value is None:
        return DEFAULT_ALLOWED_AGENTS
    if not isinstance(value, (list, tuple)) or not all(
        isinstance(one, str) and _PATTERN.fullmatch(one) for one in value
    ):
        expected = "a list of patterns such as ocf:heartbeat:* or !ocf:holdfast:command"
        raise InputError("allowed_agents", value, expected)
    return tuple(value)
