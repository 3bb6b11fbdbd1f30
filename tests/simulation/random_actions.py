# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is drawn to happen in a random scenario: a maker for each kind of fault and of operation."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Union

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired import (
    DISARM_MODES,
)

Made = tuple[str, Sequence[str], Mapping[str, object]]
Maker = Callable[[random.Random, Sequence[str], Sequence[str]], Union[Made, list[Made]]]
"""Returns verb, words and options of an action, or several, for nodes and services."""


def _of_node(verb: str, longest: float = 0.0, shortest: float = 0.5) -> Maker:
    """Return a maker of actions of one node, that last for a while if *longest* is given."""

    def make(chance: random.Random, nodes: Sequence[str], services: Sequence[str]) -> Made:
        node = "manager" if chance.random() < 0.25 else chance.choice(nodes)
        options = {"for": chance.uniform(shortest, longest)} if longest else {}
        return verb, (node,), options

    return make


def _kill(chance: random.Random, nodes: Sequence[str], services: Sequence[str]) -> Made:
    node = "manager" if chance.random() < 0.3 else chance.choice(nodes)
    return "kill", (chance.choice(("lrm", "lrm", "crm")), node), {}


def _hang(chance: random.Random, nodes: Sequence[str], services: Sequence[str]) -> Made:
    node = "manager" if chance.random() < 0.3 else chance.choice(nodes)
    return "hang", (chance.choice(("lrm", "crm")), node), {"for": chance.uniform(1.0, 12.0)}


def _crash_at_write(chance: random.Random, nodes: Sequence[str], services: Sequence[str]) -> Made:
    at = chance.choice(("before", "torn", "torn", "torn", "after", "acting", "acting"))
    options = {"at": at, "writes": chance.randint(1, 3)}
    node = "manager" if chance.random() < 0.4 else chance.choice(nodes)
    return "crash-at-write", (chance.choice(("lrm", "crm")), node), options


def _pause_at_write(chance: random.Random, nodes: Sequence[str], services: Sequence[str]) -> Made:
    options = {"for": chance.uniform(1.0, 20.0), "writes": chance.randint(1, 3)}
    node = "manager" if chance.random() < 0.4 else chance.choice(nodes)
    return "pause-at-write", (chance.choice(("lrm", "crm")), node), options


def _held_up(chance: random.Random, nodes: Sequence[str], services: Sequence[str]) -> Made:
    """A daemon is held up, or killed, at any of its next effects, also in the middle of a look."""
    verb = chance.choice(("pause-anywhere", "pause-anywhere", "pause-in-look", "kill-anywhere"))
    most = 4 if verb == "pause-in-look" else 60
    options = {"for": chance.uniform(0.3, 25.0), "count": chance.randint(1, most)}
    node = "manager" if chance.random() < 0.6 else chance.choice(nodes)
    return verb, (chance.choice(("lrm", "crm", "crm")), node), options


def _held_up_while(
    chance: random.Random, nodes: Sequence[str], services: Sequence[str]
) -> list[Made]:
    """The manager is held up while a node dies or falls silent, and perhaps is back by then."""
    seconds = chance.uniform(1.2, 25.0)
    options = {"for": seconds, "count": chance.randint(1, 40)}
    kind = chance.choice(("crm", "crm", "lrm"))
    held: Made = ("pause-anywhere", (kind, "manager"), options)
    node, back = chance.choice(nodes), chance.uniform(1.0, seconds + 6.0)
    falls = chance.choice(
        (
            ("power-off", (node,), {"for": back}),
            ("freeze", (node,), {"for": back}),
            ("storage", (node, "off"), {"for": back}),
            ("storage", ("manager", "off"), {"for": chance.uniform(0.2, seconds)}),
            ("kill", ("lrm", node), {"for": back}),
        )
    )
    return [falls, held] if chance.random() < 0.6 else [held, falls]


def _comes_back_old(
    chance: random.Random, nodes: Sequence[str], services: Sequence[str]
) -> list[Made]:
    """A node has an old configuration that lacks another one, while one of both dies or moves."""
    node, lacks = chance.sample(list(nodes), 2)
    old: Made = ("old-configuration", (node, lacks), {"for": chance.uniform(4.0, 40.0)})
    after = chance.choice(
        (
            ("kill", ("crm", "manager"), {"for": chance.uniform(1.0, 12.0)}),
            ("power-off", ("manager",), {"for": chance.uniform(4.0, 25.0)}),
            ("power-off", (lacks,), {"for": chance.uniform(4.0, 25.0)}),
            ("freeze", (lacks,), {"for": chance.uniform(4.0, 25.0)}),
            ("storage", (lacks, "off"), {"for": chance.uniform(2.0, 25.0)}),
            ("move", (chance.choice(services), lacks), {}),
            ("drain", (lacks,), {}),
            ("reset", ("*",), {}),
        )
    )
    return [old, after]


def _reads_old(chance: random.Random, nodes: Sequence[str], services: Sequence[str]) -> list[Made]:
    """A node reads what the storage had a while ago, and hears nothing of the others."""
    node = "manager" if chance.random() < 0.5 else chance.choice(nodes)
    return [
        ("network", (node, "off"), {"for": chance.uniform(8.0, 20.0)}),
        ("stale", (node,), {"for": chance.uniform(4.0, 14.0)}),
    ]


def _power(chance: random.Random, nodes: Sequence[str], services: Sequence[str]) -> Made:
    node = "manager" if chance.random() < 0.3 else chance.choice(nodes)
    options: dict[str, object] = {}
    if chance.random() < 0.6:
        options["for"] = chance.uniform(1.0, 25.0)
    return "power-off", (node,), options


def _many(chance: random.Random, nodes: Sequence[str], services: Sequence[str]) -> list[Made]:
    """The same happens to the manager and to many other nodes, perhaps to those that come first."""
    number = chance.randint(1, max(1, len(nodes) - 3))
    struck = list(nodes[:number]) if chance.random() < 0.6 else chance.sample(list(nodes), number)
    if chance.random() < 0.7:
        struck.insert(0, "manager")
    seconds = chance.uniform(4.0, 40.0)
    last: Mapping[str, object] = {"for": seconds}
    fault, words, options = chance.choice(
        (
            ("power-off", (), {}),
            ("power-off", (), last),
            ("freeze", (), last),
            ("storage", ("off",), last),
            ("network", ("off",), last),
            ("slow", (), {"seconds": chance.uniform(0.5, 3.0), "for": seconds}),
            ("kill", (), last),
            ("stale", (), last),
        )
    )
    if fault == "kill":
        return [(fault, ("crm", node), options) for node in struck]
    return [(fault, (node, *words), options) for node in struck]


def _reset_all(chance: random.Random, nodes: Sequence[str], services: Sequence[str]) -> Made:
    return "reset", ("*",), {}


def _storage(chance: random.Random, nodes: Sequence[str], services: Sequence[str]) -> Made:
    options: dict[str, object] = {"for": chance.uniform(0.5, 25.0)}
    part = chance.choice(("", "", "reads", "writes"))
    if part:
        options["only"] = part
    node = "manager" if chance.random() < 0.3 else chance.choice(nodes)
    return "storage", (node, "off"), options


def _all_storage(chance: random.Random, nodes: Sequence[str], services: Sequence[str]) -> Made:
    return "storage", ("*", "off"), {"for": chance.uniform(0.5, 10.0)}


def _slow(chance: random.Random, nodes: Sequence[str], services: Sequence[str]) -> Made:
    options = {"seconds": chance.uniform(0.1, 3.0), "for": chance.uniform(2.0, 15.0)}
    return "slow", (chance.choice(nodes),), options


def _network(chance: random.Random, nodes: Sequence[str], services: Sequence[str]) -> Made:
    return "network", (chance.choice(nodes), "off"), {"for": chance.uniform(1.0, 25.0)}


def _link(chance: random.Random, nodes: Sequence[str], services: Sequence[str]) -> Made:
    one, other = chance.sample(list(nodes), 2)
    return "link", (one, other, "off"), {"for": chance.uniform(1.0, 25.0)}


def _late_free(chance: random.Random, nodes: Sequence[str], services: Sequence[str]) -> list[Made]:
    """A node dies and is back soon, while the write that frees its host lease hangs."""
    writer = "manager" if chance.random() < 0.6 else chance.choice(nodes)
    dies = "manager" if chance.random() < 0.3 else chance.choice(nodes)
    hangs: Made = ("late-free", (writer,), {"seconds": chance.uniform(3.0, 25.0)})
    return [hangs, ("power-off", (dies,), {"for": chance.uniform(3.0, 9.0)})]


def _writes(chance: random.Random, nodes: Sequence[str], services: Sequence[str]) -> Made:
    node = chance.choice(("*", chance.choice(nodes)))
    return "writes", (node,), {"fail": 0.2, "for": chance.uniform(3.0, 20.0)}


def _kills(chance: random.Random, nodes: Sequence[str], services: Sequence[str]) -> Made:
    return "kills", (), {"chance": 0.1, "for": chance.uniform(3.0, 20.0)}


def _clock(chance: random.Random, nodes: Sequence[str], services: Sequence[str]) -> Made:
    jump = chance.choice((-3600.0, -60.0, -2.0, 0.5, 5.0, 60.0, 3600.0))
    return "clock", (chance.choice(nodes),), {"jump": jump}


def _device(chance: random.Random, nodes: Sequence[str], services: Sequence[str]) -> Made:
    mode = chance.choice(("fails", "hangs", "hides", "lies", "wrong", "back", "works", "with-node"))
    options: dict[str, object] = {"for": chance.uniform(3.0, 30.0)}
    node, other = chance.sample(list(nodes), 2)
    if mode == "wrong":
        options["other"] = other
    if mode == "works":
        options["seconds"] = chance.uniform(3.0, 15.0)
    return "device", (node, mode), options


def _agent(chance: random.Random, nodes: Sequence[str], services: Sequence[str]) -> Made:
    action = chance.choice(("start", "start", "stop", "monitor", "migrate"))
    how = chance.choice(("fails", "fails", "hangs", "lies" if action == "monitor" else "fails"))
    options: dict[str, object] = {"for": chance.uniform(3.0, 25.0)}
    options["chance"] = chance.choice((0.3, 0.5, 1))
    service = chance.choice(("*", chance.choice(list(services))))
    return "agent", (service, action, how), options


def _crash(chance: random.Random, nodes: Sequence[str], services: Sequence[str]) -> Made:
    return "crash", (chance.choice(list(services)),), {}


def _stale(chance: random.Random, nodes: Sequence[str], services: Sequence[str]) -> Made:
    options: dict[str, object] = {"for": chance.uniform(0.5, 6.0)}
    if chance.random() < 0.5:
        options["back"] = "yes"
    return "stale", (chance.choice(nodes),), options


def _liar(chance: random.Random, nodes: Sequence[str], services: Sequence[str]) -> list[Made]:
    """A service that cannot be stopped has its node fenced, and the device lies."""
    service = chance.choice(list(services))
    mode = chance.choice(("lies", "wrong", "works"))
    options = {"other": chance.choice(nodes)} if mode == "wrong" else {}
    return [
        ("service", (service,), {"fence": "yes", "stop-within": 3, "restarts": 0}),
        ("agent", (service, "stop", "fails"), {"for": 25.0}),
        ("device", (chance.choice((*nodes, "*", "*")), mode), {"for": 25.0, **options}),
        ("move", (service, chance.choice(nodes)), {}),
    ]


def _blind(chance: random.Random, nodes: Sequence[str], services: Sequence[str]) -> list[Made]:
    """A node is without its storage for long, and its services fail meanwhile."""
    node = chance.choice(nodes)
    return [
        ("agent", ("*", "stop", "hangs"), {"on": node, "for": 25.0}),
        ("storage", (node, "off"), {"for": chance.uniform(10.0, 25.0)}),
        *(("crash", (service,), {}) for service in services),
        *(("crash", (service,), {}) for service in services),
    ]


def _source_dies(
    chance: random.Random, nodes: Sequence[str], services: Sequence[str]
) -> list[Made]:
    """The source of a live migration dies at about the time of its end."""
    service = chance.choice(list(services))
    return [
        ("agent", (service, "migrate", "slow"), {"seconds": 5.0, "for": 25.0}),
        ("service", (service,), {"live": "yes"}),
        ("power-off", (f"@{service}",), {"after": chance.uniform(4.0, 9.0)}),
        ("move", (service, chance.choice(nodes)), {}),
    ]


def _paused_unfenced(
    chance: random.Random, nodes: Sequence[str], services: Sequence[str]
) -> list[Made]:
    """A virtual machine is paused, mostly for long, and its fence device does nothing meanwhile."""
    node = chance.choice(nodes)
    how = chance.choice(("fails", "fails", "hangs", "hides"))
    return [
        ("device", (node, how), {"for": chance.uniform(15.0, 45.0)}),
        ("pause", (node,), {"for": chance.uniform(5.0, 40.0)}),
    ]


def _manager_follows(
    chance: random.Random, nodes: Sequence[str], services: Sequence[str]
) -> list[Made]:
    """A node hangs, and soon after it the manager dies that has to do with it, or its CRM."""
    after: Made = ("kill", ("crm", "manager"), {"for": chance.uniform(1.0, 8.0)})
    if chance.random() < 0.3:
        after = ("power-off", ("manager",), {})
    return [("freeze", (chance.choice(nodes),), {"for": 30.0}), after, after, after]


def _many_die(chance: random.Random, nodes: Sequence[str], services: Sequence[str]) -> list[Made]:
    """All nodes but one or two die within moments, and fencing them takes a while."""
    dying = chance.sample(list(nodes), len(nodes) - chance.choice((1, 1, 2)))
    slow: Made = ("device", ("*", "works"), {"seconds": 6.0})
    return [slow, *(("power-off", (node,), {}) for node in dying)]


def _unfenced(chance: random.Random, nodes: Sequence[str], services: Sequence[str]) -> list[Made]:
    """A node falls silent whose device does not work; clocks jump, and the manager changes.

    Mostly the node does not come back by itself, so that it has to be fenced again.
    """
    node = "manager" if chance.random() < 0.3 else chance.choice(nodes)
    how = chance.choice(("fails", "fails", "hangs", "hides", "back"))
    while_: dict[str, object] = {}
    if chance.random() < 0.3:
        while_["for"] = chance.uniform(4.0, 25.0)
    falls: Made = chance.choice(
        (
            ("power-off", (node,), while_),
            ("freeze", (node,), while_),
            ("kill", ("lrm", node), {"for": chance.uniform(10.0, 40.0)}),
        )
    )
    then: list[Made] = [
        ("clock", ("manager",), {"jump": chance.choice((-3600.0, 5.0, 60.0, 3600.0))}),
        ("clock", ("manager",), {"jump": chance.choice((-3600.0, 5.0, 60.0, 3600.0))}),
        ("kill", ("crm", "manager"), {"for": chance.uniform(0.3, 6.0)}),
        ("writes", ("manager",), {"fail": 0.5, "for": chance.uniform(1.0, 6.0)}),
    ]
    broken: Made = ("device", (node, how), {"for": chance.uniform(6.0, 20.0)})
    return [broken, falls, *(chance.choice(then) for _turn in range(3))]


def _without_lrm(chance: random.Random, nodes: Sequence[str], services: Sequence[str]) -> Made:
    """The LRM of a node is gone for long, through whatever happens to its node meanwhile."""
    return "kill", ("lrm", chance.choice(nodes)), {"for": chance.uniform(5.0, 40.0)}


def _declare_on(chance: random.Random, nodes: Sequence[str], services: Sequence[str]) -> Made:
    """A service that is not declared is started by hand, and then declared where it runs."""
    words = (f"s{chance.randint(8, 9)}", chance.choice(nodes))
    return "run-first", words, {"declared": chance.uniform(0.0, 15.0)}


def _clone(chance: random.Random, nodes: Sequence[str], services: Sequence[str]) -> Made:
    return "clone", (chance.choice(nodes),), {}


def _hold(chance: random.Random, nodes: Sequence[str], services: Sequence[str]) -> Made:
    verb = chance.choice(("hold", "maintenance", "maintenance", "end-maintenance"))
    options = {} if verb == "end-maintenance" else {"for": chance.uniform(2.0, 15.0)}
    return verb, (), options


def _drain(chance: random.Random, nodes: Sequence[str], services: Sequence[str]) -> Made:
    node = chance.choice(nodes)
    if chance.random() < 0.4:
        return "undrain", (node,), {}
    options = {"for": chance.uniform(2.0, 15.0)} if chance.random() < 0.5 else {}
    return "drain", (node,), options


def _disarm(chance: random.Random, nodes: Sequence[str], services: Sequence[str]) -> Made:
    return "disarm", (chance.choice(DISARM_MODES),), {"for": chance.uniform(1.0, 15.0)}


def _by_hand(chance: random.Random, nodes: Sequence[str], services: Sequence[str]) -> list[Made]:
    """A disarmed cluster leaves its services to its operator, who moves them, or a node."""
    moves: list[Made] = [
        ("move-by-hand", (chance.choice(list(services)), chance.choice(nodes)), {})
        for _turn in range(3)
    ]
    if chance.random() < 0.4:
        moves.append(_shutdown(chance, nodes, services))
    return [("disarm", ("ignore",), {"for": chance.uniform(6.0, 12.0)}), *moves]


def _left_to_operator(
    chance: random.Random, nodes: Sequence[str], services: Sequence[str]
) -> list[Made]:
    """A service is ignored, moved or started by hand, and managed again some time later."""
    service = chance.choice(list(services))
    moves: list[Made] = [
        ("move-by-hand", (service, chance.choice(nodes)), {})
        for _turn in range(chance.randint(1, 4))
    ]
    return [("ignore", (service,), {}), *moves, ("track", (service,), {})]


def _shutdown(chance: random.Random, nodes: Sequence[str], services: Sequence[str]) -> Made:
    what = chance.choice(("reboot", "reboot", "poweroff", "restart"))
    return "shutdown", (chance.choice(nodes), what), {}


def _ask(chance: random.Random, nodes: Sequence[str], services: Sequence[str]) -> Made:
    service = chance.choice(list(services))
    if chance.random() < 0.25:
        return chance.choice(("ignore", "track")), (service,), {}
    return "move", (service, chance.choice(nodes)), {}


def _declare(chance: random.Random, nodes: Sequence[str], services: Sequence[str]) -> Made:
    service = chance.choice(list(services))
    verb = chance.choice(("start", "stop", "redefine", "remove", "service"))
    if verb == "service":
        return verb, (f"s{chance.randint(0, 6)}",), {"monitor": 2, "restarts": 0}
    return verb, (service,), {}


def _rule(chance: random.Random, nodes: Sequence[str], services: Sequence[str]) -> Made:
    """A rule comes, goes or changes, whatever is under way."""
    draw = chance.random()
    if draw < 0.3:
        return "unrule", (chance.choice(("where", "pair")),), {}
    if draw < 0.6 and len(services) > 1:
        kind = chance.choice(("apart", "together"))
        return "rule", ("pair", kind, *chance.sample(list(services), 2)), {}
    priorities = {node: chance.randint(0, 2) for node in chance.sample(list(nodes), 2)}
    kind = chance.choice(("prefer", "only"))
    return "rule", ("where", kind, chance.choice(list(services))), priorities


def _node_changes(chance: random.Random, nodes: Sequence[str], services: Sequence[str]) -> Made:
    """A node gets, or loses, some of its resources."""
    options: dict[str, object] = {"attributes": f"site:{chance.choice('xyz')}"}
    options["capacity"] = f"gpu:{chance.randint(0, 4)},licence:{chance.randint(0, 2)}"
    return "node", (chance.choice(nodes),), options


def _takes_more(chance: random.Random, nodes: Sequence[str], services: Sequence[str]) -> Made:
    """A service takes more, or less, than before."""
    options: dict[str, object] = {"monitor": 2, "uses": f"gpu:{chance.randint(1, 3)}"}
    return "service", (chance.choice(list(services)),), options


def _location_rule(chance: random.Random, nodes: Sequence[str], services: Sequence[str]) -> Made:
    kind = chance.choice(("spread", "near"))
    count = chance.randint(2, len(services)) if len(services) > 2 else len(services)
    strict = {"strict": "yes"} if chance.random() < 0.3 else {}
    return (
        "rule",
        ("sites", kind, *chance.sample(list(services), count)),
        {
            "attribute": "site",
            **strict,
        },
    )


def _rollback(chance: random.Random, nodes: Sequence[str], services: Sequence[str]) -> Made:
    what = chance.choice(("all", "all", "states", "states", "reports", "configuration", "a node"))
    if what == "a node":
        what = chance.choice((*nodes, "manager"))
    options: dict[str, object] = {"seconds": chance.uniform(0.3, 12.0)}
    if what == "all" and chance.random() < 0.3:
        options["leases"] = "yes"
    return "rollback", (what,), options


def _lost_record(chance: random.Random, nodes: Sequence[str], services: Sequence[str]) -> Made:
    verb = chance.choice(("zero", "zero", "damage", "damage-copy", "late-write", "swap"))
    kind = chance.choice(("reports", "states", "states", "configuration"))
    node = "manager" if chance.random() < 0.5 else chance.choice(nodes)
    options: dict[str, object] = {}
    if verb == "zero" and chance.random() < 0.5:
        options["copy"] = "newest"
    if verb == "swap":
        kind = chance.choice(("reports", "states"))
        return verb, (kind, *chance.sample(list(nodes), 2)), options
    return verb, (kind,) if kind == "configuration" else (kind, node), options


def _repair(chance: random.Random, nodes: Sequence[str], services: Sequence[str]) -> Made:
    return "repair", (chance.choice(("running", "running", "file")),), {}


def _goes_back(chance: random.Random, nodes: Sequence[str], services: Sequence[str]) -> list[Made]:
    """Records go back while who knows better is gone; perhaps somebody repairs them then."""
    before = chance.choice((_ask, _ask, _declare, _drain, _disarm, _kill, _power))
    again: Made = ("kill", ("crm", "manager"), {"for": chance.uniform(0.3, 6.0)})
    gone = chance.choice((again, again, _kill, _power, _of_node("reset"), _shutdown))
    story = [
        before(chance, nodes, services),
        gone if isinstance(gone, tuple) else gone(chance, nodes, services),
        chance.choice((_rollback, _rollback, _lost_record))(chance, nodes, services),
    ]
    if chance.random() < 0.3:
        story.append(again)
    if chance.random() < 0.5:
        story += [_repair(chance, nodes, services), _repair(chance, nodes, services)]
    made: list[Made] = []
    for one in story:
        made += one if isinstance(one, list) else [one]
    return made


KINDS: tuple[Maker, ...] = (
    _ask,
    _ask,
    _disarm,
    _by_hand,
    _shutdown,
    _kill,
    _kill,
    _hang,
    _crash_at_write,
    _crash_at_write,
    _pause_at_write,
    _power,
    _power,
    _of_node("reset"),
    _reset_all,
    _of_node("freeze", 30.0),
    _of_node("freeze", 6.0),
    _storage,
    _all_storage,
    _slow,
    _network,
    _link,
    _late_free,
    _writes,
    _kills,
    _clock,
    _device,
    _device,
    _agent,
    _agent,
    _crash,
    _stale,
    _stale,
    _liar,
    _blind,
    _source_dies,
    _source_dies,
    _many_die,
    _manager_follows,
    _clone,
    _hold,
    _drain,
    _declare,
    _declare,
    _goes_back,
)
"""The kinds of faults; what stands here twice is chosen twice as often."""

OPERATIONS: tuple[Maker, ...] = (_ask, _disarm, _by_hand, _declare, _drain, _hold, _rule) * 7
"""Drawn besides where operators do most."""


def _slow_agent(chance: random.Random, nodes: Sequence[str], services: Sequence[str]) -> Made:
    options = {"seconds": chance.uniform(3.0, 7.0), "for": chance.uniform(5.0, 25.0)}
    service, action = chance.choice(list(services)), chance.choice(("start", "stop", "migrate"))
    return "agent", (service, action, "slow"), options


OPERATED: tuple[Maker, ...] = (
    *(_ask, _declare, _rule, _shutdown, _drain, _hold, _disarm, _by_hand, _slow_agent) * 2,
    _agent,
    _crash,
    _kill,
    _crash_at_write,
    _power,
    _of_node("freeze", 6.0),
    _storage,
    _clock,
    _device,
)
"""What operators do, and the faults that come in between, where all comes close together."""

SCARCE_RESOURCES: tuple[Maker, ...] = (
    *(_node_changes, _takes_more, _ask) * 3,
    *(_location_rule, _declare, _drain, _shutdown) * 2,
    _rule,
    _disarm,
    _by_hand,
    _slow_agent,
    _agent,
    _crash,
    _kill,
    _crash_at_write,
    _power,
    _of_node("reset"),
    _of_node("freeze", 6.0),
    _storage,
    _device,
)
"""What operators do and what fails where the resources of nodes are scarce."""

PAUSED: tuple[Maker, ...] = (
    *(_paused_unfenced,) * 6,
    _reads_old,
    *(_of_node("pause", 40.0),) * 3,
    _of_node("pause", 3.0),
    _ask,
    _disarm,
    _shutdown,
    _kill,
    _hang,
    _crash_at_write,
    _pause_at_write,
    _power,
    _of_node("reset"),
    _of_node("freeze", 30.0),
    _storage,
    _slow,
    _network,
    _clock,
    _device,
    _agent,
    _crash,
    _stale,
    _source_dies,
    _hold,
    _drain,
    _declare,
)
"""Nodes of which some are virtual machines that are paused, with their watchdogs and clocks."""

LEFT_TO_OPERATOR: tuple[Maker, ...] = (
    *(_left_to_operator,) * 6,
    *(_by_hand,) * 2,
    _declare_on,
    _declare,
    _shutdown,
    _shutdown,
    _disarm,
    _drain,
    _kill,
    _hang,
    _without_lrm,
    _without_lrm,
    _power,
    _power,
    _of_node("reset"),
    _of_node("freeze", 30.0),
    _storage,
    _storage,
    _network,
    _device,
    _agent,
    _crash,
)
"""Services that are left to their operators, and what may become of their nodes meanwhile."""

GONE_BACK: tuple[Maker, ...] = (
    *(_goes_back,) * 6,
    *(_rollback, _lost_record) * 2,
    *(_repair,) * 2,
    _ask,
    _declare,
    _drain,
    _disarm,
    _hold,
    _shutdown,
    _kill,
    _kill,
    _hang,
    _crash_at_write,
    _pause_at_write,
    _without_lrm,
    _power,
    _power,
    _of_node("reset"),
    _of_node("freeze", 30.0),
    _of_node("freeze", 6.0),
    _storage,
    _network,
    _writes,
    _device,
    _agent,
    _crash,
)
"""Records that go back in time, and what makes that worse."""

HELD_UP: tuple[Maker, ...] = (
    *(_held_up_while,) * 5,
    *(_held_up,) * 4,
    *(_reads_old,) * 2,
    _ask,
    _declare,
    _hold,
    _disarm,
    _kill,
    _power,
    _of_node("reset"),
    _of_node("freeze", 6.0),
    _of_node("freeze", 30.0),
    _storage,
    _slow,
    _network,
    _device,
    _agent,
    _crash,
    _writes,
    _rollback,
)
"""Daemons that are held up or killed at any effect, while something becomes of nodes."""

SKEWED_CONFIGURATION: tuple[Maker, ...] = (
    *(_comes_back_old,) * 8,
    _ask,
    _declare,
    _drain,
    _disarm,
    _shutdown,
    _kill,
    _hang,
    _power,
    _power,
    _of_node("reset"),
    _of_node("freeze", 30.0),
    _storage,
    _network,
    _device,
    _agent,
    _crash,
)
"""Nodes that come back with an old configuration, while other nodes fail."""

FENCED: tuple[Maker, ...] = (
    *(_unfenced, _liar) * 6,
    *(_clock, _late_free, _manager_follows) * 2,
    _device,
    _many_die,
    _power,
    _power,
    _of_node("freeze", 6.0),
    _of_node("freeze", 30.0),
    _storage,
    _network,
    _link,
    _kill,
    _hang,
    _held_up,
    _crash_at_write,
    _shutdown,
    _disarm,
    _hold,
    _ask,
)
"""Fences that fail, lie or come late, and what becomes of clocks and managers meanwhile."""

STRUCK_TOGETHER: tuple[Maker, ...] = (
    *(_many,) * 8,
    _ask,
    _drain,
    _shutdown,
    _kill,
    _hang,
    _power,
    _storage,
    _slow,
    _network,
    _held_up,
)
"""What happens in a cluster of more nodes, of which many are struck at once or in a row."""


def _loss(chance: random.Random, nodes: Sequence[str], services: Sequence[str]) -> Made:
    node = chance.choice(("*", chance.choice(nodes)))
    options = {"share": chance.uniform(0.1, 0.3), "for": chance.uniform(2.0, 18.0)}
    return "loss", (node,), options


def _jitter(chance: random.Random, nodes: Sequence[str], services: Sequence[str]) -> Made:
    node = chance.choice(("*", chance.choice(nodes)))
    options = {"seconds": chance.uniform(0.1, 0.5), "for": chance.uniform(2.0, 18.0)}
    return "jitter", (node,), options


def _storage_stalls(
    chance: random.Random, nodes: Sequence[str], services: Sequence[str]
) -> list[Made]:
    """The storage stalls for a second at most, for one node, or for each for another time."""
    stalled = list(nodes) if chance.random() < 0.5 else [chance.choice(nodes)]
    return [("storage", (node, "off"), {"for": chance.uniform(0.3, 1.0)}) for node in stalled]


def _starved(chance: random.Random, nodes: Sequence[str], services: Sequence[str]) -> list[Made]:
    """A node's daemons hardly get the processor; its sender has real-time priority."""
    node = chance.choice(nodes)
    return [
        ("starve", (node,), {"for": chance.uniform(4.0, 16.0)}),
        ("freeze", (node,), {"for": chance.uniform(0.05, 0.3)}),
    ]


def _one_daemon_dies(chance: random.Random, nodes: Sequence[str], services: Sequence[str]) -> Made:
    return "kill", (chance.choice(("lrm", "crm")), chance.choice(nodes)), {}


HARMLESS: tuple[Maker, ...] = (
    *(_loss, _jitter, _storage_stalls, _starved) * 3,
    _one_daemon_dies,
    _clock,
)
"""What a healthy node must get over without being fenced, alone or together."""

KEEPALIVES: tuple[Maker, ...] = (*KINDS, *(_loss, _jitter, _storage_stalls, _starved) * 3)
"""Faults beside what disturbs keepalives and heartbeats."""
