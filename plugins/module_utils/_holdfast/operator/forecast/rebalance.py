# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a rebalance would move services, for ``rebalance_info`` and the status page.

The manager's own moves are planned one after the other, each on the cluster after the one before,
until none is worth it.  The manager itself makes at most one while nothing else moves.

A status page is refreshed often, so its plan is bounded: a step is searched among the services of
the 16 fullest nodes, none is begun after ``SECONDS`` or ``MOST_STEPS``, and a cluster with more
than ``MOST_NODES`` or ``MOST_SERVICES`` gets no plan.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from ...cluster.crm.load import NOTHING, declared_figures
from ...cluster.crm.rebalance import next_moves
from ...cluster.crm.round import Round
from ...cluster.model.observed import ObservedState, Timing
from ...cluster.model.policy import COUNT, Policy
from ...cluster.model.state import ClusterState
from ...errors import HoldfastError
from ...node.configuration import NodeConfiguration
from ...node.configuration_file import load
from ...result import Result
from .moves import Carried, carried, checked_nodes, look


@dataclass(frozen=True)
class Step:
    """Services that move together, as a rule keeps them together, and the imbalance after that.

    *moved_mib* is the memory that they declare; *gain_per_gib* is by how much the imbalance falls
    for each GiB of it, None if they declare none.  The first of two steps that *exchange* services
    is only worth it with the next one; the gain is that of both.
    """

    services: tuple[str, ...]
    source: str
    target: str
    imbalance: float
    moved_mib: float = 0.0
    gain_per_gib: float | None = None
    exchange: bool = False


def rebalance_info(options: Mapping[str, Any], check: bool) -> Result:
    """Return the steps of a rebalance, for the module ``rebalance_info``.

    Raises ``InputError`` for an unknown node, or a threshold below 0.
    """
    configuration = load(Path(options["config"]))
    nodes = checked_nodes(options["nodes"], configuration, sorted(configuration.members))
    state, observed = look(configuration)
    threshold = options["threshold"]
    if threshold is None:
        threshold = observed.desired.policy.rebalance_threshold
    policy, most = observed.desired.policy, options["most"]
    before, plan = plan_rebalance(state, observed, nodes, threshold, most)
    reason = state.why_paused()
    if not reason and not plan and most != 0:
        reason = why_no_step(before, threshold, policy)
    after = plan[-1].imbalance if plan else before
    moved = sum(one.moved_mib for one in plan)
    values = {
        "nodes": nodes,
        "steps": [{**asdict(one), "services": list(one.services)} for one in plan],
        "imbalance_before": before,
        "imbalance_after": after,
        "moved_mib": moved,
        "gain_per_gib": _per_gib(before - after, moved),
        "reason": f"Nothing would be moved: {reason}." if reason else "",
    }
    return Result(values=values)


def plan_rebalance(
    state: ClusterState, observed: ObservedState, nodes: Sequence[str], threshold: float, most: int
) -> tuple[float, list[Step]]:
    """Return the imbalance of *nodes* and at most *most* steps among them; below 0: no limit."""
    found = steps(state, observed, nodes, threshold)
    plan = list(islice(found, most if most >= 0 else None))
    return imbalance_now(state, observed, nodes), _without_half(plan)


def _without_half(plan: list[Step]) -> list[Step]:
    """Return the steps without the last one if it is only worth it with another."""
    return plan[:-1] if plan and plan[-1].exchange else plan


def why_no_step(before: float, threshold: float, policy: Policy) -> str:
    """Return why there is no step where the imbalance is *before*."""
    if before <= threshold:
        return f"the imbalance is {before:.2f}, and only above {threshold:.2f} a move is sought"
    return (
        f"the imbalance is {before:.2f}, but no move that rules and room allow takes away"
        f" {policy.rebalance_margin:.0%} of it"
    )


def imbalance_now(state: ClusterState, observed: ObservedState, nodes: Sequence[str]) -> float:
    """Return the imbalance of *nodes* as it is."""
    return next_moves(Round(state, _among(nodes, observed), Timing()), math.inf)[0]


def steps(
    state: ClusterState, observed: ObservedState, nodes: Sequence[str], threshold: float
) -> Iterator[Step]:
    """Generate the steps among *nodes*, while one is worth it.

    Each costs about as much as a turn in which the manager balances.
    """
    observed = _among(nodes, observed)
    while True:
        before, moves = next_moves(Round(state, observed, Timing()), threshold)
        if not moves:
            return
        moved = [_memory(move.services, observed) for move in moves]
        gain = _per_gib(before - moves[-1].imbalance, sum(moved))
        for move, memory in zip(moves, moved):
            for service_id in move.services:
                status = replace(state.services[service_id], node=move.target, target="")
                state = state.with_service(service_id, status)
            first = move is not moves[-1]
            after = (
                imbalance_now(state, observed, tuple(observed.nodes)) if first else move.imbalance
            )
            yield Step(move.services, move.source, move.target, after, memory, gain, first)


def _memory(services: Iterable[str], observed: ObservedState) -> float:
    """Return the MiB of memory that *services* declare."""
    return sum(observed.desired.needs.get(one, NOTHING)[1] for one in services)


def _per_gib(gain: float, mebibytes: float) -> float | None:
    """Return what each GiB that is moved gains, None where nothing is known to be moved."""
    return gain / (mebibytes / 1024) if mebibytes > 0 else None


def _among(nodes: Sequence[str], observed: ObservedState) -> ObservedState:
    wished = set(nodes)
    return replace(
        observed, nodes={name: one for name, one in observed.nodes.items() if name in wished}
    )


MOST_NODES = 200
MOST_SERVICES = 2000
MOST_STEPS = 20
SECONDS = 0.5


@dataclass(frozen=True)
class ReasonedStep:
    """A step of the plan, and its reason."""

    step: Step
    reason: str


@dataclass(frozen=True)
class Rebalance:
    """What a rebalance would do, or in *left_out* why there is no plan.

    *before* and *after* are imbalances; *nodes* has the loads now and after the steps of each node
    that can take services.  With *by_load* nodes are compared by the used shares of CPU and memory,
    not by their number of services; *unsized* services, which declare no needs, count as 0 then.
    Unless *whole*, more steps may follow.
    """

    left_out: str = ""
    policy: Policy = field(default_factory=Policy)
    by_load: bool = False
    unsized: int = 0
    before: float = 0.0
    after: float = 0.0
    steps: tuple[ReasonedStep, ...] = ()
    whole: bool = True
    nodes: Mapping[str, tuple[Carried, Carried]] = field(default_factory=dict)


def foresee(configuration: NodeConfiguration) -> Rebalance:
    """Return what a rebalance of the cluster would do, read from its storage."""
    try:
        state, observed = look(configuration)
    except HoldfastError as error:
        return Rebalance(left_out=str(error))
    return foreseen(state, observed)


def foreseen(state: ClusterState, observed: ObservedState, seconds: float = SECONDS) -> Rebalance:
    """Return what a rebalance would do; after *seconds* no further step is searched."""
    left_out = _too_large(state, observed)
    if left_out:
        return Rebalance(left_out)
    policy = observed.desired.policy
    by_load = policy.placement != COUNT and declared_figures(observed) is not None
    now = carried(state, observed)
    silent = [name for name, one in now.items() if one.cpus_there is None]
    if by_load and silent:
        return Rebalance(
            f"Node {silent[0]} does not say how much CPU and memory it has, by which the policy"
            f" compares nodes (placement={policy.placement})."
        )
    nodes = tuple(observed.nodes)
    before = imbalance_now(state, observed, nodes)
    plan, whole = _bounded(steps(state, observed, nodes, policy.rebalance_threshold), seconds)
    then = dict(now)
    reasoned = []
    for step in plan:
        reasoned.append(ReasonedStep(step, _reason(step, then, by_load)))
        _move(step, then, observed)
    # Without declared needs each service counts as one.
    needs = observed.desired.needs if by_load else state.services
    return Rebalance(
        policy=policy,
        by_load=by_load,
        unsized=sum(1 for key, one in state.services.items() if one.node and key not in needs),
        before=before,
        after=plan[-1].imbalance if plan else before,
        steps=tuple(reasoned),
        whole=whole,
        nodes={name: (one, then[name]) for name, one in now.items()},
    )


def share(one: Carried) -> float:
    """Return the mean of the shares of a node's CPU and memory that its services declare."""
    parts = ((one.cpus, one.cpus_there), (one.memory, one.memory_there))
    return sum(used / there if there else 0.0 for used, there in parts) / len(parts)


def _too_large(state: ClusterState, observed: ObservedState) -> str:
    nodes, services = len(observed.nodes), len(state.services)
    if nodes <= MOST_NODES and services <= MOST_SERVICES:
        return ""
    return (
        f"With {nodes} nodes and {services} services it would take too long for a page; one is made"
        f" for up to {MOST_NODES} and {MOST_SERVICES}. The module holdfast.ha.rebalance_info plans"
        " it whatever the size."
    )


def _bounded(found: Iterator[Step], seconds: float) -> tuple[list[Step], bool]:
    """Return the first steps, and whether there are no more."""
    until = time.monotonic() + seconds
    plan: list[Step] = []
    for step in found:
        plan.append(step)
        if not step.exchange and (len(plan) >= MOST_STEPS or time.monotonic() >= until):
            return plan, False
    return plan, True


def _move(step: Step, nodes: dict[str, Carried], observed: ObservedState) -> None:
    """Move the load of a step's services to their new node."""
    needs = [observed.desired.needs.get(one, NOTHING) for one in step.services]
    cpus, memory = sum(one[0] for one in needs), sum(one[1] for one in needs)
    for node, sign in ((step.source, -1), (step.target, 1)):
        one = nodes[node]
        nodes[node] = replace(
            one,
            services=one.services + sign * len(step.services),
            cpus=one.cpus + sign * cpus,
            memory=one.memory + sign * memory,
        )


def _reason(step: Step, nodes: Mapping[str, Carried], by_load: bool) -> str:
    source, target = nodes[step.source], nodes[step.target]
    if by_load:
        text = f"{step.source} is {share(source):.0%} taken, {step.target} {share(target):.0%}"
    else:
        text = f"{step.source} has {counted(source.services)}, {step.target} has {target.services}"
    together = "; they are kept together, so they move as one" if len(step.services) > 1 else ""
    exchange = "; the next step goes the other way, in exchange" if step.exchange else ""
    return f"{text}{together}{exchange}{_gain(step)}"


def _gain(step: Step) -> str:
    """Return what a step moves and gains, empty where no memory is declared."""
    if step.gain_per_gib is None:
        return ""
    return (
        f"; it moves {round(step.moved_mib / 1024, 1):g} GiB of memory, and the imbalance falls by"
        f" {step.gain_per_gib:.3f} for each GiB"
    )


def counted(services: int) -> str:
    """Return a number of services in words."""
    return f"{services} service{'' if services == 1 else 's'}"
