# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The status page's plan of a rebalance: the load of each node now and then, and the steps.

Each node has two bars on one scale, with numbers.  Of many nodes those that change most are open.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..forecast.moves import Carried
from ..forecast.rebalance import ReasonedStep, Rebalance, counted, share, why_no_step
from . import wording
from .page_html import Column, Html, escaped, muted, table

NODES_OPEN = 12
"""The most nodes that are open, those that change most; the others open on a click."""

NAMES_TOLD = 8

NOT_KNOWN = (
    "This page was made from a status document, which has neither the resources of nodes nor the"
    " rules of services, so it has no plan. A page of holdfast status --html has one."
)


def rebalance_plan(status: dict[str, Any], plan: Rebalance | None) -> Html:
    """Return what a rebalance would do now, or a sentence that says why there is nothing."""
    if plan is None:
        return muted(NOT_KNOWN)
    nothing = _why_nothing(status, plan)
    if nothing:
        return muted(nothing)
    parts = [_summary(plan), _nodes(plan), "<h3>Steps, in this order</h3>", _steps(plan.steps)]
    parts += [f'<p class="note">{escaped(one)}</p>' for one in _notes(status, plan)]
    return Html("\n".join(parts))


def _why_nothing(status: dict[str, Any], plan: Rebalance) -> str:
    """Return why there is nothing to show; empty if there is a plan."""
    if status["global_maintenance"]:
        return f"Nothing would be moved now. {wording.GLOBAL_MAINTENANCE}"
    if status["disarm"] is not None:
        return f"Nothing would be moved now. {wording.DISARMED}"
    if status["manager"]["active"] is False:
        return "Nothing would be moved now: no node holds the manager lease."
    if plan.left_out:
        return f"The plan is left out. {plan.left_out}"
    if plan.steps:
        return ""
    why = why_no_step(plan.before, plan.policy.rebalance_threshold, plan.policy)
    return f"Nothing would be moved: {why}.{_unsized(plan)}"


def _summary(plan: Rebalance) -> Html:
    number = len(plan.steps)
    steps = "1 step" if number == 1 else f"{number} steps"
    if not plan.whole:
        steps = f"The first {steps}"
    load = "mean of the shares of CPU and memory that its services declare"
    return Html(
        f'<p class="scores">{escaped(steps)} would bring the imbalance from'
        f" <strong>{plan.before:.2f}</strong> to <strong>{plan.after:.2f}</strong>; 0 is even."
        f' <span class="muted">The load of a node is the'
        f" {load if plan.by_load else 'number of its services'}.</span></p>"
    )


def _nodes(plan: Rebalance) -> Html:
    """Return the table of the nodes; of many nodes several, most behind a click."""
    measure = "Share of CPU and memory taken" if plan.by_load else "Services"
    caption = f"{measure} now and after the rebalance"
    if len(plan.nodes) <= NODES_OPEN:
        return _node_table(f"{caption}, of each node", plan, plan.nodes)
    changed = sorted(
        (name for name, (now, then) in plan.nodes.items() if now != then),
        key=lambda name: (
            -abs(_amount(plan.nodes[name][1], plan) - _amount(plan.nodes[name][0], plan)),
            name,
        ),
    )
    same = [name for name in plan.nodes if name not in set(changed)]
    most, more = changed[:NODES_OPEN], changed[NODES_OPEN:]
    parts = [str(_node_table(f"{caption}, of the nodes that change most", plan, _of(most, plan)))]
    for names, told in ((more, "Other nodes that change"), (same, "Nodes that stay as now")):
        if names:
            hidden = _node_table(f"{caption}. {told}", plan, _of(names, plan))
            parts.append(f"<details><summary>{told}: {len(names)}</summary>\n{hidden}\n</details>")
    return Html("\n".join(parts))


def _of(names: Sequence[str], plan: Rebalance) -> dict[str, tuple[Carried, Carried]]:
    return {name: plan.nodes[name] for name in names}


def _change(pair: tuple[Carried, Carried], plan: Rebalance) -> float:
    now, then = pair
    return abs(_amount(then, plan) - _amount(now, plan))


def _node_table(
    caption: str, plan: Rebalance, nodes: Mapping[str, tuple[Carried, Carried]]
) -> Html:
    most = max((_amount(one, plan) for pair in plan.nodes.values() for one in pair), default=0.0)
    scale = max(most, 1.0)
    columns = [Column("Node"), Column("Now", share=40), Column("Then", share=40)]
    rows = [
        [escaped(name), _bar(now, plan, scale, "now"), _bar(then, plan, scale, "then")]
        for name, (now, then) in sorted(nodes.items())
    ]
    return table(caption, columns, rows)


def _bar(one: Carried, plan: Rebalance, scale: float, when: str) -> Html:
    width = min(100.0, max(0.0, _amount(one, plan) / scale * 100))
    return Html(
        f'<span class="bar" aria-hidden="true"><span class="{when}" style="width:{width:.2f}%">'
        f"</span></span>{_figures(one, plan)}"
    )


def _amount(one: Carried, plan: Rebalance) -> float:
    return share(one) if plan.by_load else float(one.services)


def _figures(one: Carried, plan: Rebalance) -> Html:
    """Return the numbers of a bar."""
    if not plan.by_load:
        return escaped(counted(one.services))
    more = (
        f"{_number(one.cpus)} of {_number(one.cpus_there or 0.0)} CPUs,"
        f" {_gibibytes(one.memory)} of {_gibibytes(one.memory_there or 0.0)} GiB"
    )
    return Html(f'{share(one):.0%} <span class="muted">({escaped(more)})</span>')


def _number(value: float) -> str:
    return f"{round(value, 2) or 0.0:g}"


def _gibibytes(mebibytes: float) -> str:
    return f"{round(mebibytes / 1024, 1) or 0.0:g}"


def _steps(steps: Sequence[ReasonedStep]) -> Html:
    columns = [
        Column("What moves"),
        Column("From"),
        Column("To"),
        Column("Imbalance then", tight=True),
        Column("Why", share=40),
    ]
    rows = [
        [
            Html(f'<span class="muted">{place}.</span> {escaped(", ".join(one.step.services))}'),
            escaped(one.step.source),
            escaped(one.step.target),
            escaped(f"{one.step.imbalance:.2f}"),
            escaped(one.reason),
        ]
        for place, one in enumerate(steps, 1)
    ]
    return table("Steps of the rebalance, in this order", columns, rows)


def _notes(status: dict[str, Any], plan: Rebalance) -> list[str]:
    """Return notes on the plan, a sentence each."""
    notes = [
        "Each step is the one that evens out most, of those that rules and room allow, on what the"
        " one before left."
    ]
    if not plan.whole:
        notes.append(
            "More steps may follow; a page shows only the first ones. The module"
            " holdfast.ha.rebalance_info plans all."
        )
    notes.append(
        "The manager makes such moves by itself, one at a time or the two of an exchange, when the"
        " load was uneven for a while."
        if plan.policy.rebalance
        else "None of it happens by itself: the policy has rebalance off. The playbook"
        " holdfast.ha.rebalance carries it out."
    )
    absent = sorted(set(status["nodes"]) - set(plan.nodes))
    if absent:
        more = f" and {len(absent) - NAMES_TOLD} more" if len(absent) > NAMES_TOLD else ""
        names = ", ".join(absent[:NAMES_TOLD])
        notes.append(f"Not counted, as nothing can be moved there now: {names}{more}.")
    if plan.unsized:
        notes.append(_unsized(plan).strip())
    return notes


def _unsized(plan: Rebalance) -> str:
    """Return how many services count as nothing; empty for none."""
    if not plan.unsized:
        return ""
    one = plan.unsized == 1
    return (
        f" {counted(plan.unsized)} {'does' if one else 'do'} not declare what"
        f" {'it needs and counts' if one else 'they need and count'} as nothing."
    )
