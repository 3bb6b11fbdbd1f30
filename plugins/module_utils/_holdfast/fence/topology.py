# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fence configuration: devices, and levels of steps for each node.

Levels are tried one after the other; within a level every device must succeed, as for a node
with two power supplies.  A mistake here kills the wrong node, so the whole document is checked
before any of it is used.  Two devices may mean the same power switch: two nodes must not share
one of its plugs, and it must not get two calls at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..documents import read_document, without_format
from ..errors import DocumentError, FenceError, InputError
from ..names import node_name, whole_number
from ..private_file import read_private_file
from .call import check_plug
from .plugs import parse_host_map

DEFAULT_TIMEOUT = 20.0
"""Seconds for switching a plug and proving it (power_timeout of fence-agents is 20)."""

DEFAULT_RETRIES = 1
"""Further attempts after one that failed; pacemaker's pcmk_off_retries 2 counts both."""

ACTIONS = ("on", "off", "status", "monitor", "list", "list-status", "validate-all", "diag")

MAX_SECONDS = 3600.0
MAX_RETRIES = 10

_KEYS = frozenset(
    {"agent", "parameters", "timeout", "retries", "actions", "host_map", "assumed_after"}
)


@dataclass(frozen=True)
class FenceDevice:
    """A fence device; its parameters hold secrets and are not in its repr.

    ``timeout`` is in seconds, for "on" and "off" together with their proof; ``timeouts`` and
    ``retries_of_actions`` are for single actions.  ``assumed_after`` is how many seconds after
    a confirmed "off" the node's watchdog has acted at the latest, by the operator's word.
    """

    name: str
    agent: str
    parameters: Mapping[str, object] = field(repr=False)
    timeout: float = DEFAULT_TIMEOUT
    timeouts: Mapping[str, float] = field(default_factory=dict)
    retries: int = DEFAULT_RETRIES
    retries_of_actions: Mapping[str, int] = field(default_factory=dict)
    host_map: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    assumed_after: float | None = None

    def timeout_of(self, action: str) -> float:
        """Return the seconds that *action* may take."""
        return self.timeouts.get(action, self.timeout)

    def retries_of(self, action: str) -> int:
        """Return how often *action* is tried again when it failed, other than by a timeout."""
        return self.retries_of_actions.get(action, self.retries)

    def identity(self) -> tuple[object, ...]:
        """Return what identifies the device: agent, address and port.

        Without an address it is the agent and all parameters.
        """
        given = self.parameters
        address = given.get("ip", given.get("ipaddr"))
        agent = self.agent.rsplit("/", 1)[-1]
        if address is not None:
            return agent, str(address), str(given.get("ipport"))
        return agent, tuple(sorted((name, str(value)) for name, value in given.items()))

    def switch(self, plug: str | None) -> tuple[object, ...]:
        """Return what identifies one power switch: the device, and the plug on it."""
        given = self.parameters
        own_plug = plug if plug is not None else given.get("plug", given.get("port"))
        uri = given.get("systems_uri", given.get("systems-uri"))
        return (*self.identity(), str(uri), str(own_plug))


def parse_fence_device(name: str, entry: object, where: str) -> FenceDevice:
    """Return the device that *entry* describes; raises InputError naming the place below *where*.

    *entry* is ``{"agent", "parameters", "timeout", "retries", "actions": {ACTION:
    {"timeout", "retries"}}, "host_map", "assumed_after"}``, all but the agent optional.
    """
    fields = mapping(entry, where, _KEYS)
    agent = fields.get("agent")
    if not isinstance(agent, str) or not agent:
        raise InputError(f"{where}.agent", agent, "the name or path of a fence agent")
    actions = {
        action: mapping(one, f"{where}.actions.{action}", frozenset({"timeout", "retries"}))
        for action, one in mapping(
            fields.get("actions", {}), f"{where}.actions", frozenset(ACTIONS)
        ).items()
    }
    assumed_after = fields.get("assumed_after")
    return FenceDevice(
        name=name,
        agent=agent,
        parameters=_parameters(fields.get("parameters", {}), f"{where}.parameters"),
        timeout=seconds(fields.get("timeout", DEFAULT_TIMEOUT), f"{where}.timeout"),
        timeouts={
            action: seconds(one["timeout"], f"{where}.actions.{action}.timeout")
            for action, one in actions.items()
            if "timeout" in one
        },
        retries=whole_number(
            fields.get("retries", DEFAULT_RETRIES), f"{where}.retries", 0, MAX_RETRIES
        ),
        retries_of_actions={
            action: whole_number(
                one["retries"], f"{where}.actions.{action}.retries", 0, MAX_RETRIES
            )
            for action, one in actions.items()
            if "retries" in one
        },
        host_map=parse_host_map(fields.get("host_map", {}), f"{where}.host_map"),
        assumed_after=(
            None if assumed_after is None else seconds(assumed_after, f"{where}.assumed_after")
        ),
    )


def mapping(value: object, where: str, keys: frozenset[str] | None = None) -> Mapping[str, Any]:
    """Return *value* as a mapping with texts for keys, only *keys* if given."""
    if not isinstance(value, dict):
        raise InputError(where, type(value).__name__, "a mapping")
    for key in value:
        if not isinstance(key, str) or (keys is not None and key not in keys):
            names = ", ".join(sorted(keys)) if keys else "texts"
            raise InputError(where, key, f"only these keys: {names}")
    return value


def seconds(value: Any, where: str, least: float | None = None) -> float:
    """Return *value* as a number of seconds above 0, or at least *least*, up to an hour."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if is_number and value <= MAX_SECONDS and (value > 0 if least is None else value >= least):
        return float(value)
    begin = "above 0" if least is None else f"{least:g}"
    raise InputError(where, value, f"a number of seconds from {begin} to {MAX_SECONDS:g}")


def _parameters(value: object, where: str) -> dict[str, object]:
    parameters = mapping(value, where)
    for key, one in parameters.items():
        if one is not None and not isinstance(one, (str, int, float)):
            raise InputError(f"{where}.{key}", type(one).__name__, "a text, a number or a boolean")
    if "action" in parameters:
        raise InputError(where, "action", "parameters without action: every call sets its own")
    return dict(parameters)


MAX_LEVELS = 9
"""As in other cluster managers."""

MAX_DELAY = 60.0
"""Seconds; a fence must not wait longer than the manager waits for it."""

FORMAT = 1
"""The format version of the file of the fence configuration."""

_MAX_FILE = 4 << 20


@dataclass(frozen=True)
class FenceStep:
    """One plug of one device; None for a device that serves a single machine."""

    device: str
    plug: str | None = None

    def __str__(self) -> str:
        return self.device if self.plug is None else f"{self.device} plug {self.plug}"


FenceLevel = tuple[FenceStep, ...]


@dataclass(frozen=True)
class FenceDelay:
    """Seconds before the first command of an "off": ``fixed``, and up to ``random`` more.

    Of two nodes that fence each other at the same time, the one without delay wins.
    """

    fixed: float = 0.0
    random: float = 0.0


@dataclass(frozen=True)
class FenceConfiguration:
    """All fence devices by name, and the levels and delay of each node.

    With ``plugs_as_nodes`` the names of the nodes are those of their plugs.
    """

    devices: Mapping[str, FenceDevice]
    levels: Mapping[str, tuple[FenceLevel, ...]]
    delays: Mapping[str, FenceDelay] = field(default_factory=dict)
    plugs_as_nodes: bool = False

    def levels_of(self, node: str) -> tuple[FenceLevel, ...]:
        """Return the levels of *node*; raises FenceError when it has none."""
        if node not in self.levels:
            known = ", ".join(sorted(self.levels)) or "none"
            raise FenceError(
                f"The node {node} has no fence levels; nodes that have: {known}."
                " Give it at least one level."
            )
        return self.levels[node]

    def steps_of(self, node: str) -> Iterator[tuple[int, FenceStep]]:
        """Yield each plug of *node* once, with the number of its first level."""
        seen = set()
        for number, level in enumerate(self.levels_of(node), 1):
            for step in level:
                if step not in seen:
                    seen.add(step)
                    yield number, step

    def owner_of(self, step: FenceStep) -> str:
        """Return the node whose plug *step* is, "" if that is not known; a plug has one node."""
        if self.plugs_as_nodes:
            return ""
        for node, levels in self.levels.items():
            if any(step in level for level in levels):
                return node
        return ""

    def delay_of(self, node: str) -> FenceDelay:
        """Return the delay before an "off" of *node*."""
        return self.delays.get(node, FenceDelay())

    def devices_of(self, node: str) -> tuple[str, ...]:
        """Return the names of the devices of *node*, each once, in the order of its levels."""
        return tuple(self.first_steps([node]))

    def first_steps(self, nodes: Sequence[str]) -> dict[str, FenceStep]:
        """Return for each device of *nodes* the first of their plugs on it."""
        first: dict[str, FenceStep] = {}
        for node in nodes:
            for _number, step in self.steps_of(node):
                first.setdefault(step.device, step)
        return first


def parse_fence_configuration(document: object, option: str = "fence") -> FenceConfiguration:
    """Return the configuration that *document* describes.

    *document* is ``{"devices": {NAME: DEVICE}, "nodes": {NODE: {"levels": [[{"device",
    "plug"}, ...], ...], "delay", "random_delay"}}}``; ``parse_fence_device`` describes DEVICE.
    A step without plug takes the node's plugs from the device's host map, if it has one.
    *option* starts the place in every error.  Raises InputError for any mistake, such as an
    unknown device or two nodes that share a plug.
    """
    top = mapping(document, option, frozenset({"devices", "nodes"}))
    entries = mapping(top.get("devices", {}), f"{option}.devices")
    for name in entries:
        if not name or name != name.strip() or not name.isprintable():
            raise InputError(f"{option}.devices", name, "the name of a fence device")
    devices = {
        name: parse_fence_device(name, entry, f"{option}.devices.{name}")
        for name, entry in entries.items()
    }
    levels = {}
    delays = {}
    for name, entry in mapping(top.get("nodes", {}), f"{option}.nodes").items():
        where = f"{option}.nodes.{name}"
        node = node_name(name, f"{option}.nodes")
        fields = mapping(entry, where, frozenset({"levels", "delay", "random_delay"}))
        levels[node] = _levels(fields.get("levels"), node, devices, where)
        delays[node] = FenceDelay(
            _delay(fields.get("delay", 0), f"{where}.delay"),
            _delay(fields.get("random_delay", 0), f"{where}.random_delay"),
        )
    configuration = FenceConfiguration(devices, levels, delays)
    _refuse_shared_plugs(configuration, option)
    return configuration


def load_fence_configuration(path: str) -> FenceConfiguration:
    """Return the configuration in the JSON file *path*.

    Raises FenceError when the file cannot be read, is not private (it holds passwords) or
    belongs to another user; InputError for mistakes in it.
    """
    data = read_private_file(path, "The fence configuration", _MAX_FILE, FenceError)
    try:
        # An error has a position or the name of a key, never a value.
        what = f"The fence configuration {path}"
        document = read_document(data, what, _MAX_FILE, unique=True)
        if isinstance(document, dict):
            document = without_format(document, what, FORMAT)
    except DocumentError as error:
        raise FenceError(str(error)) from None
    return parse_fence_configuration(document, path)


def _delay(value: object, where: str) -> float:
    found = seconds(value, where, least=0.0)
    if found > MAX_DELAY:
        raise InputError(where, value, f"at most {MAX_DELAY:g} seconds")
    return found


def _levels(
    levels: object, node: str, devices: Mapping[str, FenceDevice], where: str
) -> tuple[FenceLevel, ...]:
    if not isinstance(levels, list) or not 1 <= len(levels) <= MAX_LEVELS:
        raise InputError(
            f"{where}.levels",
            levels if not levels else type(levels).__name__,
            f"a list with at least one level and at most {MAX_LEVELS}",
        )
    parsed = []
    for number, level in enumerate(levels, 1):
        place = f"{where}.levels[{number}]"
        if not isinstance(level, list) or not level:
            raise InputError(place, level, "a list with at least one device")
        steps = tuple(step for entry in level for step in _steps(entry, node, devices, place))
        if len(set(steps)) != len(steps):
            raise InputError(place, [str(step) for step in steps], "each plug once in a level")
        parsed.append(steps)
    return tuple(parsed)


def _steps(
    entry: object, node: str, devices: Mapping[str, FenceDevice], where: str
) -> tuple[FenceStep, ...]:
    """Return the plugs of one entry of a level: the one given, or those of the node."""
    fields = mapping(entry, where, frozenset({"device", "plug"}))
    device = fields.get("device")
    if not isinstance(device, str) or device not in devices:
        known = ", ".join(sorted(devices)) or "none"
        raise InputError(f"{where}.device", device, f"one of the fence devices: {known}")
    plug = fields.get("plug")
    if isinstance(plug, int) and not isinstance(plug, bool):
        plug = str(plug)
    host_map = devices[device].host_map
    if plug is not None:
        step = FenceStep(device, check_plug(plug, f"{where}.plug"))
        owner = next((one for one, plugs in host_map.items() if plug in plugs), node)
        if owner != node:
            raise InputError(f"{where}.plug", plug, f"a plug that is not {owner}'s on {device}")
        return (step,)
    if not host_map:
        return (FenceStep(device),)
    if node not in host_map:
        raise InputError(
            f"{where}.device", device, f"a plug, or the node {node} in the host map of {device}"
        )
    return tuple(FenceStep(device, one) for one in host_map[node])


def _refuse_shared_plugs(configuration: FenceConfiguration, option: str) -> None:
    """Refuse two nodes on one plug, also when two device names mean the same device."""
    owners: dict[object, tuple[str, FenceStep]] = {}
    for node in configuration.levels:
        for _number, step in configuration.steps_of(node):
            key = configuration.devices[step.device].switch(step.plug)
            owner, other = owners.setdefault(key, (node, step))
            if owner != node:
                raise InputError(
                    f"{option}.nodes.{node}",
                    str(step),
                    f"a plug of its own: the node {owner} is on it too (as {other})",
                )
