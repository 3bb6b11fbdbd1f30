# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a scenario can do to a cluster: faults, and what operators do.

Each action is a function of the cluster, its words and its options; ``ACTIONS`` names them
with the words and options that they take, which ``docs/simulator.md`` explains.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ..errors import InputError
from ..manager.held import DISARMED
from ..manager.maintenance import Maintenance
from ..manager.requests import MOVE, STOP, Request
from ..manager.service import STARTED, STOPPED
from ..manager.state import NodeState
from ..manager.wanted import IGNORE, Wanted
from .agents import ANY, AgentFault
from .daemon import ACTING, AFTER, BEFORE, PAUSED, TORN
from .fleet import Blow, Fleet
from .machine import Machine

Options = Mapping[str, str]
Act = Callable[[Fleet, Sequence[str], Options], None]


@dataclass(frozen=True)
class Verb:
    """An action: its function, how many words it takes, and its options."""

    act: Act
    words: tuple[int, int]
    options: tuple[str, ...] = ()


def _number(options: Options, name: str, default: float) -> float:
    return float(options.get(name, default))


def _machines(fleet: Fleet, name: str) -> list[Machine]:
    """Return the machines that *name* means.

    One node, ``*`` for all, ``manager`` for its, ``@SERVICE`` for those where that runs.
    """
    if name == ANY:
        return list(fleet.world.machines.values())
    if name.startswith("@"):
        return fleet.world.where(name[1:])
    if name == "manager":
        name = fleet.world.storage.holder
        return [fleet.world.machines[name]] if name else []
    if name not in fleet.world.machines:
        raise InputError("node", name, f"one of {', '.join(fleet.world.machines)}")
    return [fleet.world.machines[name]]


def _power_off(fleet: Fleet, words: Sequence[str], options: Options) -> None:
    for machine in _machines(fleet, words[0]):
        if "after" in options:
            fleet.world.later(float(options["after"]), _cut, fleet, machine, options)
        else:
            _cut(fleet, machine, options)


def _cut(fleet: Fleet, machine: Machine, options: Options) -> None:
    if not fleet.strikes:
        return
    machine.cut = True
    fleet.world.power_off(machine, "its power is cut")
    if "for" in options:
        fleet.world.later(float(options["for"]), fleet.world.power_on, machine)


def _power_on(fleet: Fleet, words: Sequence[str], options: Options) -> None:
    for machine in _machines(fleet, words[0]):
        fleet.world.power_on(machine)


def _reset(fleet: Fleet, words: Sequence[str], options: Options) -> None:
    for machine in _machines(fleet, words[0]):
        if not machine.cut:
            fleet.world.power_off(machine, "it is reset")
            fleet.world.power_on(machine)


def _freeze(fleet: Fleet, words: Sequence[str], options: Options) -> None:
    world = fleet.world
    for machine in _machines(fleet, words[0]):
        if not machine.on or machine.frozen or machine.lies_until > world.now:
            continue
        world.say(f"{machine.name} freezes")
        with world.changing(machine):
            machine.frozen = True
        if "for" in options:
            world.later(float(options["for"]), thaw, fleet, machine, machine.boot)


def _thaw(fleet: Fleet, words: Sequence[str], options: Options) -> None:
    for machine in _machines(fleet, words[0]):
        thaw(fleet, machine, machine.boot)


def thaw(fleet: Fleet, machine: Machine, boot: int) -> None:
    """Let a frozen machine go on, if it is still the same start of it."""
    if machine.frozen and machine.boot == boot:
        fleet.world.say(f"{machine.name} thaws")
        with fleet.world.changing(machine):
            machine.frozen = False
        machine.writes_since = fleet.world.now


def _kill(fleet: Fleet, words: Sequence[str], options: Options) -> None:
    kind = _daemon_kind(words[0])
    for machine in _machines(fleet, words[1]):
        if kind == "lrm" and machine.lies_until > fleet.world.now:
            continue
        fleet.kill(kind, machine.name, float(options["for"]) if "for" in options else None)


def _hang(fleet: Fleet, words: Sequence[str], options: Options) -> None:
    kind = _daemon_kind(words[0])
    for machine in _machines(fleet, words[1]):
        daemon = fleet.daemon(kind, machine.name)
        if daemon is not None and not (kind == "lrm" and machine.lies_until > fleet.world.now):
            daemon.hang(_number(options, "for", 5.0))


def _daemon_kind(word: str) -> str:
    if word not in ("lrm", "crm"):
        raise InputError("daemon", word, "'lrm' or 'crm'")
    return word


def _strike(stage: str) -> Act:
    def act(fleet: Fleet, words: Sequence[str], options: Options) -> None:
        kind = _daemon_kind(words[0])
        where = stage or options.get("at", BEFORE)
        if where not in (BEFORE, TORN, AFTER, ACTING, PAUSED):
            raise InputError("at", where, "'before', 'torn', 'after' or 'acting'")
        blow = Blow(where, int(_number(options, "writes", 1)), _number(options, "for", 0.0))
        for machine in _machines(fleet, words[1]):
            fleet.strike(kind, machine.name, replace(blow))

    return act


def _storage(fleet: Fleet, words: Sequence[str], options: Options) -> None:
    """A node loses its way to the storage: both ways, or only reads or writes."""
    part = options.get("only", "")
    if part not in ("", "reads", "writes"):
        raise InputError("only", part, "'reads' or 'writes'")
    for machine in _machines(fleet, words[0]):
        if machine.lies_until > fleet.world.now and words[1] == "off":
            continue
        _set_storage(fleet, machine, words[1] == "on", part)
        if "for" in options:
            back = words[1] == "off"
            fleet.world.later(float(options["for"]), _set_storage, fleet, machine, back, part)


def _set_storage(fleet: Fleet, machine: Machine, works: bool, part: str) -> None:
    fleet.world.say(f"{machine.name} {'has' if works else 'loses'} its storage {part}".rstrip())
    with fleet.world.changing(machine):
        if part != "writes":
            machine.reads = works
        if part != "reads":
            machine.writes = works
    if works:
        machine.writes_since = fleet.world.now


def _slow(fleet: Fleet, words: Sequence[str], options: Options) -> None:
    for machine in _machines(fleet, words[0]):
        _set_slow(fleet, machine, _number(options, "seconds", 1.0))
        fleet.world.later(_number(options, "for", 10.0), _set_slow, fleet, machine, 0.0)


def _set_slow(fleet: Fleet, machine: Machine, seconds: float) -> None:
    fleet.world.say(f"the storage of {machine.name} takes {seconds:g} s more")
    with fleet.world.changing(machine):
        machine.slow = seconds


def _stale(fleet: Fleet, words: Sequence[str], options: Options) -> None:
    for machine in _machines(fleet, words[0]):
        fleet.world.say(f"{machine.name} reads what the storage had now")
        fleet.make_stale(machine.name, True, back=options.get("back") == "yes")
        seconds = _number(options, "for", 5.0)
        fleet.world.later(seconds, fleet.make_stale, machine.name, False)


def _writes(fleet: Fleet, words: Sequence[str], options: Options) -> None:
    """Some writes fail; what failed may have been done all the same."""
    for machine in _machines(fleet, words[0]):
        fleet.world.write_fails[machine.name] = _number(options, "fail", 0.2)
    names = [machine.name for machine in _machines(fleet, words[0])]
    fleet.world.later(_number(options, "for", 10.0), _writes_work, fleet, names)


def _writes_work(fleet: Fleet, names: Iterable[str]) -> None:
    for name in names:
        fleet.world.write_fails.pop(name, None)


def _kills(fleet: Fleet, words: Sequence[str], options: Options) -> None:
    """Daemons are killed between their acts, with a chance."""
    fleet.world.killed_between = _number(options, "chance", 0.1)
    fleet.world.later(_number(options, "for", 10.0), _no_kills, fleet)


def _no_kills(fleet: Fleet) -> None:
    fleet.world.killed_between = 0.0


def _network(fleet: Fleet, words: Sequence[str], options: Options) -> None:
    for machine in _machines(fleet, words[0]):
        _set_network(fleet, machine, words[1] == "on")
        if "for" in options:
            back = words[1] == "off"
            fleet.world.later(float(options["for"]), _set_network, fleet, machine, back)


def _set_network(fleet: Fleet, machine: Machine, works: bool) -> None:
    fleet.world.say(f"{machine.name} {'has' if works else 'loses'} its network")
    with fleet.world.changing(machine):
        machine.network = works


def _link(fleet: Fleet, words: Sequence[str], options: Options) -> None:
    """What the first node sends does not reach the second any more."""
    source, target = words[0], _machines(fleet, words[1])[0]
    _set_link(fleet, source, target, words[2] == "on")
    if "for" in options:
        back = words[2] == "off"
        fleet.world.later(float(options["for"]), _set_link, fleet, source, target, back)


def _set_link(fleet: Fleet, source: str, target: Machine, works: bool) -> None:
    fleet.world.say(f"{target.name} {'hears' if works else 'does not hear'} {source}")
    with fleet.world.changing(target):
        if works:
            target.cut_from.discard(source)
        else:
            target.cut_from.add(source)


def _clock(fleet: Fleet, words: Sequence[str], options: Options) -> None:
    """A wall clock jumps, or a machine's clocks run at another rate from its next boot on."""
    for machine in _machines(fleet, words[0]):
        with fleet.world.changing(machine):
            machine.clock.offset += _number(options, "jump", 0.0)
        fleet.world.say(f"the wall clock of {machine.name} jumps")


def _watchdog(fleet: Fleet, words: Sequence[str], options: Options) -> None:
    for machine in _machines(fleet, words[0]):
        machine.watchdog_late = _number(options, "late", 0.0)


def _device(fleet: Fleet, words: Sequence[str], options: Options) -> None:
    """A fence device does something else from now on, or for a while."""
    mode = words[1]
    if mode not in ("works", "fails", "hides", "hangs", "lies", "wrong", "back", "with-node"):
        raise InputError("device", mode, "what a fence device can do")
    for machine in _machines(fleet, words[0]):
        device = machine.device
        fleet.world.say(f"the fence device of {machine.name} {mode}")
        device.with_node = mode == "with-node"
        device.mode = "works" if device.with_node else mode
        device.seconds = _number(options, "seconds", 0.0)
        device.other = options.get("other", "")
        if "for" in options:
            fleet.world.later(float(options["for"]), _device, fleet, (machine.name, "works"), {})


def _agent(fleet: Fleet, words: Sequence[str], options: Options) -> None:
    """The agents of a service, or of all, do something else for a while or for good."""
    action, how = words[1], words[2]
    if action not in ("start", "stop", "monitor", "migrate", "probe", ANY):
        raise InputError("action", action, "an action of an agent")
    if how not in ("works", "fails", "hangs", "lies", "slow"):
        raise InputError("agent", how, "'works', 'fails', 'hangs', 'lies' or 'slow'")
    world = fleet.world
    world.before_change(None)
    if how == "works":
        fleet.agents.faults = [
            one for one in fleet.agents.faults if (one.service, one.action) != (words[0], action)
        ]
    else:
        fault = AgentFault(
            action,
            how,
            words[0],
            options.get("on", ANY),
            _number(options, "chance", 1.0),
            world.now + _number(options, "for", float("inf")),
            _number(options, "seconds", 5.0),
        )
        fleet.agents.faults.append(fault)
        if "for" in options:
            world.later(float(options["for"]), _agent_works, fleet, fault)
    world.say(f"{action} of {words[0]} {how} {options.get('on', '')}".rstrip())
    world.after_change(None)


def _agent_works(fleet: Fleet, fault: AgentFault) -> None:
    fleet.world.before_change(None)
    fleet.agents.faults = [one for one in fleet.agents.faults if one is not fault]
    fleet.world.after_change(None)


def _crash(fleet: Fleet, words: Sequence[str], options: Options) -> None:
    """A service that runs ends by itself, wholly or in part."""
    world = fleet.world
    for machine in world.where(words[0]):
        with world.changing(machine):
            if options.get("part"):
                machine.active[words[0]] = "partly"
            else:
                machine.active.pop(words[0])
        world.say(f"{words[0]} crashes on {machine.name}")


def _damage(fleet: Fleet, words: Sequence[str], options: Options) -> None:
    """A record, or the global block of the whiteboard, can no longer be read."""
    world = fleet.world
    world.before_change(None)
    if words[0] == "board":
        world.storage.board_readable = False
    else:
        for machine in _machines(fleet, words[0]):
            world.storage.reports[machine.name].damaged = True
    world.say(f"{words[0]} is damaged on the storage")
    world.after_change(None)


def _clone(fleet: Fleet, words: Sequence[str], options: Options) -> None:
    fleet.world.add_clone(_machines(fleet, words[0])[0].name)


def _hold(fleet: Fleet, words: Sequence[str], options: Options) -> None:
    """Somebody sets the whiteboard's global maintenance by hand."""
    fleet.world.say("global maintenance on the whiteboard")
    fleet.set_board("by hand")
    if "for" in options:
        fleet.world.later(float(options["for"]), fleet.set_board, "")


def _unhold(fleet: Fleet, words: Sequence[str], options: Options) -> None:
    fleet.world.say("no global maintenance on the whiteboard")
    fleet.set_board("")


def _wall(fleet: Fleet) -> float:
    """Return the time by a right wall clock: that of who asks for something."""
    from .machine import EPOCH

    return EPOCH + fleet.world.now


def _maintenance(fleet: Fleet, words: Sequence[str], options: Options) -> None:
    wall = _wall(fleet)
    until = wall + float(options["for"]) if "for" in options else 0.0
    one = Maintenance("asked for", "operator", wall, until)
    fleet.world.say("global maintenance is declared")
    fleet.want(fleet.world.storage.wanted.with_global_maintenance(one))


def _end_maintenance(fleet: Fleet, words: Sequence[str], options: Options) -> None:
    fleet.world.say("the declared global maintenance is ended")
    fleet.want(fleet.world.storage.wanted.without_global_maintenance())


def _drain(fleet: Fleet, words: Sequence[str], options: Options) -> None:
    wall = _wall(fleet)
    until = wall + float(options["for"]) if "for" in options else 0.0
    fleet.world.say(f"{words[0]} is drained")
    one = Maintenance("asked for", "operator", wall, until)
    fleet.want(fleet.world.storage.wanted.with_maintenance(words[0], one))


def _undrain(fleet: Fleet, words: Sequence[str], options: Options) -> None:
    fleet.world.say(f"{words[0]} is taken up again")
    fleet.want(fleet.world.storage.wanted.without_maintenance(words[0]))


def _disarm(fleet: Fleet, words: Sequence[str], options: Options) -> None:
    wanted = fleet.world.storage.wanted
    if wanted.disarm:
        return
    fleet.world.say(f"the cluster is to be disarmed: {words[0]}")
    fleet.want(wanted.with_disarm(words[0]))
    if "for" in options:
        fleet.world.later(float(options["for"]), _arm, fleet, (), {})


def _arm(fleet: Fleet, words: Sequence[str], options: Options) -> None:
    fleet.world.say("the cluster is to be armed")
    fleet.want(fleet.world.storage.wanted.with_disarm(""))


def _change(**values: object) -> Act:
    """Return an action that declares a service with other values."""

    def act(fleet: Fleet, words: Sequence[str], options: Options) -> None:
        wanted = fleet.world.storage.wanted
        service = wanted.services.get(words[0])
        if service is not None:
            said = ", ".join(f"{key} {value}" for key, value in values.items())
            fleet.world.say(f"{words[0]} is declared: {said}")
            fleet.want(wanted.with_service(replace(service, **values)))  # type: ignore[arg-type]

    return act


def _redefine(fleet: Fleet, words: Sequence[str], options: Options) -> None:
    """A service gets another definition, so that it is to be started anew."""
    wanted = fleet.world.storage.wanted
    service = wanted.services.get(words[0])
    if service is None:
        return
    first = service.resources[0]
    version = f"{wanted.version + 1}"
    resources = (replace(first, parameters={"version": version}), *service.resources[1:])
    fleet.world.say(f"{words[0]} is defined anew")
    fleet.want(wanted.with_service(replace(service, resources=resources)))


def _remove(fleet: Fleet, words: Sequence[str], options: Options) -> None:
    wanted: Wanted = fleet.world.storage.wanted
    for rule in wanted.rules():
        if words[0] in rule.services:
            wanted = wanted.without_rule(rule.name)
    try:
        wanted = wanted.without_service(words[0])
    except InputError as error:
        fleet.world.say(f"{words[0]} cannot be removed: {error}")
        return
    fleet.world.say(f"{words[0]} is removed")
    fleet.want(wanted)


def _unrule(fleet: Fleet, words: Sequence[str], options: Options) -> None:
    fleet.want(fleet.world.storage.wanted.without_rule(words[0]))


def _move(fleet: Fleet, words: Sequence[str], options: Options) -> None:
    wanted = fleet.world.storage.wanted
    if words[0] in wanted.services:
        request = Request(MOVE, _wall(fleet), words[1], live=options.get("live") != "no")
        fleet.world.rules.asked_for.add(words[1])
        fleet.world.say(f"{words[0]} is asked to go to {words[1]}")
        fleet.want(wanted.with_request(words[0], request))


def _stop_within(fleet: Fleet, words: Sequence[str], options: Options) -> None:
    wanted = fleet.world.storage.wanted
    service = wanted.services.get(words[0])
    if service is not None:
        request = Request(STOP, _wall(fleet), timeout=float(words[1]))
        wanted = wanted.with_service(replace(service, state=STOPPED))
        fleet.world.say(f"{words[0]} is asked to stop within {words[1]} s")
        fleet.want(wanted.with_request(words[0], request))


def _shutdown(fleet: Fleet, words: Sequence[str], options: Options) -> None:
    """A node's operator shuts it down, or restarts its LRM."""
    what = words[1]
    if what not in ("reboot", "poweroff", "restart"):
        raise InputError("shutdown", what, "'reboot', 'poweroff' or 'restart'")
    for machine in _machines(fleet, words[0]):
        daemon = fleet.locals.get(machine.name)
        if daemon is not None and daemon.alive:
            fleet.world.say(f"{machine.name} is to be shut down: {what}")
            fleet.world.before_change(machine)
            if not daemon.shutdown:
                daemon.asked_to_end = machine.clock.mono(fleet.world.now)
            daemon.shutdown = what
            fleet.world.after_change(machine)


def _run_by_hand(fleet: Fleet, words: Sequence[str], options: Options) -> None:
    """Somebody starts a service on a node behind the manager's back."""
    machine = _machines(fleet, words[1])[0]
    with fleet.world.changing(machine):
        if machine.on:
            machine.active[words[0]] = "running"
    fleet.world.say(f"{words[0]} is started on {words[1]} by hand")
    fleet.world.rules.activated(words[0])


def _move_by_hand(fleet: Fleet, words: Sequence[str], options: Options) -> None:
    """Somebody moves a service while the cluster is disarmed and leaves services to them.

    It goes to a node that is well, and nobody does so once they asked to arm it again.
    """
    world, service_id = fleet.world, words[0]
    target = _machines(fleet, words[1])[0]
    record, there = world.storage.manager_record(), world.where(service_id)
    if record is None or (record.disarm, record.disarm_mode) != (DISARMED, IGNORE):
        return
    status = record.nodes.get(target.name)
    if status is None or status.state is not NodeState.ONLINE or not target.storage:
        return
    if world.storage.wanted.disarm != IGNORE:
        return
    if not all(one.awake for one in (target, *there)):
        return
    for machine in there:
        with world.changing(machine):
            del machine.active[service_id]
    with world.changing(target):
        target.active[service_id] = "running"
    world.say(f"{service_id} is moved to {target.name} by hand")
    world.rules.activated(service_id)


ACTIONS: Mapping[str, Verb] = {
    "power-off": Verb(_power_off, (1, 1), ("for", "after")),
    "power-on": Verb(_power_on, (1, 1)),
    "reset": Verb(_reset, (1, 1)),
    "freeze": Verb(_freeze, (1, 1), ("for",)),
    "thaw": Verb(_thaw, (1, 1)),
    "kill": Verb(_kill, (2, 2), ("for",)),
    "hang": Verb(_hang, (2, 2), ("for",)),
    "crash-at-write": Verb(_strike(""), (2, 2), ("at", "writes", "for")),
    "pause-at-write": Verb(_strike(PAUSED), (2, 2), ("writes", "for")),
    "storage": Verb(_storage, (2, 2), ("only", "for")),
    "slow": Verb(_slow, (1, 1), ("seconds", "for")),
    "stale": Verb(_stale, (1, 1), ("for", "back")),
    "writes": Verb(_writes, (1, 1), ("fail", "for")),
    "kills": Verb(_kills, (0, 0), ("chance", "for")),
    "network": Verb(_network, (2, 2), ("for",)),
    "link": Verb(_link, (3, 3), ("for",)),
    "clock": Verb(_clock, (1, 1), ("jump",)),
    "watchdog": Verb(_watchdog, (1, 1), ("late",)),
    "device": Verb(_device, (2, 2), ("seconds", "other", "for")),
    "agent": Verb(_agent, (3, 3), ("on", "chance", "for", "seconds")),
    "crash": Verb(_crash, (1, 1), ("part",)),
    "damage": Verb(_damage, (1, 1)),
    "clone": Verb(_clone, (1, 1)),
    "hold": Verb(_hold, (0, 0), ("for",)),
    "unhold": Verb(_unhold, (0, 0)),
    "maintenance": Verb(_maintenance, (0, 0), ("for",)),
    "end-maintenance": Verb(_end_maintenance, (0, 0)),
    "drain": Verb(_drain, (1, 1), ("for",)),
    "undrain": Verb(_undrain, (1, 1)),
    "disarm": Verb(_disarm, (1, 1), ("for",)),
    "arm": Verb(_arm, (0, 0)),
    "start": Verb(_change(state=STARTED), (1, 1)),
    "stop": Verb(_change(state=STOPPED), (1, 1)),
    "ignore": Verb(_change(ignored=True), (1, 1)),
    "track": Verb(_change(ignored=False), (1, 1)),
    "redefine": Verb(_redefine, (1, 1)),
    "remove": Verb(_remove, (1, 1)),
    "unrule": Verb(_unrule, (1, 1)),
    "move": Verb(_move, (2, 2), ("live",)),
    "stop-within": Verb(_stop_within, (2, 2)),
    "shutdown": Verb(_shutdown, (2, 2)),
    "run-by-hand": Verb(_run_by_hand, (2, 2)),
    "move-by-hand": Verb(_move_by_hand, (2, 2)),
}
"""All actions but ``service``, ``rule`` and ``policy``, which declare: see ``play.py``."""
