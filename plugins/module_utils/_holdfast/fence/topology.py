# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which devices cut the power of which node: devices, and levels of steps for each node.

Levels are tried one after the other; within a level every device must succeed, as
for a node with two power supplies.  A mistake here kills the wrong node, so the
whole document is checked before any of it is used.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import FenceError, InputError
from ..names import node_name
from .request import check_plug

DEFAULT_TIMEOUT = 20.0
"""Seconds for switching a plug and proving it (power_timeout of fence-agents is 20)."""

_MAX_FILE = 4 << 20
_DEVICE_KEYS = frozenset({"agent", "parameters", "timeout"})


@dataclass(frozen=True)
class FenceDevice:
    """A fence device; its parameters hold secrets and are not in its repr."""

    name: str
    agent: str
    parameters: Mapping[str, object] = field(repr=False)
    timeout: float = DEFAULT_TIMEOUT


@dataclass(frozen=True)
class FenceStep:
    """One plug of one device; None for a device that serves a single machine."""

    device: str
    plug: str | None = None

    def __str__(self) -> str:
        return self.device if self.plug is None else f"{self.device} plug {self.plug}"


FenceLevel = tuple[FenceStep, ...]


@dataclass(frozen=True)
class FenceConfiguration:
    """All fence devices by name, and the levels of each node."""

    devices: Mapping[str, FenceDevice]
    levels: Mapping[str, tuple[FenceLevel, ...]]

    def levels_of(self, node: str) -> tuple[FenceLevel, ...]:
        """Return the levels of *node*; raises FenceError when it has none."""
        if node not in self.levels:
            known = ", ".join(sorted(self.levels)) or "none"
            raise FenceError(
                f"The node {node} has no fence levels; nodes that have: {known}."
                " Give it at least one level."
            )
        return self.levels[node]


def parse_fence_configuration(document: object, option: str = "fence") -> FenceConfiguration:
    """Return the configuration that *document* describes.

    *document* is ``{"devices": {NAME: {"agent", "parameters", "timeout"}}, "nodes":
    {NODE: {"levels": [[{"device", "plug"}, ...], ...]}}}``; *option* starts the name of
    the place in every error.  Raises InputError for any mistake, among them a device
    that is not there, and two nodes that would share a plug.
    """
    top = _mapping(document, option, frozenset({"devices", "nodes"}))
    devices = {
        _plain(name, f"{option}.devices"): _device(str(name), entry, f"{option}.devices.{name}")
        for name, entry in _mapping(top.get("devices", {}), f"{option}.devices").items()
    }
    levels = {}
    for name, entry in _mapping(top.get("nodes", {}), f"{option}.nodes").items():
        where = f"{option}.nodes.{name}"
        node = node_name(name, f"{option}.nodes")
        levels[node] = _levels(entry, devices, where)
    _refuse_shared_plugs(levels, devices, option)
    return FenceConfiguration(devices=devices, levels=levels)


def load_fence_configuration(path: str) -> FenceConfiguration:
    """Return the configuration in the JSON file *path*.

    Raises FenceError when the file cannot be read, can be read by others than its
    owner (it holds passwords), or belongs to somebody else; InputError for mistakes in it.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            _check_file(path, os.fstat(descriptor))
            data = _read(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise FenceError(
            f"The fence configuration {path} cannot be read: {error.strerror}."
        ) from None
    try:
        document = json.loads(data)
    except ValueError as error:
        # The error of the JSON reader shows a position, never the text around it.
        raise FenceError(f"The fence configuration {path} is not JSON: {error}.") from None
    return parse_fence_configuration(document, path)


def _read(descriptor: int) -> bytes:
    data = b""
    while len(data) < _MAX_FILE:
        more = os.read(descriptor, 1 << 16)
        if not more:
            break
        data += more
    return data


def _check_file(path: str, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise FenceError(f"The fence configuration {path} is not a regular file.")
    if found.st_mode & 0o077:
        raise FenceError(
            f"The fence configuration {path} holds passwords and has mode"
            f" {stat.S_IMODE(found.st_mode):04o}; make it 0600."
        )
    if found.st_uid not in (0, os.geteuid()):
        raise FenceError(
            f"The fence configuration {path} belongs to user {found.st_uid};"
            " it must belong to root or to the user that reads it."
        )


def _mapping(value: object, where: str, keys: frozenset[str] | None = None) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise InputError(where, type(value).__name__, "a mapping")
    for key in value:
        if not isinstance(key, str) or (keys is not None and key not in keys):
            names = ", ".join(sorted(keys)) if keys else "texts"
            raise InputError(where, key, f"only these keys: {names}")
    return value


def _plain(value: object, where: str) -> str:
    if isinstance(value, str) and value and value == value.strip() and value.isprintable():
        return value
    raise InputError(where, value, "the name of a fence device")


def _device(name: str, entry: object, where: str) -> FenceDevice:
    fields = _mapping(entry, where, _DEVICE_KEYS)
    agent = fields.get("agent")
    if not isinstance(agent, str) or not agent:
        raise InputError(f"{where}.agent", agent, "the name or path of a fence agent")
    parameters = _mapping(fields.get("parameters", {}), f"{where}.parameters")
    for key, value in parameters.items():
        if value is not None and not isinstance(value, (str, int, float)):
            raise InputError(
                f"{where}.parameters.{key}", type(value).__name__, "a text, a number or a boolean"
            )
    if "action" in parameters:
        raise InputError(
            f"{where}.parameters", "action", "parameters without action: every call sets its own"
        )
    timeout = fields.get("timeout", DEFAULT_TIMEOUT)
    if (
        isinstance(timeout, bool)
        or not isinstance(timeout, (int, float))
        or not 0 < timeout <= 3600
    ):
        raise InputError(f"{where}.timeout", timeout, "a number of seconds from above 0 to 3600")
    return FenceDevice(name, agent, dict(parameters), float(timeout))


def _levels(
    entry: object, devices: Mapping[str, FenceDevice], where: str
) -> tuple[FenceLevel, ...]:
    levels = _mapping(entry, where, frozenset({"levels"})).get("levels")
    if not isinstance(levels, list) or not levels:
        raise InputError(f"{where}.levels", levels, "a list with at least one level")
    parsed = []
    for number, level in enumerate(levels, 1):
        place = f"{where}.levels[{number}]"
        if not isinstance(level, list) or not level:
            raise InputError(place, level, "a list with at least one device")
        steps = tuple(_step(step, devices, place) for step in level)
        if len(set(steps)) != len(steps):
            raise InputError(place, [str(step) for step in steps], "each plug once in a level")
        parsed.append(steps)
    return tuple(parsed)


def _step(entry: object, devices: Mapping[str, FenceDevice], where: str) -> FenceStep:
    fields = _mapping(entry, where, frozenset({"device", "plug"}))
    device = fields.get("device")
    if not isinstance(device, str) or device not in devices:
        known = ", ".join(sorted(devices)) or "none"
        raise InputError(f"{where}.device", device, f"one of the fence devices: {known}")
    plug = fields.get("plug")
    if isinstance(plug, int) and not isinstance(plug, bool):
        plug = str(plug)
    return FenceStep(device, None if plug is None else check_plug(plug, f"{where}.plug"))


def _refuse_shared_plugs(
    levels: Mapping[str, tuple[FenceLevel, ...]],
    devices: Mapping[str, FenceDevice],
    option: str,
) -> None:
    """Refuse two nodes on one plug, also when two device names mean the same device."""
    owners: dict[object, tuple[str, FenceStep]] = {}
    for node, step in _all_steps(levels):
        key = _switched(devices[step.device], step.plug)
        owner, other = owners.setdefault(key, (node, step))
        if owner != node:
            raise InputError(
                f"{option}.nodes.{node}",
                str(step),
                f"a plug of its own: the node {owner} is on it too (as {other})",
            )


def _all_steps(
    levels: Mapping[str, tuple[FenceLevel, ...]],
) -> Iterator[tuple[str, FenceStep]]:
    for node, node_levels in levels.items():
        for level in node_levels:
            for step in level:
                yield node, step


def _switched(device: FenceDevice, plug: str | None) -> tuple[object, ...]:
    """Return what tells one power switch from another: where the device is, and the plug.

    Two devices without an address are the same when all of their parameters are.
    """
    given = device.parameters
    address = given.get("ip", given.get("ipaddr"))
    own_plug = plug if plug is not None else given.get("plug", given.get("port"))
    agent = device.agent.rsplit("/", 1)[-1]
    if address is not None:
        port = given.get("ipport")
        uri = given.get("systems_uri", given.get("systems-uri"))
        return agent, str(address), str(port), str(uri), str(own_plug)
    rest = tuple(sorted((name, str(value)) for name, value in given.items()))
    return agent, rest, str(own_plug)
