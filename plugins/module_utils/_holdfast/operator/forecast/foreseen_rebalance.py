# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a rebalance would do now, with what each node carries before and after it.

The steps are those of ``plan_rebalance.py``, as the module ``rebalance_info`` gives them to the
playbook.  Who asks for it keeps a page up to date, so what it may cost is bounded: a step is
sought among the services of the 16 fullest nodes and takes longer with their number and with
that of all services; no step is begun after ``SECONDS``, none after ``MOST_STEPS``, and of a
larger cluster than ``MOST_NODES`` and ``MOST_SERVICES`` there is no plan.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from ...cluster.crm.load import declared_figures
from ...cluster.model.observed import Seen
from ...cluster.model.policy import COUNT, Policy
from ...cluster.model.state import ClusterState
from ...errors import HoldfastError
from ...node.configuration import NodeConfiguration
from .moves import Carried, carried, look
from .rebalance import Step, imbalance_now, steps

MOST_NODES = 200
MOST_SERVICES = 2000
MOST_STEPS = 20
SECONDS = 0.5


@dataclass(frozen=True)
class ReasonedStep:
    """A step of the plan, and why it is this one."""

    step: Step
    reason: str


@dataclass(frozen=True)
class Rebalance:
    """What a rebalance would do, or in *left_out* the sentence that says why there is no plan.

    *before* and *after* are imbalances; *nodes* has what each node that can take services
    carries now and after the steps.  *by_load* says that nodes are compared by the shares of
    CPU and memory that are taken, not by their services; *unsized* is how many services then
    count as nothing, as they do not declare what they need.  Unless *whole*, more steps may
    follow.
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
        state, seen = look(configuration)
    except HoldfastError as error:
        return Rebalance(left_out=str(error))
    return foreseen(state, seen)


def foreseen(state: ClusterState, seen: Seen, seconds: float = SECONDS) -> Rebalance:
    """Return what a rebalance would do; after *seconds* no further step is sought."""
    left_out = _too_large(state, seen)
    if left_out:
        return Rebalance(left_out)
    policy = seen.wanted.policy
    by_load = policy.placement != COUNT and declared_figures(seen) is not None
    now = carried(state, seen)
    silent = [name for name, one in now.items() if one.cpus_there is None]
    if by_load and silent:
        return Rebalance(
            f"Node {silent[0]} does not say how much CPU and memory it has, by which the policy"
            f" compares nodes (placement={policy.placement})."
        )
    nodes = tuple(seen.nodes)
    before = imbalance_now(state, seen, nodes)
    plan, whole = _bounded(steps(state, seen, nodes, policy.rebalance_threshold), seconds)
    then = dict(now)
    reasoned = []
    for step in plan:
        reasoned.append(ReasonedStep(step, _reason(step, then, by_load)))
        _move(step, then, seen)
    return Rebalance(
        policy=policy,
        by_load=by_load,
        unsized=_unsized(state, seen) if by_load else 0,
        before=before,
        after=plan[-1].imbalance if plan else before,
        steps=tuple(reasoned),
        whole=whole,
        nodes={name: (one, then[name]) for name, one in now.items()},
    )


def share(one: Carried) -> float:
    """Return the mean of the shares of CPU and memory of a node that its services declare."""
    parts = ((one.cpus, one.cpus_there), (one.memory, one.memory_there))
    return sum(used / there if there else 0.0 for used, there in parts) / len(parts)


def _too_large(state: ClusterState, seen: Seen) -> str:
    nodes, services = len(seen.nodes), len(state.services)
    if nodes <= MOST_NODES and services <= MOST_SERVICES:
        return ""
    return (
        f"With {nodes} nodes and {services} services it would take too long for a page; one is made"
        f" for up to {MOST_NODES} and {MOST_SERVICES}. The module holdfast.ha.rebalance_info plans"
        " it whatever the size."
    )


def _bounded(found: Iterator[Step], seconds: float) -> tuple[list[Step], bool]:
    """Return the first steps, and whether they are all."""
    until = time.monotonic() + seconds
    plan: list[Step] = []
    for step in found:
        plan.append(step)
        if len(plan) >= MOST_STEPS or time.monotonic() >= until:
            return plan, False
    return plan, True


def _move(step: Step, nodes: dict[str, Carried], seen: Seen) -> None:
    """Let the services of a step be carried by the node that they go to."""
    needs = [seen.wanted.needs.get(one, (0.0, 0.0)) for one in step.services]
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
    return f"{text}{together}"


def counted(services: int) -> str:
    """Return a number of services in words."""
    return f"{services} service{'' if services == 1 else 's'}"


def _unsized(state: ClusterState, seen: Seen) -> int:
    needs = seen.wanted.needs
    return sum(1 for key, one in state.services.items() if one.node and key not in needs)
