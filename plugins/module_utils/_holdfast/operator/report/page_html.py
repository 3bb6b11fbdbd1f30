# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pieces of HTML of the status page.

Text becomes ``Html`` in ``escaped`` only.  Tables keep their roles when a narrow screen turns them
into lists.

The script of a page that ``holdfast status --watch`` writes loads the page again; the policy allows
that script by its hash, and nothing else.  It can be paused, and does not load while a part of the
page is opened, text is selected, or the keyboard focus is in it (WCAG 2.2, 2.2.2; failure F41).
Without scripts the browser loads the page less often.  A page that is no longer written shows its
age.
"""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NewType

from ...cluster.model.maintenance import utc
from ...text import clean
from .history import Phase, PhaseKind, phases, steps, total
from .wording import Tone, age_since

Html = NewType("Html", str)

STARTS_DRAWN = 8
"""The most starts in the picture, the first ones and the last; the table has all."""

_ROW = 34
_BAR = 10
_LEAST_PERCENT = 0.8
_LABEL = 36
"""The most characters of a label: they fit beside its seconds on a screen 360 pixels wide."""


@dataclass(frozen=True)
class Column:
    """A column of a table; a *tight* one is not wrapped, *share* is its width in %."""

    title: str
    tight: bool = False
    share: int = 0


def escaped(value: object) -> Html:
    """Return any value as text that is safe between tags and in attributes."""
    return Html(html.escape(clean(value), quote=True))


def muted(text: str) -> Html:
    """Return a paragraph in muted colour."""
    return Html(f'<p class="muted">{escaped(text)}</p>')


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
    """Return a table whose first column heads its rows; the style makes it a list if narrow."""
    heads = ""
    for column in columns:
        share = f' style="width:{column.share}%"' if column.share else ""
        title = escaped(column.title)
        heads += f'<th scope="col" role="columnheader"{share}>{title}</th>'
    body = "\n".join(_row(columns, row) for row in rows)
    return Html(
        f'<div class="sheet"><table class="wide" role="table">'
        f"<caption>{escaped(caption)}</caption>\n"
        f'<thead role="rowgroup"><tr role="row">{heads}</tr></thead>\n'
        f'<tbody role="rowgroup">\n{body}\n</tbody></table></div>'
    )


def failover_figure(failover: dict[str, Any], at: float) -> Html:
    """Return a failover: a picture of its phases beside the table of its steps."""
    node = clean(failover["node"])
    since = age_since(failover["last_heartbeat"], at)
    steps_ = "\n".join(
        f'<tr><th scope="row">{_seconds(step.seconds)}</th><td>{escaped(step.text)}</td></tr>'
        for step in steps(failover)
    )
    return Html(
        f'<article class="sheet failover"><h3>{escaped(node)}: {escaped(total(failover))}</h3>\n'
        f'<p class="muted">Last heartbeat {escaped(since)} ago</p>\n'
        f'<div class="both"><figure>{_picture(node, phases(failover, at))}</figure>\n'
        f"<table><caption>Steps of the failover of {escaped(node)}, in seconds since its last"
        f' heartbeat</caption>\n<thead><tr><th scope="col">Seconds</th><th scope="col">Step</th>'
        f"</tr></thead>\n<tbody>\n{steps_}\n</tbody></table></div></article>"
    )


def _row(columns: Sequence[Column], row: Sequence[Html]) -> str:
    cells = [f'<th scope="row" role="rowheader">{row[0]}</th>']
    for column, cell in zip(columns[1:], row[1:]):
        classes = "tight" if column.tight else ""
        classes = classes if cell else f"{classes} blank".strip()
        chosen = f' class="{classes}"' if classes else ""
        label = escaped(column.title)
        cells.append(f'<td role="cell"{chosen} data-label="{label}"><div>{cell}</div></td>')
    return f'<tr role="row">{"".join(cells)}</tr>'


def _picture(node: str, found: Sequence[Phase]) -> Html:
    """Return a bar for each phase; of very many starts for the first ones and the last."""
    most = STARTS_DRAWN + 2
    if len(found) > most:
        found = [*found[: most - 1], found[-1]]
    scale = max(max(phase.end for phase in found), 0.01)
    told = ", ".join(f"{phase.label} {_length(phase)}" for phase in found)
    rows = "\n".join(_bar(phase, place * _ROW, scale) for place, phase in enumerate(found))
    label = f"Failover of {node}, {scale:.2f} s in all: {told}"
    return _chart(label, rows, _ROW * len(found) + 18, scale)


def _chart(label: str, rows: str, height: int, scale: float) -> Html:
    """Return rows of bars over an axis of *scale* seconds since the last heartbeat."""
    return Html(
        f'<svg role="img" aria-label="{escaped(label)}" height="{height}">\n{rows}\n'
        f'<text class="axis" x="0" y="{height - 4}">last heartbeat</text>'
        f'<text class="axis" x="100%" y="{height - 4}" text-anchor="end">{scale:.2f} s</text>'
        "</svg>"
    )


def _bars(
    label: str, took: str, top: int, size: str, bars: Iterable[tuple[PhaseKind, float, float]]
) -> str:
    """Return a row of *bars*: its text, its track, and each bar with its begin and width in %.

    *size* are attributes of the track and the bars.
    """
    drawn = "".join(
        f'<rect class="{kind.value}" x="{begin:.2f}%" y="{top + 17}" width="{width:.2f}%" {size}/>'
        for kind, begin, width in bars
    )
    return (
        f'<text x="0" y="{top + 12}">{escaped(label)}</text>'
        f'<text x="100%" y="{top + 12}" text-anchor="end">{escaped(took)}</text>'
        f'<rect class="track" x="0" y="{top + 17}" width="100%" {size}/>{drawn}'
    )


def _bar(phase: Phase, top: int, scale: float) -> str:
    begin = min(max(0.0, phase.begin / scale * 100), 100 - _LEAST_PERCENT)
    width = max(phase.seconds / scale * 100, _LEAST_PERCENT)
    label = phase.label if len(phase.label) <= _LABEL else f"{phase.label[: _LABEL - 1]}\u2026"
    size = f'height="{_BAR}" rx="2"'
    return _bars(label, _length(phase), top, size, [(phase.kind, begin, width)])


def _length(phase: Phase) -> str:
    return f"{phase.seconds:.2f} s so far" if phase.under_way else f"{phase.seconds:.2f} s"


def _seconds(seconds: float | None) -> str:
    return "awaited" if seconds is None else f"{seconds:.2f} s"


LATE = 5.0
"""Seconds: a page is too old after three times its refresh and these."""

LEAST = 1.0
"""The least seconds between two loads of a page."""

WITHOUT_SCRIPT = 10
LEAST_WITHOUT_SCRIPT = 60.0
"""Without scripts: the times its refresh, and the least seconds, between two loads."""

_SCRIPT = """
(function () {
  "use strict";
  var data = document.getElementById("kept").dataset;
  var shown = document.getElementById("age");
  var warning = document.getElementById("stale");
  var line = document.getElementById("keeping");
  var told = document.getElementById("keeping-told");
  var button = document.getElementById("pause");
  var begun = Date.now();
  var paused = false;
  function words(seconds) {
    if (seconds < 120) { return seconds + " s"; }
    return seconds < 7200 ? Math.floor(seconds / 60) + " min" : Math.floor(seconds / 3600) + " h";
  }
  function held() {
    if (paused) { return "Paused; press again to go on."; }
    if (document.querySelector("details[open]")) {
      return "Not loaded again while a part of it is opened.";
    }
    if (!getSelection().isCollapsed) { return "Not loaded again while text is selected."; }
    if (document.querySelector("body :focus-visible")) {
      return "Not loaded again while the keyboard is in the page.";
    }
    return "";
  }
  function put(place, text) { if (place.textContent !== text) { place.textContent = text; } }
  function tell() {
    var age = Math.max(0, Math.floor(Date.now() / 1000 - Number(data.at)));
    var why = held();
    var old = !why && age > Number(data.late);
    put(shown, words(age) + " ago");
    if (old) { put(document.getElementById("stale-age"), words(age)); }
    if (warning.hidden === old) { warning.hidden = !old; }
    line.classList.toggle("held", why !== "");
    put(told, why ? why + " It shows how things were " + words(age) + " ago."
      : "Loaded again every " + data.refresh + " s.");
    if (!why && Date.now() - begun >= Number(data.refresh) * 1000) {
      begun = Date.now();
      location.reload();
    }
  }
  button.addEventListener("click", function () {
    paused = !paused;
    button.setAttribute("aria-pressed", String(paused));
    if (!paused) { button.blur(); }
    tell();
  });
  line.hidden = false;
  tell();
  setInterval(tell, 1000);
}());
"""


def policy(refresh: float) -> str:
    """Return the page's content security policy: its style, and with *refresh* its script."""
    allowed = "default-src 'none'; style-src 'unsafe-inline'"
    if not refresh:
        return allowed
    digest = base64.b64encode(hashlib.sha256(_SCRIPT.encode()).digest()).decode()
    return f"{allowed}; script-src 'sha256-{digest}'"


def head(refresh: float) -> Html:
    """Return the header that makes a browser without scripts load the page again."""
    if not refresh:
        return Html("")
    seconds = without_script(refresh)
    return Html(f'<noscript><meta http-equiv="refresh" content="{seconds}"></noscript>\n')


def without_script(refresh: float) -> int:
    """Return the seconds after which a browser without scripts loads the page again."""
    return round(max(LEAST_WITHOUT_SCRIPT, WITHOUT_SCRIPT * refresh))


def warning(at: float, refresh: float) -> Html:
    """Return the warning that the page is old, hidden at first, and the button that pauses it."""
    if not refresh:
        return Html("")
    late = escaped(3 * refresh + LATE)
    every = escaped(f"{max(LEAST, refresh):g}")
    return Html(
        f'<div id="kept" data-at="{escaped(at)}" data-late="{late}" data-refresh="{every}">'
        '<p id="stale" class="stale" role="alert" hidden><strong>This page is'
        ' <span id="stale-age"></span> old.</strong> Nobody writes it any more, so what it shows'
        " may be no longer so. See holdfast status on a node.</p></div>\n"
        '<p id="keeping" class="keeping" hidden><button type="button" id="pause"'
        ' aria-pressed="false">Pause</button><span id="keeping-told"></span></p>\n'
    )


def script(refresh: float) -> Html:
    """Return the script that loads the page again and shows its age."""
    return Html(f"<script>{_SCRIPT}</script>\n" if refresh else "")


LEAST_FAILOVERS = 2
"""The overview compares failovers; each has a figure besides."""

SHOWN = 10

_TIMELINE_ROW = 40
_TIMELINE_BAR = 14
_NAMES = {
    PhaseKind.DETECT: "detection",
    PhaseKind.FENCE: "fence until its proof",
    PhaseKind.START: "start, to the last service",
}


def failovers_overview(failovers: Sequence[dict[str, Any]], at: float) -> Html:
    """Return the picture of the newest failovers, the newest first; empty for fewer than two."""
    newest = list(reversed(failovers))[:SHOWN]
    if len(newest) < LEAST_FAILOVERS:
        return Html("")
    spans = [_spans(one, at) for one in newest]
    scale = max([0.01, *(end for row in spans for _kind, _begin, end in row)])
    rows = "\n".join(
        _timeline_row(one, row, place * _TIMELINE_ROW, scale, at)
        for place, (one, row) in enumerate(zip(newest, spans))
    )
    told = "; ".join(
        f"{clean(one['node'])}, {utc(one['last_heartbeat'])}: {total(one)}" for one in newest
    )
    chart = _chart(f"The last failovers: {told}", rows, _TIMELINE_ROW * len(newest) + 18, scale)
    keys = "".join(
        f'<span><span class="key {kind.value}"></span> {name}</span>'
        for kind, name in _NAMES.items()
    )
    return Html(
        f'<figure class="sheet overview">{chart}'
        f'<p class="legend" aria-hidden="true">{keys}</p></figure>'
    )


def _spans(failover: dict[str, Any], at: float) -> list[tuple[PhaseKind, float, float]]:
    """Return the phases in a row; all starts are one phase, until the last service runs."""
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


def _timeline_row(
    failover: dict[str, Any],
    spans: Sequence[tuple[PhaseKind, float, float]],
    top: int,
    scale: float,
    at: float,
) -> str:
    label = f"{clean(failover['node'])}, {age_since(failover['last_heartbeat'], at)} ago"
    took = f"{spans[-1][2]:.2f} s" if failover["finished"] else "under way"
    bars = (
        (kind, begin / scale * 100, max(end - begin, 0.0) / scale * 100)
        for kind, begin, end in spans
    )
    return _bars(label, took, top, f'height="{_TIMELINE_BAR}"', bars)
