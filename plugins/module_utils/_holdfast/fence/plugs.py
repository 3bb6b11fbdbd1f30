# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plugs of a device with many nodes: the host map, and the device's own list.

A host map is a mapping, ``{n1: 1, n2: [2, 3]}``, or one line as in other cluster managers,
``n1:1;n2:2,3``.  A range such as ``n[01:16]`` means all of its names, and a range in the plug,
``[1:16]``, counts along.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..errors import AgentError, InputError
from ..names import node_name
from .call import check_plug

_RANGE = re.compile(r"\[(\d+):(\d+)\]")
_BETWEEN = re.compile(r"[;\s]+")
_ENTRY = re.compile(r"((?:[^\[:]|\[[^\]]*\])+):(.+)")
"""A node and its plugs, at the first colon that is not inside a range."""

MAX_RANGE = 2000
"""The largest number of nodes of a cluster."""


def parse_host_map(value: object, option: str) -> dict[str, tuple[str, ...]]:
    """Return the plugs of each node in *value*; a node may have several, one for each supply.

    Raises InputError with *option* for a node that is there twice, a plug of two nodes, and a
    value that is no node or no plug.
    """
    found: dict[str, tuple[str, ...]] = {}
    owners: dict[str, str] = {}
    for pattern, given in _entries(value, option):
        for node, plugs in _expanded(pattern, given, option):
            where = f"{option}.{node}"
            node_name(node, option)
            if node in found:
                raise InputError(option, node, "each node once")
            found[node] = tuple(check_plug(plug, where) for plug in plugs)
            for plug in found[node]:
                owner = owners.setdefault(plug, node)
                if owner != node or found[node].count(plug) > 1:
                    raise InputError(where, plug, f"a plug of its own: {owner} is on it too")
    return found


def _entries(value: object, option: str) -> Iterator[tuple[str, list[str]]]:
    if isinstance(value, str):
        for entry in filter(None, _BETWEEN.split(value)):
            parts = _ENTRY.fullmatch(entry)
            if parts is None:
                raise InputError(option, entry, "entries such as n1:1 or n1:1,2")
            yield parts[1], parts[2].split(",")
    elif isinstance(value, Mapping):
        for node, plugs in value.items():
            given = plugs if isinstance(plugs, (list, tuple)) else [plugs]
            if not given:
                raise InputError(f"{option}.{node}", plugs, "at least one plug")
            yield str(node), [_plug(one, f"{option}.{node}") for one in given]
    else:
        raise InputError(option, value, "a mapping of nodes to plugs, or a text n1:1;n2:2,3")


def _plug(value: object, option: str) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, str):
        return value
    raise InputError(option, value, "the name or number of a plug, or a list of them")


def _expanded(pattern: str, plugs: list[str], option: str) -> Iterator[tuple[str, list[str]]]:
    """Return the node and plugs of each name in the range of *pattern*."""
    match = _RANGE.search(pattern)
    if match is None:
        yield pattern, plugs
        return
    names = _numbers(match, option)
    counted = [(plug, _RANGE.search(plug)) for plug in plugs]
    numbers = {plug: _numbers(one, option) for plug, one in counted if one is not None}
    for plug in plugs:
        if plug not in numbers:
            raise InputError(option, plug, f"a range in the plug too, as {pattern} has one")
        if len(numbers[plug]) != len(names):
            raise InputError(option, plug, f"a range of {len(names)} plugs, as {pattern} has")
    for place, name in enumerate(names):
        yield (
            _RANGE.sub(name, pattern, count=1),
            [_RANGE.sub(numbers[plug][place], plug, count=1) for plug in plugs],
        )


def _numbers(match: re.Match[str], option: str) -> list[str]:
    first, last = match.group(1), match.group(2)
    count = int(last) - int(first) + 1
    if not 1 <= count <= MAX_RANGE:
        raise InputError(option, match.group(0), f"a range that counts up to {MAX_RANGE} names")
    width = len(first) if first.startswith("0") else 0
    return [str(number).zfill(width) for number in range(int(first), int(last) + 1)]


SEPARATOR = ","
"""Between plug, alias and status, unless the parameter ``separator`` sets another."""

_POWER = {"on": "on", "off": "off"}
_NO_PLUG = re.compile(r"N/A\Z|NOTICE:|(Status|Success|Failed|Usage):", re.IGNORECASE)
_DROPPED = re.compile(r"^\[\d+ bytes dropped\]$", re.MULTILINE)
_COLUMNS = re.compile(r"\s+")


@dataclass(frozen=True)
class ListedPlug:
    """One plug of a device; ``power`` is on, off or unknown, which it is in a plain list."""

    plug: str
    alias: str = ""
    power: str = "unknown"


def parse_listing(
    text: str, action: str, parameters: Mapping[str, object]
) -> tuple[ListedPlug, ...]:
    """Return the plugs in the standard output *text* of ``list`` or ``list-status``.

    Each line is ``plug,alias`` or ``plug,alias,STATUS`` (fencing.py of fence-agents 4.12,
    fence_action); an alias may hold the separator too.  fence_virt prints columns of name,
    uuid and state for both.  N/A and a NOTICE are no plugs.  Raises AgentError when a part of
    the output was dropped because it was too long.
    """
    if _DROPPED.search(text):
        raise AgentError(f"The answer to {action} is too long to be read whole.")
    given = parameters.get("separator")
    separator = given if isinstance(given, str) and given else SEPARATOR
    plugs = []
    for line in text.splitlines():
        line = line.strip()
        if not line or _NO_PLUG.match(line):
            continue
        if separator in line:
            plug, _separator, alias = line.partition(separator)
            status = ""
            if action == "list-status":
                alias, _separator, status = alias.rpartition(separator)
            power = _POWER.get(status.strip().lower(), "unknown")
            plugs.append(ListedPlug(plug, alias, power))
            continue
        words = _COLUMNS.split(line)
        if len(words) == 3 and words[2].lower() in _POWER:
            plugs.append(ListedPlug(words[0], words[1], _POWER[words[2].lower()]))
        else:
            plugs.append(ListedPlug(line))
    return tuple(plugs)


def find_plug(plugs: Sequence[ListedPlug], plug: str) -> ListedPlug | None:
    """Return the plug named *plug*, else the only one with that alias, else None."""
    for one in plugs:
        if one.plug == plug:
            return one
    aliased = [one for one in plugs if one.alias == plug]
    if len(aliased) == 1:
        return aliased[0]
    # Outlets of stacked power switches are listed as SWITCH:OUTLET; without SWITCH it is 1.
    first = [one for one in plugs if one.plug == f"1:{plug}"]
    return first[0] if first else None


def shown(plugs: Sequence[ListedPlug]) -> str:
    """Return *plugs* as text for people, with their aliases."""
    names = [one.plug + (f" ({one.alias})" if one.alias else "") for one in plugs]
    return ", ".join(names) or "none"
