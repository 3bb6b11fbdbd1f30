# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pieces of HTML that the status page is put together from.

Text becomes HTML in ``escaped`` and nowhere else; what the other functions take
as ``Html`` has been through it.  The tables keep their roles when a narrow screen
turns them into lists.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NewType

from ....cluster.model.maintenance import utc
from ....text import clean
from ..timeline import Phase, phases, steps, total
from ..wording import Tone, age_since

Html = NewType("Html", str)

STARTS_DRAWN = 8
"""Of more services than this the picture shows the first starts and the last; the table has all."""

_ROW = 34
_BAR = 10
_LEAST_PERCENT = 0.8
_LABEL = 36
"""So many characters of a label fit beside its seconds on a screen 360 pixels wide."""


@dataclass(frozen=True)
class Column:
    """A column of a table; a *tight* one is not wrapped, *share* is its part of the width in %."""

    title: str
    tight: bool = False
    share: int = 0


def escaped(value: object) -> Html:
    """Return any value as text that is harmless between tags and in attributes."""
    return Html(html.escape(clean(value), quote=True))


def state(word: str, tone: Tone, extra: str = "") -> Html:
    """Return a state word with its colour."""
    return Html(f'<span class="state {tone.value}{extra}">{escaped(word)}</span>')


def moment(at: float, now: float) -> Html:
    """Return a time with its age, or a dash for none."""
    if not at:
        return escaped("-")
    return Html(f'{stamp(at)} <span class="muted">({escaped(age_since(at, now))} ago)</span>')


def stamp(at: float) -> Html:
    """Return a time for people and programs."""
    return Html(f'<time datetime="{escaped(utc(at))}">{escaped(utc(at))}</time>')


def table(caption: str, columns: Sequence[Column], rows: Sequence[Sequence[Html]]) -> Html:
    """Return a table whose first column heads its rows; it becomes a list where it is narrow."""
    heads = "".join(map(_head, columns))
    body = "\n".join(_row(columns, row) for row in rows)
    return Html(
        f'<div class="sheet"><table class="wide" role="table">'
        f"<caption>{escaped(caption)}</caption>\n"
        f'<thead role="rowgroup"><tr role="row">{heads}</tr></thead>\n'
        f'<tbody role="rowgroup">\n{body}\n</tbody></table></div>'
    )


def failover_figure(failover: dict[str, Any], at: float) -> Html:
    """Return a failover as a picture of its phases, with the table of its steps beside it."""
    node = clean(failover["node"])
    since = age_since(failover["last_heartbeat"], at)
    steps_ = "\n".join(
        f'<tr><th scope="row">{_seconds(step.seconds)}</th><td>{escaped(step.text)}</td></tr>'
        for step in steps(failover)
    )
    return Html(
        f'<article class="sheet failover"><h3>{escaped(node)}: {escaped(total(failover))}</h3>\n'
        f'<p class="muted">Last heartbeat {escaped(since)} ago</p>\n'
        f'<div class="both"><figure>{_picture(node, _drawn(phases(failover, at)))}</figure>\n'
        f"<table><caption>Steps of the failover of {escaped(node)}, in seconds since its last"
        f' heartbeat</caption>\n<thead><tr><th scope="col">Seconds</th><th scope="col">Step</th>'
        f"</tr></thead>\n<tbody>\n{steps_}\n</tbody></table></div></article>"
    )


def _head(column: Column) -> str:
    share = f' style="width:{column.share}%"' if column.share else ""
    return f'<th scope="col" role="columnheader"{share}>{escaped(column.title)}</th>'


def _row(columns: Sequence[Column], row: Sequence[Html]) -> str:
    cells = [f'<th scope="row" role="rowheader">{row[0]}</th>']
    for column, cell in zip(columns[1:], row[1:]):
        classes = "tight" if column.tight else ""
        classes = classes if cell else f"{classes} blank".strip()
        chosen = f' class="{classes}"' if classes else ""
        label = escaped(column.title)
        cells.append(f'<td role="cell"{chosen} data-label="{label}"><div>{cell}</div></td>')
    return f'<tr role="row">{"".join(cells)}</tr>'


def _drawn(found: Sequence[Phase]) -> list[Phase]:
    """Return the phases to draw: of very many starts the first ones and the last."""
    most = STARTS_DRAWN + 2
    return list(found) if len(found) <= most else [*found[: most - 1], found[-1]]


def _picture(node: str, found: Sequence[Phase]) -> Html:
    """Return one bar a phase, all on the same scale: the time since the last heartbeat."""
    scale = max(max(phase.end for phase in found), 0.01)
    height = _ROW * len(found) + 18
    told = ", ".join(f"{phase.label} {_length(phase)}" for phase in found)
    rows = "\n".join(_bar(phase, place * _ROW, scale) for place, phase in enumerate(found))
    label = f"Failover of {node}, {scale:.2f} s in all: {told}"
    return Html(
        f'<svg role="img" aria-label="{escaped(label)}" height="{height}">\n{rows}\n'
        f'<text class="axis" x="0" y="{height - 4}">last heartbeat</text>'
        f'<text class="axis" x="100%" y="{height - 4}" text-anchor="end">{scale:.2f} s</text>'
        "</svg>"
    )


def _bar(phase: Phase, top: int, scale: float) -> str:
    begin = min(max(0.0, phase.begin / scale * 100), 100 - _LEAST_PERCENT)
    width = max(phase.seconds / scale * 100, _LEAST_PERCENT)
    label = phase.label if len(phase.label) <= _LABEL else f"{phase.label[: _LABEL - 1]}\u2026"
    bar_top = top + 17
    return (
        f'<text x="0" y="{top + 12}">{escaped(label)}</text>'
        f'<text x="100%" y="{top + 12}" text-anchor="end">{escaped(_length(phase))}</text>'
        f'<rect class="track" x="0" y="{bar_top}" width="100%" height="{_BAR}" rx="2"/>'
        f'<rect class="{phase.kind.value}" x="{begin:.2f}%" y="{bar_top}" width="{width:.2f}%"'
        f' height="{_BAR}" rx="2"/>'
    )


def _length(phase: Phase) -> str:
    return f"{phase.seconds:.2f} s so far" if phase.under_way else f"{phase.seconds:.2f} s"


def _seconds(seconds: float | None) -> str:
    return "awaited" if seconds is None else f"{seconds:.2f} s"
