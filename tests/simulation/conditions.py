# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The conditions that a scenario's expectations are made of: what really is, and what is said."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    ClusterState,
    NodeState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import InputError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.simulator.fleet import Fleet

Words = Sequence[str]
Check = Callable[[Fleet, Words], str]
"""Returns why a condition is not true, or nothing."""


def why_not(fleet: Fleet, words: Words) -> str:
    """Return why the condition in *words* is not true now; empty if it is."""
    return CONDITIONS[words[0]][0](fleet, words[1:])


def check_words(words: Words) -> None:
    """Raise ``InputError`` unless *words* are a condition."""
    known = ", ".join(CONDITIONS)
    if not words or words[0] not in CONDITIONS:
        raise InputError("condition", words[0] if words else "", f"one of {known}")
    least = CONDITIONS[words[0]][1]
    if len(words) - 1 < least:
        raise InputError("condition", " ".join(words), f"at least {least} words after {words[0]!r}")


def _runs(fleet: Fleet, words: Words) -> str:
    """``runs SERVICE [NODE...]``: it really runs, on one machine, and the manager says so."""
    service_id, nodes = words[0], words[1:]
    where = [one.name for one in fleet.world.where(service_id)]
    if len(where) != 1:
        return f"{service_id} runs on {where or 'no node'}"
    if fleet.world.machines[where[0]].active[service_id] != "running":
        return f"{service_id} runs only in part on {where[0]}"
    if nodes and where[0] not in nodes:
        return f"{service_id} runs on {where[0]}"
    return ""


def _down(fleet: Fleet, words: Words) -> str:
    """``down SERVICE``: it really runs nowhere."""
    where = [one.name for one in fleet.world.where(words[0])]
    return f"{words[0]} runs on {where[0]}" if where else ""


def _state(fleet: Fleet, words: Words) -> str:
    """``state SERVICE STATE``: so the manager's record has it; ``none`` if it has nothing."""
    status = _record(fleet).services.get(words[0])
    is_ = status.state.value if status is not None else "none"
    return "" if is_ in words[1:] else f"{words[0]} is {is_}"


def _says(fleet: Fleet, words: Words) -> str:
    """``says SUBJECT TEXT...``: the reason of a service or node has this text."""
    record = _record(fleet)
    status = record.services.get(words[0]) or record.nodes.get(words[0])
    reason = status.reason if status is not None else ""
    return "" if " ".join(words[1:]) in reason else f"{words[0]} says: {reason}"


def _node(fleet: Fleet, words: Words) -> str:
    """``node NODE STATE``: so the manager's record has it."""
    status = _record(fleet).nodes.get(words[0])
    is_ = (status.state if status is not None else NodeState.UNKNOWN).value
    return "" if is_ in words[1:] else f"{words[0]} is {is_}"


def _up(fleet: Fleet, words: Words) -> str:
    """``up NODE``: the machine really is on."""
    return "" if fleet.world.machines[words[0]].on else f"{words[0]} is off"


def _off(fleet: Fleet, words: Words) -> str:
    """``off NODE``: the machine really is off."""
    return f"{words[0]} is on" if fleet.world.machines[words[0]].on else ""


def _fenced(fleet: Fleet, words: Words) -> str:
    """``fenced NODE [NUMBER]``: so many fences at least were sent to it."""
    sent, least = fleet.devices.sent.get(words[0], 0), int(words[1]) if len(words) > 1 else 1
    return "" if sent >= least else f"{words[0]} was fenced {sent} times"


def _manager(fleet: Fleet, words: Words) -> str:
    """``manager [NODE...]``: there is one, on one of these nodes."""
    holder = fleet.world.storage.holder
    if fleet.manager() is None:
        return "there is no manager"
    return "" if not words or holder in words else f"the manager is {holder}"


def _history(fleet: Fleet, words: Words) -> str:
    """``history KIND [TEXT...]``: the manager has recorded such an event."""
    text = " ".join(words[1:])
    for event in _record(fleet).events:
        line = " ".join((event.service, event.node, event.text))
        if event.kind == words[0] and text in line:
            return ""
    return f"no event {words[0]!r} {text}".rstrip()


def _starts(fleet: Fleet, words: Words) -> str:
    """``starts SERVICE NUMBER``: it was started so many times at least, restarts included."""
    count = sum(
        f" starts {words[0]} " in text or f" restarts {words[0]} " in text
        for _at, text in fleet.world.trace
    )
    return "" if count >= int(words[1]) else f"{words[0]} was started {count} times"


def _apart(fleet: Fleet, words: Words) -> str:
    """``apart SERVICE...``: no two of them run on one machine."""
    where = [one.name for service in words for one in fleet.world.where(service)]
    return "" if len(set(where)) == len(where) else f"they run on {where}"


def _together(fleet: Fleet, words: Words) -> str:
    """``together SERVICE...``: all of them run, on one machine."""
    where = [one.name for service in words for one in fleet.world.where(service)]
    if len(set(where)) == 1 and len(where) == len(words):
        return ""
    return f"they run on {where}"


def _even(fleet: Fleet, words: Words) -> str:
    """``even NUMBER``: the numbers of services of two nodes differ by so many at most."""
    counts = [len(one.active) for one in fleet.world.machines.values() if one.on]
    return "" if max(counts) - min(counts) <= int(words[0]) else f"they have {counts}"


def _empty(fleet: Fleet, words: Words) -> str:
    """``empty NODE``: nothing runs on it."""
    active = sorted(fleet.world.machines[words[0]].active)
    return f"{words[0]} runs {', '.join(active)}" if active else ""


def _disarmed(fleet: Fleet, words: Words) -> str:
    """``disarmed``: the cluster is."""
    disarm = _record(fleet).disarm
    return "" if disarm == "disarmed" else f"it is {disarm or 'armed'}"


def _held(fleet: Fleet, words: Words) -> str:
    """``held``: global maintenance is in force."""
    return "" if _record(fleet).hold is not None else "there is no global maintenance"


def _recovered(fleet: Fleet, words: Words) -> str:
    """``recovered NODE SECONDS``: its failover took at most so long from its last heartbeat."""
    for failover in reversed(_record(fleet).failovers):
        if failover.node == words[0] and failover.finished:
            ended = max((at for _node, at in failover.started.values()), default=failover.confirmed)
            took = ended - failover.last_heartbeat
            return "" if took <= float(words[1]) else f"its failover took {took:.1f} s"
    return f"no failover of {words[0]} has ended"


def _lrm(fleet: Fleet, words: Words) -> str:
    """``phase NODE PHASE``: what its LRM's record says."""
    report = fleet.world.storage.report(words[0])
    is_ = report.phase.value if report is not None else "none"
    return "" if is_ == words[1] else f"the LRM of {words[0]} is {is_}"


def _record(fleet: Fleet) -> ClusterState:
    return fleet.world.storage.manager_record() or ClusterState()


CONDITIONS: Mapping[str, tuple[Check, int]] = {
    "runs": (_runs, 1),
    "down": (_down, 1),
    "state": (_state, 2),
    "says": (_says, 2),
    "node": (_node, 2),
    "up": (_up, 1),
    "off": (_off, 1),
    "fenced": (_fenced, 1),
    "manager": (_manager, 0),
    "history": (_history, 1),
    "starts": (_starts, 2),
    "apart": (_apart, 2),
    "together": (_together, 2),
    "even": (_even, 1),
    "empty": (_empty, 1),
    "disarmed": (_disarmed, 0),
    "held": (_held, 0),
    "recovered": (_recovered, 2),
    "phase": (_lrm, 2),
}
"""Each condition with how many words it needs at least."""
