# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The last failovers in one picture: a bar for each, its phases in a row, all on one scale.

So it is seen at once which took long and on what.  The table below it in words is that of each
failover's own figure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....cluster.model.maintenance import utc
from ....text import clean
from ..timeline import PhaseKind, phases, total
from ..wording import age_since
from .html import Html, escaped

LEAST_FAILOVERS = 2
"""One failover alone has nothing to be compared with, and a figure of its own."""

SHOWN = 10

_ROW = 40
_BAR = 14
_NAMES = {
    PhaseKind.DETECT: "detection",
    PhaseKind.FENCE: "fence until its proof",
    PhaseKind.START: "start, to the last service",
}


def failovers_overview(failovers: Sequence[dict[str, Any]], at: float) -> Html:
    """Return the picture of the newest failovers, the newest first; nothing for fewer than two."""
    newest = list(reversed(failovers))[:SHOWN]
    if len(newest) < LEAST_FAILOVERS:
        return Html("")
    spans = [_spans(one, at) for one in newest]
    scale = max([0.01, *(end for row in spans for _kind, _begin, end in row)])
    rows = "\n".join(
        _row(one, row, place * _ROW, scale, at)
        for place, (one, row) in enumerate(zip(newest, spans))
    )
    told = "; ".join(f"{clean(one['node'])}, {_when(one)}: {total(one)}" for one in newest)
    height = _ROW * len(newest) + 18
    keys = "".join(
        f'<span><span class="key {kind.value}"></span> {name}</span>'
        for kind, name in _NAMES.items()
    )
    return Html(
        '<figure class="sheet overview">'
        f'<svg role="img" aria-label="{escaped(f"The last failovers: {told}")}"'
        f' height="{height}">\n{rows}\n'
        f'<text class="axis" x="0" y="{height - 4}">last heartbeat</text>'
        f'<text class="axis" x="100%" y="{height - 4}" text-anchor="end">{scale:.2f} s</text>'
        f'</svg><p class="legend" aria-hidden="true">{keys}</p></figure>'
    )


def _spans(failover: dict[str, Any], at: float) -> list[tuple[PhaseKind, float, float]]:
    """Return the phases in a row: all starts are one, until the last service runs."""
    found: dict[PhaseKind, tuple[float, float]] = {}
    for phase in phases(failover, at):
        begin, end = found.get(phase.kind, (phase.begin, phase.end))
        found[phase.kind] = (min(begin, phase.begin), max(end, phase.end))
    row = []
    reached = 0.0
    for kind, (begin, end) in found.items():
        # The clocks of two nodes may differ: no bar goes back.
        first = max(begin, reached)
        reached = max(first, end)
        row.append((kind, first, reached))
    return row


def _row(
    failover: dict[str, Any],
    spans: Sequence[tuple[PhaseKind, float, float]],
    top: int,
    scale: float,
    at: float,
) -> str:
    label = f"{clean(failover['node'])}, {age_since(failover['last_heartbeat'], at)} ago"
    took = f"{spans[-1][2]:.2f} s" if failover["finished"] else "under way"
    bars = "".join(
        f'<rect class="{kind.value}" x="{begin / scale * 100:.2f}%" y="{top + 17}"'
        f' width="{max(end - begin, 0.0) / scale * 100:.2f}%" height="{_BAR}"/>'
        for kind, begin, end in spans
    )
    return (
        f'<text x="0" y="{top + 12}">{escaped(label)}</text>'
        f'<text x="100%" y="{top + 12}" text-anchor="end">{took}</text>'
        f'<rect class="track" x="0" y="{top + 17}" width="100%" height="{_BAR}"/>{bars}'
    )


def _when(failover: dict[str, Any]) -> str:
    return utc(failover["last_heartbeat"])
