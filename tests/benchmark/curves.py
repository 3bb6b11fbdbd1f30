# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A picture, as SVG, of costs against time: each curve falls in steps towards its base."""

from __future__ import annotations

import math
from typing import NamedTuple

WIDTH, LEFT, TOP, BOTTOM, RIGHT, LINE = 760, 70, 40, 40, 130, 16
"""The picture, in pixels."""
COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b", "#7f7f7f")


class Curve(NamedTuple):
    """Better and better costs, each with its seconds, and the cost that they are compared with.

    ``others`` are costs of another program, shown as points.
    """

    name: str
    base: float
    points: list[tuple[float, float]]
    others: tuple[tuple[float, float], ...] = ()


class Scale(NamedTuple):
    """The range of log10 of the share above the base, the seconds in all, and the height."""

    lowest: float
    highest: float
    seconds: float
    height: int

    def place(self, seconds: float, above: float) -> tuple[float, float]:
        """Return where a point of the picture is, from the left and from the top."""
        power = min(self.highest, max(self.lowest, math.log10(max(above, 10**self.lowest))))
        across = LEFT + min(1.0, seconds / self.seconds) * (WIDTH - LEFT - RIGHT)
        share = (self.highest - power) / (self.highest - self.lowest)
        return across, TOP + share * (self.height - TOP - BOTTOM)


def picture(
    title: str, caption: str, curves: list[Curve], seconds: float, lowest: float, highest: float
) -> str:
    """Return the picture of *curves*; *lowest* and *highest* are powers of 10."""
    scale = Scale(lowest, highest, seconds, max(420, TOP + LINE * len(curves) + BOTTOM))
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {scale.height}" role="img">',
        f"<title>{title}</title>",
        "<style>text { font: 12px sans-serif } .line { fill: none; stroke-width: 1.5 }</style>",
        f'<rect width="{WIDTH}" height="{scale.height}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="20">{caption}</text>',
    ]
    for power in range(int(lowest), int(highest) + 1):
        height = scale.place(0, 10.0**power)[1]
        lines.append(f'<path d="M{LEFT} {height:.1f}H{WIDTH - RIGHT}" stroke="#dddddd"/>')
        lines.append(f'<text x="8" y="{height + 4:.1f}">{100 * 10.0**power:g} %</text>')
    for share in (0, 0.25, 0.5, 0.75, 1):
        across = scale.place(share * seconds, 1)[0]
        lines.append(
            f'<text x="{across - 8:.1f}" y="{scale.height - 12}">{share * seconds:g}</text>'
        )
    for number, curve in enumerate(curves):
        lines += drawn(number, curve, scale)
    return "\n".join([*lines, "</svg>", ""])


def drawn(number: int, curve: Curve, scale: Scale) -> list[str]:
    """Return the lines of the *number*-th *curve*."""
    base, colour = curve.base, COLOURS[number % len(COLOURS)]
    points = [scale.place(when, cost / base - 1) for when, cost in curve.points]
    path = "".join([f"H{across:.1f}V{height:.1f}" for across, height in points[1:]])
    first = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    lines = [f'<path class="line" stroke="{colour}" d="{first}{path}"/>']
    for when, cost in curve.others:
        across, height = scale.place(when, cost / base - 1)
        lines.append(f'<circle cx="{across:.1f}" cy="{height:.1f}" r="3.5" fill="{colour}"/>')
    name = f'<text x="{WIDTH - RIGHT + 8}" y="{TOP + LINE * number + 12}" fill="{colour}">'
    return [*lines, f"{name}{curve.name}</text>"]
