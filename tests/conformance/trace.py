# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Traces of a scenario and how two of them are compared.

Level 0 is what there is at the end: the manager, each node's state, each service's state,
place and where it runs.  Level 1 adds what happened to each node and service in its order,
without times.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

COUNTS = frozenset(
    (
        *("svc", "node", "fence", "move", "run", "add", "del", "lrm", "off", "ha"),
        *("giveup", "reject", "balance", "pick", "unlock"),
    )
)
"""The kinds of lines that level 1 compares."""

Line = tuple[int, str, str, str]


@dataclass
class End:
    """What there is when a trace ends."""

    manager: str = ""
    nodes: dict[str, str] = field(default_factory=dict)
    services: dict[str, str] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    running: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))


def read(path: Path) -> list[Line]:
    """Return the lines of a trace in a file."""
    lines = []
    for text in path.read_text(encoding="utf-8").splitlines():
        parts = [*text.split(" ", 3), ""]
        lines.append((int(parts[0]), parts[1], parts[2], parts[3].strip()))
    return lines


def level0(lines: list[Line]) -> End:
    """Return what there is at the end of a trace."""
    end = End()
    for _time, kind, subject, detail in lines:
        if kind in ("add", "del", "svc", "move"):
            _follow_service(end, kind, subject, detail)
        elif kind == "node":
            end.nodes[subject] = detail.split(">")[1]
        elif kind == "master":
            end.manager = subject
        else:
            _follow_running(end, kind, subject, detail)
    end.running = {
        key: where for key, where in end.running.items() if where and key in end.services
    }
    return end


def level1(lines: list[Line]) -> dict[str, list[str]]:
    """Return what happened to each subject, in its order."""
    found: dict[str, list[str]] = defaultdict(list)
    for _time, kind, subject, detail in lines:
        if kind in COUNTS:
            found[subject].append(f"{kind} {detail}".strip())
    return dict(found)


def double_runs(lines: list[Line]) -> list[str]:
    """Return where a trace has a service running twice, or recovered without a proof."""
    end, wrong, proved = End(), [], {}
    for time, kind, subject, detail in lines:
        _follow_running(end, kind, subject, detail)
        if kind == "run" and len(end.running[subject]) > 1:
            wrong.append(f"{time} {subject} runs on {sorted(end.running[subject])}")
        elif kind == "fence":
            proved[subject] = detail == "ack"
        elif kind == "move" and proved.get(detail.split(">")[0]) is False:
            wrong.append(f"{time} {subject} is moved before {detail} is proved")
    return wrong


def _follow_service(end: End, kind: str, subject: str, detail: str) -> None:
    if kind == "add":
        end.services[subject], end.places[subject] = "new", detail[1:]
    elif kind == "del":
        end.services.pop(subject, None)
        end.places.pop(subject, None)
    elif kind == "move":
        end.places[subject] = detail.split(">")[1]
    else:
        end.services[subject] = detail.split()[0].split(">")[1]
        place = re.search(r"\bnode=(\S+)", detail)
        if place:
            end.places[subject] = place[1]


def _follow_running(end: End, kind: str, subject: str, detail: str) -> None:
    words = detail.split()
    if kind == "run":
        (end.running[subject].add if detail[0] == "+" else end.running[subject].discard)(detail[1:])
    elif kind == "xferd":
        end.running[subject].discard(words[1].split(">")[0])
    elif kind == "off" or (kind == "in" and words[:1] == ["power"] and words[2:] == ["off"]):
        node = subject if kind == "off" else words[1]
        for where in end.running.values():
            where.discard(node)
    elif kind == "in" and "manual-migrate" in words:
        end.running[words[1]].clear()
    elif kind == "in" and re.match(r"service \S+ add \S+ \S+ 1$", detail):
        end.running[words[1]].add(words[3])
