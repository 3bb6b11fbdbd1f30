# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The map of the status page: every node a tile, every service a mark in the tile of its node.

It shows a hundred nodes at a glance.  A mark has a sign besides its colour, and its service
and state when it is pointed at; who does not see the marks is told how many there are of
each kind, and finds each service in its node's card, to which the tile leads.
"""

from __future__ import annotations

from typing import Any

from .. import wording as words
from ..wording import Tone
from .html import Html, escaped, state

MARKS_SHOWN = 60
"""Of more services than this on one node the tile shows as many, the worst first, and a count."""

_SIGNS = {Tone.GOOD: "", Tone.WARN: "~", Tone.BAD: "!", Tone.QUIET: "-"}
_WORST_FIRST = (Tone.BAD, Tone.WARN, Tone.GOOD, Tone.QUIET)
_TOLD = {
    Tone.GOOD: "as wanted",
    Tone.WARN: "on the way, or in doubt",
    Tone.BAD: "in trouble",
    Tone.QUIET: "stopped, as wanted",
}


def cluster_map(status: dict[str, Any]) -> Html:
    """Return the tiles of all nodes, one for services that are nowhere, and what marks mean."""
    nodes = status["nodes"]
    tiles = [_node_tile(name, node, status) for name, node in nodes.items()]
    placed = {one for node in nodes.values() for one in node["services"]}
    others = [one for one in status["services"] if one not in placed]
    if others:
        name = '<span class="where">On no node</span>'
        tiles.append(f'<li class="tile aside">{name}{_marks(others, status)}</li>')
    return Html(f'<ul class="map">\n{chr(10).join(tiles)}\n</ul>\n{_legend()}')


def anchor(name: str) -> Html:
    """Return the id of a node's card, to which its tile leads."""
    return escaped(f"node-{name}")


def _node_tile(name: str, node: dict[str, Any], status: dict[str, Any]) -> str:
    tone = words.node_tone(node)
    manager = status["manager"]
    badge = (
        '<span class="badge">manager</span>'
        if manager["active"] and manager["node"] == name
        else ""
    )
    drained = state("maintenance", Tone.WARN) if node["maintenance"] is not None else ""
    return (
        f'<li class="tile is-{tone.value}"><a href="#{anchor(name)}">'
        f'<span class="where">{escaped(name)}</span>{badge}'
        f"{state(node['state'], words.node_tone({**node, 'maintenance': None}))}{drained}</a>"
        f"{_marks(node['services'], status)}</li>"
    )


def _marks(service_ids: list[str], status: dict[str, Any]) -> str:
    tones = {one: _tone(one, status) for one in service_ids}
    ranked = sorted(service_ids, key=lambda one: (_WORST_FIRST.index(tones[one]), one))
    counts = [(tone, sum(found is tone for found in tones.values())) for tone in _WORST_FIRST]
    told = ", ".join(f"{count} {_TOLD[tone]}" for tone, count in counts if count)
    marks = "".join(
        f'<span class="mark {tones[one].value}" title="{_title(one, status)}">'
        f"{_SIGNS[tones[one]]}</span>"
        for one in ranked[:MARKS_SHOWN]
    )
    left = len(ranked) - MARKS_SHOWN
    more = f'<span class="more">+{left}</span>' if left > 0 else ""
    number = len(service_ids)
    spoken = f"{number} service{'' if number == 1 else 's'}" + (f": {told}" if told else "")
    return (
        f'<span class="spoken">{escaped(spoken)}</span>'
        f'<span class="marks" aria-hidden="true">{marks}{more}</span>'
    )


def _tone(service_id: str, status: dict[str, Any]) -> Tone:
    return words.service_tone(status["services"][service_id], status["nodes"])


def _title(service_id: str, status: dict[str, Any]) -> Html:
    service = status["services"][service_id]
    note = words.service_note(service, status["nodes"])
    return escaped(f"{service_id}: {service['state']}" + (f"; {note}" if note else ""))


def _legend() -> str:
    entries = "".join(
        f'<span><span class="mark {tone.value}">{sign}</span> {_TOLD[tone]}</span>'
        for tone, sign in _SIGNS.items()
    )
    return f'<p class="legend" aria-hidden="true">Each mark is a service: {entries}</p>'
