# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""One fence device of a configuration: its agent, its parameters, its times.

Also what tells one device from another: two entries may mean the same power switch,
which then must not cut two nodes with one plug, nor be asked two things at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import InputError
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
    ``retries_of_actions`` are for single actions.  ``assumed_after`` is the operator's word
    for how many seconds after a confirmed "off" the node's watchdog has acted at the latest.
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
        """Return what tells this device from others: where it is.

        Two devices without an address are the same when all of their parameters are.
        """
        given = self.parameters
        address = given.get("ip", given.get("ipaddr"))
        agent = self.agent.rsplit("/", 1)[-1]
        if address is not None:
            return agent, str(address), str(given.get("ipport"))
        return agent, tuple(sorted((name, str(value)) for name, value in given.items()))

    def switch(self, plug: str | None) -> tuple[object, ...]:
        """Return what tells one power switch from another: the device, and the plug on it."""
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
        retries=_retries(fields.get("retries", DEFAULT_RETRIES), f"{where}.retries"),
        retries_of_actions={
            action: _retries(one["retries"], f"{where}.actions.{action}.retries")
            for action, one in actions.items()
            if "retries" in one
        },
        host_map=parse_host_map(fields.get("host_map", {}), f"{where}.host_map"),
        assumed_after=(
            None if assumed_after is None else seconds(assumed_after, f"{where}.assumed_after")
        ),
    )


def mapping(value: object, where: str, keys: frozenset[str] | None = None) -> Mapping[str, Any]:
    """Return *value* as a mapping of texts, with none but *keys* where they are given."""
    if not isinstance(value, dict):
        raise InputError(where, type(value).__name__, "a mapping")
    for key in value:
        if not isinstance(key, str) or (keys is not None and key not in keys):
            names = ", ".join(sorted(keys)) if keys else "texts"
            raise InputError(where, key, f"only these keys: {names}")
    return value


def seconds(value: Any, where: str, least: float | None = None) -> float:
    """Return *value* as a number of seconds above 0, or from *least* on, up to an hour."""
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


def _retries(value: object, where: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_RETRIES:
        return value
    raise InputError(where, value, f"a whole number from 0 to {MAX_RETRIES}")
