# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report on the rehearsals of a cluster's fencing: JSON, and a text for people beside it.

It has the last rehearsals of each node, and when each plug last answered and was last switched
for real.  A proof counts only with the settings it was made with: with another agent, address or
user it is dropped.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ...documents import fields_of, list_of, mapping_of, read_document_file, row
from ...errors import DocumentError, FenceError
from ...secrets import without_secrets
from ...storage.whole_file import cannot_create, write_text
from ..topology import FenceConfiguration, FenceStep
from .ask import SwitchedLevel
from .judge import FAILS, NodeVerdict

VERSION = 1
KEPT = 20
"""Rehearsals kept of each node."""

ASKED = "asked"
SWITCHED = "switched"

_DAY = 86400.0
_MODE = 0o640


@dataclass(frozen=True)
class Rehearsal:
    """One rehearsal of a node: ``at`` in seconds since 1970, ``manner`` asked or switched.

    ``remarks`` are about what it did not show.
    """

    at: float
    manner: str
    verdict: str
    problems: tuple[str, ...]
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class PlugRecord:
    """When a plug last proved something, in seconds since 1970, and how long that took.

    ``settings`` identifies the settings of its device then.  None: never.
    """

    device: str
    plug: str | None
    settings: str
    answered_at: float | None = None
    answered_seconds: float | None = None
    switched_at: float | None = None
    switched_seconds: float | None = None


@dataclass(frozen=True)
class NodeReport:
    """The rehearsals of one node, newest first, and its plugs."""

    rehearsals: tuple[Rehearsal, ...] = ()
    plugs: tuple[PlugRecord, ...] = ()

    @property
    def verdict(self) -> str:
        """The newest verdict, "" when there was no rehearsal yet."""
        return self.rehearsals[0].verdict if self.rehearsals else ""

    @property
    def switched_at(self) -> float | None:
        """When all of its plugs were switched for real; None when one never was."""
        times = [one.switched_at for one in self.plugs]
        known = [one for one in times if one is not None]
        return min(known) if known and len(known) == len(times) else None


Report = Mapping[str, NodeReport]


def load_report(path: Path) -> dict[str, NodeReport]:
    """Return the report in the file *path* by node, empty when there is no such file.

    Raises FenceError when the file cannot be read or is no report.
    """
    try:
        document = row(read_document_file(path, str(path)))
        if document.get("version") != VERSION:
            raise DocumentError(f"{path} is of another version.")
        return _NODES(document.get("nodes"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise FenceError(f"The report {path} cannot be read: {error.strerror}.") from None
    except DocumentError:
        raise FenceError(
            f"The report {path} is not one of this version of holdfast; move it away, and the"
            " next rehearsal begins a new one."
        ) from None


def save_report(path: Path, report: Report, now: float) -> None:
    """Write *report* to *path*, whole or not at all, and its text beside it with ``.txt``.

    Raises StorageError when that cannot be done.
    """
    document = {
        "version": VERSION,
        "written": now,
        "nodes": {name: asdict(one) for name, one in sorted(report.items())},
    }
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_create(str(path), error) from None
    write_text(path, json.dumps(document, indent=2, sort_keys=True) + "\n", _MODE)
    write_text(text_path(path), report_text(report, now), _MODE)


def text_path(path: Path) -> Path:
    """Return where the text of the report at *path* is."""
    return path.with_name(path.name + ".txt")


def updated(
    report: Report,
    configuration: FenceConfiguration,
    verdicts: Sequence[NodeVerdict],
    now: float,
) -> dict[str, NodeReport]:
    """Return *report* with the *verdicts* of asking; nodes and plugs that are gone are dropped."""
    new = {name: one for name, one in report.items() if name in configuration.levels}
    for verdict in verdicts:
        old = new.get(verdict.node, NodeReport())
        answered = {one.step: one.seconds for one in verdict.steps if one.power != "unknown"}
        plugs = tuple(
            _dated(record, ASKED, now, answered.get(step))
            for step, record in _records(configuration, verdict.node, old)
        )
        entry = Rehearsal(now, ASKED, verdict.verdict, verdict.problems, verdict.remarks)
        new[verdict.node] = NodeReport((entry, *old.rehearsals)[:KEPT], plugs)
    return new


def with_switched(
    report: Report,
    configuration: FenceConfiguration,
    node: str,
    levels: Sequence[SwitchedLevel],
    now: float,
    remarks: Sequence[str] = (),
) -> dict[str, NodeReport]:
    """Return *report* with the *levels* of *node* that were switched for real."""
    old = report.get(node, NodeReport())
    problems = tuple(problem_of(node, one) for one in levels if one.problem)
    proved: dict[FenceStep, float] = {}
    for one in levels:
        if not one.problem and one.off_seconds is not None:
            for step in configuration.levels_of(node)[one.number - 1]:
                proved[step] = one.off_seconds
    plugs = tuple(
        _dated(record, SWITCHED, now, proved.get(step))
        for step, record in _records(configuration, node, old)
    )
    verdict = FAILS if problems or not levels else old.verdict
    entry = Rehearsal(now, SWITCHED, verdict, problems, tuple(remarks))
    return {**report, node: NodeReport((entry, *old.rehearsals)[:KEPT], plugs)}


def problem_of(node: str, level: SwitchedLevel) -> str:
    """Return the sentence on a level that failed when it was tried for real."""
    return f"{node}: level {level.number} for real: {level.problem}."


def stale(report: Report, nodes: Sequence[str], max_age: float, now: float) -> list[str]:
    """Return a sentence on each node that was not switched for real for *max_age* days."""
    found = []
    for node in nodes:
        at = report.get(node, NodeReport()).switched_at
        if at is None:
            found.append(f"{node} was never switched off and on for real with these settings.")
        elif now - at > max_age * _DAY:
            found.append(
                f"{node} was last switched off and on for real {_age(at, now)} ago,"
                f" which is more than {max_age:g} days."
            )
    return found


def node_summary(one: NodeReport, now: float) -> dict[str, Any]:
    """Return the history of a node as plain data for a module's result."""
    return {
        "switched_at": one.switched_at,
        "switched_age": None if one.switched_at is None else now - one.switched_at,
        "plugs": [
            {name: value for name, value in asdict(plug).items() if name != "settings"}
            for plug in one.plugs
        ],
        "rehearsals": [asdict(rehearsal) for rehearsal in one.rehearsals],
    }


def report_text(report: Report, now: float) -> str:
    """Return *report* for people, the nodes whose fencing does not work first."""
    lines = [f"Rehearsals of fencing, as of {_date(now)}"]
    ranked = sorted(report, key=lambda name: (report[name].verdict != FAILS, name))
    for name in ranked:
        lines += ["", *_node_text(name, report[name], now)]
    return "\n".join(lines) + "\n"


def _node_text(name: str, one: NodeReport, now: float) -> Iterator[str]:
    yield f"{name}: {one.verdict or 'never rehearsed'}"
    for plug in one.plugs:
        what = plug.device if plug.plug is None else f"{plug.device} plug {plug.plug}"
        answered = _when(plug.answered_at, plug.answered_seconds, now)
        switched = _when(plug.switched_at, plug.switched_seconds, now)
        yield f"  {what}: last answered {answered}; last switched for real {switched}"
    for rehearsal in one.rehearsals:
        yield f"  {_date(rehearsal.at)} {rehearsal.manner}: {rehearsal.verdict}"
        for sentence in (*rehearsal.problems, *rehearsal.remarks):
            yield f"    {sentence}"


def _when(at: float | None, seconds: float | None, now: float) -> str:
    if at is None:
        return "never"
    took = "" if seconds is None else f", in {seconds:.1f} s"
    return f"{_age(at, now)} ago{took}"


def _age(at: float, now: float) -> str:
    seconds = max(0.0, now - at)
    for unit, length in (("days", _DAY), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} seconds"


def _date(at: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))


def _records(
    configuration: FenceConfiguration, node: str, old: NodeReport
) -> Iterator[tuple[FenceStep, PlugRecord]]:
    """Return each plug of *node* once with what is known of it with the settings of now."""
    known = {(one.device, one.plug, one.settings): one for one in old.plugs}
    steps = [step for level in configuration.levels_of(node) for step in level]
    for step in dict.fromkeys(steps):
        settings = _settings(configuration, step)
        fresh = PlugRecord(step.device, step.plug, settings)
        yield step, known.get((step.device, step.plug, settings), fresh)


def _settings(configuration: FenceConfiguration, step: FenceStep) -> str:
    """Return a digest of the device's settings without its secrets.

    A password could be found by trying passwords against a digest with it.
    """
    device = configuration.devices[step.device]
    settings = json.dumps([device.agent, without_secrets(dict(device.parameters))], sort_keys=True)
    return hashlib.sha256(settings.encode()).hexdigest()[:16]


def _dated(record: PlugRecord, manner: str, now: float, seconds: float | None) -> PlugRecord:
    """Return *record* with the time of a proof that took *seconds*; None for no proof."""
    if seconds is None:
        return record
    if manner == ASKED:
        return replace(record, answered_at=now, answered_seconds=round(seconds, 3))
    return replace(record, switched_at=now, switched_seconds=round(seconds, 3))


def _node(value: object) -> NodeReport:
    return NodeReport(**_NODE.read(value))


def _rehearsal(value: object) -> Rehearsal:
    return Rehearsal(**_REHEARSAL.read(value))


def _plug(value: object) -> PlugRecord:
    return PlugRecord(**_PLUG.read(value))


_REHEARSAL = fields_of(Rehearsal)
_PLUG = fields_of(PlugRecord)
_NODE = replace(
    fields_of(NodeReport, rehearsals=list_of(_rehearsal), plugs=list_of(_plug)),
    required=frozenset({"rehearsals", "plugs"}),
)
_NODES = mapping_of(_node)
