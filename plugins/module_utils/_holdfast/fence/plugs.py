# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which node is on which plugs of a device that serves many.

Written as a mapping, ``{n1: 1, n2: [2, 3]}``, or in one line as cluster managers do,
``n1:1;n2:2,3``.  A range such as ``n[01:16]`` stands for all of its names, and in a plug
beside it ``[1:16]`` counts along.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ..errors import InputError
from ..names import node_name
from .request import check_plug

_RANGE = re.compile(r"\[(\d+):(\d+)\]")
_BETWEEN = re.compile(r"[;\s]+")

MAX_RANGE = 2000
"""As many as a cluster has nodes."""


def parse_host_map(value: object, option: str) -> dict[str, tuple[str, ...]]:
    """Return the plugs of each node in *value*; a node may have several, one for each supply.

    Raises InputError naming *option* for a node that is there twice, a plug that belongs to
    two nodes, and whatever is no node or no plug.
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
            node, _colon, plugs = _split(entry)
            if not node or not plugs:
                raise InputError(option, entry, "entries such as n1:1 or n1:1,2")
            yield node, plugs.split(",")
    elif isinstance(value, Mapping):
        for node, plugs in value.items():
            given = plugs if isinstance(plugs, (list, tuple)) else [plugs]
            if not given:
                raise InputError(f"{option}.{node}", plugs, "at least one plug")
            yield str(node), [_plug(one, f"{option}.{node}") for one in given]
    else:
        raise InputError(option, value, "a mapping of nodes to plugs, or a text n1:1;n2:2,3")


def _split(entry: str) -> tuple[str, str, str]:
    """Split at the first colon that is not inside a range."""
    depth = 0
    for place, character in enumerate(entry):
        depth += (character == "[") - (character == "]")
        if character == ":" and depth == 0:
            return entry[:place], ":", entry[place + 1 :]
    return entry, "", ""


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
