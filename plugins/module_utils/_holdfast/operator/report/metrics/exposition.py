# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Metrics as text in the Prometheus exposition format, version 0.0.4.

The rules for names and for escaping are those of its page "Exposition formats"; metrics are
named after its "Metric and label naming": base units, a total for a counter.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field


class Kind(str, enum.Enum):
    """What a metric's numbers are."""

    GAUGE = "gauge"
    COUNTER = "counter"
    SUMMARY = "summary"


@dataclass(frozen=True)
class Metric:
    """A metric: its name without the common prefix, what its numbers are, and its one-line help."""

    name: str
    kind: Kind
    help: str


@dataclass(frozen=True)
class Sample:
    """One number of a metric; *suffix* is ``_sum`` or ``_count`` of a summary."""

    metric: Metric
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)
    suffix: str = ""


def render_metrics(
    prefix: str,
    catalogue: Sequence[Metric],
    samples: Iterable[Sample],
    common: Mapping[str, str],
) -> str:
    """Return *samples* as text, each metric of the *catalogue* that has some with HELP and TYPE.

    Metrics stand in the catalogue's order, and the samples of one in the order given; each
    has the labels *common* before its own.
    """
    found: dict[str, list[Sample]] = {}
    for sample in samples:
        found.setdefault(sample.metric.name, []).append(sample)
    lines: list[str] = []
    for metric in catalogue:
        rows = found.get(metric.name)
        if rows:
            name = prefix + metric.name
            lines.append(f"# HELP {name} {_escaped_help(metric.help)}")
            lines.append(f"# TYPE {name} {metric.kind.value}")
            lines.extend(_line(name, row, common) for row in rows)
    return "\n".join(lines) + "\n" if lines else ""


def _line(name: str, sample: Sample, common: Mapping[str, str]) -> str:
    pairs = {**common, **sample.labels}.items()
    labels = ",".join(f'{key}="{_escaped(value)}"' for key, value in pairs)
    shown = f"{{{labels}}}" if labels else ""
    return f"{name}{sample.suffix}{shown} {_number(sample.value)}"


def _number(value: float) -> str:
    """Return a number; whole ones without a point, so that a version reads as one."""
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(float(value))


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _escaped_help(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")
