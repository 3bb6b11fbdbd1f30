# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The status of the cluster as a page: one HTML file that loads nothing.

It shows one moment, and may be mailed or kept as a record; for one that is kept up to date see
``page_html.py``.  The map shows a hundred nodes at a glance: a tile for each node, a mark for each
service.  A mark has a sign besides its colour, and a title with service and state; screen readers
get a count of each kind.
"""

from __future__ import annotations

from typing import Any

from ...text import clean
from ..forecast.rebalance import Rebalance
from . import page_html, wording
from .page_html import (
    Column,
    Html,
    escaped,
    failover_figure,
    failovers_overview,
    moment,
    muted,
    stamp,
    state,
    table,
)
from .page_plan import rebalance_plan
from .page_style import style_sheet
from .wording import Severity, Tone

MARKS_SHOWN = 60
"""The most marks in a tile, the worst first; the others are a count."""

_SIGNS = {Tone.GOOD: "", Tone.WARN: "~", Tone.BAD: "!", Tone.QUIET: "-"}
_WORST_FIRST = (Tone.BAD, Tone.WARN, Tone.GOOD, Tone.QUIET)
_TOLD = {
    Tone.GOOD: "as configured",
    Tone.WARN: "on the way, or in doubt",
    Tone.BAD: "in trouble",
    Tone.QUIET: "stopped, as configured",
}


def cluster_map(status: dict[str, Any]) -> Html:
    """Return the tiles of all nodes, one for services on no node, and the legend."""
    nodes = status["nodes"]
    tiles = [_node_tile(name, node, status) for name, node in nodes.items()]
    others = _on_no_node(status)
    if others:
        name = '<span class="where">On no node</span>'
        tiles.append(f'<li class="tile aside">{name}{_marks(others, status)}</li>')
    entries = "".join(
        f'<span><span class="mark {tone.value}">{sign}</span> {_TOLD[tone]}</span>'
        for tone, sign in _SIGNS.items()
    )
    legend = f'<p class="legend" aria-hidden="true">Each mark is a service: {entries}</p>'
    return Html(f'<ul class="map">\n{chr(10).join(tiles)}\n</ul>\n{legend}')


def _on_no_node(status: dict[str, Any]) -> list[str]:
    placed = {one for node in status["nodes"].values() for one in node["services"]}
    return [one for one in status["services"] if one not in placed]


def _anchor(name: str) -> Html:
    """Return the id of a node's card; the node's tile links to it."""
    return escaped(f"node-{name}")


def _node_tile(name: str, node: dict[str, Any], status: dict[str, Any]) -> str:
    tone = wording.node_tone(node)
    manager = status["manager"]
    badge = (
        '<span class="badge">manager</span>'
        if manager["active"] and manager["node"] == name
        else ""
    )
    shown, drained = _node_state(node)
    return (
        f'<li class="tile is-{tone.value}"><a href="#{_anchor(name)}">'
        f'<span class="where">{escaped(name)}</span>{badge}{shown}{drained}</a>'
        f"{_marks(node['services'], status)}</li>"
    )


def _marks(service_ids: list[str], status: dict[str, Any]) -> str:
    services, nodes = status["services"], status["nodes"]
    tones = {one: wording.service_tone(services[one], nodes) for one in service_ids}
    ranked = sorted(service_ids, key=lambda one: (_WORST_FIRST.index(tones[one]), one))
    counts = [(tone, sum(found is tone for found in tones.values())) for tone in _WORST_FIRST]
    told = ", ".join(f"{count} {_TOLD[tone]}" for tone, count in counts if count)
    marks = "".join(
        f'<span class="mark {tones[one].value}" title="{_title(one, services[one], nodes)}">'
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


def _title(service_id: str, service: dict[str, Any], nodes: dict[str, Any]) -> Html:
    note = wording.service_note(service, nodes)
    return escaped(f"{service_id}: {service['state']}" + (f"; {note}" if note else ""))


CARDS_OPEN = 12
"""Of more nodes than this the cards open on a click; the map shows them all."""

FAILOVERS_OPEN = 3
"""The failovers that are open; the older ones open on a click."""


def render_page(
    status: dict[str, Any], *, refresh: float = 0.0, plan: Rebalance | None = None
) -> str:
    """Return the status as a whole HTML document in UTF-8.

    *status* is what ``read_status`` returns.  With *refresh* the browser loads the page again after
    so many seconds, and the page warns when it is no longer written.  *plan* is what a rebalance
    would do; without it the page says that a status alone has none.
    """
    _tone, verdict = wording.verdict(status)
    sections = [
        _section("Map", cluster_map(status)),
        _section("Nodes and what runs on them", _nodes(status)),
        _section("Services", _services(status)),
        _section("Plan of a rebalance", rebalance_plan(status, plan)),
        _section("Leases", _leases(status)),
        _section("Failovers", _failovers(status)),
        _section("History", _history(status)),
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{page_html.policy(refresh)}">\n'
        f"{page_html.head(refresh)}"
        f"<title>{escaped(status['cluster'])}: {escaped(verdict)} - holdfast</title>\n"
        f"<style>\n{style_sheet()}</style>\n</head>\n<body>\n"
        f"{page_html.warning(status['at'], refresh)}{_header(status)}\n<main>\n"
        + "\n".join(sections)
        + f"\n</main>\n{_footer(status, refresh)}\n{page_html.script(refresh)}</body>\n</html>\n"
    )


def _header(status: dict[str, Any]) -> Html:
    tone, verdict = wording.verdict(status)
    parts = [
        '<header>\n<div class="verdict">'
        f"<h1>Cluster {escaped(status['cluster'])}</h1>{state(verdict, tone, ' large')}</div>",
        '<p class="facts">'
        f"<span>{escaped(wording.summary(status))}</span>"
        f"<span>{escaped(wording.capitalized(wording.manager(status)))}</span>"
        f"<span>Configuration version {escaped(status['config_version'])}</span>"
        f"<span>As of {stamp(status['at'])}</span></p>",
    ]
    for severity, (name, label) in _LISTS.items():
        found = [one for one in status["conditions"] if one["severity"] == severity.value]
        if found:
            rows = "\n".join(_condition(one) for one in found)
            parts.append(f'<ul class="{name}" aria-label="{label}">\n{rows}\n</ul>')
    if status["backend"] == "embedded":
        parts.append(f'<p class="note">{escaped(wording.EMBEDDED)}</p>')
    parts.append("</header>")
    return Html("\n".join(parts))


_LISTS = {
    Severity.ERROR: ("problems", "Errors"),
    Severity.WARNING: ("warnings", "Warnings"),
    Severity.NOTE: ("under-way", "In progress"),
}
"""The style and the label of the list of each severity."""


def _condition(one: dict[str, str]) -> str:
    advice = ""
    if one["severity"] != Severity.NOTE.value:
        advice = f' <span class="next">Next: <code>{escaped(one["next"])}</code></span>'
    return f"<li>{escaped(one['text'])}{advice}</li>"


def _section(title: str, content: Html) -> Html:
    return Html(f"<section>\n<h2>{escaped(title)}</h2>\n{content}\n</section>")


def _nodes(status: dict[str, Any]) -> Html:
    cards = [_node_card(name, node, status) for name, node in status["nodes"].items()]
    others = _on_no_node(status)
    if others:
        title = '<div class="name"><h3>On no node</h3></div>'
        cards.append(Html(f'<li class="card aside">{title}{_runs(others, status)}</li>'))
    grid = '<ul class="nodes">\n' + "\n".join(cards) + "\n</ul>"
    if len(status["nodes"]) > CARDS_OPEN:
        summary = f"The cards of all {len(status['nodes'])} nodes"
        return Html(f"<details><summary>{summary}</summary>\n{grid}\n</details>")
    return Html(grid)


def _node_card(name: str, node: dict[str, Any], status: dict[str, Any]) -> Html:
    tone = wording.node_tone(node)
    lease = clean(node["host_lease"]["state"])
    facts = {
        "For": escaped(wording.age_since(node["since"], status["at"])),
        "Host id": escaped(node["host_id"]),
        "Host lease": escaped(lease),
        "Score": escaped(node["score"]),
        "Address": escaped(node["address"]),
    }
    if not node["since"]:
        del facts["For"]
    rows = "".join(f"<div><dt>{key}</dt><dd>{value}</dd></div>" for key, value in facts.items())
    note = wording.node_note(node, status["at"])
    why = f'<p class="why">{escaped(note)}</p>' if note else ""
    shown, drained = _node_state(node)
    return Html(
        f'<li class="card is-{tone.value}" id="{_anchor(name)}">'
        f'<div class="name"><h3>{escaped(name)}</h3>'
        f"<span>{drained} {shown}</span></div>"
        f"<dl>{rows}</dl>{why}{_runs(node['services'], status)}</li>"
    )


def _node_state(node: dict[str, Any]) -> tuple[Html, Html]:
    """Return a node's state with the tone of the state alone, and its maintenance, if any."""
    shown = state(node["state"], wording.node_tone({**node, "maintenance": None}))
    return shown, Html("") if node["maintenance"] is None else state("maintenance", Tone.WARN)


def _runs(service_ids: list[str], status: dict[str, Any]) -> Html:
    if not service_ids:
        return Html('<p class="none">No services</p>')
    rows = ""
    for name in service_ids:
        service = status["services"][name]
        moves = service["target"] and service["target"] != service["node"]
        target = f' <span class="muted">to {escaped(service["target"])}</span>' if moves else ""
        shown = _service_state(service, status)
        rows += f"<li><span>{escaped(name)}{target}</span>{shown}</li>"
    return Html(f'<ul class="runs" aria-label="Services">{rows}</ul>')


def _service_state(service: dict[str, Any], status: dict[str, Any]) -> Html:
    return state(service["state"], wording.service_tone(service, status["nodes"]))


def _services(status: dict[str, Any]) -> Html:
    columns = [
        Column("Service"),
        Column(wording.state_heading(status), tight=True),
        Column("Node"),
        Column("For", tight=True),
        Column("Resources"),
        Column("Last change", share=32),
    ]
    rows = []
    for service_id, service in status["services"].items():
        shown = _service_state(service, status)
        if service["state"] != service["wanted"]:
            shown = Html(f'{shown}<span class="under">desired: {escaped(service["wanted"])}</span>')
        rows.append(
            [
                escaped(service_id),
                shown,
                escaped(wording.service_place(service)),
                escaped(wording.age_since(service["since"], status["at"])),
                _resources(service["resources"]),
                escaped(wording.service_note(service, status["nodes"])),
            ]
        )
    return table("Services", columns, rows) if rows else muted("No services are declared yet.")


def _resources(resources: list[dict[str, Any]]) -> Html:
    rows = "".join(
        f'<div>{escaped(one["name"])} <span class="muted">{escaped(one["agent"])}</span></div>'
        for one in resources
    )
    return Html(f"<div>{rows}</div>") if rows else escaped(wording.UNTOLD)


def _leases(status: dict[str, Any]) -> Html:
    columns = [
        Column("Lease"),
        Column("Node"),
        Column("State", tight=True),
        Column("Version", tight=True),
        Column("Renewed", tight=True),
    ]
    rows = [
        _lease_row("manager lease", status["manager"], "epoch", needed=True),
        _lease_row("configuration lease", status["configuration_lease"], "version", needed=False),
    ]
    for name, node in status["nodes"].items():
        lease = node["host_lease"]
        rows.append(
            [
                escaped(f"host lease {node['host_id']}"),
                escaped(name),
                state(lease["state"], wording.lease_tone(lease["state"])),
                escaped(f"generation {lease['generation']}"),
                escaped(lease["timestamp"] or ""),
            ]
        )
    clock = "Renewed is in seconds of the holder's own clock; a lease is live while it changes."
    return Html(f'{table("Leases", columns, rows)}\n<p class="note">{escaped(clock)}</p>')


def _lease_row(name: str, lease: dict[str, Any], version: str, *, needed: bool) -> list[Html]:
    """Return a row for a lease; one that is not *needed* all the time may be free."""
    free = Tone.BAD if needed else Tone.QUIET
    held = state("held", Tone.GOOD) if lease["active"] else state("not held", free)
    if lease["active"] is None:
        held = state("not known whether paused", Tone.WARN)
    last = " (the last)" if lease["active"] is False and lease["node"] else ""
    return [
        escaped(name),
        escaped(f"{clean(lease['node'])}{last}" or wording.UNTOLD),
        held,
        escaped(f"{version} {lease['epoch']}"),
        escaped(""),
    ]


def _failovers(status: dict[str, Any]) -> Html:
    newest = [failover_figure(one, status["at"]) for one in reversed(status["failovers"])]
    if not newest:
        return muted("No failover is on record.")
    shown, older = newest[:FAILOVERS_OPEN], newest[FAILOVERS_OPEN:]
    content = f"{failovers_overview(status['failovers'], status['at'])}\n" + "\n".join(shown)
    if older:
        content += (
            f"\n<details><summary>{len(older)} older</summary>\n"
            + "\n".join(older)
            + "\n</details>"
        )
    return Html(content)


def _history(status: dict[str, Any]) -> Html:
    columns = [
        Column("Time"),
        Column("What", tight=True),
        Column("About"),
        Column("Text", share=44),
    ]
    rows = [
        [
            moment(event["at"], status["at"]),
            escaped(event["kind"]),
            escaped(wording.event_subject(event)),
            escaped(event["text"]),
        ]
        for event in reversed(status["events"])
    ]
    return table("History, newest first", columns, rows) if rows else muted("Nothing is on record.")


def _footer(status: dict[str, Any], refresh: float) -> Html:
    renewed = "this page does not refresh itself"
    if refresh:
        slow = (
            f"<noscript> (without scripts every {page_html.without_script(refresh)} s)</noscript>"
        )
        renewed = (
            f'it is loaded again every {refresh:g} s{slow}, and was read <span id="age">then</span>'
        )
    return Html(
        f"<footer><p>Read from the cluster's storage at {stamp(status['at'])}. All times are UTC"
        f" and all ages count up to that moment; {renewed}.</p></footer>"
    )
