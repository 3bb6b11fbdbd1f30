# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A scenario made of a seed: a small cluster, and many faults of a few kinds.

Faults of one kind make each other's worst moments, so each scenario has a few kinds only.
A scenario for **safety** ends with its faults.  One for **liveness** goes on: all faults
end, and by its end the cluster must be well (``liveness.py``).
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.rhythm import (
    LEARNING,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model import profiles
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired import (
    DesiredState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (
    Timing,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.policy import (
    PLACEMENTS,
    SHUTDOWN_POLICIES,
    Policy,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.profiles import (
    PROFILES,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.resources import (
    NodeProperties,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.rules import (
    APART,
    TOGETHER,
    LocationRule,
    NodeRule,
    ServiceRule,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.service import (
    Resource,
    Service,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.simulator.settings import (
    Settings,
)
from ansible_collections.holdfast.ha.tests.simulation.declarations import (
    AGENT,
)
from ansible_collections.holdfast.ha.tests.simulation.random_actions import (
    FENCED,
    GONE_BACK,
    HARMLESS,
    HELD_UP,
    KEEPALIVES,
    KINDS,
    LEFT_TO_OPERATOR,
    OPERATED,
    OPERATIONS,
    PAUSED,
    SCARCE_RESOURCES,
    SKEWED_CONFIGURATION,
    STRUCK_TOGETHER,
    Maker,
)
from ansible_collections.holdfast.ha.tests.simulation.scenario import (
    NEVER,
    Action,
    Expectation,
    Scenario,
)

BEGIN = 2.0
FAULTS_UNTIL = 20.0
SAFETY_LENGTH = 24.0

TIMING = Timing(fence_window=120.0, fence_limit=6)

LEFT_LENGTH = 60.0
"""What is left to an operator is long: a node may be confirmed dead, and be up again, meanwhile."""

PAUSED_LENGTH = 50.0
"""A host lease may count as dead meanwhile, and the services of its node be started elsewhere."""

STALE_LENGTH = 40.0
"""Records that went back are repaired, and all services looked for, before more goes wrong."""

MIXED, OPERATORS, CLOSE, LEFT, PAUSES = "mixed", "operators", "close", "left", "pauses"
STALE, HELD, FENCES, SKEWED = "stale", "held", "fences", "skewed"
CROWDS, SCARCE, FAST, STARVED = "crowds", "scarce", "fast", "starved"
DRAWINGS = (
    MIXED,
    OPERATORS,
    CLOSE,
    LEFT,
    PAUSES,
    STALE,
    HELD,
    FENCES,
    SKEWED,
    CROWDS,
    SCARCE,
    FAST,
    STARVED,
)
"""What a scenario is made of: faults and operations alike; more operations; a few of both that
come within seconds of each other, so that one falls into the middle of another; services that
are left to their operators for a while; virtual machines that are paused; records that go back in
time; daemons that are held up or killed at any effect; fences that fail, lie or come late; nodes
that come back with an old configuration; many of more nodes that are struck together; nodes that
declare resources and locations, of which there are few; the profile ``fast`` with faults of its two
ways besides all others; or only what no healthy node may be fenced for, with either profile."""


def random_scenario(seed: int, drawing: str = MIXED) -> Scenario:
    """Return the scenario of a seed, drawn in one of the ways of ``DRAWINGS``."""
    chance = random.Random(seed)
    sizes = range(6, 15) if drawing == CROWDS else (3, 3, 3, 4, 5)
    nodes = tuple(f"n{number}" for number in range(1, chance.choice(sizes) + 1))
    desired = _desired(chance, nodes)
    if drawing == SCARCE:
        desired = _with_few_resources(chance, nodes, desired)
    settings = Settings(
        watchdogs=chance.random() < 0.5,
        lease_fails=8.0,
        watchdog_fires=13.0,
        lease_dead=16.0,
        boot=4.0,
        fence=(0.3, 3.0),
        agent=(0.1, 2.5),
        even_for=5.0,
        power_on_works=0.8,
        # With the default each of so few nodes would be a standby.
        timing=replace(TIMING, standbys=1 + seed % 3),
    )
    services = sorted(desired.services)
    length = SAFETY_LENGTH
    virtual: tuple[str, ...] = ()
    if drawing == CLOSE:
        actions = _close_together(chance, nodes, services)
    elif drawing == LEFT:
        actions = _left(chance, nodes, services)
        length = LEFT_LENGTH + 4.0
    elif drawing == PAUSES:
        virtual = tuple(one for one in nodes if chance.random() < 0.6)
        # Without watchdogs no host lease that runs out is a proof anyway.
        settings = replace(settings, watchdogs=settings.watchdogs or chance.random() < 0.7)
        actions = _spread(chance, nodes, services, PAUSED)
        length = PAUSED_LENGTH
    elif drawing == STALE:
        actions = _stale(chance, nodes, services)
        length = STALE_LENGTH + 4.0
    elif drawing in (HELD, FENCES):
        actions = _spread(chance, nodes, services, HELD_UP if drawing == HELD else FENCED)
        length = PAUSED_LENGTH
    elif drawing in (FAST, STARVED):
        actions = _spread(chance, nodes, services, KEEPALIVES if drawing == FAST else HARMLESS)
        if drawing == FAST or chance.random() < 0.7:
            settings = replace(settings, timing=_with_keepalives(settings.timing))
        # Keepalives count once they have come for a while.
        actions = [replace(one, at=round(one.at + LEARNING, 2)) for one in actions]
        length = SAFETY_LENGTH + LEARNING
    elif drawing == CROWDS:
        actions = _struck_together(chance, nodes, services)
        length = PAUSED_LENGTH
    elif drawing == SCARCE:
        actions = _spread(chance, nodes, services, SCARCE_RESOURCES)
        length = PAUSED_LENGTH
    elif drawing == SKEWED:
        actions = _spread(chance, nodes, services, SKEWED_CONFIGURATION)
        length = PAUSED_LENGTH
    else:
        kinds = KINDS + OPERATIONS if drawing == OPERATORS else KINDS
        actions = _spread(chance, nodes, services, kinds)
    actions.sort(key=lambda one: one.at)
    return Scenario(
        name=f"seed-{seed}",
        nodes=nodes,
        settings=settings,
        desired=desired,
        actions=tuple(actions),
        seed=seed,
        length=length,
        virtual=virtual,
        expectations=tuple(
            Expectation(NEVER, 0.0, ("fenced", node)) for node in nodes if drawing == STARVED
        ),
    )


def _with_keepalives(timing: Timing) -> Timing:
    """Return *timing* with the times of the profile ``fast``."""
    fast = PROFILES[profiles.FAST]
    return replace(timing, heartbeat=fast.heartbeat, keepalive=fast.keepalive, look=fast.look)


def _spread(
    chance: random.Random, nodes: Sequence[str], services: Sequence[str], kinds: Sequence[Maker]
) -> list[Action]:
    """Return actions of a few kinds at any time, and perhaps clocks that differ."""
    chosen = chance.sample(kinds, chance.randint(2, 6))
    actions = [
        Action(chance.uniform(0.0, 0.01), "clock", (node,), {"jump": f"{chance.gauss(0, 2):.2f}"})
        for node in nodes
        if chance.random() < 0.2
    ]
    for _turn in range(chance.randint(2, 12)):
        made = chance.choice(chosen)(chance, nodes, services)
        # What is made of several actions needs time to come to its worst moment.
        story = made if isinstance(made, list) else [made]
        at = chance.uniform(BEGIN, FAULTS_UNTIL / (2 if len(story) > 1 else 1))
        for verb, words, options in story:
            actions.append(Action(round(at, 2), verb, tuple(words), _texts(options)))
            at = min(at + chance.uniform(0.0, 4.0), FAULTS_UNTIL)
    return actions


def _close_together(
    chance: random.Random, nodes: Sequence[str], services: Sequence[str]
) -> list[Action]:
    """Return a few actions of operators, and faults, that follow each other closely."""
    chosen = chance.sample(OPERATED, chance.randint(2, 6))
    at, spread = chance.uniform(BEGIN, FAULTS_UNTIL / 2), chance.choice((0.3, 0.6, 1.0, 2.0, 4.0))
    actions = []
    for _turn in range(chance.randint(2, 8)):
        made = chance.choice(chosen)(chance, nodes, services)
        for verb, words, options in made if isinstance(made, list) else [made]:
            actions.append(Action(round(at, 2), verb, tuple(words), _texts(options)))
            at = min(at + chance.expovariate(1 / spread), FAULTS_UNTIL)
    return actions


def _left(chance: random.Random, nodes: Sequence[str], services: Sequence[str]) -> list[Action]:
    """Return what operators do with services left to them, and faults, over a longer time."""
    chosen = chance.sample(LEFT_TO_OPERATOR, chance.randint(3, 6))
    actions = []
    for _turn in range(chance.randint(3, 10)):
        made = chance.choice(chosen)(chance, nodes, services)
        at, spread = chance.uniform(BEGIN, LEFT_LENGTH / 2), chance.choice((1.0, 4.0, 10.0))
        for verb, words, options in made if isinstance(made, list) else [made]:
            actions.append(Action(round(at, 2), verb, tuple(words), _texts(options)))
            at = min(at + chance.uniform(0.0, 2 * spread), LEFT_LENGTH)
    return actions


def _stale(chance: random.Random, nodes: Sequence[str], services: Sequence[str]) -> list[Action]:
    """Return records that go back in time, and what happens about then, a few times over."""
    chosen = chance.sample(GONE_BACK, chance.randint(3, 6))
    actions = []
    for _turn in range(chance.randint(2, 7)):
        made = chance.choice(chosen)(chance, nodes, services)
        at = chance.uniform(BEGIN, STALE_LENGTH - 8.0)
        for verb, words, options in made if isinstance(made, list) else [made]:
            actions.append(Action(round(at, 2), verb, tuple(words), _texts(options)))
            at = min(at + chance.uniform(0.0, 3.0), STALE_LENGTH)
    return actions


def _struck_together(
    chance: random.Random, nodes: Sequence[str], services: Sequence[str]
) -> list[Action]:
    """Return faults of many nodes at once, or one after the other, and a few other actions."""
    chosen = chance.sample(STRUCK_TOGETHER, chance.randint(2, 5))
    actions = []
    for _turn in range(chance.randint(1, 5)):
        made = chance.choice(chosen)(chance, nodes, services)
        at, spread = chance.uniform(BEGIN, PAUSED_LENGTH / 2), chance.choice((0.0, 0.5, 3.0, 8.0))
        for verb, words, options in made if isinstance(made, list) else [made]:
            actions.append(Action(round(at, 2), verb, tuple(words), _texts(options)))
            at = min(at + chance.uniform(0.0, spread), PAUSED_LENGTH - 4.0)
    return actions


def _texts(options: Mapping[str, object]) -> dict[str, str]:
    return {
        key: f"{value:.2f}" if isinstance(value, float) else str(value)
        for key, value in options.items()
    }


def _desired(chance: random.Random, nodes: Sequence[str]) -> DesiredState:
    desired = DesiredState(version=1)
    for number in range(chance.randint(1, 4)):
        desired = desired.with_service(_service(chance, f"s{number}"))
    ids = sorted(desired.services)
    policy = Policy(
        shutdown=chance.choice(SHUTDOWN_POLICIES),
        shutdown_timeout=20.0,
        rebalance_on_start=chance.random() < 0.2,
        rebalance=chance.random() < 0.2,
        rebalance_hold=1,
    )
    desired = replace(desired, policy=policy)
    if chance.random() < 0.5:
        services = tuple(chance.sample(ids, chance.randint(1, len(ids))))
        priorities = {node: chance.randint(0, 2) for node in chance.sample(list(nodes), 2)}
        strict = chance.random() < 0.3
        desired = desired.with_rule(NodeRule("where", services, priorities, strict=strict))
    if len(ids) > 1 and chance.random() < 0.6:
        kind = chance.choice(("apart", "together"))
        desired = desired.with_rule(ServiceRule("pair", tuple(chance.sample(ids, 2)), kind))
    return desired


def _with_few_resources(
    chance: random.Random, nodes: Sequence[str], desired: DesiredState
) -> DesiredState:
    """Return *desired* with services that take resources, and nodes that have few of them."""
    for number in range(len(desired.services), 6):
        desired = desired.with_service(_service(chance, f"s{number}"))
    for one in list(desired.services.values()):
        uses = {"gpu": chance.randint(0, 2), "licence": int(chance.random() < 0.2)}
        uses = {name: amount for name, amount in uses.items() if amount}
        desired = desired.with_service(replace(one, utilization=uses))
    for node in nodes:
        gpus = chance.randint(1, 4)
        capacity = {"gpu": gpus, "licence": chance.randint(0, 1)}
        safety = {"gpu": chance.randint(0, gpus)} if chance.random() < 0.5 else {}
        site = {"site": chance.choice("xyz")}
        desired = desired.with_properties(NodeProperties(node, capacity, safety, site))
    ids = sorted(desired.services)
    for name in ("sites", "racks"):
        if chance.random() < 0.5:
            members = tuple(chance.sample(ids, chance.randint(2, 4)))
            affinity = chance.choice((APART, TOGETHER))
            number = chance.randint(2, len(members)) if affinity == APART else 0
            strict = chance.random() < 0.3
            desired = desired.with_rule(
                LocationRule(name, members, affinity, "site", number, strict)
            )
    policy = replace(desired.policy, placement=chance.choice(PLACEMENTS))
    return replace(desired, policy=policy)


def _service(chance: random.Random, service_id: str) -> Service:
    resource = Resource(
        "r",
        AGENT,
        {"version": str(chance.randint(0, 9))},
        start_timeout=8.0,
        stop_timeout=8.0,
        monitor_timeout=5.0,
        monitor_interval=chance.choice((2.0, 5.0)),
    )
    return Service(
        service_id,
        (resource,),
        max_restart=chance.randint(0, 2),
        max_relocate=chance.randint(0, 2),
        failback=chance.random() < 0.5,
        live_migration=chance.random() < 0.4,
        after=("s0",) if service_id != "s0" and chance.random() < 0.1 else (),
        fence_on_stop_failure=chance.random() < 0.2,
    )
