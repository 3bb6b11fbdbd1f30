# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The status of the cluster as text for a terminal.

The most urgent comes first: the verdict with each problem in a sentence, then nodes, services, the
last failovers, and the last events.  Our own words are ASCII, and reasons are wrapped, not cut.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...cluster.model.maintenance import utc
from ...text import clean
from . import wording
from .history import steps, total
from .wording import Severity, Tone

EVENTS_SHOWN = 10
FAILOVERS_SHOWN = 3
RESOURCES_WIDTH = 24
LEAST_NOTE = 28
"""A last column with less room than this goes on lines of its own."""

_SIGNS = {Severity.ERROR.value: "!", Severity.WARNING.value: "?", Severity.NOTE.value: "~"}
_COLOURS = {Tone.GOOD: "32", Tone.WARN: "33", Tone.BAD: "31"}


@dataclass(frozen=True)
class Cell:
    """A cell of a table; with a *tone* it is a state word, which may be coloured."""

    text: str
    tone: Tone | None = None
    right: bool = False


def render_text(status: dict[str, Any], *, colour: bool, width: int = 100) -> str:
    """Return the status as lines of text, wrapped at *width* columns as far as names allow.

    With *colour* state words are green, yellow or red.
    """
    parts = [
        _headline(status, colour, width),
        _nodes(status, colour, width),
        _services(status, colour, width),
        _failovers(status, width),
        _events(status, width),
    ]
    return "\n\n".join("\n".join(lines) for lines in parts if lines) + "\n"


def render_failover(failover: dict[str, Any], width: int = 100) -> list[str]:
    """Return a failover's timeline: a summary, then each step in seconds since the last heartbeat.

    *failover* is an entry of ``failovers`` in the status.  Lines are wrapped at *width* columns.
    """
    lines = [f"Failover of {clean(failover['node'])}: {total(failover)}"]
    timeline = steps(failover)
    column = max(len(_seconds(step.seconds)) for step in timeline)
    for step in timeline:
        first = f"  {_seconds(step.seconds):>{column}}  "
        lines += _wrapped(step.text, width, first, " " * len(first))
    return lines


def _headline(status: dict[str, Any], colour: bool, width: int) -> list[str]:
    tone, text = wording.verdict(status)
    lines = [
        f"Cluster {clean(status['cluster'])}: {_painted(text, tone, colour)}",
        f"{wording.capitalized(wording.manager(status))}; {wording.summary(status)}",
        f"As of {utc(status['at'])}, configuration version {status['config_version']}",
    ]
    if status["backend"] == "embedded":
        lines += textwrap.wrap(wording.EMBEDDED, max(width, 40))
    if status["conditions"]:
        lines.append("")
    for one in status["conditions"]:
        sign = _SIGNS[one["severity"]]
        lines += _wrapped(clean(one["text"]), width, f"  {sign} ", "    ")
        if one["severity"] != Severity.NOTE.value:
            lines.append(f"    next: {clean(one['next'])}")
    return lines


def _nodes(status: dict[str, Any], colour: bool, width: int) -> list[str]:
    header = (
        "NODE",
        "HOST ID",
        wording.state_heading(status).upper(),
        "FOR",
        "HOST LEASE",
        "SCORE",
        "SERVICES",
        "WHY",
    )
    rows = []
    for name, node in status["nodes"].items():
        lease = clean(node["host_lease"]["state"])
        rows.append(
            [
                Cell(clean(name)),
                Cell(str(node["host_id"]), right=True),
                Cell(clean(node["state"]), wording.node_tone(node)),
                Cell(wording.age_since(node["since"], status["at"]), right=True),
                Cell(lease, wording.lease_tone(lease)),
                Cell(str(node["score"]), right=True),
                Cell(str(len(node["services"])), right=True),
                Cell(wording.node_note(node, status["at"])),
            ]
        )
    return _table(header, rows, colour, width)


def _services(status: dict[str, Any], colour: bool, width: int) -> list[str]:
    header = (
        "SERVICE",
        wording.state_heading(status).upper(),
        "NODE",
        "FOR",
        "RESOURCES",
        "LAST CHANGE",
    )
    rows = [
        [
            Cell(clean(service_id)),
            Cell(clean(service["state"]), wording.service_tone(service, status["nodes"])),
            Cell(wording.service_place(service)),
            Cell(wording.age_since(service["since"], status["at"]), right=True),
            Cell(_resources(service["resources"])),
            Cell(wording.service_note(service, status["nodes"])),
        ]
        for service_id, service in status["services"].items()
    ]
    return _table(header, rows, colour, width) if rows else ["No services are declared yet."]


def _failovers(status: dict[str, Any], width: int) -> list[str]:
    """Return the last failover, and those under way, the newest first."""
    newest = list(reversed(status["failovers"]))
    shown = [one for place, one in enumerate(newest) if place == 0 or not one["finished"]]
    lines: list[str] = []
    for failover in shown[:FAILOVERS_SHOWN]:
        if lines:
            lines.append("")
        lines += render_failover(failover, width)
    if len(shown) > FAILOVERS_SHOWN:
        lines += ["", f"({len(shown) - FAILOVERS_SHOWN} more failovers are under way)"]
    return lines


def _events(status: dict[str, Any], width: int) -> list[str]:
    header = ("LAST EVENTS", "AGO", "WHAT", "ABOUT", "TEXT")
    rows = [
        [
            Cell(utc(event["at"])),
            Cell(wording.age_since(event["at"], status["at"]), right=True),
            Cell(clean(event["kind"])),
            Cell(wording.event_subject(event)),
            Cell(clean(event["text"])),
        ]
        for event in status["events"][-EVENTS_SHOWN:]
    ]
    return _table(header, rows, False, width) if rows else []


def _table(
    header: Sequence[str], rows: Sequence[Sequence[Cell]], colour: bool, width: int
) -> list[str]:
    """Return aligned columns; the last one is wrapped within itself, or below the row."""
    count = len(header) - 1
    widths = [max(len(header[i]), *(len(row[i].text) for row in rows)) for i in range(count)]
    offset = sum(widths) + 2 * count
    below = width - offset < LEAST_NOTE
    rights = [rows[0][i].right for i in range(count)]
    heads = [Cell(header[i], right=rights[i]) for i in range(count)]
    notes = any(row[-1].text for row in rows)
    lines = [_line(heads, widths, False, "" if below or not notes else header[-1])]
    for row in rows:
        if below:
            lines.append(_line(row, widths, colour, ""))
            lines += _wrapped(row[-1].text, width, "    ", "    ")
            continue
        note = [row[-1].text]
        if len(note[0]) > width - offset:
            note = textwrap.wrap(note[0], width - offset)
        lines.append(_line(row, widths, colour, note[0]))
        lines += [" " * offset + more for more in note[1:]]
    return lines


def _line(cells: Sequence[Cell], widths: Sequence[int], colour: bool, note: str) -> str:
    padded = []
    for cell, width in zip(cells, widths):
        room = " " * (width - len(cell.text))
        text = _painted(cell.text, cell.tone, colour)
        padded.append(room + text if cell.right else text + room)
    return "  ".join([*padded, note]).rstrip()


def _painted(text: str, tone: Tone | None, colour: bool) -> str:
    code = _COLOURS.get(tone) if tone is not None else None
    return f"\x1b[{code}m{text}\x1b[0m" if colour and code else text


def _resources(resources: Sequence[dict[str, Any]]) -> str:
    """Return as many names of resources as fit, then how many more there are."""
    names = [clean(one["name"]) for one in resources]
    shown = names[:1]
    for name in names[1:]:
        if len(", ".join([*shown, name])) > RESOURCES_WIDTH:
            break
        shown.append(name)
    left = len(names) - len(shown)
    return ", ".join(shown) + (f" +{left}" if left else "") if names else wording.UNTOLD


def _wrapped(text: str, width: int, first: str, then: str) -> list[str]:
    return textwrap.wrap(text, max(width, 40), initial_indent=first, subsequent_indent=then)


def _seconds(seconds: float | None) -> str:
    return "..." if seconds is None else f"{seconds:.2f} s"
