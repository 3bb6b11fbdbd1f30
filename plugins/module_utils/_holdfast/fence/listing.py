# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answers to ``list`` and ``list-status`` as data."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..errors import AgentError

SEPARATOR = ","
"""Between plug, alias and status, unless the parameter ``separator`` says another."""

_POWER = {"on": "on", "off": "off"}
_NO_PLUG = re.compile(r"N/A\Z|NOTICE:|(Status|Success|Failed|Usage):", re.IGNORECASE)
_DROPPED = re.compile(r"^\[\d+ bytes dropped\]$", re.MULTILINE)
_COLUMNS = re.compile(r"\s+")


@dataclass(frozen=True)
class ListedPlug:
    """One plug of a device; ``power`` is on, off or unknown, the last for a plain list too."""

    plug: str
    alias: str = ""
    power: str = "unknown"


def parse_listing(
    text: str, action: str, parameters: Mapping[str, object]
) -> tuple[ListedPlug, ...]:
    """Return the plugs in the standard output *text* of ``list`` or ``list-status``.

    Each line is ``plug,alias`` or ``plug,alias,STATUS`` (fencing.py of fence-agents 4.12,
    fence_action); an alias may hold the separator too.  fence_virt prints columns of name,
    uuid and state for both.  What an agent says in place of a list (N/A, a NOTICE) is no plug.
    Raises AgentError when a part of the answer was dropped because there was too much of it.
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
            plugs.append(_separated(line, separator, action))
        else:
            plugs.append(_columns(line))
    return tuple(plugs)


def find_plug(plugs: Sequence[ListedPlug], plug: str) -> ListedPlug | None:
    """Return the listed plug that *plug* means: by its own name, or by its alias if one has it."""
    for one in plugs:
        if one.plug == plug:
            return one
    aliased = [one for one in plugs if one.alias == plug]
    if len(aliased) == 1:
        return aliased[0]
    # Outlets of stacked power switches are listed as SWITCH:OUTLET; alone it is of the first.
    first = [one for one in plugs if one.plug == f"1:{plug}"]
    return first[0] if first else None


def shown(plugs: Sequence[ListedPlug]) -> str:
    """Return *plugs* for people, those with another name with it."""
    names = [one.plug + (f" ({one.alias})" if one.alias else "") for one in plugs]
    return ", ".join(names) or "none"


def _separated(line: str, separator: str, action: str) -> ListedPlug:
    plug, _separator, rest = line.partition(separator)
    if action != "list-status":
        return ListedPlug(plug, rest)
    alias, _separator, status = rest.rpartition(separator)
    return ListedPlug(plug, alias, _POWER.get(status.strip().lower(), "unknown"))


def _columns(line: str) -> ListedPlug:
    words = _COLUMNS.split(line)
    if len(words) == 3 and words[2].lower() in _POWER:
        return ListedPlug(words[0], words[1], _POWER[words[2].lower()])
    return ListedPlug(line)
