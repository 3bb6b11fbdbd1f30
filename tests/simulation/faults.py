# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults of machines, daemons, access to storage, network, clocks, fence devices and agents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.membership import (  # noqa: E501
    make_membership,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import InputError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.simulator.agents import (
    ANY,
    AgentFault,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.simulator.machine import Machine
from ansible_collections.holdfast.ha.tests.simulation.action import (
    Act,
    Options,
    Verb,
    machines,
    number,
)
from ansible_collections.holdfast.ha.tests.simulation.faulty_daemons import Interruption, Stage
from ansible_collections.holdfast.ha.tests.simulation.faulty_fleet import FaultyFleet


def _power_off(fleet: FaultyFleet, words: Sequence[str], options: Options) -> None:
    for machine in machines(fleet, words[0]):
        if "after" in options:
            fleet.world.later(float(options["after"]), _cut, fleet, machine, options)
        else:
            _cut(fleet, machine, options)


def _cut(fleet: FaultyFleet, machine: Machine, options: Options) -> None:
    if not fleet.interrupts:
        return
    machine.cut = True
    fleet.world.power_off(machine, "its power is cut")
    if "for" in options:
        fleet.world.later(float(options["for"]), fleet.world.power_on, machine)


def _power_on(fleet: FaultyFleet, words: Sequence[str], options: Options) -> None:
    for machine in machines(fleet, words[0]):
        fleet.world.power_on(machine)


def _reset(fleet: FaultyFleet, words: Sequence[str], options: Options) -> None:
    for machine in machines(fleet, words[0]):
        if not machine.cut:
            fleet.world.power_off(machine, "it is reset")
            fleet.world.power_on(machine)


def _is_lied_about(machine: Machine, now: float) -> bool:
    """Return whether its device's lie that it is off is being found out."""
    return max(machine.lies_until, machine.answers_until) > now


def _freeze(fleet: FaultyFleet, words: Sequence[str], options: Options) -> None:
    world = fleet.world
    for machine in machines(fleet, words[0]):
        if not machine.on or machine.frozen or _is_lied_about(machine, world.now):
            continue
        world.say(f"{machine.name} freezes")
        with world.changing(machine):
            machine.frozen = True
        if "for" in options:
            world.later(float(options["for"]), thaw, fleet, machine, machine.boot)


def _thaw(fleet: FaultyFleet, words: Sequence[str], options: Options) -> None:
    for machine in machines(fleet, words[0]):
        thaw(fleet, machine, machine.boot)


def thaw(fleet: FaultyFleet, machine: Machine, boot: int) -> None:
    """Let a frozen machine go on, if it is still the same start of it."""
    if machine.frozen and machine.boot == boot:
        fleet.world.say(f"{machine.name} thaws")
        with fleet.world.changing(machine):
            machine.frozen = False
            machine.clock.go_on(fleet.world.now)
        machine.writes_since = fleet.world.now
        if not machine.renewals.goes:
            fleet.world.arm_watchdog(machine)


def _pause(fleet: FaultyFleet, words: Sequence[str], options: Options) -> None:
    """A hypervisor pauses virtual machines: their watchdogs and clocks stand still as well."""
    world = fleet.world
    for machine in machines(fleet, words[0]):
        if not machine.virtual or not machine.awake or _is_lied_about(machine, world.now):
            continue
        world.say(f"{machine.name} is paused")
        with world.changing(machine):
            machine.frozen = True
            machine.clock.stop(world.now)
        if "for" in options:
            world.later(float(options["for"]), thaw, fleet, machine, machine.boot)


def _kill(fleet: FaultyFleet, words: Sequence[str], options: Options) -> None:
    kind = _daemon_kind(words[0])
    for machine in machines(fleet, words[1]):
        if kind == "lrm" and machine.lies_until > fleet.world.now:
            continue
        fleet.kill(kind, machine.name, float(options["for"]) if "for" in options else None)


def _hang(fleet: FaultyFleet, words: Sequence[str], options: Options) -> None:
    kind = _daemon_kind(words[0])
    for machine in machines(fleet, words[1]):
        if not (kind == "lrm" and machine.lies_until > fleet.world.now):
            fleet.hang(kind, machine.name, number(options, "for", 5.0))


def _daemon_kind(word: str) -> str:
    if word not in ("lrm", "crm"):
        raise InputError("daemon", word, "'lrm' or 'crm'")
    return word


def _interrupt(stage: str) -> Act:
    def act(fleet: FaultyFleet, words: Sequence[str], options: Options) -> None:
        kind = _daemon_kind(words[0])
        where = stage or options.get("at", Stage.BEFORE.value)
        if where not in {one.value for one in Stage}:
            raise InputError("at", where, ", ".join(one.value for one in Stage))
        count = int(number(options, "writes", number(options, "count", 1)))
        one = Interruption(Stage(where), count, number(options, "for", 0.0))
        for machine in machines(fleet, words[1]):
            fleet.interrupt(kind, machine.name, replace(one))

    return act


def _old_configuration(fleet: FaultyFleet, words: Sequence[str], options: Options) -> None:
    """A node's daemons start with an old configuration, which has fewer members."""
    for machine in machines(fleet, words[0]):
        members = dict(fleet.world.membership.members)
        members.pop(words[1], None)
        if machine.name in members and len(members) < len(fleet.world.membership.members):
            fleet.world.say(f"{machine.name} has a configuration without {words[1]}")
            fleet.configure(machine, make_membership(members, ""))
            if "for" in options:
                seconds = float(options["for"])
                fleet.world.later(seconds, fleet.configure, machine, fleet.world.membership)


def _storage(fleet: FaultyFleet, words: Sequence[str], options: Options) -> None:
    """A node loses its way to the storage: both ways, or only reads or writes."""
    part = options.get("only", "")
    if part not in ("", "reads", "writes"):
        raise InputError("only", part, "'reads' or 'writes'")
    for machine in machines(fleet, words[0]):
        if machine.lies_until > fleet.world.now and words[1] == "off":
            continue
        fleet.world.set_storage(machine, words[1] == "on", part)
        if "for" in options:
            back = words[1] == "off"
            fleet.world.later(float(options["for"]), fleet.world.set_storage, machine, back, part)


def _slow(fleet: FaultyFleet, words: Sequence[str], options: Options) -> None:
    for machine in machines(fleet, words[0]):
        _set_slow(fleet, machine, number(options, "seconds", 1.0))
        fleet.world.later(number(options, "for", 10.0), _set_slow, fleet, machine, 0.0)


def _set_slow(fleet: FaultyFleet, machine: Machine, seconds: float) -> None:
    fleet.world.say(f"the storage of {machine.name} takes {seconds:g} s more")
    with fleet.world.changing(machine):
        machine.slow = seconds


def _stale(fleet: FaultyFleet, words: Sequence[str], options: Options) -> None:
    for machine in machines(fleet, words[0]):
        fleet.world.say(f"{machine.name} reads what the storage had now")
        fleet.make_stale(machine.name, True, back=options.get("back") == "yes")
        seconds = number(options, "for", 5.0)
        fleet.world.later(seconds, fleet.make_stale, machine.name, False)


def _late_free(fleet: FaultyFleet, words: Sequence[str], options: Options) -> None:
    """The next write by which a node frees another's host lease hangs, and lands later."""
    for machine in machines(fleet, words[0]):
        fleet.late_frees[machine.name] = number(options, "seconds", 10.0)


def _writes(fleet: FaultyFleet, words: Sequence[str], options: Options) -> None:
    """Some writes fail; what failed may have been done all the same."""
    for machine in machines(fleet, words[0]):
        fleet.write_fails[machine.name] = number(options, "fail", 0.2)
    names = [machine.name for machine in machines(fleet, words[0])]
    fleet.world.later(number(options, "for", 10.0), _writes_work, fleet, names)


def _writes_work(fleet: FaultyFleet, names: Iterable[str]) -> None:
    for name in names:
        fleet.write_fails.pop(name, None)


def _kills(fleet: FaultyFleet, words: Sequence[str], options: Options) -> None:
    """Daemons are killed between their acts, with a chance."""
    fleet.killed_between = number(options, "chance", 0.1)
    fleet.world.later(number(options, "for", 10.0), _no_kills, fleet)


def _no_kills(fleet: FaultyFleet) -> None:
    fleet.killed_between = 0.0


def _network(fleet: FaultyFleet, words: Sequence[str], options: Options) -> None:
    for machine in machines(fleet, words[0]):
        if words[1] == "off" and _is_heard(fleet):
            continue
        fleet.world.set_network(machine, words[1] == "on")
        if "for" in options:
            back = words[1] == "off"
            fleet.world.later(float(options["for"]), fleet.world.set_network, machine, back)


def _is_heard(fleet: FaultyFleet) -> bool:
    """Return whether a device's lie is being found out on the network."""
    now = fleet.world.now
    return any(one.answers_until > now for one in fleet.world.machines.values())


def _link(fleet: FaultyFleet, words: Sequence[str], options: Options) -> None:
    """What the first node sends does not reach the second any more."""
    source, target = words[0], machines(fleet, words[1])[0]
    if words[2] == "off" and _is_heard(fleet):
        return
    _set_link(fleet, source, target, words[2] == "on")
    if "for" in options:
        back = words[2] == "off"
        fleet.world.later(float(options["for"]), _set_link, fleet, source, target, back)


def _set_link(fleet: FaultyFleet, source: str, target: Machine, works: bool) -> None:
    fleet.world.say(f"{target.name} {'hears' if works else 'does not hear'} {source}")
    with fleet.world.changing(target):
        if works:
            target.cut_from.discard(source)
        else:
            target.cut_from.add(source)


def _clock(fleet: FaultyFleet, words: Sequence[str], options: Options) -> None:
    """A wall clock jumps, or a machine's clocks run at another rate from its next boot on."""
    for machine in machines(fleet, words[0]):
        with fleet.world.changing(machine):
            machine.clock.offset += number(options, "jump", 0.0)
        fleet.world.say(f"the wall clock of {machine.name} jumps")


def _watchdog(fleet: FaultyFleet, words: Sequence[str], options: Options) -> None:
    for machine in machines(fleet, words[0]):
        machine.watchdog_late = number(options, "late", 0.0)


def _device(fleet: FaultyFleet, words: Sequence[str], options: Options) -> None:
    """A fence device does something else from now on, or for a while."""
    mode = words[1]
    if mode not in ("works", "fails", "hides", "hangs", "lies", "wrong", "back", "with-node"):
        raise InputError("device", mode, "what a fence device can do")
    for machine in machines(fleet, words[0]):
        device = machine.device
        fleet.world.say(f"the fence device of {machine.name} {mode}")
        device.with_node = mode == "with-node"
        device.mode = "works" if device.with_node else mode
        device.seconds = number(options, "seconds", 0.0)
        device.other = options.get("other", "")
        if "for" in options:
            fleet.world.later(float(options["for"]), _device, fleet, (machine.name, "works"), {})


def _loss(fleet: FaultyFleet, words: Sequence[str], options: Options) -> None:
    """A share of the datagrams from and to a node is lost for a while."""
    for machine in machines(fleet, words[0]):
        _disturb(fleet, machine, "loss", number(options, "share", 0.3))
        fleet.world.later(number(options, "for", 10.0), _disturb, fleet, machine, "loss", 0.0)


def _jitter(fleet: FaultyFleet, words: Sequence[str], options: Options) -> None:
    """Datagrams from and to a node take up to so many seconds for a while."""
    for machine in machines(fleet, words[0]):
        _disturb(fleet, machine, "jitter", number(options, "seconds", 0.5))
        fleet.world.later(number(options, "for", 10.0), _disturb, fleet, machine, "jitter", 0.0)


def _disturb(fleet: FaultyFleet, machine: Machine, what: str, value: float) -> None:
    fleet.world.say(f"the network of {machine.name} has {what} {value:g}")
    with fleet.world.changing(None):
        setattr(machine, what, value)


STARVED_FOR, RUNS_FOR = (0.1, 0.7), (0.1, 0.4)
"""Seconds for which a daemon that is starved makes no progress, and some, in turn."""


def _starve(fleet: FaultyFleet, words: Sequence[str], options: Options) -> None:
    """The LRM of a node makes progress now and then only."""
    for machine in machines(fleet, words[0]):
        _starve_on(fleet, machine.name, fleet.world.now + number(options, "for", 10.0))


def _starve_on(fleet: FaultyFleet, name: str, until: float) -> None:
    world = fleet.world
    if world.now >= until or not fleet.interrupts:
        return
    seconds = world.random.uniform(*STARVED_FOR)
    if world.machines[name].lies_until <= world.now:
        fleet.hang("lrm", name, seconds)
    world.later(seconds + world.random.uniform(*RUNS_FOR), _starve_on, fleet, name, until)


def _agent(fleet: FaultyFleet, words: Sequence[str], options: Options) -> None:
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
            number(options, "chance", 1.0),
            world.now + number(options, "for", float("inf")),
            number(options, "seconds", 5.0),
        )
        fleet.agents.faults.append(fault)
        if "for" in options:
            world.later(float(options["for"]), _agent_works, fleet, fault)
    world.say(f"{action} of {words[0]} {how} {options.get('on', '')}".rstrip())
    world.after_change(None)


def _agent_works(fleet: FaultyFleet, fault: AgentFault) -> None:
    fleet.world.before_change(None)
    fleet.agents.faults = [one for one in fleet.agents.faults if one is not fault]
    fleet.world.after_change(None)


def _crash(fleet: FaultyFleet, words: Sequence[str], options: Options) -> None:
    """A service that runs ends by itself, wholly or in part."""
    world = fleet.world
    for machine in world.where(words[0]):
        with world.changing(machine):
            if options.get("part"):
                machine.active[words[0]] = "partly"
            else:
                machine.active.pop(words[0])
        world.say(f"{words[0]} crashes on {machine.name}")


def _clone(fleet: FaultyFleet, words: Sequence[str], options: Options) -> None:
    """Switch a machine on that has the host id of another: it waits for the host lease."""
    world, first = fleet.world, machines(fleet, words[0])[0]
    clone = Machine(
        first.name,
        first.host_id,
        world.settings,
        first.membership,
        device=first.device,
        on=False,
    )
    clone.renewals.restart(world.now, world.now, first.renewals.period)
    clone.refresh(world.now)
    world.clones.setdefault(first.name, []).append(clone)
    world.say(f"another machine with the host id of {first.name} is switched on")
    world.power_on(clone)


FAULTS: Mapping[str, Verb] = {
    "power-off": Verb(_power_off, (1, 1), ("for", "after")),
    "power-on": Verb(_power_on, (1, 1)),
    "reset": Verb(_reset, (1, 1)),
    "freeze": Verb(_freeze, (1, 1), ("for",)),
    "thaw": Verb(_thaw, (1, 1)),
    "pause": Verb(_pause, (1, 1), ("for",)),
    "kill": Verb(_kill, (2, 2), ("for",)),
    "hang": Verb(_hang, (2, 2), ("for",)),
    "crash-at-write": Verb(_interrupt(""), (2, 2), ("at", "writes", "for")),
    "pause-at-write": Verb(_interrupt(Stage.PAUSED.value), (2, 2), ("writes", "for")),
    "pause-in-look": Verb(_interrupt(Stage.LOOKING.value), (2, 2), ("count", "for")),
    "pause-anywhere": Verb(_interrupt(Stage.HELD.value), (2, 2), ("count", "for")),
    "kill-anywhere": Verb(_interrupt(Stage.KILLED.value), (2, 2), ("count", "for")),
    "old-configuration": Verb(_old_configuration, (2, 2), ("for",)),
    "storage": Verb(_storage, (2, 2), ("only", "for")),
    "slow": Verb(_slow, (1, 1), ("seconds", "for")),
    "stale": Verb(_stale, (1, 1), ("for", "back")),
    "late-free": Verb(_late_free, (1, 1), ("seconds",)),
    "writes": Verb(_writes, (1, 1), ("fail", "for")),
    "kills": Verb(_kills, (0, 0), ("chance", "for")),
    "network": Verb(_network, (2, 2), ("for",)),
    "link": Verb(_link, (3, 3), ("for",)),
    "loss": Verb(_loss, (1, 1), ("share", "for")),
    "jitter": Verb(_jitter, (1, 1), ("seconds", "for")),
    "starve": Verb(_starve, (1, 1), ("for",)),
    "clock": Verb(_clock, (1, 1), ("jump",)),
    "watchdog": Verb(_watchdog, (1, 1), ("late",)),
    "device": Verb(_device, (2, 2), ("seconds", "other", "for")),
    "agent": Verb(_agent, (3, 3), ("on", "chance", "for", "seconds")),
    "crash": Verb(_crash, (1, 1), ("part",)),
    "clone": Verb(_clone, (1, 1)),
}
